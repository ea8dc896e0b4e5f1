"""Which vertex a working point is, and what is accepted there.

A vertex is the index of a tie group; -1 means that nothing is accepted.
"""

from collections.abc import Callable

import numpy as np

from abstain._foundation.arrays import inner, of_numpy
from abstain._foundation.foreign import scalar, without_gradient
from abstain._foundation.measurement import Measured
from abstain._foundation.ranks import TieGroups, reached
from abstain._foundation.scored import Scored
from abstain.curves.risk_coverage import ROUNDING
from abstain.metrics.influences import of_mean
from abstain.typing import FloatArray, IntArray, Scalar

#: Samples that are summed at once, so that temporaries stay in the cache.
_BLOCK = 1 << 14


def at_threshold(groups: TieGroups, threshold: float) -> int:
    """Return the last vertex with confidence >= threshold."""
    return int(reached(groups, threshold)) - 1


def parted_at(s: Scored, threshold: float) -> tuple[TieGroups, int]:
    """Return what reaches a threshold and the rest, as a group each, and the vertex of the first.

    One pass without any order. Elsewhere than on the host all groups, and the last that reaches it.
    """
    if (
        not of_numpy(s.confidence)
        or not of_numpy(s.loss)
        or s.known_groups is not None
        or s.known_events is not None
    ):
        return s.groups, at_threshold(s.groups, threshold)
    with np.errstate(over="ignore"):
        at = np.asarray(threshold).astype(s.confidence.dtype)
    sums, lowest = np.zeros((2, 3)), np.full(2, np.inf)
    for start in range(0, s.n, _BLOCK):
        rows = slice(start, start + _BLOCK)
        confidence, loss = s.confidence[rows], s.loss[rows].astype(np.float64)
        weight = np.ones(loss.size) if s.weight is None else s.weight[rows]
        reached = confidence >= at
        for k, there in enumerate((reached & (weight > 0), ~reached & (weight > 0))):
            own = weight * there
            sums[k] += np.count_nonzero(there), own.sum(), inner(own, loss)
            lowest[k] = min(lowest[k], np.where(there, confidence, np.inf).min())
    kept = sums[:, 0] > 0
    count, weight, loss = sums[kept].T
    both = TieGroups(lowest[kept], weight, loss, count.astype(np.int64))
    return both, 0 if kept[0] else -1


def at_coverage(groups: TieGroups, coverage: float, *, first: bool = False) -> int:
    """Return the vertex of least risk (or of least coverage) that keeps the coverage."""
    needed = least_accepted(groups, coverage)
    xp, through = groups.xp, groups.through
    start: int = min(int(xp.count_nonzero(through < needed)), through.shape[0] - 1)
    if first:
        return start
    risk = without_gradient(groups.loss_through[start:]) / through[start:]
    # Of equal risks the largest coverage is the one worth using.
    return start + int(xp.nonzero(risk <= xp.min(risk) * (1 + ROUNDING))[0][-1])


def least_accepted(groups: TieGroups, coverage: float) -> float:
    """Return the weight that a coverage needs."""
    # Coverage is a ratio of sums; a hair of rounding must not cost a whole vertex.
    return coverage * groups.total * (1 - ROUNDING)


def at_coverages(groups: TieGroups, coverages: FloatArray) -> IntArray:
    """Return `at_coverage` of many coverages, on the host."""
    needed = coverages * groups.total * (1 - ROUNDING)
    start = np.minimum(np.searchsorted(groups.through, needed), groups.through.size - 1)
    # From the last vertex on: where the least risk so far was first seen.
    risk = (groups.loss_through / groups.through)[::-1]
    least = np.minimum.accumulate(np.append(np.inf, risk[:-1]))
    lower = risk < least * (1 - ROUNDING)
    last = risk.size - 1
    best = last - np.maximum.accumulate(np.where(lower, np.arange(risk.size), 0))
    return np.asarray(best[last - start])


#: A tie group is large from this share on of the range in which a threshold may lie: half a
#: standard error where the range is two to either side.
_LARGE = 1 / 8


def jumps(groups: TieGroups, low: float, high: float) -> bool:
    """Tell whether a tie group within a range of coverages is a large part of it."""
    meets = (groups.above < high * groups.total) & (groups.through > low * groups.total)
    return bool((groups.width[meets] > _LARGE * (high - low) * groups.total).any())


def at_risk(groups: TieGroups, max_risk: float) -> int:
    """Return the vertex of largest coverage with selective risk <= max_risk."""
    # As a ratio: 29/100 is the number 0.29, but 0.29 * 100 is less than 29.
    risk = without_gradient(groups.loss_through) / groups.through
    fine = groups.xp.nonzero(risk <= max_risk * (1 + ROUNDING))[0]
    return int(fine[-1]) if fine.shape[0] else -1


def accepted(groups: TieGroups, index: int) -> tuple[float, Scalar, int]:
    """Weight, loss mass and number of the accepted."""
    if index < 0:
        return 0.0, 0.0, 0
    return (
        float(groups.through[index]),
        scalar(groups.loss_through[index]),
        int(groups.count_through[index]),
    )


def accepted_failures(s: Scored, find: Callable[[TieGroups], int]) -> int:
    """Return the number of samples accepted at a vertex whose loss is above zero."""
    index = find(s.events)
    if s.binary and s.counted:
        return int(s.events.loss_through[index]) if index >= 0 else 0
    place = s.home
    return int(np.count_nonzero((s.loss > 0) & (place >= 0) & (place <= index)))


def coverage_of(groups: TieGroups, index: int) -> Measured:
    """Weighted share accepted."""
    weight, _, count = accepted(groups, index)
    return Measured(weight / groups.total, count)


def share_at_vertex(s: Scored, index: int) -> FloatArray:
    """Influence on the coverage of such a threshold."""
    return of_mean(s, inside(s, index))


def inside(s: Scored, index: int) -> FloatArray:
    """Return 1 for the samples that are accepted at a vertex, 0 for the others."""
    return (s.home <= index).astype(np.float64)
