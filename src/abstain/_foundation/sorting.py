"""Sort values in descending order by sorting integer keys.

The high bits of a key are the bit pattern of the largest value minus that of the row's value. The
low bits of a key are the row number. If 64 bits are not enough, the lowest bits of the difference
are dropped. Values that differ only in dropped bits are then sorted separately.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from abstain.typing import Array, BoolArray, FloatArray, IntArray

#: Number of values in a block, whose temporary arrays fit into the cache.
_BLOCK = 1 << 14

_UNSIGNED = {np.dtype(np.float32): np.uint32, np.dtype(np.float64): np.uint64}


@dataclass(frozen=True, eq=False)
class SortedValues:
    """The descending order of finite values, and the groups of equal values."""

    #: Row numbers in descending order of the values, shape (n,). Ties keep their order.
    order: IntArray
    #: Value of each group, shape (g,).
    distinct_values: Array
    #: Index in `order` of the last row of each group, shape (g,).
    group_ends: IntArray

    @cached_property
    def group_sizes(self) -> IntArray:
        """Number of equal values in each group, shape (g,)."""
        sizes = np.empty_like(self.group_ends)
        sizes[:1] = self.group_ends[:1] + 1
        np.subtract(self.group_ends[1:], self.group_ends[:-1], out=sizes[1:])
        return sizes

    def order_with_ties_broken_by(self, key: FloatArray) -> IntArray:
        """Return the order in which rows of equal values are sorted by an ascending key.

        Rows with equal keys keep their order.
        """
        is_tied = self.group_sizes > 1
        if not is_tied.any():
            return self.order
        tied_positions = np.flatnonzero(np.repeat(is_tied, self.group_sizes))
        tied_rows = self.order[tied_positions]
        tied_groups = np.flatnonzero(is_tied).astype(np.float64)
        group_of_row = np.repeat(tied_groups, self.group_sizes[is_tied])
        # Two stable sorts, first by the key and then by the group, sort the rows within groups.
        by_key = descending_order(-key[tied_rows])
        by_group_and_key = by_key[descending_order(-group_of_row[by_key])]
        order = self.order.copy()
        order[tied_positions] = tied_rows[by_group_and_key]
        return order

    def sum_by_group(self, loss: Array, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return the sum of weights and the sum of weight times loss in each group."""
        weight_sums = np.empty(self.group_ends.size)
        loss_sums = np.empty(self.group_ends.size)
        for groups, rows, starts in self._blocks():
            # A complex number holds the weight as its real part and weight times loss as its
            # imaginary part, so that one reduction computes both sums.
            weight_and_loss = np.empty(rows.size, np.complex128)
            weight_and_loss.real = 1.0 if weight is None else weight.take(rows)
            np.multiply(weight_and_loss.real, loss.take(rows), out=weight_and_loss.imag)
            if starts is not None:
                weight_and_loss = np.add.reduceat(weight_and_loss, starts)
            weight_sums[groups] = weight_and_loss.real
            loss_sums[groups] = weight_and_loss.imag
        return weight_sums, loss_sums

    def _blocks(self) -> Iterator[tuple[slice, IntArray, IntArray | None]]:
        """Yield slices of groups, their rows, and the position of the first row of each group.

        If each group has one row, the positions are None.
        """
        block_edges = np.arange(_BLOCK, self.order.size, _BLOCK)
        group_stops = [*np.searchsorted(self.group_ends, block_edges), self.group_ends.size]
        first_group = 0
        first_row = 0
        for stop_group in group_stops:
            if stop_group == first_group:
                continue
            stop_row = int(self.group_ends[stop_group - 1]) + 1
            n_groups = stop_group - first_group
            n_rows = stop_row - first_row
            starts = None
            if n_groups < n_rows:
                inner_ends = self.group_ends[first_group : stop_group - 1]
                starts = np.append(0, inner_ends + (1 - first_row))
            yield slice(first_group, stop_group), self.order[first_row:stop_row], starts
            first_group = stop_group
            first_row = stop_row


def sort_descending(x: Array, mask: BoolArray | None = None) -> SortedValues:
    """Sort the finite values where the mask is True in descending order."""
    order, values = _sort_rows(x)
    if mask is not None:
        is_included = mask[order]
        order, values = order[is_included], values[is_included]
    is_last = np.ones(values.size, np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_last[:-1])
    group_ends = np.flatnonzero(is_last)
    has_ties = group_ends.size < values.size
    return SortedValues(order, values.take(group_ends) if has_ties else values, group_ends)


