"""Tables for papers with a caption, in the files `table.tex` and `table.md`."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

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
    """Return the files with the table of a result, or an empty mapping if the table is empty."""
    if isinstance(result, Comparison):
        return table_files(*comparison_table(result), "comparison")
    return table_files(*evaluation_table(result), "evaluation")


def table_files(table: Table, caption: str, label: str, stem: str = "table") -> dict[str, bytes]:
    """Return a table with its caption as LaTeX and Markdown files, or an empty mapping."""
    if not table.rows:
        return {}
    return {
        f"{stem}.tex": latex.latex_float(table, caption, label).encode(),
        f"{stem}.md": markdown.markdown_blocks((table, Prose(caption))).encode(),
    }


# ------------------------------------------------------------------------------- a comparison
def comparison_table(comparison: Comparison) -> tuple[Table, str]:
    """Return the table and the caption of a comparison, with methods in order of rank.

    If there is one metric and one data set, the table also contains differences, p-values and
    ranks.
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
    rows = []
    for row in overview.rows:
        value = _value_text(overview, row, marks)
        interval = overview.interval_text(row)
        difference, p_value = overview.difference_texts(row)
        cells = (row.method, value, interval, difference, p_value, overview.rank_text(row))
        rows.append(Row(cells))
    return Table(columns, (TableRows(tuple(rows)),))


def _table_of_metrics(overviews: Sequence[Overview]) -> Table:
    """Return the table with a column of values for each metric and data set."""
    results = [overview.result for overview in overviews]
    headers: list[str | Label] = [result.label_with_direction for result in results]
    column_groups: tuple[tuple[Label, int], ...] = ()
    if any(result.data_name for result in results):
        headers = [result.data_name for result in results]
        label_by_metric = {result.metric: result.label_with_direction for result in results}
        n_columns = Counter(result.metric for result in results)
        column_groups = tuple((label_by_metric[name], n) for name, n in n_columns.items())
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
    """Return the text styles of the best and the second best methods."""
    values = {row.method: row.value for row in overview.rows}
    return mark_best_values(values, lower_is_better=overview.reference.lower_is_better)


def mark_best_values(values: Mapping[str, float], *, lower_is_better: bool) -> dict[str, str]:
    """Map the names with the best value to "strong", and those with the second best to "second".

    Values are rounded to 12 digits, because equal values may differ by rounding errors. If all
    values are equal, the result is empty.
    """
    rounded = {}
    for name, value in values.items():
        if not math.isnan(value):
            rounded[name] = float(f"{value:.12g}")
    best_first = sorted(set(rounded.values()), reverse=not lower_is_better)
    if len(best_first) < 2:
        return {}
    style_by_value = {best_first[0]: "strong", best_first[1]: "second"}
    return {
        name: style_by_value[value] for name, value in rounded.items() if value in style_by_value
    }


def _value_text(
    overview: Overview, row: SummaryRow, marks: Mapping[str, str], *, interval: str = ""
) -> Text:
    """Return the value of a method with a mark that states the result of its test.

    If a reference is specified, the mark means a significant difference from the reference.
    Otherwise, the mark means no significant difference from the best method.
    """
    if overview.is_specified:
        is_marked = row.conclusion.startswith("significantly")
    else:
        is_marked = row.conclusion == "not significantly different"
    dagger = "\u2020" if is_marked else ""
    return _styled(overview.value_text(row), marks.get(row.method, ""), dagger, interval)


def _styled(value: str, kind: str, dagger: str = "", interval: str = "") -> Text:
    """Return a value with its style, its mark and its interval as inline text."""
    spans: list[str | Span] = [value]
    if kind == "strong":
        spans = [Span(value, "strong")]
    elif kind == "second":
        spans = [Span(value, "second")]
    spans.append(dagger)
    if interval:
        spans += [" ", Span(f"({interval})", "small")]
    return tuple(spans)


def _comparison_caption(comparison: Comparison, overviews: Sequence[Overview]) -> str:
    """Return a caption that explains the intervals and the marks."""
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
    """Return the table of the main metrics by score and split, and its caption."""
    results_by_metric: dict[str, list[Result]] = {}
    for result in evaluation.results:
        results_by_metric.setdefault(result.metric.name, []).append(result)
    names = list(results_by_metric)
    metrics = (headline_metrics(names) or names)[:_MAX_METRICS]
    splits = list(dict.fromkeys(result.split for result in evaluation.results))
    scores = unique(result.score for result in evaluation.results)
    columns = [Column("Score", "name")]
    text_by_cell: dict[tuple[Split, str, str], Text] = {}
    for name in metrics:
        direction: Literal["lower", "higher"] = "higher"
        if results_by_metric[name][0].metric.lower_is_better:
            direction = "lower"
        columns.append(number_column(Label(short_title(name), direction)))
        for split in splits:
            column = [result for result in results_by_metric[name] if result.split == split]
            for score, text in _column_texts(column).items():
                text_by_cell[split, score, name] = text
    groups = []
    for split in splits:
        rows = []
        for score in scores:
            texts = [text_by_cell.get((split, score, name)) for name in metrics]
            if any(texts):
                rows.append(Row((score, *texts)))
        title = split_name(split) if len(splits) > 1 else ""
        groups.append(TableRows(tuple(rows), title=title))
    caption = _evaluation_caption(evaluation.results, metrics)
    return Table(tuple(columns), tuple(groups)), caption


def _column_texts(column: Sequence[Result]) -> dict[str, Text]:
    """Format the value of each score on one split, with the same number of decimals."""
    if not column:
        return {}
    values = {result.score: result.value for result in column}
    marks = mark_best_values(values, lower_is_better=column[0].metric.lower_is_better)
    decimals = decimals_of_intervals((r.interval.low, r.interval.high) for r in column)
    texts = {}
    for result in column:
        is_undefined = math.isnan(result.value)
        value = UNDEFINED if is_undefined else format_fixed(result.value, decimals)
        interval = format_fixed_interval(result.interval.low, result.interval.high, decimals)
        texts[result.score] = _styled(value, marks.get(result.score, ""), interval=interval)
    return texts


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
