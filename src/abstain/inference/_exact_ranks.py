"""Rank statistics counted out: the chance of each value where nothing but the order is random.

Mid-ranks are halves, so everything is counted in twice the ranks, which are whole numbers.
"""

from functools import lru_cache
from itertools import permutations
from math import factorial
from typing import Final, TypeAlias

import numpy as np

from abstain.typing import FloatArray, IntArray

#: Twice the mid-ranks of each block, in an order that does not matter.
_Blocks: TypeAlias = tuple[tuple[int, ...], ...]

#: Sums of ranks looked at before counting is given up: some tenths of a second.
_MOST_SUMS: Final = 1_000_000


def signed_rank_tails(ranks: FloatArray, positive: float) -> tuple[float, float]:
    """Return the chances that the ranks with a fair sign sum to at most, and at least, this.

    Takes the mid-ranks of the differences that are not zero, shape (n,). Cost: n^3 / 2 steps.
    """
    doubled = np.rint(2 * ranks).astype(np.int64)
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled:
        chances /= 2
        # NumPy copies where source and target overlap.
        chances[rank:] += chances[:-rank]
    at = int(np.rint(2 * positive))
    return float(chances[: at + 1].sum()), float(chances[at:].sum())


def friedman_tail(placed: FloatArray) -> float | None:
    """Return the chance of rank sums at least as far apart as these, shape (blocks, k).

    Each block takes any order of its own mid-ranks. None where there are too many orders to count.
    """
    doubled = np.rint(2 * placed).astype(np.int64)
    blocks: _Blocks = tuple(sorted(tuple(sorted(row)) for row in doubled.tolist()))
    known = _spread_chances(blocks)
    if known is None:
        return None
    spread, chance = known
    return min(1.0, float(chance[spread >= _spread(doubled.sum(axis=0)[None, :])[0]].sum()))


def _spread(sums: IntArray) -> IntArray:
    """Return k^2 times the sum of squares of each row about its mean, in whole numbers."""
    k = sums.shape[1]
    return np.asarray(np.square(k * sums - sums.sum(axis=1, keepdims=True)).sum(axis=1))


@lru_cache(maxsize=64)
def _spread_chances(blocks: _Blocks) -> tuple[IntArray, FloatArray] | None:
    """Return the values of `_spread` and their chances; None where there are too many."""
    k = len(blocks[0])
    highest = 2 * k * len(blocks) + 1
    if float(highest) ** (k - 1) > 2.0**62:
        return None
    # All columns are alike, so that the first block may stay as it is and sums may be sorted.
    sums: IntArray = np.array(blocks[:1])
    chance: FloatArray = np.ones(1)
    looked_at = 0
    for block in blocks[1:]:
        looked_at += sums.shape[0] * factorial(k)
        if looked_at > _MOST_SUMS:
            return None
        orders = np.array(sorted(set(permutations(block))))
        table = np.sort((sums[:, None, :] + orders).reshape(-1, k), axis=1)
        # The last sum follows from the others.
        key = table[:, :-1] @ (highest ** np.arange(k - 1))
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        shares = np.repeat(chance / orders.shape[0], orders.shape[0])
        sums = table[first]
        chance = np.bincount(place, weights=shares).astype(np.float64)
    return _spread(sums), chance
