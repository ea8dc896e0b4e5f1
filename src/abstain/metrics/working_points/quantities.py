"""Selection of vertices at working points, and metrics of a vertex with influence functions.

A vertex is the index of a tie group. The vertex -1 accepts no sample.

At a fixed threshold, every metric is a function of the weight and the loss of the accepted samples
and of all samples. However, the threshold is selected from the data. One more accepted sample
raises the coverage, so the rule selects another vertex. The resulting change of the metric is its
slope with respect to the requested coverage or risk. The same rule selects two vertices for
slightly smaller and larger targets, and the slope is estimated between these vertices. If both
vertices are equal, the threshold does not move and the slope is 0. Both vertices are equal in a
large tie group, or if the risk has a minimum in the interior. For the selective risk, the result is
the textbook formula, in which ``R + c dR/dc`` estimates the local risk at the threshold. If the
threshold can jump across a large tie group, no slope describes its error. The module
`working_points.intervals` handles this case.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abstain._foundation.arrays import as_scalar, inner, is_numpy, without_gradient
from abstain._foundation.scored import MetricValue, Scored, undefined
from abstain._foundation.tie_groups import TieGroups, n_accepted_groups
from abstain.curves.risk_coverage import ROUNDING
from abstain.metrics.influences import mean_influence
from abstain.metrics.small_samples import accepted_samples
from abstain.typing import FloatArray, IntArray, Scalar

#: Number of samples that are summed at once, so that temporary arrays fit in the cache.
_BLOCK = 1 << 14


def vertex_at_threshold(groups: TieGroups, threshold: float) -> int:
    """Return the last vertex with confidence >= threshold."""
    return int(n_accepted_groups(groups, threshold)) - 1


def split_at_threshold(s: Scored, threshold: float) -> tuple[TieGroups, int]:
    """Return one group of accepted and one of rejected samples, and the accepted vertex.

    The function requires one pass and no sort. For other array libraries and for precomputed
    groups, it returns all tie groups and the last accepted vertex.
    """
    has_groups = s.precomputed_groups is not None or s.precomputed_merged_groups is not None
    if has_groups or not is_numpy(s.confidence) or not is_numpy(s.loss):
        return s.groups, vertex_at_threshold(s.groups, threshold)
    with np.errstate(over="ignore"):
        threshold_in_dtype = np.asarray(threshold).astype(s.confidence.dtype)
    # The rows are the accepted and the rejected samples. The columns are count, weight and loss.
    sums = np.zeros((2, 3))
    min_confidence = np.full(2, np.inf)
    for start in range(0, s.n_rows, _BLOCK):
        rows = slice(start, start + _BLOCK)
        confidence, loss = s.confidence[rows], s.loss[rows].astype(np.float64)
        weight = np.ones(loss.size) if s.weight is None else s.weight[rows]
        is_accepted = confidence >= threshold_in_dtype
        for k, mask in enumerate((is_accepted & (weight > 0), ~is_accepted & (weight > 0))):
            masked_weight = weight * mask
            sums[k] += np.count_nonzero(mask), masked_weight.sum(), inner(masked_weight, loss)
            block_min = np.where(mask, confidence, np.inf).min()
            min_confidence[k] = min(min_confidence[k], block_min)
    is_nonempty = sums[:, 0] > 0
    count, weight, loss = sums[is_nonempty].T
    groups = TieGroups(min_confidence[is_nonempty], weight, loss, count.astype(np.int64))
    return groups, 0 if is_nonempty[0] else -1


def vertex_at_coverage(groups: TieGroups, coverage: float, *, first: bool = False) -> int:
    """Return the vertex of minimum risk with at least this coverage.

    If `first` is True, return the vertex with the smallest coverage that is at least this coverage.
    """
    xp, through = groups.xp, groups.cumulative_weight
    n_too_small = int(xp.count_nonzero(through < min_accepted_weight(groups, coverage)))
    start = min(n_too_small, int(through.shape[0]) - 1)
    if first:
        return start
    risk = without_gradient(groups.cumulative_loss[start:]) / through[start:]
    # Among vertices of equal risk, the vertex of largest coverage is selected.
    return start + int(xp.nonzero(risk <= xp.min(risk) * (1 + ROUNDING))[0][-1])


def min_accepted_weight(groups: TieGroups, coverage: float) -> float:
    """Return the accepted weight that a coverage requires, with a tolerance for rounding."""
    return coverage * groups.total_weight * (1 - ROUNDING)


def vertices_at_coverages(groups: TieGroups, coverages: FloatArray) -> IntArray:
    """Return the result of `vertex_at_coverage` for each coverage; NumPy only."""
    required_weight = coverages * groups.total_weight * (1 - ROUNDING)
    last = groups.cumulative_weight.size - 1
    first_vertex = np.minimum(np.searchsorted(groups.cumulative_weight, required_weight), last)
    # The scan goes from the last vertex to the first and stores the index of the running minimum.
    risk = (groups.cumulative_loss / groups.cumulative_weight)[::-1]
    previous_min = np.minimum.accumulate(np.append(np.inf, risk[:-1]))
    is_new_min = risk < previous_min * (1 - ROUNDING)
    index_of_min = np.maximum.accumulate(np.where(is_new_min, np.arange(risk.size), 0))
    vertex_of_min = last - index_of_min
    return np.asarray(vertex_of_min[last - first_vertex])


#: Minimum share of the range of plausible thresholds that makes a tie group large. The share is
#: half a standard error if the range extends two standard errors to each side.
_LARGE = 1 / 8


def has_large_tie_group(groups: TieGroups, low: float, high: float) -> bool:
    """Return whether a range of coverages contains a tie group that is large."""
    is_in_range = (groups.weight_above < high * groups.total_weight) & (
        groups.cumulative_weight > low * groups.total_weight
    )
    min_weight = _LARGE * (high - low) * groups.total_weight
    return bool((groups.last_vertex_weight[is_in_range] > min_weight).any())


def vertex_at_risk(groups: TieGroups, max_risk: float) -> int:
    """Return the vertex of largest coverage with selective risk <= max_risk."""
    # Ratios are compared, because 29/100 equals 0.29 in floating point but 0.29 * 100 is below 29.
    risk = without_gradient(groups.cumulative_loss) / groups.cumulative_weight
    candidates = groups.xp.nonzero(risk <= max_risk * (1 + ROUNDING))[0]
    return int(candidates[-1]) if candidates.shape[0] else -1


def accepted_totals(groups: TieGroups, index: int) -> tuple[float, Scalar, int]:
    """Return the weight, the loss and the number of the accepted samples."""
    if index < 0:
        return 0.0, 0.0, 0
    loss = as_scalar(groups.cumulative_loss[index])
    return float(groups.cumulative_weight[index]), loss, int(groups.cumulative_count[index])


def count_accepted_failures(s: Scored, index: int) -> int:
    """Return the number of samples with a loss above 0 that are accepted at a vertex."""
    if s.is_binary and s.has_unit_weights:
        return int(s.merged_groups.cumulative_loss[index]) if index >= 0 else 0
    group = s.group_index
    return int(np.count_nonzero((s.loss > 0) & (group >= 0) & (group <= index)))


def coverage_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Return the coverage of a vertex."""
    weight, _, count = accepted_totals(groups, index)
    return MetricValue(weight / groups.total_weight, count)


