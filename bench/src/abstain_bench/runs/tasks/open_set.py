"""Open-set tasks: 40 % of the classes are held out of training and tested as new ones.

Which classes rotates: each of five tasks of a data set holds out others, so that every class is
held out by two of them and no finding hangs on one choice.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from abstain_bench.data import Exposure
from abstain_bench.data.images import numbered_anew
from abstain_bench.data.published import (
    PictureFiles,
    find_iwildcam,
    held_out,
    held_out_classes,
)
from abstain_bench.runs.tasks._entry import (
    OFFICIAL,
    Parts,
    Sizes,
    Task,
    divided,
    given,
    in_memory,
    required,
)
from abstain_bench.runs.tasks.large import (
    IWILDCAM,
    IWILDCAM_BRANCH,
    RESNET_DROPOUT,
    RESNET_REWARDS,
    apart,
    from_files,
    read,
)
from abstain_bench.runs.tasks.published import SVHN, whole

#: The number of tasks; each holds out other classes.
ROTATIONS: Final = 5


def rotated(count: int, rotation: int) -> list[int]:
    """Return the classes that a rotation (1 to 5) holds out: neighbors, around the end.

    Of ten digits: 0-3, 2-5, 4-7, 6-9, 8-1. The fourth is the one that FD-Shifts configures.
    """
    first = (rotation - 1) * count // ROTATIONS
    last = (rotation + 1) * count // ROTATIONS
    return sorted({i % count for i in range(first, last)})


def _svhn(rotation: int, folder: Path | None, sizes: Sizes = OFFICIAL) -> Parts:
    train, test = whole("svhn", folder, sizes)
    out = rotated(train.count, rotation)
    kept, _ = held_out(train, classes=out)
    known, new = held_out(test, classes=out)
    validation, tested = divided(known, sizes.validation)
    exposure = Exposure("held-out-classes", "new-class", given(new))
    return in_memory(kept, validation, tested, exposure)


def _iwildcam(rotation: int, folder: Path | None, sizes: Sizes = OFFICIAL) -> Parts:
    records = sizes.records.get("iwildcam")
    files = required("iwildcam", folder, lambda place: find_iwildcam(place, records=records))
    out = rotated(len(files.train.classes), rotation)
    train, _ = _without(files.train, out)
    chosen, tested = apart(files, sizes)
    chosen, _ = _without(chosen, out)
    tested, new = _without(tested, out)
    exposure = Exposure("held-out-classes", "new-class", read(new, sizes.tested, sizes))
    return from_files(sizes, train, chosen, tested, exposure)


def _without(files: PictureFiles, classes: list[int]) -> tuple[PictureFiles, PictureFiles]:
    """Hold classes out of images that are files, as `held_out` does with those in memory."""
    out = held_out_classes(len(files.classes), classes=classes)
    left = np.setdiff1d(np.arange(len(files.classes)), out)
    labels = numbered_anew(files.labels, len(files.classes), left)
    names = tuple(files.classes[i] for i in left)
    anew = replace(files, labels=labels, classes=names)
    return anew.subset(np.flatnonzero(labels >= 0)), anew.subset(np.flatnonzero(labels < 0))


def _entries() -> Iterator[Task]:
    for rotation in range(1, ROTATIONS + 1):
        yield Task(
            f"svhn-open-{rotation}",
            f"SVHN, open set {rotation}",
            f"Six digits; {', '.join(map(str, rotated(10, rotation)))} are held out as new ones.",
            "Netzer et al. 2011; held out as in FD-Shifts"
            if rotation == ROTATIONS - 1
            else "Netzer et al. 2011; this rotation is ours",
            partial(_svhn, rotation),
            "vgg13",
            SVHN,
            needs_folder=True,
            dropout=0.5,
        )
    for rotation in range(1, ROTATIONS + 1):
        yield Task(
            f"iwildcam-open-{rotation}",
            f"iWildCam, open set {rotation}",
            f"60 % of 182 animals; the others are held out (rotation {rotation} of {ROTATIONS}).",
            "Beery et al. 2020; WILDS, Koh et al. 2021; the rotation is ours",
            partial(_iwildcam, rotation),
            "resnet50",
            IWILDCAM,
            needs_folder=True,
            dropout=RESNET_DROPOUT,
            rewards=RESNET_REWARDS,
            branch=IWILDCAM_BRANCH,
        )


ENTRIES: Final = tuple(_entries())
