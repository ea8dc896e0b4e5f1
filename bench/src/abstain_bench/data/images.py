"""`Images`: images with labels, how they are split, and how classes are held out of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_generator
from abstain.errors import DomainError, InputError, ShapeError
from abstain.typing import Array, IntArray, Rng


@dataclass(frozen=True, eq=False)
class Images:
    """Pictures of one size with the class of each.

    Attributes
    ----------
    pixels : uint8 ndarray of shape (n, channels, height, width)
        0 is black, 255 is white.
    labels : int64 ndarray of shape (n,)
        The number of the class, from 0; -1 for an image of no known class, which no answer is
        right for.
    classes : tuple of str
        The names of the classes.
    rows : int64 ndarray of shape (n,), optional
        Which images of the whole source these are; by default all in their order.

    Raises
    ------
    ShapeError
        The pixels have other axes, or there is not one label for each image.
    DomainError
        A label names no class, or the pixels are no bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.data import Images
    >>> some = Images(np.zeros((3, 1, 8, 8), np.uint8), np.array([0, 1, 1]), ("no", "yes"))
    >>> some.n, some.subset([2]).rows.tolist()
    (3, [2])
    """

    pixels: Array
    labels: IntArray
    classes: tuple[str, ...]
    rows: IntArray | None = None

    def __post_init__(self) -> None:
        pixels, labels = np.asarray(self.pixels), np.asarray(self.labels)
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
        if labels.dtype.kind not in "iu" or not (-1 <= labels.min() <= labels.max() < self.count):
            raise DomainError(
                f"`labels` must be whole numbers from 0 to {self.count - 1} (the classes), or -1 "
                "(of no known class)"
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
    def count(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width."""
        _, channels, height, width = self.pixels.shape
        return channels, height, width

    @property
    def places(self) -> IntArray:
        """Which images of the whole source these are."""
        return np.arange(self.n) if self.rows is None else self.rows

    def subset(self, rows: Array | slice) -> "Images":
        """Return these images only, in this order."""
        chosen = rows if isinstance(rows, slice) else np.asarray(rows)
        own = self.pixels[chosen], self.labels[chosen], self.classes, self.places[chosen]
        return Images(*own)


@dataclass(frozen=True, eq=False)
class Splits:
    """The parts of a data set.

    Attributes
    ----------
    train : Images
        What is learned from.
    validation : Images or None
        What choices are made on; None when nothing is chosen.
    test : Images
        What the results are about; nothing is ever chosen on it.
    """

    train: Images
    validation: Images | None
    test: Images


