"""Accuracy-rejection and error-retention curves."""

from dataclasses import dataclass

from abstain._foundation import checks
from abstain._foundation.array_functions import prepend_zero
from abstain._foundation.arrays import namespace, value_with_gradient, without_gradient
from abstain._foundation.scored import validate_samples
from abstain._foundation.tie_groups import thresholds_from_infinity
from abstain.curves._vertices import CurveArrays
from abstain.typing import AnyArray, Array, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class AccuracyRejectionCurve(CurveArrays):
    """Accuracy of the accepted samples as a function of the rejected share.

    Attributes
    ----------
    thresholds : array of shape (g,)
        Distinct confidences in decreasing order. Samples with confidence >= threshold are accepted.
    rejection : array of shape (g,)
        Weighted share of rejected samples, in [0, 1), which decreases to 0.
    accuracy : array of shape (g,)
        One minus the mean loss of the accepted samples.
    accepted : array of shape (g,)
        Number of accepted samples.
    """

    thresholds: Array
    rejection: FloatArray
    accuracy: FloatArray
    accepted: IntArray


@dataclass(frozen=True, eq=False)
class ErrorRetentionCurve(CurveArrays):
    """Mean loss of all samples if an oracle answers the rejected samples with loss 0.

    The first point of the curve is the origin, at which the oracle answers all samples.

    Attributes
    ----------
    thresholds : array of shape (g + 1,)
        Infinity, followed by the distinct confidences in decreasing order.
    retention : array of shape (g + 1,)
        Weighted share of the samples that the model answers, from 0 to 1.
    error : array of shape (g + 1,)
        Generalized risk, which is the mean loss of all samples if the samples that the oracle
        answers have loss 0.
    accepted : array of shape (g + 1,)
        Number of samples that the model answers.
    """

    thresholds: Array
    retention: FloatArray
    error: FloatArray
    accepted: IntArray


def accuracy_rejection_curve(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> AccuracyRejectionCurve:
    """Compute the accuracy-rejection curve.

    Answers: how accurate are the accepted samples if this share is rejected?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores on any scale, because only their order matters. Higher is more confident.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error under 0/1 loss.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    AccuracyRejectionCurve
        Arrays of the same library as the input, with one entry per distinct confidence. Accuracies
        are in [0, 1]; **higher is better**.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss is outside [0, 1], or a weight is negative.

    Notes
    -----
    The accuracy is 1 - selective risk, and the rejected share is 1 - coverage. Samples of equal
    confidence are rejected together. The curve has no point at which all samples are rejected. The
    cost is one sort.

    References
    ----------
    .. [1] Nadeem, Zucker and Hanczar (2009), Accuracy-rejection curves (ARCs) for comparing
       classification methods with a reject option, https://proceedings.mlr.press/v8/nadeem10a.html

    Examples
    --------
    >>> from abstain.curves import accuracy_rejection_curve
    >>> curve = accuracy_rejection_curve([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1])
    >>> curve.rejection.tolist(), curve.accuracy.round(3).tolist()
    ([0.75, 0.25, 0.0], [1.0, 0.667, 0.5])
    """
    s = validate_samples(confidence, loss, weight)
    checks.unit_interval(s.loss, "loss", hint="An accuracy is one minus a loss in [0, 1].")
    groups = s.groups
    rejected_share = (groups.total_weight - groups.cumulative_weight) / groups.total_weight
    accuracy = 1.0 - groups.cumulative_loss / groups.cumulative_weight
    curve = AccuracyRejectionCurve(
        thresholds=groups.confidence,
        rejection=_clip_to_unit_interval(rejected_share),
        accuracy=_clip_to_unit_interval(accuracy),
        accepted=groups.cumulative_count,
    )
    return curve.as_arrays_like(confidence)


def _clip_to_unit_interval(x: FloatArray) -> AnyArray:
    """Clip values outside [0, 1], which are due to rounding errors, and retain the gradient."""
    return value_with_gradient(x, namespace(x).clip(without_gradient(x), 0.0, 1.0))


def error_retention_curve(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> ErrorRetentionCurve:
    """Compute the error-retention curve.

    Answers: what is the mean loss of the system if the model answers this share and an oracle
    answers the remaining, least confident samples?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores on any scale, because only their order matters. Higher is more confident.
    loss : array of shape (n,)
        Finite and non-negative.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    ErrorRetentionCurve
        Arrays of the same library as the input. **Lower is better**.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.

    Notes
    -----
    The curve shows the generalized risk as a function of coverage. The area under the curve is the
    AUGRC, which the Shifts benchmark calls R-AUC. Samples of equal confidence are accepted
    together. The cost is one sort.

    References
    ----------
    .. [1] Malinin et al. (2021), Shifts: a dataset of real distributional shift across multiple
       large-scale tasks, https://arxiv.org/abs/2107.07455

    Examples
    --------
    >>> from abstain.curves import error_retention_curve
    >>> curve = error_retention_curve([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1])
    >>> curve.retention.tolist(), curve.error.tolist()
    ([0.0, 0.25, 0.75, 1.0], [0.0, 0.0, 0.25, 0.5])
    """
    groups = validate_samples(confidence, loss, weight).groups
    return ErrorRetentionCurve(
        thresholds=thresholds_from_infinity(groups),
        retention=prepend_zero(groups.cumulative_weight / groups.total_weight),
        error=prepend_zero(groups.cumulative_loss / groups.total_weight),
        accepted=prepend_zero(groups.cumulative_count),
    ).as_arrays_like(confidence)
