"""Compute the blocks of isotonic regression by the pool-adjacent-violators algorithm.

The means of the blocks are the slopes of a convex hull or the values of an isotonic calibration
map. `scipy.optimize` contains isotonic regression, but its import takes longer than most calls.
"""

import numpy as np

from abstain.typing import FloatArray, IntArray

#: Maximum number of blocks for which a Python loop is faster than further passes over arrays.
_LOOP_BELOW = 256


def isotonic_block_ends(sums: FloatArray, weight: FloatArray) -> IntArray:
    """Return the last index of each block of isotonic regression.

    The mean of a block is the sum of `sums` divided by the sum of `weight`. The means increase from
    block to block. The algorithm passes over the arrays a few times, and a loop pools the remaining
    blocks.

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
        # Neighbors whose means do not increase belong to one block in any order of pooling.
        ends, n_before = ends[is_block_end], is_block_end.size
        starts = np.flatnonzero(np.append(True, is_block_end[:-1]))
        sums, weight = np.add.reduceat(sums, starts), np.add.reduceat(weight, starts)
        if ends.size <= _LOOP_BELOW or ends.size > 0.9 * n_before:
            return np.asarray(ends[_pool_in_loop(sums, weight)])


def _pool_in_loop(sums: FloatArray, weight: FloatArray) -> IntArray:
    """Return the last index of each block. A loop over the entries pools neighbors."""
    blocks: list[tuple[float, float, int]] = []
    for i, (entry_sum, entry_weight) in enumerate(zip(sums.tolist(), weight.tolist(), strict=True)):
        block_sum, block_weight = entry_sum, entry_weight
        while blocks and blocks[-1][0] / blocks[-1][1] >= block_sum / block_weight:
            previous_sum, previous_weight, _ = blocks.pop()
            block_sum += previous_sum
            block_weight += previous_weight
        blocks.append((block_sum, block_weight, i))
    return np.array([last_index for _, _, last_index in blocks], np.int64)
