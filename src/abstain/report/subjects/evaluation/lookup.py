"""Access to the results of an evaluation by split, score and metric."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from abstain.evaluation.records import Evaluation, Result, ScoreCurves, ScoreDifference
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.plots.formatting import check_result_type, format_percent, metric_title
from abstain.report.formatting import format_interval, headline_metrics, unique
from abstain.tables import split_name
from abstain.typing import Split

ResultKey = tuple[Split, str, str]

#: Columns whose values are names of models or of input files.
_MODEL_COLUMNS = frozenset({"file", "model", "method", "classifier", "network"})

#: Metrics that do not depend on the confidence score.
_METRICS_WITHOUT_SCORE = frozenset({"accuracy", "balanced_accuracy", "nll", "brier"})


@dataclass(frozen=True, eq=False)
class ResultLookup:
    """The results of an evaluation by split, score and metric."""

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
        """Curves by split and score."""
        return {(case.split, case.score): case for case in self.evaluation.curves}

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
        """Keys of the results that have the best value of all scores on the same split."""
        return _find_best_keys(self.results)

    @cached_property
    def headline_metrics(self) -> list[str]:
        """Headline metrics of the evaluation."""
        return headline_metrics(self.metrics)

    @property
    def first_score_color(self) -> int:
        """Color index of the first score.

        If there are several splits, the preceding indices are the colors of the splits.
        """
        return len(self.splits) if self.has_several_splits else 0

    @property
    def has_several_splits(self) -> bool:
        """Whether there are several splits."""
        return len(self.splits) > 1

    @property
    def level(self) -> str:
        """Confidence level of the intervals as a percentage, or "" if there are no intervals."""
        return interval_level(self.evaluation.results)

    @cached_property
    def key_metric(self) -> str:
        """Name of the metric that ranks the scores, or an empty string if there are no results."""
        tests = self.evaluation.tests
        if tests is not None:
            return tests.metric
        names = [*self.headline_metrics, *self.metrics]
        ranking = (name for name in names if name not in _METRICS_WITHOUT_SCORE)
        return next((n for n in (DEFAULT_METRIC, *ranking, *names) if n in self.metrics), "")

    @cached_property
    def best_results(self) -> dict[Split, Result]:
        """Result of the best score of each split for the key metric, best split first."""
        best: dict[Split, Result] = {}
        # Only the first of several scores with equal rankings is tested.
        repeated = {score for group in self.rankings for score in group[1:]}
        for result in self.results.values():
            if result.metric.name != self.key_metric or math.isnan(result.value):
                continue
            if result.score in repeated:
                continue
            if result.split not in best or _is_better(result, best[result.split]):
                best[result.split] = result
        sign = 1 if all(r.metric.lower_is_better for r in best.values()) else -1
        return dict(sorted(best.items(), key=lambda item: sign * _rounded_value(item[1])))

    @property
    def best(self) -> Result | None:
        """Best result of the key metric over all scores and splits."""
        return next(iter(self.best_results.values()), None)

    @cached_property
    def rankings(self) -> tuple[tuple[str, ...], ...]:
        """Groups of scores that rank the samples in the same order."""
        group_by_score = {s: group for group in self.evaluation.equal_rankings for s in group}
        groups = (group_by_score.get(score, (score,)) for score in self.scores)
        return tuple(dict.fromkeys(groups))

    def ranked_scores(self, split: Split) -> list[tuple[str, ...]]:
        """Return groups of scores with equal rankings, sorted by the key metric."""
        result_by_group = {}
        for group in self.rankings:
            result = self.results.get((split, group[0], self.key_metric))
            if result is not None:
                result_by_group[group] = result

        def sort_key(group: tuple[str, ...]) -> tuple[bool, float]:
            result = result_by_group[group]
            if math.isnan(result.value):
                return True, 0.0  # Undefined values come last.
            value = _rounded_value(result)
            return False, value if result.metric.lower_is_better else -value

        return sorted(result_by_group, key=sort_key)

    def is_among_best(self, result: Result, reference: Result) -> bool:
        """Return whether a score is the reference or does not differ significantly from it."""
        if (result.split, result.score) == (reference.split, reference.score):
            return True
        difference = self.difference(result.split, result.score, reference)
        return (
            difference is not None
            and not math.isnan(difference.adjusted)
            and not difference.is_significant
        )

    @cached_property
    def models_are_compared(self) -> bool:
        """Whether paired tests compare the scores of all splits on the same samples."""
        tests = self.evaluation.tests
        return self.has_several_splits and tests is not None and tests.has_same_samples

    def difference(self, split: Split, score: str, reference: Result) -> ScoreDifference | None:
        """Return the test of a score against the reference, or None if there is no such test."""
        key = reference.split, reference.score
        if key not in self._differences:
            tests = self.evaluation.tests
            self._differences[key] = {} if tests is None else tests.differences_from(key)
        return self._differences[key].get((split, score))

    @cached_property
    def _differences(self) -> dict[tuple[Split, str], dict[tuple[Split, str], ScoreDifference]]:
        return {}

    @cached_property
    def split_noun(self) -> str:
        """Singular noun for the splits, such as "model" for splits by input file."""
        columns = unique(column for split in self.splits for column, _ in split)
        if len(columns) != 1:
            return "split"
        return "model" if columns[0] in _MODEL_COLUMNS else columns[0]

    @cached_property
    def split_labels(self) -> dict[Split, str]:
        """Short name of each split, without a common file extension."""
        if any(len(split) != 1 for split in self.splits):
            return {split: split_name(split) for split in self.splits}
        values = {split: split[0][1] for split in self.splits}
        suffixes = {PurePath(value).suffix for value in values.values()}
        if self.split_noun == "model" and len(suffixes) == 1:
            suffix = suffixes.pop()
            stems = {split: value.removesuffix(suffix) for split, value in values.items()}
            return stems if all(stems.values()) else values
        return values

    def split_score_pairs(self) -> list[tuple[Split, str]]:
        """Return the pairs of split and score with results, sorted by split."""
        pairs = dict.fromkeys((split, score) for split, score, _ in self.results)
        splits, scores = self.split_index, self.score_index
        return sorted(pairs, key=lambda pair: (splits[pair[0]], scores[pair[1]]))

    def value(self, split: Split, score: str, metric: str) -> float:
        """Return the value of a metric, or NaN if there is no result."""
        result = self.results.get((split, score, metric))
        return result.value if result else math.nan

    def best_scores(self, split: Split, metric: str) -> list[str]:
        """Return the names of all scores that have the best value."""
        return [score for score in self.scores if (split, score, metric) in self.best_keys]


def _find_best_keys(results: dict[ResultKey, Result]) -> frozenset[ResultKey]:
    """Return the keys of the best results.

    If all scores have the same value of a metric, this metric has no best result.
    """
    competitors: dict[tuple[Split, str], list[Result]] = {}
    for result in results.values():
        if not math.isnan(result.value):
            competitors.setdefault((result.split, result.metric.name), []).append(result)
    best_keys: set[ResultKey] = set()
    for group in competitors.values():
        values = [_rounded_value(result) for result in group]
        best = min(values) if group[0].metric.lower_is_better else max(values)
        if len(set(values)) == 1:
            continue
        for result, value in zip(group, values, strict=True):
            if value == best:
                best_keys.add((result.split, result.score, result.metric.name))
    return frozenset(best_keys)


def _is_better(result: Result, other: Result) -> bool:
    """Return whether a result is better than another result of the same metric."""
    value, other_value = _rounded_value(result), _rounded_value(other)
    return value < other_value if result.metric.lower_is_better else value > other_value


def _rounded_value(result: Result) -> float:
    """Return the value, rounded to 12 digits to remove numerical errors."""
    return float(f"{result.value:.12g}")


def interval_level(results: Iterable[Result]) -> str:
    """Return the confidence level of the intervals as a percentage, or "" if there are none."""
    return next((format_percent(r.interval.level) for r in results if r.interval.exists), "")


def interval_note(result: Result) -> str:
    """Return the note on the interval of a result, or the reason why there is no interval.

    The note of an undefined result is empty.
    """
    if result.reason or not result.interval.note:
        return ""
    lead = "Interval" if result.interval.exists else "No interval"
    return f"{lead}: {result.interval.note}."


def interval_clause(result: Result) -> str:
    """Return a clause with the interval of a result, or an empty string if there is none."""
    bounds = format_interval(result.interval.low, result.interval.high)
    return f", {format_percent(result.interval.level)} interval {bounds}" if bounds else ""


def metrics_by_interval_method(results: Iterable[Result]) -> dict[str, list[str]]:
    """Return the titles of the metrics by the method that computes their intervals."""
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
    """Return sentences that explain the intervals of a table."""
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
