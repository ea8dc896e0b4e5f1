"""Binary tasks, averaged over coverages: how well the accepted are ranked by class."""

from collections.abc import Callable, Iterator
from functools import partial

from abstain._foundation.measurement import Measured, undefined
from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Scored
from abstain._foundation.segments import from_zero, sums_by
from abstain.curves.risk_coverage import ROUNDING
from abstain.metrics.entry import Metric, Need, value_of
from abstain.metrics.review import BinaryTask, binary_task, task_of
from abstain.metrics.roc import area_under_roc, average_precision, some
from abstain.typing import AnyArray, FloatArray, IntArray

#: Coverages of the mean: one percent, two percent, to all.
COVERAGES = 100

#: From the weights of positives and negatives at each positive score, highest first, to a number.
_Ranking = Callable[[FloatArray, FloatArray], float]


def auroc_retention(
    confidence: AnyArray,
    labels: AnyArray,
    positive_score: AnyArray,
    *,
    weight: AnyArray | None = None,
) -> float:
    """Compute the area under the AUROC-coverage curve (AUROC-AURC).

    Answers: averaged over how many samples are accepted, how well does the score rank positives
    above negatives among them?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; only the order matters. Says who is accepted.
    labels : array of shape (n,)
        1 for the positive class, 0 for the other.
    positive_score : array of shape (n,)
        Higher means more likely positive; only the order matters.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. NaN, with an `UndefinedMetricWarning`, when only one class
        is there.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a label is not 0 or 1, or a weight is negative.

    Notes
    -----
    The mean of `accepted_auroc` over the coverages 1 %, 2 % to 100 %, those left out at which the
    accepted are all of one class; uncertainty-baselines, with as many coverages, counts them as 1
    until the first error and as 0 afterwards, and adds a 1 for accepting nothing. The name
    AUROC-AURC is that of Traub et al. (2024). Of a tie group at the edge each member is accepted by
    the same share. Cost: two sorts, and a hundred sums over the samples.

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
    return value_of(_mean(task, area_under_roc, both=True), "auroc_retention")


def auprc_retention(
    confidence: AnyArray,
    labels: AnyArray,
    positive_score: AnyArray,
    *,
    weight: AnyArray | None = None,
) -> float:
    """Compute the area under the retention curve of the precision-recall area (R-AUPRC).

    Answers: averaged over how many samples are accepted, how precisely does the score find the
    positives among them?

    Parameters
    ----------
    confidence, labels, positive_score, weight : array of shape (n,)
        As in `auroc_retention`.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. NaN, with an `UndefinedMetricWarning`, when there are no
        positives.

    Raises
    ------
    ShapeError, DomainError
        As in `auroc_retention`.

    Notes
    -----
    The mean of the average precision among the accepted over the coverages 1 %, 2 % to 100 %, those
    left out at which no positive is accepted. A step function, as scikit-learn's; the code of
    uncertainty-baselines takes the trapezoid area under the precision-recall curve. A confidence
    that accepts few positives has a low value whatever it ranks. Cost: as `auroc_retention`.

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
    return value_of(_mean(task, average_precision, both=False), "auprc_retention")


def _mean(task: BinaryTask, ranking: _Ranking, *, both: bool) -> Measured:
    """Mean over the coverages at which the accepted hold a positive, and a negative for `both`."""
    values = [
        ranking(positive, negative)
        for positive, negative in _accepted(task)
        if some(positive) and (some(negative) or not both)
    ]
    if not values:
        kinds = "both classes" if both else "a positive"
        return undefined(f"the accepted hold {kinds} at no coverage")
    return Measured(sum(values) / len(values))


def _accepted(task: BinaryTask) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield what each coverage accepts: weights of both classes by positive score, highest first.

    From one coverage to the next only the samples between the two thresholds are added.
    """
    s, xp = task.scored, task.scored.xp
    by_score = Scored(task.score, task.positive, s.weight)
    names, groups = int(by_score.groups.count.shape[0]), s.groups
    # Samples without weight are of no group, and come first.
    order = xp.argsort(s.home)[int(xp.count_nonzero(s.home < 0)) :]
    home, place, right = (xp.take(x, order) for x in (s.home, by_score.home, task.positive))
    weight = xp.ones_like(right) if s.weight is None else xp.take(s.weight, order)
    held = from_zero(
        xp.cumulative_sum(sums_by(home, xp.ones_like(weight), int(groups.above.shape[0])))
    )
    positive = negative = xp.zeros(names, dtype=right.dtype, device=right.device)
    last, first = 0.0, 0
    for percent in range(1, COVERAGES + 1):
        target = percent / COVERAGES * groups.total
        stop = int(xp.count_nonzero(groups.above < target * (1 - ROUNDING)))
        rows = slice(round(float(held[first])), round(float(held[stop])))
        added = _share(groups, home[rows], target) - _share(groups, home[rows], last)
        added = added * weight[rows]
        positive = positive + sums_by(place[rows], added * right[rows], names)
        negative = negative + sums_by(place[rows], added * (1.0 - right[rows]), names)
        yield positive, negative
        last, first = target, max(stop - 1, 0)


def _share(groups: TieGroups, home: IntArray, target: float) -> AnyArray:
    """Share of each sample among the most confident of this weight, from the groups they are in."""
    xp = groups.xp
    share = (target - xp.take(groups.above, home)) / xp.take(groups.weight, home)
    share = xp.where(share < ROUNDING, xp.zeros_like(share), share)
    return xp.where(share > 1.0 - ROUNDING, xp.ones_like(share), share)


def _of(ranking: _Ranking, *, both: bool) -> Callable[[Scored], Measured]:
    def compute(s: Scored) -> Measured:
        task = task_of(s)
        return task if isinstance(task, Measured) else _mean(task, ranking, both=both)

    return compute


_entry = partial(
    Metric,
    family="area",
    lower_is_better=False,
    needs=frozenset({Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES}),
    convention=f"mean over {COVERAGES} coverages",
    ordered=False,
    gradients=frozenset(),
    no_influence="each threshold of the mean moves the pairs that are compared",
)

ENTRIES = (
    _entry(
        name="auroc_retention",
        title="AUROC-AURC",
        compute=_of(area_under_roc, both=True),
        meaning="Averaged over coverages, a positive ranks above a negative among the accepted "
        "with probability {value}.",
        source="Pugnana and Ruggieri (2023), https://arxiv.org/abs/2210.10703",
        function="auroc_retention(confidence, labels, probabilities[:, 1])",
    ),
    _entry(
        name="auprc_retention",
        title="AUPRC retention",
        compute=_of(average_precision, both=False),
        meaning="Averaged over coverages, the average precision of the positive class is {value}.",
        source="Band et al. (2021), https://arxiv.org/abs/2211.12717",
        function="auprc_retention(confidence, labels, probabilities[:, 1])",
    ),
)
