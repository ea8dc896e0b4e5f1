"""Which data sets serve as new classes for which, and classes held out of one data set."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import generator
from abstain.benchmark.data.images import Images
from abstain.errors import InputError
from abstain.typing import IntArray, Rng

#: For each data set the others whose pictures are of new classes to it, in the order of the
#: tables of FD-Shifts; the last three rows are ours. "emnist-letters" is the split "letters" of
#: EMNIST. CIFAR has cats, dogs and trucks, as TinyImageNet has, so it is not new to it.
NEW_CLASS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "cifar10": ("cifar100", "svhn", "tiny-imagenet"),
        "cifar100": ("cifar10", "svhn", "tiny-imagenet"),
        "svhn": ("cifar10", "cifar100", "tiny-imagenet"),
        "tiny-imagenet": ("svhn",),
        "mnist": ("fashion-mnist", "emnist-letters"),
        "fashion-mnist": ("mnist", "emnist-letters"),
    }
)

#: Pairs that look alike and differ in meaning; all other pairs differ in looks too.
_NEAR = frozenset({("cifar10", "cifar100"), ("cifar100", "cifar10"), ("mnist", "emnist-letters")})


def new_class_kind(inliers: str, outliers: str) -> Literal["new-class", "far-new-class"]:
    """Tell whether the pictures of another data set are near or far new classes.

    Parameters
    ----------
    inliers : str
        The data set that was trained on, a key of `NEW_CLASS`.
    outliers : str
        The data set of the new classes, one of that entry.

    Returns
    -------
    str
        "new-class" where only the meaning differs (a semantic shift: CIFAR-100 for CIFAR-10),
        "far-new-class" where the pictures are of another kind too (a non-semantic shift: SVHN).

    Raises
    ------
    InputError
        The two are no pair of `NEW_CLASS`.

    Examples
    --------
    >>> from abstain.benchmark.data.published import NEW_CLASS, new_class_kind
    >>> {name: new_class_kind("cifar10", name) for name in NEW_CLASS["cifar10"]}
    {'cifar100': 'new-class', 'svhn': 'far-new-class', 'tiny-imagenet': 'far-new-class'}
    """
    checks.one_of(inliers, "inliers", tuple(NEW_CLASS))
    checks.one_of(outliers, "outliers", NEW_CLASS[inliers])
    return "new-class" if (inliers, outliers) in _NEAR else "far-new-class"


def held_out_classes(
    count: int, *, share: float = 0.4, classes: Sequence[int] | None = None, rng: Rng = 0
) -> IntArray:
    """Draw the classes that an open-set study holds out.

    Parameters
    ----------
    count : int
        Number of classes of the data set.
    share : float, default=0.4
        The share to hold out, rounded; at least one class, and at least two are kept.
    classes : sequence of int, optional
        These instead of drawn ones.
    rng : int, Generator or None, default=0
        The seed of the drawing.

    Returns
    -------
    int64 ndarray
        The numbers of the held-out classes, ascending.

    Raises
    ------
    InputError
        Fewer than three classes, or `classes` are not numbers of classes, or leave fewer than two.

    Examples
    --------
    >>> from abstain.benchmark.data.published import held_out_classes
    >>> len(held_out_classes(10)), held_out_classes(10, classes=[9, 8]).tolist()
    (4, [8, 9])
    """
    if checks.positive_int(count, "count") < 3:
        msg = f"classes can be held out of three or more, so that two are left; got {count}"
        raise InputError(msg)
    if classes is None:
        checks.fraction(share, "share")
        out = min(max(1, round(share * count)), count - 2)
        return np.sort(generator(rng).choice(count, out, replace=False)).astype(np.int64)
    chosen = np.unique(np.asarray(classes))
    if chosen.dtype.kind not in "iu" or not chosen.size or chosen[0] < 0 or chosen[-1] >= count:
        msg = f"`classes` must be numbers from 0 to {count - 1}; got {list(classes)}"
        raise InputError(msg)
    if chosen.size > count - 2:
        msg = f"`classes` must leave two classes or more; got {chosen.size} of {count}"
        raise InputError(msg)
    return chosen.astype(np.int64)


def held_out(
    images: Images, *, share: float = 0.4, classes: Sequence[int] | None = None, rng: Rng = 0
) -> tuple[Images, Images]:
    """Hold classes out of a data set: what is kept, and pictures of no known class.

    Parameters
    ----------
    images : Images
        Pictures of all classes. Pass training and test pictures with the same options: the same
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
        The kept pictures, their classes numbered anew from 0 in the same order; and the pictures
        of the held-out classes with the label -1. Both have the kept classes and know their rows.

    Raises
    ------
    InputError
        As `held_out_classes`, or no picture is left on one side.

    Examples
    --------
    >>> from abstain.benchmark.data import digits8
    >>> from abstain.benchmark.data.published import held_out
    >>> kept, new = held_out(digits8(), classes=[6, 7, 8, 9])
    >>> kept.classes, kept.n, new.n, set(new.labels.tolist())
    (('0', '1', '2', '3', '4', '5'), 1083, 714, {-1})
    """
    out = held_out_classes(images.count, share=share, classes=classes, rng=rng)
    number = np.full(images.count, -1)
    left = np.setdiff1d(np.arange(images.count), out)
    number[left] = np.arange(left.size)
    names = tuple(images.classes[i] for i in left)
    # A picture that was of no known class before stays one.
    labels = np.where(images.labels < 0, -1, number[images.labels])
    sides = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
    if not sides[0].size or not sides[1].size:
        what = "kept" if not sides[0].size else "held-out"
        msg = f"there is no picture of the {what} classes; hold out others"
        raise InputError(msg)
    kept, new = (
        Images(images.pixels[rows], labels[rows], names, images.places[rows]) for rows in sides
    )
    return kept, new
