"""Confidence intervals for few failures, and effective sample sizes.

If no sample fails, if all samples fail, or if all failures rank below all successes, the influences
do not vary. In these cases, this module uses the exact (Clopper-Pearson) interval of a proportion.

A test of the risk r compares the sum of weight x (loss - r) over the accepted samples with 0. The
variance of this sum is the sum of weight^2 x (loss - r)^2. Kish's effective sample size, (sum w)^2
/ sum w^2, yields this variance only if weights and losses are independent. Therefore failures and
successes have separate mean weights in this module.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from abstain._foundation.arrays import inner
from abstain._foundation.scored import MetricValue, Scored
from abstain.inference.intervals import Interval, clopper_pearson, interval_from_influence, wilson
from abstain.inference.small_samples import ModelVariance, few_clusters_warning
from abstain.metrics.entry import Metric, count_failures
from abstain.metrics.influences import sample_weights
from abstain.metrics.roc import hanley_mcneil_variance
from abstain.typing import BoolArray, FloatArray, IntArray


class AcceptedSamples(NamedTuple):
    """Statistics of the accepted samples at each threshold, arrays of shape (g,)."""

    #: Selective risk.
    risk: FloatArray
    #: Typical size of a positive loss, which is the mean of the squared losses divided by the mean
    #: loss.
    loss: FloatArray
    #: Effective number of accepted samples for a test of the risk.
    n_for_risk: FloatArray
    #: Effective number of all samples for a test of the coverage.
    n_for_coverage: FloatArray
    #: Correlation of the errors of risk and coverage, which is 0 if weights do not depend on the
    #: loss.
    correlation: FloatArray


def accepted_samples(s: Scored, cluster: IntArray | None, risk: float) -> AcceptedSamples:
    """Compute the statistics of the accepted samples for a test of this risk."""
    if s.has_unit_weights and cluster is None:
        return _accepted_samples_of_unit_weight(s)
    accepted_weight = s.groups.cumulative_weight
    selective_risk = s.groups.cumulative_loss / accepted_weight
    rows = AcceptedRows.from_samples(s, cluster)
    events = LossEvents.from_rows(rows)
    n_for_risk = accepted_weight / events.mean_weight(risk)
    if cluster is not None:
        n_for_risk /= rows.variance_inflation(selective_risk)
    total_weight = s.groups.total_weight
    coverage = accepted_weight / total_weight
    coverage_variance = rows.coverage_variance(coverage)
    binomial_variance = coverage * (1 - coverage) * total_weight**2
    n_for_coverage = np.maximum(binomial_variance / coverage_variance, 1.0)
    # An accepted failure of large weight increases both the risk and the coverage.
    probability = event_probability(events.loss, risk)
    covariance = (1 - coverage) * (events.weight - events.other_weight)
    scale = np.sqrt(probability * (1 - probability) * n_for_risk / coverage_variance)
    correlation = np.clip(covariance * scale, -0.99, 0.99)
    return AcceptedSamples(selective_risk, events.loss, n_for_risk, n_for_coverage, correlation)


def _accepted_samples_of_unit_weight(s: Scored) -> AcceptedSamples:
    """Compute the statistics if all samples are independent and have weight 1."""
    n_accepted = s.groups.cumulative_weight
    loss_size = np.ones(n_accepted.size)
    if not s.is_binary:
        loss_size = LossEvents.from_rows(AcceptedRows.from_samples(s, None)).loss
    return AcceptedSamples(
        risk=s.groups.cumulative_loss / n_accepted,
        loss=loss_size,
        n_for_risk=n_accepted,
        n_for_coverage=np.full(n_accepted.size, s.groups.total_weight),
        correlation=np.zeros(n_accepted.size),
    )


def event_probability(loss: FloatArray, risk: float) -> FloatArray:
    """Return the failure probability at which failures of size `loss` have the mean loss `risk`."""
    return np.minimum(risk / loss, 1 - 1e-12)


def n_effective(s: Scored, risk: float) -> float:
    """Return the effective sample size of all samples for a test of this risk."""
    if s.has_unit_weights:
        return float(s.n_samples)
    events = LossEvents.from_rows(AcceptedRows.from_samples(s, None))
    return float(s.groups.total_weight / events.mean_weight(risk)[-1])


#: Number of pseudo-observations that are added to the accepted samples at each threshold. High
#: thresholds accept few failures, so a ratio of sums would be unstable. A pseudo-observation has
#: the mean loss and weight of all samples.
_N_PSEUDO = 2.0


class LossEvents(NamedTuple):
    """Mean loss of failures, and mean weights of failures and successes, arrays of shape (g,).

    All losses are treated as having the same size. A smaller loss counts as a fraction of a failure
    of this size, and the rest of its weight counts as a success.
    """

    #: Size of a loss.
    loss: FloatArray
    #: Mean weight of the failures.
    weight: FloatArray
    #: Mean weight of the successes.
    other_weight: FloatArray

    @classmethod
    def from_rows(cls, rows: "AcceptedRows") -> "LossEvents":
        """Compute the means over the accepted samples at each threshold."""
        weighted_loss = rows.weight * rows.loss
        weight_sum = rows.sum_through(rows.weight)
        squared_weight = rows.sum_through(rows.weight * rows.weight)
        loss_sum = rows.sum_through(weighted_loss)
        if loss_sum[-1] <= 0:
            mean_weight = np.full(weight_sum.size, squared_weight[-1] / weight_sum[-1])
            return cls(np.ones(weight_sum.size), mean_weight, mean_weight)
        weight_times_loss = rows.sum_through(rows.weight * weighted_loss)
        squared_loss = rows.sum_through(weighted_loss * weighted_loss)
        overall_size = squared_loss[-1] / weight_times_loss[-1]
        overall_weight = weight_times_loss[-1] / loss_sum[-1]
        size = _smoothed_ratio(squared_loss, weight_times_loss, overall_weight**2 * overall_size)
        failure_weight = _smoothed_ratio(weight_times_loss, loss_sum, overall_weight * overall_size)
        success_sum = np.maximum(weight_sum - loss_sum / size, 0.0)
        if success_sum[-1] <= 0:
            return cls(size, failure_weight, failure_weight)
        squared_success = np.maximum(squared_weight - weight_times_loss / size, 0.0)
        overall_success_weight = squared_success[-1] / success_sum[-1]
        success_weight = _smoothed_ratio(squared_success, success_sum, overall_success_weight)
        return cls(size, failure_weight, success_weight)

    def mean_weight(self, risk: float) -> FloatArray:
        """Return the weight of one effective sample for a test of a risk.

        With samples of this weight, a binomial count has the same variance as the sum of weight x
        (loss - risk).
        """
        probability = event_probability(self.loss, risk)
        return (1 - probability) * self.weight + probability * self.other_weight


def _smoothed_ratio(
    numerator: FloatArray, denominator: FloatArray, pseudo_observation: float
) -> FloatArray:
    """Return a ratio of cumulative sums after adding pseudo-observations with the overall ratio.

    `pseudo_observation` is the amount that one pseudo-observation adds to the denominator.
    """
    pseudo_denominator = _N_PSEUDO * pseudo_observation
    pseudo_numerator = pseudo_denominator * numerator[-1] / denominator[-1]
    return np.asarray((numerator + pseudo_numerator) / (denominator + pseudo_denominator))


@dataclass(frozen=True, eq=False)
class AcceptedRows:
    """Samples with positive weight, and sums over samples of the same cluster."""

    #: Shape (n,). Index of the tie group of each sample.
    group_index: IntArray
    #: Shape (n,). Weight and loss of each sample.
    weight: FloatArray
    loss: FloatArray
    #: Shape (n,). Sums of weight and of weight x loss over the samples of the same cluster that are
    #: accepted earlier. Without clusters, the sums are 0.
    weight_before: FloatArray
    loss_before: FloatArray
    #: Shape (n,). Weight of all samples in the same cluster.
    weight_of_cluster: FloatArray
    #: Whether the samples have clusters. Otherwise, each sample is its own cluster.
    has_clusters: bool

    @classmethod
    def from_samples(cls, s: Scored, cluster: IntArray | None) -> "AcceptedRows":
        """Select the samples with positive weight."""
        has_weight = s.group_index >= 0
        group_index = s.group_index[has_weight]
        loss = s.loss[has_weight].astype(np.float64)
        weight: FloatArray = np.ones(loss.size) if s.weight is None else s.weight[has_weight]
        if cluster is None:
            zeros = np.zeros(loss.size)
            return cls(group_index, weight, loss, zeros, zeros, weight, has_clusters=False)
        codes = cluster[has_weight]
        # Samples are sorted by cluster, and within each cluster by tie group.
        n_groups = int(group_index.max()) + 1
        order = np.argsort(codes * n_groups + group_index)
        cluster_weight: FloatArray = np.bincount(codes, weights=weight).astype(np.float64)
        return cls(
            group_index=group_index,
            weight=weight,
            loss=loss,
            weight_before=_sum_before_in_cluster(weight, codes, order),
            loss_before=_sum_before_in_cluster(weight * loss, codes, order),
            weight_of_cluster=cluster_weight[codes],
            has_clusters=True,
        )

    def sum_through(self, values: FloatArray) -> FloatArray:
        """Return the sum of values over the accepted samples at each threshold, shape (g,)."""
        return np.asarray(np.cumsum(np.bincount(self.group_index, weights=values)))

    @cached_property
    def squared_weight(self) -> FloatArray:
        """Sum of the squared weights of the accepted samples at each threshold."""
        return self.sum_through(self.weight**2)

    @cached_property
    def squared_weight_of_clusters(self) -> FloatArray:
        """Sum over clusters of the squared accepted weight at each threshold."""
        if not self.has_clusters:
            return self.squared_weight
        # If a is the weight accepted earlier, a sample adds (a + w)^2 - a^2 = w^2 + 2 a w.
        return self.squared_weight + 2 * self.sum_through(self.weight * self.weight_before)

    def coverage_variance(self, coverage: FloatArray) -> FloatArray:
        """Return the variance of the difference accepted weight - coverage x total weight."""
        squared_accepted = self.squared_weight_of_clusters
        accepted_times_total = squared_accepted
        if self.has_clusters:
            accepted_times_total = self.sum_through(self.weight * self.weight_of_cluster)
        variance = (
            squared_accepted
            - 2 * coverage * accepted_times_total
            + coverage**2 * squared_accepted[-1]
        )
        return np.asarray(np.maximum(variance, 1e-300))

    def variance_inflation(self, risk: FloatArray) -> FloatArray:
        """Return the factor, at least 1, by which clusters increase the variance of the risk."""
        weight = self.weight
        weighted_loss = self.weight * self.loss
        # Square of weight x (loss - risk), expanded and summed over samples.
        cross = self.sum_through(weight * weighted_loss)
        square = self.sum_through(weighted_loss * weighted_loss)
        sample_variance = self.squared_weight * risk**2 - 2 * risk * cross + square
        # The same square, of the sum over the samples of each cluster.
        cross += self.sum_through(weight * self.loss_before + weighted_loss * self.weight_before)
        square += 2 * self.sum_through(weighted_loss * self.loss_before)
        cluster_variance = self.squared_weight_of_clusters * risk**2 - 2 * risk * cross + square
        inflation = np.ones_like(sample_variance)
        np.divide(cluster_variance, sample_variance, out=inflation, where=sample_variance > 0)
        return np.maximum(inflation, 1.0)


def _sum_before_in_cluster(values: FloatArray, cluster: IntArray, order: IntArray) -> FloatArray:
    """Return the sum of values over samples of the same cluster that are accepted earlier.

    `order` sorts the samples by cluster and within each cluster by decreasing confidence.
    """
    sorted_values = values[order]
    sum_before = np.cumsum(sorted_values) - sorted_values
    cluster_starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    cluster_sizes = np.diff(cluster_starts, append=values.size)
    sum_before -= np.repeat(sum_before[cluster_starts], cluster_sizes)
    unsorted = np.empty_like(values)
    unsorted[order] = sum_before
    return unsorted


def interval_without_variation(
    metric: Metric, s: Scored, measured: MetricValue, *, level: float, cluster: IntArray | None
) -> Interval | None:
    """Return an exact interval if the influences do not vary, and None otherwise."""
    if not s.is_binary:
        return None
    n = n_independent(s, cluster)
    if s.merged_groups.risk in {0.0, 1.0}:
        return _interval_without_both_kinds(metric, s, n, measured.value, level=level)
    if metric.measurement.from_auroc is not None:
        return _interval_without_overlap(metric.measurement.from_auroc, s, measured.value, level)
    if metric.measurement.upper_limit_of_zero is None or measured.value != 0:
        return None
    # No accepted sample fails. The limit assumes that a failure would have the mean weight of the
    # other samples.
    n *= n_effective(s, 0.0) / n_independent(s, None)
    high = metric.measurement.upper_limit_of_zero(n, level)
    note = "no accepted sample fails: one-sided, for a fixed threshold"
    return Interval(0.0, high, level, "Clopper-Pearson among the accepted", note=note)


def n_independent(s: Scored, cluster: IntArray | None) -> float:
    """Return Kish's effective number of samples, or of clusters if `cluster` is not None."""
    if s.has_unit_weights and cluster is None:
        return float(s.n_samples)
    return kish_sample_size(sample_weights(s), cluster)


