"""Working points: the vertex that each one selects, its numbers and their influence functions.

A vertex is the index of a tie group; -1 means that nothing is accepted.

At a fixed threshold all of them are functions of four sums: weight and loss accepted, weight and
loss of all. But the threshold is chosen from the data, so it moves: one more accepted sample
raises the coverage there, and the rule answers with another vertex. What that does to the number
is its slope against the coverage (or risk) that was asked for, measured on the data between two
vertices that the same rule picks a little to either side. Where both are the same vertex (a large
tie group, a risk that is least in the interior) the threshold stays, and the slope is 0. For the
selective risk this is the textbook form with the local risk m at the threshold estimated as
``R + c dR/dc``. Where the threshold may jump across a large tie group no slope describes it:
`working_points.intervals` says what does.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abstain._foundation.arrays import inner, is_numpy
from abstain._foundation.gradients import as_scalar, without_gradient
from abstain._foundation.measurement import MetricValue, undefined
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups, n_accepted_groups
from abstain.curves.risk_coverage import ROUNDING
from abstain.metrics.influences import mean_influence
from abstain.metrics.small_samples import accepted_samples
from abstain.typing import FloatArray, IntArray, Scalar

#: Samples that are summed at once, so that temporaries stay in the cache.
_BLOCK = 1 << 14


def vertex_at_threshold(groups: TieGroups, threshold: float) -> int:
    """Return the last vertex with confidence >= threshold."""
    return int(n_accepted_groups(groups, threshold)) - 1


def split_at_threshold(s: Scored, threshold: float) -> tuple[TieGroups, int]:
    """Return what reaches a threshold and the rest, as a group each, and the vertex of the first.

    One pass without any order. Elsewhere than on the host all groups, and the last that reaches it.
    """
    if (
        not is_numpy(s.confidence)
        or not is_numpy(s.loss)
        or s.precomputed_groups is not None
        or s.precomputed_merged_groups is not None
    ):
        return s.groups, vertex_at_threshold(s.groups, threshold)
    with np.errstate(over="ignore"):
        at = np.asarray(threshold).astype(s.confidence.dtype)
    sums, lowest = np.zeros((2, 3)), np.full(2, np.inf)
    for start in range(0, s.n_rows, _BLOCK):
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


def vertex_at_coverage(groups: TieGroups, coverage: float, *, first: bool = False) -> int:
    """Return the vertex of least risk (or of least coverage) that keeps the coverage."""
    needed = min_accepted_weight(groups, coverage)
    xp, through = groups.xp, groups.cumulative_weight
    start: int = min(int(xp.count_nonzero(through < needed)), through.shape[0] - 1)
    if first:
        return start
    risk = without_gradient(groups.cumulative_loss[start:]) / through[start:]
    # Of equal risks the largest coverage is the one worth using.
    return start + int(xp.nonzero(risk <= xp.min(risk) * (1 + ROUNDING))[0][-1])


def min_accepted_weight(groups: TieGroups, coverage: float) -> float:
    """Return the weight that a coverage needs."""
    # Coverage is a ratio of sums; a hair of rounding must not cost a whole vertex.
    return coverage * groups.total_weight * (1 - ROUNDING)


def vertices_at_coverages(groups: TieGroups, coverages: FloatArray) -> IntArray:
    """Return `at_coverage` of many coverages, on the host."""
    needed = coverages * groups.total_weight * (1 - ROUNDING)
    start = np.minimum(
        np.searchsorted(groups.cumulative_weight, needed), groups.cumulative_weight.size - 1
    )
    # From the last vertex on: where the least risk so far was first seen.
    risk = (groups.cumulative_loss / groups.cumulative_weight)[::-1]
    least = np.minimum.accumulate(np.append(np.inf, risk[:-1]))
    lower = risk < least * (1 - ROUNDING)
    last = risk.size - 1
    best = last - np.maximum.accumulate(np.where(lower, np.arange(risk.size), 0))
    return np.asarray(best[last - start])


#: A tie group is large from this share on of the range in which a threshold may lie: half a
#: standard error where the range is two to either side.
_LARGE = 1 / 8


def has_large_tie_group(groups: TieGroups, low: float, high: float) -> bool:
    """Tell whether a tie group within a range of coverages is a large part of it."""
    meets = (groups.weight_above < high * groups.total_weight) & (
        groups.cumulative_weight > low * groups.total_weight
    )
    return bool(
        (groups.last_vertex_weight[meets] > _LARGE * (high - low) * groups.total_weight).any()
    )


def vertex_at_risk(groups: TieGroups, max_risk: float) -> int:
    """Return the vertex of largest coverage with selective risk <= max_risk."""
    # As a ratio: 29/100 is the number 0.29, but 0.29 * 100 is less than 29.
    risk = without_gradient(groups.cumulative_loss) / groups.cumulative_weight
    fine = groups.xp.nonzero(risk <= max_risk * (1 + ROUNDING))[0]
    return int(fine[-1]) if fine.shape[0] else -1


def accepted_totals(groups: TieGroups, index: int) -> tuple[float, Scalar, int]:
    """Weight, loss mass and number of the accepted."""
    if index < 0:
        return 0.0, 0.0, 0
    return (
        float(groups.cumulative_weight[index]),
        as_scalar(groups.cumulative_loss[index]),
        int(groups.cumulative_count[index]),
    )


def count_accepted_failures(s: Scored, find_vertex: Callable[[TieGroups], int]) -> int:
    """Return the number of samples accepted at a vertex whose loss is above zero."""
    index = find_vertex(s.merged_groups)
    if s.is_binary and s.has_unit_weights:
        return int(s.merged_groups.cumulative_loss[index]) if index >= 0 else 0
    place = s.group_index
    return int(np.count_nonzero((s.loss > 0) & (place >= 0) & (place <= index)))


def coverage_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Weighted share accepted."""
    weight, _, count = accepted_totals(groups, index)
    return MetricValue(weight / groups.total_weight, count)


