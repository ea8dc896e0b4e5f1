"""AUROC, average precision and FPR at a fixed TPR for the detection of failures."""

from dataclasses import replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import prepend_zero
from abstain._foundation.arrays import inner
from abstain._foundation.scored import MetricValue, Scored, undefined, validate_samples
from abstain._foundation.special import harmonic_between, inverse_squares_between
from abstain._foundation.tie_groups import TieGroups
from abstain.inference.influence import Gradient, tail_sums
from abstain.metrics.areas.augrc import FROM_AUGRC, failure_auroc_of_resamples, is_binary
from abstain.metrics.binned import limits_from_sorted_losses
from abstain.metrics.entry import (
    DisplayOptions,
    Identity,
    Measurement,
    Metric,
    Need,
    ResampledFormula,
    value_with_warning,
)
from abstain.metrics.influences import (
    accepts_merged_rows,
    accepts_split_rows,
    make_influence_function,
)
from abstain.metrics.roc import (
    area_under_roc,
    average_precision,
    reason_without_both_kinds,
    success_and_failure_weights,
)
from abstain.typing import AnyArray, FloatArray

_JAEGER = "Jaeger et al. (2023), {}, https://arxiv.org/abs/2211.15259"
_HENDRYCKS = "Hendrycks and Gimpel (2017), https://arxiv.org/abs/1610.02136"

#: Tolerance for rounding errors in rates from weights that are not integers.
_RATE_TOLERANCE = 1e-12


def _scored_with_binary_loss(
    confidence: AnyArray, loss: AnyArray, weight: AnyArray | None, needed_by: str
) -> Scored:
    """Validate the arguments of a public function, whose losses must be 0 or 1."""
    s = validate_samples(confidence, loss, weight)
    checks.binary_loss(s.loss, required_by=needed_by)
    return s


