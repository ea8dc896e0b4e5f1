"""Binary tasks, averaged over coverages: how well the accepted are ranked by class."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from abstain._foundation.arrays import move_to_library_of, namespace
from abstain._foundation.measurement import MetricValue, undefined
from abstain._foundation.scored import Scored
from abstain.curves.risk_coverage import ROUNDING
from abstain.metrics.entry import Identity, Measurement, Metric, Need, value_with_warning
from abstain.metrics.review import BinaryTask, binary_task, binary_task_of_samples
from abstain.typing import AnyArray, FloatArray, IntArray

#: Coverages of the mean: one percent, two percent, to all.
COVERAGES = 100

#: Rows whose shares of all coverages are computed at once, so that they stay in the cache.
_ROWS = 1 << 10

#: What the accepted must hold for an ROC AUC and for an average precision.
_KINDS = ("both classes", "a positive")


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
    return value_with_warning(
        _mean(_auroc_and_ap_at_coverages(task)[0], _KINDS[0]), "auroc_retention"
    )


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
    return value_with_warning(
        _mean(_auroc_and_ap_at_coverages(task)[1], _KINDS[1]), "auprc_retention"
    )


@dataclass(frozen=True, eq=False)
class _RankedSamples:
    """The samples that have weight, the highest positive score first."""

    #: Most confident first: what is above the group of each, and the weight of the group.
    above: FloatArray
    group_weight: FloatArray
    weight: FloatArray
    positive: FloatArray
    #: Weight accepted at each coverage, shape (COVERAGES,).
    accepted_weight: FloatArray
    #: The last row of each positive score.
    last_row_of_score: IntArray

    @classmethod
    def from_task(cls, task: BinaryTask) -> "_RankedSamples":
        """Order the samples of a task."""
        s, xp = task.scored, task.scored.xp
        by_score = Scored(task.score, task.positive, s.weight)
        # Samples without weight are of no group, and come first.
        order = xp.argsort(by_score.group_index)[int(xp.count_nonzero(by_score.group_index < 0)) :]
        home, place, positive = (
            xp.take(x, order) for x in (s.group_index, by_score.group_index, task.positive)
        )
        ends = xp.nonzero(place[1:] != place[:-1])[0]
        shares = move_to_library_of(np.arange(1, COVERAGES + 1) / COVERAGES, "coverage", positive)
        return cls(
            xp.take(s.groups.weight_above, home),
            xp.take(s.groups.weight, home),
            xp.ones_like(positive) if s.weight is None else xp.take(s.weight, order),
            positive,
            shares * s.groups.total_weight,
            xp.concat((ends, move_to_library_of(np.array([place.shape[0] - 1]), "places", ends))),
        )

    def score_blocks(self) -> Iterator[tuple[slice, IntArray]]:
        """Yield rows that fit a cache, or all of one score, and where in them scores end."""
        xp, count = namespace(self.last_row_of_score), self.positive.shape[0]
        done, scores = 0, 0
        while done < count:
            aim = move_to_library_of(np.array([done + _ROWS - 1]), "places", self.last_row_of_score)
            whole = int(xp.searchsorted(self.last_row_of_score, aim, side="right")[0])
            until = max(whole, scores + 1)
            end = int(self.last_row_of_score[until - 1]) + 1
            yield slice(done, end), self.last_row_of_score[scores:until] - done
            done, scores = end, until

    def accepted_weight_through(self, rows: slice, ends: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return what each coverage keeps of both classes to the end of each score of a part."""
        xp = namespace(ends)
        if ends.shape[0] > 1:
            sums = (xp.cumulative_sum(kept, axis=0) for kept in self.accepted_weight_of_rows(rows))
            right, wrong = (xp.take(x, ends, axis=0) for x in sums)
            return right, wrong
        right = wrong = xp.zeros_like(self.accepted_weight)[None, :]
        for start in range(rows.start, rows.stop, _ROWS):
            kept = self.accepted_weight_of_rows(slice(start, min(start + _ROWS, rows.stop)))
            right, wrong = (
                x + xp.sum(y, axis=0)[None, :] for x, y in zip((right, wrong), kept, strict=True)
            )
        return right, wrong

    def accepted_weight_of_rows(self, rows: slice) -> tuple[FloatArray, FloatArray]:
        """Return what each coverage keeps of rows, positives and negatives: (rows, COVERAGES)."""
        xp = namespace(self.positive)
        share = (self.accepted_weight[None, :] - self.above[rows][:, None]) / self.group_weight[
            rows
        ][:, None]
        share = xp.clip(share, 0.0, 1.0)
        # A share that is there by rounding alone is none.
        share = xp.where(share < ROUNDING, xp.zeros_like(share), share)
        mass = share * self.weight[rows][:, None]
        positive = mass * self.positive[rows][:, None]
        return positive, mass - positive


