"""ROC AUC and average precision of binary tasks in which samples are reviewed or rejected.

The confidence determines which samples are reviewed or rejected. The positive score ranks the
accepted samples.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import sum_by_index
from abstain._foundation.arrays import (
    as_double,
    is_on_device,
    move_to_library_of,
    namespace,
    without_gradient,
)
from abstain._foundation.checks import drop_zero_weights
from abstain._foundation.device import as_numpy_float, is_valid, validate_weight_like
from abstain._foundation.scored import ClassView, MetricValue, Scored, undefined
from abstain.metrics.classes import get_class_view, get_probabilities
from abstain.metrics.entry import Identity, Measurement, Metric, Need, value_with_warning
from abstain.metrics.roc import area_under_roc, average_precision, has_nonzero
from abstain.typing import AnyArray, Array, FloatArray

#: Reviewed share and coverage of the entries in the catalogue.
REVIEW, COVERAGE = 0.1, 0.8

#: Number of coverages over which the retention metrics average: 1%, 2%, ..., 100%.
COVERAGES = 100

#: Tolerance for rounding errors in the accepted share of a tie group.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class BinaryTask:
    """Confidence, class and score of the samples of a binary task."""

    #: Samples with their confidences and weights.
    scored: Scored
    #: 1 for the positive class, 0 for the other, shape (n,).
    positive: Array
    #: Score of the positive class, shape (n,). Higher means more likely positive.
    score: Array

    @cached_property
    def score_groups(self) -> Scored:
        """The same samples, grouped by their positive score instead of their confidence."""
        return Scored(self.score, self.positive, self.scored.weight)

    def weights_at_coverage(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Return the accepted weights of positives and negatives by decreasing score.

        If only a part of a tie group is accepted, the same share of each of its samples is
        accepted.
        """
        s = self.scored
        xp = s.xp
        accepted_share = self._accepted_share_of_groups(coverage)
        # Samples of weight 0 have the group index -1. Any group serves, because the weight is 0.
        accepted_weight = xp.take(accepted_share, xp.clip(s.group_index, 0, None))
        if s.weight is not None:
            accepted_weight = accepted_weight * s.weight
        positive_weight = accepted_weight * self.positive
        negative_weight = accepted_weight - positive_weight
        n_scores = self.score_groups.groups.weight.shape[0]
        score_index = xp.clip(self.score_groups.group_index, 0, None)
        return (
            sum_by_index(score_index, positive_weight, n_scores),
            sum_by_index(score_index, negative_weight, n_scores),
        )

    def _accepted_share_of_groups(self, coverage: float) -> AnyArray:
        """Return the accepted share of each tie group, without rounding errors near 0 and 1."""
        xp = self.scored.xp
        groups = self.scored.groups
        accepted_weight = coverage * groups.total_weight - groups.weight_above
        share = xp.clip(accepted_weight / groups.weight, 0.0, 1.0)
        share = xp.where(share < _ROUNDING, xp.zeros_like(share), share)
        return xp.where(share > 1.0 - _ROUNDING, xp.ones_like(share), share)


def binary_task(
    confidence: AnyArray, labels: AnyArray, positive_score: AnyArray, weight: AnyArray | None
) -> BinaryTask:
    """Validate the arguments of the public functions, without copying arrays from a device."""
    if is_on_device(confidence):
        task = _binary_task_on_device(confidence, labels, positive_score, weight)
        if task is not None:
            return task
    c = checks.confidence(confidence)
    y = checks.vector(labels, "labels", length=c.size, reference="confidence")
    y = checks.finite(y, "labels")
    checks.reject_entries("labels", "must be 0 or 1 (the positive class)", y, (y != 0) & (y != 1))
    score = checks.vector(positive_score, "positive_score", length=c.size, reference="confidence")
    score = checks.finite(score, "positive_score")
    _, w, c, y, score = drop_zero_weights(checks.weight(weight, length=c.size), c, y, score)
    return BinaryTask(Scored(c, y, w), y, score)


