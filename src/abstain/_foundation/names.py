"""Names of classes and groups, of any type, and of the parts that columns split data into."""

from collections.abc import Hashable, Iterable

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain.errors import DomainError, InputError, ShapeError
from abstain.typing import AnyArray, Array, BoolArray, IntArray, Split


def distinct_names(values: Array, name: str) -> list[Hashable]:
    """Return the distinct names as Python objects, sorted where they can be."""
    steps = _from_least(values)
    if steps is not None:
        return _numbered(np.bincount(steps) > 0, values)
    if values.dtype.kind != "O":
        found: list[Hashable] = np.unique(values).tolist()
        return found
    try:
        return sort_names(set(values.tolist()))
    except TypeError:
        raise InputError(
            f"`{name}` must hold hashable values; got {type(values[0]).__name__}"
        ) from None


def _from_least(values: Array) -> IntArray | None:
    """Return whole numbers less the least, where so few lie between that counting is no sort."""
    if values.dtype.kind not in "iu" or values.size == 0:
        return None
    least = int(values.min())
    if int(values.max()) - least > values.size:
        return None
    if values.dtype.kind == "u":
        return (values - least).astype(np.int64)
    return values.astype(np.int64) - least


def _numbered(here: BoolArray, values: Array) -> list[Hashable]:
    """Return the numbers that are there, counted from the least."""
    least = int(values.min())
    return [least + step for step in np.flatnonzero(here).tolist()]


def sort_names(found: Iterable[Hashable]) -> list[Hashable]:
    """Sort names; those of types that do not compare are sorted by type, then by text."""
    found = list(found)
    try:
        return sorted(found)  # type: ignore[type-var]
    except TypeError:
        return sorted(found, key=lambda value: (type(value).__name__, str(value)))


def encode_names(values: Array, name: str) -> tuple[list[Hashable], IntArray]:
    """Return the distinct names and the place among them of each value, shape (n,)."""
    steps = _from_least(values)
    if steps is not None:
        here = np.bincount(steps) > 0
        return _numbered(here, values), (np.cumsum(here) - 1)[steps]
    if values.dtype.kind != "O":
        found, codes = np.unique(values, return_inverse=True)
        return found.tolist(), codes.astype(np.int64)
    kinds = distinct_names(values, name)
    place = {kind: code for code, kind in enumerate(kinds)}
    return kinds, np.fromiter((place[v] for v in values.tolist()), np.int64, values.size)


def validate_codes(values: AnyArray, name: str, n: int) -> IntArray:
    """Validate the name of each of n samples (its class, its cluster); return codes from 0."""
    names = to_numpy(values, name)
    if names.shape != (n,):
        raise ShapeError(
            f"`{name}` must have one entry for each of the {n} samples; got shape {names.shape}"
        )
    if names.dtype.kind == "f" and np.isnan(names).any():
        raise DomainError(
            f"`{name}` must name something for every sample; got NaN. Drop these samples."
        )
    return encode_names(names, name)[1]


def split_name(split: Split) -> str:
    """Write a split as people read it.

    Parameters
    ----------
    split : tuple of (column, value) pairs
        The split.

    Returns
    -------
    str
        "study = iid, model = a", or "all samples" for the empty split.

    Examples
    --------
    >>> split_name((("study", "iid"),)), split_name(())
    ('study = iid', 'all samples')
    """
    return ", ".join(f"{column} = {value}" for column, value in split) or "all samples"
