"""Exchangeability with a sample: where later values fall between its order statistics."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.random import as_generator
from abstain.typing import AnyArray, FloatArray, IntArray, Rng

#: Blocks of equal chance, at most.
BLOCKS: Final = 64


@dataclass(frozen=True, eq=False)
class RankBlocks:
    """A sample cut at some of its order statistics, which is all that later values are held to.

    Ties are broken by a uniform number that belongs to each value, so that a block may begin
    within a tie.

    Attributes
    ----------
    edges, breaks : ndarray of shape (blocks - 1,)
        The order statistics, ascending, and the numbers that break their ties.
    gaps : ndarray of shape (blocks,)
        How many of the n + 1 gaps between the values of the sample each block holds: its chance
        to hold the next value is that share.

    Examples
    --------
    >>> from abstain.inference.exchangeability import rank_blocks
    >>> blocks = rank_blocks([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], blocks=4, rng=0)
    >>> blocks.edges.tolist(), blocks.gaps.tolist()
    ([0.2, 0.4, 0.6], [2, 2, 2, 2])
    >>> blocks.home([0.05, 0.3, 0.9], [0.5, 0.5, 0.5]).tolist()
    [0, 1, 3]
    """

    edges: FloatArray
    breaks: FloatArray
    gaps: IntArray

    def home(self, values: AnyArray, breaks: AnyArray) -> IntArray:
        """Return the block of each value, whose ties are broken by the numbers `breaks`."""
        x, u = np.asarray(values, np.float64), np.asarray(breaks, np.float64)
        first = np.searchsorted(self.edges, x, "left")
        last = np.searchsorted(self.edges, x, "right")
        found: IntArray = first.astype(np.int64)
        for i in np.flatnonzero(last > first):
            found[i] += np.searchsorted(self.breaks[first[i] : last[i]], u[i], "right")
        return found


def rank_blocks(sample: AnyArray, *, blocks: int = BLOCKS, rng: Rng = 0) -> RankBlocks:
    """Cut a sample into blocks of as equal a chance as its size allows.

    Parameters
    ----------
    sample : array of shape (n,)
        Finite.
    blocks : int
        At most so many; n + 1 where that is less.
    rng : int, Generator or None
        Breaks ties.

    Returns
    -------
    RankBlocks
        What `rank_p_value` counts in.

    Raises
    ------
    ShapeError, DomainError
        Empty, or values that are not finite.
    """
    values = checks.finite(checks.vector(sample, "sample"), "sample").astype(np.float64)
    breaks = as_generator(rng).random(values.size)
    order = np.lexsort((breaks, values))
    parts = min(checks.positive_int(blocks, "blocks"), values.size + 1)
    ranks = np.arange(1, parts) * (values.size + 1) // parts
    chosen = order[ranks - 1]
    gaps = np.diff(np.concatenate([[0], ranks, [values.size + 1]])).astype(np.int64)
    return RankBlocks(read_only(values[chosen]), read_only(breaks[chosen]), read_only(gaps))


def rank_p_value(counts: IntArray, block: AnyArray, at: AnyArray) -> FloatArray:
    """Return where a value stands among all before it: a conformal p-value.

    Answers: is this value like those of the sample and those since?

    Parameters
    ----------
    counts : ndarray of shape (..., blocks)
        The gaps of each block: those of the sample, and one more for each later value that fell
        into it.
    block : int or ndarray of shape (...)
        The block of the value.
    at : float or ndarray of shape (...)
        A uniform number for the place within the block.

    Returns
    -------
    ndarray of shape (...)
        In [0, 1], near 0 for what is low. While the values are exchangeable with the sample these
        are independent and uniform, whatever the distribution: cut at fixed ranks, a value falls
        into a block with the chance of its share of the gaps, and then adds one.

    Notes
    -----
    Conformal p-values as in [1]_, of a score that is coarsened to blocks of ranks, so that what is
    kept does not grow with the stream.

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
    place = np.asarray(block)[..., None]
    below = np.where(np.arange(counts.shape[-1]) < place, counts, 0).sum(axis=-1)
    own = np.take_along_axis(counts, place, axis=-1)[..., 0]
    return np.asarray((below + np.asarray(at) * own) / counts.sum(axis=-1))


class RankCounter:
    """A sample that grows by one value at a time: the same p-values as `rank_p_value`.

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

    def add(self, block: int, at: float) -> float:
        """Return the p-value of a value in this block, and count the value."""
        p_value: float = (sum(self.counts[:block]) + at * self.counts[block]) / self._total
        self.counts[block] += 1
        self._total += 1
        return p_value
