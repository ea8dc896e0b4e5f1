"""Sums over groups of samples in any array library: sort, add up, take differences.

Libraries without NumPy's `bincount`, `reduceat`, `interp` and running minimum get them here, from
operations that the array API has and that gradients flow through.
"""

from typing import Any, TypeAlias

import numpy as np

from abstain._foundation.arrays import move_to_library_of, namespace
from abstain._foundation.gradients import (
    as_double,
    carries_gradient,
    value_with_gradient,
    without_gradient,
)
from abstain._foundation.sorting import descending_order
from abstain.typing import AnyArray

#: Distinct confidences in descending order; weight, loss and count of each.
Grouped: TypeAlias = tuple[AnyArray, AnyArray, AnyArray, AnyArray]


def group_by_sorting(confidence: AnyArray, loss: AnyArray, weight: AnyArray | None) -> Grouped:
    """Group validated samples of positive weight by confidence, where they lie.

    The gradient of a tie group's confidence is shared by its members, by weight.
    """
    xp = namespace(confidence)
    fixed = without_gradient(confidence)
    narrow = fixed.dtype if xp.finfo(fixed.dtype).bits < 32 else None
    if narrow is not None:
        fixed = xp.astype(fixed, xp.float32)
    order = xp.flip(xp.argsort(fixed))
    ordered, loss = xp.take(fixed, order), as_double(xp.take(loss, order))
    weight = None if weight is None else xp.take(weight, order)
    last = _ends(xp, ordered)
    count = undo_cumulative_sum(last + 1)
    total = as_double(count) if weight is None else _summed(xp, weight, last, count)
    mass = _summed(xp, loss if weight is None else loss * weight, last, count)
    distinct_values = xp.take(ordered, last)
    if narrow is not None:
        distinct_values = xp.astype(distinct_values, narrow)
    if carries_gradient(confidence):
        each = xp.take(confidence, order)
        mean = _summed(xp, each if weight is None else each * weight, last, count) / total
        distinct_values = value_with_gradient(mean, distinct_values)
    return distinct_values, total, mass, count


def _ends(xp: Any, ordered: AnyArray) -> AnyArray:
    """Return where each run of equal values ends."""
    inner = xp.nonzero(ordered[1:] != ordered[:-1])[0]
    return xp.concat((inner, move_to_library_of(np.array([ordered.shape[0] - 1]), "places", inner)))


def _summed(xp: Any, x: AnyArray, last: AnyArray, count: AnyArray) -> AnyArray:
    """Sum `x`, never negative, within groups that end at `last`."""
    mass = undo_cumulative_sum(xp.take(xp.cumulative_sum(x), last))
    # A difference of long sums is rounded: a sample alone is known exactly, no sum is below 0.
    known = xp.where(count == 1, xp.take(x, last), xp.where(mass > 0, mass, xp.zeros_like(mass)))
    return value_with_gradient(mass, known)


def undo_cumulative_sum(x: AnyArray) -> AnyArray:
    """Return the differences between neighbors, the first entry kept: a running sum undone."""
    return namespace(x).concat((x[:1], x[1:] - x[:-1]))


def sum_by_index(index: AnyArray, values: AnyArray, size: int) -> AnyArray:
    """Return the sum of the values at each index from 0 to size - 1, in double precision."""
    xp = namespace(values)
    if xp is np:
        return np.bincount(index, values, size).astype(np.float64, copy=False)
    order = xp.argsort(index)
    sorted_index = xp.take(index, order)
    through = xp.cumulative_sum(as_double(xp.take(values, order)))
    through = xp.concat((xp.zeros_like(through[:1]), through))
    places = move_to_library_of(np.arange(size), "places", sorted_index)
    ends = xp.searchsorted(sorted_index, xp.astype(places, sorted_index.dtype), side="right")
    return undo_cumulative_sum(xp.take(through, ends))


def sorted_unique(x: AnyArray) -> AnyArray:
    """Return the distinct values, ascending."""
    xp = namespace(x)
    return np.unique(x) if xp is np else xp.sort(xp.unique_values(x))


def interpolate(x: AnyArray, xs: AnyArray, ys: AnyArray) -> AnyArray:
    """Read the piecewise linear curve through (xs, ys), xs ascending, at each x."""
    xp = namespace(xs)
    if isinstance(xs, np.ndarray):
        return np.interp(x, xs, ys)
    place = xp.clip(xp.searchsorted(xs, x), 1, xs.shape[0] - 1)
    left, right = xp.take(xs, place - 1), xp.take(xs, place)
    width = xp.where(right > left, right - left, xp.ones_like(left))
    part = xp.clip((x - left) / width, 0.0, 1.0)
    low, high = xp.take(ys, place - 1), xp.take(ys, place)
    return low + part * (high - low)


def reverse_cumulative_min(x: AnyArray) -> AnyArray:
    """Return the least of each entry and all that come after it."""
    if isinstance(x, np.ndarray):
        return np.minimum.accumulate(x[::-1])[::-1]
    xp, reach = namespace(x), 1
    while reach < x.shape[0]:
        # Each pass doubles how far an entry has looked ahead.
        x = xp.concat((xp.minimum(x[:-reach], x[reach:]), x[x.shape[0] - reach :]))
        reach *= 2
    return x


def prepend_zero(through: AnyArray) -> AnyArray:
    """Put a zero before a running sum."""
    xp = namespace(through)
    return xp.concat((xp.zeros_like(through[:1]), through))


def reverse_cumulative_sum(x: AnyArray) -> AnyArray:
    """Return the sum of each entry and all that come after it."""
    if isinstance(x, np.ndarray):
        return np.cumsum(x[::-1])[::-1]
    xp = namespace(x)
    return xp.flip(xp.cumulative_sum(xp.flip(x)))


def lexicographic_order(*keys: AnyArray) -> AnyArray:
    """Return the order that sorts by the first key, equal ones by the second, and so on."""
    xp = namespace(keys[0])
    order = _rising(keys[-1])
    for key in reversed(keys[:-1]):
        order = xp.take(order, _rising(xp.take(key, order)))
    return order


def _rising(x: AnyArray) -> AnyArray:
    if not isinstance(x, np.ndarray):
        return namespace(x).argsort(x, stable=True)
    return descending_order(-(x if x.dtype.kind == "f" else x.astype(np.float64)))
