"""Metrics of binary tasks with review or rejection: OC-AUC, OC-AP and AUROC of accepted samples.

The confidence selects the reviewed or rejected samples. The positive score ranks the classes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from abstain._foundation import checks
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
from abstain._foundation.tie_groups import group_ties
from abstain.metrics.classes import get_class_view, get_probabilities
from abstain.metrics.entry import Identity, Measurement, Metric, Need, value_with_warning
from abstain.metrics.roc import area_under_roc, average_precision, clip_negative, has_nonzero
from abstain.typing import AnyArray, Array, FloatArray

#: Reviewed share and coverage of the entries in the catalogue.
REVIEW, COVERAGE = 0.1, 0.8


#: Tolerance for a share of a tie group, which has rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class BinaryTask:
    """Confidence, class and score of the samples of a binary task."""

    #: Confidence and weight.
    scored: Scored
    #: 1 for the positive class, 0 for the other, shape (n,).
    positive: Array
    #: Higher means more likely positive, shape (n,).
    score: Array


@dataclass(frozen=True, eq=False)
class SplitWeights:
    """Weights of both classes: accepted at each positive score (highest first), and removed."""

    positive: FloatArray
    negative: FloatArray
    positive_removed: float
    negative_removed: float


def split_at_coverage(task: BinaryTask, coverage: float) -> SplitWeights:
    """Split the samples at a coverage; the tie group at the boundary is split proportionally."""
    xp, accepted_share = task.scored.xp, _accepted_share(task.scored, coverage)
    weight = xp.ones_like(accepted_share) if task.scored.weight is None else task.scored.weight
    positive = task.positive * weight
    negative = weight - positive
    removed = (
        float(xp.sum(positive * (1.0 - accepted_share))),
        float(xp.sum(negative * (1.0 - accepted_share))),
    )
    if not has_nonzero(accepted_share):
        nothing = xp.zeros_like(accepted_share[:1])
        return SplitWeights(nothing, nothing, *removed)
    groups = group_ties(task.score, task.positive, weight * accepted_share)
    return SplitWeights(groups.loss, clip_negative(groups.weight - groups.loss), *removed)


def _accepted_share(s: Scored, coverage: float) -> AnyArray:
    """Return the accepted share of each sample at a coverage, shape (n,)."""
    groups = s.groups
    xp, share_of_groups = (
        s.xp,
        (coverage * groups.total_weight - groups.weight_above) / groups.weight,
    )
    share_of_groups = xp.where(
        share_of_groups < _ROUNDING, xp.zeros_like(share_of_groups), share_of_groups
    )
    share_of_groups = xp.where(
        share_of_groups > 1.0 - _ROUNDING, xp.ones_like(share_of_groups), share_of_groups
    )
    share_of_samples = xp.take(share_of_groups, xp.clip(s.group_index, 0, None))
    return xp.where(s.group_index >= 0, share_of_samples, xp.zeros_like(share_of_samples))


def binary_task(
    confidence: AnyArray, labels: AnyArray, positive_score: AnyArray, weight: AnyArray | None
) -> BinaryTask:
    """Validate the arguments of the public functions; arrays on a device stay there."""
    if is_on_device(confidence):
        task = _binary_task_on_device(confidence, labels, positive_score, weight)
        if task is not None:
            return task
    c = checks.confidence(confidence)
    y = checks.finite(
        checks.vector(labels, "labels", length=c.size, reference="confidence"), "labels"
    )
    checks.reject_entries("labels", "must be 0 or 1 (the positive class)", y, (y != 0) & (y != 1))
    score = checks.vector(positive_score, "positive_score", length=c.size, reference="confidence")
    score = checks.finite(score, "positive_score")
    _, w, c, y, score = drop_zero_weights(checks.weight(weight, length=c.size), c, y, score)
    return BinaryTask(Scored(c, y, w), y, score)


def _binary_task_on_device(
    confidence: AnyArray, labels: AnyArray, positive_score: AnyArray, weight: AnyArray | None
) -> BinaryTask | None:
    """Validate the arguments on the device of the confidence; None if they are invalid."""
    y, score = (
        move_to_library_of(x if is_on_device(x) else checks.vector(x, name), name, confidence)
        for x, name in ((labels, "labels"), (positive_score, "positive_score"))
    )
    xp = namespace(confidence)
    if not (is_valid(xp, confidence, y) and is_valid(xp, score, y) and xp.all((y == 0) | (y == 1))):
        return None
    c, y, score = as_numpy_float(confidence), as_double(y), as_numpy_float(score)
    _, w, c, y, score = drop_zero_weights(validate_weight_like(weight, y), c, y, score)
    return BinaryTask(Scored(c, y, w), y, score)


def binary_task_of_samples(s: Scored) -> BinaryTask | MetricValue:
    """Return the binary task of samples that meet `Need.TWO_CLASSES`, or an undefined value."""
    if reason := reason_unknown_classes(s):
        return undefined(reason)
    view = get_class_view(s)
    return BinaryTask(s, as_double(view.labels == 1), log_odds_of_positive(view))


def reason_unknown_classes(s: Scored) -> str:
    """Return a text with the number of samples of unknown classes; empty if there are none."""
    unknown = get_class_view(s).labels < 0
    if s.weight is not None:
        unknown = unknown & (s.weight > 0)
    count = int(s.xp.count_nonzero(unknown))
    return f"{count} samples have an unknown class" if count else ""


def log_odds_of_positive(view: ClassView) -> AnyArray:
    """Return the log-odds of class 1 if available: probabilities near 0 and 1 are rounded."""
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

    Answers: how well does the system rank positives above negatives, if people answer the `review`
    share with the lowest confidence, without errors?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; only the order matters. Samples of low confidence are reviewed.
    labels : array of shape (n,)
        1 for the positive class, 0 for the other.
    positive_score : array of shape (n,)
        Higher means more likely positive; only the order matters.
    review : float, default=0.1
        Share of samples that are reviewed, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **higher is better**; 1 if all samples are reviewed, the ROC AUC if none is.
        NaN, with an `UndefinedMetricWarning`, if only one class occurs.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a label is not 0 or 1, `review` is outside [0, 1], or a
        weight is negative.

    Notes
    -----
    Reviewed positives rank above all other samples, reviewed negatives below. In the tie group at
    the review threshold, the same share of each sample is reviewed. This is the expectation over a
    random selection, so the row order does not matter. Ties of the positive score count half. The
    authors' code is for streams: it bins confidences and thresholds and reviews an integer number
    of samples. This function is its limit for fine bins. Cost: two sorts.

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
    return value_with_warning(
        compute_oc_auc(binary_task(confidence, labels, positive_score, weight), share), "oc_auc"
    )


def compute_oc_auc(task: BinaryTask, review: float) -> MetricValue:
    """Compute the ROC AUC with perfect answers for the least confident share."""
    positive, negative = _weights_with_oracle(task, review)
    if not has_nonzero(positive) or not has_nonzero(negative):
        return undefined("all samples have the same class")
    return MetricValue(area_under_roc(positive, negative))


def _weights_with_oracle(task: BinaryTask, review: float) -> tuple[FloatArray, FloatArray]:
    split = split_at_coverage(task, 1.0 - review)
    xp, zero = task.scored.xp, task.scored.xp.zeros_like(split.positive[:1])
    reviewed_positive, reviewed_negative = (
        zero + split.positive_removed,
        zero + split.negative_removed,
    )
    positive = xp.concat((reviewed_positive, split.positive, zero))
    negative = xp.concat((zero, split.negative, reviewed_negative))
    return positive, negative


def oc_ap(
    confidence: AnyArray,
    labels: AnyArray,
    positive_score: AnyArray,
    *,
    review: float = REVIEW,
    weight: AnyArray | None = None,
) -> float:
    """Compute the oracle-collaborative average precision.

    Answers: how precisely does the system detect positives, if people answer the `review` share
    with the lowest confidence, without errors?

    Parameters
    ----------
    confidence, labels, positive_score : array of shape (n,)
        As in `oc_auc`.
    review : float, default=0.1
        Share of samples that are reviewed, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **higher is better**; 1 if all samples are reviewed. NaN, with an
        `UndefinedMetricWarning`, if there are no positives.

    Raises
    ------
    ShapeError, DomainError
        As in `oc_auc`.

    Notes
    -----
    Samples are reviewed as in `oc_auc`. The average precision is a step function, as in
    scikit-learn; the authors' code interpolates between thresholds. Cost: two sorts.

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
    return value_with_warning(
        compute_oc_ap(binary_task(confidence, labels, positive_score, weight), share), "oc_ap"
    )


