"""`Images`, which are labeled images, and `Exposure`, which is a set of test images."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_generator
from abstain.errors import DomainError, InputError, ShapeError
from abstain.typing import Array, IntArray, Rng


@dataclass(frozen=True, eq=False)
class Images:
    """Labeled images of equal size.

    Attributes
    ----------
    pixels : uint8 ndarray of shape (n, channels, height, width)
        Pixel values from 0 (black) to 255 (white).
    labels : int64 ndarray of shape (n,)
        Class codes from 0. The code -1 denotes an unknown class, for which every prediction is
        wrong.
    classes : tuple of str
        Names of the classes.
    rows : int64 ndarray of shape (n,), optional
        Indices of the images in their source. The default indices are 0 to n - 1.

    Raises
    ------
    ShapeError
        If the pixels do not have four axes, or the numbers of labels and images differ.
    DomainError
        If a label is not a valid class code, or the pixel values are not of type uint8.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.data import Images
    >>> images = Images(np.zeros((3, 1, 8, 8), np.uint8), np.array([0, 1, 1]), ("no", "yes"))
    >>> images.n, images.subset([2]).rows.tolist()
    (3, [2])
    """

    pixels: Array
    labels: IntArray
    classes: tuple[str, ...]
    rows: IntArray | None = None

    def __post_init__(self) -> None:
        """Validate shapes, types and class codes, and convert labels and rows to int64."""
        pixels = np.asarray(self.pixels)
        labels = np.asarray(self.labels)
        if pixels.ndim != 4 or not pixels.size:
            raise ShapeError(
                f"`pixels` must have axes (n, channels, height, width); got {pixels.shape}"
            )
        if pixels.dtype != np.uint8:
            raise DomainError(f"`pixels` must be bytes (uint8, 0 to 255); got {pixels.dtype}")
        if labels.shape != pixels.shape[:1]:
            raise ShapeError(
                f"`labels` must have one entry for each of {len(pixels)} images; got {labels.shape}"
            )
        is_integer = labels.dtype.kind in "iu"
        if not is_integer or labels.min() < -1 or labels.max() >= self.n_classes:
            raise DomainError(
                f"`labels` must be class codes from 0 to {self.n_classes - 1}, or -1 for images "
                "of no known class"
            )
        rows = np.arange(len(pixels)) if self.rows is None else np.asarray(self.rows)
        object.__setattr__(self, "pixels", pixels)
        object.__setattr__(self, "labels", labels.astype(np.int64))
        object.__setattr__(self, "rows", rows.astype(np.int64))

    @property
    def n(self) -> int:
        """Number of images."""
        return len(self.pixels)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width."""
        _, channels, height, width = self.pixels.shape
        return channels, height, width

    @property
    def source_indices(self) -> IntArray:
        """Index of each image in its source."""
        return np.arange(self.n) if self.rows is None else self.rows

    def subset(self, rows: Array | slice) -> "Images":
        """Return the images with the given indices, in the order of the indices."""
        selected = rows if isinstance(rows, slice) else np.asarray(rows)
        indices = self.source_indices[selected]
        return Images(self.pixels[selected], self.labels[selected], self.classes, indices)


@dataclass(frozen=True, eq=False)
class Splits:
    """Training, validation and test images of a data set.

    Attributes
    ----------
    train : Images
        Training images.
    validation : Images or None
        Images that select settings, or None if nothing is selected.
    test : Images
        Test images, which do not affect any selection.
    shifts : mapping
        Shifted test images by the name of the shift.
    """

    train: Images
    validation: Images | None
    test: Images
    shifts: Mapping[str, Images] = field(default_factory=dict)


