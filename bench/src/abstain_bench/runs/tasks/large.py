"""Data sets that are files as tasks: BREEDS, WILDS, and any folder of images.

Images are read smaller than the papers have them, and not all, since they are held in memory:
64 x 64, at most 50,000 to learn from and 10,000 of each exposure.
"""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from abstain.errors import InputError, MissingInputError
from abstain_bench.data import Exposure, Images
from abstain_bench.data.published import (
    FileParts,
    PictureFiles,
    find_camelyon17,
    find_entity13,
    find_image_folder,
    find_iwildcam,
)
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.tasks._entry import (
    OFFICIAL,
    Load,
    Parts,
    Sizes,
    Task,
    corrupted,
    required,
)

#: Images of each exposure to our own corruptions.
_FEW: Final = 1000
#: What shifts and new classes may be called: names of files are made of them.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def read(files: PictureFiles, limit: int, sizes: Sizes) -> Load:
    """Return what reads these images, at most so many (0: all), when it is called."""
    return partial(files.some(limit or None).read, side=sizes.side)


def chosen_on(files: FileParts) -> PictureFiles:
    """Return the images to choose on; where there are none, those of the test are no stand-in."""
    if files.validation is None:
        raise InputError(
            "a task must have validation images of its own: nothing is chosen on test images"
        )
    return files.validation


def apart(files: FileParts, sizes: Sizes, *, drawn: bool = False) -> tuple[PictureFiles, ...]:
    """Return the images to choose on, and those of the i.i.d. test.

    Where FD-Shifts draws both of one part, they are drawn here too, by another seed.
    """
    if sizes.chosen == "official":
        return chosen_on(files), files.test
    whole = chosen_on(files).joined(files.test) if drawn else files.test
    return _divided(whole, sizes.validation, drawn=drawn)


def from_files(
    sizes: Sizes,
    train: PictureFiles,
    chosen: PictureFiles,
    tested: PictureFiles,
    *others: Exposure,
) -> Parts:
    """Return parts whose images are read when they are needed, the i.i.d. ones exposed first."""
    exposures = (Exposure("iid", "iid", read(tested, sizes.tested, sizes)), *others)
    learned, validation = read(train, sizes.learned, sizes), read(chosen, sizes.validation, sizes)
    return Parts(learned, validation, exposures)


def _entity13(folder: Path | None, sizes: Sizes = OFFICIAL) -> Parts:
    count = sizes.tested or OFFICIAL.tested
    files = required("imagenet", folder, lambda place: find_entity13(place, test=count))
    chosen, tested = _divided(files.test, sizes.validation)
    shifted = read(files.shifts["sub-class"], sizes.tested, sizes)
    exposure = Exposure("unseen-sub-classes", "sub-class", shifted)
    return from_files(sizes, files.train, chosen, tested, exposure)


def _wilds(name: str, shift: str, folder: Path | None, sizes: Sizes = OFFICIAL) -> Parts:
    records = sizes.records.get(name)
    finder = find_iwildcam if name == "iwildcam" else find_camelyon17
    files = required(name, folder, lambda place: finder(place, records=records))
    shifted = read(files.shifts[shift], sizes.tested, sizes)
    exposure = Exposure(f"other-{shift}", "sub-class", shifted)
    chosen, tested = apart(files, sizes, drawn=name == "camelyon17")
    return from_files(sizes, files.train, chosen, tested, exposure)


