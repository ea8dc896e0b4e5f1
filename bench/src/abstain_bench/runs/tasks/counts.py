"""Provide the number of images of each task, as published or counted."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from abstain_bench.runs.tasks._entry import DEFAULT_SIZES, TASKS, Sizes


@dataclass(frozen=True)
class ImageCounts:
    """Numbers of images of a task.

    Attributes
    ----------
    train, validation : int
        Number of training and validation images.
    exposures : mapping from str to int
        Number of images by exposure.
    side : int
        Height and width of the images in memory.
    classes : int
        Number of learned classes.
    """

    train: int
    validation: int
    exposures: Mapping[str, int]
    side: int
    classes: int


@dataclass(frozen=True)
class _PublishedCounts:
    """Published numbers of images of a task, where `test` includes the validation images."""

    train: int
    test: int
    classes: int
    #: Height and width of the images, or 0 if the image files have several sizes.
    side: int = 0
    other_exposures: Mapping[str, int] = field(default_factory=dict)
    #: Number of images per corruption and severity.
    corrupted: int = 0
    #: Whether the corrupted images are published and not computed from the test images.
    has_official_corruptions: bool = False
    #: Number of images of an official validation set.
    validation: int = 0
    #: Whether validation and test images are sampled from both official sets.
    splits_validation_and_test: bool = False


#: Approximate share of images that an open-set task retains. The tasks retain six of ten classes of
#: digits and 109 of 182 classes of animals.
_RETAINED_SHARE: Final = 0.6


@cache
def _read_counts() -> dict[str, _PublishedCounts]:
    """Read the published numbers of images, and add estimates for open-set tasks."""
    text = (resources.files(__package__) / "counts.toml").read_text(encoding="utf-8")
    counts = {task: _PublishedCounts(**table) for task, table in tomllib.loads(text).items()}
    for task in ("svhn", "iwildcam"):
        for i in range(1, 6):
            counts[f"{task}-open-{i}"] = _open_set_counts(counts[task])
    return counts


def _open_set_counts(counts: _PublishedCounts) -> _PublishedCounts:
    """Estimate the numbers of images of an open-set task from the task with all classes."""
    n_retained = round(_RETAINED_SHARE * counts.test)
    return _PublishedCounts(
        train=round(_RETAINED_SHARE * counts.train),
        test=n_retained,
        classes=round(_RETAINED_SHARE * counts.classes),
        side=counts.side,
        other_exposures={"held-out-classes": counts.test - n_retained},
        validation=round(_RETAINED_SHARE * counts.validation),
    )


def published_counts(
    task: str, data: Sizes | None, corruptions: Sequence[str], severities: Sequence[int]
) -> ImageCounts | None:
    """Return the published numbers of images of a task, or None if they are not available.

    Examples
    --------
    >>> from abstain_bench.runs.tasks.counts import published_counts
    >>> counts = published_counts("cifar10", None, ["fog"], [1, 2])
    >>> counts.train, counts.exposures["iid"], counts.exposures["corruption-fog-2"]
    (50000, 9000, 9000)
    """
    published = _read_counts().get(task)
    if published is None:
        return None
    sizes = data or DEFAULT_SIZES
    if published.validation and sizes.chosen == "official":
        n_validation = min(published.validation, sizes.validation)
        n_test = published.test
    else:
        n_validation = sizes.validation
        n_test = published.test - sizes.validation
        if published.splits_validation_and_test:
            n_test += published.validation
    has_image_files = not published.side

    def limited(count: int, limit: int) -> int:
        return min(count, limit or count) if has_image_files else count

    exposures = {"iid": limited(n_test, sizes.tested)}
    if published.corrupted:
        n_corrupted = _n_corrupted(published, sizes, n_test)
        exposures |= {f"corruption-{c}-{s}": n_corrupted for c in corruptions for s in severities}
    for name, count in published.other_exposures.items():
        exposures[name] = limited(count, sizes.tested)
    n_train = limited(published.train, sizes.learned)
    side = published.side or sizes.side
    return ImageCounts(n_train, n_validation, exposures, side, published.classes)


def _n_corrupted(published: _PublishedCounts, sizes: Sizes, n_test: int) -> int:
    """Return the number of images per corruption and severity."""
    if not published.has_official_corruptions:
        return published.corrupted
    by_choice = {"tested": n_test, "all": published.test, "tenth": published.test // 10}
    return by_choice[sizes.corrupted]


def count_images(
    task: str,
    folder: Path | None,
    data: Sizes | None,
    corruptions: Sequence[str],
    severities: Sequence[int],
) -> ImageCounts:
    """Count the images of a task by loading it.

    Examples
    --------
    >>> from abstain_bench.runs.tasks.counts import count_images
    >>> count_images("digits8", None, None, ["fog"], [1]).exposures["iid"]
    597
    """
    images = TASKS[task].load_images(folder, data)
    exposures: dict[str, int] = {}
    count_by_loader: dict[Any, int] = {}
    for exposure in images.exposures:
        is_selected = exposure.corruption in corruptions and exposure.severity in severities
        if exposure.corruption and not is_selected:
            continue
        # All corruptions load the same images, which are counted once.
        if exposure.load not in count_by_loader:
            count_by_loader[exposure.load] = exposure.load().n
        exposures[exposure.key] = count_by_loader[exposure.load]
    train = images.train
    side = int(TASKS[task].variation.get("side", 0)) or train.shape[1]
    return ImageCounts(train.n, images.validation.n, exposures, side, len(train.classes))