def split(data: Images, *sizes: int, rng: Rng = 0) -> tuple[Images, ...]:
    """Sample disjoint random subsets of images, stratified by class.

    Parameters
    ----------
    data : Images
        The images.
    *sizes : int
        Number of images of each subset. The remaining images are not used.
    rng : int, Generator or None, default=0
        Seed of the sample.

    Returns
    -------
    tuple of Images
        One subset per size. Each subset keeps the original order of the images.

    Raises
    ------
    InputError
        If a size is smaller than the number of classes, or if the sum of the sizes exceeds n.

    Notes
    -----
    The class proportions of each subset are approximately those of all images. The sizes are exact.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.data import Images, split
    >>> data = Images(np.zeros((10, 1, 8, 8), np.uint8), np.arange(10) % 2, ("no", "yes"))
    >>> train, test = split(data, 6, 4)
    >>> sorted(train.labels.tolist()), test.n
    ([0, 0, 0, 1, 1, 1], 4)
    """
    for size in sizes:
        if checks.positive_int(size, "sizes") < data.n_classes:
            raise InputError(
                f"a split needs at least one image per class, so {data.n_classes}; got {size!r}"
            )
    if sum(sizes) > data.n:
        raise InputError(f"the splits need {sum(sizes):,} images, and there are {data.n:,}")
    order = _interleaved(data.labels, as_generator(rng))
    boundaries = np.cumsum((0, *sizes))
    rows_by_subset = [np.sort(order[start:end]) for start, end in pairwise(boundaries)]
    return tuple(data.subset(rows) for rows in rows_by_subset)