def _binary_task_on_device(
    confidence: AnyArray, labels: AnyArray, positive_score: AnyArray, weight: AnyArray | None
) -> BinaryTask | None:
    """Validate the arguments on the device of the confidence; return None for invalid arguments."""
    y = _move_to_device_of(confidence, labels, "labels")
    score = _move_to_device_of(confidence, positive_score, "positive_score")
    xp = namespace(confidence)
    if not (is_valid(xp, confidence, y) and is_valid(xp, score, y) and xp.all((y == 0) | (y == 1))):
        return None
    c, y, score = as_numpy_float(confidence), as_double(y), as_numpy_float(score)
    _, w, c, y, score = drop_zero_weights(validate_weight_like(weight, y), c, y, score)
    return BinaryTask(Scored(c, y, w), y, score)


def _move_to_device_of(reference: AnyArray, x: AnyArray, name: str) -> AnyArray:
    """Convert an array or a list to the array library and device of `reference`."""
    array = x if is_on_device(x) else checks.vector(x, name)
    return move_to_library_of(array, name, reference)


def binary_task_of_samples(s: Scored) -> BinaryTask | MetricValue:
    """Return the binary task of the samples, or an undefined value if a class is unknown."""
    reason = reason_unknown_classes(s)
    if reason:
        return undefined(reason)
    view = get_class_view(s)
    return BinaryTask(s, as_double(view.labels == 1), log_odds_of_positive(view))


def reason_unknown_classes(s: Scored) -> str:
    """Return a note about the number of samples of unknown classes, or an empty string."""
    is_unknown = get_class_view(s).labels < 0
    if s.weight is not None:
        is_unknown = is_unknown & (s.weight > 0)
    n_unknown = int(s.xp.count_nonzero(is_unknown))
    return f"{n_unknown} samples have an unknown class" if n_unknown else ""


def log_odds_of_positive(view: ClassView) -> AnyArray:
    """Return the log-odds of class 1, or its probability if log-probabilities are missing."""
    # Log-odds distinguish more samples, because probabilities near 0 and 1 are rounded.
    log_p = view.log_probabilities
    if log_p is None:
        return without_gradient(get_probabilities(view)[:, 1])
    return without_gradient(log_p[:, 1] - log_p[:, 0])


def oc_auc(
    confidence: AnyArray,
    labels: AnyArray,
    positive_score: AnyArray,
    *,
    review: float = REVIEW,
    weight: AnyArray | None = None,
) -> float:
    """Compute the oracle-collaborative ROC AUC.

    Answers: how well does the system rank positives above negatives, if people correctly answer the
    share `review` of samples with the lowest confidence?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores; higher means more trusted. Only the order of the scores matters. Samples
        of low confidence are reviewed.
    labels : array of shape (n,)
        1 for the positive class, 0 for the other.
    positive_score : array of shape (n,)
        Higher means more likely positive; only the order matters.
    review : float, default=0.1
        Share of samples that are reviewed, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The value is 1 if all samples are reviewed and equals
        the ROC AUC if no sample is reviewed. The value is NaN, with an `UndefinedMetricWarning`, if
        only one class occurs.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a label is not 0 or 1, `review` is outside [0, 1], or a
        weight is negative.

    Notes
    -----
    Reviewed positives rank above all other samples, and reviewed negatives rank below all other
    samples. If only a part of a tie group is reviewed, the same share of each of its samples is
    reviewed, so the value does not depend on the order of rows. A pair with tied positive scores
    counts as one half. The function sorts the samples twice.

    References
    ----------
    .. [1] Kivlichan et al. (2021), Measuring and improving model-moderator collaboration using
       uncertainty estimation, https://arxiv.org/abs/2107.04212

    Examples
    --------
    >>> from abstain.metrics import oc_auc
    >>> oc_auc([0.9, 0.8, 0.6, 0.7], [1, 0, 1, 0], [0.9, 0.2, 0.4, 0.7], review=0.25)
    1.0
    """
    share = checks.fraction(review, "review")
    task = binary_task(confidence, labels, positive_score, weight)
    return value_with_warning(compute_oc_auc(task, share), "oc_auc")


def compute_oc_auc(task: BinaryTask, review: float) -> MetricValue:
    """Compute the ROC AUC if people correctly label the least confident samples."""
    positive, negative = _weights_with_oracle(task, review)
    if not has_nonzero(positive) or not has_nonzero(negative):
        return undefined("all samples have the same class")
    return MetricValue(area_under_roc(positive, negative))


