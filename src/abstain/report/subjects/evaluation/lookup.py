"""Results by split, score and metric: found, ordered, compared, with intervals in words."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from abstain.evaluation.records import Evaluation, Result, ScoreCurves
from abstain.plots.words import metric_title, percent, returned
from abstain.report.words import between, headline, unique
from abstain.typing import Split

Key = tuple[Split, str, str]


@dataclass(frozen=True, eq=False)
class Pivot:
    """The results of an evaluation, ready to be looked up; every output format starts here."""

    evaluation: Evaluation

    def __post_init__(self) -> None:
        """Refuse what is no evaluation."""
        returned(self.evaluation, Evaluation, "evaluation", "evaluate")

    @cached_property
    def results(self) -> dict[Key, Result]:
        """From (split, score, metric) to the result."""
        return {(r.split, r.score, r.metric.name): r for r in self.evaluation.results}

    @cached_property
    def cases(self) -> dict[tuple[Split, str], ScoreCurves]:
        """From (split, score) to the case."""
        return {(c.split, c.score): c for c in self.evaluation.curves}

    @cached_property
    def splits(self) -> list[Split]:
        """The splits, in the order of their first result."""
        known = [*(key[0] for key in self.results), *(key[0] for key in self.cases)]
        return list(dict.fromkeys(known))

    @cached_property
    def scores(self) -> list[str]:
        """The scores, in the order of their first result."""
        return unique([*(key[1] for key in self.results), *(key[1] for key in self.cases)])

    @cached_property
    def split_place(self) -> dict[Split, int]:
        """The place of each split among them."""
        return {split: i for i, split in enumerate(self.splits)}

    @cached_property
    def score_place(self) -> dict[str, int]:
        """The place of each score among them."""
        return {score: i for i, score in enumerate(self.scores)}

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics, in the order of their first result."""
        return unique(metric for *_, metric in self.results)

    @cached_property
    def best(self) -> frozenset[Key]:
        """The keys of results that no other score on the same split betters."""
        return _best(self.results)

    @cached_property
    def headline(self) -> list[str]:
        """The headline metrics that are present."""
        return headline(self.metrics)

    @property
    def several(self) -> bool:
        """Whether there are several splits."""
        return len(self.splits) > 1

    @property
    def level(self) -> str:
        """The level of the intervals in words, or an empty string where there are none."""
        return level_of(self.evaluation.results)

    def pairs(self) -> list[tuple[Split, str]]:
        """Return the (split, score) pairs that have a result, split by split."""
        met = dict.fromkeys((split, score) for split, score, _ in self.results)
        splits, scores = self.split_place, self.score_place
        return sorted(met, key=lambda pair: (splits[pair[0]], scores[pair[1]]))

    def value(self, split: Split, score: str, metric: str) -> float:
        """Return a value, NaN when there is none."""
        found = self.results.get((split, score, metric))
        return found.value if found else math.nan

    def leaders(self, split: Split, metric: str) -> list[str]:
        """Return the scores with the best value; several when they are equal."""
        return [score for score in self.scores if (split, score, metric) in self.best]


def _best(results: dict[Key, Result]) -> frozenset[Key]:
    """Find the best of each split and metric; nothing is marked where all scores are equal."""
    rivals: dict[tuple[Split, str], list[Result]] = {}
    for result in results.values():
        if not math.isnan(result.value):
            rivals.setdefault((result.split, result.metric.name), []).append(result)
    marked: set[Key] = set()
    for group in rivals.values():
        values = {_compared(r) for r in group}
        if len(values) > 1:
            best = min(values) if group[0].metric.lower_is_better else max(values)
            marked.update((r.split, r.score, r.metric.name) for r in group if _compared(r) == best)
    return frozenset(marked)


def _compared(result: Result) -> float:
    """Drop the last digits, in which equal scores differ by the order of summation."""
    return float(f"{result.value:.12g}")


def level_of(results: Iterable[Result]) -> str:
    """Return the level of the intervals in words, or an empty string where there are none."""
    return next((percent(r.interval.level) for r in results if r.interval.exists), "")


def note_of(result: Result) -> str:
    """Return the sentence about the interval of a number, or why it has none.

    Nothing for an undefined number: the reason stands in its place.
    """
    if result.reason or not result.interval.note:
        return ""
    lead = "Interval" if result.interval.exists else "No interval"
    return f"{lead}: {result.interval.note}."


def said_with(result: Result) -> str:
    """Return a value's interval as it stands inside a sentence, or an empty string."""
    ends = between(result.interval.low, result.interval.high)
    return f", {percent(result.interval.level)} interval {ends}" if ends else ""


def forms(results: Iterable[Result]) -> dict[str, list[str]]:
    """Return the forms of interval with the metrics that have them, in order of appearance."""
    found: dict[str, list[str]] = {}
    for result in results:
        if result.interval.exists:
            found.setdefault(result.interval.procedure, []).append(metric_title(result.metric.name))
    return {form: unique(titles) for form, titles in found.items()}


def without(results: Iterable[Result]) -> list[str]:
    """List why numbers have no interval, each reason once."""
    bare = [r for r in results if not (r.reason or r.interval.exists)]
    return unique(r.interval.note for r in bare if r.interval.note)


def footnotes(results: Iterable[Result]) -> list[str]:
    """Return the sentences below a table that prints intervals."""
    told = list(results)
    level = level_of(told)
    if not level:
        return ["No number has an interval."]
    listed = "; ".join(f"{form} ({', '.join(titles)})" for form, titles in forms(told).items())
    sentences = [f"In brackets: {level} intervals. Forms: {listed}."]
    reasons = without(told)
    if reasons:
        sentences.append(f"No interval: {'; '.join(reasons)}.")
    cautions = unique(r.interval.note for r in told if r.interval.exists and r.interval.note)
    if cautions:
        sentences.append(f"With care: {'; '.join(cautions)}.")
    return sentences