def _interleaved(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a random order in which all classes are spread evenly."""
    position = np.empty(labels.size)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        # The images of a class have evenly spaced positions in [0, 1) with a random offset.
        position[rows] = (np.arange(rows.size) + rng.random()) / rows.size
    return np.argsort(position, kind="stable").astype(np.int64)


def held_out_classes(
    count: int, *, share: float = 0.4, classes: Sequence[int] | None = None, rng: Rng = 0
) -> IntArray:
    """Return the codes of the classes that are held out as unknown classes.

    If `classes` is not set, a random sample with the given share of the classes is held out.

    Examples
    --------
    >>> from abstain_bench.data.published import held_out_classes
    >>> len(held_out_classes(10)), held_out_classes(10, classes=[9, 8]).tolist()
    (4, [8, 9])
    """
    if checks.positive_int(count, "count") < 3:
        raise InputError(
            f"classes can be held out of three or more, so that two remain; got {count}"
        )
    if classes is None:
        checks.fraction(share, "share")
        n_held_out = min(max(1, round(share * count)), count - 2)
        sample = as_generator(rng).choice(count, n_held_out, replace=False)
        return np.sort(sample).astype(np.int64)
    codes = np.unique(np.asarray(classes))
    if codes.dtype.kind not in "iu" or not codes.size or codes[0] < 0 or codes[-1] >= count:
        raise InputError(f"`classes` must be numbers from 0 to {count - 1}; got {list(classes)}")
    if codes.size > count - 2:
        raise InputError(f"`classes` must leave two classes or more; got {codes.size} of {count}")
    return codes.astype(np.int64)


def held_out(
    images: Images, *, share: float = 0.4, classes: Sequence[int] | None = None, rng: Rng = 0
) -> tuple[Images, Images]:
    """Split images into those of known classes and those of held-out classes.

    Parameters
    ----------
    images : Images
        Images of all classes. Calls with equal options hold out the same classes, unless `rng` is a
        Generator, whose state advances.
    share : float, default=0.4
        Share of the classes to hold out, as in the open-set studies of FD-Shifts.
    classes : sequence of int, optional
        Classes to hold out instead of a random sample. For SVHN, FD-Shifts holds out the classes 6
        to 9.
    rng : int, Generator or None, default=0
        Seed of the sample.

    Returns
    -------
    tuple of Images
        The images of known classes, and the images of held-out classes with the label -1. The codes
        of the known classes are renumbered from 0 in their order. `classes` of both results
        contains the names of the known classes.

    Raises
    ------
    InputError
        If the options are invalid, or if there are no images of known or of held-out classes.

    Examples
    --------
    >>> from abstain_bench.data import digits8
    >>> from abstain_bench.data.published import held_out
    >>> known, new = held_out(digits8(), classes=[6, 7, 8, 9])
    >>> known.classes, known.n, new.n, set(new.labels.tolist())
    (('0', '1', '2', '3', '4', '5'), 1083, 714, {-1})
    """
    held_out_codes = held_out_classes(images.n_classes, share=share, classes=classes, rng=rng)
    retained = np.setdiff1d(np.arange(images.n_classes), held_out_codes)
    names = tuple(images.classes[code] for code in retained)
    labels = renumber_classes(images.labels, images.n_classes, retained)
    is_known = labels >= 0
    splits = []
    for description, rows in (
        ("known", np.flatnonzero(is_known)),
        ("held-out", np.flatnonzero(~is_known)),
    ):
        if not rows.size:
            raise InputError(f"there is no image of the {description} classes; hold out others")
        indices = images.source_indices[rows]
        splits.append(Images(images.pixels[rows], labels[rows], names, indices))
    known, new = splits
    return known, new


def renumber_classes(labels: IntArray, n_classes: int, retained: Array) -> IntArray:
    """Return the new class code of each label, or -1 if its class is held out."""
    # The label -1 (unknown class) selects the last entry, which is -1.
    new_codes = np.full(n_classes + 1, -1)
    new_codes[retained] = np.arange(len(retained))
    return new_codes[labels].astype(np.int64)


def to_gray_levels(preprocessed: Array, mean: Sequence[float], std: Sequence[float]) -> Array:
    """Convert a normalized image to uint8 values for display.

    The result has shape (height, width, channels), or (height, width) for one channel.
    """
    normalized = np.asarray(preprocessed, dtype=np.float64)
    channel_mean = np.reshape(mean, (-1, 1, 1))
    channel_std = np.reshape(std, (-1, 1, 1))
    restored = normalized * channel_std + channel_mean
    levels = np.round(255 * np.clip(restored, 0, 1)).astype(np.uint8)
    if len(levels) == 1:
        return np.asarray(levels[0])
    return np.asarray(levels.transpose(1, 2, 0))


#: Titles of the kinds of shift, in the order of the tables.
KINDS: Final = {
    "iid": "i.i.d.",
    "corruption": "corruption shift",
    "sub-class": "sub-class shift",
    "new-class": "semantic new-class shift",
    "far-new-class": "non-semantic new-class shift",
}


@dataclass(frozen=True)
class Exposure:
    """A set of test images with one kind of distribution shift.

    Attributes
    ----------
    name : str
        Unique name of the exposure, which tables also display.
    kind : {"iid", "corruption", "sub-class", "new-class", "far-new-class"}
        Kind of shift.
    load : callable
        Function that returns the images. Images of an unknown class have the label -1.
    corruption : str
        Name of the corruption, or empty. If the task varies its images at random, the corruption is
        applied after the variation.
    severity : int
        Severity of the corruption from 1 to 5, or 0 without a corruption.
    is_corrupted : bool
        Whether `load` returns official corrupted images. If False, `abstain_bench.data.corruptions`
        corrupts the images.

    Raises
    ------
    InputError
        If the kind is unknown, if the corruption and the severity are inconsistent, or if
        `is_corrupted` is set without a corruption.

    Examples
    --------
    >>> from abstain_bench.data import Exposure, textures
    >>> far = Exposure("textures", "far-new-class", lambda: textures(20))
    >>> far.title, far.load().n
    ('textures', 20)
    """

    name: str
    kind: str
    load: Callable[[], Images]
    corruption: str = ""
    severity: int = 0
    is_corrupted: bool = False

    def __post_init__(self) -> None:
        checks.one_of(self.kind, "kind", tuple(KINDS))
        has_corruption_kind = self.kind == "corruption"
        has_corruption = bool(self.corruption)
        has_severity = bool(self.severity)
        if has_corruption != has_corruption_kind or has_severity != has_corruption_kind:
            raise InputError(
                f"the exposure {self.name!r} must have a corruption with a severity exactly when "
                f"its kind is 'corruption'; got {self.kind!r}, {self.corruption!r} and "
                f"{self.severity!r}"
            )
        if self.is_corrupted and not self.corruption:
            raise InputError(
                f"the exposure {self.name!r} must have a corruption if `is_corrupted` is set"
            )

    @property
    def key(self) -> str:
        """Unique key in files, which includes the name and the severity of a corruption."""
        key = f"{self.name}-{self.severity}" if self.severity else self.name
        # Official corruptions and the corruptions of this package must have different keys.
        return f"{key}-official" if self.is_corrupted else key

    @property
    def title(self) -> str:
        """Display title, which includes the name and the severity of a corruption."""
        title = f"{self.name} {self.severity}" if self.severity else self.name
        return f"{title} (official)" if self.is_corrupted else title


def quoted_class(index: int, classes: Sequence[str]) -> str:
    """Return the name of a class in quotation marks, or "a new class" for the label -1."""
    if index < 0:
        return "a new class"
    return f"“{classes[index]}”" if index < len(classes) else f"class {index}"