def coverage_influence(s: Scored, index: int) -> FloatArray:
    """Return the influence on the coverage at a fixed threshold."""
    return mean_influence(s, accepted_indicator(s, index))


def accepted_indicator(s: Scored, index: int) -> FloatArray:
    """Return 1 for accepted samples and 0 for rejected samples."""
    return (s.group_index <= index).astype(np.float64)


def selective_risk_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Return the mean loss of the accepted samples."""
    if index < 0:
        return undefined("no sample is accepted at this threshold")
    risk = as_scalar(groups.cumulative_loss[index] / groups.cumulative_weight[index])
    return MetricValue(risk, int(groups.cumulative_count[index]))


def _selective_risk_influence(s: Scored, index: int, is_accepted: FloatArray) -> FloatArray:
    weight, accepted_loss, _ = accepted_totals(s.groups, index)
    return is_accepted * (s.loss - accepted_loss / weight) * (s.groups.total_weight / weight)


def generalized_risk_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Return the loss of the accepted samples divided by the weight of all samples."""
    _, accepted_loss, count = accepted_totals(groups, index)
    return MetricValue(accepted_loss / groups.total_weight, count)


def _generalized_risk_influence(s: Scored, _: int, is_accepted: FloatArray) -> FloatArray:
    return is_accepted * s.loss


def classification_quality_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Return the share of samples that are correct and accepted, or wrong and rejected."""
    weight, accepted_loss, count = accepted_totals(groups, index)
    rejected_loss = as_scalar(groups.cumulative_loss[-1]) - accepted_loss
    return MetricValue((weight - accepted_loss + rejected_loss) / groups.total_weight, count)


def _classification_quality_influence(s: Scored, _: int, is_accepted: FloatArray) -> FloatArray:
    return is_accepted * (1 - 2.0 * s.loss) + s.loss


def _classification_quality_at_all_vertices(groups: TieGroups) -> FloatArray:
    """Return the classification quality at every vertex, up to rounding."""
    rejected_loss = groups.cumulative_loss[-1] - groups.cumulative_loss
    accepted_successes = groups.cumulative_weight - groups.cumulative_loss
    return np.asarray((accepted_successes + rejected_loss) / groups.total_weight)


def rejection_quality_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Return the odds of failure of rejected samples divided by the odds of all samples (eq. 9)."""
    count = accepted_totals(groups, index)[2]
    successes = groups.weight - groups.loss
    # The sums are over the rejected samples, because a difference of sums has rounding errors.
    rejected_failures = as_scalar(groups.xp.sum(groups.loss[index + 1 :]))
    rejected_successes = as_scalar(groups.xp.sum(successes[index + 1 :]))
    all_failures = as_scalar(groups.xp.sum(groups.loss))
    all_successes = as_scalar(groups.xp.sum(successes))
    if all_failures <= 0:
        return undefined("no sample fails")
    if all_successes <= 0:
        return undefined("every sample fails")
    if groups.n_samples == count:
        return undefined("no sample is rejected at this working point")
    if rejected_successes <= 0:
        return MetricValue(float("inf"), count)
    odds_ratio = (rejected_failures / rejected_successes) * (all_successes / all_failures)
    return MetricValue(odds_ratio, count)


