"""The numbers at a vertex, and their influence functions.

At a fixed threshold all of them are functions of four sums: weight and loss accepted, weight and
loss of all. But the threshold is chosen from the data, so it moves: one more accepted sample
raises the coverage there, and the rule answers with another vertex. What that does to the number
is its slope against the coverage (or risk) that was asked for, measured on the data between two
vertices that the same rule picks a little to either side. Where both are the same vertex (a large
tie group, a risk that is least in the interior) the threshold stays, and the slope is 0. For the
selective risk this is the textbook form with the local risk m at the threshold estimated as
``R + c dR/dc``. Where the threshold may jump across a large tie group no slope describes it:
`open_thresholds` says what does.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abstain._foundation.foreign import scalar
from abstain._foundation.measurement import Measured, undefined
from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Scored
from abstain.metrics.influences import of_mean
from abstain.metrics.working_points.effective_samples import accepted_samples
from abstain.metrics.working_points.vertices import (
    accepted,
    at_coverage,
    at_risk,
    coverage_of,
    inside,
    share_at_vertex,
)
from abstain.typing import FloatArray


def selective_risk_of(groups: TieGroups, index: int) -> Measured:
    """Mean loss of the accepted."""
    if index < 0:
        return undefined("nothing is accepted at this threshold")
    risk = scalar(groups.loss_through[index] / groups.through[index])
    return Measured(risk, int(groups.count_through[index]))


def _selective(s: Scored, index: int, taken: FloatArray) -> FloatArray:
    weight, wrong, _ = accepted(s.groups, index)
    return taken * (s.loss - wrong / weight) * (s.groups.total / weight)


def generalized_risk_of(groups: TieGroups, index: int) -> Measured:
    """Loss mass accepted over the weight of all samples."""
    _, wrong, count = accepted(groups, index)
    return Measured(wrong / groups.total, count)


def _generalized(s: Scored, _: int, taken: FloatArray) -> FloatArray:
    return taken * s.loss


def classification_quality_at(groups: TieGroups, index: int) -> Measured:
    """Share accepted and right or rejected and wrong (Condessa et al. 2017, eq. 7)."""
    weight, wrong, count = accepted(groups, index)
    rejected_wrong = scalar(groups.loss_through[-1]) - wrong
    return Measured((weight - wrong + rejected_wrong) / groups.total, count)


def _classified(s: Scored, _: int, taken: FloatArray) -> FloatArray:
    return taken * (1 - 2.0 * s.loss) + s.loss


def _classification_qualities(groups: TieGroups) -> FloatArray:
    """Return `classification_quality_at` of every vertex, but for rounding."""
    right = groups.through - 2 * groups.loss_through + groups.loss_through[-1]
    return np.asarray(right / groups.total)


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


def _rejected(s: Scored, index: int, taken: FloatArray) -> FloatArray:
    """Odds of wrong among the rejected over odds among all: each sum by its share."""
    groups = s.groups
    right = groups.weight - groups.loss
    outside = 1 - taken
    wrong_out, right_out = float(groups.loss[index + 1 :].sum()), float(right[index + 1 :].sum())
    wrong, all_right = float(groups.loss.sum()), float(right.sum())
    if min(wrong, all_right, right_out) <= 0:
        return np.zeros(s.n)
    odds = wrong_out / right_out * (all_right / wrong)
    per_wrong = all_right / (right_out * wrong) * outside - odds / wrong
    per_right = odds * (1 / all_right - outside / right_out)
    out: FloatArray = groups.total * (per_wrong * s.loss + per_right * (1.0 - s.loss))
    return out


def _rejection_qualities(groups: TieGroups) -> FloatArray:
    """Return `rejection_quality_at` of every vertex, but for rounding; NaN where undefined."""
    right = groups.weight - groups.loss
    behind = (np.append(np.cumsum(x[:0:-1])[::-1], 0.0) for x in (groups.loss, right))
    rejected_wrong, rejected_right = behind
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = rejected_wrong / rejected_right
        return np.asarray(odds * (right.sum() / groups.loss.sum()))


@dataclass(frozen=True)
class Quantity:
    """A number at a vertex."""

    #: From tie groups and a vertex to the number.
    at: Callable[[TieGroups, int], Measured]
    #: From cases, a vertex and who is accepted there to the influences at its threshold, held
    #: fixed, but for their mean.
    held: Callable[[Scored, int, FloatArray], FloatArray]
    #: The numbers of all vertices at once, on the host, where vertices of one risk differ in it.
    everywhere: Callable[[TieGroups], FloatArray] | None = None

    def at_vertex(self, s: Scored, index: int) -> FloatArray:
        """Influence on the number at a threshold that is given and does not move."""
        return of_mean(s, self.held(s, index, inside(s, index)))


SELECTIVE_RISK = Quantity(selective_risk_of, _selective)
GENERALIZED_RISK = Quantity(generalized_risk_of, _generalized)
CLASSIFICATION = Quantity(classification_quality_at, _classified, _classification_qualities)
REJECTION = Quantity(rejection_quality_at, _rejected, _rejection_qualities)


def influence_at_coverage(s: Scored, *, quantity: Quantity, share: float) -> FloatArray:
    """Influence on a number at the vertex that keeps a coverage."""
    groups = s.groups
    index = at_coverage(groups, share)
    slope = _slope_in_coverage(groups, share, quantity.at)
    return quantity.at_vertex(s, index) - slope * share_at_vertex(s, index)


def _slope_in_coverage(
    groups: TieGroups, share: float, value: Callable[[TieGroups, int], Measured]
) -> float:
    """Change of the number per coverage, one standard error of the coverage to either side.

    That far the threshold moves by chance, so that a jump to the next tie group counts as often
    as it happens.
    """
    reach = float(np.sqrt(share * (1 - share) / groups.n))
    low, high = max(share - reach, 0.0), min(share + reach, 1.0)
    ends = (at_coverage(groups, low), at_coverage(groups, high))
    coverages = groups.through[list(ends)] / groups.total
    if ends[0] == ends[1] or coverages[0] == coverages[1]:
        return 0.0
    change = value(groups, ends[1]).value - value(groups, ends[0]).value
    return change / (high - low) if np.isfinite(change) else 0.0


def influence_at_risk(s: Scored, *, risk: float) -> FloatArray:
    """Influence on the largest coverage that keeps a risk."""
    groups = s.groups
    index = at_risk(groups, risk)
    if index < 0:
        return np.zeros(s.n)
    slope = _slope_in_risk(s, risk, index)
    return share_at_vertex(s, index) - slope * SELECTIVE_RISK.at_vertex(s, index)


def _slope_in_risk(s: Scored, risk: float, index: int) -> float:
    """Change of the coverage per risk allowed, one standard error of it to either side."""
    groups = s.groups
    accepted = accepted_samples(s, None, risk)
    attained, n = float(accepted.risk[index]), max(float(accepted.n_for_risk[index]), 1.0)
    variance = attained * max(float(accepted.loss[index]) - attained, 0.0)
    reach = max(np.sqrt(variance / n), risk / n)
    low, high = max(risk - reach, 0.0), risk + reach
    ends = [at_risk(groups, low), at_risk(groups, high)]
    covered = [coverage_of(groups, end).value for end in ends]
    return (covered[1] - covered[0]) / (high - low) if high > low else 0.0
