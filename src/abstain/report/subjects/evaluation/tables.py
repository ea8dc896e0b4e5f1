"""Tables of an evaluation: overview, all metrics, terminal and paper."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, Literal

from abstain.errors import UnknownNameError, suggest
from abstain.evaluation.records import Evaluation, Result
from abstain.plots.formatting import capitalize_first, metric_title
from abstain.report import document as doc
from abstain.report.formatting import (
    format_count,
    format_interval,
    format_number,
    is_printed_x1000,
    narrow_title,
    result_meaning,
    short_title,
    unique,
)
from abstain.report.subjects.evaluation.lookup import (
    ResultLookup,
    interval_footnotes,
    interval_note,
)
from abstain.tables import split_name
from abstain.typing import Split

#: Maximum number of metrics with intervals in a terminal.
_MAX_INTERVAL_METRICS: Final = 3

#: Number of rows of the overview that are visible without scrolling.
_MAX_ROWS_WITHOUT_SCROLLING: Final = 8


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
def overview_table(lookup: ResultLookup) -> doc.Table:
    """Return the headline metrics for each split and score."""
    rows = [
        doc.Row(
            (
                *([split_name(split)] if lookup.has_several_splits else []),
                score,
                *(
                    number_with_interval(lookup.results.get((split, score, m)), lookup)
                    for m in lookup.headline_metrics
                ),
            ),
            tags={"score": str(lookup.score_index[score])},
        )
        for split, score in lookup.split_score_pairs()
    ]
    scroll_hint = (
        f" (scroll to see all {len(rows)} rows)" if len(rows) > _MAX_ROWS_WITHOUT_SCROLLING else ""
    )
    row_noun = "split and score" if lookup.has_several_splits else "score"
    return doc.Table(
        (
            *([doc.Column("Split", "name")] if lookup.has_several_splits else []),
            doc.Column("Score", "name", is_row_header=True),
            *(
                doc.Column(_metric_label(m, lookup, short_title(m)), "number")
                for m in lookup.headline_metrics
            ),
        ),
        doc.single_group(rows),
        title="Headline metrics",
        caption=f"Headline metrics, one row for each {row_noun}{scroll_hint}",
        anchor="glance",
        layout="glance",
        is_sortable=True,
    )


def all_metrics(lookup: ResultLookup) -> Iterator[doc.Block]:
    """Yield the controls and the table of all metrics with explanations."""
    families = unique(r.metric.identity.family for r in lookup.results.values())
    options = [doc.Option("headline", "headline metrics"), doc.Option("", "all metrics")]
    options += [doc.Option(_family_key(family), family) for family in families]
    family = doc.Choice("family", "Show", tuple(options), selected="headline")
    yield doc.Controls((family, doc.SearchField("every", "numbers")))
    level = lookup.level
    interval_note = f"; small print: {level} interval" if level else ""
    split_note = "; selected split" if lookup.has_several_splits else ""
    yield doc.Table(
        (
            doc.Column("Metric"),
            doc.Column("Score", "name"),
            doc.number_column("Value"),
            doc.Column("Explanation", "words"),
            doc.number_column("Samples"),
            doc.number_column("Failures"),
        ),
        tuple(
            doc.TableRows(
                tuple(_explained_row(r, lookup) for r in _ordered_results(lookup, split)),
                tags={"split": str(i)},
            )
            for i, split in enumerate(lookup.splits)
        ),
        title="All metrics with explanations",
        caption=f"All metrics for each score{interval_note}{split_note}",
        anchor="every",
        layout="cards",
        is_sortable=True,
    )


def _family_key(family: str) -> str:
    return family.replace(" ", "-")


def _ordered_results(lookup: ResultLookup, split: Split) -> list[Result]:
    """Return the results of one split, sorted by metric and then by score."""
    keys = [(split, score, metric) for metric in lookup.metrics for score in lookup.scores]
    return [lookup.results[key] for key in keys if key in lookup.results]


def _explained_row(result: Result, lookup: ResultLookup) -> doc.Row:
    ties = format_interval(result.tie_low, result.tie_high)
    depends_on_ties = ties and format_number(result.tie_low) != format_number(result.tie_high)
    number = number_with_interval(result, lookup)
    tie_range = f"{ties} over all orders of tied samples" if depends_on_ties else ""
    n_accepted = result.n if result.accepted is None else result.accepted
    samples = doc.Number(n_accepted, number_format="count")
    if result.accepted is not None:
        samples = replace(
            samples, display_text=f"{format_count(n_accepted)} of {format_count(result.n)}"
        )
    note = interval_note(result)
    cells: tuple[doc.Cell, ...] = (
        doc.Label(
            capitalize_first(result.metric.title),
            _direction(result),
            note=result.metric.identity.convention,
        ),
        result.score,
        number and replace(number, tooltip="", small_text=tie_range),
        (result_meaning(result), *([doc.Span(note, "small")] if note else [])),
        samples,
        doc.Number(result.failures, number_format="count"),
    )
    headline = " headline" if result.metric.name in lookup.headline_metrics else ""
    tags = {
        "score": str(lookup.score_index[result.score]),
        "family": f"{_family_key(result.metric.identity.family)}{headline}",
    }
    return doc.Row(cells, tags=tags)


# ------------------------------------------------------------------------------------ a terminal
def headline_table(lookup: ResultLookup, *, keep_all: bool) -> doc.Table:
    """Return the headline metrics; with `keep_all`, a narrow terminal omits none of them."""
    columns = [
        doc.Column(_metric_label(m, lookup, short_title(m)), "number", is_droppable=True)
        for m in lookup.headline_metrics
    ]
    cells = {
        pair: [
            number_without_interval(lookup.results.get((*pair, m)), lookup)
            for m in lookup.headline_metrics
        ]
        for pair in lookup.split_score_pairs()
    }
    table = _table_by_split(lookup, columns, cells)
    if keep_all:
        return replace(table, alternative=tuple(explained_tables(lookup)))
    return table


def number_without_interval(result: Result | None, lookup: ResultLookup) -> doc.Number | None:
    """Return a result as a number without its interval."""
    number = number_with_interval(result, lookup)
    return number and replace(number, low=doc.NAN, high=doc.NAN)


def interval_tables(lookup: ResultLookup) -> Iterator[doc.Table]:
    """Yield the confidence intervals of some headline metrics; nothing without intervals."""
    with_interval = {r.metric.name for r in lookup.results.values() if r.interval.exists}
    candidates = dict.fromkeys([*lookup.headline_metrics, *lookup.metrics])
    names = [name for name in candidates if name in with_interval][:_MAX_INTERVAL_METRICS]
    if not names:
        return
    level = lookup.level
    columns = [
        doc.Column(replace(_metric_label(m, lookup, short_title(m)), short_text=""), "number")
        for m in names
    ]
    cells = {
        pair: [_interval_range(lookup.results.get((*pair, m))) for m in names]
        for pair in lookup.split_score_pairs()
    }
    title = f"{level} confidence intervals"
    yield replace(_table_by_split(lookup, columns, cells), title=title)


def _interval_range(result: Result | None) -> doc.Range | None:
    return None if result is None else doc.Range(result.interval.low, result.interval.high)


def _table_by_split(
    lookup: ResultLookup,
    columns: Sequence[doc.Column],
    cells: Mapping[tuple[Split, str], Sequence[doc.Cell]],
) -> doc.Table:
    """Return a table with a row for each split and score, and columns that identify the split."""
    split_columns = unique(column for split in lookup.splits for column, _ in split)
    rows: dict[Split, list[doc.Row]] = {split: [] for split in lookup.splits}
    for (split, score), metric_cells in cells.items():
        value_by_column = dict(split)
        split_cells = (value_by_column.get(column, "") for column in split_columns)
        rows[split].append(doc.Row((*split_cells, score, *metric_cells)))
    if split_columns and len(lookup.scores) > 1:
        groups = tuple(doc.TableRows(tuple(split_rows)) for split_rows in rows.values())
    else:
        groups = (doc.TableRows(tuple(chain.from_iterable(rows.values()))),)
    leading_columns = [doc.Column(column, "name", blank_repeats=True) for column in split_columns]
    return doc.Table((*leading_columns, doc.Column("Score", "name"), *columns), groups)


def explained_tables(lookup: ResultLookup) -> Iterator[doc.Table]:
    """Yield a table of all metrics with explanations for each split."""
    level = lookup.level
    for split in lookup.splits:
        rows = [
            (
                doc.Label(capitalize_first(result.metric.title), _direction(result)),
                result.score,
                number_with_interval(result, lookup),
                result_meaning(result),
            )
            for result in _ordered_results(lookup, split)
        ]
        yield doc.Table(
            (
                doc.Column("Metric", blank_repeats=True),
                doc.Column("Score"),
                doc.Column(f"Value, {level} interval" if level else "Value", "number"),
                doc.Column("Explanation", "words"),
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
    """Yield a table with a row per metric and a column per score for each split, and a footnote."""
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
