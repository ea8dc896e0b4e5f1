"""Fixed sequences of thresholds: test from a start downwards, stop at the first that fails.

The hypothesis of a threshold t is "the true risk of accepting at t is above the target". Walking
down from a start over all real thresholds, the first t whose hypothesis is true stops the walk
except with chance alpha, whatever comes later; between two confidences the test repeats the one
above. So only the distinct confidences need testing, and several starts share delta equally.

A start must not depend on the losses. It is a rank r fixed by n, the target and delta alone: the
walk starts just above the confidence of rank r + 1. Given that value, the samples above it are
independent draws from the law above it, so their failures are binomial. Below the start, the first
threshold with a true hypothesis is tested on a mixture whose failures are no fewer than binomial.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from abstain._foundation.ranks import TieGroups
from abstain.thresholds.binomial import least_count
from abstain.typing import BoolArray, IntArray


class Reach(NamedTuple):
    """The last tie group certified (-1 for none), and whether a walk ended where it began."""

    last: int
    at_start: bool


def halvings(n: int, risk: float, delta: float) -> tuple[float, ...]:
    """Return the coverages 1/2, 1/4, ... that can certify the risk when they share delta."""
    count = 1
    while n / 2 ** (count + 1) >= least_count(risk, delta / (count + 1)):
        count += 1
    return tuple(0.5**i for i in range(1, count + 1))


def ranks_of(coverages: tuple[float, ...], n: int, risk: float, delta: float) -> list[int]:
    """Return the ranks of the starts, each raised to where a certificate is possible."""
    least = least_count(risk, delta / len(coverages))
    return sorted({max(int(np.ceil(c * n)), least) for c in coverages})


def furthest(
    groups: TieGroups, ranks: list[int], test: Callable[[float], BoolArray], delta: float
) -> Reach:
    """Walk down from each start; `test(alpha)` tells which groups pass at that level."""
    passes = test(delta / len(ranks))
    stops = next_failing(passes)
    best = Reach(-1, at_start=False)
    for rank in ranks:
        first = start_of(groups, rank)
        if first > 0 and not passes[first - 1]:
            continue
        last = int(stops[first]) - 1
        found = Reach(last, at_start=last == first - 1)
        # A group reached in the middle of another walk needs no threshold of its own.
        if (last, not found.at_start) > (best.last, not best.at_start):
            best = found
    return best


def next_failing(passes: BoolArray) -> IntArray:
    """Return the first failing group at or after each; the number of groups where none does."""
    size = passes.size
    failing = np.append(np.where(passes, size, np.arange(size)), size)
    out: IntArray = np.minimum.accumulate(failing[::-1])[::-1]
    return out


def start_of(groups: TieGroups, rank: int) -> int:
    """Return the group that holds the sample of rank + 1: the first that a walk may add.

    One past the end, when all n samples are in the start. A walk whose first group holds its start
    too begins with that group: there is nothing above it.
    """
    return int(np.searchsorted(groups.count_through, rank, side="right"))
