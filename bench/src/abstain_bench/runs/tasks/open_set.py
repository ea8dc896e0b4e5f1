"""Define open-set tasks, which hold out 40% of the classes as new classes.

Each data set has five tasks (rotations) that hold out different classes, so that results do not
depend on a single choice.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from abstain_bench.data import Exposure
from abstain_bench.data.images import renumber_classes
from abstain_bench.data.published import (
    ImageFiles,
    find_iwildcam,
    held_out,
    held_out_classes,
)
from abstain_bench.runs.tasks._entry import (
    DEFAULT_SIZES,
    Sizes,
    Task,
    TaskImages,
    constant_loader,
    images_in_memory,
    read_required,
    split_first,
)
from abstain_bench.runs.tasks.large import (
    image_loader,
    images_from_files,
    iwildcam_task,
    validation_and_test_files,
)
from abstain_bench.runs.tasks.published import SVHN, read_official

#: Number of tasks per data set. The tasks hold out different classes.
ROTATIONS: Final = 5


def classes_of_rotation(count: int, rotation: int) -> list[int]:
    """Return the held-out classes of a rotation (1 to 5), which are 40% of the classes.

    The held-out classes are consecutive, where class 0 follows the last class. For ten digits, the
    five rotations hold out the digits 0-3, 2-5, 4-7, 6-9 and 8-1. FD-Shifts uses the fourth
    rotation.
    """
    start = (rotation - 1) * count // ROTATIONS
    stop = (rotation + 1) * count // ROTATIONS
    return sorted({i % count for i in range(start, stop)})


def _load_svhn(rotation: int, folder: Path | None, sizes: Sizes = DEFAULT_SIZES) -> TaskImages:
    train, test = read_official("svhn", folder, sizes)
    classes = classes_of_rotation(train.n_classes, rotation)
    train_of_known_classes, _ = held_out(train, classes=classes)
    test_of_known_classes, test_of_new_classes = held_out(test, classes=classes)
    validation, tested = split_first(test_of_known_classes, sizes.validation)
    exposure = Exposure("held-out-classes", "new-class", constant_loader(test_of_new_classes))
    return images_in_memory(train_of_known_classes, validation, tested, exposure)


def _load_iwildcam(rotation: int, folder: Path | None, sizes: Sizes = DEFAULT_SIZES) -> TaskImages:
    """Return the images of iWildCam, with some of the classes held out as new classes."""
    records = sizes.records.get("iwildcam")
    files = read_required("iwildcam", folder, lambda path: find_iwildcam(path, records=records))
    classes = classes_of_rotation(len(files.train.classes), rotation)
    validation, test = validation_and_test_files(files, sizes)
    train_of_known_classes, _ = _hold_out_classes(files.train, classes)
    validation_of_known_classes, _ = _hold_out_classes(validation, classes)
    test_of_known_classes, test_of_new_classes = _hold_out_classes(test, classes)
    load = image_loader(test_of_new_classes, sizes.tested, sizes)
    exposure = Exposure("held-out-classes", "new-class", load)
    return images_from_files(
        sizes,
        train_of_known_classes,
        validation_of_known_classes,
        test_of_known_classes,
        exposure,
    )


def _hold_out_classes(files: ImageFiles, classes: list[int]) -> tuple[ImageFiles, ImageFiles]:
    """Split image files into those of known classes and those of held-out classes."""
    held_out_codes = held_out_classes(len(files.classes), classes=classes)
    known_codes = np.setdiff1d(np.arange(len(files.classes)), held_out_codes)
    labels = renumber_classes(files.labels, len(files.classes), known_codes)
    names = tuple(files.classes[code] for code in known_codes)
    renumbered = replace(files, labels=labels, classes=names)
    is_known = labels >= 0
    return renumbered.subset(np.flatnonzero(is_known)), renumbered.subset(np.flatnonzero(~is_known))


def _entries() -> Iterator[Task]:
    for rotation in range(1, ROTATIONS + 1):
        yield Task(
            f"svhn-open-{rotation}",
            f"SVHN, open set {rotation}",
            f"Six digits; {', '.join(map(str, classes_of_rotation(10, rotation)))} are held out.",
            "Netzer et al. 2011; held out as in FD-Shifts"
            if rotation == ROTATIONS - 1
            else "Netzer et al. 2011; this rotation is ours",
            partial(_load_svhn, rotation),
            "vgg13",
            SVHN,
            needs_folder=True,
            dropout=0.5,
        )
    for rotation in range(1, ROTATIONS + 1):
        yield iwildcam_task(
            f"iwildcam-open-{rotation}",
            f"iWildCam, open set {rotation}",
            f"60% of 182 animals; the others are held out (rotation {rotation} of {ROTATIONS}).",
            "Beery et al. 2020; WILDS, Koh et al. 2021; the rotation is ours",
            partial(_load_iwildcam, rotation),
        )


ENTRIES: Final = tuple(_entries())