def _n_of_rarer_kind(s: Scored) -> int:
    """Return the smaller number of failures and successes with positive weight."""
    n_failures = count_failures(s)
    n_samples = s.n_samples if s.has_unit_weights else int(np.count_nonzero(sample_weights(s)))
    return min(n_failures, n_samples - n_failures)


def _interval_without_both_kinds(
    metric: Metric, s: Scored, n: float, value: float, *, level: float
) -> Interval | None:
    """Return the interval of a metric if all samples fail or no sample fails.

    The interval contains the values for all orders of the samples and for all error rates within
    their confidence limits.
    """
    if metric.measurement.extremes is None:
        return None
    all_fail = s.merged_groups.risk > 0
    rate = clopper_pearson(n if all_fail else 0.0, n, level=level)
    # The extremes are limits for large samples, so the interval is extended to the value.
    candidates = []
    for extreme in metric.measurement.extremes:
        candidates += [extreme(rate.low), extreme(rate.high)]
    candidates.append(value)
    description = "every sample fails" if all_fail else "no failures"
    # The declared range removes rounding errors.
    return Interval(
        max(min(candidates), metric.measurement.low),
        min(max(candidates), metric.measurement.high),
        level,
        "Clopper-Pearson on the error rate, best and worst order",
        note=f"{description}: one-sided, from the limit of the error rate and any order",
    )


