"""Oracle-collaborative metrics of systems in which people answer the least confident samples."""

from collections.abc import Callable
from functools import partial

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import interpolate, prepend_zero
from abstain._foundation.arrays import as_double, as_scalar, without_gradient
from abstain._foundation.scored import MetricValue, Scored, undefined, validate_samples
from abstain.metrics.binary_tasks import (
    BinaryTask,
    compute_oc_ap,
    compute_oc_auc,
    log_odds_of_positive,
    reason_unknown_classes,
)
from abstain.metrics.classes import (
    class_view_from_probabilities,
    get_class_view,
    get_probabilities,
    scored_with_classes,
)
from abstain.metrics.entry import Family, Identity, Measurement, Metric, Need, value_with_warning
from abstain.metrics.influences import accepts_merged_rows, mean_influence
from abstain.metrics.working_points.quantities import count_accepted_failures, vertex_at_coverage
from abstain.typing import AnyArray, FloatArray

_SOURCE = "Kivlichan et al. (2021), https://arxiv.org/abs/2107.04212"

#: Function of a binary task and the reviewed share that returns a value.
_Kernel = Callable[[BinaryTask, float], MetricValue]


# ------------------------------------------------------------------------------------ accuracy
def oc_accuracy(
    confidence: AnyArray, loss: AnyArray, *, review: float = 0.1, weight: AnyArray | None = None
) -> float:
    """Compute the oracle-collaborative accuracy.

    Answers: which share of all answers is correct, if people correctly answer the share `review` of
    samples with the lowest confidence?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores; higher means more trusted. Only the order of the scores matters. Samples
        of low confidence are reviewed.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error.
    review : float, default=0.1
        Share of samples that are reviewed, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The value is 1 if all samples are reviewed and equals
        the accuracy if no sample is reviewed.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss or `review` is outside [0, 1], or a weight is
        negative.

    Notes
    -----
    The value is 1 - generalized risk at a coverage of exactly 1 - `review`. If only a part of a tie
    group is reviewed, the same share of each of its samples is reviewed. The value is never NaN.
    The function sorts the samples once.

    References
    ----------
    .. [1] Kivlichan et al. (2021), Measuring and improving model-moderator collaboration using
       uncertainty estimation, https://arxiv.org/abs/2107.04212

    Examples
    --------
    >>> from abstain.metrics import oc_accuracy
    >>> oc_accuracy([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], review=0.25)
    0.75
    """
    s = validate_samples(confidence, loss, weight)
    checks.unit_interval(s.loss, "loss", hint="A correctness is one minus a loss in [0, 1].")
    share = checks.fraction(review, "review")
    return value_with_warning(_compute_oc_accuracy(s, review=share), "oc_accuracy")


def _compute_oc_accuracy(s: Scored, *, review: float) -> MetricValue:
    """Compute 1 - generalized risk at a coverage of exactly 1 - review."""
    groups = s.merged_groups
    weight_through = prepend_zero(groups.cumulative_weight)
    loss_through = prepend_zero(groups.cumulative_loss)
    position = weight_through[:1] + (1.0 - review) * groups.total_weight
    accepted_loss = interpolate(position, weight_through, loss_through)
    return MetricValue(1.0 - as_scalar(accepted_loss[0]) / groups.total_weight)


def _oc_accuracy_influence(s: Scored, *, review: float) -> FloatArray:
    """Return the influence of each sample on 1 - generalized risk at a fixed coverage."""
    groups = s.groups
    coverage = 1.0 - review
    weight_through = prepend_zero(groups.cumulative_weight)
    loss_through = prepend_zero(groups.cumulative_loss)
    # An accepted sample moves the threshold, which changes the loss by the risk at the threshold.
    # This risk is estimated within one standard error of the coverage on each side.
    error = float(np.sqrt(coverage * review / groups.n_samples))
    bounds = np.array([max(coverage - error, 0.0), min(coverage + error, 1.0)])
    bounds = bounds * groups.total_weight
    width = bounds[1] - bounds[0]
    loss_in_range = np.diff(np.interp(bounds, weight_through, loss_through))[0]
    local_risk = float(loss_in_range / width) if width > 0 else 0.0
    # Successes next to the threshold count as accepted, because they may be merged.
    position = coverage * groups.total_weight
    has_loss = np.append(groups.loss > 0, True)
    is_after_position = np.append(groups.cumulative_weight, np.inf) > position
    first_with_loss = int(np.argmax(has_loss & is_after_position))
    position = max(position, float(weight_through[first_with_loss]))
    accepted_share = np.clip((position - groups.weight_above) / groups.weight, 0.0, 1.0)
    is_accepted = np.append(accepted_share, 0.0).take(s.group_index)
    return mean_influence(s, -is_accepted * (s.loss - local_risk))


