"""Curve of any threshold metric against coverage."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import prepend_zero, sorted_unique
from abstain._foundation.arrays import as_double, as_double_like, namespace, stack_scalars
from abstain._foundation.scored import Scored, output_reference, validate_samples
from abstain._foundation.tie_groups import TieGroups, n_accepted_groups
from abstain.curves._vertices import CurveArrays
from abstain.errors import InputError, UndefinedMetricWarning
from abstain.typing import AnyArray, Array, FloatArray, IntArray

#: Called as ``metric(confidence, loss, threshold=t, weight=weight)``.
ThresholdMetric: TypeAlias = Callable[..., float]

#: Default number of thresholds.
DEFAULT_THRESHOLDS = 200


@dataclass(frozen=True, eq=False)
class MetricCoverageCurve(CurveArrays):
    """A threshold metric against coverage, most selective threshold first.

    Attributes
    ----------
    metric : str
        Name of the metric.
    thresholds : array of shape (t,)
        Decreasing; accept when confidence >= threshold.
    coverage : array of shape (t,)
        Weighted share accepted, in [0, 1], increasing.
    value : array of shape (t,)
        The metric at that threshold; NaN if it is undefined, for example if nothing is accepted.
    accepted : array of shape (t,)
        Number of samples accepted.
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
    """Compute a threshold metric at several thresholds, as a function of coverage.

    Answers: how does this metric change if fewer samples are accepted?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; on the scale that the metric requires.
    loss : array of shape (n,)
        Finite and non-negative; in [0, 1] for the selective accuracy.
    metric : "selective_accuracy" or callable, default="selective_accuracy"
        One minus the mean loss of the accepted samples, or a function called as
        ``metric(confidence, loss, threshold=t, weight=weight)``, such as `cwsa` or `cwsa_plus`.
    thresholds : array of shape (t,), optional
        Any finite thresholds. By default the distinct confidences or, when there are more than
        200, about that many of them, evenly spaced in coverage.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    MetricCoverageCurve
        Arrays of the same library as the input, sorted by decreasing threshold. Range and direction
        depend on the metric; the selective accuracy is in [0, 1] and **higher is better**.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative. The metric can raise more.
    InputError
        If `metric` is neither the name nor a callable.

    Notes
    -----
    Samples of equal confidence are accepted together. NaN, with an `UndefinedMetricWarning`, where
    the metric is undefined. On a confidence in [0, 1] a default threshold of 1 becomes the number
    just below 1: it accepts the same samples, and metrics that divide by 1 - threshold (CWSA) keep
    their limit. The cost is one sort, and one call of the metric for each threshold.

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
    threshold_values = (
        _default_thresholds(s.groups) if thresholds is None else _check_thresholds(thresholds)
    )
    if thresholds is None and callable(metric):
        threshold_values = _replace_threshold_one(threshold_values)
    n_groups = n_accepted_groups(s.groups, threshold_values)
    if metric == "selective_accuracy":
        value = _selective_accuracy(s, n_groups)
    elif callable(metric):
        p = s.probability
        values = [metric(p, s.loss, threshold=float(t), weight=s.weight) for t in threshold_values]
        value = stack_scalars(values)
    else:
        raise InputError(f"`metric` must be 'selective_accuracy' or a callable; got {metric!r}")
    return MetricCoverageCurve(
        metric=metric if isinstance(metric, str) else getattr(metric, "__name__", repr(metric)),
        thresholds=threshold_values,
        coverage=_accepted_by_groups(s.groups.cumulative_weight / s.groups.total_weight, n_groups),
        value=value,
        accepted=_accepted_by_groups(s.groups.cumulative_count, n_groups),
    ).as_arrays_like(output_reference(s, confidence))


def _check_thresholds(thresholds: AnyArray) -> FloatArray:
    values = checks.finite(checks.vector(thresholds, "thresholds"), "thresholds")
    return np.unique(values.astype(np.float64))[::-1]


def _default_thresholds(groups: TieGroups) -> FloatArray:
    xp, values = groups.xp, as_double(groups.confidence)
    if values.shape[0] > DEFAULT_THRESHOLDS:
        shares = np.linspace(0.0, groups.total_weight, DEFAULT_THRESHOLDS + 1)[1:]
        group_index = xp.searchsorted(
            groups.cumulative_weight, as_double_like(shares, groups.cumulative_weight)
        )
        group_index = xp.concat(
            (xp.zeros_like(group_index[:1]), xp.clip(group_index, 0, values.shape[0] - 1))
        )
        values = xp.take(values, sorted_unique(group_index))
    # Few numbers, copied to host memory, because the metric is called with each of them.
    return values if xp is np else np.array([float(value) for value in values])


def _replace_threshold_one(thresholds: FloatArray) -> FloatArray:
    """Replace a threshold of 1 by the next smaller number, because metrics divide by 1 - threshold.

    If that number is a threshold already, the threshold 1 is removed.
    """
    if thresholds[0] != 1.0 or thresholds[-1] < 0.0:
        return thresholds
    largest_below_one = np.nextafter(1.0, 0.0)
    return (
        thresholds[1:]
        if thresholds[1:2] == largest_below_one
        else np.append(largest_below_one, thresholds[1:])
    )


def _accepted_by_groups(cumulative: Array, n_groups: IntArray) -> AnyArray:
    """Return the cumulative value of the first `n_groups` groups; 0 for no group."""
    return namespace(cumulative).take(prepend_zero(cumulative), n_groups)


def _selective_accuracy(s: Scored, n_groups: IntArray) -> AnyArray:
    checks.unit_interval(s.loss, "loss", hint="An accuracy is one minus a loss in [0, 1].")
    xp = s.groups.xp
    if not xp.all(n_groups > 0):
        msg = "the selective accuracy is undefined for thresholds that accept no sample"
        warnings.warn(msg, UndefinedMetricWarning, stacklevel=3)
    risk = s.groups.cumulative_loss / s.groups.cumulative_weight
    undefined = xp.full_like(risk[:1], float("nan"))
    return xp.take(xp.concat((undefined, 1.0 - risk)), n_groups)
