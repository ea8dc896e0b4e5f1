"""Tables of an evaluation for pages, terminals and papers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, Literal

from abstain.errors import UnknownNameError, suggest
from abstain.evaluation.records import Evaluation, Result, ScoreCurves
from abstain.plots.formatting import capitalize_first, metric_title
from abstain.report import document as doc
from abstain.report.formatting import (
    UNDEFINED,
    format_count,
    is_printed_x1000,
    metric_meaning,
    narrow_title,
    result_meaning,
    short_title,
    unique,
)
from abstain.report.glossary import score_entries
from abstain.report.subjects.evaluation.first_screen import FixedFormat
from abstain.report.subjects.evaluation.lookup import (
    ResultLookup,
    interval_footnotes,
)
from abstain.tables import split_name
from abstain.typing import Split


def number_with_interval(result: Result | None, lookup: ResultLookup) -> doc.Number | None:
    """Return a result as a number with its interval.

    The number is highlighted if no other score is better.
    """
    if result is None:
        return None
    interval = result.interval
    form = interval.method if interval.exists else ""
    best = (result.split, result.score, result.metric.name) in lookup.best_keys
    return doc.Number(
        doc.NAN if result.reason else result.value,
        interval.low,
        interval.high,
        per_thousand=result.metric.display.per_thousand,
        mark="best" if best else "",
        tooltip=". ".join(text for text in (form, interval.note) if text),
        reason=result.reason,
    )


def _metric_label(name: str, lookup: ResultLookup, title: str) -> doc.Label:
    direction = _direction(_results_of_metric(lookup, name)[0])
    return doc.Label(
        title, direction, short_text=narrow_title(name), tooltip=f"{direction} is better"
    )


def _results_of_metric(lookup: ResultLookup, name: str) -> list[Result]:
    """Return a table of one metric for all splits and scores."""
    return [result for result in lookup.results.values() if result.metric.name == name]


def _direction(result: Result) -> Literal["lower", "higher"]:
    return "lower" if result.metric.lower_is_better else "higher"


# ---------------------------------------------------------------------------------------- a page
#: Maximum number of splits in a table of all scores that does not scroll sideways.
_MAX_SPLIT_COLUMNS: Final = 8


def all_scores_table(lookup: ResultLookup) -> doc.Table:
    """Return a table of the key metric by score (rows) and split (columns)."""
    key = lookup.key_metric
    results = _results_of_metric(lookup, key)
    number_format = FixedFormat.of(results, is_binary=lookup.evaluation.is_binary)
    title_by_score = {group[0]: _score_title(group[0], lookup) for group in lookup.rankings}
    has_titles = any(title != score for score, title in title_by_score.items())
    best = lookup.best
    ranked = lookup.ranked_scores(best.split) if best else []
    rows = []
    for group in dict.fromkeys((*ranked, *lookup.rankings)):
        cells: list[doc.Cell] = [", ".join(group)]
        if has_titles:
            cells.append(title_by_score[group[0]])
        cells += [
            _key_metric_cell(lookup, split, group[0], number_format) for split in lookup.splits
        ]
        rows.append(doc.Row(tuple(cells)))
    columns = [doc.Column("Score", "name")]
    if has_titles:
        columns.append(doc.Column("Name", "name"))
    for i, split in enumerate(lookup.splits):
        columns.append(doc.number_column(doc.Label(lookup.split_labels[split], line=i)))
    layout = "names" if has_titles else ""
    if len(lookup.splits) > _MAX_SPLIT_COLUMNS:
        layout = "wide"
    title = f"{metric_title(key)} by score and {lookup.split_noun}"
    is_lower_better = all(result.metric.lower_is_better for result in results)
    direction = "lower is better" if is_lower_better else "higher is better"
    return doc.Table(
        tuple(columns),
        doc.single_group(rows),
        title=title,
        caption=(title, doc.Span(f" {direction}", "small")),
        anchor="all-scores",
        layout=layout,
        is_sortable=True,
    )


def _key_metric_cell(
    lookup: ResultLookup, split: Split, score: str, number_format: FixedFormat
) -> doc.Number | None:
    """Return a cell with the key metric, which is highlighted if no other score is better."""
    result = lookup.results.get((split, score, lookup.key_metric))
    reference = lookup.best_results.get(split)
    is_best = False
    if lookup.evaluation.tests is not None and result is not None and reference is not None:
        is_best = lookup.is_among_best(result, reference)
    cell = number_format.cell(result, is_best=is_best)
    return cell and replace(cell, small_text="")


def _score_title(score: str, lookup: ResultLookup) -> str:
    return score_entries([score], lookup.evaluation.column_scores)[0].title


def calibration_table(lookup: ResultLookup, cases: Sequence[ScoreCurves]) -> doc.Table:
    """Return the table of mean confidence, accuracy and calibration metrics."""
    # A metric that is undefined in all rows has no column.
    keys = [(case.split, case.score) for case in cases]
    metrics = [
        name
        for name in _CALIBRATION_TITLES
        if any(
            (*key, name) in lookup.results and not math.isnan(lookup.results[*key, name].value)
            for key in keys
        )
    ]
    rows: list[doc.Row] = []
    for case in cases:
        curve = case.reliability
        if curve is None:
            continue
        cells: list[doc.Cell] = [
            case_label(lookup, case),
            doc.Number(curve.mean_confidence, number_format="three_decimals"),
            doc.Number(curve.mean_accuracy, number_format="three_decimals"),
        ]
        for metric in metrics:
            result = lookup.results.get((case.split, case.score, metric))
            cell = number_without_interval(result, lookup)
            cells.append(cell and replace(cell, number_format="three_decimals", mark=""))
        rows.append(doc.Row(tuple(cells)))
    columns = [
        doc.Column(case_noun(lookup), "name"),
        doc.number_column("Mean probability"),
        doc.number_column("Accuracy"),
    ]
    for metric in metrics:
        label = _metric_label(metric, lookup, _CALIBRATION_TITLES[metric])
        columns.append(doc.number_column(label))
    return doc.Table(
        tuple(columns),
        doc.single_group(rows),
        title="Calibration of the probabilities",
        caption="Calibration of the probabilities",
        anchor="calibration-metrics",
        layout="key",
    )


_CALIBRATION_TITLES: Final = {"ece": "ECE", "brier": "Brier", "nll": "NLL"}


def case_label(lookup: ResultLookup, case: ScoreCurves) -> doc.Label:
    """Return the label of a split or of a score, with the color of its curve."""
    if lookup.has_several_splits:
        note = case.score if len(lookup.scores) > 1 else ""
        line = lookup.split_index[case.split]
        return doc.Label(lookup.split_labels[case.split], note=note, line=line)
    return doc.Label(case.score, line=lookup.score_index[case.score])


def case_noun(lookup: ResultLookup) -> str:
    """Return the header of the column with splits or scores."""
    if not lookup.has_several_splits:
        return "Score"
    noun = lookup.split_noun
    return capitalize_first(noun) if noun in {"model", "split"} else noun


def metrics_table(lookup: ResultLookup) -> doc.Table:
    """Return the table of all metrics with explanations, and a column for each score."""
    level = lookup.level
    interval_note = f" small print: {level} intervals" if level else ""
    if lookup.has_several_splits:
        groups = tuple(_rows_by_split(lookup))
        first_column = doc.Column(case_noun(lookup), "name")
    else:
        split = lookup.splits[0] if lookup.splits else ()
        rows = []
        for name in lookup.metrics:
            cells = (_explained_label(name, lookup), *_score_cells(split, name, lookup))
            rows.append(doc.Row(cells))
        groups = (doc.TableRows(tuple(rows)),)
        first_column = doc.Column("Metric", "words")
    return doc.Table(
        (first_column, *map(doc.number_column, lookup.scores)),
        groups,
        title="All metrics",
        caption=("All metrics, one column for each score", doc.Span(interval_note, "small")),
        anchor="every",
        layout="wide",
    )


def _rows_by_split(lookup: ResultLookup) -> Iterator[doc.TableRows]:
    """Yield a group of rows for each metric, with one row for each split."""
    for name in lookup.metrics:
        label = _explained_label(name, lookup)
        rows = tuple(
            doc.Row((lookup.split_labels[split], *_score_cells(split, name, lookup)))
            for split in lookup.splits
            if any((split, score, name) in lookup.results for score in lookup.scores)
        )
        yield doc.TableRows(rows, title=f"{label.text} {label.arrow} {label.note}")


def _explained_label(name: str, lookup: ResultLookup) -> doc.Label:
    """Return a metric with its explanation as a label.

    If there is only one result, its value is part of the explanation.
    """
    results = _results_of_metric(lookup, name)
    metric = results[0].metric
    explanation = result_meaning(results[0]) if len(results) == 1 else metric_meaning(metric)
    convention = metric.identity.convention
    note = f"{explanation} Convention: {convention}." if convention else explanation
    return doc.Label(capitalize_first(metric.title), _direction(results[0]), note=note)


def _score_cells(split: Split, metric: str, lookup: ResultLookup) -> Iterator[doc.Cell]:
    """Yield a cell for each score, with the value, its interval and its range for ties.

    The cells are texts, because exact values would make the page large.
    """
    results = [lookup.results.get((split, score, metric)) for score in lookup.scores]
    number_format = FixedFormat.of(results, is_binary=lookup.evaluation.is_binary)
    for result in results:
        if result is None:
            yield None
        elif result.reason:
            yield doc.Span(UNDEFINED, "undefined", tooltip=result.reason)
        else:
            notes = _small_print(result, number_format)
            yield (number_format.value(result.value), *(doc.Span(text, "small") for text in notes))


def _small_print(result: Result, number_format: FixedFormat) -> Iterator[str]:
    """Yield the small texts below a value, such as its interval and its range for ties."""
    interval = number_format.interval(result.interval.low, result.interval.high)
    if interval:
        yield interval
    if result.accepted is not None:
        yield f"{format_count(result.accepted)} of {format_count(result.n)} accepted"
    ties = number_format.interval(result.tie_low, result.tie_high)
    if ties and number_format.value(result.tie_low) != number_format.value(result.tie_high):
        yield f"ties: {ties}"


def _ordered_results(lookup: ResultLookup, split: Split) -> list[Result]:
    """Return the results of one split, sorted by metric and then by score."""
    keys = [(split, score, metric) for metric in lookup.metrics for score in lookup.scores]
    return [lookup.results[key] for key in keys if key in lookup.results]


# ------------------------------------------------------------------------------------ a terminal
def number_without_interval(result: Result | None, lookup: ResultLookup) -> doc.Number | None:
    """Return a result as a number without its interval."""
    number = number_with_interval(result, lookup)
    return number and replace(number, low=doc.NAN, high=doc.NAN)


def requested_table(lookup: ResultLookup) -> doc.Table:
    """Return the table of the requested metrics, with a row for each split and score.

    A narrow terminal prints the tables of `alternative`, which contain explanations.
    """
    split_columns = unique(column for split in lookup.splits for column, _ in split)
    columns = [doc.Column(column, "name", blank_repeats=True) for column in split_columns]
    columns.append(doc.Column("Score", "name"))
    formats = {}
    for name in lookup.metrics:
        columns.append(doc.number_column(_metric_label(name, lookup, short_title(name))))
        results = _results_of_metric(lookup, name)
        formats[name] = FixedFormat.of(results, is_binary=lookup.evaluation.is_binary)
    rows_by_split: dict[Split, list[doc.Row]] = {split: [] for split in lookup.splits}
    for split, score in lookup.split_score_pairs():
        value_by_column = dict(split)
        cells: list[doc.Cell] = [value_by_column.get(column, "") for column in split_columns]
        cells.append(score)
        cells += [
            formats[name].cell(lookup.results.get((split, score, name))) for name in lookup.metrics
        ]
        rows_by_split[split].append(doc.Row(tuple(cells)))
    if split_columns and len(lookup.scores) > 1:
        groups = tuple(doc.TableRows(tuple(rows)) for rows in rows_by_split.values())
    else:
        groups = (doc.TableRows(tuple(chain.from_iterable(rows_by_split.values()))),)
    return doc.Table(tuple(columns), groups, alternative=tuple(explained_tables(lookup)))


def explained_tables(lookup: ResultLookup) -> Iterator[doc.Table]:
    """Yield a table for each split, with all metrics and their explanations."""
    level = lookup.level
    columns = (
        doc.Column("Metric", blank_repeats=True),
        doc.Column("Score"),
        doc.Column(f"Value, {level} interval" if level else "Value", "number"),
        doc.Column("Explanation", "words", blank_repeats=True),
    )
    has_single_score = len(lookup.scores) == 1
    for split in lookup.splits:
        rows = []
        for result in _ordered_results(lookup, split):
            label = doc.Label(capitalize_first(result.metric.title), _direction(result))
            number = number_with_interval(result, lookup)
            # The explanation of a single score contains its value.
            explanation = (
                result_meaning(result) if has_single_score else metric_meaning(result.metric)
            )
            rows.append((label, result.score, number, explanation))
        title = split_name(split) if split or lookup.has_several_splits else ""
        yield doc.Table(columns, doc.single_group(rows), title=title)


# --------------------------------------------------------------------------------------- a paper
def paper_table(
    evaluation: Evaluation,
    metrics: Sequence[str] | None,
    *,
    times_1000: bool = False,
    intervals: bool = False,
) -> Iterator[doc.Block]:
    """Yield a table of metrics by score for each split, followed by a footnote."""
    lookup = ResultLookup(evaluation)
    requested = lookup.metrics
    if metrics is not None:
        requested = [_check_metric(name, lookup) for name in metrics]
    printed_results: list[Result] = []
    for split in lookup.splits:
        rows = []
        for metric in requested:
            results = [lookup.results.get((split, score, metric)) for score in lookup.scores]
            available = [result for result in results if result is not None]
            if available:
                rows.append(_paper_row(metric, results, lookup, times_1000, intervals))
                printed_results += available
        yield doc.Table(
            (doc.Column("Metric"), *map(doc.number_column, lookup.scores)),
            doc.single_group(rows),
            caption=doc.Span(split_name(split), "strong") if lookup.has_several_splits else "",
            role="static",
        )
    footnote = " ".join(_footnote_sentences(printed_results, intervals=intervals))
    yield doc.Prose(footnote, "notes", role="static")


def _paper_row(
    metric: str,
    results: Sequence[Result | None],
    lookup: ResultLookup,
    times_1000: bool,
    intervals: bool,
) -> tuple[doc.Cell, ...]:
    """Return the row of a metric.

    Metrics that papers usually report times 1000 are multiplied by 1000.
    """
    scale = 1000 if times_1000 and is_printed_x1000(metric) else 1
    to_number = number_with_interval if intervals else number_without_interval
    cells = [to_number(result, lookup) for result in results]
    label = replace(_metric_label(metric, lookup, metric_title(metric)), scale=scale)
    return (label, *(cell and replace(cell, scale=scale) for cell in cells))


def _check_metric(name: str, lookup: ResultLookup) -> str:
    if name not in lookup.metrics:
        raise UnknownNameError(
            f"the evaluation has no metric {name!r}.{suggest(name, lookup.metrics)}"
        )
    return name


def _footnote_sentences(results: Sequence[Result], *, intervals: bool) -> list[str]:
    """Return the sentences of the footnote of a table for a paper."""
    sentences = [
        "Values are fractions; arrows point to better values; bold marks the best score.",
        "Tied samples are accepted or rejected together, so the order of rows does not matter.",
    ]
    convention_by_title = {}
    for result in results:
        convention = result.metric.identity.convention
        if convention:
            convention_by_title[capitalize_first(result.metric.title)] = convention
    if convention_by_title:
        conventions = [f"{title}: {text}" for title, text in convention_by_title.items()]
        sentences.append(f"Conventions: {'; '.join(conventions)}.")
    reasons = unique(result.reason for result in results if result.reason)
    if reasons:
        sentences.append(f"Undefined: {'; '.join(reasons)}.")
    if intervals:
        sentences += interval_footnotes(results)
    return sentences
