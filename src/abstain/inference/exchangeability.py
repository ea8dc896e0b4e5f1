"""Conformal p-values for tests of exchangeability, computed from ranks in a reference sample."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.random import as_generator
from abstain.typing import AnyArray, FloatArray, IntArray, Rng

#: Default number of blocks.
MAX_BLOCKS: Final = 64


@dataclass(frozen=True, eq=False)
class RankBlocks:
    """Reference sample that is divided into blocks at some of its order statistics.

    A later value is assigned to a block and is not compared with individual values of the sample.
    Ties are broken by uniform random numbers, so a block may begin within a tie group.

    Attributes
    ----------
    edges, tie_breakers : ndarray of shape (blocks - 1,)
        The order statistics between the blocks in ascending order, and the random numbers that
        break their ties.
    n_gaps : ndarray of shape (blocks,)
        Number of gaps between neighboring values in each block. A sample of n values has n + 1 gaps
        (before, between and after the values), and the next value falls into each gap with the same
        probability.

    Examples
    --------
    >>> from abstain.inference.exchangeability import rank_blocks
    >>> blocks = rank_blocks([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], blocks=4, rng=0)
    >>> blocks.edges.tolist(), blocks.n_gaps.tolist()
    ([0.2, 0.4, 0.6], [2, 2, 2, 2])
    >>> blocks.find_blocks([0.05, 0.3, 0.9], [0.5, 0.5, 0.5]).tolist()
    [0, 1, 3]
    """

    edges: FloatArray
    tie_breakers: FloatArray
    n_gaps: IntArray

    def find_blocks(self, values: AnyArray, tie_breakers: AnyArray) -> IntArray:
        """Return the block of each value, where `tie_breakers` are uniform random numbers."""
        numbers = np.asarray(values, np.float64)
        breakers = np.asarray(tie_breakers, np.float64)
        first = np.searchsorted(self.edges, numbers, "left")
        last = np.searchsorted(self.edges, numbers, "right")
        block: IntArray = first.astype(np.int64)
        for i in np.flatnonzero(last > first):
            tied_breakers = self.tie_breakers[first[i] : last[i]]
            block[i] += np.searchsorted(tied_breakers, breakers[i], "right")
        return block


def rank_blocks(sample: AnyArray, *, blocks: int = MAX_BLOCKS, rng: Rng = 0) -> RankBlocks:
    """Divide a sample into blocks of almost equal probability.

    Parameters
    ----------
    sample : array of shape (n,)
        Finite values.
    blocks : int
        Maximum number of blocks. The sample is divided into at most n + 1 blocks.
    rng : int, Generator or None
        Seed or generator of the random numbers that break ties.

    Returns
    -------
    RankBlocks
        The blocks of the sample.

    Raises
    ------
    ShapeError, DomainError
        If the sample is empty or a value is not finite.
    """
    values = checks.finite(checks.vector(sample, "sample"), "sample").astype(np.float64)
    tie_breakers = as_generator(rng).random(values.size)
    order = np.lexsort((tie_breakers, values))
    n_gaps = values.size + 1
    n_blocks = min(checks.positive_int(blocks, "blocks"), n_gaps)
    ranks = np.arange(1, n_blocks) * n_gaps // n_blocks
    edges = order[ranks - 1]
    gaps_of_block = np.diff(np.concatenate([[0], ranks, [n_gaps]])).astype(np.int64)
    return RankBlocks(
        read_only(values[edges]), read_only(tie_breakers[edges]), read_only(gaps_of_block)
    )


def rank_p_value(counts: IntArray, block: AnyArray, fraction: AnyArray) -> FloatArray:
    """Compute a conformal p-value, the relative rank of a value among all earlier values.

    Answers: is this value exchangeable with the reference sample and all earlier values?

    Parameters
    ----------
    counts : ndarray of shape (..., blocks)
        Number of gaps in each block of the reference sample plus the number of later values in the
        block.
    block : int or ndarray of shape (...)
        The block of the value.
    fraction : float or ndarray of shape (...)
        A uniform random number, the position of the value within its block.

    Returns
    -------
    ndarray of shape (...)
        The p-values in [0, 1], which are near 0 for low values. If the values are exchangeable with
        the sample, the p-values are independent and uniform for any distribution.

    Notes
    -----
    The p-values are the conformal p-values of [1]_ for a score that is rounded to blocks of ranks.
    The probability of a block is the number of its gaps divided by the number of all gaps. Because
    of the rounding, the memory use does not increase with the number of values.

    References
    ----------
    .. [1] Vovk, Nouretdinov and Gammerman (2003), Testing exchangeability on-line, ICML

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.exchangeability import rank_p_value
    >>> float(rank_p_value(np.array([2, 2, 2, 2]), 3, 0.5))
    0.875
    """
    block_index = np.asarray(block)[..., None]
    is_lower_block = np.arange(counts.shape[-1]) < block_index
    n_below = np.where(is_lower_block, counts, 0).sum(axis=-1)
    n_in_block = np.take_along_axis(counts, block_index, axis=-1)[..., 0]
    return np.asarray((n_below + np.asarray(fraction) * n_in_block) / counts.sum(axis=-1))


class RankCounter:
    """Counts of a growing sample, which yield p-values of new values as in `rank_p_value`.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.exchangeability import RankCounter
    >>> counter = RankCounter(np.array([2, 2, 2, 2]))
    >>> counter.add(3, 0.5), counter.counts
    (0.875, [2, 2, 2, 3])
    """

    def __init__(self, counts: IntArray) -> None:
        self.counts: list[int] = counts.tolist()
        self._total = sum(self.counts)

    def add(self, block: int, fraction: float) -> float:
        """Return the p-value of a value in a block, and add the value to the counts."""
        n_before = sum(self.counts[:block]) + fraction * self.counts[block]
        p_value: float = n_before / self._total
        self.counts[block] += 1
        self._total += 1
        return p_value
