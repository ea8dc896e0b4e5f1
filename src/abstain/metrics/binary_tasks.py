"""Metrics of binary tasks with review or rejection: ROC AUC and average precision.

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

    #: Confidence and weight.
    scored: Scored
    #: 1 for the positive class, 0 for the other, shape (n,).
    positive: Array
    #: Score of the positive class, shape (n,). Higher means more likely positive.
    score: Array

    @cached_property
    def score_groups(self) -> Scored:
        """The same samples, sorted and grouped by positive score instead of confidence."""
        return Scored(self.score, self.positive, self.scored.weight)

    def weights_at_coverage(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Return the accepted weights of positives and negatives at each score, highest first.

        In the tie group at this coverage, the same share of each sample is accepted.
        """
        s, xp = self.scored, self.scored.xp
        weight_in_group = coverage * s.groups.total_weight - s.groups.weight_above
        share = xp.clip(weight_in_group / s.groups.weight, 0.0, 1.0)
        # Replace rounding errors by 0 and 1.
        share = xp.where(share < _ROUNDING, xp.zeros_like(share), share)
        share = xp.where(share > 1.0 - _ROUNDING, xp.ones_like(share), share)
        # Samples of weight 0 have the group index -1. The index is clipped to 0, and the weight of
        # 0 removes these samples from the sums.
        accepted = xp.take(share, xp.clip(s.group_index, 0, None))
        if s.weight is not None:
            accepted = accepted * s.weight
        positive = accepted * self.positive
        n_scores = self.score_groups.groups.weight.shape[0]
        score_index = xp.clip(self.score_groups.group_index, 0, None)
        return (
            sum_by_index(score_index, positive, n_scores),
            sum_by_index(score_index, accepted - positive, n_scores),
        )


def binary_task(
    confidence: AnyArray, labels: AnyArray, positive_score: AnyArray, weight: AnyArray | None
) -> BinaryTask:
    """Validate the arguments of the public functions, without copying arrays from a device."""
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
    """Validate the arguments on the device of the confidence, or return None if invalid."""
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
    """Return a text with the number of samples of unknown classes, or an empty text."""
    unknown = get_class_view(s).labels < 0
    if s.weight is not None:
        unknown = unknown & (s.weight > 0)
    count = int(s.xp.count_nonzero(unknown))
    return f"{count} samples have an unknown class" if count else ""


def log_odds_of_positive(view: ClassView) -> AnyArray:
    """Return the log-odds of class 1, or its probability if log-probabilities are missing.

    Log-odds are preferred, because probabilities near 0 and 1 are rounded.
    """
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
        Higher means more trusted; only the order matters. Samples of low confidence are reviewed.
    labels : array of shape (n,)
        1 for the positive class, 0 for the other.
    positive_score : array of shape (n,)
        Higher means more likely positive; only the order matters.
    review : float, default=0.1
        Share of samples that are reviewed, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. The value is 1 if all samples are reviewed and equals the
        ROC AUC if no sample is reviewed. NaN, with an `UndefinedMetricWarning`, if only one class
        occurs.

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
    samples. In the tie group at the review threshold, the same share of each sample is reviewed.
    The value therefore equals the expectation over a random selection and does not depend on the
    order of rows. A pair with tied positive scores counts half. The authors' code for streams bins
    confidences and thresholds, and it reviews an integer number of samples. Its value converges to
    the value of this function as the bins become finer. The cost is two sorts.

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
    """Compute the ROC AUC if people correctly answer the least confident share `review`."""
    positive, negative = _weights_with_oracle(task, review)
    if not has_nonzero(positive) or not has_nonzero(negative):
        return undefined("all samples have the same class")
    return MetricValue(area_under_roc(positive, negative))