def failure_auroc(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the area under the ROC curve of failure detection.

    Answers: what is the probability that a random success is more confident than a random failure?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores; higher means more trusted. Only the order of the scores matters.
    loss : array of shape (n,)
        1 for a failure, 0 for a success.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The expected value of a random order is 0.5. The
        value is NaN, with an `UndefinedMetricWarning`, if there are no failures or no successes.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss is not 0 or 1, or a weight is negative.

    Notes
    -----
    A tied pair counts as one half. The AUROC does not depend on the number of failures, so a
    classifier with more errors may have a higher AUROC. The function sorts the samples once.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, eq. 20-23, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> from abstain.metrics import failure_auroc
    >>> failure_auroc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    0.75
    """
    s = _scored_with_binary_loss(confidence, loss, weight, "failure_auroc")
    return value_with_warning(compute_failure_auroc(s), "failure_auroc")


def compute_failure_auroc(s: Scored) -> MetricValue:
    """Compute the failure AUROC of samples."""
    successes, failures = success_and_failure_weights(s)
    reason = reason_without_both_kinds(successes, failures)
    if reason:
        return undefined(reason)
    return MetricValue(area_under_roc(successes, failures))


def failure_ap_success(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the average precision of the confidence for detecting successes.

    Answers: averaged over the confidences of the successes as thresholds, how accurate are the
    accepted samples?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        See `failure_auroc`.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. For a random order, the value is about the accuracy.
        The value is NaN, with an `UndefinedMetricWarning`, if there are no successes.

    Raises
    ------
    ShapeError, DomainError
        See `failure_auroc`.

    Notes
    -----
    The value equals ``average_precision_score(1 - loss, confidence)`` of scikit-learn, which does
    not interpolate. Samples with equal confidence share a threshold. The function sorts the samples
    once.

    References
    ----------
    .. [1] Hendrycks and Gimpel (2017), A baseline for detecting misclassified and
       out-of-distribution examples, section 2, https://arxiv.org/abs/1610.02136

    Examples
    --------
    >>> from abstain.metrics import failure_ap_success
    >>> round(failure_ap_success([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 4)
    0.8333
    """
    s = _scored_with_binary_loss(confidence, loss, weight, "failure_ap_success")
    return value_with_warning(_compute_ap_success(s), "failure_ap_success")


def _compute_ap_success(s: Scored) -> MetricValue:
    """Compute the average precision of the confidence for detecting successes."""
    successes, failures = success_and_failure_weights(s)
    reason = reason_without_both_kinds(successes)
    if reason:
        return undefined(reason)
    return MetricValue(average_precision(successes, failures, s.merged_groups))


def failure_ap_error(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the average precision of the negated confidence for detecting failures.

    Answers: averaged over the confidences of the failures as thresholds, which share of the
    rejected samples are failures?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        See `failure_auroc`.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. For a random order, the value is about the error
        rate. The value is NaN, with an `UndefinedMetricWarning`, if there are no failures.

    Raises
    ------
    ShapeError, DomainError
        See `failure_auroc`.

    Notes
    -----
    The value equals ``average_precision_score(loss, -confidence)`` of scikit-learn, which does not
    interpolate. Samples with equal confidence share a threshold. The function sorts the samples
    once.

    References
    ----------
    .. [1] Hendrycks and Gimpel (2017), A baseline for detecting misclassified and
       out-of-distribution examples, section 2, https://arxiv.org/abs/1610.02136

    Examples
    --------
    >>> from abstain.metrics import failure_ap_error
    >>> round(failure_ap_error([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 4)
    0.8333
    """
    s = _scored_with_binary_loss(confidence, loss, weight, "failure_ap_error")
    return value_with_warning(_compute_ap_error(s), "failure_ap_error")


def _compute_ap_error(s: Scored) -> MetricValue:
    """Compute the average precision of the negated confidence for detecting failures."""
    successes, failures = success_and_failure_weights(s)
    reason = reason_without_both_kinds(failures=failures)
    if reason:
        return undefined(reason)
    xp = s.merged_groups.xp
    return MetricValue(average_precision(xp.flip(failures), xp.flip(successes)))


def fpr_at_tpr(
    confidence: AnyArray, loss: AnyArray, *, tpr: float = 0.95, weight: AnyArray | None = None
) -> float:
    """Compute the false positive rate of failure detection at a given true positive rate.

    Answers: if 95% of the correct predictions must be accepted, which share of the errors is
    accepted too?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `failure_auroc`.
    tpr : float, default=0.95
        True positive rate, the share of successes to accept, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **lower is better**. The value is NaN, with an `UndefinedMetricWarning`, if
        there are no failures or no successes.

    Raises
    ------
    ShapeError, DomainError
        See `failure_auroc`. A DomainError is also raised if `tpr` is outside [0, 1].

    Notes
    -----
    The value is the share of failures accepted at the largest threshold whose true positive rate is
    at least `tpr`, without interpolation. FD-Shifts uses a true positive rate of 0.9495, so pass
    ``tpr=0.9495`` to reproduce its values. FD-Shifts omits collinear points of the ROC curve, so
    with ties it may use a smaller threshold. The function sorts the samples once.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, eq. 20-23, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> from abstain.metrics import fpr_at_tpr
    >>> fpr_at_tpr([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    0.5
    """
    s = _scored_with_binary_loss(confidence, loss, weight, "fpr_at_tpr")
    rate = checks.fraction(tpr, "tpr")
    return value_with_warning(_compute_fpr_at_tpr(s, rate), "fpr_at_tpr")


def _compute_fpr_at_tpr(s: Scored, tpr: float = 0.95) -> MetricValue:
    """Compute the share of failures that are accepted at the true positive rate."""
    successes, failures = success_and_failure_weights(s)
    reason = reason_without_both_kinds(successes, failures)
    if reason:
        return undefined(reason)
    xp = s.xp
    groups = s.merged_groups
    accepted_successes = prepend_zero(xp.cumulative_sum(successes))
    accepted_failures = prepend_zero(xp.cumulative_sum(failures))
    all_successes = accepted_successes[-1]
    min_rate = tpr - _RATE_TOLERANCE
    n_groups = int(xp.count_nonzero(accepted_successes / all_successes < min_rate))
    n_accepted = int(xp.sum(groups.count[:n_groups]))
    if n_groups and groups.is_merged is not None and groups.is_merged[n_groups - 1]:
        # Only the first successes of the merged group are needed to reach the rate.
        groups.check_ties_are_known()
        first, last = accepted_successes[n_groups - 1], accepted_successes[n_groups]
        rates = np.arange(first + 1, last + 1) / all_successes
        n_accepted -= int(np.count_nonzero(rates >= min_rate)) - 1
    false_positive_rate = float(accepted_failures[n_groups] / accepted_failures[-1])
    return MetricValue(false_positive_rate, n_accepted)


def _roc_gradient(groups: TieGroups) -> Gradient:
    """Return the gradient of the failure AUROC with respect to weights and losses of groups."""
    failures = groups.loss
    successes = np.maximum(groups.weight - failures, 0.0)
    failures_below = tail_sums(failures) - failures / 2
    successes_above = np.cumsum(successes) - successes / 2
    n_pairs = successes.sum() * failures.sum()
    auroc = inner(failures, successes_above) / n_pairs
    on_success = failures_below / n_pairs - auroc / successes.sum()
    on_failure = successes_above / n_pairs - auroc / failures.sum()
    return Gradient(on_success, on_failure - on_success)


def _precision_gradient(
    positive: FloatArray, negative: FloatArray, groups: TieGroups | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of the average precision by positive and negative weight at each rank.

    The arrays are ordered from the first to the last detected rank.
    """
    positive_through = np.cumsum(positive)
    weight_through = np.cumsum(positive + negative)
    precision = positive_through / weight_through
    # Derivatives of the sum of positive x precision with respect to the cumulative sums, and with
    # respect to the positives at the same rank.
    on_weight_through = positive * precision / weight_through
    on_positive_through = positive / weight_through
    on_same_rank = precision.copy()
    is_merged = None if groups is None else groups.is_merged
    if is_merged is not None:
        # A merged group contains m positives at the ranks k = a + 1, ..., b. After F negatives, the
        # precision at rank k is 1 - F/k.
        m, b = positive[is_merged], weight_through[is_merged]
        negative_before = (weight_through - positive_through)[is_merged]
        harmonic = harmonic_between(b - m, b)
        inverse_squares = inverse_squares_between(b - m, b)
        on_weight = harmonic - negative_before * inverse_squares
        mean_precision = 1.0 - negative_before * (b - m) * inverse_squares / m
        on_weight_through[is_merged] = on_weight
        on_positive_through[is_merged] = harmonic
        on_same_rank[is_merged] = mean_precision + on_weight - harmonic
    total = positive_through[-1]
    on_negative = -tail_sums(on_weight_through) / total
    on_positive = (on_same_rank + tail_sums(on_positive_through)) / total + on_negative
    average = average_precision(positive, negative, groups)
    return on_positive - average / total, on_negative


def _ap_success_gradient(groups: TieGroups) -> Gradient:
    """Return the gradient of the average precision for detecting successes."""
    failures = groups.loss
    successes = np.maximum(groups.weight - failures, 0.0)
    on_success, on_failure = _precision_gradient(successes, failures, groups)
    return Gradient(on_success, on_failure - on_success)


def _ap_error_gradient(groups: TieGroups) -> Gradient:
    """Return the gradient of the average precision for detecting failures."""
    # The least confident samples are detected first.
    failures = groups.loss[::-1]
    successes = np.maximum(groups.weight[::-1] - failures, 0.0)
    reversed_on_failure, reversed_on_success = _precision_gradient(failures, successes)
    on_failure = reversed_on_failure[::-1]
    on_success = reversed_on_success[::-1]
    return Gradient(on_success, on_failure - on_success)


_MEASUREMENT = Measurement(
    compute=compute_failure_auroc, needs=frozenset({Need.BINARY_LOSS}), gradients=frozenset()
)

FAILURE_AUROC = Metric(
    Identity(
        name="failure_auroc",
        title="failure AUROC",
        family="ranking",
        lower_is_better=False,
        meaning="A success is more confident than a failure with probability {value}.",
        source=_JAEGER.format("eq. 23"),
        function="failure_auroc(confidence, loss)",
        violated_requirements=("R1", "R2", "R5"),
    ),
    replace(
        _MEASUREMENT,
        averages_ties=True,
        influence=accepts_merged_rows(make_influence_function(_roc_gradient)),
        is_two_sample=True,
        from_auroc=lambda auroc, _: auroc,
        resampled=ResampledFormula(FROM_AUGRC, failure_auroc_of_resamples, is_binary),
        binned=limits_from_sorted_losses(compute_failure_auroc),
    ),
    DisplayOptions(headline=5),
)

ENTRIES = (
    FAILURE_AUROC,
    Metric(
        Identity(
            name="failure_ap_success",
            title="average precision of successes",
            family="ranking",
            lower_is_better=False,
            meaning="Averaged over the confidences of the successes as thresholds, {value} of the "
            "accepted samples are correct.",
            source=_HENDRYCKS,
            function="failure_ap_success(confidence, loss)",
        ),
        replace(
            _MEASUREMENT,
            compute=_compute_ap_success,
            influence=accepts_split_rows(make_influence_function(_ap_success_gradient)),
        ),
    ),
    Metric(
        Identity(
            name="failure_ap_error",
            title="average precision of failures",
            family="ranking",
            lower_is_better=False,
            meaning="Averaged over the confidences of the failures as thresholds, {value} of the "
            "rejected samples are failures.",
            source=_HENDRYCKS,
            function="failure_ap_error(confidence, loss)",
        ),
        replace(
            _MEASUREMENT,
            compute=_compute_ap_error,
            influence=accepts_merged_rows(make_influence_function(_ap_error_gradient)),
        ),
    ),
    Metric(
        Identity(
            name="fpr_at_95tpr",
            title="FPR at 95% TPR",
            family="ranking",
            lower_is_better=True,
            meaning="If 95% of the successes are accepted, so are {value} of the failures.",
            source=_JAEGER.format("eq. 20-21"),
            convention="first vertex with a true positive rate of at least 0.95",
            function="fpr_at_tpr(confidence, loss, tpr=0.95)",
        ),
        replace(
            _MEASUREMENT,
            compute=_compute_fpr_at_tpr,
            no_influence_reason="it depends on the density of the failures at one threshold",
        ),
    ),
)
