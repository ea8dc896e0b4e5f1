"""The ROC curve of failure detection."""

import warnings
from dataclasses import dataclass

from abstain._foundation import checks
from abstain._foundation.array_functions import prepend_zero
from abstain._foundation.arrays import namespace
from abstain._foundation.scored import validate_samples
from abstain._foundation.tie_groups import thresholds_from_infinity
from abstain.curves._vertices import CurveArrays
from abstain.errors import UndefinedMetricWarning
from abstain.typing import AnyArray, Array, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FailureRocCurve(CurveArrays):
    """ROC curve of the confidence, with successes as the positive class.

    The curve has one point for each threshold. The first point is the origin, at which no sample is
    accepted. At point i, samples with confidence >= thresholds[i] are accepted.

    Attributes
    ----------
    thresholds : array of shape (g + 1,)
        Infinity, followed by the distinct confidences in decreasing order.
    true_positive_rate : array of shape (g + 1,)
        Accepted weighted share of the successes.
    false_positive_rate : array of shape (g + 1,)
        Accepted weighted share of the failures, which are silent failures.
    accepted : array of shape (g + 1,)
        Number of accepted samples.
    successes : array of shape (g + 1,)
        Total weight of the accepted successes, or their number if there are no weights.
    failures : array of shape (g + 1,)
        Total weight of the accepted failures, or their number if there are no weights.
    """

    thresholds: Array
    true_positive_rate: FloatArray
    false_positive_rate: FloatArray
    accepted: IntArray
    successes: FloatArray
    failures: FloatArray


def failure_roc_curve(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> FailureRocCurve:
    """Compute the ROC curve of the confidence as a detector of failures.

    Answers: if this share of the successes is accepted, which share of the failures is accepted?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores on any scale, because only their order matters. Higher is more confident.
    loss : array of shape (n,)
        1 for a failure, 0 for a success.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    FailureRocCurve
        Arrays of the same library as the input. Successes are the positive class. The area under
        the curve is the failure AUROC; **higher is better**.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss is not 0 or 1, or a weight is negative.

    Notes
    -----
    Samples of equal confidence are accepted together. If there are no successes, the true positive
    rate is NaN. If there are no failures, the false positive rate is NaN. In both cases, the
    function warns with an `UndefinedMetricWarning`. The cost is one sort.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, eq. 20-23, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> from abstain.curves import failure_roc_curve
    >>> curve = failure_roc_curve([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1])
    >>> curve.true_positive_rate.tolist(), curve.false_positive_rate.tolist()
    ([0.0, 0.5, 1.0, 1.0], [0.0, 0.0, 0.5, 1.0])
    """
    s = validate_samples(confidence, loss, weight)
    checks.binary_loss(s.loss, required_by="failure_roc_curve")
    # The curve counts failures, so it has no gradient.
    groups = s.without_gradient.groups
    successes = prepend_zero(groups.xp.cumulative_sum(groups.weight - groups.loss))
    failures = prepend_zero(groups.cumulative_loss)
    return FailureRocCurve(
        thresholds=thresholds_from_infinity(groups),
        true_positive_rate=_rate(successes, "true positive rate", "successes"),
        false_positive_rate=_rate(failures, "false positive rate", "failures"),
        accepted=prepend_zero(groups.cumulative_count),
        successes=successes,
        failures=failures,
    ).as_arrays_like(confidence)


def _rate(cumulative: FloatArray, rate_name: str, members: str) -> AnyArray:
    if cumulative[-1] > 0:
        return cumulative / cumulative[-1]
    msg = f"the {rate_name} of failure_roc_curve is undefined here: there are no {members}"
    warnings.warn(msg, UndefinedMetricWarning, stacklevel=3)
    return namespace(cumulative).full_like(cumulative, float("nan"))
