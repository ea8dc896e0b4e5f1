"""Find the distinct names of classes, groups and splits, and encode names as integers."""

from collections.abc import Hashable, Iterable

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain.errors import DomainError, InputError, ShapeError
from abstain.typing import AnyArray, Array, BoolArray, IntArray, Split


def distinct_names(values: Array, argument: str) -> list[Hashable]:
    """Return the sorted distinct names as Python objects."""
    offsets = _offsets_from_min(values)
    if offsets is not None:
        return _integers_from_mask(np.bincount(offsets) > 0, values)
    if values.dtype.kind != "O":
        sorted_names: list[Hashable] = np.unique(values).tolist()
        return sorted_names
    try:
        return sort_names(set(values.tolist()))
    except TypeError:
        raise InputError(
            f"`{argument}` must hold hashable values; got {type(values[0]).__name__}"
        ) from None


def _offsets_from_min(values: Array) -> IntArray | None:
    """Return the differences of integers from their minimum, or None if the range is too large."""
    if values.dtype.kind not in "iu" or values.size == 0:
        return None
    min_value = int(values.min())
    if int(values.max()) - min_value > values.size:
        return None
    if values.dtype.kind == "u":
        return (values - min_value).astype(np.int64)
    return values.astype(np.int64) - min_value


def _integers_from_mask(occurs: BoolArray, values: Array) -> list[Hashable]:
    """Return the integers whose difference from the minimum is marked in a mask."""
    min_value = int(values.min())
    return [min_value + offset for offset in np.flatnonzero(occurs).tolist()]


def sort_names(names: Iterable[Hashable]) -> list[Hashable]:
    """Sort names. Names of incomparable types are sorted by type and then by text."""
    names = list(names)
    try:
        return sorted(names)  # type: ignore[type-var]
    except TypeError:
        return sorted(names, key=lambda value: (type(value).__name__, str(value)))


def encode_names(values: Array, argument: str) -> tuple[list[Hashable], IntArray]:
    """Return the distinct names and the index of each value in them, shape (n,)."""
    offsets = _offsets_from_min(values)
    if offsets is not None:
        occurs = np.bincount(offsets) > 0
        return _integers_from_mask(occurs, values), (np.cumsum(occurs) - 1)[offsets]
    if values.dtype.kind != "O":
        distinct_values, codes = np.unique(values, return_inverse=True)
        return distinct_values.tolist(), codes.astype(np.int64)
    names = distinct_names(values, argument)
    code_by_name = {name: code for code, name in enumerate(names)}
    return names, np.fromiter((code_by_name[v] for v in values.tolist()), np.int64, values.size)


def validate_codes(values: AnyArray, argument: str, n: int) -> IntArray:
    """Return the integer code of each sample's class or cluster, starting at 0."""
    names = to_numpy(values, argument)
    if names.shape != (n,):
        raise ShapeError(
            f"`{argument}` must have one entry for each of the {n} samples; got shape {names.shape}"
        )
    if names.dtype.kind == "f" and np.isnan(names).any():
        raise DomainError(
            f"`{argument}` must have a name for every sample; got NaN. Drop these samples."
        )
    return encode_names(names, argument)[1]


def split_name(split: Split) -> str:
    """Format a split as text.

    Parameters
    ----------
    split : tuple of (column, value) pairs
        The split.

    Returns
    -------
    str
        Text such as "study = iid, model = a", or "all samples" for the empty split.

    Examples
    --------
    >>> split_name((("study", "iid"),)), split_name(())
    ('study = iid', 'all samples')
    """
    return ", ".join(f"{column} = {value}" for column, value in split) or "all samples"