def _interval_without_overlap(
    value_from_auroc: Callable[[float, float], float], s: Scored, value: float, level: float
) -> Interval | None:
    """Return the interval of a metric if all failures rank below all successes, or None."""
    risk = s.merged_groups.risk
    n_rarer = float(_n_of_rarer_kind(s))
    best = value_from_auroc(1.0, risk)
    if value != best or n_rarer < 1:
        return None
    # If the true AUROC is a, the probability of an AUROC of 1 in the data is at most a^n_rarer.
    auroc = clopper_pearson(n_rarer, n_rarer, level=level)
    worst = value_from_auroc(auroc.low, risk)
    return Interval(
        min(best, worst),
        max(best, worst),
        level,
        "Clopper-Pearson on the fewer of failures and successes",
        note="no overlap of failures and successes: one-sided",
    )


def max_degrees_of_freedom(metric: Metric, s: Scored) -> float:
    """Return the maximum degrees of freedom of an interval.

    If the metric compares failures with successes, the rarer of the two determines the maximum.
    """
    if not metric.measurement.is_two_sample or not s.is_binary:
        return float("inf")
    return _n_of_rarer_kind(s) - 1.0


#: Degrees of freedom of the variance of Hanley and McNeil. With this number, the smallest possible,
#: the coverage for 10 failures is at least 93% in every simulated population (docs/validation.md).
_MODEL_DEGREES_OF_FREEDOM = 3.0


