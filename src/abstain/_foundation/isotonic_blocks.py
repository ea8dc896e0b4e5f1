"""Compute the blocks of isotonic regression by the pool-adjacent-violators algorithm.

Lower convex hulls and isotonic calibration maps are computed from these blocks. `scipy.optimize`
also contains isotonic regression, but its import takes longer than most calls.
"""

import numpy as np

from abstain.typing import FloatArray, IntArray

#: Maximum number of blocks for which a Python loop is faster than NumPy.
_LOOP_BELOW = 256


def isotonic_block_ends(sums: FloatArray, weight: FloatArray) -> IntArray:
    """Return the last index of each block of an increasing isotonic regression.

    The mean of a block is sum(`sums`) / sum(`weight`) over its entries.

    Examples
    --------
    >>> import numpy as np
    >>> isotonic_block_ends(np.array([0.0, 3.0, 1.0, 2.0, 9.0]), np.ones(5)).tolist()
    [0, 3, 4]
    """
    ends = np.arange(sums.size)
    while True:
        mean = sums / weight
        is_block_end = np.append(mean[1:] > mean[:-1], True)
        if is_block_end.all():
            return ends
        # Neighbors whose means do not increase belong to one block.
        n_before = ends.size
        ends = ends[is_block_end]
        starts = np.flatnonzero(np.append(True, is_block_end[:-1]))
        sums = np.add.reduceat(sums, starts)
        weight = np.add.reduceat(weight, starts)
        if ends.size <= _LOOP_BELOW or ends.size > 0.9 * n_before:
            return np.asarray(ends[_pool_in_loop(sums, weight)])


def _pool_in_loop(sums: FloatArray, weight: FloatArray) -> IntArray:
    """Return the last index of each block with a Python loop."""
    block_sums: list[float] = []
    block_weights: list[float] = []
    block_ends: list[int] = []
    entries = zip(sums.tolist(), weight.tolist(), strict=True)
    for i, (entry_sum, entry_weight) in enumerate(entries):
        block_sum = entry_sum
        block_weight = entry_weight
        while block_sums and block_sums[-1] / block_weights[-1] >= block_sum / block_weight:
            block_sum += block_sums.pop()
            block_weight += block_weights.pop()
            block_ends.pop()
        block_sums.append(block_sum)
        block_weights.append(block_weight)
        block_ends.append(i)
    return np.array(block_ends, np.int64)