def compute_oc_ap(task: BinaryTask, review: float) -> MetricValue:
    """Compute the average precision with perfect answers for the least confident share."""
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
        As in `oc_auc`; samples of high confidence are accepted.
    coverage : float, default=0.8
        Share of samples that are accepted, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. NaN, with an `UndefinedMetricWarning`, if all accepted
        samples have the same class.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a label is not 0 or 1, `coverage` is outside [0, 1], or a
        weight is negative.

    Notes
    -----
    The value can decrease although the accuracy increases: a confidence that rejects samples near
    the decision threshold does not reject the samples that reduce the AUC. In the tie group at the
    coverage, the same share of each sample is accepted. Ties of the positive score count half.
    Cost: two sorts.

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
    split = split_at_coverage(task, coverage)
    if not has_nonzero(split.positive) or not has_nonzero(split.negative):
        return undefined("the accepted samples do not contain both classes")
    reached = task.scored.groups.weight_above < coverage * task.scored.groups.total_weight * (
        1 - _ROUNDING
    )
    count = int(task.scored.xp.sum(task.scored.groups.count[reached]))
    return MetricValue(area_under_roc(split.positive, split.negative), count)


def _compute_on_samples(
    kernel: Callable[[BinaryTask, float], MetricValue], share: float
) -> Callable[[Scored], MetricValue]:
    def compute(s: Scored) -> MetricValue:
        task = binary_task_of_samples(s)
        return task if isinstance(task, MetricValue) else kernel(task, share)

    return compute


_MEASUREMENT = Measurement(
    compute=_compute_on_samples(compute_oc_auc, REVIEW),
    needs=frozenset({Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES}),
    monotone=False,
    gradients=frozenset(),
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
)
