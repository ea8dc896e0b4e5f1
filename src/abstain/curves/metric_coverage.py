"""Any threshold metric against coverage: what a stricter threshold buys and costs."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import prepend_zero, sorted_unique
from abstain._foundation.arrays import namespace
from abstain._foundation.gradients import as_double, as_double_like, stack_scalars
from abstain._foundation.scored import Scored, output_reference, validate_samples
from abstain._foundation.tie_groups import TieGroups, n_accepted_groups
from abstain.curves._vertices import Vertices
from abstain.errors import InputError, UndefinedMetricWarning
from abstain.typing import AnyArray, Array, FloatArray, IntArray

#: Called as ``metric(confidence, loss, threshold=t, weight=weight)``.
ThresholdMetric: TypeAlias = Callable[..., float]

#: How many thresholds are swept when none are given.
DEFAULT_THRESHOLDS = 200


@dataclass(frozen=True, eq=False)
class MetricCoverageCurve(Vertices):
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
        The metric at that threshold; NaN where it is undefined, as where nothing is accepted.
    accepted : array of shape (t,)
        Number of samples accepted.
    """

    metric: str
    thresholds: Array
    coverage: FloatArray
    value: FloatArray
    accepted: IntArray

    whole: ClassVar[frozenset[str]] = frozenset({"metric"})
    nulls: ClassVar[bool] = True


def metric_coverage_curve(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    metric: str | ThresholdMetric = "selective_accuracy",
    thresholds: AnyArray | None = None,
    weight: AnyArray | None = None,
) -> MetricCoverageCurve:
    """Sweep a threshold metric and set it against coverage.

    Answers: how does this metric change as I accept fewer samples?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; the scale that the metric asks for.
    loss : array of shape (n,)
        Finite and non-negative; in [0, 1] for the selective accuracy.
    metric : "selective_accuracy" or callable, default="selective_accuracy"
        One minus the mean loss of the accepted, or a function called as ``metric(confidence,
        loss, threshold=t, weight=weight)``, such as `cwsa` or `cwsa_plus`.
    thresholds : array of shape (t,), optional
        Any finite thresholds. By default the distinct confidences or, when there are more than
        200, about that many of them, evenly spaced in coverage.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    MetricCoverageCurve
        Arrays of the caller's kind, sorted by decreasing threshold. Range and direction are the
        metric's; the selective accuracy is in [0, 1] and **higher is better**.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative; what the metric raises.
    InputError
        If `metric` is neither the name nor a callable.

    Notes
    -----
    Samples of equal confidence are accepted together. NaN, with an `UndefinedMetricWarning`,
    where the metric is undefined. On a
    confidence in [0, 1] a default threshold of 1 becomes the number just below 1: it accepts
    the same samples, and metrics that divide by 1 - threshold (CWSA) keep their limit. Cost: one
    sort, and one call of the metric for each threshold.

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
    swept = _default_thresholds(s.groups) if thresholds is None else _given(thresholds)
    if thresholds is None and callable(metric):
        swept = _below_one(swept)
    place = n_accepted_groups(s.groups, swept)
    if metric == "selective_accuracy":
        value = _selective_accuracy(s, place)
    elif callable(metric):
        p = s.probability
        at = [metric(p, s.loss, threshold=float(t), weight=s.weight) for t in swept]
        value = stack_scalars(at)
    else:
        raise InputError(f"`metric` must be 'selective_accuracy' or a callable; got {metric!r}")
    return MetricCoverageCurve(
        metric=metric if isinstance(metric, str) else getattr(metric, "__name__", repr(metric)),
        thresholds=swept,
        coverage=_at(s.groups.cumulative_weight / s.groups.total_weight, place),
        value=value,
        accepted=_at(s.groups.cumulative_count, place),
    ).of_kind(output_reference(s, confidence))


def _given(thresholds: AnyArray) -> FloatArray:
    swept = checks.finite(checks.vector(thresholds, "thresholds"), "thresholds")
    return np.unique(swept.astype(np.float64))[::-1]


def _default_thresholds(groups: TieGroups) -> FloatArray:
    xp, values = groups.xp, as_double(groups.confidence)
    if values.shape[0] > DEFAULT_THRESHOLDS:
        shares = np.linspace(0.0, groups.total_weight, DEFAULT_THRESHOLDS + 1)[1:]
        place = xp.searchsorted(
            groups.cumulative_weight, as_double_like(shares, groups.cumulative_weight)
        )
        place = xp.concat((xp.zeros_like(place[:1]), xp.clip(place, 0, values.shape[0] - 1)))
        values = xp.take(values, sorted_unique(place))
    # A few numbers: the metric is called with each of them.
    return values if xp is np else np.array([float(value) for value in values])


def _below_one(swept: FloatArray) -> FloatArray:
    """Move a threshold of 1 to the number just below, for metrics that divide by 1 - threshold.

    Where that number is a threshold itself, the one at 1 would accept other samples: it is left
    out.
    """
    if swept[0] != 1.0 or swept[-1] < 0.0:
        return swept
    below = np.nextafter(1.0, 0.0)
    return swept[1:] if swept[1:2] == below else np.append(below, swept[1:])


def _at(through: Array, place: IntArray) -> AnyArray:
    """Value accepted by the first `place` groups; nothing is accepted by none."""
    return namespace(through).take(prepend_zero(through), place)


def _selective_accuracy(s: Scored, place: IntArray) -> AnyArray:
    checks.unit_interval(s.loss, "loss", hint="An accuracy is one minus a loss in [0, 1].")
    xp = s.groups.xp
    if not xp.all(place > 0):
        msg = "the selective accuracy is undefined where a threshold accepts no sample"
        warnings.warn(msg, UndefinedMetricWarning, stacklevel=3)
    risk = s.groups.cumulative_loss / s.groups.cumulative_weight
    nothing = xp.full_like(risk[:1], float("nan"))
    return xp.take(xp.concat((nothing, 1.0 - risk)), place)
