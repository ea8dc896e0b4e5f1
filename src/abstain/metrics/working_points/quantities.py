"""Selection of thresholds at working points, metrics at a threshold, and influence functions.

A threshold is the confidence of a tie group. In this package, a vertex is the index of the tie
group of the threshold. The vertex -1 accepts no sample.

The threshold is selected from the data, so an additional accepted sample can move the threshold.
The influence on a metric is therefore the influence at a fixed threshold minus a slope times the
influence on the coverage or the risk. The slope is estimated from the thresholds for a slightly
smaller and a slightly larger target. The module `working_points.intervals` handles thresholds that
can jump across a large tie group, at which metrics have no slope.
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
    """Return the index of the last tie group with confidence >= threshold, or -1 if none exists."""
    return int(n_accepted_groups(groups, threshold)) - 1


def split_at_threshold(s: Scored, threshold: float) -> tuple[TieGroups, int]:
    """Return tie groups that contain the threshold, and the index of the last accepted group.

    For NumPy arrays, there is one group of accepted and one group of rejected samples, which
    requires no sort.
    """
    has_groups = s.precomputed_groups is not None or s.precomputed_merged_groups is not None
    if has_groups or not is_numpy(s.confidence) or not is_numpy(s.loss):
        return s.groups, vertex_at_threshold(s.groups, threshold)
    with np.errstate(over="ignore"):
        threshold_in_dtype = np.asarray(threshold).astype(s.confidence.dtype)
    # Entry 0 of these arrays is for the accepted samples, and entry 1 for the rejected samples.
    count = np.zeros(2)
    weight_sum = np.zeros(2)
    loss_sum = np.zeros(2)
    min_confidence = np.full(2, np.inf)
    for start in range(0, s.n_rows, _BLOCK):
        block = slice(start, start + _BLOCK)
        confidence = s.confidence[block]
        loss = s.loss[block].astype(np.float64)
        weight = np.ones(loss.size) if s.weight is None else s.weight[block]
        has_weight = weight > 0
        is_accepted = confidence >= threshold_in_dtype
        for k, mask in enumerate((is_accepted & has_weight, ~is_accepted & has_weight)):
            masked_weight = weight * mask
            count[k] += np.count_nonzero(mask)
            weight_sum[k] += masked_weight.sum()
            loss_sum[k] += inner(masked_weight, loss)
            block_min = np.where(mask, confidence, np.inf).min()
            min_confidence[k] = min(min_confidence[k], block_min)
    is_nonempty = count > 0
    groups = TieGroups(
        min_confidence[is_nonempty],
        weight_sum[is_nonempty],
        loss_sum[is_nonempty],
        count[is_nonempty].astype(np.int64),
    )
    return groups, 0 if is_nonempty[0] else -1


def vertex_at_coverage(groups: TieGroups, coverage: float, *, first: bool = False) -> int:
    """Return the vertex of the threshold of minimum risk with at least this coverage.

    If `first` is True, return the vertex of the threshold of smallest sufficient coverage.
    """
    xp = groups.xp
    accepted_weight = groups.cumulative_weight
    has_too_low_coverage = accepted_weight < min_accepted_weight(groups, coverage)
    n_too_low = int(xp.count_nonzero(has_too_low_coverage))
    start = min(n_too_low, int(accepted_weight.shape[0]) - 1)
    if first:
        return start
    risk = without_gradient(groups.cumulative_loss[start:]) / accepted_weight[start:]
    # Among vertices of equal risk, the vertex of largest coverage is selected.
    has_min_risk = risk <= xp.min(risk) * (1 + ROUNDING)
    return start + int(xp.nonzero(has_min_risk)[0][-1])


def min_accepted_weight(groups: TieGroups, coverage: float) -> float:
    """Return the minimum accepted weight at a coverage, minus a tolerance for rounding errors."""
    return coverage * groups.total_weight * (1 - ROUNDING)


def vertices_at_coverages(groups: TieGroups, coverages: FloatArray) -> IntArray:
    """Return the result of `vertex_at_coverage` for each coverage (NumPy only)."""
    required_weight = coverages * groups.total_weight * (1 - ROUNDING)
    last_vertex = groups.cumulative_weight.size - 1
    first_vertex = np.searchsorted(groups.cumulative_weight, required_weight)
    first_vertex = np.minimum(first_vertex, last_vertex)
    # The scan goes from the last vertex to the first and stores the index of the running minimum.
    reversed_risk = (groups.cumulative_loss / groups.cumulative_weight)[::-1]
    previous_min = np.minimum.accumulate(np.append(np.inf, reversed_risk[:-1]))
    is_new_min = reversed_risk < previous_min * (1 - ROUNDING)
    index_of_new_min = np.where(is_new_min, np.arange(reversed_risk.size), 0)
    vertex_of_min = last_vertex - np.maximum.accumulate(index_of_new_min)
    return np.asarray(vertex_of_min[last_vertex - first_vertex])


#: Minimum share of the range of plausible coverages that makes a tie group large. The share is half
#: a standard error if the range extends two standard errors to each side.
_LARGE = 1 / 8


def has_large_tie_group(groups: TieGroups, low: float, high: float) -> bool:
    """Return whether a tie group contains a large share of a range of coverages."""
    starts_before_end = groups.weight_above < high * groups.total_weight
    ends_after_start = groups.cumulative_weight > low * groups.total_weight
    is_in_range = starts_before_end & ends_after_start
    min_weight = _LARGE * (high - low) * groups.total_weight
    return bool((groups.last_vertex_weight[is_in_range] > min_weight).any())


def vertex_at_risk(groups: TieGroups, max_risk: float) -> int:
    """Return the index of the last tie group with selective risk <= max_risk, or -1 if none."""
    # Ratios are compared, because 29/100 equals 0.29 in floating point but 0.29 * 100 is below 29.
    risk = without_gradient(groups.cumulative_loss) / groups.cumulative_weight
    candidates = groups.xp.nonzero(risk <= max_risk * (1 + ROUNDING))[0]
    return int(candidates[-1]) if candidates.shape[0] else -1


def accepted_totals(groups: TieGroups, index: int) -> tuple[float, Scalar, int]:
    """Return the weight, the loss and the number of the samples in the first `index` + 1 groups."""
    if index < 0:
        return 0.0, 0.0, 0
    weight = float(groups.cumulative_weight[index])
    loss = as_scalar(groups.cumulative_loss[index])
    return weight, loss, int(groups.cumulative_count[index])


def count_accepted_failures(s: Scored, index: int) -> int:
    """Return the number of samples with a loss above 0 in the first `index` + 1 tie groups."""
    if s.is_binary and s.has_unit_weights:
        return int(s.merged_groups.cumulative_loss[index]) if index >= 0 else 0
    is_accepted = (s.group_index >= 0) & (s.group_index <= index)
    return int(np.count_nonzero((s.loss > 0) & is_accepted))


def coverage_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Return the weighted share of the samples that a threshold accepts."""
    weight, _, count = accepted_totals(groups, index)
    return MetricValue(weight / groups.total_weight, count)


