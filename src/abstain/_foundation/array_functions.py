"""Array functions for any library, such as sums by group, interpolation and cumulative minima.

The array API lacks these functions. They propagate gradients.
"""

from typing import Any, TypeAlias

import numpy as np

from abstain._foundation.arrays import (
    as_double,
    carries_gradient,
    move_to_library_of,
    namespace,
    value_with_gradient,
    without_gradient,
)
from abstain._foundation.sorting import descending_order
from abstain.typing import AnyArray

#: Distinct confidences in descending order, with the weight, loss and count of each.
Grouped: TypeAlias = tuple[AnyArray, AnyArray, AnyArray, AnyArray]


def group_by_sorting(confidence: AnyArray, loss: AnyArray, weight: AnyArray | None) -> Grouped:
    """Group validated samples of positive weight by confidence, in any array library.

    The gradient of a tie group's confidence is distributed to its samples in proportion to weight.
    """
    xp = namespace(confidence)
    values = without_gradient(confidence)
    if xp.finfo(values.dtype).bits < 32:
        order = xp.flip(xp.argsort(xp.astype(values, xp.float32)))
    else:
        order = xp.flip(xp.argsort(values))
    sorted_values = xp.take(values, order)
    sorted_loss = as_double(xp.take(loss, order))
    last_rows = _last_rows_of_groups(xp, sorted_values)
    count = undo_cumulative_sum(last_rows + 1)
    if weight is None:
        weight_sums = as_double(count)
        weighted_loss = sorted_loss
    else:
        sorted_weight = xp.take(weight, order)
        weight_sums = _sum_groups(xp, sorted_weight, last_rows, count)
        weighted_loss = sorted_loss * sorted_weight
    loss_sums = _sum_groups(xp, weighted_loss, last_rows, count)
    distinct_values = xp.take(sorted_values, last_rows)
    if carries_gradient(confidence):
        weighted_confidence = xp.take(confidence, order)
        if weight is not None:
            weighted_confidence = weighted_confidence * sorted_weight
        mean = _sum_groups(xp, weighted_confidence, last_rows, count) / weight_sums
        distinct_values = value_with_gradient(mean, distinct_values)
    return distinct_values, weight_sums, loss_sums, count


def _last_rows_of_groups(xp: Any, sorted_values: AnyArray) -> AnyArray:
    """Return the index of the last row of each group of equal values."""
    inner = xp.nonzero(sorted_values[1:] != sorted_values[:-1])[0]
    last = move_to_library_of(np.array([sorted_values.shape[0] - 1]), "last row", inner)
    return xp.concat((inner, last))


def _sum_groups(xp: Any, x: AnyArray, last_rows: AnyArray, count: AnyArray) -> AnyArray:
    """Sum the non-negative entries of `x` in each group."""
    sums = undo_cumulative_sum(xp.take(xp.cumulative_sum(x), last_rows))
    # The difference of two cumulative sums has a rounding error, so the sum can be negative.
    nonnegative_sums = xp.where(sums > 0, sums, xp.zeros_like(sums))
    exact_sums = xp.where(count == 1, xp.take(x, last_rows), nonnegative_sums)
    return value_with_gradient(sums, exact_sums)


def undo_cumulative_sum(x: AnyArray) -> AnyArray:
    """Return the first entry, followed by the differences of consecutive entries."""
    return namespace(x).concat((x[:1], x[1:] - x[:-1]))


def sum_by_index(index: AnyArray, values: AnyArray, size: int) -> AnyArray:
    """Return the sum of the values at each index from 0 to `size` - 1, in double precision."""
    xp = namespace(values)
    if xp is np:
        return np.bincount(index, values, size).astype(np.float64, copy=False)
    order = xp.argsort(index)
    sorted_index = xp.take(index, order)
    cumulative = prepend_zero(xp.cumulative_sum(as_double(xp.take(values, order))))
    all_indices = move_to_library_of(np.arange(size), "index", sorted_index)
    all_indices = xp.astype(all_indices, sorted_index.dtype)
    ends = xp.searchsorted(sorted_index, all_indices, side="right")
    return undo_cumulative_sum(xp.take(cumulative, ends))


def sorted_unique(x: AnyArray) -> AnyArray:
    """Return the distinct values in ascending order."""
    xp = namespace(x)
    return np.unique(x) if xp is np else xp.sort(xp.unique_values(x))


def interpolate(x: AnyArray, xs: AnyArray, ys: AnyArray) -> AnyArray:
    """Interpolate linearly at `x` between the points (xs, ys), where `xs` is ascending."""
    xp = namespace(xs)
    if isinstance(xs, np.ndarray):
        return np.interp(x, xs, ys)
    right = xp.clip(xp.searchsorted(xs, x), 1, xs.shape[0] - 1)
    x_left, x_right = xp.take(xs, right - 1), xp.take(xs, right)
    width = xp.where(x_right > x_left, x_right - x_left, xp.ones_like(x_left))
    fraction = xp.clip((x - x_left) / width, 0.0, 1.0)
    y_left, y_right = xp.take(ys, right - 1), xp.take(ys, right)
    return y_left + fraction * (y_right - y_left)


def reverse_cumulative_min(x: AnyArray) -> AnyArray:
    """Return the minimum over each entry and all later entries."""
    if isinstance(x, np.ndarray):
        return np.minimum.accumulate(x[::-1])[::-1]
    xp = namespace(x)
    n_covered = 1
    while n_covered < x.shape[0]:
        # Each entry is the minimum of `n_covered` entries, and each pass doubles this number.
        n_unchanged = x.shape[0] - n_covered
        x = xp.concat((xp.minimum(x[:-n_covered], x[n_covered:]), x[n_unchanged:]))
        n_covered *= 2
    return x


def prepend_zero(cumulative: AnyArray) -> AnyArray:
    """Insert a zero before a cumulative sum."""
    xp = namespace(cumulative)
    return xp.concat((xp.zeros_like(cumulative[:1]), cumulative))


def reverse_cumulative_sum(x: AnyArray) -> AnyArray:
    """Return the sum of each entry and all later entries."""
    if isinstance(x, np.ndarray):
        return np.cumsum(x[::-1])[::-1]
    xp = namespace(x)
    return xp.flip(xp.cumulative_sum(xp.flip(x)))


def lexicographic_order(*keys: AnyArray) -> AnyArray:
    """Return the indices that sort rows by several keys, most important key first."""
    xp = namespace(keys[0])
    order = _ascending_order(keys[-1])
    for key in reversed(keys[:-1]):
        order = xp.take(order, _ascending_order(xp.take(key, order)))
    return order


def _ascending_order(x: AnyArray) -> AnyArray:
    if not isinstance(x, np.ndarray):
        return namespace(x).argsort(x, stable=True)
    return descending_order(-(x if x.dtype.kind == "f" else x.astype(np.float64)))