def _weights_with_oracle(task: BinaryTask, review: float) -> tuple[FloatArray, FloatArray]:
    """Return the weights of positives and negatives at each rank, highest rank first.

    The reviewed positives have the highest rank and the reviewed negatives the lowest. All other
    samples rank by score.
    """
    positive, negative = task.weights_at_coverage(1.0 - review)
    groups, xp = task.score_groups.groups, task.scored.xp
    zero = xp.zeros_like(positive[:1])
    reviewed_positive = zero + xp.sum(groups.loss - positive)
    reviewed_negative = zero + xp.sum(groups.weight - groups.loss - negative)
    return (
        xp.concat((reviewed_positive, positive, zero)),
        xp.concat((zero, negative, reviewed_negative)),
    )


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
        As in `oc_auc`.
    review : float, default=0.1
        Share of samples that are reviewed, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. The value is 1 if all samples are reviewed. NaN, with an
        `UndefinedMetricWarning`, if there are no positives.

    Raises
    ------
    ShapeError, DomainError
        As in `oc_auc`.

    Notes
    -----
    The reviewed samples are those of `oc_auc`. The average precision is the area under a step
    function, as in scikit-learn. The authors' code interpolates between thresholds. The cost is two
    sorts.

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
    """Compute the average precision if people correctly answer the share `review`."""
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
        As in `oc_auc`. Samples of high confidence are accepted.
    coverage : float, default=0.8
        Share of samples that are accepted, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

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
    The value can decrease even if the accuracy increases. A confidence that rejects samples near
    the decision threshold raises the accuracy, but other samples may reduce the AUC. In the tie
    group at the coverage, the same share of each sample is accepted. A pair with tied positive
    scores counts half. The cost is two sorts.

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
    positive, negative = task.weights_at_coverage(coverage)
    if not has_nonzero(positive) or not has_nonzero(negative):
        return undefined("the accepted samples do not contain both classes")
    groups = task.scored.groups
    reached = groups.weight_above < coverage * groups.total_weight * (1 - _ROUNDING)
    count = int(groups.xp.sum(groups.count[reached]))
    return MetricValue(area_under_roc(positive, negative), count)


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
    confidence : array of shape (n,)
        Higher means more trusted; only the order matters. Samples of high confidence are accepted.
    labels : array of shape (n,)
        1 for the positive class, 0 for the other.
    positive_score : array of shape (n,)
        Higher means more likely positive; only the order matters.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. NaN, with an `UndefinedMetricWarning`, if only one class
        occurs.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a label is not 0 or 1, or a weight is negative.

    Notes
    -----
    The value is the mean of `accepted_auroc` over the coverages 1%, 2%, ..., 100%. The mean
    excludes coverages at which all accepted samples have the same class. At these coverages,
    uncertainty-baselines uses the value 1 up to the first error and 0 afterwards, and it adds the
    value 1 for coverage 0. Traub et al. (2024) call this metric AUROC-AURC. In the tie group at a
    coverage, the same share of each sample is accepted. The cost is two sorts and 100 sums over the
    samples.

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
    return value_with_warning(_auroc_and_ap_retention(task)[0], "auroc_retention")


def auprc_retention(
    confidence: AnyArray,
    labels: AnyArray,
    positive_score: AnyArray,
    *,
    weight: AnyArray | None = None,
) -> float:
    """Compute the area under the retention curve of the precision-recall area (R-AUPRC).

    Answers: averaged over coverages, how precisely does the score detect positives among the
    accepted samples?

    Parameters
    ----------
    confidence, labels, positive_score, weight : array of shape (n,)
        As in `auroc_retention`.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. NaN, with an `UndefinedMetricWarning`, if there are no
        positives.

    Raises
    ------
    ShapeError, DomainError
        As in `auroc_retention`.

    Notes
    -----
    The value is the mean of the average precision of the accepted samples over the coverages 1%,
    2%, ..., 100%. The mean excludes coverages at which no positive is accepted. The average
    precision is the area under a step function, as in scikit-learn. In contrast,
    uncertainty-baselines computes the trapezoid area under the precision-recall curve. A confidence
    that accepts few positives has a low value for any ranking. The cost is that of
    `auroc_retention`.

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
    return value_with_warning(_auroc_and_ap_retention(task)[1], "auprc_retention")


def _auroc_and_ap_retention(task: BinaryTask) -> tuple[MetricValue, MetricValue]:
    """Compute the means of ROC AUC and average precision over the coverages that define them."""
    aurocs, precisions = [], []
    for k in range(1, COVERAGES + 1):
        positive, negative = task.weights_at_coverage(k / COVERAGES)
        if has_nonzero(positive):
            precisions.append(average_precision(positive, negative))
            if has_nonzero(negative):
                aurocs.append(area_under_roc(positive, negative))
    means = []
    for values, kinds in ((aurocs, "both classes"), (precisions, "a positive")):
        missing = undefined(f"the accepted samples contain {kinds} at no coverage")
        means.append(MetricValue(float(np.mean(values))) if values else missing)
    return means[0], means[1]


def _auroc_and_ap_retention_of_samples(s: Scored) -> tuple[MetricValue, MetricValue]:
    task = binary_task_of_samples(s)
    return (task, task) if isinstance(task, MetricValue) else _auroc_and_ap_retention(task)


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
        replace(
            _MEASUREMENT,
            # Both metrics are computed in one pass and cached.
            compute=lambda s: s.cached(_auroc_and_ap_retention_of_samples)[0],
            no_influence_reason="the compared pairs change at each coverage of the mean",
        ),
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
        replace(
            _MEASUREMENT,
            # Both metrics are computed in one pass and cached.
            compute=lambda s: s.cached(_auroc_and_ap_retention_of_samples)[1],
            no_influence_reason="the compared pairs change at each coverage of the mean",
        ),
    ),
)