def _auroc_and_ap_at_coverages(task: BinaryTask) -> tuple[FloatArray, FloatArray]:
    """Return ROC AUC and average precision among the accepted; NaN without both, or a positive."""
    rows, xp = _RankedSamples.from_task(task), task.scored.xp
    positive = negative = wins = hits = xp.zeros_like(rows.accepted_weight)
    for part, ends in rows.score_blocks():
        right, wrong = rows.accepted_weight_through(part, ends)
        nothing = xp.zeros_like(right[:1, :])
        found, other = (xp.concat((nothing, x[:-1, :])) for x in (right, wrong))
        own = right - found
        wins = wins + xp.sum((wrong - other) * (positive + found + own / 2), axis=0)
        taken = positive + right + negative + wrong
        hits = hits + xp.sum(own * (positive + right) / xp.where(taken > 0, taken, 1.0), axis=0)
        positive, negative = positive + right[-1, :], negative + wrong[-1, :]
    return _divide_or_nan(wins, positive * negative), _divide_or_nan(hits, positive)


def _divide_or_nan(x: FloatArray, y: FloatArray) -> AnyArray:
    xp = namespace(x)
    return xp.where(y > 0, x / xp.where(y > 0, y, 1.0), xp.full_like(x, float("nan")))


def _mean(values: FloatArray, kinds: str) -> MetricValue:
    """Mean over the coverages at which the accepted hold these kinds."""
    xp = namespace(values)
    is_defined = ~xp.isnan(values)
    if not xp.any(is_defined):
        return undefined(f"the accepted hold {kinds} at no coverage")
    return MetricValue(float(xp.mean(values[is_defined])))


def _auroc_and_ap_of_samples(s: Scored) -> tuple[FloatArray, FloatArray] | MetricValue:
    task = binary_task_of_samples(s)
    return task if isinstance(task, MetricValue) else _auroc_and_ap_at_coverages(task)


def _compute_retention(s: Scored, *, index: int) -> MetricValue:
    # One pass is enough for both.
    result = s.cached(_auroc_and_ap_of_samples)
    return result if isinstance(result, MetricValue) else _mean(result[index], _KINDS[index])


def _entry(identity: Identity, index: int) -> Metric:
    measurement = Measurement(
        compute=partial(_compute_retention, index=index),
        needs=frozenset({Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES}),
        monotone=False,
        gradients=frozenset(),
        no_influence_reason="each threshold of the mean moves the pairs that are compared",
    )
    return Metric(identity, measurement)


ENTRIES = (
    _entry(
        Identity(
            name="auroc_retention",
            title="AUROC-AURC",
            family="area",
            lower_is_better=False,
            meaning="Averaged over the coverages at which both classes are accepted, a positive "
            "ranks above a negative among the accepted with probability {value}.",
            source="Pugnana and Ruggieri (2023), https://arxiv.org/abs/2210.10703",
            convention=f"mean over those of {COVERAGES} coverages that accept both classes",
            function="auroc_retention(confidence, labels, probabilities[:, 1])",
            violated_requirements=("R2", "R3", "R5"),
        ),
        index=0,
    ),
    _entry(
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
        index=1,
    ),
)
