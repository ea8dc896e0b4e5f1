"""Number of images of published tasks, known without their files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from abstain_bench.runs.tasks._entry import DEFAULT_SIZES, TASKS, Sizes

__all__ = ["ImageCounts", "count_images", "published_counts"]


@dataclass(frozen=True)
class ImageCounts:
    """Number of images of a task.

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
    """Published numbers of a data set; test images include those for validation."""

    train: int
    test: int
    classes: int
    side: int = 0
    shifted: Mapping[str, int] = field(default_factory=dict)
    new: Mapping[str, int] = field(default_factory=dict)
    #: Images of each corruption and severity, official or ours; 0 for none.
    corrupted: int = 0
    #: Images of an official validation set.
    validation: int = 0
    has_official_corruptions: bool = False


_N_TEST_IMAGES: Final = {
    "cifar10": 10_000,
    "cifar100": 10_000,
    "svhn": 26_032,
    "tiny-imagenet": 10_000,
}
_N_CORRUPTED: Final = 1000


def _new_class_counts(name: str) -> dict[str, int]:
    return {other: count for other, count in _N_TEST_IMAGES.items() if other != name}


#: Six of ten digits and 109 of 182 animals are retained; so is about this share of the images.
_RETAINED_SHARE: Final = 0.6
_SVHN: Final = _PublishedCounts(73_257, 26_032, 10, 32, new=_new_class_counts("svhn"))
_IWILDCAM: Final = _PublishedCounts(
    129_809, 8_154, 182, shifted={"other-locations": 42_791}, validation=7_314
)


def _open_set_counts(counts: _PublishedCounts) -> _PublishedCounts:
    n_retained = round(_RETAINED_SHARE * counts.test)
    return _PublishedCounts(
        round(_RETAINED_SHARE * counts.train),
        n_retained,
        round(_RETAINED_SHARE * counts.classes),
        counts.side,
        new={"held-out-classes": counts.test - n_retained},
        validation=round(_RETAINED_SHARE * counts.validation),
    )


#: Counts by task. Data sets with image files have no side of their own.
_COUNTS: Final[Mapping[str, _PublishedCounts]] = MappingProxyType(
    {
        "cifar10": _PublishedCounts(
            50_000,
            10_000,
            10,
            32,
            new=_new_class_counts("cifar10"),
            corrupted=10_000,
            has_official_corruptions=True,
        ),
        "cifar100": _PublishedCounts(
            50_000,
            10_000,
            100,
            32,
            new=_new_class_counts("cifar100"),
            corrupted=10_000,
            has_official_corruptions=True,
        ),
        "cifar100-super": _PublishedCounts(38_000, 7_600, 19, 32, {"unseen-sub-classes": 11_400}),
        "svhn": _SVHN,
        **{f"svhn-open-{i}": _open_set_counts(_SVHN) for i in range(1, 6)},
        "tiny-imagenet": _PublishedCounts(
            100_000, 10_000, 200, 32, new={"svhn": 26_032}, corrupted=_N_CORRUPTED
        ),
        "mnist": _PublishedCounts(
            60_000,
            10_000,
            10,
            28,
            new={"emnist": 20_800, "fashion-mnist": 10_000},
            corrupted=_N_CORRUPTED,
        ),
        "fashion-mnist": _PublishedCounts(
            60_000, 10_000, 10, 28, new={"mnist": 10_000, "emnist": 20_800}, corrupted=_N_CORRUPTED
        ),
        "entity13": _PublishedCounts(157_120, 10_000, 13, shifted={"unseen-sub-classes": 167_592}),
        "iwildcam": _IWILDCAM,
        **{f"iwildcam-open-{i}": _open_set_counts(_IWILDCAM) for i in range(1, 6)},
        "camelyon17": _PublishedCounts(
            302_436, 30_204, 2, shifted={"other-hospital": 85_054}, validation=3_356
        ),
    }
)


def published_counts(
    task: str, data: Sizes | None, corruptions: Sequence[str], severities: Sequence[int]
) -> ImageCounts | None:
    """Return the number of images of a task with official files; None for other tasks.

    Examples
    --------
    >>> from abstain_bench.runs.tasks.counts import published_counts
    >>> counts = published_counts("cifar10", None, ["fog"], [1, 2])
    >>> counts.train, counts.exposures["iid"], counts.exposures["corruption-fog-2"]
    (50000, 9000, 9000)
    """
    if task not in _COUNTS:
        return None
    published, sizes = _COUNTS[task], data or DEFAULT_SIZES
    has_image_files = not published.side
    n_validation, n_test = _validation_and_test_counts(published, sizes)

    def limited(count: int, limit: int) -> int:
        return min(count, limit or count) if has_image_files else count

    exposures = {"iid": limited(n_test, sizes.tested)}
    if published.corrupted:
        n_corrupted = published.corrupted
        if published.has_official_corruptions:
            by_choice = {"tested": n_test, "all": published.test, "tenth": published.test // 10}
            n_corrupted = by_choice[sizes.corrupted]
        exposures |= {f"corruption-{c}-{s}": n_corrupted for c in corruptions for s in severities}
    for name, count in {**published.shifted, **published.new}.items():
        exposures[name] = limited(count, sizes.tested)
    n_train = limited(published.train, sizes.learned)
    side = published.side or sizes.side
    return ImageCounts(n_train, n_validation, exposures, side, published.classes)


def count_images(
    task: str,
    folder: Path | None,
    data: Sizes | None,
    corruptions: Sequence[str],
    severities: Sequence[int],
) -> ImageCounts:
    """Count the images of a task without published numbers, by reading them.

    Examples
    --------
    >>> from abstain_bench.runs.tasks.counts import count_images
    >>> count_images("digits8", None, None, ["fog"], [1]).exposures["iid"]
    597
    """
    images = TASKS[task].load_images(folder, data)
    exposures, count_by_loader = {}, dict[Any, int]()
    for exposure in images.exposures:
        is_selected = exposure.corruption in corruptions and exposure.severity in severities
        if exposure.corruption and not is_selected:
            continue
        # Corruptions share their images, which are read once.
        if exposure.load not in count_by_loader:
            count_by_loader[exposure.load] = exposure.load().n
        exposures[exposure.key] = count_by_loader[exposure.load]
    train = images.train
    side = int(TASKS[task].variation.get("side", 0)) or train.shape[1]
    return ImageCounts(train.n, images.validation.n, exposures, side, len(train.classes))


def _validation_and_test_counts(published: _PublishedCounts, sizes: Sizes) -> tuple[int, int]:
    if published.validation and sizes.chosen == "official":
        return min(published.validation, sizes.validation), published.test
    # Camelyon17 (two classes): validation and test images are sampled from both official sets.
    is_camelyon = published.classes == 2
    n_available = published.test + (published.validation if is_camelyon else 0)
    return sizes.validation, n_available - sizes.validation
