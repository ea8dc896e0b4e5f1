"""Count sorted confidences into bins from the smallest float of each bin."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from abstain._foundation.arrays import read_only
from abstain.streaming.scales import bin_index
from abstain.streaming.value_counts import count_at_most, next_floats
from abstain.typing import Array, FloatArray, IntArray


@lru_cache(maxsize=8)
def bin_starts(scale: str, bins: int, dtype: np.dtype[Any]) -> Array:
    """Return the smallest float of a type in each bin except the first, shape (bins - 1,).

    The search bisects over the floats in their order, because a larger float never belongs to a
    lower bin.
    """
    largest_float = float(np.finfo(dtype).max)
    minimum, maximum = (0.0, 1.0) if scale == "probability" else (-largest_float, largest_float)
    low = np.full(bins - 1, _float_to_rank(np.array(minimum, dtype)))
    high = np.full(bins - 1, _float_to_rank(np.array(maximum, dtype)) + 1)
    bin_number = np.arange(1, bins)
    while (low < high).any():
        # (low + high) // 2, written so that the sum cannot overflow.
        middle = (low & high) + ((low ^ high) >> 1)
        value = _rank_to_float(middle, dtype).astype(np.float64)
        index = bin_index(np, np.clip(value, minimum, maximum), scale=scale, bins=bins)
        is_in_bin = (index >= bin_number) | (value > maximum)
        high = np.where(is_in_bin & (low < high), middle, high)
        low = np.where(is_in_bin | (low >= high), low, middle + 1)
    starts: Array = read_only(_rank_to_float(low, dtype))
    return starts


@dataclass(frozen=True, eq=False)
class BinCounts:
    """Counts and extreme values of each bin."""

    #: Shape (bins,).
    count: IntArray
    #: Shape (bins,). Smallest and largest value of each bin; inf and -inf in an empty bin.
    min_value: FloatArray
    max_value: FloatArray


def count_sorted_values(values: Array, starts: Array) -> BinCounts:
    """Count ascending values into the bins that begin at `starts`, computed by `bin_starts`."""
    n_below = count_at_most(next_floats(starts, -np.inf), values)
    ends = np.append(n_below, values.size)
    count = np.diff(ends, prepend=0)
    nonempty = np.flatnonzero(count)
    min_value, max_value = np.full(count.size, np.inf), np.full(count.size, -np.inf)
    min_value[nonempty] = values[(ends - count)[nonempty]]
    max_value[nonempty] = values[ends[nonempty] - 1]
    return BinCounts(count, min_value, max_value)


def _float_to_rank(values: Array) -> IntArray:
    """Return the rank of each float among all floats of its type; both zeros have rank 0."""
    integer_type = f"i{values.dtype.itemsize}"
    bits = values.view(integer_type).astype(np.int64)
    sign_bit = np.int64(np.iinfo(integer_type).min)
    return np.where(bits < 0, sign_bit - bits, bits)


def _rank_to_float(rank: IntArray, dtype: np.dtype[Any]) -> Array:
    """Return the float of each rank; infinity above the largest finite float."""
    integer_type = f"i{dtype.itemsize}"
    sign_bit = np.int64(np.iinfo(integer_type).min)
    bits = np.where(rank < 0, sign_bit - rank, rank)
    return bits.astype(integer_type).view(dtype)