def coverage_influence(s: Scored, index: int) -> FloatArray:
    """Influence on the coverage of such a threshold."""
    return mean_influence(s, accepted_indicator(s, index))


def accepted_indicator(s: Scored, index: int) -> FloatArray:
    """Return 1 for the samples that are accepted at a vertex, 0 for the others."""
    return (s.group_index <= index).astype(np.float64)


def selective_risk_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Mean loss of the accepted."""
    if index < 0:
        return undefined("nothing is accepted at this threshold")
    risk = as_scalar(groups.cumulative_loss[index] / groups.cumulative_weight[index])
    return MetricValue(risk, int(groups.cumulative_count[index]))


def _selective_risk_influence(s: Scored, index: int, taken: FloatArray) -> FloatArray:
    weight, wrong, _ = accepted_totals(s.groups, index)
    return taken * (s.loss - wrong / weight) * (s.groups.total_weight / weight)


def generalized_risk_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Loss mass accepted over the weight of all samples."""
    _, wrong, count = accepted_totals(groups, index)
    return MetricValue(wrong / groups.total_weight, count)


def _generalized_risk_influence(s: Scored, _: int, taken: FloatArray) -> FloatArray:
    return taken * s.loss


def classification_quality_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Share accepted and right or rejected and wrong (Condessa et al. 2017, eq. 7)."""
    weight, wrong, count = accepted_totals(groups, index)
    rejected_wrong = as_scalar(groups.cumulative_loss[-1]) - wrong
    return MetricValue((weight - wrong + rejected_wrong) / groups.total_weight, count)


def _classification_quality_influence(s: Scored, _: int, taken: FloatArray) -> FloatArray:
    return taken * (1 - 2.0 * s.loss) + s.loss


def _classification_quality_at_all_vertices(groups: TieGroups) -> FloatArray:
    """Return `classification_quality_at` of every vertex, but for rounding."""
    right = groups.cumulative_weight - 2 * groups.cumulative_loss + groups.cumulative_loss[-1]
    return np.asarray(right / groups.total_weight)


def rejection_quality_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Odds of wrong among the rejected over odds of wrong among all (eq. 9)."""
    count = accepted_totals(groups, index)[2]
    right = groups.weight - groups.loss
    # Summed over the rejected: a difference of sums would leave rounding where nothing is.
    rejected_wrong = as_scalar(groups.xp.sum(groups.loss[index + 1 :]))
    rejected_right = as_scalar(groups.xp.sum(right[index + 1 :]))
    all_wrong, all_right = as_scalar(groups.xp.sum(groups.loss)), as_scalar(groups.xp.sum(right))
    if all_wrong <= 0:
        return undefined("no sample is wrong")
    if all_right <= 0:
        return undefined("every sample is wrong")
    if groups.n_samples == count:
        return undefined("nothing is rejected at this working point")
    if rejected_right <= 0:
        return MetricValue(float("inf"), count)
    return MetricValue((rejected_wrong / rejected_right) * (all_right / all_wrong), count)