def _weights_with_oracle(task: BinaryTask, review: float) -> tuple[FloatArray, FloatArray]:
    """Return the weights of positives and negatives at each rank, highest rank first.

    Reviewed positives have the highest rank, and reviewed negatives have the lowest rank. All other
    samples rank by score.
    """
    xp = task.scored.xp
    positive, negative = task.weights_at_coverage(1.0 - review)
    # The attribute `loss` of these groups contains the weight of the positives.
    groups = task.score_groups.groups
    zero = xp.zeros_like(positive[:1])
    reviewed_positive = zero + xp.sum(groups.loss - positive)
    reviewed_negative = zero + xp.sum(groups.weight - groups.loss - negative)
    positive_by_rank = xp.concat((reviewed_positive, positive, zero))
    negative_by_rank = xp.concat((zero, negative, reviewed_negative))
    return positive_by_rank, negative_by_rank


def oc_ap(
    confidence: AnyArray,
    labels: AnyArray,
    positive_score: AnyArray,
    *,
    review: float = REVIEW,
    weight: AnyArray | None = None,
) -> float:
    """Compute the oracle-collaborative average precision.

    Answers: how precisely does the system detect positives, if people correctly answer the share
    `review` of samples with the lowest confidence?

    Parameters
    ----------
    confidence, labels, positive_score : array of shape (n,)
        See `oc_auc`.
    review : float, default=0.1
        Share of samples that are reviewed, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The value is 1 if all samples are reviewed. The value
        is NaN, with an `UndefinedMetricWarning`, if there are no positives.

    Raises
    ------
    ShapeError, DomainError
        See `oc_auc`.

    Notes
    -----
    The reviewed samples are selected as in `oc_auc`. The average precision is the area under a step
    function, as in scikit-learn. The authors' code interpolates between thresholds. The function
    sorts the samples twice.

    References
    ----------
    .. [1] Kivlichan et al. (2021), https://arxiv.org/abs/2107.04212

    Examples
    --------
    >>> from abstain.metrics import oc_ap
    >>> oc_ap([0.9, 0.8, 0.6, 0.7], [1, 0, 1, 0], [0.9, 0.2, 0.4, 0.7], review=0.25)
    1.0
    """
    share = checks.fraction(review, "review")
    task = binary_task(confidence, labels, positive_score, weight)
    return value_with_warning(compute_oc_ap(task, share), "oc_ap")


def compute_oc_ap(task: BinaryTask, review: float) -> MetricValue:
    """Compute the average precision if people correctly label the least confident samples."""
    positive, negative = _weights_with_oracle(task, review)
    if not has_nonzero(positive):
        return undefined("there are no positives")
    return MetricValue(average_precision(positive, negative))


def accepted_auroc(
    confidence: AnyArray,
    labels: AnyArray,
    positive_score: AnyArray,
    *,
    coverage: float = COVERAGE,
    weight: AnyArray | None = None,
) -> float:
    """Compute the ROC AUC of the positive class among the accepted samples.

    Answers: if only the most confident share is accepted, how well does the score rank positives
    above negatives among the accepted samples?

    Parameters
    ----------
    confidence, labels, positive_score : array of shape (n,)
        See `oc_auc`. Samples of high confidence are accepted.
    coverage : float, default=0.8
        Share of samples that are accepted, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The value is NaN, with an `UndefinedMetricWarning`,
        if all accepted samples have the same class.

    Raises
    ------
    ShapeError, DomainError
        See `oc_auc`. A DomainError is also raised if `coverage` is outside [0, 1].

    Notes
    -----
    Rejecting the least confident samples can increase the accuracy and decrease this value. If only
    a part of a tie group is accepted, the same share of each of its samples is accepted. A pair
    with tied positive scores counts as one half. The function sorts the samples twice.

    References
    ----------
    .. [1] Pugnana and Ruggieri (2023), AUC-based selective classification,
       https://arxiv.org/abs/2210.10703

    Examples
    --------
    >>> from abstain.metrics import accepted_auroc
    >>> accepted_auroc([0.9, 0.8, 0.6, 0.7], [1, 0, 1, 0], [0.9, 0.2, 0.4, 0.7], coverage=0.75)
    1.0
    """
    share = checks.fraction(coverage, "coverage")
    task = binary_task(confidence, labels, positive_score, weight)
    return value_with_warning(_compute_accepted_auroc(task, share), "accepted_auroc")


