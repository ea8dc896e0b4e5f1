"""Comparison of a benchmark with the published numbers for the same task."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from abstain.report import document as doc
from abstain.report.formatting import find_metric, format_count, is_printed_x1000, short_title
from abstain_bench.pages.benchmark.grids import TOP, back, wide_table
from abstain_bench.results import BenchmarkResults, PublishedNumber

_LEAD: Final = (
    "Published numbers for the common methods, studies and metrics. Ratio: this run divided by "
    "published. Ranks refer to the common methods; 1 is best, and equal numbers share the best "
    "rank. Tau: Kendall's tau of the two orders, 1 for equal and −1 for reversed orders. The "
    "findings above list the differences between the experiments."
)

#: Maximum number of rows of the numbers in a terminal.
_MAX_ROWS: Final = 12


def published_section(results: BenchmarkResults) -> Iterator[doc.Section]:
    """Yield the section with the published numbers, if there are any."""
    if not results.published:
        return
    first, *other_tables = numbers_tables(results)
    collapsed = [doc.Collapsible(table.title, (table,)) for table in other_tables]
    first_section = doc.Section("published-first", first.title, (first,), level=3)
    orders = [orders_table(results)] if results.published_orders else []
    blocks = (doc.Prose(_LEAD, "lead"), *orders, first_section, *collapsed, back(TOP))
    yield doc.Section(
        "published", "Comparison with published numbers", blocks, nav_title="Published"
    )


def published_summary(results: BenchmarkResults) -> Iterator[doc.Block]:
    """Yield the comparison of orders and some numbers of the first metric, for a terminal."""
    if results.published_orders:
        yield orders_table(results)
    if results.published:
        first = numbers_tables(results)[0]
        rows = first.rows
        yield replace(first, groups=doc.single_group(rows[:_MAX_ROWS]))
        if (n_more := len(rows) - _MAX_ROWS) > 0:
            yield doc.SeeAlso(f"{format_count(n_more)} more ", "in the report", "in the report")


def orders_table(results: BenchmarkResults) -> doc.Table:
    """Return Kendall's tau and the best methods for each metric and study."""
    titles = _titles(results)
    columns = (
        doc.Column("Metric", "name", blank_repeats=True),
        doc.Column("Study", "name"),
        *map(doc.number_column, ("Methods", "Tau")),
        *(
            doc.Column(head, "name", is_droppable=True)
            for head in ("Best in this run", "Best published")
        ),
        doc.Column("Published in", is_droppable=True),
    )
    rows = [
        (
            short_title(order.metric),
            titles.get(order.study, order.study),
            doc.Number(order.methods, number_format="count"),
            doc.Number(order.tau, number_format="two_decimals"),
            _join(order.best),
            _join(order.published_best),
            order.source,
        )
        for order in results.published_orders
    ]
    return wide_table("Order of the methods: this run and published", columns, rows)


def numbers_tables(results: BenchmarkResults) -> list[doc.Table]:
    """Return one table per metric with a row for each study and method."""
    titles = _titles(results)
    by_metric = itertools.groupby(results.published, key=lambda number: number.metric)
    return [_numbers_table(metric, tuple(numbers), titles) for metric, numbers in by_metric]


def _numbers_table(
    metric: str, numbers: Sequence[PublishedNumber], titles: Mapping[str, str]
) -> doc.Table:
    scale = 1000 if is_printed_x1000(metric) else 1
    known_metric = find_metric(metric)
    lower = known_metric is None or known_metric.lower_is_better
    label = doc.Label(short_title(metric), "lower" if lower else "higher", scale)
    columns = (
        doc.Column("Study", "name", blank_repeats=True),
        doc.Column("Method", "name"),
        *map(doc.number_column, ("This run", "Published", "Ratio", "Rank", "Published rank")),
    )
    rows = [
        (
            titles.get(number.study, number.study),
            number.method,
            doc.Number(number.value, scale=scale),
            doc.Number(number.published, scale=scale, tooltip=number.doubt),
            doc.Number(number.ratio, number_format="two_decimals"),
            doc.Number(number.rank, number_format="rank"),
            doc.Number(number.published_rank, number_format="rank"),
        )
        for number in numbers
    ]
    title = f"{label.text}{label.unit}\u00a0{label.arrow}: this run and published"
    source = " and ".join(dict.fromkeys(number.source for number in numbers))
    caption = f"{title} ({source}). Ranks among the common methods."
    return wide_table(title, columns, rows, caption)


def _titles(results: BenchmarkResults) -> dict[str, str]:
    return {study.name: study.title for study in results.studies}


def _join(methods: Iterable[str]) -> str:
    return ", ".join(methods)