def _folder(folder: Path | None, sizes: Sizes = OFFICIAL) -> Parts:
    if folder is None or not (folder / "train").is_dir() or not (folder / "test").is_dir():
        there = "no folder was given" if folder is None else f"{str(folder)!r} lacks one of them"
        raise MissingInputError(
            "the task 'imagenet-folder' needs a folder (--data) with the folders 'train' and "
            f"'test', in each of them a folder of images for each class; {there}"
        )
    whole = find_image_folder(folder / "train")
    test = find_image_folder(folder / "test", classes=whole.classes)
    # A tenth of what is learned from is enough to choose on.
    train, chosen = _divided(whole, whole.n - min(sizes.validation, max(1, whole.n // 10)))
    exposures = (
        *corrupted(read(test, _FEW, sizes)),
        *(
            Exposure(name, "sub-class", read(_shifted(place, whole), sizes.tested, sizes))
            for name, place in _beside(folder, "shift-")
        ),
        *(
            Exposure(name, "new-class", partial(_new, place, whole, sizes))
            for name, place in _beside(folder, "new-")
        ),
    )
    return from_files(sizes, train, chosen, test, *exposures)


def _divided(
    files: PictureFiles, count: int, *, drawn: bool = True
) -> tuple[PictureFiles, PictureFiles]:
    """Draw so many images, or take the first, and return the others too."""
    if not 0 < count < files.n:
        raise InputError(f"{count:,} images must leave some of {files.n:,}")
    order = np.random.default_rng(0).permutation(files.n) if drawn else np.arange(files.n)
    return files.subset(np.sort(order[:count])), files.subset(np.sort(order[count:]))


def _beside(folder: Path, prefix: str) -> list[tuple[str, Path]]:
    """Return the folders beside 'train' whose names begin like this, with the rest of the name."""
    found = []
    for place in sorted(folder.glob(f"{prefix}*")):
        name = place.name.removeprefix(prefix)
        if place.is_dir():
            if not _NAME.fullmatch(name) or name == "iid":
                raise InputError(
                    f"the folder {place.name!r} must be named {prefix}NAME with up to 40 letters, "
                    "digits, dots, hyphens and underscores, and not 'iid'; rename it"
                )
            found.append((name, place))
    return found


def _shifted(place: Path, whole: PictureFiles) -> PictureFiles:
    """Find shifted images of known classes, of which some may lack."""
    files = find_image_folder(place)
    number = {name: i for i, name in enumerate(whole.classes)}
    if unknown := [name for name in files.classes if name not in number]:
        raise InputError(
            f"{str(place)!r} has the class {unknown[0]!r}, which 'train' does not have; images "
            "of new classes belong into a folder named new-NAME"
        )
    labels = np.array([number[name] for name in files.classes])[files.labels]
    return replace(files, labels=labels, classes=whole.classes)


def _new(place: Path, whole: PictureFiles, sizes: Sizes) -> Images:
    files = find_image_folder(place)
    if known := sorted(set(files.classes) & set(whole.classes)):
        raise InputError(
            f"{str(place)!r} has the class {known[0]!r}, which 'train' has too: it is not new"
        )
    found = read(files, sizes.tested, sizes)()
    return Images(found.pixels, np.full(found.n, -1), whole.classes, found.places)


#: Epochs, rates and batches as checked in the configurations of FD-Shifts.
_ENTITY13: Final = Recipe(
    epochs=300, learning_rate=0.1, batch_size=128, weight_decay=1e-4, schedule="cosine"
)
IWILDCAM: Final = Recipe(
    epochs=12, learning_rate=1e-3, batch_size=16, weight_decay=0.0, schedule="cosine"
)
_CAMELYON17: Final = Recipe(
    epochs=5, learning_rate=0.01, batch_size=32, weight_decay=0.01, schedule="cosine"
)
RESNET_DROPOUT: Final = 0.1
RESNET_REWARDS: Final = (2.2, 3.0, 6.0, 10.0, 15.0)
#: Of ConfidNet, on classifiers that learn for few epochs.
IWILDCAM_BRANCH: Final = (5, 3)
_CROP_FLIP: Final = {"name": "crop-flip", "padding": 8}

ENTRIES: Final = (
    Task(
        "entity13",
        "BREEDS ENTITY-13",
        "13 super-classes of ImageNet, 64 x 64; other sub-classes of them as a shift.",
        "Santurkar et al. 2021; splits as in FD-Shifts",
        _entity13,
        "resnet50",
        _ENTITY13,
        _CROP_FLIP,
        needs_folder=True,
        dropout=RESNET_DROPOUT,
        rewards=RESNET_REWARDS,
    ),
    Task(
        "iwildcam",
        "iWildCam (WILDS)",
        "182 animals at camera traps, 64 x 64; other camera traps as a shift.",
        "Beery et al. 2020; WILDS, Koh et al. 2021",
        partial(_wilds, "iwildcam", "locations"),
        "resnet50",
        IWILDCAM,
        needs_folder=True,
        dropout=RESNET_DROPOUT,
        rewards=RESNET_REWARDS,
        branch=IWILDCAM_BRANCH,
    ),
    Task(
        "camelyon17",
        "Camelyon17 (WILDS)",
        "Tumor or not, in tissue of three hospitals, 64 x 64; another hospital as a shift.",
        "Bandi et al. 2018; WILDS, Koh et al. 2021",
        partial(_wilds, "camelyon17", "hospital"),
        "resnet50",
        _CAMELYON17,
        needs_folder=True,
        dropout=RESNET_DROPOUT,
        branch=(3, 1),
    ),
    Task(
        "imagenet-folder",
        "A folder of images",
        "Any images in train/CLASS and test/CLASS, 64 x 64, with shift-NAME and new-NAME beside.",
        "yours",
        _folder,
        "resnet50",
        replace(_ENTITY13, epochs=90),
        _CROP_FLIP,
        needs_folder=True,
        dropout=RESNET_DROPOUT,
        rewards=RESNET_REWARDS,
        branch=(60, 6),
    ),
)