def _compute_accepted_auroc(task: BinaryTask, coverage: float) -> MetricValue:
    """Compute the ROC AUC of the positive class among the accepted samples."""
    positive, negative = task.weights_at_coverage(coverage)
    if not has_nonzero(positive) or not has_nonzero(negative):
        return undefined("the accepted samples do not contain both classes")
    groups = task.scored.groups
    is_accepted = groups.weight_above < coverage * groups.total_weight * (1 - _ROUNDING)
    n_accepted = int(groups.xp.sum(groups.count[is_accepted]))
    return MetricValue(area_under_roc(positive, negative), n_accepted)


def auroc_retention(
    confidence: AnyArray,
    labels: AnyArray,
    positive_score: AnyArray,
    *,
    weight: AnyArray | None = None,
) -> float:
    """Compute the area under the AUROC-coverage curve (AUROC-AURC).

    Answers: averaged over coverages, how well does the score rank positives above negatives among
    the accepted samples?

    Parameters
    ----------
    confidence, labels, positive_score, weight : array of shape (n,)
        See `accepted_auroc`.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The value is NaN, with an `UndefinedMetricWarning`,
        if only one class occurs.

    Raises
    ------
    ShapeError, DomainError
        See `accepted_auroc`.

    Notes
    -----
    The value is the mean of `accepted_auroc` over the coverages 1%, 2%, ..., 100%, without
    coverages at which all accepted samples have the same class. At the excluded coverages,
    uncertainty-baselines uses the value 1 up to the first error and 0 afterwards. Traub et al.
    (2024) call this metric AUROC-AURC. If only a part of a tie group is accepted, the same share of
    each of its samples is accepted. The function sorts the samples twice.

    References
    ----------
    .. [1] Pugnana and Ruggieri (2023), AUC-based selective classification,
       https://arxiv.org/abs/2210.10703
    .. [2] Band et al. (2021), Benchmarking Bayesian deep learning on diabetic retinopathy detection
       tasks, https://arxiv.org/abs/2211.12717

    Examples
    --------
    >>> from abstain.metrics import auroc_retention
    >>> auroc_retention([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0], [0.9, 0.2, 0.7, 0.1])
    1.0
    """
    task = binary_task(confidence, labels, positive_score, weight)
    auroc, _ = _auroc_and_ap_retention(task)
    return value_with_warning(auroc, "auroc_retention")


def auprc_retention(
    confidence: AnyArray,
    labels: AnyArray,
    positive_score: AnyArray,
    *,
    weight: AnyArray | None = None,
) -> float:
    """Compute the area under the AUPRC-coverage curve (R-AUPRC).

    Answers: averaged over coverages, how precisely does the score detect positives among the
    accepted samples?

    Parameters
    ----------
    confidence, labels, positive_score, weight : array of shape (n,)
        See `auroc_retention`.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The value is NaN, with an `UndefinedMetricWarning`,
        if there are no positives.

    Raises
    ------
    ShapeError, DomainError
        See `auroc_retention`.

    Notes
    -----
    The value is the mean of the average precision of the accepted samples over the coverages 1%,
    2%, ..., 100%, without coverages at which no positive is accepted. The average precision is the
    area under a step function, as in scikit-learn, whereas uncertainty-baselines computes a
    trapezoid area. If few positives are accepted, the value is low even for a good ranking. The
    cost is that of `auroc_retention`.

    References
    ----------
    .. [1] Band et al. (2021), Benchmarking Bayesian deep learning on diabetic retinopathy detection
       tasks, https://arxiv.org/abs/2211.12717

    Examples
    --------
    >>> from abstain.metrics import auprc_retention
    >>> auprc_retention([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0], [0.9, 0.2, 0.7, 0.1])
    1.0
    """
    task = binary_task(confidence, labels, positive_score, weight)
    _, average_precision_area = _auroc_and_ap_retention(task)
    return value_with_warning(average_precision_area, "auprc_retention")


def _auroc_and_ap_retention(task: BinaryTask) -> tuple[MetricValue, MetricValue]:
    """Average the ROC AUC and the average precision of the accepted samples over coverages."""
    aurocs = []
    average_precisions = []
    for k in range(1, COVERAGES + 1):
        positive, negative = task.weights_at_coverage(k / COVERAGES)
        if not has_nonzero(positive):
            continue
        average_precisions.append(average_precision(positive, negative))
        if has_nonzero(negative):
            aurocs.append(area_under_roc(positive, negative))
    mean_auroc = _mean_or_undefined(aurocs, "both classes")
    mean_average_precision = _mean_or_undefined(average_precisions, "a positive")
    return mean_auroc, mean_average_precision


