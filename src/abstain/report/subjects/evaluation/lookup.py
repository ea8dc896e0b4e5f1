"""Lookup of the results of an evaluation by split, score and metric."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from abstain.evaluation.records import Evaluation, Result, ScoreCurves
from abstain.plots.formatting import check_result_type, format_percent, metric_title
from abstain.report.formatting import format_interval, headline_metrics, unique
from abstain.typing import Split

ResultKey = tuple[Split, str, str]


@dataclass(frozen=True, eq=False)
class ResultLookup:
    """The results of an evaluation by split, score and metric, for all output formats."""

    evaluation: Evaluation

    def __post_init__(self) -> None:
        """Check the type of the evaluation."""
        check_result_type(self.evaluation, Evaluation, "evaluation", "evaluate")

    @cached_property
    def results(self) -> dict[ResultKey, Result]:
        """Results by split, score and metric."""
        return {(r.split, r.score, r.metric.name): r for r in self.evaluation.results}

    @cached_property
    def cases(self) -> dict[tuple[Split, str], ScoreCurves]:
        """Cases by split and score."""
        return {(c.split, c.score): c for c in self.evaluation.curves}

    @cached_property
    def splits(self) -> list[Split]:
        """Splits in the order of their first result."""
        splits = [*(key[0] for key in self.results), *(key[0] for key in self.cases)]
        return list(dict.fromkeys(splits))

    @cached_property
    def scores(self) -> list[str]:
        """Scores in the order of their first result."""
        return unique([*(key[1] for key in self.results), *(key[1] for key in self.cases)])

    @cached_property
    def split_index(self) -> dict[Split, int]:
        """Index of each split."""
        return {split: i for i, split in enumerate(self.splits)}

    @cached_property
    def score_index(self) -> dict[str, int]:
        """Index of each score."""
        return {score: i for i, score in enumerate(self.scores)}

    @cached_property
    def metrics(self) -> list[str]:
        """Metrics in the order of their first result."""
        return unique(metric for *_, metric in self.results)

    @cached_property
    def best_keys(self) -> frozenset[ResultKey]:
        """Keys of the results that are the best of all scores on their split."""
        return _find_best_keys(self.results)

    @cached_property
    def headline_metrics(self) -> list[str]:
        """Headline metrics of the evaluation."""
        return headline_metrics(self.metrics)

    @property
    def has_several_splits(self) -> bool:
        """Whether there are several splits."""
        return len(self.splits) > 1

    @property
    def level(self) -> str:
        """Confidence level of the intervals as a percentage; empty without intervals."""
        return interval_level(self.evaluation.results)

    def split_score_pairs(self) -> list[tuple[Split, str]]:
        """Return the pairs of split and score with results, sorted by split."""
        pairs = dict.fromkeys((split, score) for split, score, _ in self.results)
        splits, scores = self.split_index, self.score_index
        return sorted(pairs, key=lambda pair: (splits[pair[0]], scores[pair[1]]))

    def value(self, split: Split, score: str, metric: str) -> float:
        """Return the value of a metric; NaN if there is no result."""
        result = self.results.get((split, score, metric))
        return result.value if result else math.nan

    def best_scores(self, split: Split, metric: str) -> list[str]:
        """Return the scores with the best value; several if they are equal."""
        return [score for score in self.scores if (split, score, metric) in self.best_keys]


def _find_best_keys(results: dict[ResultKey, Result]) -> frozenset[ResultKey]:
    """Find the best results by split and metric; none if all scores are equal."""
    competitors: dict[tuple[Split, str], list[Result]] = {}
    for result in results.values():
        if not math.isnan(result.value):
            competitors.setdefault((result.split, result.metric.name), []).append(result)
    best_keys: set[ResultKey] = set()
    for group in competitors.values():
        values = {_rounded_value(r) for r in group}
        if len(values) > 1:
            best = min(values) if group[0].metric.lower_is_better else max(values)
            best_keys.update(
                (r.split, r.score, r.metric.name) for r in group if _rounded_value(r) == best
            )
    return frozenset(best_keys)


def _rounded_value(result: Result) -> float:
    """Round to 12 digits, because equal values can differ by rounding errors of sums."""
    return float(f"{result.value:.12g}")


def interval_level(results: Iterable[Result]) -> str:
    """Return the confidence level of the intervals as a percentage; empty without intervals."""
    return next((format_percent(r.interval.level) for r in results if r.interval.exists), "")


def interval_note(result: Result) -> str:
    """Return the note on the interval of a result, or the reason why it has none.

    The note is empty for undefined results, because their reason is printed instead.
    """
    if result.reason or not result.interval.note:
        return ""
    lead = "Interval" if result.interval.exists else "No interval"
    return f"{lead}: {result.interval.note}."


def interval_clause(result: Result) -> str:
    """Return the interval of a result as a clause for a sentence; empty without an interval."""
    bounds = format_interval(result.interval.low, result.interval.high)
    return f", {format_percent(result.interval.level)} interval {bounds}" if bounds else ""


def metrics_by_interval_method(results: Iterable[Result]) -> dict[str, list[str]]:
    """Return the metrics by the method for their intervals, in order of appearance."""
    titles_by_method: dict[str, list[str]] = {}
    for result in results:
        if result.interval.exists:
            titles_by_method.setdefault(result.interval.procedure, []).append(
                metric_title(result.metric.name)
            )
    return {method: unique(titles) for method, titles in titles_by_method.items()}


def reasons_without_interval(results: Iterable[Result]) -> list[str]:
    """Return the distinct reasons why results have no interval."""
    without_interval = [r for r in results if not (r.reason or r.interval.exists)]
    return unique(r.interval.note for r in without_interval if r.interval.note)


def interval_footnotes(results: Sequence[Result]) -> list[str]:
    """Return the sentences below a table with intervals."""
    level = interval_level(results)
    if not level:
        return ["No number has an interval."]
    methods = "; ".join(
        f"{method} ({', '.join(titles)})"
        for method, titles in metrics_by_interval_method(results).items()
    )
    sentences = [f"In brackets: {level} confidence intervals. Methods: {methods}."]
    reasons = reasons_without_interval(results)
    if reasons:
        sentences.append(f"No interval: {'; '.join(reasons)}.")
    notes = unique(r.interval.note for r in results if r.interval.exists and r.interval.note)
    if notes:
        sentences.append(f"Notes on the intervals: {'; '.join(notes)}.")
    return sentences
