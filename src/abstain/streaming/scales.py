"""Map confidences to bins by monotone functions that do not depend on the range of the data.

The functions use only operations without rounding errors. Therefore, NumPy and PyTorch compute the
same bins on every device, and a larger confidence never belongs to a lower bin. The certified
limits require both properties.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain.errors import InputError
from abstain.streaming.groups import count_at_most, next_floats
from abstain.typing import Array, FloatArray, IntArray

Scale: TypeAlias = Literal["probability", "log-odds", "real"]

SCALES: tuple[str, ...] = get_args(Scale)

#: Default number of bins, with which each bfloat16 probability and each float16 probability from
#: 1/32 has a separate bin.
DEFAULT_BINS = 2**16
_MIN_BINS, _MAX_BINS = 2**8, 2**24

# Number of octaves on each side of 1/2 ("probability") or of 0 ("real"), and the exponent of the
# lowest octave. Values below the lowest octave share a bin.
_OCTAVES = {"probability": (32, -33), "real": (64, -32)}
# Log-odds are clipped to [-64, 64]. Outside this range, a float64 probability is 0 or 1.
_MAX_LOG_ODDS = 64


def check_scale(scale: str) -> str:
    """Return the name of a scale after checking that the scale exists."""
    return checks.one_of(scale, "scale", SCALES)


def check_bins(bins: int) -> int:
    """Check that a number of bins is a valid power of two."""
    count = checks.positive_int(bins, "bins")
    if count & (count - 1) or not _MIN_BINS <= count <= _MAX_BINS:
        raise InputError(
            f"`bins` must be a power of two from {_MIN_BINS} to {_MAX_BINS}; got {count}"
        )
    return count


def bin_index(xp: Any, confidence: Any, *, scale: str, bins: int) -> Any:
    """Return the bin of each confidence as int64, shape (n,). `xp` is numpy or torch."""
    half_bins = bins // 2
    if scale == "log-odds":
        clipped = confidence.clip(-_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        offset = xp.floor(clipped * (half_bins // _MAX_LOG_ODDS))
        return (_as_int(xp, offset) + half_bins).clip(0, bins - 1)
    if scale == "probability":
        is_upper = confidence >= 0.5
        # 1 - p is exact for p >= 1/2.
        tail = xp.where(is_upper, 1 - confidence, confidence)
        # Half of the bins resolve octaves, because confident probabilities accumulate there. The
        # other half has equal width, because most failures have moderate probabilities. The sum of
        # two monotone functions is monotone.
        octave_offset = _octave_index(xp, tail, scale, half_bins // 2)
        equal_width_offset = _as_int(xp, xp.floor(tail * half_bins))
        offset = octave_offset + equal_width_offset
        return xp.where(is_upper, bins - 1 - offset, offset)
    offset = _octave_index(xp, xp.abs(confidence), scale, half_bins)
    return xp.where(confidence < 0, half_bins - offset, half_bins + offset)


def _octave_index(xp: Any, magnitude: Any, scale: str, n_bins: int) -> Any:
    """Return the bin of each non-negative number; bin 0 contains only 0.

    The bins within one octave have equal width.
    """
    n_octaves, lowest_exponent = _OCTAVES[scale]
    n_bits_per_octave = (n_bins // n_octaves).bit_length() - 1
    is_double = magnitude.dtype == xp.float64
    mantissa_bits, exponent_bias = (52, 1023) if is_double else (23, 127)
    # The bits of a positive float, read as an integer, increase with the float.
    bits = magnitude.view(xp.int64 if is_double else xp.int32)
    lowest_index = (exponent_bias + lowest_exponent) << n_bits_per_octave
    index = (bits >> (mantissa_bits - n_bits_per_octave)) - lowest_index
    index = _as_int(xp, index.clip(1, n_bins - 1))
    return xp.where(magnitude == 0, xp.zeros_like(index), index)


def _as_int(xp: Any, array: Any) -> Any:
    """Convert a NumPy array or a PyTorch tensor to int64."""
    if hasattr(array, "astype"):
        return array.astype(xp.int64)
    return array.to(xp.int64)


@lru_cache(maxsize=8)
def bin_starts(scale: str, bins: int, dtype: np.dtype[Any]) -> Array:
    """Find the smallest float in each bin except the first, shape (bins - 1,), by bisection."""
    largest_float = float(np.finfo(dtype).max)
    minimum = -largest_float
    maximum = largest_float
    if scale == "probability":
        minimum = 0.0
        maximum = 1.0
    low = np.full(bins - 1, _float_to_rank(np.array(minimum, dtype)))
    high = np.full(bins - 1, _float_to_rank(np.array(maximum, dtype)) + 1)
    bin_number = np.arange(1, bins)
    while (low < high).any():
        middle = _middle(low, high)
        value = _rank_to_float(middle, dtype).astype(np.float64)
        index = bin_index(np, np.clip(value, minimum, maximum), scale=scale, bins=bins)
        is_in_bin = (index >= bin_number) | (value > maximum)
        high = np.where(is_in_bin & (low < high), middle, high)
        low = np.where(is_in_bin | (low >= high), low, middle + 1)
    starts: Array = read_only(_rank_to_float(low, dtype))
    return starts


def _middle(low: IntArray, high: IntArray) -> IntArray:
    """Return (low + high) // 2 without overflow."""
    return (low & high) + ((low ^ high) >> 1)


@dataclass(frozen=True, eq=False)
class BinCounts:
    """The number of values in each bin, with the smallest and the largest value."""

    #: Number of values in each bin, shape (bins,).
    count: IntArray
    #: Smallest and largest value in each bin, shape (bins,), or inf and -inf in an empty bin.
    min_value: FloatArray
    max_value: FloatArray


def count_sorted_values(values: Array, starts: Array) -> BinCounts:
    """Count ascending values in bins; `starts` is the result of `bin_starts`."""
    n_below = count_at_most(next_floats(starts, -np.inf), values)
    ends = np.append(n_below, values.size)
    count = np.diff(ends, prepend=0)
    nonempty = np.flatnonzero(count)
    min_value = np.full(count.size, np.inf)
    max_value = np.full(count.size, -np.inf)
    min_value[nonempty] = values[(ends - count)[nonempty]]
    max_value[nonempty] = values[ends[nonempty] - 1]
    return BinCounts(count, min_value, max_value)


def _float_to_rank(values: Array) -> IntArray:
    """Return the rank of each float among all floats of its type. Zeros have rank 0."""
    integer_type = f"i{values.dtype.itemsize}"
    bits = values.view(integer_type).astype(np.int64)
    sign_bit = np.int64(np.iinfo(integer_type).min)
    return np.where(bits < 0, sign_bit - bits, bits)


def _rank_to_float(rank: IntArray, dtype: np.dtype[Any]) -> Array:
    """Return the float with each rank, or infinity for ranks above that of the largest float."""
    integer_type = f"i{dtype.itemsize}"
    sign_bit = np.int64(np.iinfo(integer_type).min)
    bits = np.where(rank < 0, sign_bit - rank, rank)
    return bits.astype(integer_type).view(dtype)
