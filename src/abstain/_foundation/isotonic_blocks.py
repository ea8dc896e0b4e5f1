"""Neighbors pooled until their means rise: isotonic regression, of which the blocks are wanted.

A convex hull has these means as its slopes, and a calibration that never falls has them as its
levels. SciPy has the regression, in a package that takes longer to load than most calls take.
"""

import numpy as np

from abstain.typing import FloatArray, IntArray

#: Blocks that a loop is through sooner than some more passes over arrays.
_FEW = 256


def isotonic_block_ends(mass: FloatArray, weight: FloatArray) -> IntArray:
    """Return the last index of each block; the means, mass by weight, rise from block to block.

    Cost: a few passes, unless the means rise nearly everywhere; then a loop over what is left.

    Examples
    --------
    >>> import numpy as np
    >>> isotonic_block_ends(np.array([0.0, 3.0, 1.0, 2.0, 9.0]), np.ones(5)).tolist()
    [0, 3, 4]
    """
    ends = np.arange(mass.size)
    while True:
        mean = mass / weight
        rises = np.append(mean[1:] > mean[:-1], True)
        if rises.all():
            return ends
        # Neighbors that do not rise end in one block, in whatever order they are pooled.
        ends, before = ends[rises], rises.size
        starts = np.flatnonzero(np.append(True, rises[:-1]))
        mass, weight = np.add.reduceat(mass, starts), np.add.reduceat(weight, starts)
        if ends.size <= _FEW or ends.size > 0.9 * before:
            return np.asarray(ends[_one_by_one(mass, weight)])


def _one_by_one(mass: FloatArray, weight: FloatArray) -> IntArray:
    blocks: list[tuple[float, float, int]] = []
    for i, (m, w) in enumerate(zip(mass.tolist(), weight.tolist(), strict=True)):
        while blocks and blocks[-1][0] / blocks[-1][1] >= m / w:
            more, also, _ = blocks.pop()
            m, w = m + more, w + also  # noqa: PLW2901  the block that grows
        blocks.append((m, w, i))
    return np.array([i for _, _, i in blocks], np.int64)
