"""Tables for papers that `--out` writes: `table.tex` (a float with a caption) and `table.md`."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from abstain.evaluation.comparison import Comparison, SummaryRow
from abstain.evaluation.records import Evaluation, Result
from abstain.plots.formatting import capitalize_first, format_percent
from abstain.report.document import (
    METHOD_COLUMN,
    Cell,
    Column,
    Label,
    Prose,
    Row,
    Span,
    Table,
    TableRows,
    Text,
    number_column,
)
from abstain.report.formatting import (
    UNDEFINED,
    decimals_of_intervals,
    format_count,
    format_fixed,
    format_fixed_interval,
    headline_metrics,
    short_title,
    unique,
)
from abstain.report.render import latex, markdown
from abstain.report.subjects.comparison.metric_result import metric_results
from abstain.report.subjects.comparison.overview import Overview, quote
from abstain.tables import split_name
from abstain.typing import Split

#: Maximum number of metrics in the table of an evaluation.
_MAX_METRICS: Final = 5


def paper_files(result: Comparison | Evaluation) -> dict[str, bytes]:
    """Return the files of the table of a result, or no files for an empty table."""
    if isinstance(result, Comparison):
        return table_files(*comparison_table(result), "comparison")
    return table_files(*evaluation_table(result), "evaluation")


def table_files(table: Table, caption: str, label: str, stem: str = "table") -> dict[str, bytes]:
    """Return a table with its caption as LaTeX and as Markdown, or no files for an empty table."""
    if not table.rows:
        return {}
    return {
        f"{stem}.tex": latex.latex_float(table, caption, label).encode(),
        f"{stem}.md": markdown.markdown_blocks((table, Prose(caption))).encode(),
    }


# ------------------------------------------------------------------------------- a comparison
def comparison_table(comparison: Comparison) -> tuple[Table, str]:
    """Return the table and the caption of a comparison, with methods in order of rank.

    With one metric on one data set, the table also contains differences, p-values and ranks.
    """
    overviews = [o for o in map(Overview, metric_results(comparison)) if o.rows]
    if not overviews:
        return Table((METHOD_COLUMN,), ()), ""
    if len(overviews) == 1:
        table = _table_of_one_metric(overviews[0])
    else:
        table = _table_of_metrics(overviews)
    return table, _comparison_caption(comparison, overviews)


def _table_of_one_metric(overview: Overview) -> Table:
    """Return the table with values, differences, p-values and ranks for a single metric."""
    comparison = overview.result.comparison
    columns = (
        METHOD_COLUMN,
        number_column(overview.result.label_with_direction),
        number_column(f"{format_percent(comparison.level)} interval"),
        number_column("Difference"),
        number_column(capitalize_first(comparison.p_value_label)),
        number_column("Rank"),
    )
    marks = _marks(overview)
    rows = tuple(
        Row(
            (
                row.method,
                _value_text(overview, row, marks),
                overview.interval_text(row),
                *overview.difference_texts(row),
                overview.rank_text(row),
            )
        )
        for row in overview.rows
    )
    return Table(columns, (TableRows(rows),))


def _table_of_metrics(overviews: Sequence[Overview]) -> Table:
    """Return the table with a column of values for each metric and data set."""
    labels = [overview.result.label_with_direction for overview in overviews]
    headers: list[str | Label] = list(labels)
    column_groups: tuple[tuple[Label, int], ...] = ()
    if any(overview.result.data_name for overview in overviews):
        headers = [overview.result.data_name for overview in overviews]
        groups: dict[str, int] = {}
        for overview in overviews:
            groups[overview.result.metric] = groups.get(overview.result.metric, 0) + 1
        label_by_metric = {o.result.metric: o.result.label_with_direction for o in overviews}
        column_groups = tuple((label_by_metric[name], n) for name, n in groups.items())
    cells_by_method: dict[str, list[Cell]] = {
        row.method: [None] * len(overviews) for row in overviews[0].rows
    }
    for i, overview in enumerate(overviews):
        marks = _marks(overview)
        for row in overview.rows:
            text = _value_text(overview, row, marks, interval=overview.interval_text(row))
            cells_by_method[row.method][i] = text
    rows = tuple(Row((method, *cells)) for method, cells in cells_by_method.items())
    columns = (METHOD_COLUMN, *map(number_column, headers))
    return Table(columns, (TableRows(rows),), column_groups=column_groups)


def _marks(overview: Overview) -> dict[str, str]:
    """Return the marks of the best and second best methods."""
    values = {row.method: row.value for row in overview.rows}
    return mark_best_values(values, lower_is_better=overview.reference.lower_is_better)


def mark_best_values(values: Mapping[str, float], *, lower_is_better: bool) -> dict[str, str]:
    """Return the style "strong" for names with the best value and "second" for the next value.

    The function rounds values before the comparison, because equal values may differ in the last
    digits. If all values are equal, no name has a style.
    """
    rounded = {name: float(f"{v:.12g}") for name, v in values.items() if not math.isnan(v)}
    distinct = sorted(set(rounded.values()), reverse=not lower_is_better)
    if len(distinct) < 2:
        return {}
    kinds = dict(zip(distinct[:2], ("strong", "second"), strict=True))
    return {name: kinds[value] for name, value in rounded.items() if value in kinds}


def _value_text(
    overview: Overview, row: SummaryRow, marks: Mapping[str, str], *, interval: str = ""
) -> Text:
    """Return the value of a method with the mark of its test.

    The mark means a significant difference from a specified reference. Without a specified
    reference, the mark means no significant difference from the best method.
    """
    is_marked = (
        row.conclusion.startswith("significantly")
        if overview.is_specified
        else row.conclusion == "not significantly different"
    )
    dagger = "\u2020" if is_marked else ""
    return _styled(overview.value_text(row), marks.get(row.method, ""), dagger, interval)


def _styled(value: str, kind: str, dagger: str = "", interval: str = "") -> Text:
    """Return a value with its style, the mark of its test and its interval."""
    styled = {"strong": Span(value, "strong"), "second": Span(value, "second")}.get(kind, value)
    bounds = (" ", Span(f"({interval})", "small")) if interval else ()
    return (styled, dagger, *bounds)


def _comparison_caption(comparison: Comparison, overviews: Sequence[Overview]) -> str:
    """Return the caption, which explains the intervals and the marks of the tests."""
    first = overviews[0]
    titles = unique(overview.result.title for overview in overviews)
    level = format_percent(comparison.level)
    sizes = unique(format_count(e.n) for e in comparison.estimates)
    samples = f" on {sizes[0]} samples" if len(sizes) == 1 else ""
    lead = (
        f"{' and '.join(titles)} of {len(comparison.methods)} methods{samples} with {level} "
        "confidence intervals. Arrows point to better values; the best value is bold, the second "
        "best is underlined."
    )
    sentences = [lead]
    if not any(overview.reference.n_tests for overview in overviews):
        return lead
    alpha = format_percent(round(1 - comparison.level, 10))
    tests = unique(o.reference.test for o in overviews if o.reference.test)
    n_tests = format_count(first.reference.n_tests)
    adjustment = (
        f"{first.adjustment}, {n_tests} comparisons"
        if comparison.is_adjusted
        else "not adjusted for multiple comparisons"
    )
    test = f"paired test by {' and '.join(tests)} at {alpha}, {adjustment}"
    if first.is_specified:
        relation = f"significantly different from {quote(comparison.reference)}"
    else:
        relation = "not significantly different from the best method"
    sentences.append(f"\u2020: {relation} ({test}).")
    if len(overviews) == 1:
        reference = quote(first.reference.method)
        sentences.append(
            f"Differences are relative to {reference}. Ranks are those that the significant "
            "differences do not exclude."
        )
    return " ".join(sentences)


# ------------------------------------------------------------------------------ an evaluation
def evaluation_table(evaluation: Evaluation) -> tuple[Table, str]:
    """Return the table of the main metrics and the caption, with a row for each score and split."""
    results = {(r.split, r.score, r.metric.name): r for r in evaluation.results}
    names = unique(r.metric.name for r in evaluation.results)
    metrics = (headline_metrics(names) or names)[:_MAX_METRICS]
    splits = list(dict.fromkeys(r.split for r in evaluation.results))
    scores = unique(r.score for r in evaluation.results)
    columns = [Column("Score", "name")]
    text_by_cell: dict[tuple[Split, str, str], Text] = {}
    for name in metrics:
        lower = next(r.metric.lower_is_better for r in evaluation.results if r.metric.name == name)
        columns.append(number_column(Label(short_title(name), "lower" if lower else "higher")))
        for split in splits:
            column = {s: results[split, s, name] for s in scores if (split, s, name) in results}
            texts = _column_texts(column, lower_is_better=lower)
            text_by_cell |= {(split, score, name): text for score, text in texts.items()}
    groups = []
    for split in splits:
        cells = {s: [text_by_cell.get((split, s, name)) for name in metrics] for s in scores}
        rows = tuple(Row((score, *texts)) for score, texts in cells.items() if any(texts))
        groups.append(TableRows(rows, title=split_name(split) if len(splits) > 1 else ""))
    return Table(tuple(columns), tuple(groups)), _evaluation_caption(
        list(results.values()), metrics
    )


def _column_texts(column: Mapping[str, Result], *, lower_is_better: bool) -> Mapping[str, Text]:
    """Return the formatted values of a metric, which have the same number of decimals."""
    values = {name: result.value for name, result in column.items()}
    marks = mark_best_values(values, lower_is_better=lower_is_better)
    intervals = {name: (r.interval.low, r.interval.high) for name, r in column.items()}
    decimals = decimals_of_intervals(intervals.values())
    return {
        name: _styled(
            UNDEFINED if math.isnan(value) else format_fixed(value, decimals),
            marks.get(name, ""),
            interval=format_fixed_interval(*intervals[name], decimals),
        )
        for name, value in values.items()
    }


def _evaluation_caption(results: Sequence[Result], metrics: Sequence[str]) -> str:
    sizes = unique(format_count(r.n) for r in results)
    failures = unique(format_count(r.failures) for r in results)
    samples = f" on {sizes[0]} samples" if len(sizes) == 1 else ""
    if samples and len(failures) == 1:
        samples += f" with {failures[0]} failures"
    return " ".join(_evaluation_sentences(results, metrics, samples))


def _evaluation_sentences(
    results: Sequence[Result], metrics: Sequence[str], samples: str
) -> Iterator[str]:
    """Yield the sentences of the caption of the table of an evaluation."""
    levels = {r.interval.level for r in results if r.interval.exists}
    intervals = f" with {format_percent(levels.pop())} confidence intervals" if levels else ""
    titles = ", ".join(map(short_title, metrics))
    yield f"{titles} of confidence scores{samples}{intervals}."
    yield (
        "Values are fractions. Arrows point to better values; the best value is bold, the second "
        "best is underlined. Differences were not tested."
    )
