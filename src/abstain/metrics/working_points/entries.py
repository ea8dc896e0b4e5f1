"""Entries of metrics at a working point, with names such as ``selective_risk@80cov``."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from abstain._foundation.arrays import is_numpy
from abstain._foundation.scored import MetricValue, Scored
from abstain._foundation.tie_groups import n_accepted_groups
from abstain.curves.risk_coverage import ROUNDING
from abstain.inference.intervals import clopper_pearson
from abstain.metrics.binned import BinnedLimits, Limits, NonemptyBins, risk_at_position
from abstain.metrics.confidence_weighted.cwsa import (
    NEEDS,
    RAMPS,
    accepted_sums,
    check_threshold,
    scored_probabilities,
)
from abstain.metrics.entry import (
    BatchableComputation,
    DisplayOptions,
    Extremes,
    Family,
    Identity,
    Measurement,
    Metric,
    Need,
    value_with_warning,
)
from abstain.metrics.influences import accepts_group_rows, accepts_split_rows, sample_weights
from abstain.metrics.working_points.intervals import (
    coverage_at_risk_interval,
    plausible_thresholds_at_coverage,
    plausible_thresholds_at_risk,
)
from abstain.metrics.working_points.quantities import (
    CLASSIFICATION_QUALITY,
    GENERALIZED_RISK,
    REJECTION_QUALITY,
    SELECTIVE_RISK,
    Quantity,
    count_accepted_failures,
    coverage_at_vertex,
    influence_at_coverage,
    influence_at_risk,
    vertex_at_coverage,
    vertex_at_risk,
    vertices_at_coverages,
)
from abstain.typing import AnyArray, FloatArray

_SOURCE = "Geifman and El-Yaniv (2017), eq. 2, https://arxiv.org/abs/1705.08500"


def selective_accuracy(
    confidence: AnyArray, loss: AnyArray, *, threshold: float, weight: AnyArray | None = None
) -> float:
    """Compute the accuracy of the samples whose confidence is at least a threshold.

    Answers: among predictions with at least this probability of being correct, which share is
    correct?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence in [0, 1], interpreted as the probability of a correct prediction. Samples with
        confidence >= threshold are accepted.
    loss : array of shape (n,)
        In [0, 1]. The correctness of a sample is 1 - loss.
    threshold : float
        In [0, 1).
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The value is NaN, with an `UndefinedMetricWarning`,
        if no sample is accepted.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a confidence or loss is outside [0, 1], `threshold` is
        outside [0, 1), or a weight is negative.

    Notes
    -----
    The value is 1 - `selective_risk` at the same threshold. A lower coverage usually yields a
    higher value, so report the coverage too. If the confidence is calibrated, the accuracy is at
    least the threshold. Ties do not change the value. The running time is linear in the number of
    samples.

    References
    ----------
    .. [1] Geifman and El-Yaniv (2017), Selective classification for deep neural networks, eq. 2,
       https://arxiv.org/abs/1705.08500

    Examples
    --------
    >>> from abstain.metrics import selective_accuracy
    >>> selective_accuracy([1.0, 0.9, 0.8, 0.3], [0, 0, 1, 0], threshold=0.85)
    1.0
    """
    s = scored_probabilities(confidence, loss, weight)
    measured = _compute_selective_accuracy(s, threshold=check_threshold(threshold))
    return value_with_warning(measured, "selective_accuracy")


def _compute_selective_accuracy(s: Scored, *, threshold: float) -> MetricValue:
    # With the step ramp, CWSA+ is the mean of 1 - loss of the accepted samples.
    return accepted_sums(s, threshold, RAMPS["step"]).cwsa(plus=True)


def _selective_accuracy_influence(s: Scored, *, threshold: float) -> FloatArray:
    """Return the influence of each sample on the accuracy above a fixed threshold."""
    n_groups = int(n_accepted_groups(s.probability_groups, threshold))
    weight = sample_weights(s)
    is_accepted = (s.probability_group_index < n_groups) & (weight > 0)
    accepted_weight = float(weight[is_accepted].sum())
    correctness = 1.0 - s.loss
    mean = float((weight * correctness)[is_accepted].sum()) / accepted_weight
    return np.asarray(is_accepted * (correctness - mean) * (s.total_weight / accepted_weight))


def _selective_accuracy_limits(bins: NonemptyBins, threshold: float) -> Limits:
    """Return the limits of the selective accuracy for binned samples."""
    threshold_in_dtype = float(np.dtype(f"f{bins.precision // 8}").type(threshold))
    is_accepted = bins.min_confidence >= threshold_in_dtype
    contains_threshold = ~is_accepted & (bins.max_confidence >= threshold_in_dtype)
    successes = np.maximum(bins.weight - bins.loss, 0.0)
    n_successes = float(successes[is_accepted].sum())
    n_failures = float(bins.loss[is_accepted].sum())
    # Of a bin that contains the threshold, only the failures or only the successes may be accepted.
    more_successes = float(successes[contains_threshold].sum())
    more_failures = float(bins.loss[contains_threshold].sum())
    worst_total = n_successes + n_failures + more_failures
    best_total = n_successes + more_successes + n_failures
    low = n_successes / worst_total if worst_total else 0.0
    high = (n_successes + more_successes) / best_total if best_total else 1.0
    return low, high


def _make_selective_accuracy(name: str, threshold: str) -> Metric | None:
    """Return the selective accuracy at a threshold, or None if the threshold is not below 1."""
    threshold_value = float(threshold)
    if threshold_value >= 1:
        return None
    influence = partial(_selective_accuracy_influence, threshold=threshold_value)
    limits = partial(_selective_accuracy_limits, threshold=threshold_value)
    return Metric(
        Identity(
            name=name,
            title=f"selective accuracy at {threshold_value:.12g}",
            family="working point",
            lower_is_better=False,
            meaning=f"Among samples with a confidence of at least {threshold_value:.12g}, "
            "{value} are correct.",
            source=_SOURCE,
            convention="1 - selective risk at a threshold",
            function=f"selective_accuracy(confidence, loss, threshold={threshold_value:.12g})",
        ),
        Measurement(
            compute=partial(_compute_selective_accuracy, threshold=threshold_value),
            needs=NEEDS,
            rank_based=False,
            influence=accepts_group_rows(influence),
            n_failures=partial(_count_failures_above_threshold, threshold=threshold_value),
            binned=BinnedLimits(limits),
        ),
    )


def _count_failures_above_threshold(s: Scored, *, threshold: float) -> int:
    """Return the number of failures whose confidence is at least a threshold."""
    n_groups = int(n_accepted_groups(s.probability_groups, threshold))
    group_index = s.probability_group_index
    is_accepted = (group_index >= 0) & (group_index < n_groups)
    is_accepted_failure = (s.loss > 0) & is_accepted
    if s.row_counts is None:
        return int(is_accepted_failure.sum())
    return int(s.row_counts[is_accepted_failure].sum())


SELECTIVE_ACCURACY_FAMILY = Family("selective_accuracy@{}", _make_selective_accuracy, ("0.8",))


_CONDESSA = "Condessa et al. (2017), {}, https://doi.org/10.1016/j.patcog.2016.10.011"
_GEIFMAN = "Geifman and El-Yaniv (2017), https://arxiv.org/abs/1705.08500"


def _measurement_at_coverage(quantity: Quantity, coverage: float) -> Measurement:
    """Return the measurement that all metrics at a coverage have in common."""

    def compute(s: Scored) -> MetricValue:
        vertex = vertex_at_coverage(s.merged_groups, coverage)
        return quantity.value_at_vertex(s.merged_groups, vertex)

    return Measurement(
        compute=BatchableComputation(compute, _compute_at_coverages, (quantity, coverage)),
        at_coverage=coverage,
        influence=accepts_split_rows(
            partial(influence_at_coverage, quantity=quantity, coverage=coverage)
        ),
        plausible_thresholds=partial(
            plausible_thresholds_at_coverage, quantity=quantity, coverage=coverage
        ),
    )


def _compute_at_coverages(
    s: Scored, parameters: Sequence[tuple[Quantity, float]]
) -> list[MetricValue]:
    """Compute metrics at several coverages after selecting all thresholds at once."""
    groups = s.merged_groups
    coverages = sorted({coverage for _, coverage in parameters})
    if is_numpy(groups.cumulative_weight):
        vertices = vertices_at_coverages(groups, np.array(coverages)).tolist()
    else:
        vertices = [vertex_at_coverage(groups, coverage) for coverage in coverages]
    vertex_by_coverage = dict(zip(coverages, vertices, strict=True))
    return [
        quantity.value_at_vertex(groups, vertex_by_coverage[coverage])
        for quantity, coverage in parameters
    ]


def _count_failures_at_coverage(s: Scored, *, coverage: float) -> int:
    """Return the number of accepted failures at the threshold selected for a coverage."""
    return count_accepted_failures(s, vertex_at_coverage(s.merged_groups, coverage))


def _upper_limit_of_zero_risk(n: float, level: float, *, coverage: float) -> float:
    """Return the exact upper limit of the risk at a coverage if no accepted sample fails."""
    n_accepted = max(n * coverage, 1.0)
    return clopper_pearson(0.0, n_accepted, level=level).high


def _selective_risk_extremes(coverage: float) -> Extremes:
    """Return the best and the worst selective risk at a coverage as functions of the error rate."""
    if coverage == 0:
        return (lambda r: float(r == 1), lambda r: float(r > 0))
    return (
        lambda r: max(0.0, (r + coverage - 1) / coverage),
        lambda r: min(r / coverage, 1.0),
    )


def _identity_at_coverage(
    name: str, percent: str, *, meaning: str, source: str, function: str, lower_is_better: bool
) -> Identity:
    """Return the names and descriptions of a metric at a coverage."""
    return Identity(
        name=name,
        title=f"{name.partition('@')[0].replace('_', ' ')} at {percent}% coverage",
        family="working point",
        lower_is_better=lower_is_better,
        meaning=f"At a coverage of at least {percent}%, {meaning}",
        source=source,
        convention="minimum risk among thresholds with at least the coverage",
        function=function.format(f"confidence, loss, coverage={float(percent) / 100:g}"),
    )


def _make_selective_risk(name: str, percent: str) -> Metric:
    """Return the catalogue entry of the selective risk at a coverage in percent."""
    coverage = float(percent) / 100
    identity = _identity_at_coverage(
        name,
        percent,
        meaning="{value} of the accepted samples are wrong.",
        source=_GEIFMAN,
        function="selective_risk({})",
        lower_is_better=True,
    )
    measurement = replace(
        _measurement_at_coverage(SELECTIVE_RISK, coverage),
        n_failures=partial(_count_failures_at_coverage, coverage=coverage),
        extremes=_selective_risk_extremes(coverage),
        upper_limit_of_zero=partial(_upper_limit_of_zero_risk, coverage=coverage),
        binned=BinnedLimits(partial(_risk_limits, coverage=coverage)),
    )
    titles = (f"Risk at {percent}% coverage", f"Risk at {percent}% cov.")
    return Metric(identity, measurement, DisplayOptions(*titles))


def _make_generalized_risk(name: str, percent: str) -> Metric:
    """Return the catalogue entry of the generalized risk at a coverage in percent."""
    coverage = float(percent) / 100
    identity = _identity_at_coverage(
        name,
        percent,
        meaning="{value} of all samples are accepted and wrong.",
        source="Traub et al. (2024), eq. 3, https://arxiv.org/abs/2407.01032",
        function="generalized_risk({})",
        lower_is_better=True,
    )
    measurement = replace(
        _measurement_at_coverage(GENERALIZED_RISK, coverage),
        # The threshold has minimum selective risk. A better order can select a threshold with a
        # larger coverage and a larger total loss.
        monotone=False,
        n_failures=partial(_count_failures_at_coverage, coverage=coverage),
        extremes=(lambda r: max(0.0, r + coverage - 1), lambda r: min(r, coverage)),
        upper_limit_of_zero=lambda n, level: (
            _upper_limit_of_zero_risk(n, level, coverage=coverage) * coverage
        ),
    )
    return Metric(identity, measurement)


def _make_classification_quality(name: str, percent: str) -> Metric:
    """Return the catalogue entry of the classification quality at a coverage in percent."""
    identity = _identity_at_coverage(
        name,
        percent,
        meaning="{value} of all samples are accepted and correct, or rejected and wrong.",
        source=_CONDESSA.format("eq. 7"),
        function="working_point({}).classification_quality",
        lower_is_better=False,
    )
    return Metric(identity, _measurement_of_quality(CLASSIFICATION_QUALITY, float(percent) / 100))


def _make_rejection_quality(name: str, percent: str) -> Metric:
    """Return the catalogue entry of the rejection quality at a coverage in percent."""
    identity = _identity_at_coverage(
        name,
        percent,
        meaning="the odds of failure are {value} times as high among rejected samples as among all "
        "samples.",
        source=_CONDESSA.format("eq. 9"),
        function="working_point({}).rejection_quality",
        lower_is_better=False,
    )
    measurement = _measurement_of_quality(REJECTION_QUALITY, float(percent) / 100)
    return Metric(identity, replace(measurement, high=float("inf"), is_two_sample=True))


def _measurement_of_quality(quantity: Quantity, coverage: float) -> Measurement:
    """Return the measurement of the classification quality or the rejection quality."""
    return replace(
        _measurement_at_coverage(quantity, coverage),
        needs=frozenset({Need.UNIT_LOSS}),
        monotone=False,
        caution="the threshold is selected on the same data, so the value is optimistic",
    )


def _make_coverage_at_risk(name: str, percent: str) -> Metric:
    """Return the catalogue entry of the largest coverage at a risk in percent."""
    risk = float(percent) / 100

    def compute(s: Scored) -> MetricValue:
        return coverage_at_vertex(s.merged_groups, vertex_at_risk(s.merged_groups, risk))

    def count_failures(s: Scored) -> int:
        return count_accepted_failures(s, vertex_at_risk(s.merged_groups, risk))

    return Metric(
        Identity(
            name=name,
            title=f"coverage at {percent}% risk",
            family="working point",
            lower_is_better=False,
            meaning=f"If at most {percent}% of the accepted samples may be wrong, {{value}} of the "
            "samples can be accepted.",
            source=_GEIFMAN,
            convention="largest coverage with at most this risk",
            function=f"coverage_at_risk(confidence, loss, max_risk={risk:g})",
        ),
        Measurement(
            compute=compute,
            gradients=frozenset(),
            influence=accepts_split_rows(partial(influence_at_risk, max_risk=risk)),
            interval=partial(coverage_at_risk_interval, risk=risk),
            plausible_thresholds=partial(plausible_thresholds_at_risk, risk=risk),
            no_error_at_threshold=True,
            n_failures=count_failures,
            binned=BinnedLimits(partial(_coverage_limits, max_risk=risk)),
        ),
        DisplayOptions(narrow_title=f"Cov. at {percent}% risk"),
    )


def _risk_limits(bins: NonemptyBins, coverage: float) -> Limits:
    """Return the limits of the minimum risk among the thresholds with at least the coverage."""
    required_weight = coverage * bins.total * (1 - ROUNDING)
    has_coverage = bins.through >= required_weight
    # The last bin has full coverage, even if rounding errors suggest otherwise.
    has_coverage[-1] = True
    risk_after_bin = bins.loss_through / bins.through
    high = float(risk_after_bin[has_coverage].min())
    # If all losses of a bin are last, the risk decreases until the losses begin and then increases.
    may_contain_threshold = has_coverage & bins.has_several_confidences
    losses_begin = bins.through - bins.min_failure_weight
    position = np.clip(required_weight, losses_begin, bins.through)[may_contain_threshold]
    accepted_failures = position - losses_begin[may_contain_threshold]
    # The loss is summed from above, because a difference of sums would have rounding errors.
    loss = bins.loss_above[may_contain_threshold] + bins.max_loss * accepted_failures
    min_risks = risk_at_position(loss, position, bins.max_loss)
    return float(np.min(min_risks, initial=high)), high


def _coverage_limits(bins: NonemptyBins, max_risk: float) -> Limits:
    """Return the limits of the largest coverage among the thresholds with at most this risk."""
    target = max_risk * (1 + ROUNDING)
    meets_target = bins.loss_through / bins.through <= target
    low = float(bins.through[meets_target].max(initial=0.0))
    high = low
    if bins.max_loss > target:
        # If all losses of a bin are last, the risk is minimal where the losses begin.
        losses_begin = bins.through - bins.min_failure_weight
        min_risk = risk_at_position(bins.loss_above, losses_begin, bins.max_loss)
        may_contain_threshold = (
            bins.has_several_confidences & (min_risk <= target) & (bins.through > low)
        )
        # After this weight, the risk exceeds the target.
        excess_loss = bins.max_loss * bins.through - bins.loss_through
        max_weight = excess_loss / (bins.max_loss - target)
        position = np.clip(max_weight, losses_begin, bins.through)[may_contain_threshold]
        high = float(np.max(position, initial=low))
    return low / bins.total, high / bins.total


def _percentage_family(
    pattern: str, make_metric: Callable[[str, str], Metric], example: str
) -> Family:
    """Return a family of metrics whose number is a percentage of at most 100."""

    def make_metric_up_to_100(name: str, percent: str) -> Metric | None:
        return make_metric(name, percent) if float(percent) <= 100 else None

    return Family(pattern, make_metric_up_to_100, (example,))


FAMILIES = (
    _percentage_family("selective_risk@{}cov", _make_selective_risk, "85"),
    _percentage_family("generalized_risk@{}cov", _make_generalized_risk, "85"),
    _percentage_family("classification_quality@{}cov", _make_classification_quality, "85"),
    _percentage_family("rejection_quality@{}cov", _make_rejection_quality, "85"),
    _percentage_family("coverage@{}risk", _make_coverage_at_risk, "2"),
)

#: Names in the catalogue and their positions in the headlines of reports. The position of a metric
#: that is not a headline is None.
_LISTED = {
    "selective_risk@80cov": 7,
    "selective_risk@90cov": None,
    "selective_risk@95cov": None,
    "generalized_risk@80cov": None,
    "coverage@1risk": None,
    "coverage@5risk": 6,
    "coverage@10risk": None,
    "classification_quality@80cov": None,
    "rejection_quality@80cov": None,
    "selective_accuracy@0.9": None,
}

ENTRIES = tuple(
    replace(entry, display=replace(entry.display, headline=position))
    for name, position in _LISTED.items()
    for family in (*FAMILIES, SELECTIVE_ACCURACY_FAMILY)
    if (entry := family.parse(name))
)