def _rejection_quality_influence(s: Scored, index: int, is_accepted: FloatArray) -> FloatArray:
    """Return the influence on the odds of rejected samples divided by the odds of all samples."""
    groups = s.groups
    successes = groups.weight - groups.loss
    rejected_failures = float(groups.loss[index + 1 :].sum())
    rejected_successes = float(successes[index + 1 :].sum())
    failures, all_successes = float(groups.loss.sum()), float(successes.sum())
    if min(failures, all_successes, rejected_successes) <= 0:
        return np.zeros(s.n_rows)
    odds_ratio = rejected_failures / rejected_successes * (all_successes / failures)
    is_rejected = 1 - is_accepted
    on_failure = all_successes / (rejected_successes * failures) * is_rejected
    on_failure = on_failure - odds_ratio / failures
    on_success = odds_ratio * (1 / all_successes - is_rejected / rejected_successes)
    return np.asarray(groups.total_weight * (on_failure * s.loss + on_success * (1.0 - s.loss)))


def _rejection_quality_at_all_vertices(groups: TieGroups) -> FloatArray:
    """Return the rejection quality at every vertex, up to rounding, or NaN if undefined."""
    successes = groups.weight - groups.loss
    rejected_failures = np.append(np.cumsum(groups.loss[:0:-1])[::-1], 0.0)
    rejected_successes = np.append(np.cumsum(successes[:0:-1])[::-1], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = rejected_failures / rejected_successes
        return np.asarray(odds * (successes.sum() / groups.loss.sum()))


@dataclass(frozen=True)
class Quantity:
    """A metric at a vertex."""

    #: Function of tie groups and a vertex that returns the value.
    value_at_vertex: Callable[[TieGroups, int], MetricValue]
    #: Function of samples, a vertex and the indicator of acceptance. The function returns the
    #: influences at a fixed threshold, up to a constant.
    uncentered_influence: Callable[[Scored, int, FloatArray], FloatArray]
    #: Function that returns the values at all vertices. None if vertices of equal risk have equal
    #: values.
    values_at_all_vertices: Callable[[TieGroups], FloatArray] | None = None

    def influence_at_vertex(self, s: Scored, index: int) -> FloatArray:
        """Return the influence on the value at a fixed threshold."""
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
    """Return the influence on a metric at the vertex selected for a coverage."""
    groups = s.groups
    index = vertex_at_coverage(groups, coverage)
    slope = _slope_in_coverage(groups, coverage, quantity.value_at_vertex)
    return quantity.influence_at_vertex(s, index) - slope * coverage_influence(s, index)


def _slope_in_coverage(
    groups: TieGroups, share: float, value: Callable[[TieGroups, int], MetricValue]
) -> float:
    """Return the slope of a metric within one standard error of the coverage on each side.

    The threshold varies randomly in this range, so the probability of a jump to the next tie group
    determines the weight of the jump.
    """
    standard_error = float(np.sqrt(share * (1 - share) / groups.n_samples))
    low, high = max(share - standard_error, 0.0), min(share + standard_error, 1.0)
    vertices = (vertex_at_coverage(groups, low), vertex_at_coverage(groups, high))
    coverages = groups.cumulative_weight[list(vertices)] / groups.total_weight
    if vertices[0] == vertices[1] or coverages[0] == coverages[1]:
        return 0.0
    change = value(groups, vertices[1]).value - value(groups, vertices[0]).value
    return change / (high - low) if np.isfinite(change) else 0.0


def influence_at_risk(s: Scored, *, max_risk: float) -> FloatArray:
    """Return the influence on the largest coverage with at most this risk."""
    groups = s.groups
    index = vertex_at_risk(groups, max_risk)
    if index < 0:
        return np.zeros(s.n_rows)
    slope = _slope_in_risk(s, max_risk, index)
    return coverage_influence(s, index) - slope * SELECTIVE_RISK.influence_at_vertex(s, index)


def _slope_in_risk(s: Scored, risk: float, index: int) -> float:
    """Return the slope of the coverage within one standard error of the risk on each side."""
    groups = s.groups
    accepted = accepted_samples(s, None, risk)
    selective_risk = float(accepted.risk[index])
    n_effective = max(float(accepted.n_for_risk[index]), 1.0)
    variance = selective_risk * max(float(accepted.loss[index]) - selective_risk, 0.0)
    step = max(np.sqrt(variance / n_effective), risk / n_effective)
    low, high = max(risk - step, 0.0), risk + step
    vertices = [vertex_at_risk(groups, low), vertex_at_risk(groups, high)]
    coverages = [coverage_at_vertex(groups, vertex).value for vertex in vertices]
    return (coverages[1] - coverages[0]) / (high - low) if high > low else 0.0
