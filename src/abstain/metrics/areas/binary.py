"""Ranking metrics of binary tasks, averaged over coverages."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from abstain._foundation.arrays import move_to_library_of, namespace
from abstain._foundation.scored import MetricValue, Scored, undefined
from abstain.curves.risk_coverage import ROUNDING
from abstain.metrics.entry import Identity, Measurement, Metric, Need, value_with_warning
from abstain.metrics.review import BinaryTask, binary_task, binary_task_of_samples
from abstain.typing import AnyArray, FloatArray, IntArray

#: Number of coverages in the mean: 1%, 2%, ..., 100%.
COVERAGES = 100

#: Number of rows processed at once for all coverages, so that arrays fit in the cache.
_ROWS = 1 << 10

#: Classes that the accepted samples must contain for ROC AUC and for average precision.
_KINDS = ("both classes", "a positive")


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
        Frequency weights: an integer weight counts a sample that many times.

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
    The mean of `accepted_auroc` over the coverages 1%, 2%, ..., 100%, without those at which all
    accepted samples have the same class. With the same coverages, uncertainty-baselines counts
    these as 1 up to the first error and as 0 afterwards, and adds a 1 for coverage 0. Traub et al.
    (2024) call this metric AUROC-AURC. In the tie group at a coverage, the same share of each
    sample is accepted. Cost: two sorts, and 100 sums over the samples.

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
    The mean of the average precision among the accepted samples over the coverages 1%, 2%, ...,
    100%, without those at which no positive is accepted. The average precision is a step function,
    as in scikit-learn; uncertainty-baselines uses the trapezoid area under the precision-recall
    curve. A confidence that accepts few positives has a low value for any ranking. Cost: as
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
    return value_with_warning(
        _mean(_auroc_and_ap_at_coverages(task)[1], _KINDS[1]), "auprc_retention"
    )


@dataclass(frozen=True, eq=False)
class _RankedSamples:
    """The samples with positive weight, in descending order of the positive score."""

    #: Shape (n,). By confidence: weight above the tie group of each sample, and weight of the
    #: group.
    weight_above: FloatArray
    group_weight: FloatArray
    weight: FloatArray
    is_positive: FloatArray
    #: Shape (COVERAGES,). Accepted weight at each coverage.
    accepted_weight: FloatArray
    #: The last row of each positive score.
    last_row_of_score: IntArray

    @classmethod
    def from_task(cls, task: BinaryTask) -> "_RankedSamples":
        """Sort the samples of a task by positive score."""
        s, xp = task.scored, task.scored.xp
        score_index = Scored(task.score, task.positive, s.weight).group_index
        # Samples without weight have the index -1 and are sorted to the front.
        n_without_weight = int(xp.count_nonzero(score_index < 0))
        order = xp.argsort(score_index)[n_without_weight:]
        group_index = xp.take(s.group_index, order)
        sorted_score_index = xp.take(score_index, order)
        is_positive = xp.take(task.positive, order)
        is_last = sorted_score_index[1:] != sorted_score_index[:-1]
        final_row = np.array([sorted_score_index.shape[0] - 1])
        last_rows = xp.nonzero(is_last)[0]
        last_rows = xp.concat((last_rows, move_to_library_of(final_row, "rows", last_rows)))
        coverages = np.arange(1, COVERAGES + 1) / COVERAGES
        coverages = move_to_library_of(coverages, "coverage", is_positive)
        return cls(
            xp.take(s.groups.weight_above, group_index),
            xp.take(s.groups.weight, group_index),
            xp.ones_like(is_positive) if s.weight is None else xp.take(s.weight, order),
            is_positive,
            coverages * s.groups.total_weight,
            last_rows,
        )

    def score_blocks(self) -> Iterator[tuple[slice, IntArray]]:
        """Yield blocks of rows and, relative to each block, the last row of each score.

        A block fits in the cache, except if a single score has more rows.
        """
        xp, n_rows = namespace(self.last_row_of_score), self.is_positive.shape[0]
        start, n_scores = 0, 0
        while start < n_rows:
            limit = np.array([start + _ROWS - 1])
            limit = move_to_library_of(limit, "rows", self.last_row_of_score)
            n_scores_in_limit = int(xp.searchsorted(self.last_row_of_score, limit, side="right")[0])
            next_n_scores = max(n_scores_in_limit, n_scores + 1)
            stop = int(self.last_row_of_score[next_n_scores - 1]) + 1
            yield slice(start, stop), self.last_row_of_score[n_scores:next_n_scores] - start
            start, n_scores = stop, next_n_scores

    def cumulative_weight_by_score(
        self, rows: slice, last_rows: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the accepted weight of both classes in a block, cumulative over its scores.

        The arrays have shape (scores, COVERAGES).
        """
        xp = namespace(last_rows)
        if last_rows.shape[0] > 1:
            positive, negative = self.accepted_weight_of_rows(rows)
            return (
                xp.take(xp.cumulative_sum(positive, axis=0), last_rows, axis=0),
                xp.take(xp.cumulative_sum(negative, axis=0), last_rows, axis=0),
            )
        positive_sum = negative_sum = xp.zeros_like(self.accepted_weight)[None, :]
        for start in range(rows.start, rows.stop, _ROWS):
            chunk = slice(start, min(start + _ROWS, rows.stop))
            positive, negative = self.accepted_weight_of_rows(chunk)
            positive_sum = positive_sum + xp.sum(positive, axis=0)[None, :]
            negative_sum = negative_sum + xp.sum(negative, axis=0)[None, :]
        return positive_sum, negative_sum

    def accepted_weight_of_rows(self, rows: slice) -> tuple[FloatArray, FloatArray]:
        """Return the accepted weight of positives and negatives, shape (rows, COVERAGES)."""
        xp = namespace(self.is_positive)
        weight_in_group = self.accepted_weight[None, :] - self.weight_above[rows][:, None]
        share = xp.clip(weight_in_group / self.group_weight[rows][:, None], 0.0, 1.0)
        # Replace rounding errors by 0.
        share = xp.where(share < ROUNDING, xp.zeros_like(share), share)
        accepted = share * self.weight[rows][:, None]
        positive = accepted * self.is_positive[rows][:, None]
        return positive, accepted - positive