def _auroc_formula(metric: Metric, s: Scored) -> Callable[[float, float], float] | None:
    """Return the function of the AUROC that yields the metric, or None if none exists."""
    # The model of the AUROC does not apply to a value that also depends on the error rate.
    applies = metric.measurement.is_two_sample and s.is_binary
    return metric.measurement.from_auroc if applies else None


def expected_variance(
    metric: Metric, s: Scored, value: float, cluster: IntArray | None = None
) -> ModelVariance | None:
    """Return the variance of the value by the formula of Hanley and McNeil for the AUROC.

    The function returns None for metrics that are not linear in the AUROC. The formula does not
    underestimate the variance if few failures have similar ranks and therefore almost equal
    influences.
    """
    from_auroc = _auroc_formula(metric, s)
    if from_auroc is None:
        return None
    if s.has_unit_weights and cluster is None:
        n_failures = float(s.n_failures)
        n_successes = float(s.n_samples - s.n_failures)
    else:
        n_failures = kish_sample_size(sample_weights(s) * (s.loss > 0), cluster)
        n_successes = kish_sample_size(sample_weights(s) * (s.loss <= 0), cluster)
    # The value is linear in the AUROC and equals 1 at an AUROC of 1.
    risk = s.merged_groups.risk
    slope = from_auroc(1.0, risk) - from_auroc(0.0, risk)
    auroc = (value + slope - 1) / slope
    if not 0 < auroc < 1 or min(n_failures, n_successes) < 1:
        return None
    variance = hanley_mcneil_variance(auroc, n_failures, n_successes)
    return ModelVariance(slope * slope * variance, _MODEL_DEGREES_OF_FREEDOM)


