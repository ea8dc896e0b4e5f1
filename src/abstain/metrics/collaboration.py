"""People answer what the model is least sure of: what model and people reach together."""

from collections.abc import Callable
from functools import partial

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import interpolate, prepend_zero
from abstain._foundation.gradients import as_double, as_scalar, without_gradient
from abstain._foundation.measurement import MetricValue, undefined
from abstain._foundation.scored import Scored, validate_samples
from abstain.metrics.classes import joined, of_probabilities, probabilities_of, view_of
from abstain.metrics.entry import Family, Identity, Measurement, Metric, Need, value_of
from abstain.metrics.influences import of_mean, on_merged_rows
from abstain.metrics.review import BinaryTask, log_odds, oc_ap_of, oc_auc_of, of_no_class
from abstain.metrics.working_points.quantities import accepted_failures, at_coverage
from abstain.typing import AnyArray, FloatArray

_SOURCE = "Kivlichan et al. (2021), https://arxiv.org/abs/2107.04212"

#: From a binary task and the share reviewed to a number.
_Kernel = Callable[[BinaryTask, float], MetricValue]


# ------------------------------------------------------------------------------------ accuracy
def oc_accuracy(
    confidence: AnyArray, loss: AnyArray, *, review: float = 0.1, weight: AnyArray | None = None
) -> float:
    """Compute the oracle-collaborative accuracy.

    Answers: how many of all answers are right when people answer the share `review` that the model
    is least confident about, and always answer right?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; only the order matters. Says who is reviewed.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error.
    review : float, default=0.1
        Share of the samples that is reviewed, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **higher is better**; 1 when all are reviewed, the accuracy when none is.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss or `review` is outside [0, 1], or a weight is
        negative.

    Notes
    -----
    One minus the generalized risk at a coverage of exactly 1 - `review`: of a tie group at the edge
    each member is reviewed by the same share. The authors' code, made for streams, bins the
    confidences and reviews a whole number of samples, by default 1 % of them. Never NaN. Cost: one
    sort.

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
    return value_of(_accuracy(s, review=checks.fraction(review, "review")), "oc_accuracy")


def _accuracy(s: Scored, *, review: float) -> MetricValue:
    groups = s.merged_groups
    at = prepend_zero(groups.cumulative_weight)[:1] + (1.0 - review) * groups.total_weight
    lost = interpolate(
        at, prepend_zero(groups.cumulative_weight), prepend_zero(groups.cumulative_loss)
    )
    return MetricValue(1.0 - as_scalar(lost[0]) / groups.total_weight)


def _influence(s: Scored, *, review: float) -> FloatArray:
    """Right, or reviewed; and what one more sample pushes over the edge.

    How often those at the edge are wrong is taken over one standard error of the coverage to
    either side: a sample alone is right or wrong. Successes around the edge are taken as accepted.
    """
    groups, share = s.groups, 1.0 - review
    through, lost = prepend_zero(groups.cumulative_weight), prepend_zero(groups.cumulative_loss)
    reach = float(np.sqrt(share * review / groups.n_samples))
    ends = np.array([max(share - reach, 0.0), min(share + reach, 1.0)]) * groups.total_weight
    rise = np.diff(np.interp(ends, through, lost))[0]
    edge = float(rise / (ends[1] - ends[0])) if ends[1] > ends[0] else 0.0
    at = share * groups.total_weight
    wrong = np.append(groups.loss > 0, True)
    first = int(np.argmax(wrong & (np.append(groups.cumulative_weight, np.inf) > at)))
    at = max(at, float(through[first]))
    kept = np.clip((at - groups.weight_above) / groups.weight, 0.0, 1.0)
    taken = np.append(kept, 0.0).take(s.group_index)
    return of_mean(s, -taken * (s.loss - edge))


def _accuracy_named(name: str, percent: str) -> Metric | None:
    review = float(percent) / 100
    if review > 1:
        return None
    return Metric(
        Identity(
            name=name,
            title=f"OC-accuracy with {percent} % reviewed",
            family="working point",
            lower_is_better=False,
            meaning=f"With the least confident {percent} % answered by people, {{value}} of all "
            "answers are right.",
            source=_SOURCE,
            convention=f"review fraction {review:g}",
            function=f"oc_accuracy(confidence, loss, review={review:g})",
        ),
        Measurement(
            compute=partial(_accuracy, review=review),
            needs=frozenset({Need.UNIT_LOSS}),
            averages_ties=True,
            influence=on_merged_rows(partial(_influence, review=review)),
            n_failures=lambda s: accepted_failures(
                s, lambda groups: at_coverage(groups, 1.0 - review, first=True)
            ),
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
    """Compute the oracle-collaborative ROC AUC of a task with many classes.

    Answers: how well does the system rank the samples of each class above the others when people
    answer the share `review` that the model is least confident about, and always answer right?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; only the order matters. Says who is reviewed.
    labels : array of shape (n,)
        True class codes from 0 to K - 1.
    probabilities : array of shape (n, K)
        Class probabilities.
    review : float, default=0.005
        Share of the samples that is reviewed, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **higher is better**; 1 when all are reviewed. NaN, with an
        `UndefinedMetricWarning`, when no two classes occur or a sample has no known class.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If probabilities are negative or do not sum to 1, a label is no class, `review` is outside
        [0, 1], or a weight is negative.

    Notes
    -----
    The paper has two classes. Here each class in turn is the positive one, ranked by its
    probability, and the mean over the classes that occur counts (one against the rest, macro
    average); with two classes it is `oc_auc`. Review as there. Cost: two sorts for each class.

    References
    ----------
    .. [1] Kivlichan et al. (2021), https://arxiv.org/abs/2107.04212, for two classes
    .. [2] Tran et al. (2022), Plex, https://arxiv.org/abs/2207.07411, for a review of 0.5 %

    Examples
    --------
    >>> from abstain.metrics import multiclass_oc_auc
    >>> p = [[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7]]
    >>> round(multiclass_oc_auc([0.7, 0.6, 0.4, 0.7], [0, 1, 2, 2], p, review=0.25), 4)
    1.0
    """
    share = checks.fraction(review, "review")
    view = of_probabilities(probabilities, labels)
    s = joined(confidence, view, weight)
    return value_of(_of_classes(s, oc_auc_of, share), "multiclass_oc_auc")


def _of_classes(s: Scored, kernel: _Kernel, review: float) -> MetricValue:
    """Mean over the classes that occur of one against the rest."""
    view = view_of(s)
    if reason := of_no_class(s):
        return undefined(reason)
    if len(view.classes) == 2:
        return kernel(BinaryTask(s, as_double(view.labels == 1), log_odds(view)), review)
    log_p = view.log_probabilities
    scores = without_gradient(probabilities_of(view) if log_p is None else log_p)
    each = [
        kernel(BinaryTask(s, as_double(view.labels == k), scores[:, k]), review)
        for k in range(len(view.classes))
    ]
    known = [measured.value for measured in each if not measured.reason]
    return (
        MetricValue(sum(known) / len(known)) if known else undefined("all samples are of one class")
    )


def _named(name: str, percent: str, *, kernel: _Kernel, title: str, meaning: str) -> Metric | None:
    review = float(percent) / 100
    if review > 1:
        return None
    return Metric(
        Identity(
            name=name,
            title=f"{title} with {percent} % reviewed",
            family="working point",
            lower_is_better=False,
            meaning=f"With the least confident {percent} % answered by people, {meaning}",
            source=f"{_SOURCE}, one class against the rest",
            convention=f"review fraction {review:g}, mean over the classes",
            violated_requirements=("R1", "R2", "R5"),
            requirements_of="oc_auc",
        ),
        Measurement(
            compute=lambda s: _of_classes(s, kernel, review),
            needs=frozenset({Need.CLASSES, Need.PROBABILITIES}),
            monotone=False,
            gradients=frozenset(),
            no_influence_reason="the edge of what is reviewed moves every sample of every class",
        ),
    )


FAMILIES = (
    Family("oc_accuracy@{}review", _accuracy_named, ("0.5",)),
    Family(
        "oc_auc@{}review",
        partial(
            _named,
            kernel=oc_auc_of,
            title="OC-AUC",
            meaning="a sample of a class ranks above one of another with probability {value}.",
        ),
        ("0.5",),
    ),
    Family(
        "oc_ap@{}review",
        partial(
            _named,
            kernel=oc_ap_of,
            title="OC-AP",
            meaning="the average precision of a class is {value}.",
        ),
        ("0.5",),
    ),
)

ENTRIES = tuple(filter(None, (_accuracy_named("oc_accuracy@10review", "10"),)))
