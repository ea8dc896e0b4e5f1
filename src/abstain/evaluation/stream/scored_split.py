"""Define one score on one split of a stream, of which only counts are stored."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from abstain._foundation.scored import ClassView, Scored
from abstain.evaluation.intervals import IntervalOptions
from abstain.evaluation.records import Contribution
from abstain.evaluation.scored_split import ScoredSplit, sort_contributions
from abstain.evaluation.stream.counts import (
    NO_CLASS,
    CountsByName,
    ScoreCounts,
    SplitCounts,
)
from abstain.metrics import Metric, Need
from abstain.metrics.contributions import GroupContributions, contribution_of_failures
from abstain.streaming import scored
from abstain.typing import Split

#: Requirements of metrics that need the classes or class scores of every sample.
_PER_SAMPLE_NEEDS = frozenset(
    {
        Need.CLASSES,
        Need.CORRECTNESS,
        Need.PROBABILITIES,
        Need.TWO_CLASSES,
        Need.UNKNOWN_CLASSES,
    }
)

#: Requirements of metrics that can be computed from counts of label and prediction.
_PAIR_NEEDS = frozenset({Need.CLASSES, Need.CORRECTNESS})

#: Maximum number of failures with which tie bounds are computed. They need memory for each failure.
_FAILURES = 1 << 20


@dataclass(frozen=True, eq=False)
class StreamedSplit(ScoredSplit):
    """One score on one split of a stream, of which only counts are stored."""

    split_counts: SplitCounts
    score_counts: ScoreCounts
    #: The samples with the probability of a correct prediction as confidence, or None if the score
    #: is this probability.
    by_probability: Scored | None

    @property
    def scored_by_probability(self) -> Scored:
        """The samples, with the probability of a correct prediction as confidence."""
        return self.s if self.by_probability is None else self.by_probability

    @cached_property
    def label_prediction_samples(self) -> Scored:
        """One row for each pair of label and predicted class, for metrics of the classifier."""
        pair_counts = self.split_counts.label_prediction_counts
        names = {name for pair in pair_counts for name in pair if name != NO_CLASS}
        codes = {name: code for code, name in enumerate(sorted(names, key=_order))}
        labels = np.array([codes.get(label, -1) for label, _ in pair_counts])
        prediction = np.array([codes.get(predicted, -1) for _, predicted in pair_counts])
        counts = np.array(list(pair_counts.values()), np.float64)
        loss = (labels != prediction).astype(np.float64)
        view = ClassView(labels, prediction, tuple(codes))
        return Scored(1.0 - loss, loss, counts, class_view=view, row_counts=counts)

    def samples_for(self, metric: Metric) -> Scored:
        """Return the samples with the confidence and loss that a metric requires."""
        needs = metric.measurement.needs
        needs_pairs_only = bool(needs) and needs <= _PAIR_NEEDS
        # The counts of pairs of label and prediction do not include weights.
        has_pairs = bool(self.split_counts.label_prediction_counts)
        has_usable_pairs = has_pairs and not self.split_counts.has_weights
        if metric.identity.ignores_confidence and needs_pairs_only and has_usable_pairs:
            return self.label_prediction_samples
        return super().samples_for(metric)

    def reason_not_applicable(self, metric: Metric) -> str:
        """Return the reason why a metric cannot be computed from counts, or an empty string."""
        s = self.samples_for(metric)
        unavailable = metric.measurement.needs & _PER_SAMPLE_NEEDS
        has_pair_counts = bool(self.split_counts.label_prediction_counts)
        if unavailable and s.class_view is None and has_pair_counts:
            description = " and ".join(need.value for need in Need if need in unavailable)
            return f"{description} of every sample, which a stream does not keep"
        return metric.reason_not_applicable(s)

    @property
    def has_tie_bounds(self) -> bool:
        """Whether to compute the range of metrics over all orders of tied samples."""
        return self.s.n_failures <= _FAILURES

    @property
    def is_column(self) -> bool:
        """Whether the score is a column of the data."""
        return self.score_counts.is_column

    @property
    def n_unknown_class(self) -> int | None:
        """Number of samples whose true class is unknown to the model, or None without labels."""
        return self.split_counts.n_unknown_class

    def curve_fields(self) -> dict[str, Any]:
        """Return the fields of `ScoreCurves` that describe samples, classes and groups."""
        return {
            "overconfident": tuple(sample for _, sample in self.score_counts.overconfident),
            "underconfident": tuple(sample for _, sample in self.score_counts.underconfident),
            "by_class": self._contributions(self.score_counts.by_class),
            "by_group": self._contributions(self.score_counts.by_group),
        }

    def _contributions(self, counts_by_name: CountsByName) -> tuple[Contribution, ...]:
        """Return the contributions of classes or groups to the AUGRC, sorted from the largest."""
        names = sorted(counts_by_name, key=_order)
        contribution = np.empty(len(names))
        for i, name in enumerate(names):
            failures = counts_by_name[name].failures.finalized
            contribution[i] = contribution_of_failures(self.s, failures.value, failures.count)
        total = float(contribution.sum())
        n_samples = np.array([counts_by_name[name].n for name in names], np.int64)
        contributions = GroupContributions(
            group=np.array(names, dtype=object),
            contribution=contribution,
            share=contribution / total if total > 0 else np.full(contribution.size, np.nan),
            samples=n_samples,
            sample_share=n_samples / self.split_counts.n,
        )
        return sort_contributions(contributions)


def streamed_split(
    split: Split, name: str, counts: SplitCounts, intervals: IntervalOptions
) -> StreamedSplit:
    """Create the score on one split of a stream from its counts."""
    score = counts.scores[name]
    s = scored(score.state)
    by_probability = None
    if not score.is_probability:
        s = replace(s, probability=None)
    elif score.by_probability is not None:
        s = replace(s, probability=None)
        by_probability = scored(score.by_probability)
    return StreamedSplit(split, name, s, intervals, counts, score, by_probability)


def _order(name: object) -> tuple[bool, bool, object]:
    """Return a sort key for class names: a missing class, then numbers, then texts."""
    return name != NO_CLASS, isinstance(name, str), name