def coverage_influence(s: Scored, index: int) -> FloatArray:
    """Return the influence of each sample on the coverage at a fixed threshold."""
    return mean_influence(s, accepted_indicator(s, index))


def accepted_indicator(s: Scored, index: int) -> FloatArray:
    """Return 1 for each sample that a threshold accepts and 0 for each other sample."""
    return (s.group_index <= index).astype(np.float64)


def selective_risk_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Return the mean loss of the samples that a threshold accepts."""
    if index < 0:
        return undefined("no sample is accepted at this threshold")
    risk = as_scalar(groups.cumulative_loss[index] / groups.cumulative_weight[index])
    return MetricValue(risk, int(groups.cumulative_count[index]))


def _selective_risk_influence(s: Scored, index: int, is_accepted: FloatArray) -> FloatArray:
    weight, accepted_loss, _ = accepted_totals(s.groups, index)
    return is_accepted * (s.loss - accepted_loss / weight) * (s.groups.total_weight / weight)


def generalized_risk_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Return the total loss of the accepted samples divided by the weight of all samples."""
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
    """Return the classification quality at every threshold, up to rounding."""
    rejected_loss = groups.cumulative_loss[-1] - groups.cumulative_loss
    accepted_successes = groups.cumulative_weight - groups.cumulative_loss
    return np.asarray((accepted_successes + rejected_loss) / groups.total_weight)


