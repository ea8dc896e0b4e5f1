"""What can be said of a metric where failures are few, and where nothing varies.

Without failures, with nothing else, or without overlap there is no influence function. What is left
follows from a proportion and its exact (Clopper-Pearson) interval, and from the best and the worst
that any order makes of an error rate R.

The accepted samples at a threshold are worth a number of equal samples, for their risk and for
their coverage. A test of a risk r compares the sum of weight x (loss - r) over the accepted samples
with 0. Its variance is the sum of weight^2 x (loss - r)^2. Kish's effective sample size, (sum w)^2
/ sum w^2, gives this variance only if weights and losses are independent: failures that have larger
weights than successes make the risk less certain. Here the losses and the other samples each have a
mean weight of their own, so that the variance is also known for a risk other than the one observed,
as in the score test of a proportion.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from abstain._foundation.arrays import inner
from abstain._foundation.measurement import MetricValue
from abstain._foundation.scored import Scored
from abstain.inference.intervals import Interval, clopper_pearson, interval_from_influence, wilson
from abstain.inference.small_samples import ModelVariance, few_clusters_warning
from abstain.metrics.entry import Metric, count_failures
from abstain.metrics.roc import hanley_mcneil_variance
from abstain.typing import BoolArray, FloatArray, IntArray


class AcceptedSamples(NamedTuple):
    """Statistics of the accepted samples at each threshold, arrays of shape (g,)."""

    #: Selective risk.
    risk: FloatArray
    #: The size of a loss where there is one: its mean square over its mean.
    loss: FloatArray
    #: Effective number of accepted samples, for a test of the risk.
    n_for_risk: FloatArray
    #: Effective number of all samples, for a test of the coverage.
    n_for_coverage: FloatArray
    #: Correlation of the errors of risk and coverage; 0 if weights do not depend on the loss.
    correlation: FloatArray


def accepted_samples(s: Scored, cluster: IntArray | None, risk: float) -> AcceptedSamples:
    """Return the statistics for a test of this risk."""
    groups = s.groups
    size = groups.cumulative_weight
    attained, zero = groups.cumulative_loss / size, np.zeros(size.size)
    everyone = np.full(size.size, groups.total_weight)
    is_plain = s.has_unit_weights and cluster is None
    if is_plain and s.is_binary:
        return AcceptedSamples(attained, np.ones(size.size), size, everyone, zero)
    rows = AcceptedRows.from_samples(s, cluster)
    events = LossEvents.from_rows(rows)
    if is_plain:
        return AcceptedSamples(attained, events.loss, size, everyone, zero)
    n_for_risk = size / events.mean_weight(risk)
    share = size / groups.total_weight
    alone = rows.sum_through(rows.weight**2)
    square, ends = (alone, alone) if cluster is None else rows.squared_weight_of_clusters(alone)
    spread = np.maximum(square - 2 * share * ends + share**2 * square[-1], 1e-300)
    n_for_coverage = np.maximum(share * (1 - share) * groups.total_weight**2 / spread, 1.0)
    if cluster is not None:
        apart, together = rows.squared_residuals(attained, alone, square)
        inflation = np.divide(together, apart, out=np.ones_like(apart), where=apart > 0)
        n_for_risk /= np.maximum(inflation, 1.0)
    # A heavy failure among the accepted raises both the risk and the coverage.
    probability = event_probability(events.loss, risk)
    covariance = (1 - share) * (events.weight - events.other_weight)
    scale = np.sqrt(probability * (1 - probability) * n_for_risk / spread)
    correlation = np.clip(covariance * scale, -0.99, 0.99)
    return AcceptedSamples(attained, events.loss, n_for_risk, n_for_coverage, correlation)


def event_probability(loss: FloatArray, risk: float) -> FloatArray:
    """Return the probability of a loss of this size for which the risk is the one given."""
    return np.minimum(risk / loss, 1 - 1e-12)


def n_effective(s: Scored, risk: float) -> float:
    """Return how many samples of equal weight are worth as much as all, for a test of this risk."""
    if s.has_unit_weights:
        return float(s.n_samples)
    events = LossEvents.from_rows(AcceptedRows.from_samples(s, None))
    return float(s.groups.total_weight / events.mean_weight(risk)[-1])


#: Pseudo-observations added to the accepted samples of each threshold, of the mean loss and weight
#: of all samples: at a high threshold few losses are accepted.
_N_PSEUDO = 2.0


class LossEvents(NamedTuple):
    """Losses and weights of the accepted samples at each threshold, arrays of shape (g,).

    A loss counts as an event of the size `loss`, a smaller loss as a part of one. The mean weights
    are weighted by the weights themselves.
    """

    loss: FloatArray
    #: Mean weight of the events.
    weight: FloatArray
    #: Mean weight of the samples, or parts of them, that are none.
    other_weight: FloatArray

    @classmethod
    def from_rows(cls, rows: "AcceptedRows") -> "LossEvents":
        """Sum over the accepted samples."""
        weight, mass = rows.weight, rows.weight * rows.loss
        total, mass_through = rows.sum_through(weight), rows.sum_through(mass)
        square, cross = rows.sum_through(weight * weight), rows.sum_through(weight * mass)
        if mass_through[-1] <= 0:
            equal = np.full(total.size, square[-1] / total[-1])
            return cls(np.ones(total.size), equal, equal)
        loss_square = rows.sum_through(mass * mass)
        usual_loss, usual_weight = loss_square[-1] / cross[-1], cross[-1] / mass_through[-1]
        loss = _smoothed(loss_square, cross, usual_weight**2 * usual_loss)
        event_weight = _smoothed(cross, mass_through, usual_weight * usual_loss)
        other_total = np.maximum(total - mass_through / loss, 0.0)
        other_square = np.maximum(square - cross / loss, 0.0)
        if other_total[-1] <= 0:
            return cls(loss, event_weight, event_weight)
        usual_other = other_square[-1] / other_total[-1]
        return cls(loss, event_weight, _smoothed(other_square, other_total, usual_other))

    def mean_weight(self, risk: float) -> FloatArray:
        """Return the weight per effective sample at a risk.

        The variance of the sum of weight x (loss - risk) is that of a binomial count of samples
        that all have this weight.
        """
        probability = event_probability(self.loss, risk)
        return (1 - probability) * self.weight + probability * self.other_weight


def _smoothed(numerator: FloatArray, denominator: FloatArray, usual: float) -> FloatArray:
    """Return a ratio of running sums with pseudo-observations that have the ratio of all samples.

    `usual` is the denominator of one of them.
    """
    pseudo_denominator = _N_PSEUDO * usual
    ratio: FloatArray = (numerator + pseudo_denominator * numerator[-1] / denominator[-1]) / (
        denominator + pseudo_denominator
    )
    return ratio


@dataclass(frozen=True, eq=False)
class AcceptedRows:
    """The samples that count, with what the unit (cluster) of each has accepted before it."""

    home: IntArray
    weight: FloatArray
    loss: FloatArray
    weight_before: FloatArray
    loss_before: FloatArray
    weight_of_cluster: FloatArray

    @classmethod
    def from_samples(cls, s: Scored, cluster: IntArray | None) -> "AcceptedRows":
        """Take the samples that have a weight."""
        kept = s.group_index >= 0
        home, loss = s.group_index[kept], s.loss[kept].astype(np.float64)
        weight: FloatArray = np.ones(home.size) if s.weight is None else s.weight[kept]
        if cluster is None:
            return cls(home, weight, loss, np.zeros(home.size), np.zeros(home.size), weight)
        unit = cluster[kept]
        # By unit, and within it in the order of acceptance.
        order = np.argsort(unit * (int(home.max()) + 1) + home)
        before = [_sum_before_in_cluster(x, unit, order) for x in (weight, weight * loss)]
        whole: FloatArray = np.bincount(unit, weights=weight).astype(np.float64)[unit]
        return cls(home, weight, loss, before[0], before[1], whole)

    def sum_through(self, values: FloatArray) -> FloatArray:
        """Return the sum of what the accepted of each threshold have, shape (g,)."""
        sums: FloatArray = np.cumsum(np.bincount(self.home, weights=values))
        return sums

    def squared_weight_of_clusters(self, alone: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return, over the units, the squares of the weight accepted, and it times the whole.

        `alone` is the same over the samples.
        """
        # A square grows by the new square and twice the new times what was there.
        square = alone + 2 * self.sum_through(self.weight * self.weight_before)
        return square, self.sum_through(self.weight * self.weight_of_cluster)

    def squared_residuals(
        self, risk: FloatArray, alone: FloatArray, square: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the squares of weight x (loss - risk) of the accepted: of samples, of units.

        From those of the weights, of samples and of units.
        """
        w, x = self.weight, self.weight * self.loss
        w0, x0 = self.weight_before, self.loss_before
        cross, own = self.sum_through(w * x), self.sum_through(x * x)
        apart = alone * risk**2 - 2 * risk * cross + own
        cross += self.sum_through(w * x0 + x * w0)
        own += 2 * self.sum_through(x * x0)
        return apart, square * risk**2 - 2 * risk * cross + own


def _sum_before_in_cluster(values: FloatArray, cluster: IntArray, order: IntArray) -> FloatArray:
    """Return the sum over the samples of the same unit that are accepted earlier."""
    ranked = values[order]
    running = np.cumsum(ranked) - ranked
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    counts = np.diff(starts, append=values.size)
    sums = np.empty_like(values)
    sums[order] = running - np.repeat(running[starts], counts)
    return sums


def interval_without_variation(
    metric: Metric, s: Scored, measured: MetricValue, *, level: float, cluster: IntArray | None
) -> Interval | None:
    """Return an interval where nothing varies, or None when there is none to be had."""
    if not s.is_binary:
        return None
    n = n_independent(s, cluster)
    if s.merged_groups.risk in {0.0, 1.0}:
        return _interval_without_both_kinds(metric, s, n, measured.value, level=level)
    if metric.measurement.from_auroc is not None:
        return _interval_without_overlap(metric.measurement.from_auroc, s, measured.value, level)
    # A failure that was not met may have the weight of the others.
    n *= n_effective(s, 0.0) / n_independent(s, None)
    return _interval_of_zero_risk(metric, measured, n, level)


def n_independent(s: Scored, cluster: IntArray | None) -> float:
    """Return the number of independent samples that weights and clusters leave."""
    if s.has_unit_weights and cluster is None:
        return float(s.n_samples)
    weight = np.ones(s.n_rows) if s.weight is None else s.weight
    if cluster is not None:
        weight = np.bincount(cluster, weights=weight).astype(np.float64)
    return float(weight.sum() ** 2 / np.square(weight).sum())


def _n_with_weight(s: Scored) -> int:
    """Return the number of samples that have a weight."""
    return (
        s.n_samples if s.has_unit_weights or s.weight is None else int(np.count_nonzero(s.weight))
    )


def _interval_without_both_kinds(
    metric: Metric, s: Scored, n: float, value: float, *, level: float
) -> Interval | None:
    """No failures, or nothing else: the error rate may be up to (or from) its exact limit."""
    if metric.measurement.extremes is None:
        return None
    failed = s.merged_groups.risk > 0
    rate = clopper_pearson(n if failed else 0.0, n, level=level)
    extremes = [f(r) for f in metric.measurement.extremes for r in (rate.low, rate.high)]
    description = "every sample fails" if failed else "no failures"
    # The extremes are those of large samples; a small one may lie a step outside. Rounding may
    # take the value itself a hair out of its range.
    return Interval(
        max(min(*extremes, value), metric.measurement.low),
        min(max(*extremes, value), metric.measurement.high),
        level,
        "Clopper-Pearson on the error rate, best and worst order",
        note=f"{description}: one-sided, as far as the error rate and any order allow",
    )


def _interval_without_overlap(
    value_from_auroc: Callable[[float, float], float], s: Scored, value: float, level: float
) -> Interval | None:
    """All failures on one side of all successes: AUROC_f is 1 or 0.

    Were it really a, the fewer of failures and successes would all be ranked right with a chance
    of at most a to the power of their number.
    """
    # A sample of weight 0 is none.
    failures, n_samples = count_failures(s), _n_with_weight(s)
    smaller_number = float(min(failures, n_samples - failures))
    risk = s.merged_groups.risk
    best = value_from_auroc(1.0, risk)
    if value != best or smaller_number < 1:
        return None
    auroc = clopper_pearson(smaller_number, smaller_number, level=level)
    bounds = sorted((best, value_from_auroc(auroc.low, risk)))
    method = "Clopper-Pearson on the fewer of failures and successes"
    return Interval(bounds[0], bounds[1], level, method, note="no overlap was seen: one-sided")


def _interval_of_zero_risk(
    metric: Metric, measured: MetricValue, n: float, level: float
) -> Interval | None:
    """Risk 0 at a working point: exact limit for the accepted, the threshold as it was found."""
    if metric.measurement.upper_limit_of_zero is None or measured.value != 0:
        return None
    return Interval(
        0.0,
        metric.measurement.upper_limit_of_zero(n, level),
        level,
        "Clopper-Pearson among the accepted",
        note="none of the accepted fails: one-sided, the threshold taken as given",
    )


def max_degrees_of_freedom(metric: Metric, s: Scored) -> float:
    """Return the most degrees of freedom that the fewer of failures and successes allow."""
    if not metric.measurement.is_two_sample or not s.is_binary:
        return float("inf")
    n_failures = count_failures(s)
    n_samples = _n_with_weight(s)
    return min(n_failures, n_samples - n_failures) - 1.0


#: Degrees of freedom that Hanley and McNeil's variance is worth; the least that brings 10 failures
#: to 93 % and more in every population tried (docs/validation.md).
_MODEL_DEGREES_OF_FREEDOM = 3.0


def expected_variance(
    metric: Metric, s: Scored, value: float, cluster: IntArray | None = None
) -> ModelVariance | None:
    """Return the variance of this value by a model of the scores; None where there is no model.

    Few failures of a good score may all rank low, and then they show no spread. Weights and
    clusters count as many independent samples as they are worth.
    """
    # Where the error rate counts too, a model of the AUROC is none of the value.
    from_auroc = metric.measurement.from_auroc
    if from_auroc is None or not metric.measurement.is_two_sample or not s.is_binary:
        return None
    failures, successes = _n_effective_of_each_kind(s, cluster)
    # The line goes through 1 where the AUROC is 1.
    slope = from_auroc(1.0, s.merged_groups.risk) - from_auroc(0.0, s.merged_groups.risk)
    auroc = (value + slope - 1) / slope
    if not 0 < auroc < 1 or min(failures, successes) < 1:
        return None
    variance = hanley_mcneil_variance(auroc, failures, successes)
    return ModelVariance(slope * slope * variance, _MODEL_DEGREES_OF_FREEDOM)


def unbiased_influence(
    metric: Metric, s: Scored, influence: FloatArray, cluster: IntArray | None = None
) -> FloatArray:
    """Scale influences so that the variance of failures, and of successes, has its own n - 1.

    For an AUROC under 0/1 loss, whose influences have mean zero among the failures and among the
    successes: their spread is then DeLong's variance. Of one failure there is no spread to correct.
    """
    from_auroc = metric.measurement.from_auroc
    if from_auroc is None or not metric.measurement.is_two_sample or not s.is_binary:
        return influence
    failed = s.loss > 0
    in_all = _bias_correction(_n_clusters_of_kind(s, np.ones_like(failed), cluster))
    factors = [
        np.sqrt(_bias_correction(_n_clusters_of_kind(s, kind, cluster)) / in_all)
        for kind in (failed, ~failed)
    ]
    scaled: FloatArray = np.where(failed, *factors) * influence
    return scaled


def _bias_correction(n: float) -> float:
    """Return n/(n - 1), which corrects a variance from n units; 1 where there is one unit only."""
    return n / (n - 1) if n > 1 else 1.0


def _n_clusters_of_kind(s: Scored, kind: BoolArray, cluster: IntArray | None) -> float:
    """Return how many samples, or clusters that hold such samples, are of this kind."""
    if s.row_counts is not None:
        return float(s.row_counts[kind].sum())
    counts = kind if s.weight is None else kind & (s.weight > 0)
    return float(np.count_nonzero(counts) if cluster is None else np.unique(cluster[counts]).size)


def _n_effective_of_each_kind(s: Scored, cluster: IntArray | None) -> tuple[float, float]:
    """Return how many independent failures and successes there are."""
    if s.has_unit_weights and cluster is None:
        return float(s.n_failures), float(s.n_samples - s.n_failures)
    weight = np.ones(s.n_rows) if s.weight is None else s.weight
    kinds = s.loss > 0, s.loss <= 0
    failures, successes = (kish_sample_size(weight * kind, cluster) for kind in kinds)
    return failures, successes


def proportion_interval(
    proportion: float,
    residual: FloatArray,
    weight: FloatArray,
    *,
    level: float,
    cluster: IntArray | None,
) -> Interval:
    """Return the score interval of a share of samples.

    `residual` is what each sample counts for, less the share. Kish's number of samples supposes
    that weights do not depend on it, so it is scaled to the variance of the weighted residuals.
    The same holds for the sizes of clusters. Clusters that vary less than if all samples of each
    were equal count no more for it.
    """
    n = kish_sample_size(weight, cluster)
    if 0 < proportion < 1:
        weighted_residual = weight * residual
        scale = inner(weight, weight) / inner(weighted_residual, weighted_residual)
        if cluster is not None:
            cluster_weights, cluster_residuals = (
                np.bincount(cluster, weights=x) for x in (weight, weighted_residual)
            )
            scale = min(
                scale,
                inner(cluster_weights, cluster_weights)
                / max(inner(cluster_residuals, cluster_residuals), 1e-300),
            )
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
    """Return the interval of an AUROC of two kinds of samples, either of which may be rare."""
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
    """Return Kish's number of independent samples of this weight, 0 for none."""
    if cluster is not None:
        weight = np.bincount(cluster, weights=weight).astype(np.float64)
    square = inner(weight, weight)
    return float(weight.sum()) ** 2 / square if square > 0 else 0.0
