"""Confidence intervals for few failures, and effective sample sizes.

The influences do not vary if no sample fails, if all samples fail, or if all failures rank below
all successes. The intervals in this module then follow from the exact (Clopper-Pearson) interval of
a proportion. If no sample fails or all samples fail, they also use the best and the worst value
over all orders.

The accepted samples at a threshold have two effective sample sizes, one for a test of the risk and
one for a test of the coverage. A test of the risk r compares the sum of weight x (loss - r) over
the accepted samples with 0. The variance of this sum is the sum of weight^2 x (loss - r)^2. Kish's
effective sample size, (sum w)^2 / sum w^2, yields this variance only if weights and losses are
independent. If failures have larger weights than successes, the risk estimate is less precise. In
this module, failures and successes therefore have separate mean weights. With these weights, the
variance is available for every hypothetical risk, as in the score test of a proportion.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
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
    """Return the statistics of the accepted samples for a test of this risk."""
    groups = s.groups
    accepted_weight = groups.cumulative_weight
    n_thresholds = accepted_weight.size
    selective_risk = groups.cumulative_loss / accepted_weight
    if s.has_unit_weights and cluster is None:
        # Only the size of the losses differs from a plain count of samples.
        n_samples = np.full(n_thresholds, groups.total_weight)
        loss_size = np.ones(n_thresholds)
        if not s.is_binary:
            loss_size = LossEvents.from_rows(AcceptedRows.from_samples(s, cluster)).loss
        no_correlation = np.zeros(n_thresholds)
        return AcceptedSamples(
            selective_risk, loss_size, accepted_weight, n_samples, no_correlation
        )
    rows = AcceptedRows.from_samples(s, cluster)
    events = LossEvents.from_rows(rows)
    n_for_risk = accepted_weight / events.mean_weight(risk)
    coverage = accepted_weight / groups.total_weight
    squared_weight = rows.sum_through(rows.weight**2)
    # Sums over clusters: accepted weight squared, and accepted weight x weight of the cluster.
    squared_accepted, accepted_by_total = squared_weight, squared_weight
    if cluster is not None:
        squared_accepted, accepted_by_total = rows.squared_weight_of_clusters(squared_weight)
    coverage_variance = np.maximum(
        squared_accepted - 2 * coverage * accepted_by_total + coverage**2 * squared_accepted[-1],
        1e-300,
    )
    n_for_coverage = np.maximum(
        coverage * (1 - coverage) * groups.total_weight**2 / coverage_variance, 1.0
    )
    if cluster is not None:
        sample_variance, cluster_variance = rows.squared_residuals(
            selective_risk, squared_weight, squared_accepted
        )
        inflation = np.ones_like(sample_variance)
        np.divide(cluster_variance, sample_variance, out=inflation, where=sample_variance > 0)
        n_for_risk /= np.maximum(inflation, 1.0)
    # An accepted failure of large weight increases both the risk and the coverage.
    probability = event_probability(events.loss, risk)
    covariance = (1 - coverage) * (events.weight - events.other_weight)
    scale = np.sqrt(probability * (1 - probability) * n_for_risk / coverage_variance)
    correlation = np.clip(covariance * scale, -0.99, 0.99)
    return AcceptedSamples(selective_risk, events.loss, n_for_risk, n_for_coverage, correlation)


def event_probability(loss: FloatArray, risk: float) -> FloatArray:
    """Return the probability of a loss of this size that yields the risk as mean loss."""
    return np.minimum(risk / loss, 1 - 1e-12)


def n_effective(s: Scored, risk: float) -> float:
    """Return the effective sample size of all samples for a test of this risk."""
    if s.has_unit_weights:
        return float(s.n_samples)
    events = LossEvents.from_rows(AcceptedRows.from_samples(s, None))
    return float(s.groups.total_weight / events.mean_weight(risk)[-1])


#: Number of pseudo-observations that are added to the accepted samples at each threshold. High
#: thresholds accept few losses, so a ratio of sums would be unstable there. A pseudo-observation
#: has the mean loss and weight of all samples.
_N_PSEUDO = 2.0


class LossEvents(NamedTuple):
    """Losses and weights of the accepted samples at each threshold, arrays of shape (g,).

    The model replaces losses by events of equal size `loss`. A smaller loss counts as a fraction of
    an event. The mean weights are averages weighted by the weights themselves.
    """

    loss: FloatArray
    #: Mean weight of the events.
    weight: FloatArray
    #: Mean weight of the samples, or fractions of samples, that are not events.
    other_weight: FloatArray

    @classmethod
    def from_rows(cls, rows: "AcceptedRows") -> "LossEvents":
        """Compute the means over the accepted samples at each threshold."""
        weight, mass = rows.weight, rows.weight * rows.loss
        total = rows.sum_through(weight)
        mass_through = rows.sum_through(mass)
        square = rows.sum_through(weight * weight)
        cross = rows.sum_through(weight * mass)
        if mass_through[-1] <= 0:
            mean_weight = np.full(total.size, square[-1] / total[-1])
            return cls(np.ones(total.size), mean_weight, mean_weight)
        loss_square = rows.sum_through(mass * mass)
        usual_loss = loss_square[-1] / cross[-1]
        usual_weight = cross[-1] / mass_through[-1]
        loss = _smoothed(loss_square, cross, usual_weight**2 * usual_loss)
        event_weight = _smoothed(cross, mass_through, usual_weight * usual_loss)
        other_total = np.maximum(total - mass_through / loss, 0.0)
        other_square = np.maximum(square - cross / loss, 0.0)
        if other_total[-1] <= 0:
            return cls(loss, event_weight, event_weight)
        usual_other = other_square[-1] / other_total[-1]
        return cls(loss, event_weight, _smoothed(other_square, other_total, usual_other))

    def mean_weight(self, risk: float) -> FloatArray:
        """Return the weight of one effective sample for a test of a risk.

        With samples of this weight, a binomial count has the same variance as the sum of weight x
        (loss - risk).
        """
        probability = event_probability(self.loss, risk)
        return (1 - probability) * self.weight + probability * self.other_weight


def _smoothed(numerator: FloatArray, denominator: FloatArray, usual: float) -> FloatArray:
    """Return a ratio of cumulative sums after adding pseudo-observations with the overall ratio.

    `usual` is the denominator of one pseudo-observation.
    """
    pseudo_denominator = _N_PSEUDO * usual
    pseudo_numerator = pseudo_denominator * numerator[-1] / denominator[-1]
    return np.asarray((numerator + pseudo_numerator) / (denominator + pseudo_denominator))


@dataclass(frozen=True, eq=False)
class AcceptedRows:
    """Samples with positive weight, and sums over samples of the same cluster."""

    #: Shape (n,). The tie group of each sample.
    group_index: IntArray
    weight: FloatArray
    loss: FloatArray
    #: Shape (n,). Sums of weight and of weight x loss over the samples of the same cluster that are
    #: accepted earlier.
    weight_before: FloatArray
    loss_before: FloatArray
    #: Shape (n,). Weight of all samples in the same cluster.
    weight_of_cluster: FloatArray

    @classmethod
    def from_samples(cls, s: Scored, cluster: IntArray | None) -> "AcceptedRows":
        """Select the samples with positive weight."""
        has_weight = s.group_index >= 0
        group_index = s.group_index[has_weight]
        loss = s.loss[has_weight].astype(np.float64)
        weight: FloatArray = np.ones(loss.size) if s.weight is None else s.weight[has_weight]
        if cluster is None:
            zeros = np.zeros(loss.size)
            return cls(group_index, weight, loss, zeros, zeros, weight)
        codes = cluster[has_weight]
        # Samples are sorted by cluster, and within each cluster by tie group.
        order = np.argsort(codes * (int(group_index.max()) + 1) + group_index)
        cluster_weight: FloatArray = np.bincount(codes, weights=weight).astype(np.float64)
        return cls(
            group_index,
            weight,
            loss,
            _sum_before_in_cluster(weight, codes, order),
            _sum_before_in_cluster(weight * loss, codes, order),
            cluster_weight[codes],
        )

    def sum_through(self, values: FloatArray) -> FloatArray:
        """Return the sum of values over the accepted samples at each threshold, shape (g,)."""
        return np.asarray(np.cumsum(np.bincount(self.group_index, weights=values)))

    def squared_weight_of_clusters(
        self, squared_weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return two sums over clusters at each threshold.

        The first sum is over the squared accepted weight of a cluster. The second sum is over the
        accepted weight times the total weight of a cluster. `squared_weight` is the sum of squared
        weights of the accepted samples.
        """
        # If a is the weight accepted earlier, a sample adds (a + w)^2 - a^2 = w^2 + 2 a w.
        square = squared_weight + 2 * self.sum_through(self.weight * self.weight_before)
        return square, self.sum_through(self.weight * self.weight_of_cluster)

    def squared_residuals(
        self, risk: FloatArray, squared_weight: FloatArray, squared_weight_of_clusters: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sums of squared weight x (loss - risk), over samples and over clusters.

        The square is expanded as w^2 risk^2 - 2 risk w x + x^2, where x = weight x loss.
        """
        w, x = self.weight, self.weight * self.loss
        w_before, x_before = self.weight_before, self.loss_before
        cross, square = self.sum_through(w * x), self.sum_through(x * x)
        of_samples = squared_weight * risk**2 - 2 * risk * cross + square
        cross += self.sum_through(w * x_before + x * w_before)
        square += 2 * self.sum_through(x * x_before)
        of_clusters = squared_weight_of_clusters * risk**2 - 2 * risk * cross + square
        return of_samples, of_clusters


def _sum_before_in_cluster(values: FloatArray, cluster: IntArray, order: IntArray) -> FloatArray:
    """Return the sum of values over samples of the same cluster that are accepted earlier."""
    sorted_values = values[order]
    sum_before = np.cumsum(sorted_values) - sorted_values
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    counts = np.diff(starts, append=values.size)
    sums = np.empty_like(values)
    sums[order] = sum_before - np.repeat(sum_before[starts], counts)
    return sums


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
    # The risk at the working point is 0, and its threshold is fixed. The limit assumes that an
    # unobserved failure has the weight of the other samples.
    n *= n_effective(s, 0.0) / n_independent(s, None)
    high = metric.measurement.upper_limit_of_zero(n, level)
    note = "no accepted sample fails: one-sided, for a fixed threshold"
    return Interval(0.0, high, level, "Clopper-Pearson among the accepted", note=note)


def n_independent(s: Scored, cluster: IntArray | None) -> float:
    """Return Kish's effective number of samples, or of clusters if `cluster` is passed."""
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
    """Return the range of values within the limits of the error rate.

    This interval is for data in which all samples fail or no sample fails.
    """
    if metric.measurement.extremes is None:
        return None
    failed = s.merged_groups.risk > 0
    rate = clopper_pearson(n if failed else 0.0, n, level=level)
    extremes = [f(r) for f in metric.measurement.extremes for r in (rate.low, rate.high)]
    description = "every sample fails" if failed else "no failures"
    # The extremes are limits for large samples, so the interval is extended to the value. The
    # declared range removes rounding errors.
    return Interval(
        max(min(*extremes, value), metric.measurement.low),
        min(max(*extremes, value), metric.measurement.high),
        level,
        "Clopper-Pearson on the error rate, best and worst order",
        note=f"{description}: one-sided, from the limit of the error rate and any order",
    )


def _interval_without_overlap(
    value_from_auroc: Callable[[float, float], float], s: Scored, value: float, level: float
) -> Interval | None:
    """Return the interval if all failures rank below all successes.

    The failure AUROC is then 1. Let a be the true AUROC and m the smaller number of failures and
    successes. The probability of an order with AUROC 1 is at most a^m.
    """
    n_rarer, risk = float(_n_of_rarer_kind(s)), s.merged_groups.risk
    best = value_from_auroc(1.0, risk)
    if value != best or n_rarer < 1:
        return None
    auroc = clopper_pearson(n_rarer, n_rarer, level=level)
    low, high = sorted((best, value_from_auroc(auroc.low, risk)))
    method = "Clopper-Pearson on the fewer of failures and successes"
    return Interval(
        low, high, level, method, note="no overlap of failures and successes: one-sided"
    )


def max_degrees_of_freedom(metric: Metric, s: Scored) -> float:
    """Return the maximum degrees of freedom, which the rarer kind of samples determines."""
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
    """Return the variance of the value under a model of the scores, or None without a model.

    The influences hardly vary if a good score gives all of the few failures a low rank. Effective
    sample sizes account for weights and clusters.
    """
    from_auroc = _auroc_formula(metric, s)
    if from_auroc is None:
        return None
    if s.has_unit_weights and cluster is None:
        failures, successes = float(s.n_failures), float(s.n_samples - s.n_failures)
    else:
        failures = kish_sample_size(sample_weights(s) * (s.loss > 0), cluster)
        successes = kish_sample_size(sample_weights(s) * (s.loss <= 0), cluster)
    # The value is linear in the AUROC and equals 1 at an AUROC of 1.
    slope = from_auroc(1.0, s.merged_groups.risk) - from_auroc(0.0, s.merged_groups.risk)
    auroc = (value + slope - 1) / slope
    if not 0 < auroc < 1 or min(failures, successes) < 1:
        return None
    variance = hanley_mcneil_variance(auroc, failures, successes)
    return ModelVariance(slope * slope * variance, _MODEL_DEGREES_OF_FREEDOM)


def unbiased_influence(
    metric: Metric, s: Scored, influence: FloatArray, cluster: IntArray | None = None
) -> FloatArray:
    """Scale influences so that failures and successes have separate bias corrections n/(n - 1).

    The function scales only metrics that are linear in the AUROC. Their influences have mean 0
    among the failures and among the successes. The scaled influences yield DeLong's variance. The
    influence of a single failure is not scaled.
    """
    if _auroc_formula(metric, s) is None:
        return influence
    failed = s.loss > 0
    of_all = _bias_correction(s, np.ones_like(failed), cluster)
    factors = [np.sqrt(_bias_correction(s, kind, cluster) / of_all) for kind in (failed, ~failed)]
    return np.asarray(np.where(failed, *factors) * influence)


def _bias_correction(s: Scored, kind: BoolArray, cluster: IntArray | None) -> float:
    """Return the bias correction n/(n - 1) of a variance, or 1 for n = 1.

    The number n counts the samples in the mask, or the clusters that contain samples in the mask.
    """
    if s.row_counts is not None:
        n = float(s.row_counts[kind].sum())
    else:
        mask = kind if s.weight is None else kind & (s.weight > 0)
        n = float(np.count_nonzero(mask) if cluster is None else np.unique(cluster[mask]).size)
    return n / (n - 1) if n > 1 else 1.0


def proportion_interval(
    proportion: float,
    residual: FloatArray,
    weight: FloatArray,
    *,
    level: float,
    cluster: IntArray | None,
) -> Interval:
    """Return the score interval of a proportion of samples.

    `residual` is the indicator of each sample minus the proportion. Kish's effective sample size
    assumes that weights and indicators are independent. The function therefore scales the effective
    sample size to the variance of the weighted residuals, with and without clusters. Negative
    correlation within clusters does not increase the effective sample size.
    """
    n = kish_sample_size(weight, cluster)
    if 0 < proportion < 1:
        weighted_residual = weight * residual
        scale = inner(weight, weight) / inner(weighted_residual, weighted_residual)
        if cluster is not None:
            cluster_weight = np.bincount(cluster, weights=weight)
            cluster_residual = np.bincount(cluster, weights=weighted_residual)
            cluster_square = max(inner(cluster_residual, cluster_residual), 1e-300)
            scale = min(scale, inner(cluster_weight, cluster_weight) / cluster_square)
        n *= proportion * (1 - proportion) * scale
    n_clusters = None if cluster is None else np.unique(cluster).size
    return replace(wilson(proportion * n, n, level=level), note=few_clusters_warning(n_clusters))


def auroc_interval(
    auroc: float,
    influence: FloatArray,
    weight: FloatArray,
    kinds: tuple[BoolArray, BoolArray],
    *,
    level: float,
    cluster: IntArray | None,
) -> Interval:
    """Return the interval of an AUROC of two classes of samples, of which one may be rare."""
    n_positive, n_negative = (kish_sample_size(weight * kind, cluster) for kind in kinds)
    fewer = min(n_positive, n_negative)
    if auroc in {0.0, 1.0}:
        return clopper_pearson(auroc * fewer, fewer, level=level)
    variance = hanley_mcneil_variance(auroc, n_positive, n_negative)
    return interval_from_influence(
        auroc,
        influence,
        level=level,
        bounds=(0.0, 1.0),
        max_degrees=min(float(np.count_nonzero(weight * kind)) for kind in kinds) - 1.0,
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
