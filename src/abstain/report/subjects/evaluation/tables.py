"""Tables of an evaluation for pages, terminals and papers."""

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
    """Return a result as a number with its interval, marked if it is the best score."""
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
    sample = next(r for r in lookup.results.values() if r.metric.name == name)
    direction = _direction(sample)
    return doc.Label(
        title, direction, short_text=narrow_title(name), tooltip=f"{direction} is better"
    )


def _direction(result: Result) -> Literal["lower", "higher"]:
    return "lower" if result.metric.lower_is_better else "higher"


# ---------------------------------------------------------------------------------------- a page
#: Maximum number of splits in a table of all scores that does not scroll sideways.
_MAX_SPLIT_COLUMNS: Final = 8


def all_scores_table(lookup: ResultLookup) -> doc.Table:
    """Return the key metric, with a row for each score and a column for each split."""
    key = lookup.key_metric
    results = [r for r in lookup.results.values() if r.metric.name == key]
    number_format = FixedFormat.of(results, is_binary=lookup.evaluation.is_binary)
    has_tests = lookup.evaluation.tests is not None
    names = {group[0]: _score_title(group[0], lookup) for group in lookup.rankings}
    has_names = any(title != score for score, title in names.items())
    best = lookup.best
    ranked = lookup.ranked_scores(best.split) if best else []
    rows = []
    for group in dict.fromkeys((*ranked, *lookup.rankings)):
        cells: list[doc.Cell] = [", ".join(group)]
        if has_names:
            cells.append(names[group[0]])
        for split in lookup.splits:
            result = lookup.results.get((split, group[0], key))
            reference = lookup.best_results.get(split)
            is_best = False
            if has_tests and result is not None and reference is not None:
                is_best = lookup.is_among_best(result, reference)
            cell = number_format.cell(result, is_best=is_best)
            cells.append(cell and replace(cell, small_text=""))
        rows.append(doc.Row(tuple(cells)))
    title = f"{metric_title(key)} by score and {lookup.split_noun}"
    is_lower_better = all(result.metric.lower_is_better for result in results)
    direction = "lower is better" if is_lower_better else "higher is better"
    return doc.Table(
        (
            doc.Column("Score", "name"),
            *([doc.Column("Name", "name")] if has_names else []),
            *(
                doc.number_column(doc.Label(lookup.split_labels[split], line=i))
                for i, split in enumerate(lookup.splits)
            ),
        ),
        doc.single_group(rows),
        title=title,
        caption=(title, doc.Span(f" {direction}", "small")),
        anchor="all-scores",
        layout="wide" if len(lookup.splits) > _MAX_SPLIT_COLUMNS else "names" if has_names else "",
        is_sortable=True,
    )


def _score_title(score: str, lookup: ResultLookup) -> str:
    return score_entries([score], lookup.evaluation.column_scores)[0].title


