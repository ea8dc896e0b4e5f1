"""Small images of published data sets as tasks: CIFAR, SVHN, TinyImageNet, MNIST and its like."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from abstain._foundation.subsample import subsampled_rows
from abstain.errors import FileFormatError
from abstain_bench.data import DATASETS, KINDS, Exposure, Images, split
from abstain_bench.data.corruptions import CORRUPTIONS, SEVERITIES
from abstain_bench.data.downloads import SOURCES
from abstain_bench.data.published import CORRUPTIONS as OFFICIAL_NAMES
from abstain_bench.data.published import read_cifar100_super
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.tasks._entry import (
    OFFICIAL,
    Parts,
    Sizes,
    Task,
    corrupted,
    divided,
    given,
    in_memory,
    left_out,
    of_no_class,
    required,
)

#: Images of each exposure to our own corruptions, where nothing official is to be matched.
_FEW: Final = 1000


def whole(name: str, folder: Path | None, sizes: Sizes) -> tuple[Images, Images]:
    """Read the training and test images that a task cannot do without."""
    records = sizes.records.get(name)
    return required(name, folder, lambda place: DATASETS[name].official(place, records))


def _as_fd_shifts(name: str, folder: Path | None, sizes: Sizes = OFFICIAL) -> Parts:
    train, test = whole(name, folder, sizes)
    validation, tested = divided(test, sizes.validation)
    where = folder or Path()
    spoiled, notes = _spoiled(name, where, (test, tested), sizes)
    new, lacking = _new_classes(name, where, train, sizes)
    return in_memory(train, validation, tested, *spoiled, *new, notes=(*notes, *lacking))


def _ours(name: str, folder: Path | None, sizes: Sizes = OFFICIAL) -> Parts:
    """Load a task that FD-Shifts does not have: validation images drawn, our own corruptions."""
    train, test = whole(name, folder, sizes)
    validation, tested = split(test, sizes.validation, test.n - sizes.validation)
    some = tested if tested.n <= _FEW else split(tested, _FEW)[0]
    new, notes = _new_classes(name, folder or Path(), train, sizes)
    return in_memory(train, validation, tested, *corrupted(given(some)), *new, notes=notes)


def _super(folder: Path | None, sizes: Sizes = OFFICIAL) -> Parts:
    records = sizes.records.get("cifar100")
    found = required("cifar100", folder, lambda place: read_cifar100_super(place, records=records))
    validation, tested = split(found.test, sizes.validation, found.test.n - sizes.validation)
    shifted = Exposure("unseen-sub-classes", "sub-class", given(found.shifts["sub-class"]))
    return in_memory(found.train, validation, tested, shifted)


def _spoiled(
    name: str, folder: Path, clean: tuple[Images, Images], sizes: Sizes
) -> tuple[tuple[Exposure, ...], tuple[str, ...]]:
    """Return the official corruptions if there are any, or our own where no file of them is.

    They are of the clean test images: of all, or of those that are tested.
    """
    data, (whole_test, tested) = DATASETS[name], clean
    if data.corrupted is None:
        return (), ()
    source = SOURCES[f"{name}-c"]
    where = source.find(folder)
    if where is None:
        what = "the corruptions are our own, as the official ones are not there"
        return tuple(corrupted(given(tested))), (left_out(source, folder, what),)
    pairs = list(zip(CORRUPTIONS, OFFICIAL_NAMES, strict=True))
    there = [pair for pair in pairs if (where / f"{pair[1]}.npy").is_file()]
    notes = tuple(
        f"the corruption {own!r} is left out: {official}.npy is not in {str(where)!r} (half "
        f"extracted?); `abstain data fetch {source.name} --folder DIR`, again"
        for own, official in pairs
        if (own, official) not in there
    )
    read = partial(data.corrupted, where, records=sizes.records.get(name))
    wanted = {"tested": tested, "all": whole_test, "tenth": _tenth(whole_test)}[sizes.corrupted]
    return tuple(_official(read, there, wanted)), notes


def _tenth(test: Images) -> Images:
    """Return a tenth of the images as in Traub et al.: see `subsampled_rows`."""
    return test.subset(subsampled_rows(test.n, test.count, factor=10))


def _official(
    read: Callable[[str, int], Images], pairs: list[tuple[str, str]], tested: Images
) -> Iterator[Exposure]:
    for own, official in pairs:
        for severity in range(1, SEVERITIES + 1):
            load = partial(_same_rows, partial(read, official, severity), tested)
            yield Exposure(f"corruption-{own}", "corruption", load, own, severity, ready=True)


def _same_rows(read: Callable[[], Images], tested: Images) -> Images:
    """Read corrupted images; return those of the clean ones that are tested."""
    found = read().subset(tested.places)
    wrong = np.flatnonzero(found.labels != tested.labels)
    if wrong.size:
        raise FileFormatError(
            f"labels.npy is not that of these test images: image {tested.places[wrong[0]]:,} "
            f"has the class {found.labels[wrong[0]]} there, and {tested.labels[wrong[0]]} here"
        )
    return replace(found, classes=tested.classes)


def _new_classes(
    name: str, folder: Path, train: Images, sizes: Sizes
) -> tuple[tuple[Exposure, ...], tuple[str, ...]]:
    """Return the data sets that serve as new classes, and what is said of absent ones."""
    found, notes = [], []
    for other, kind in DATASETS[name].new.items():
        source = DATASETS[other].download
        where = source.find(folder)
        if where is None:
            notes.append(left_out(source, folder, f"the new classes {other!r} are left out"))
            continue
        found.append(Exposure(other, kind, partial(_others, other, where, train, sizes)))
    # In the order of the tables: near ones first.
    found.sort(key=lambda exposure: list(KINDS).index(exposure.kind))
    return tuple(found), tuple(notes)


def _others(other: str, where: Path, train: Images, sizes: Sizes) -> Images:
    """Read the test images of another data set, of which none is of a known class."""
    side = sizes.new_side or train.shape[1]
    found = DATASETS[other].outliers(where, sizes.records.get(other), side)
    # Where they have a size of their own, the network scales what it sees.
    return of_no_class(found, train.classes, None if sizes.new_side else train.shape)


#: As checked in the configurations of FD-Shifts; cutout, which they use too, is not there yet.
CROP_FLIP: Final = {"name": "crop-flip", "padding": 4}
_CIFAR: Final = Recipe(
    epochs=250, learning_rate=0.1, batch_size=128, weight_decay=5e-4, schedule="cosine"
)
SVHN: Final = Recipe(
    epochs=100, learning_rate=0.01, batch_size=128, weight_decay=5e-4, schedule="cosine"
)
_GRAY: Final = Recipe(
    epochs=20, learning_rate=0.1, batch_size=128, weight_decay=5e-4, schedule="cosine"
)
_GRAY_BRANCH: Final = (16, 2)
_MANY_REWARDS: Final = (2.2, 3.0, 6.0, 10.0, 12.0, 15.0, 20.0)

ENTRIES: Final = (
    Task(
        "cifar10",
        "CIFAR-10",
        "10 classes in color, 32 x 32; CIFAR-10-C, and CIFAR-100, SVHN, TinyImageNet as new.",
        "Krizhevsky 2009; as in FD-Shifts",
        partial(_as_fd_shifts, "cifar10"),
        "vgg13",
        _CIFAR,
        CROP_FLIP,
        needs_folder=True,
        dropout=0.5,
    ),
    Task(
        "cifar100",
        "CIFAR-100",
        "100 classes in color, 32 x 32; CIFAR-100-C, and CIFAR-10, SVHN, TinyImageNet as new.",
        "Krizhevsky 2009; as in FD-Shifts",
        partial(_as_fd_shifts, "cifar100"),
        "vgg13",
        _CIFAR,
        CROP_FLIP,
        needs_folder=True,
        dropout=0.5,
        rewards=_MANY_REWARDS,
    ),
    Task(
        "cifar100-super",
        "Super-classes of CIFAR-100",
        "19 super-classes, 32 x 32; a sub-class of each is held out as a shift.",
        "Krizhevsky 2009; the shift as in FD-Shifts",
        _super,
        "vgg13",
        _CIFAR,
        CROP_FLIP,
        needs_folder=True,
        dropout=0.5,
        rewards=_MANY_REWARDS,
    ),
    Task(
        "svhn",
        "SVHN",
        "House numbers, 10 digits, 32 x 32; CIFAR and TinyImageNet as new classes.",
        "Netzer et al. 2011; as in FD-Shifts, but for the network",
        partial(_as_fd_shifts, "svhn"),
        "vgg13",
        SVHN,
        needs_folder=True,
        dropout=0.5,
    ),
    Task(
        "tiny-imagenet",
        "TinyImageNet",
        "200 classes of ImageNet, resized to 32 x 32; our own corruptions, SVHN as new classes.",
        "Le & Yang 2015; the task is ours",
        partial(_ours, "tiny-imagenet"),
        "vgg13",
        _CIFAR,
        CROP_FLIP,
        needs_folder=True,
        dropout=0.5,
        rewards=_MANY_REWARDS,
    ),
    Task(
        "mnist",
        "MNIST",
        "60,000 handwritten digits; our own corruptions, letters and clothes as new classes.",
        "LeCun et al. 1998; the task is ours",
        partial(_ours, "mnist"),
        "small-conv",
        _GRAY,
        needs_folder=True,
        branch=_GRAY_BRANCH,
    ),
    Task(
        "fashion-mnist",
        "Fashion-MNIST",
        "60,000 pieces of clothing; our own corruptions, digits and letters as new classes.",
        "Xiao et al. 2017; the task is ours",
        partial(_ours, "fashion-mnist"),
        "small-conv",
        _GRAY,
        {"name": "crop-flip", "padding": 2},
        needs_folder=True,
        branch=_GRAY_BRANCH,
    ),
)
