"""Define tasks with small published images, such as CIFAR, SVHN, TinyImageNet and MNIST."""

from collections.abc import Callable
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
    DEFAULT_SIZES,
    Sizes,
    Task,
    TaskImages,
    as_unknown_class,
    constant_loader,
    corruption_exposures,
    images_in_memory,
    missing_data_note,
    read_required,
    split_first,
)

#: Number of images per corruption and severity if the corruptions are not official.
_N_CORRUPTED: Final = 1000


def read_official(name: str, folder: Path | None, sizes: Sizes) -> tuple[Images, Images]:
    """Read the training and test images of a data set."""
    records = sizes.records.get(name)
    return read_required(name, folder, lambda path: DATASETS[name].official_splits(path, records))


def _load_fd_shifts_task(
    name: str, folder: Path | None, sizes: Sizes = DEFAULT_SIZES
) -> TaskImages:
    """Load a task of FD-Shifts, in which the first test images are the validation images."""
    train, test = read_official(name, folder, sizes)
    validation, tested = split_first(test, sizes.validation)
    data_folder = folder or Path()
    corruptions, corruption_notes = _load_corruptions(name, data_folder, test, tested, sizes)
    new_classes, new_class_notes = _load_new_classes(name, data_folder, train, sizes)
    notes = (*corruption_notes, *new_class_notes)
    return images_in_memory(train, validation, tested, *corruptions, *new_classes, notes=notes)


def _load_non_fd_shifts_task(
    name: str, folder: Path | None, sizes: Sizes = DEFAULT_SIZES
) -> TaskImages:
    """Load a task that is not in FD-Shifts, with random validation images."""
    train, test = read_official(name, folder, sizes)
    validation, tested = split(test, sizes.validation, test.n - sizes.validation)
    to_corrupt = tested if tested.n <= _N_CORRUPTED else split(tested, _N_CORRUPTED)[0]
    corruptions = corruption_exposures(constant_loader(to_corrupt))
    new_classes, notes = _load_new_classes(name, folder or Path(), train, sizes)
    return images_in_memory(train, validation, tested, *corruptions, *new_classes, notes=notes)


def _load_cifar100_super(folder: Path | None, sizes: Sizes = DEFAULT_SIZES) -> TaskImages:
    records = sizes.records.get("cifar100")
    data = read_required(
        "cifar100", folder, lambda path: read_cifar100_super(path, records=records)
    )
    validation, tested = split(data.test, sizes.validation, data.test.n - sizes.validation)
    load = constant_loader(data.shifts["sub-class"])
    shifted = Exposure("unseen-sub-classes", "sub-class", load)
    return images_in_memory(data.train, validation, tested, shifted)


def _load_corruptions(
    name: str, folder: Path, test: Images, tested: Images, sizes: Sizes
) -> tuple[tuple[Exposure, ...], tuple[str, ...]]:
    """Return the corruption exposures of the test images, and notes on missing files.

    If the official corrupted images are missing, the corruptions of this package are applied to the
    exposure `tested`.
    """
    data = DATASETS[name]
    if data.load_corrupted is None:
        return (), ()
    source = SOURCES[f"{name}-c"]
    source_folder = source.find(folder)
    if source_folder is None:
        consequence = "our own corruptions replace the official ones"
        note = missing_data_note(source, folder, consequence)
        return tuple(corruption_exposures(constant_loader(tested))), (note,)
    available = []
    notes = []
    for corruption, official_name in zip(CORRUPTIONS, OFFICIAL_NAMES, strict=True):
        if (source_folder / f"{official_name}.npy").is_file():
            available.append((corruption, official_name))
        else:
            notes.append(
                f"the corruption {corruption!r} is left out: {official_name}.npy is not in "
                f"{str(source_folder)!r} (incomplete extraction?); run `abstain data fetch "
                f"{source.name} --folder DIR` again"
            )
    clean = {
        "tested": tested,
        "all": test,
        # Traub et al. select the same images; see `subsampled_rows`.
        "tenth": test.subset(subsampled_rows(test.n, test.n_classes, factor=10)),
    }[sizes.corrupted]
    records = sizes.records.get(name)
    exposures = []
    for corruption, official_name in available:
        for severity in range(1, SEVERITIES + 1):
            read = partial(
                data.load_corrupted, source_folder, official_name, severity, records=records
            )
            load = partial(_read_matching_rows, read, clean)
            key = f"corruption-{corruption}"
            exposures.append(
                Exposure(key, "corruption", load, corruption, severity, is_corrupted=True)
            )
    return tuple(exposures), tuple(notes)