def calibration_table(lookup: ResultLookup, cases: Sequence[ScoreCurves]) -> doc.Table:
    """Return mean confidence, accuracy and calibration metrics of scores that are probabilities."""
    names = [name for name in _CALIBRATION_TITLES if name in lookup.metrics]
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
        for name in names:
            result = lookup.results.get((case.split, case.score, name))
            cell = number_without_interval(result, lookup)
            cells.append(cell and replace(cell, number_format="three_decimals", mark=""))
        rows.append(doc.Row(tuple(cells)))
    return doc.Table(
        (
            doc.Column(case_noun(lookup), "name"),
            doc.number_column("Mean probability"),
            doc.number_column("Accuracy"),
            *(doc.number_column(_metric_label(m, lookup, _CALIBRATION_TITLES[m])) for m in names),
        ),
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
    """Return the header of the column of `case_label`."""
    if not lookup.has_several_splits:
        return "Score"
    noun = lookup.split_noun
    return capitalize_first(noun) if noun in {"model", "split"} else noun


def metrics_table(lookup: ResultLookup) -> doc.Table:
    """Return all metrics with explanations, and with a column for each score."""
    level = lookup.level
    interval_note = f" small print: {level} intervals" if level else ""
    if lookup.has_several_splits:
        groups = tuple(_rows_by_split(lookup))
        first_column = doc.Column(case_noun(lookup), "name")
    else:
        split = lookup.splits[0] if lookup.splits else ()
        rows = (
            doc.Row((_explained_label(name, lookup), *_score_cells(split, name, lookup)))
            for name in lookup.metrics
        )
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
    """Yield the rows of each metric, with one row for each split."""
    for name in lookup.metrics:
        label = _explained_label(name, lookup)
        rows = tuple(
            doc.Row((lookup.split_labels[split], *_score_cells(split, name, lookup)))
            for split in lookup.splits
            if any((split, score, name) in lookup.results for score in lookup.scores)
        )
        yield doc.TableRows(rows, title=f"{label.text} {label.arrow} {label.note}")


def _explained_label(name: str, lookup: ResultLookup) -> doc.Label:
    """Return a metric with its explanation, which contains the value of a single result."""
    results = [result for result in lookup.results.values() if result.metric.name == name]
    metric = results[0].metric
    explanation = result_meaning(results[0]) if len(results) == 1 else metric_meaning(metric)
    convention = metric.identity.convention
    note = f"{explanation} Convention: {convention}." if convention else explanation
    return doc.Label(capitalize_first(metric.title), _direction(results[0]), note=note)


def _score_cells(split: Split, metric: str, lookup: ResultLookup) -> Iterator[doc.Cell]:
    """Yield the value of each score with its interval, accepted samples and ties.

    The cells are text, because exact values of many scores would make the page large.
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
    """Yield the texts below a value, such as its interval and its range for ties."""
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
    """Return the requested metrics, or tables with explanations if the table is too wide."""
    split_columns = unique(column for split in lookup.splits for column, _ in split)
    formats = {
        name: FixedFormat.of(
            (r for r in lookup.results.values() if r.metric.name == name),
            is_binary=lookup.evaluation.is_binary,
        )
        for name in lookup.metrics
    }
    rows: dict[Split, list[doc.Row]] = {split: [] for split in lookup.splits}
    for split, score in lookup.split_score_pairs():
        value_by_column = dict(split)
        split_cells = (value_by_column.get(column, "") for column in split_columns)
        cells = (
            formats[name].cell(lookup.results.get((split, score, name))) for name in lookup.metrics
        )
        rows[split].append(doc.Row((*split_cells, score, *cells)))
    columns = (
        *(doc.Column(column, "name", blank_repeats=True) for column in split_columns),
        doc.Column("Score", "name"),
        *(
            doc.number_column(_metric_label(name, lookup, short_title(name)))
            for name in lookup.metrics
        ),
    )
    if split_columns and len(lookup.scores) > 1:
        groups = tuple(doc.TableRows(tuple(split_rows)) for split_rows in rows.values())
    else:
        groups = (doc.TableRows(tuple(chain.from_iterable(rows.values()))),)
    return doc.Table(columns, groups, alternative=tuple(explained_tables(lookup)))


def explained_tables(lookup: ResultLookup) -> Iterator[doc.Table]:
    """Yield a table of all metrics with explanations for each split."""
    level = lookup.level
    for split in lookup.splits:
        rows = [
            (
                doc.Label(capitalize_first(result.metric.title), _direction(result)),
                result.score,
                number_with_interval(result, lookup),
                result_meaning(result)
                if len(lookup.scores) == 1
                else metric_meaning(result.metric),
            )
            for result in _ordered_results(lookup, split)
        ]
        yield doc.Table(
            (
                doc.Column("Metric", blank_repeats=True),
                doc.Column("Score"),
                doc.Column(f"Value, {level} interval" if level else "Value", "number"),
                doc.Column("Explanation", "words", blank_repeats=True),
            ),
            doc.single_group(rows),
            title=split_name(split) if split or lookup.has_several_splits else "",
        )


# --------------------------------------------------------------------------------------- a paper
def paper_table(
    evaluation: Evaluation,
    metrics: Sequence[str] | None,
    *,
    times_1000: bool = False,
    intervals: bool = False,
) -> Iterator[doc.Block]:
    """Yield a table of metrics by scores for each split, and a footnote."""
    lookup = ResultLookup(evaluation)
    requested = (
        lookup.metrics if metrics is None else [_check_metric(name, lookup) for name in metrics]
    )
    printed = []
    for split in lookup.splits:
        rows = {m: [lookup.results.get((split, s, m)) for s in lookup.scores] for m in requested}
        rows_with_results = {m: results for m, results in rows.items() if any(results)}
        printed += [r for results in rows_with_results.values() for r in results if r is not None]
        yield doc.Table(
            (doc.Column("Metric"), *map(doc.number_column, lookup.scores)),
            doc.single_group(
                _paper_row(m, results, lookup, times_1000, intervals)
                for m, results in rows_with_results.items()
            ),
            caption=doc.Span(split_name(split), "strong") if lookup.has_several_splits else "",
            role="static",
        )
    yield doc.Prose(
        " ".join(_footnote_sentences(printed, intervals=intervals)), "notes", role="static"
    )


def _paper_row(
    metric: str,
    results: Sequence[Result | None],
    lookup: ResultLookup,
    times_1000: bool,
    intervals: bool,
) -> tuple[doc.Cell, ...]:
    """Return the row of a metric, multiplied by 1000 where this is customary."""
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
    """Return the sentences of the footnote."""
    conventions = {
        capitalize_first(r.metric.title): r.metric.identity.convention
        for r in results
        if r.metric.identity.convention
    }
    sentences = [
        "Values are fractions; arrows point to better values; bold marks the best score.",
        "Tied samples are accepted or rejected together, so the order of rows does not matter.",
    ]
    if conventions:
        items = "; ".join(f"{title}: {convention}" for title, convention in conventions.items())
        sentences.append(f"Conventions: {items}.")
    reasons = unique(r.reason for r in results if r.reason)
    if reasons:
        sentences.append(f"Undefined: {'; '.join(reasons)}.")
    return [*sentences, *interval_footnotes(results)] if intervals else sentences
