"""Where bins begin, so that sorted confidences are counted into them without a bin for each."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from abstain._foundation.arrays import read_only
from abstain.streaming.scales import bin_index
from abstain.streaming.tally import neighbors, passed
from abstain.typing import Array, FloatArray, IntArray


@lru_cache(maxsize=8)
def lowest(scale: str, bins: int, dtype: np.dtype[Any]) -> Array:
    """Return the least float of a type in each bin but the first, shape (bins - 1,).

    By bisection over the floats in their order: a larger one never falls into a lower bin.
    """
    least, most = (0.0, 1.0) if scale == "probability" else _ends(dtype)
    low = np.full(bins - 1, _rank(np.array(least, dtype)))
    high = np.full(bins - 1, _rank(np.array(most, dtype)) + 1)
    number = np.arange(1, bins)
    while (low < high).any():
        # Half of the sum, which may itself be too large.
        middle = (low & high) + ((low ^ high) >> 1)
        value = _float(middle, dtype).astype(np.float64)
        within = bin_index(np, np.clip(value, least, most), scale=scale, bins=bins)
        reached = (within >= number) | (value > most)
        high = np.where(reached & (low < high), middle, high)
        low = np.where(reached | (low >= high), low, middle + 1)
    out: Array = read_only(_float(low, dtype))
    return out


@dataclass(frozen=True, eq=False)
class Filled:
    """What sorted confidences put into bins."""

    #: Shape (bins,).
    count: IntArray
    #: The least and the largest of each; inf and -inf in an empty one.
    least: FloatArray
    most: FloatArray


def filled(ordered: Array, first: Array) -> Filled:
    """Count ascending confidences into the bins that begin at `first`, as `lowest` gives them."""
    below = passed(neighbors(first, -np.inf), ordered)
    ends = np.append(below, ordered.size)
    count = np.diff(ends, prepend=0)
    here = np.flatnonzero(count)
    least, most = np.full(count.size, np.inf), np.full(count.size, -np.inf)
    least[here], most[here] = ordered[(ends - count)[here]], ordered[ends[here] - 1]
    return Filled(count, least, most)


def _ends(dtype: np.dtype[Any]) -> tuple[float, float]:
    most = float(np.finfo(dtype).max)
    return -most, most


def _rank(x: Array) -> IntArray:
    """Return the numbers of floats of a type in their order, both zeros 0."""
    bits = x.view(f"i{x.dtype.itemsize}").astype(np.int64)
    sign = np.int64(np.iinfo(f"i{x.dtype.itemsize}").min)
    return np.where(bits < 0, sign - bits, bits)


def _float(rank: IntArray, dtype: np.dtype[Any]) -> Array:
    """Return the float of a number; infinity beyond the largest."""
    whole = f"i{dtype.itemsize}"
    sign = np.int64(np.iinfo(whole).min)
    bits = np.where(rank < 0, sign - rank, rank)
    return bits.astype(whole).view(dtype)