def rejection_quality_at_vertex(groups: TieGroups, index: int) -> MetricValue:
    """Return the odds of failure of rejected samples divided by the odds of all samples (eq. 9)."""
    _, _, count = accepted_totals(groups, index)
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
    """Return the influence of each sample on the rejection quality, up to a constant."""
    groups = s.groups
    successes = groups.weight - groups.loss
    rejected_failures = float(groups.loss[index + 1 :].sum())
    rejected_successes = float(successes[index + 1 :].sum())
    all_failures = float(groups.loss.sum())
    all_successes = float(successes.sum())
    if min(all_failures, all_successes, rejected_successes) <= 0:
        return np.zeros(s.n_rows)
    odds_ratio = rejected_failures / rejected_successes * (all_successes / all_failures)
    is_rejected = 1 - is_accepted
    on_failure = all_successes / (rejected_successes * all_failures) * is_rejected
    on_failure = on_failure - odds_ratio / all_failures
    on_success = odds_ratio * (1 / all_successes - is_rejected / rejected_successes)
    return np.asarray(groups.total_weight * (on_failure * s.loss + on_success * (1.0 - s.loss)))


def _rejection_quality_at_all_vertices(groups: TieGroups) -> FloatArray:
    """Return the rejection quality at every threshold, up to rounding, or NaN if undefined."""
    successes = groups.weight - groups.loss
    rejected_failures = np.append(np.cumsum(groups.loss[:0:-1])[::-1], 0.0)
    rejected_successes = np.append(np.cumsum(successes[:0:-1])[::-1], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = rejected_failures / rejected_successes
        return np.asarray(odds * (successes.sum() / groups.loss.sum()))


@dataclass(frozen=True)
class Quantity:
    """A metric that depends on the samples that a threshold accepts."""

    #: Function of tie groups and a vertex that returns the value.
    value_at_vertex: Callable[[TieGroups, int], MetricValue]
    #: Function of samples, a vertex and the indicator of acceptance. The function returns the
    #: influences at a fixed threshold, up to a constant.
    uncentered_influence: Callable[[Scored, int, FloatArray], FloatArray]
    #: Function of tie groups that returns the values at all vertices. None if vertices of equal
    #: risk have equal values.
    values_at_all_vertices: Callable[[TieGroups], FloatArray] | None = None

    def influence_at_vertex(self, s: Scored, index: int) -> FloatArray:
        """Return the influence of each sample on the value at a fixed threshold."""
        is_accepted = accepted_indicator(s, index)
        return mean_influence(s, self.uncentered_influence(s, index, is_accepted))


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
    """Return the influence of each sample on a metric at the threshold selected for a coverage."""
    groups = s.groups
    index = vertex_at_coverage(groups, coverage)
    slope = _slope_in_coverage(groups, coverage, quantity)
    return quantity.influence_at_vertex(s, index) - slope * coverage_influence(s, index)


def _slope_in_coverage(groups: TieGroups, coverage: float, quantity: Quantity) -> float:
    """Return the slope of a metric within one standard error of the coverage on each side."""
    standard_error = float(np.sqrt(coverage * (1 - coverage) / groups.n_samples))
    low = max(coverage - standard_error, 0.0)
    high = min(coverage + standard_error, 1.0)
    low_vertex = vertex_at_coverage(groups, low)
    high_vertex = vertex_at_coverage(groups, high)
    low_coverage = groups.cumulative_weight[low_vertex] / groups.total_weight
    high_coverage = groups.cumulative_weight[high_vertex] / groups.total_weight
    if low_coverage == high_coverage:
        # The threshold does not move.
        return 0.0
    low_value = quantity.value_at_vertex(groups, low_vertex).value
    high_value = quantity.value_at_vertex(groups, high_vertex).value
    change = high_value - low_value
    return change / (high - low) if np.isfinite(change) else 0.0


def influence_at_risk(s: Scored, *, max_risk: float) -> FloatArray:
    """Return the influence of each sample on the largest coverage with at most this risk."""
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
    standard_error = max(np.sqrt(variance / n_effective), risk / n_effective)
    low = max(risk - standard_error, 0.0)
    high = risk + standard_error
    if high <= low:
        return 0.0
    low_coverage = coverage_at_vertex(groups, vertex_at_risk(groups, low)).value
    high_coverage = coverage_at_vertex(groups, vertex_at_risk(groups, high)).value
    return float((high_coverage - low_coverage) / (high - low))