def descending_order(x: Array) -> IntArray:
    """Return the indices that sort finite values in descending order. Ties keep their order."""
    return _sort_rows(x)[0]


def _sort_rows(x: Array) -> tuple[IntArray, Array]:
    """Return the indices that sort the values in descending order, and the sorted values."""
    unsigned = _UNSIGNED.get(x.dtype)
    if unsigned is None:
        wider = np.float32 if x.dtype == np.float16 else np.float64
        wide_order, wide_values = _sort_rows(x.astype(wider))
        return wide_order, wide_values.astype(x.dtype)
    min_value, max_value = x.min(), x.max()
    has_negative = bool(min_value < 0)
    min_pattern, max_pattern = _patterns(
        np.array([min_value, max_value]), unsigned, has_negative=has_negative
    )
    n_row_bits = int(x.size - 1).bit_length()
    n_value_bits = int(max_pattern - min_pattern).bit_length()
    n_dropped_bits = max(n_value_bits + n_row_bits - 64, 0)
    keys = np.empty(x.size, np.uint64)
    row_numbers = np.arange(min(x.size, _BLOCK), dtype=np.uint64)
    for start in range(0, x.size, _BLOCK):
        block_keys = keys[start : start + _BLOCK]
        patterns = _patterns(x[start : start + _BLOCK], unsigned, has_negative=has_negative)
        np.subtract(max_pattern, patterns, out=block_keys)
        if n_dropped_bits:
            block_keys >>= np.uint64(n_dropped_bits)
        block_keys <<= np.uint64(n_row_bits)
        block_keys |= row_numbers[: block_keys.size] + np.uint64(start)
    keys.sort()
    row_mask = np.uint64((1 << n_row_bits) - 1)
    if n_dropped_bits:
        order: IntArray = (keys & row_mask).view(np.int64)
        values = x.take(order)
        _sort_dropped_bits(order, values, keys, row_mask)
        return order, values
    # Decoding the sorted keys reads memory sequentially, which is faster than `x[order]`.
    values = np.empty(x.size, x.dtype)
    for start in range(0, x.size, _BLOCK):
        block_keys = keys[start : start + _BLOCK]
        patterns = (max_pattern - (block_keys >> np.uint64(n_row_bits))).astype(unsigned)
        values[start : start + _BLOCK] = _decode(patterns, x.dtype, has_negative=has_negative)
        block_keys &= row_mask
    return keys.view(np.int64), values


def _patterns(x: Array, unsigned: Any, *, has_negative: bool) -> Array:
    """Return unsigned integers that have the same order as the values."""
    # -0.0 equals 0.0, so both get the pattern of 0.0.
    bits: Array = (x + x.dtype.type(0)).view(unsigned)
    if not has_negative:
        return bits
    sign_bit = unsigned(1 << (8 * bits.itemsize - 1))
    return np.where(bits & sign_bit, ~bits, bits | sign_bit)


def _decode(patterns: Array, dtype: Any, *, has_negative: bool) -> Array:
    """Return the values with these bit patterns (inverse function of `_patterns`)."""
    if has_negative:
        sign_bit = patterns.dtype.type(1 << (8 * patterns.itemsize - 1))
        patterns = np.where(patterns & sign_bit, patterns ^ sign_bit, ~patterns)
    values: Array = patterns.view(dtype)
    return values


def _sort_dropped_bits(order: IntArray, values: Array, keys: Array, row_mask: Any) -> None:
    """Sort, in place, ranges of keys whose values may differ in dropped bits."""
    is_ascending = values[1:] > values[:-1]
    unsorted_keys = np.unique(keys[:-1][is_ascending] & ~row_mask)
    if not unsorted_keys.size:
        return
    starts = np.searchsorted(keys, unsorted_keys)
    sizes = np.searchsorted(keys, unsorted_keys | row_mask, side="right") - starts
    offsets = np.cumsum(sizes) - sizes
    positions = np.arange(sizes.sum()) + np.repeat(starts - offsets, sizes)
    # Ranges of equal keys are in descending order, so one sort covers all ranges.
    sorted_positions = positions[np.argsort(-values[positions], kind="stable")]
    order[positions], values[positions] = order[sorted_positions], values[sorted_positions]