def _rejection_quality_influence(s: Scored, index: int, taken: FloatArray) -> FloatArray:
    """Odds of wrong among the rejected over odds among all: each sum by its share."""
    groups = s.groups
    right = groups.weight - groups.loss
    outside = 1 - taken
    wrong_out, right_out = float(groups.loss[index + 1 :].sum()), float(right[index + 1 :].sum())
    wrong, all_right = float(groups.loss.sum()), float(right.sum())
    if min(wrong, all_right, right_out) <= 0:
        return np.zeros(s.n_rows)
    odds = wrong_out / right_out * (all_right / wrong)
    per_wrong = all_right / (right_out * wrong) * outside - odds / wrong
    per_right = odds * (1 / all_right - outside / right_out)
    out: FloatArray = groups.total_weight * (per_wrong * s.loss + per_right * (1.0 - s.loss))
    return out


def _rejection_quality_at_all_vertices(groups: TieGroups) -> FloatArray:
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
    value_at_vertex: Callable[[TieGroups, int], MetricValue]
    #: From cases, a vertex and who is accepted there to the influences at its threshold, held
    #: fixed, but for their mean.
    uncentered_influence: Callable[[Scored, int, FloatArray], FloatArray]
    #: The numbers of all vertices at once, on the host, where vertices of one risk differ in it.
    values_at_all_vertices: Callable[[TieGroups], FloatArray] | None = None

    def influence_at_vertex(self, s: Scored, index: int) -> FloatArray:
        """Influence on the number at a threshold that is given and does not move."""
        return mean_influence(s, self.uncentered_influence(s, index, accepted_indicator(s, index)))


SELECTIVE_RISK = Quantity(selective_risk_at_vertex, _selective_risk_influence)
GENERALIZED_RISK = Quantity(generalized_risk_at_vertex, _generalized_risk_influence)
CLASSIFICATION_QUALITY = Quantity(
    classification_quality_at_vertex,
    _classification_quality_influence,
    _classification_quality_at_all_vertices,
)
REJECTION_QUALITY = Quantity(
    rejection_quality_at_vertex, _rejection_quality_influence, _rejection_quality_at_all_vertices
)


def influence_at_coverage(s: Scored, *, quantity: Quantity, coverage: float) -> FloatArray:
    """Influence on a number at the vertex that keeps a coverage."""
    groups = s.groups
    index = vertex_at_coverage(groups, coverage)
    slope = _slope_in_coverage(groups, coverage, quantity.value_at_vertex)
    return quantity.influence_at_vertex(s, index) - slope * coverage_influence(s, index)


def _slope_in_coverage(
    groups: TieGroups, share: float, value: Callable[[TieGroups, int], MetricValue]
) -> float:
    """Change of the number per coverage, one standard error of the coverage to either side.

    That far the threshold moves by chance, so that a jump to the next tie group counts as often
    as it happens.
    """
    reach = float(np.sqrt(share * (1 - share) / groups.n_samples))
    low, high = max(share - reach, 0.0), min(share + reach, 1.0)
    ends = (vertex_at_coverage(groups, low), vertex_at_coverage(groups, high))
    coverages = groups.cumulative_weight[list(ends)] / groups.total_weight
    if ends[0] == ends[1] or coverages[0] == coverages[1]:
        return 0.0
    change = value(groups, ends[1]).value - value(groups, ends[0]).value
    return change / (high - low) if np.isfinite(change) else 0.0


def influence_at_risk(s: Scored, *, max_risk: float) -> FloatArray:
    """Influence on the largest coverage that keeps a risk."""
    groups = s.groups
    index = vertex_at_risk(groups, max_risk)
    if index < 0:
        return np.zeros(s.n_rows)
    slope = _slope_in_risk(s, max_risk, index)
    return coverage_influence(s, index) - slope * SELECTIVE_RISK.influence_at_vertex(s, index)


def _slope_in_risk(s: Scored, risk: float, index: int) -> float:
    """Change of the coverage per risk allowed, one standard error of it to either side."""
    groups = s.groups
    accepted = accepted_samples(s, None, risk)
    attained, n = float(accepted.risk[index]), max(float(accepted.n_for_risk[index]), 1.0)
    variance = attained * max(float(accepted.loss[index]) - attained, 0.0)
    reach = max(np.sqrt(variance / n), risk / n)
    low, high = max(risk - reach, 0.0), risk + reach
    ends = [vertex_at_risk(groups, low), vertex_at_risk(groups, high)]
    covered = [coverage_at_vertex(groups, end).value for end in ends]
    return (covered[1] - covered[0]) / (high - low) if high > low else 0.0