def unbiased_influence(
    metric: Metric, s: Scored, influence: FloatArray, cluster: IntArray | None = None
) -> FloatArray:
    """Scale influences so that failures and successes have separate bias corrections n/(n - 1).

    The scaled influences yield DeLong's variance. Only influences of metrics that are linear in the
    AUROC are scaled.
    """
    if _auroc_formula(metric, s) is None:
        return influence
    is_failure = s.loss > 0
    overall = _bias_correction(s, np.ones_like(is_failure), cluster)
    failure_factor = np.sqrt(_bias_correction(s, is_failure, cluster) / overall)
    success_factor = np.sqrt(_bias_correction(s, ~is_failure, cluster) / overall)
    return np.asarray(np.where(is_failure, failure_factor, success_factor) * influence)


def _bias_correction(s: Scored, mask: BoolArray, cluster: IntArray | None) -> float:
    """Return the bias correction n/(n - 1) of a variance, or 1 for n = 1.

    The number n counts the samples in the mask, or the clusters that contain samples in the mask.
    """
    has_weight = mask if s.weight is None else mask & (s.weight > 0)
    if s.row_counts is not None:
        n = float(s.row_counts[mask].sum())
    elif cluster is None:
        n = float(np.count_nonzero(has_weight))
    else:
        n = float(np.unique(cluster[has_weight]).size)
    return n / (n - 1) if n > 1 else 1.0


def proportion_interval(
    proportion: float,
    residual: FloatArray,
    weight: FloatArray,
    *,
    level: float,
    cluster: IntArray | None,
) -> Interval:
    """Return the score interval of a proportion of samples, such as an accuracy.

    `residual` is the indicator of each sample minus the proportion.
    """
    n = kish_sample_size(weight, cluster)
    if 0 < proportion < 1:
        # Kish's sample size assumes that weights and indicators are independent, so it is scaled to
        # the variance of the weighted residuals.
        weighted_residual = weight * residual
        scale = inner(weight, weight) / inner(weighted_residual, weighted_residual)
        if cluster is not None:
            # Negative correlation within clusters does not increase the sample size.
            cluster_weight = np.bincount(cluster, weights=weight)
            cluster_residual = np.bincount(cluster, weights=weighted_residual)
            cluster_square = max(inner(cluster_residual, cluster_residual), 1e-300)
            scale = min(scale, inner(cluster_weight, cluster_weight) / cluster_square)
        n *= proportion * (1 - proportion) * scale
    n_clusters = None if cluster is None else np.unique(cluster).size
    interval = wilson(proportion * n, n, level=level)
    return replace(interval, note=few_clusters_warning(n_clusters))


def auroc_interval(
    auroc: float,
    influence: FloatArray,
    weight: FloatArray,
    kinds: tuple[BoolArray, BoolArray],
    *,
    level: float,
    cluster: IntArray | None,
) -> Interval:
    """Return the interval of an AUROC; `kinds` are the masks of the positives and negatives."""
    positive_weight = weight * kinds[0]
    negative_weight = weight * kinds[1]
    n_positive = kish_sample_size(positive_weight, cluster)
    n_negative = kish_sample_size(negative_weight, cluster)
    if auroc in {0.0, 1.0}:
        n_rarer = min(n_positive, n_negative)
        return clopper_pearson(auroc * n_rarer, n_rarer, level=level)
    variance = hanley_mcneil_variance(auroc, n_positive, n_negative)
    n_rarer_rows = min(np.count_nonzero(positive_weight), np.count_nonzero(negative_weight))
    return interval_from_influence(
        auroc,
        influence,
        level=level,
        bounds=(0.0, 1.0),
        max_degrees=n_rarer_rows - 1.0,
        model_variance=ModelVariance(variance, _MODEL_DEGREES_OF_FREEDOM),
        weight=weight,
        cluster=cluster,
    )


def kish_sample_size(weight: FloatArray, cluster: IntArray | None) -> float:
    """Return Kish's effective sample size of these weights, or 0 if all weights are 0."""
    if cluster is not None:
        weight = np.bincount(cluster, weights=weight).astype(np.float64)
    square = inner(weight, weight)
    return float(weight.sum()) ** 2 / square if square > 0 else 0.0