def split(data: Images, *sizes: int, rng: Rng = 0) -> tuple[Images, ...]:
    """Draw parts without a common image, each with the classes in equal proportion.

    Parameters
    ----------
    data : Images
        The images to draw from.
    *sizes : int
        Images of each part; what is left over belongs to none.
    rng : int, Generator or None, default=0
        The seed of the drawing.

    Returns
    -------
    tuple of Images
        One part for each size, its images in the order of the source.

    Raises
    ------
    InputError
        A size is below the number of classes, or the sizes add up to more than there is.

    Notes
    -----
    Each part gets its share of every class, rounded so that the sizes are met exactly.

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
        if checks.positive_int(size, "sizes") < data.count:
            raise InputError(
                f"a part needs at least one image a class, so {data.count}; got {size!r}"
            )
    if sum(sizes) > data.n:
        raise InputError(f"the parts need {sum(sizes):,} images, and there are {data.n:,}")
    order = _interleaved(data.labels, as_generator(rng))
    ends = np.cumsum(sizes)
    starts = [0, *ends[:-1]]
    return tuple(data.subset(np.sort(order[a:b])) for a, b in zip(starts, ends, strict=True))


def _interleaved(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """Return an order in which every stretch has the classes in their proportion."""
    place = np.empty(labels.size)
    for label in np.unique(labels):
        own = rng.permutation(np.flatnonzero(labels == label))
        place[own] = (np.arange(own.size) + rng.random()) / own.size
    return np.argsort(place, kind="stable").astype(np.int64)


def held_out_classes(
    count: int, *, share: float = 0.4, classes: Sequence[int] | None = None, rng: Rng = 0
) -> IntArray:
    """Draw the classes that an open-set study holds out.

    Examples
    --------
    >>> from abstain_bench.data.published import held_out_classes
    >>> len(held_out_classes(10)), held_out_classes(10, classes=[9, 8]).tolist()
    (4, [8, 9])
    """
    if checks.positive_int(count, "count") < 3:
        raise InputError(
            f"classes can be held out of three or more, so that two are left; got {count}"
        )
    if classes is None:
        checks.fraction(share, "share")
        out = min(max(1, round(share * count)), count - 2)
        return np.sort(as_generator(rng).choice(count, out, replace=False)).astype(np.int64)
    chosen = np.unique(np.asarray(classes))
    if chosen.dtype.kind not in "iu" or not chosen.size or chosen[0] < 0 or chosen[-1] >= count:
        raise InputError(f"`classes` must be numbers from 0 to {count - 1}; got {list(classes)}")
    if chosen.size > count - 2:
        raise InputError(f"`classes` must leave two classes or more; got {chosen.size} of {count}")
    return chosen.astype(np.int64)


def held_out(
    images: Images, *, share: float = 0.4, classes: Sequence[int] | None = None, rng: Rng = 0
) -> tuple[Images, Images]:
    """Hold classes out of a data set: what is kept, and images of no known class.

    Parameters
    ----------
    images : Images
        Images of all classes. Pass training and test images with the same options: the same
        classes are held out of both, unless `rng` is a Generator, which moves on.
    share : float, default=0.4
        The share of the classes to hold out; 40 % as in the open-set studies of FD-Shifts.
    classes : sequence of int, optional
        These instead of drawn ones; the configuration of FD-Shifts for SVHN holds out 6 to 9.
    rng : int, Generator or None, default=0
        The seed of the drawing.

    Returns
    -------
    tuple of Images
        The kept images, their classes numbered anew from 0 in the same order; and the images
        of the held-out classes with the label -1. Both have the kept classes and know their rows.

    Raises
    ------
    InputError
        As `held_out_classes`, or no image is left on one side.

    Examples
    --------
    >>> from abstain_bench.data import digits8
    >>> from abstain_bench.data.published import held_out
    >>> kept, new = held_out(digits8(), classes=[6, 7, 8, 9])
    >>> kept.classes, kept.n, new.n, set(new.labels.tolist())
    (('0', '1', '2', '3', '4', '5'), 1083, 714, {-1})
    """
    out = held_out_classes(images.count, share=share, classes=classes, rng=rng)
    left = np.setdiff1d(np.arange(images.count), out)
    names = tuple(images.classes[i] for i in left)
    labels = numbered_anew(images.labels, images.count, left)
    sides = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
    if not sides[0].size or not sides[1].size:
        what = "kept" if not sides[0].size else "held-out"
        raise InputError(f"there is no image of the {what} classes; hold out others")
    kept, new = (
        Images(images.pixels[rows], labels[rows], names, images.places[rows]) for rows in sides
    )
    return kept, new


def numbered_anew(labels: IntArray, count: int, kept: Array) -> IntArray:
    """Return labels of `count` classes as numbers of those kept, in their order, or else -1."""
    # The last is that of the label -1: who was of no known class before still is.
    number = np.full(count + 1, -1)
    number[kept] = np.arange(len(kept))
    return number[labels].astype(np.int64)


def levels_of(seen: Array, mean: Sequence[float], deviation: Sequence[float]) -> Array:
    """Return an image that a network sees as bytes for people: channels last, or none of gray.

    It is scaled by the mean and deviation of each channel, which is undone.
    """
    scaled = np.asarray(seen, dtype=np.float64)
    middle, spread = (np.reshape(v, (-1, 1, 1)) for v in (mean, deviation))
    levels = np.round(255 * np.clip(scaled * spread + middle, 0, 1)).astype(np.uint8)
    return np.asarray(levels[0] if len(levels) == 1 else levels.transpose(1, 2, 0))