def _auroc_and_ap_at_coverages(task: BinaryTask) -> tuple[FloatArray, FloatArray]:
    """Return ROC AUC and average precision among the accepted samples; NaN where undefined."""
    samples, xp = _RankedSamples.from_task(task), task.scored.xp
    # Sums over the scores of earlier blocks, shape (COVERAGES,).
    positive = negative = zeros = xp.zeros_like(samples.accepted_weight)
    wins = precision_sum = zeros
    for rows, last_rows in samples.score_blocks():
        positive_through, negative_through = samples.cumulative_weight_by_score(rows, last_rows)
        positive_above = xp.concat((zeros[None, :], positive_through[:-1, :]))
        negative_above = xp.concat((zeros[None, :], negative_through[:-1, :]))
        positive_at_score = positive_through - positive_above
        negative_at_score = negative_through - negative_above
        n_beaten = positive + positive_above + positive_at_score / 2
        wins = wins + xp.sum(negative_at_score * n_beaten, axis=0)
        weight_through = positive + positive_through + negative + negative_through
        safe_weight = xp.where(weight_through > 0, weight_through, 1.0)
        weighted_precision = positive_at_score * (positive + positive_through) / safe_weight
        precision_sum = precision_sum + xp.sum(weighted_precision, axis=0)
        positive = positive + positive_through[-1, :]
        negative = negative + negative_through[-1, :]
    return _divide_or_nan(wins, positive * negative), _divide_or_nan(precision_sum, positive)


def _divide_or_nan(numerator: FloatArray, denominator: FloatArray) -> AnyArray:
    xp = namespace(numerator)
    is_defined = denominator > 0
    ratio = numerator / xp.where(is_defined, denominator, 1.0)
    return xp.where(is_defined, ratio, xp.full_like(numerator, float("nan")))


def _mean(values: FloatArray, kinds: str) -> MetricValue:
    """Return the mean over the coverages at which the metric is defined."""
    xp = namespace(values)
    is_defined = ~xp.isnan(values)
    if not xp.any(is_defined):
        return undefined(f"the accepted samples contain {kinds} at no coverage")
    return MetricValue(float(xp.mean(values[is_defined])))


def _auroc_and_ap_of_samples(s: Scored) -> tuple[FloatArray, FloatArray] | MetricValue:
    task = binary_task_of_samples(s)
    return task if isinstance(task, MetricValue) else _auroc_and_ap_at_coverages(task)


def _compute_retention(s: Scored, *, index: int) -> MetricValue:
    # Both metrics are computed in one pass and cached.
    result = s.cached(_auroc_and_ap_of_samples)
    return result if isinstance(result, MetricValue) else _mean(result[index], _KINDS[index])


def _entry(identity: Identity, index: int) -> Metric:
    measurement = Measurement(
        compute=partial(_compute_retention, index=index),
        needs=frozenset({Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES}),
        monotone=False,
        gradients=frozenset(),
        no_influence_reason="the compared pairs change at each coverage of the mean",
    )
    return Metric(identity, measurement)


ENTRIES = (
    _entry(
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
