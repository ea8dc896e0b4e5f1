"""Counts of distinct values, as in pandas.Series.value_counts, for the exact states of streams."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from abstain._foundation.arrays import read_only
from abstain._foundation.lazy_imports import load_kernels
from abstain.errors import InputError
from abstain.typing import Array, IntArray

#: New values are buffered until they take this many bytes; then they are sorted and counted.
MIN_PENDING_BYTES = 1 << 27

#: Minimum number of values for which the compiled kernels are loaded; they merge in one pass.
_MIN_COMPILED = 1 << 22


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Counts of distinct values. New values are buffered and counted when enough have arrived."""

    #: Shape (k,). Distinct values, ascending.
    value: Array
    #: Shape (k,). Number of occurrences of each, at least 1.
    count: IntArray
    #: Buffered values that are not counted yet, in any order.
    pending: tuple[Array, ...] = ()

    def __post_init__(self) -> None:
        """Seal the arrays: states share them."""
        object.__setattr__(self, "value", read_only(self.value))
        object.__setattr__(self, "count", read_only(self.count))

    @cached_property
    def finalized(self) -> "ValueCounts":
        """The counts with the buffered values included."""
        if not self.pending:
            return self
        # np.concatenate always copies, so `_count_values` may sort in place.
        new = _count_values(np.concatenate(self.pending))
        return new if not self.value.size else _merge_counts(self, new)

    def added(self, values: Array) -> "ValueCounts":
        """Return the counts with these values added; few values are only buffered."""
        if not values.size:
            return self
        counts = ValueCounts(self.value, self.count, append_pending(self.pending, values))
        if exceeds_bytes(counts.pending, max(MIN_PENDING_BYTES, self.value.nbytes)):
            return counts.finalized
        return counts

    def merged(self, other: "ValueCounts") -> "ValueCounts":
        """Return the counts of the values of both."""
        left, right = self.finalized, other.finalized
        if not left.value.size:
            return right
        return _merge_counts(left, right) if right.value.size else left

    def as_type(self, dtype: np.dtype[Any]) -> "ValueCounts":
        """Return the finalized counts with the values converted to a wider type."""
        counts = self.finalized
        return ValueCounts(counts.value.astype(dtype, copy=False), counts.count)


def checked_value_counts(value: Array, count: Array, name: str) -> ValueCounts:
    """Return the counts in the arrays of a file; raise an error if the arrays are inconsistent."""
    is_valid = (
        value.ndim == count.ndim == 1
        and value.size == count.size
        and value.dtype.kind == "f"
        and count.dtype == np.int64
        and bool(np.isfinite(value).all())
        and bool((value[1:] > value[:-1]).all())
        and bool((count > 0).all())
    )
    if not is_valid:
        raise InputError(f"{name!r} must be ascending numbers with counts of at least 1")
    return ValueCounts(value, count)


def empty_value_counts() -> ValueCounts:
    """Return the counts of no values, in the narrowest type."""
    return ValueCounts(np.zeros(0, np.float16), np.zeros(0, np.int64))


def append_pending(pending: tuple[Array, ...], values: Array) -> tuple[Array, ...]:
    """Append an array to the buffer; small arrays are concatenated to keep their number small."""
    remaining, tail, tail_size = pending, [values], values.size
    while remaining and remaining[-1].dtype == values.dtype and remaining[-1].size <= tail_size:
        tail = [remaining[-1], *tail]
        tail_size += remaining[-1].size
        remaining = remaining[:-1]
    return (*remaining, np.concatenate(tail) if len(tail) > 1 else values)


def exceeds_bytes(pending: tuple[Array, ...], max_bytes: int) -> bool:
    """Return whether the buffered arrays have at least `max_bytes` bytes."""
    return sum(x.nbytes for x in pending) >= max_bytes


def _count_values(values: Array) -> ValueCounts:
    """Sort values in place and count them."""
    values.sort()
    is_last = np.empty(values.size, np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_last[:-1])
    is_last[-1] = True
    last = np.flatnonzero(is_last)
    return ValueCounts(values[last], np.diff(last, prepend=-1))


def _merge_counts(left: ValueCounts, right: ValueCounts) -> ValueCounts:
    is_left_larger = left.value.size >= right.value.size
    larger, smaller = (left, right) if is_left_larger else (right, left)
    # The number of values of `larger` that are at most each value of `smaller`.
    n_at_most = count_at_most(smaller.value, larger.value)
    is_present = larger.value.take(n_at_most - 1, mode="clip") == smaller.value
    is_present &= n_at_most > 0
    larger_count = larger.count.copy()
    larger_count[n_at_most[is_present] - 1] += smaller.count[is_present]
    new = np.flatnonzero(~is_present)
    new_positions = n_at_most[new] + np.arange(new.size)
    is_old_position = np.ones(larger.value.size + new.size, np.bool_)
    is_old_position[new_positions] = False
    value = np.empty(is_old_position.size, np.result_type(larger.value, smaller.value))
    count = np.empty(is_old_position.size, np.int64)
    value[new_positions], count[new_positions] = smaller.value[new], smaller.count[new]
    value[is_old_position], count[is_old_position] = larger.value, larger_count
    return ValueCounts(value, count)


def next_floats(values: Array, towards: float) -> Array:
    """Return the next float of the same type towards an infinity, which may be that infinity."""
    with np.errstate(all="ignore"):
        neighbors: Array = np.nextafter(values, values.dtype.type(towards))
    return neighbors


def count_at_most(points: Array, values: Array) -> IntArray:
    """Return the number of values that are at most each point; both arrays are ascending."""
    is_large = points.size + values.size >= _MIN_COMPILED and points.dtype == values.dtype
    kernels = load_kernels("abstain._foundation.compiled") if is_large else None
    if kernels is None:
        return np.searchsorted(values, points, side="right")
    infinity = values.dtype.type(np.inf)
    n_at_most: IntArray = kernels.count_up_to(points, np.append(values, infinity))
    return n_at_most
