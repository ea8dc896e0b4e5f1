"""Compute a metric of the accepted samples, such as their accuracy, as a function of coverage."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import prepend_zero, sorted_unique
from abstain._foundation.arrays import (
    as_double,
    as_double_like,
    namespace,
    stack_scalars,
    without_gradient,
)
from abstain._foundation.scored import Scored, output_reference, validate_samples
from abstain._foundation.tie_groups import TieGroups, n_accepted_groups
from abstain.curves._vertices import CurveArrays
from abstain.errors import InputError, UndefinedMetricWarning
from abstain.typing import AnyArray, Array, FloatArray, IntArray

#: Function that is called as ``metric(confidence, loss, threshold=t, weight=weight)``.
ThresholdMetric: TypeAlias = Callable[..., float]

#: Default number of thresholds.
DEFAULT_THRESHOLDS = 200


@dataclass(frozen=True, eq=False)
class MetricCoverageCurve(CurveArrays):
    """A metric of the accepted samples as a function of coverage.

    Attributes
    ----------
    metric : str
        Name of the metric.
    thresholds : array of shape (t,)
        The thresholds in decreasing order. Samples with confidence >= threshold are accepted.
    coverage : array of shape (t,)
        Weighted share of accepted samples, in [0, 1], in increasing order.
    value : array of shape (t,)
        The metric at each threshold, or NaN if the metric is undefined, for example because no
        sample is accepted.
    accepted : array of shape (t,)
        Number of accepted samples.
    """

    metric: str
    thresholds: Array
    coverage: FloatArray
    value: FloatArray
    accepted: IntArray

    scalar_fields: ClassVar[frozenset[str]] = frozenset({"metric"})
    has_undefined_values: ClassVar[bool] = True


def metric_coverage_curve(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    metric: str | ThresholdMetric = "selective_accuracy",
    thresholds: AnyArray | None = None,
    weight: AnyArray | None = None,
) -> MetricCoverageCurve:
    """Compute a metric of the accepted samples as a function of coverage.

    Answers: how does this metric change if fewer samples are accepted?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidences on the scale that the metric requires. Higher means more trusted.
    loss : array of shape (n,)
        Finite and non-negative. For the selective accuracy, losses must be in [0, 1].
    metric : "selective_accuracy" or callable, default="selective_accuracy"
        The metric. "selective_accuracy" is one minus the mean loss of the accepted samples. A
        callable such as `cwsa` is called as ``metric(confidence, loss, threshold=t,
        weight=weight)``.
    thresholds : array of shape (t,), optional
        Any finite thresholds. The default is the distinct confidences. If there are more than 200
        distinct confidences, about 200 of them are selected, evenly spaced in coverage.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    MetricCoverageCurve
        Arrays of the same library as the input, sorted by decreasing threshold. The selective
        accuracy is in [0, 1]; **higher is better**.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative. The metric may raise other
        errors.
    InputError
        If `metric` is neither "selective_accuracy" nor a callable.

    Notes
    -----
    Samples of equal confidence are accepted together. Undefined values are NaN and cause an
    `UndefinedMetricWarning`. If `metric` is a callable, a default threshold of 1 is replaced by the
    largest number below 1, because CWSA divides by 1 - threshold. The cost is one sort and one call
    of the metric for each threshold.

    References
    ----------
    .. [1] Geifman and El-Yaniv (2017), Selective classification for deep neural networks,
       eq. 1-2, https://arxiv.org/abs/1705.08500

    Examples
    --------
    >>> from abstain.curves import metric_coverage_curve
    >>> curve = metric_coverage_curve([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1])
    >>> curve.coverage.tolist(), curve.value.round(3).tolist()
    ([0.25, 0.75, 1.0], [1.0, 0.667, 0.5])
    """
    s = validate_samples(confidence, loss, weight, uses_values=callable(metric))
    if thresholds is not None:
        threshold_values = _check_thresholds(thresholds)
    else:
        threshold_values = _default_thresholds(s.groups)
        if callable(metric):
            threshold_values = _replace_threshold_one(threshold_values)
    n_groups = n_accepted_groups(s.groups, threshold_values)
    if metric == "selective_accuracy":
        metric_name = "selective_accuracy"
        value = _selective_accuracy(s, n_groups)
    elif callable(metric):
        metric_name = getattr(metric, "__name__", repr(metric))
        value = _evaluate_at_thresholds(metric, s, threshold_values)
    else:
        raise InputError(f"`metric` must be 'selective_accuracy' or a callable; got {metric!r}")
    coverage = s.groups.cumulative_weight / s.groups.total_weight
    curve = MetricCoverageCurve(
        metric=metric_name,
        thresholds=threshold_values,
        coverage=_accepted_by_groups(coverage, n_groups),
        value=value,
        accepted=_accepted_by_groups(s.groups.cumulative_count, n_groups),
    )
    return curve.as_arrays_like(output_reference(s, confidence))


def _check_thresholds(thresholds: AnyArray) -> FloatArray:
    """Return the distinct thresholds in descending order."""
    values = checks.finite(checks.vector(thresholds, "thresholds"), "thresholds")
    return np.unique(values.astype(np.float64))[::-1]


def _default_thresholds(groups: TieGroups) -> FloatArray:
    """Return all distinct confidences, or a selection that is evenly spaced in coverage."""
    xp = groups.xp
    thresholds = as_double(without_gradient(groups.confidence))
    n_groups = thresholds.shape[0]
    if n_groups > DEFAULT_THRESHOLDS:
        cumulative_weight = groups.cumulative_weight
        accepted_weight = np.linspace(0.0, groups.total_weight, DEFAULT_THRESHOLDS + 1)[1:]
        accepted_weight = as_double_like(accepted_weight, cumulative_weight)
        index = xp.clip(xp.searchsorted(cumulative_weight, accepted_weight), 0, n_groups - 1)
        # The highest confidence is always a threshold.
        index = xp.concat((xp.zeros_like(index[:1]), index))
        thresholds = xp.take(thresholds, sorted_unique(index))
    # The metric is called with each threshold, which is a number. The samples stay on their device.
    return thresholds if xp is np else np.array([float(t) for t in thresholds])


def _evaluate_at_thresholds(metric: ThresholdMetric, s: Scored, thresholds: FloatArray) -> AnyArray:
    """Call the metric with each threshold, and return its values as an array."""
    values = []
    for threshold in thresholds.tolist():
        value = metric(s.probability, s.loss, threshold=threshold, weight=s.weight)
        values.append(value)
    return stack_scalars(values)


def _replace_threshold_one(thresholds: FloatArray) -> FloatArray:
    """Replace a threshold of 1 by the largest number below 1, for metrics that divide by 1 - t.

    If a confidence is outside [0, 1], thresholds are not changed.
    """
    if thresholds[0] != 1.0 or thresholds[-1] < 0.0:
        return thresholds
    largest_below_one = np.nextafter(1.0, 0.0)
    if thresholds[1:2] == largest_below_one:
        return thresholds[1:]
    return np.append(largest_below_one, thresholds[1:])


def _accepted_by_groups(cumulative: Array, n_groups: IntArray) -> AnyArray:
    """Return the sum over the first `n_groups` groups."""
    return namespace(cumulative).take(prepend_zero(cumulative), n_groups)


def _selective_accuracy(s: Scored, n_groups: IntArray) -> AnyArray:
    """Return the accuracy in the first `n_groups` groups, or NaN if `n_groups` is 0."""
    checks.unit_interval(s.loss, "loss", hint="An accuracy is one minus a loss in [0, 1].")
    xp = s.groups.xp
    if not xp.all(n_groups > 0):
        msg = "the selective accuracy is undefined for thresholds that accept no sample"
        warnings.warn(msg, UndefinedMetricWarning, stacklevel=3)
    risk = s.groups.cumulative_loss / s.groups.cumulative_weight
    undefined = xp.full_like(risk[:1], float("nan"))
    return xp.take(xp.concat((undefined, 1.0 - risk)), n_groups)