def _make_oc_accuracy(name: str, percent: str) -> Metric | None:
    """Return ``oc_accuracy`` for this percentage of reviewed samples, or None above 100%."""
    review = float(percent) / 100
    if review > 1:
        return None

    def count_failures(s: Scored) -> int:
        vertex = vertex_at_coverage(s.merged_groups, 1.0 - review, first=True)
        return count_accepted_failures(s, vertex)

    return Metric(
        Identity(
            name=name,
            title=f"OC-accuracy with {percent}% reviewed",
            family="working point",
            lower_is_better=False,
            meaning=f"If people answer the least confident {percent}%, {{value}} of all answers "
            "are correct.",
            source=_SOURCE,
            convention=f"review fraction {review:g}",
            function=f"oc_accuracy(confidence, loss, review={review:g})",
        ),
        Measurement(
            compute=partial(_compute_oc_accuracy, review=review),
            needs=frozenset({Need.UNIT_LOSS}),
            averages_ties=True,
            influence=accepts_merged_rows(partial(_oc_accuracy_influence, review=review)),
            n_failures=count_failures,
            extremes=(lambda r: 1.0 - max(0.0, r - review), lambda r: 1.0 - min(r, 1.0 - review)),
        ),
    )


# ------------------------------------------------------------------------------- many classes
def multiclass_oc_auc(
    confidence: AnyArray,
    labels: AnyArray,
    probabilities: AnyArray,
    *,
    review: float = 0.005,
    weight: AnyArray | None = None,
) -> float:
    """Compute the oracle-collaborative ROC AUC of a task with several classes.

    Answers: how well does the system rank the samples of each class above the other samples, if
    people correctly answer the share `review` of samples with the lowest confidence?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores; higher means more trusted. Only the order of the scores matters. Samples
        of low confidence are reviewed.
    labels : array of shape (n,)
        True class codes from 0 to K - 1.
    probabilities : array of shape (n, K)
        Class probabilities.
    review : float, default=0.005
        Share of samples that are reviewed, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The value is 1 if all samples are reviewed. The value
        is NaN, with an `UndefinedMetricWarning`, if only one class occurs or a sample has an
        unknown class.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If probabilities are negative or do not sum to 1, a label is not a class, `review` is
        outside [0, 1], or a weight is negative.

    Notes
    -----
    The paper defines the metric for two classes. This function averages `oc_auc` of each class
    against the rest, with the probability of the class as score, over the classes that occur. With
    two classes, the value equals `oc_auc`. The function sorts the samples twice for each class.

    References
    ----------
    .. [1] Kivlichan et al. (2021), https://arxiv.org/abs/2107.04212, for two classes
    .. [2] Tran et al. (2022), Plex, https://arxiv.org/abs/2207.07411, with 0.5% reviewed

    Examples
    --------
    >>> from abstain.metrics import multiclass_oc_auc
    >>> p = [[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7]]
    >>> round(multiclass_oc_auc([0.7, 0.6, 0.4, 0.7], [0, 1, 2, 2], p, review=0.25), 4)
    1.0
    """
    share = checks.fraction(review, "review")
    view = class_view_from_probabilities(probabilities, labels)
    s = scored_with_classes(confidence, view, weight)
    return value_with_warning(_mean_over_classes(s, compute_oc_auc, share), "multiclass_oc_auc")


def _mean_over_classes(s: Scored, kernel: _Kernel, review: float) -> MetricValue:
    """Return the mean over classes of the binary metric of each class against the rest."""
    reason = reason_unknown_classes(s)
    if reason:
        return undefined(reason)
    view = get_class_view(s)
    if len(view.classes) == 2:
        task = BinaryTask(s, as_double(view.labels == 1), log_odds_of_positive(view))
        return kernel(task, review)
    log_p = view.log_probabilities
    scores = without_gradient(get_probabilities(view) if log_p is None else log_p)
    defined_values = []
    for k in range(len(view.classes)):
        one_vs_rest = BinaryTask(s, as_double(view.labels == k), scores[:, k])
        measured = kernel(one_vs_rest, review)
        if not measured.reason:
            defined_values.append(measured.value)
    if not defined_values:
        return undefined("all samples have the same class")
    return MetricValue(sum(defined_values) / len(defined_values))


def _make_multiclass_metric(
    name: str, percent: str, *, kernel: _Kernel, title: str, meaning: str
) -> Metric | None:
    """Return the metric for this percentage of reviewed samples, or None above 100%."""
    review = float(percent) / 100
    if review > 1:
        return None
    return Metric(
        Identity(
            name=name,
            title=f"{title} with {percent}% reviewed",
            family="working point",
            lower_is_better=False,
            meaning=f"If people answer the least confident {percent}%, {meaning}",
            source=f"{_SOURCE}, one class against the rest",
            convention=f"review fraction {review:g}, mean over the classes",
            violated_requirements=("R1", "R2", "R5"),
            requirements_from="oc_auc",
        ),
        Measurement(
            compute=lambda s: _mean_over_classes(s, kernel, review),
            needs=frozenset({Need.CLASSES, Need.PROBABILITIES}),
            monotone=False,
            gradients=frozenset(),
            no_influence_reason="the review threshold affects all samples of all classes",
        ),
    )


FAMILIES = (
    Family("oc_accuracy@{}review", _make_oc_accuracy, ("0.5",)),
    Family(
        "oc_auc@{}review",
        partial(
            _make_multiclass_metric,
            kernel=compute_oc_auc,
            title="OC-AUC",
            meaning="a sample of a class ranks above a sample of another with probability {value}.",
        ),
        ("0.5",),
    ),
    Family(
        "oc_ap@{}review",
        partial(
            _make_multiclass_metric,
            kernel=compute_oc_ap,
            title="OC-AP",
            meaning="the average precision of a class is {value}.",
        ),
        ("0.5",),
    ),
)

ENTRIES = tuple(filter(None, (_make_oc_accuracy("oc_accuracy@10review", "10"),)))
