"""Kernels of the working points: which vertex, and what holds there.

A vertex is the index of a tie group; -1 means that nothing is accepted.
"""

import numpy as np

from abstain._foundation.foreign import scalar, without_gradient
from abstain._foundation.ranks import TieGroups, reached
from abstain._foundation.scored import Measured, undefined
from abstain.curves.risk_coverage import ROUNDING
from abstain.typing import FloatArray, IntArray, Scalar


def at_threshold(groups: TieGroups, threshold: float) -> int:
    """Return the last vertex with confidence >= threshold."""
    return int(reached(groups, threshold)) - 1


def at_coverage(groups: TieGroups, coverage: float, *, first: bool = False) -> int:
    """Return the vertex of least risk (or of least coverage) that keeps the coverage."""
    # Coverage is a ratio of sums; a hair of rounding must not cost a whole vertex.
    needed = coverage * groups.total * (1 - ROUNDING)
    xp, through = groups.xp, groups.through
    start: int = min(int(xp.count_nonzero(through < needed)), through.shape[0] - 1)
    if first:
        return start
    risk = without_gradient(groups.loss_through[start:]) / through[start:]
    # Of equal risks the largest coverage is the one worth using.
    return start + int(xp.nonzero(risk <= xp.min(risk) * (1 + ROUNDING))[0][-1])


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
    return bool((groups.weight[meets] > _LARGE * (high - low) * groups.total).any())


def at_risk(groups: TieGroups, max_risk: float) -> int:
    """Return the vertex of largest coverage with selective risk <= max_risk."""
    # As a ratio: 29/100 is the number 0.29, but 0.29 * 100 is less than 29.
    risk = without_gradient(groups.loss_through) / groups.through
    fine = groups.xp.nonzero(risk <= max_risk * (1 + ROUNDING))[0]
    return int(fine[-1]) if fine.shape[0] else -1


def selective_risk_of(groups: TieGroups, index: int) -> Measured:
    """Mean loss of the accepted."""
    if index < 0:
        return undefined("nothing is accepted at this threshold")
    risk = scalar(groups.loss_through[index] / groups.through[index])
    return Measured(risk, int(groups.count_through[index]))


def generalized_risk_of(groups: TieGroups, index: int) -> Measured:
    """Loss mass accepted over the weight of all samples."""
    _, wrong, count = accepted(groups, index)
    return Measured(wrong / groups.total, count)


def coverage_of(groups: TieGroups, index: int) -> Measured:
    """Weighted share accepted."""
    weight, _, count = accepted(groups, index)
    return Measured(weight / groups.total, count)


def accepted(groups: TieGroups, index: int) -> tuple[float, Scalar, int]:
    """Weight, loss mass and number of the accepted."""
    if index < 0:
        return 0.0, 0.0, 0
    return (
        float(groups.through[index]),
        scalar(groups.loss_through[index]),
        int(groups.count_through[index]),
    )


def classification_quality_at(groups: TieGroups, index: int) -> Measured:
    """Share accepted and right or rejected and wrong (Condessa et al. 2017, eq. 7)."""
    weight, wrong, count = accepted(groups, index)
    rejected_wrong = scalar(groups.loss_through[-1]) - wrong
    return Measured((weight - wrong + rejected_wrong) / groups.total, count)


def _classification_qualities(groups: TieGroups) -> FloatArray:
    """Return `classification_quality_at` of every vertex, but for rounding."""
    right = groups.through - 2 * groups.loss_through + groups.loss_through[-1]
    return np.asarray(right / groups.total)


def _rejection_qualities(groups: TieGroups) -> FloatArray:
    """Return `rejection_quality_at` of every vertex, but for rounding; NaN where undefined."""
    right = groups.weight - groups.loss
    behind = (np.append(np.cumsum(x[:0:-1])[::-1], 0.0) for x in (groups.loss, right))
    rejected_wrong, rejected_right = behind
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = rejected_wrong / rejected_right
        return np.asarray(odds * (right.sum() / groups.loss.sum()))


#: Numbers that differ between vertices of one risk, of all vertices at once, on the host.
BY_REJECTED = {
    "classification_quality": _classification_qualities,
    "rejection_quality": _rejection_qualities,
}


def rejection_quality_at(groups: TieGroups, index: int) -> Measured:
    """Odds of wrong among the rejected over odds of wrong among all (eq. 9)."""
    count = accepted(groups, index)[2]
    right = groups.weight - groups.loss
    # Summed over the rejected: a difference of sums would leave rounding where nothing is.
    rejected_wrong = scalar(groups.xp.sum(groups.loss[index + 1 :]))
    rejected_right = scalar(groups.xp.sum(right[index + 1 :]))
    all_wrong, all_right = scalar(groups.xp.sum(groups.loss)), scalar(groups.xp.sum(right))
    if all_wrong <= 0:
        return undefined("no sample is wrong")
    if all_right <= 0:
        return undefined("every sample is wrong")
    if groups.n == count:
        return undefined("nothing is rejected at this working point")
    if rejected_right <= 0:
        return Measured(float("inf"), count)
    return Measured((rejected_wrong / rejected_right) * (all_right / all_wrong), count)