def _read_matching_rows(read: Callable[[], Images], clean: Images) -> Images:
    """Read corrupted images, and select those that correspond to the images in `clean`."""
    corrupted = read().subset(clean.source_indices)
    mismatches = np.flatnonzero(corrupted.labels != clean.labels)
    if mismatches.size:
        row = mismatches[0]
        raise FileFormatError(
            f"labels.npy is not that of these test images: image {clean.source_indices[row]:,} "
            f"has the class {corrupted.labels[row]} there, and {clean.labels[row]} here"
        )
    return replace(corrupted, classes=clean.classes)


def _load_new_classes(
    name: str, folder: Path, train: Images, sizes: Sizes
) -> tuple[tuple[Exposure, ...], tuple[str, ...]]:
    """Return the exposures with new classes, and notes on missing data sets."""
    exposures = []
    notes = []
    for other, kind in DATASETS[name].new.items():
        source = DATASETS[other].download
        source_folder = source.find(folder)
        if source_folder is None:
            consequence = f"the new classes {other!r} are left out"
            notes.append(missing_data_note(source, folder, consequence))
            continue
        load = partial(_read_new_classes, other, source_folder, train, sizes)
        exposures.append(Exposure(other, kind, load))
    # The order of the kinds is the order of the tables.
    kinds = list(KINDS)
    exposures.sort(key=lambda exposure: kinds.index(exposure.kind))
    return tuple(exposures), tuple(notes)


def _read_new_classes(other: str, folder: Path, train: Images, sizes: Sizes) -> Images:
    """Read the test images of another data set, labeled as unknown classes."""
    side = sizes.new_side or train.shape[1]
    images = DATASETS[other].new_class_images(folder, sizes.records.get(other), side)
    # If the side differs from that of the training images, the network resizes the images.
    return as_unknown_class(images, train.classes, None if sizes.new_side else train.shape)


#: Augmentation in the configurations of FD-Shifts, except for the cutout.
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

_color_task = partial(
    Task, model="vgg13", recipe=_CIFAR, variation=CROP_FLIP, needs_folder=True, dropout=0.5
)
_gray_task = partial(Task, model="small-conv", recipe=_GRAY, needs_folder=True, branch=_GRAY_BRANCH)

ENTRIES: Final = (
    _color_task(
        "cifar10",
        "CIFAR-10",
        "10 classes in color, 32 x 32; CIFAR-10-C, and CIFAR-100, SVHN, TinyImageNet as new.",
        "Krizhevsky 2009; as in FD-Shifts",
        partial(_load_fd_shifts_task, "cifar10"),
    ),
    _color_task(
        "cifar100",
        "CIFAR-100",
        "100 classes in color, 32 x 32; CIFAR-100-C, and CIFAR-10, SVHN, TinyImageNet as new.",
        "Krizhevsky 2009; as in FD-Shifts",
        partial(_load_fd_shifts_task, "cifar100"),
        rewards=_MANY_REWARDS,
    ),
    _color_task(
        "cifar100-super",
        "Super-classes of CIFAR-100",
        "19 super-classes, 32 x 32; a sub-class of each is held out as a shift.",
        "Krizhevsky 2009; the shift as in FD-Shifts",
        _load_cifar100_super,
        rewards=_MANY_REWARDS,
    ),
    _color_task(
        "svhn",
        "SVHN",
        "House numbers, 10 digits, 32 x 32; CIFAR and TinyImageNet as new classes.",
        "Netzer et al. 2011; as in FD-Shifts, but for the network",
        partial(_load_fd_shifts_task, "svhn"),
        recipe=SVHN,
        variation={},
    ),
    _color_task(
        "tiny-imagenet",
        "TinyImageNet",
        "200 classes of ImageNet, resized to 32 x 32; our own corruptions, SVHN as new classes.",
        "Le & Yang 2015; the task is ours",
        partial(_load_non_fd_shifts_task, "tiny-imagenet"),
        rewards=_MANY_REWARDS,
    ),
    _gray_task(
        "mnist",
        "MNIST",
        "60,000 handwritten digits; our own corruptions, letters and clothes as new classes.",
        "LeCun et al. 1998; the task is ours",
        partial(_load_non_fd_shifts_task, "mnist"),
    ),
    _gray_task(
        "fashion-mnist",
        "Fashion-MNIST",
        "60,000 pieces of clothing; our own corruptions, digits and letters as new classes.",
        "Xiao et al. 2017; the task is ours",
        partial(_load_non_fd_shifts_task, "fashion-mnist"),
        variation={"name": "crop-flip", "padding": 2},
    ),
)
