"""Confidence intervals of metrics and of paired differences, from influence functions."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from abstain._foundation.scored import MetricValue, Scored, validate_samples_on_host
from abstain.errors import InputError, ShapeError
from abstain.inference.influence import DISTANCE_STEPS
from abstain.inference.intervals import (
    Difference,
    Interval,
    check_level,
    difference_from_influences,
    interval_from_influence,
    no_difference,
    no_interval,
    wilson,
)
from abstain.inference.small_samples import FailureCount
from abstain.metrics.catalogue import metric_named
from abstain.metrics.entry import Metric, PlausibleThresholds
from abstain.metrics.influences import sample_weights
from abstain.metrics.small_samples import (
    expected_variance,
    interval_without_variation,
    max_degrees_of_freedom,
    proportion_interval,
    unbiased_influence,
)
from abstain.metrics.working_points.intervals import widen_over_thresholds
from abstain.typing import AnyArray, FloatArray, IntArray


def metric_interval(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    metric: str = "augrc",
    level: float = 0.95,
    weight: AnyArray | None = None,
    group: AnyArray | None = None,
) -> Interval:
    """Compute the confidence interval of a metric from its influence function.

    Answers: in which range is the value of this metric in the population?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores; higher means more trusted.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    metric : str, default="augrc"
        Name of a metric, possibly with a number, such as ``selective_risk@85cov``.
    level : float, default=0.95
        Confidence level, between 0 and 1.
    weight : array of shape (n,), optional
        Sample weights, on any scale. The interval treats each row as one observation.
    group : array of shape (n,), optional
        Cluster of each sample, such as a patient or a site, of any type. Samples within a cluster
        may be dependent, but different clusters must be independent.

    Returns
    -------
    Interval
        Bounds, standard error, method and warnings. If the metric has no influence function or the
        data have no variation, the bounds are NaN and the note states the reason.

    Raises
    ------
    ShapeError, DomainError, UnknownNameError
        See `augrc`. A DomainError is also raised if `level` is not between 0 and 1, and an
        UnknownNameError if no metric has this name.
    InputError
        If the metric requires inputs other than confidence and loss, or another kind of loss.

    Notes
    -----
    The interval uses t quantiles on a logit or log scale. The degrees of freedom are estimated from
    the influences, so few failures yield a wider interval. If the influences do not vary, the
    function returns an exact interval. The function sorts the samples once.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson (1988), Comparing the areas under two or more
       correlated receiver operating characteristic curves, https://doi.org/10.2307/2531595

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.metrics.intervals import metric_interval
    >>> confidence, loss = np.linspace(1, 0, 100), np.arange(100) % 10 == 9
    >>> interval = metric_interval(confidence, loss)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0206, 0.0947)
    """
    entry, s = metric_named(metric), validate_samples_on_host(confidence, loss, weight)
    check_needs(entry, s)
    cluster = s.cluster_codes(group)
    return interval_of_metric(entry, s, level=check_level(level), cluster=cluster)


def metric_difference(
    confidence: AnyArray,
    other: AnyArray,
    loss: AnyArray,
    *,
    other_loss: AnyArray | None = None,
    metric: str = "augrc",
    level: float = 0.95,
    weight: AnyArray | None = None,
    group: AnyArray | None = None,
) -> Difference:
    """Compare two confidence scores on the same samples, without resampling.

    Answers: is the first score significantly better than the second, and how large is the
    difference?

    Parameters
    ----------
    confidence, other : array of shape (n,)
        The two scores; higher means more trusted.
    loss : array of shape (n,)
        Finite and non-negative.
    other_loss : array of shape (n,), optional
        The losses of the second classifier, if the two scores belong to different classifiers.
    metric : str, default="augrc"
        Name of a metric, possibly with a number, such as ``selective_risk@85cov``.
    level : float, default=0.95
        Confidence level, between 0 and 1.
    weight, group : array of shape (n,), optional
        See `metric_interval`.

    Returns
    -------
    Difference
        The metric of the first score minus that of the second, with its interval, two-sided
        p-value, ratio and warnings.

    Raises
    ------
    ShapeError, DomainError, UnknownNameError, InputError
        See `metric_interval`. An InputError is also raised if the metric has no influence function.

    Notes
    -----
    The comparison is paired. The standard error is computed from the difference of the two
    influences of each sample. The function sorts the samples twice.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson (1988), https://doi.org/10.2307/2531595

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.metrics.intervals import metric_difference
    >>> loss = np.arange(100) % 10 == 9
    >>> first = np.linspace(1, 0, 100) - 0.5 * loss
    >>> found = metric_difference(first, np.linspace(1, 0, 100), loss)
    >>> round(found.value, 4), found.p_value < 0.01
    (-0.0315, True)
    """
    entry = metric_named(metric)
    reason = entry.reason_without_interval
    if reason:
        raise InputError(f"`metric`: {reason}.")
    first = validate_samples_on_host(confidence, loss, weight)
    second_loss = loss if other_loss is None else other_loss
    second = validate_samples_on_host(other, second_loss, weight)
    if first.n_input_rows != second.n_input_rows:
        raise ShapeError(
            f"`other` must have the length of `confidence`, {first.n_input_rows}; "
            f"got {second.n_input_rows}"
        )
    check_needs(entry, first)
    check_needs(entry, second)
    cluster = first.cluster_codes(group)
    return difference_of_metric(entry, (first, second), level=check_level(level), cluster=cluster)


def check_needs(metric: Metric, s: Scored) -> None:
    """Raise an error if the metric requires inputs other than confidence and loss."""
    unmet_needs = metric.reason_not_applicable(s)
    if unmet_needs:
        raise InputError(
            f"`metric` {metric.name!r} {unmet_needs}, which confidence and loss do not provide"
        )


def interval_of_metric(
    metric: Metric,
    s: Scored,
    *,
    level: float = 0.95,
    cluster: IntArray | None = None,
    measured: MetricValue | None = None,
) -> Interval:
    """Return the analytic interval of a metric, or NaN bounds and a note.

    `cluster` contains integer codes that start at 0. `measured` is the value of the metric, which
    is otherwise computed.
    """
    if measured is None:
        measured = metric.compute(s)
    reason = measured.reason or metric.measurement.unreliable_reason(s)
    if reason:
        return no_interval(level, reason)
    if metric.measurement.interval is not None:
        return metric.measurement.interval(s, level, cluster)
    rows = metric.measurement.influence_rows(s) if cluster is None else s
    thresholds = _plausible_thresholds(metric, rows, cluster)
    interval = interval_without_variation(metric, s, measured, level=level, cluster=cluster)
    if interval is None:
        interval = _interval_from_influence(
            metric, s, measured, rows, thresholds, level=level, cluster=cluster
        )
    if thresholds is None:
        return interval
    bounds = value_bounds(metric, s)
    return widen_over_thresholds(interval, thresholds, bounds=bounds, cluster=cluster)


def _plausible_thresholds(
    metric: Metric, s: Scored, cluster: IntArray | None
) -> PlausibleThresholds | None:
    """Return the plausible thresholds of a metric, or None if its threshold cannot jump."""
    find_thresholds = metric.measurement.plausible_thresholds
    return None if find_thresholds is None else find_thresholds(s, cluster)


def influence_of(metric: Metric, s: Scored) -> FloatArray | None:
    """Return the influence of each sample on a metric, shape (n,).

    The function returns None if the metric has no influence function.
    """
    return None if metric.measurement.influence is None else metric.measurement.influence(s)


def error_influence_of(
    metric: Metric, s: Scored, cluster: IntArray | None = None
) -> FloatArray | None:
    """Return the influences on a metric, corrected for bias by `unbiased_influence`."""
    influence = influence_of(metric, s)
    return None if influence is None else unbiased_influence(metric, s, influence, cluster)


def _interval_from_influence(
    metric: Metric,
    s: Scored,
    measured: MetricValue,
    rows: Scored,
    thresholds: PlausibleThresholds | None,
    *,
    level: float,
    cluster: IntArray | None,
) -> Interval:
    """Return an interval from the influences, or a Wilson interval of a proportion."""
    if thresholds is None:
        influence = error_influence_of(metric, rows, cluster)
    else:
        rows = thresholds.rows
        influence = thresholds.fixed_threshold_influence
    if influence is None:
        return no_interval(level, metric.reason_without_interval)
    if metric.measurement.is_proportion and 0 < measured.value < 1:
        if s.has_unit_weights and cluster is None:
            # The number of samples differs from the number of rows in a stream.
            return wilson(measured.value * s.n_samples, s.n_samples, level=level)
        weight = sample_weights(s)
        return proportion_interval(measured.value, influence, weight, level=level, cluster=cluster)
    interval = interval_from_influence(
        measured.value,
        influence,
        level=level,
        bounds=value_bounds(metric, s),
        failures=min_failures(metric, [s]),
        heavy_tailed=metric.measurement.heavy_tailed,
        max_degrees=max_degrees_of_freedom(metric, s),
        model_variance=expected_variance(metric, s, measured.value, cluster),
        weight=s.weight,
        cluster=cluster,
        repeats=rows.row_counts,
    )
    if np.isnan(interval.low):
        return interval
    notes = [note for note in (interval.note, metric.measurement.caution) if note]
    return replace(interval, note="; ".join(notes))


def min_failures(metric: Metric, scored_sets: Sequence[Scored]) -> FailureCount | None:
    """Return the smallest number of failures over several scores of the same samples.

    The function returns None if the failures do not limit the precision of the metric.
    """
    n_failures = metric.measurement.n_failures
    if n_failures is None or not scored_sets:
        return None
    return FailureCount(min(n_failures(s) for s in scored_sets), metric.failure_population)


def value_bounds(metric: Metric, s: Scored) -> tuple[float, float]:
    """Return the range of a metric; the upper bound is infinite if losses exceed 1."""
    if not s.is_loss_bounded and metric.measurement.low == 0 and metric.lower_is_better:
        return 0.0, float("inf")
    return metric.measurement.low, metric.measurement.high


def difference_range(metric: Metric, scored_sets: Sequence[Scored]) -> tuple[float, float]:
    """Return the range of a metric over several scores.

    If losses exceed 1, the upper bound is multiplied by the largest loss.
    """
    low = metric.measurement.low
    high = metric.measurement.high
    if low != 0 or not metric.lower_is_better:
        return low, high
    max_losses = [float(s.loss.max()) for s in scored_sets if not s.is_loss_bounded]
    return 0.0, high * max(max_losses, default=1.0)


def influence_matrix(
    metric: Metric, scored_sets: Sequence[Scored], cluster: IntArray | None = None
) -> FloatArray:
    """Return the influences on a metric for k scores of the same n samples, shape (n, k).

    The column of a score is NaN if the metric is undefined or has no influence function.
    """
    columns = [_influence_or_nan(metric, s, cluster) for s in scored_sets]
    return np.stack(columns, axis=1)


def fixed_threshold_influences(
    metric: Metric, scored_sets: Sequence[Scored], cluster: IntArray | None
) -> tuple[FloatArray, FloatArray] | None:
    """Return the influences on a metric at fixed thresholds, and the effects of other thresholds.

    The influences of k scores have shape (n, k). The second array contains the largest decrease and
    increase of the value over plausible thresholds, shape (k, 2, steps). The function returns None
    if no threshold can jump.
    """
    thresholds_by_score = [_plausible_thresholds(metric, s, cluster) for s in scored_sets]
    if not any(thresholds_by_score):
        return None
    influences = []
    max_shifts = []
    for thresholds, s in zip(thresholds_by_score, scored_sets, strict=True):
        if thresholds is None:
            influences.append(_influence_or_nan(metric, s, cluster))
            max_shifts.append(np.zeros((2, DISTANCE_STEPS.size)))
        else:
            influences.append(thresholds.fixed_threshold_influence)
            max_shifts.append(thresholds.reach)
    return np.stack(influences, axis=1), np.array(max_shifts)


def _influence_or_nan(metric: Metric, s: Scored, cluster: IntArray | None) -> FloatArray:
    """Return the influences on a metric, or NaN if the metric or its influences are undefined."""
    if metric.compute(s).reason:
        return np.full(s.n_rows, np.nan)
    influence = error_influence_of(metric, s, cluster)
    return np.full(s.n_rows, np.nan) if influence is None else influence


def difference_of_metric(
    metric: Metric,
    pair: tuple[Scored, Scored],
    *,
    level: float = 0.95,
    cluster: IntArray | None = None,
) -> Difference:
    """Return the paired difference of a metric between two scores of the same samples."""
    first, second = pair
    values = metric.compute(first).value, metric.compute(second).value
    unreliable_reason = metric.measurement.unreliable_reason
    reason = unreliable_reason(first) or unreliable_reason(second)
    if reason:
        return no_difference(values, level, reason)
    at_fixed_thresholds = fixed_threshold_influences(metric, pair, cluster)
    if at_fixed_thresholds is None:
        influences, max_shifts = influence_matrix(metric, pair, cluster), None
    else:
        influences, max_shifts = at_fixed_thresholds
    return difference_from_influences(
        values,
        influences,
        lower_is_better=metric.lower_is_better,
        level=level,
        failures=min_failures(metric, pair),
        heavy_tailed=metric.measurement.heavy_tailed,
        bounds=difference_range(metric, pair),
        weight=first.weight,
        cluster=cluster,
        max_shifts=max_shifts,
        no_error_at_threshold=metric.measurement.no_error_at_threshold,
    )
