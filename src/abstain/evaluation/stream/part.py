"""One score on one part of the data of which only counts are kept."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from abstain._foundation.scored import ClassView, Scored
from abstain.evaluation.intervals import IntervalOptions
from abstain.evaluation.part import EvaluatedPart
from abstain.evaluation.records import Part
from abstain.evaluation.stream.counts import NO_CLASS, Kept, Named, ScoreCounts, SplitCounts
from abstain.metrics import Metric, Need
from abstain.metrics.contributions import contribution_of_failures
from abstain.streaming import scored
from abstain.typing import Split

#: What takes every sample with its classes, or all its class scores.
_BEYOND = frozenset(
    {
        Need.CLASSES,
        Need.CORRECTNESS,
        Need.PROBABILITIES,
        Need.TWO_CLASSES,
        Need.UNKNOWN_CLASSES,
    }
)

#: What counts of label and prediction are enough for.
_OF_ANSWERS = frozenset({Need.CLASSES, Need.CORRECTNESS})

#: An order of all samples takes 16 bytes a failure, and each metric a few times as much.
_FAILURES = 1 << 20


@dataclass(frozen=True, eq=False)
class CountedPart(EvaluatedPart):
    """One score on one part of the data of which only counts are kept."""

    counts: SplitCounts
    kept: ScoreCounts
    #: The samples by the probability of being right; None where that is what they are scored by.
    by_chance: Scored | None

    @property
    def sure(self) -> Scored:
        """The samples by the probability of being right, for what reads its values."""
        return self.s if self.by_chance is None else self.by_chance

    @cached_property
    def cells(self) -> Scored:
        """The samples by label and prediction alone, for what looks at the classifier alone."""
        answers = self.counts.answers
        names = sorted({name for pair in answers for name in pair}, key=_order)
        codes = {name: code for code, name in enumerate(n for n in names if n != NO_CLASS)}
        pairs = np.array([[codes.get(name, -1) for name in pair] for pair in answers])
        times = np.array(list(answers.values()), np.float64)
        labels, prediction = pairs[:, 0], pairs[:, 1]
        loss = (labels != prediction).astype(np.float64)
        view = ClassView(labels, prediction, tuple(codes))
        return Scored(1.0 - loss, loss, times, view=view, times=times)

    def of(self, metric: Metric) -> Scored:
        """Return the samples as this metric takes them."""
        is_classifier_metric = (
            metric.identity.ignores_confidence and set() < metric.measurement.needs <= _OF_ANSWERS
        )
        # Pairs are counted without weights.
        has_pair_counts = bool(self.counts.answers) and not self.counts.weighted
        use_pairs = is_classifier_metric and has_pair_counts
        return self.cells if use_pairs else super().of(metric)

    def missing(self, metric: Metric) -> str:
        """Return why a metric does not apply, or cannot be had of counts; or an empty string."""
        s = self.of(metric)
        if metric.measurement.needs & _BEYOND and s.view is None and self.counts.answers:
            words = " and ".join(
                need.value for need in Need if need in metric.measurement.needs & _BEYOND
            )
            return f"{words} of every sample, which a stream does not keep"
        return metric.reason_not_applicable(s)

    @property
    def bounds_ties(self) -> bool:
        """Whether numbers are told with their range over all orders of tied samples."""
        return self.s.failures <= _FAILURES

    @property
    def own(self) -> bool:
        """Whether the score is a column of the data."""
        return self.kept.own

    @property
    def unknown(self) -> int | None:
        """How many samples belong to no class that the model knows; None without labels."""
        return self.counts.unknown

    def details(self) -> dict[str, Any]:
        """Return the fields of `Case` on samples, classes and groups."""
        return {
            "overconfident": tuple(sample for _, sample in self.kept.overconfident),
            "underconfident": tuple(sample for _, sample in self.kept.underconfident),
            "by_class": self._parts(self.kept.by_class),
            "by_group": self._parts(self.kept.by_group),
        }

    def _parts(self, named: Named) -> tuple[Part, ...]:
        names = sorted(named, key=_order)
        each = [named[name] for name in names]
        tallies = [counts.wrong.finalized for counts in each]
        made = np.array([contribution_of_failures(self.s, t.value, t.count) for t in tallies])
        total = float(made.sum())
        share = made / total if total > 0 else np.full(made.size, np.nan)
        return tuple(
            Part(
                str(names[i]),
                each[i].n,
                each[i].n / self.counts.n,
                float(made[i]),
                float(share[i]),
            )
            for i in np.argsort(-made, kind="stable")
        )


def part_of(
    split: Split, name: str, counts: SplitCounts, intervals: IntervalOptions
) -> CountedPart:
    """Make the part of one score of its counts."""
    kept = counts.scores[name]
    s = _scored(kept.state, sure=kept.sure and kept.chance is None)
    by_chance = _scored(kept.chance, sure=True) if kept.sure and kept.chance is not None else None
    return CountedPart(split, name, s, intervals, counts, kept, by_chance)


def _scored(state: Kept, *, sure: bool) -> Scored:
    s = scored(state)
    return s if sure else replace(s, probability=None)


def _order(name: object) -> tuple[bool, bool, object]:
    """Return a key by which no class comes first, then numbers, then texts."""
    return name != NO_CLASS, isinstance(name, str), name