def _mean_or_undefined(values: list[float], required: str) -> MetricValue:
    """Return the mean of the defined values; `required` states what a defined value requires."""
    if not values:
        return undefined(f"the accepted samples contain {required} at no coverage")
    return MetricValue(float(np.mean(values)))


def _auroc_and_ap_retention_of_samples(s: Scored) -> tuple[MetricValue, MetricValue]:
    """Compute the AUROC retention and the AUPRC retention of samples with two classes."""
    task = binary_task_of_samples(s)
    return (task, task) if isinstance(task, MetricValue) else _auroc_and_ap_retention(task)


def _compute_on_samples(
    compute_on_task: Callable[[BinaryTask, float], MetricValue], share: float
) -> Callable[[Scored], MetricValue]:
    """Return a function that computes a binary metric from samples."""

    def compute(s: Scored) -> MetricValue:
        task = binary_task_of_samples(s)
        return task if isinstance(task, MetricValue) else compute_on_task(task, share)

    return compute


_MEASUREMENT = Measurement(
    compute=_compute_on_samples(compute_oc_auc, REVIEW),
    needs=frozenset({Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES}),
    monotone=False,
    gradients=frozenset(),
)

_RETENTION = replace(
    _MEASUREMENT, no_influence_reason="the compared pairs change at each coverage of the mean"
)

_OC_AUC = Identity(
    name="oc_auc",
    title="OC-AUC",
    family="working point",
    lower_is_better=False,
    meaning="If people answer the least confident 10%, a positive ranks above a negative with "
    "probability {value}.",
    source="Kivlichan et al. (2021), https://arxiv.org/abs/2107.04212",
    convention=f"review fraction {REVIEW}",
    function="oc_auc(confidence, labels, probabilities[:, 1])",
    violated_requirements=("R1", "R2", "R5"),
)

ENTRIES = (
    Metric(_OC_AUC, _MEASUREMENT),
    Metric(
        replace(
            _OC_AUC,
            name="oc_ap",
            title="OC-AP",
            meaning="If people answer the least confident 10%, the average precision of the "
            "positive class is {value}.",
            function="oc_ap(confidence, labels, probabilities[:, 1])",
            requirements_from="oc_auc",
        ),
        replace(_MEASUREMENT, compute=_compute_on_samples(compute_oc_ap, REVIEW)),
    ),
    Metric(
        Identity(
            name="accepted_auroc",
            title="AUROC of the accepted",
            family="working point",
            lower_is_better=False,
            meaning="Among the 80% most confident samples, a positive ranks above a negative with "
            "probability {value}.",
            source="Pugnana and Ruggieri (2023), https://arxiv.org/abs/2210.10703",
            convention=f"coverage {COVERAGE}",
            function="accepted_auroc(confidence, labels, probabilities[:, 1])",
        ),
        replace(_MEASUREMENT, compute=_compute_on_samples(_compute_accepted_auroc, COVERAGE)),
    ),
    Metric(
        Identity(
            name="auroc_retention",
            title="AUROC-AURC",
            family="area",
            lower_is_better=False,
            meaning="Averaged over the coverages at which both classes are accepted, an accepted "
            "positive ranks above an accepted negative with probability {value}.",
            source="Pugnana and Ruggieri (2023), https://arxiv.org/abs/2210.10703",
            convention=f"mean over those of {COVERAGES} coverages that accept both classes",
            function="auroc_retention(confidence, labels, probabilities[:, 1])",
            violated_requirements=("R2", "R3", "R5"),
        ),
        replace(_RETENTION, compute=lambda s: s.cached(_auroc_and_ap_retention_of_samples)[0]),
    ),
    Metric(
        Identity(
            name="auprc_retention",
            title="AUPRC retention",
            family="area",
            lower_is_better=False,
            meaning="Averaged over the coverages at which a positive is accepted, the average "
            "precision of the positive class is {value}.",
            source="Band et al. (2021), https://arxiv.org/abs/2211.12717",
            convention=f"mean over those of {COVERAGES} coverages that accept a positive",
            function="auprc_retention(confidence, labels, probabilities[:, 1])",
        ),
        replace(_RETENTION, compute=lambda s: s.cached(_auroc_and_ap_retention_of_samples)[1]),
    ),
)
