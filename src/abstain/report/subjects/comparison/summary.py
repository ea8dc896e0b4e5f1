"""The summary of a comparison, for a terminal or a notebook."""

import math
from collections.abc import Iterator

from abstain.evaluation.comparison import Comparison, Estimate
from abstain.plots.formatting import SIMULATION_ASSUMPTION, format_percent, ranks_note
from abstain.report.document import (
    METHOD_COLUMN,
    Block,
    Cell,
    Number,
    Prose,
    Range,
    SeeAlso,
    Table,
    number_column,
    single_group,
)
from abstain.report.formatting import format_narrow_number, join_first
from abstain.report.subjects.comparison.metric_result import MetricResult, metric_results
from abstain.report.subjects.comparison.overall import independence_caution
from abstain.report.subjects.comparison.verdict import non_inferiority_lines

#: With more tables, each is replaced by a line.
_MAX_TABLES = 6

#: Maximum number of methods in a line.
_MAX_NAMES = 4


def summary_blocks(comparison: Comparison, *, is_complete: bool) -> Iterator[Block]:
    """Yield the main results, and a table or a line for each metric and data set."""
    results = list(metric_results(comparison))
    has_tables = is_complete or len(results) <= _MAX_TABLES
    if caution := independence_caution(comparison):
        yield Prose(caution, "about")
    if has_tables:
        yield from map(_summary_table, results)
    else:
        yield from (Prose(_summary_line(result)) for result in results)
        command_line = "Pass --full to print a table for each line, or --out to write all tables."
        yield SeeAlso("", command_line, '.frame("standings") returns all numbers.')
    yield from map(Prose, non_inferiority_lines(results, is_short=not has_tables))
    if comparison.bootstrap:
        resamples_note = f"{comparison.bootstrap:,} bootstrap resamples."
        if all(pair.valid for pair in comparison.pairs):
            yield Prose(resamples_note, "notes")
        else:
            text = f"{resamples_note} The results of the test from the literature are "
            yield SeeAlso(text, "in the report only (--out).", "in .pairs.", "notes")
    yield Prose(_footnote(comparison, has_tables=has_tables), "notes")


def _summary_line(result: MetricResult) -> str:
    """Return the best methods and those that are not significantly different, in one line."""
    methods = [estimate.method for estimate in result.ranked]
    best = [m for m in methods if result.comparison_with_best[m] == "best"]
    tied = [m for m in methods if result.comparison_with_best[m] == "not told apart"]
    if not best:
        return f"{result.label}: no best method"
    top = result.ranked[0]
    line = f"{result.label}: best {join_first(best, _MAX_NAMES)} {format_narrow_number(top.value)}"
    if not math.isnan(top.low):
        line += f" [{format_narrow_number(top.low)}, {format_narrow_number(top.high)}]"
    if tied:
        line += f"; not significantly different: {join_first(tied, _MAX_NAMES)}"
    return line


def _summary_table(result: MetricResult) -> Table:
    level = format_percent(result.comparison.level)
    headers = ("Value", f"{level} interval", "Ranks", "p, best")
    title = ", ".join(filter(None, [result.title_with_arrow, result.data_name]))
    rows = (_row(result, estimate) for estimate in result.ranked)
    return Table((METHOD_COLUMN, *map(number_column, headers)), single_group(rows), title=title)


def _row(result: MetricResult, estimate: Estimate) -> tuple[Cell, ...]:
    method = estimate.method
    footing = result.comparison_with_best[method]
    pair = result.pair_with_best.get(method)
    standing = next((s for s in result.standings if s.method == method), None)
    p_value: Cell = ""
    if pair is not None and footing != "best":
        is_tied = footing == "not told apart"
        p_value = Number(pair.adjusted, number_format="p_value", mark="tie" if is_tied else "")
    ranks: Cell = ""
    if standing is not None:
        ranks = Range(standing.rank_low, standing.rank_high, number_format="rank")
    return (
        method,
        Number(estimate.value, mark="best" if footing == "best" else ""),
        Range(estimate.low, estimate.high),
        ranks,
        p_value,
    )


def _footnote(comparison: Comparison, *, has_tables: bool) -> str:
    test = comparison.describe_tests()
    test_note = f" ({test})" if test else ""
    level = format_percent(comparison.level)
    p_value = f"{comparison.p_value_label}-value"
    if not has_tables:
        return (
            f"In brackets: {level} intervals. Significance is based on the {p_value}{test_note}. "
            "Values are fractions."
        )
    return (
        f"Bold: best value. p, best: {p_value} of the difference to the best{test_note}; "
        f"≈ not significantly different. Ranks: {level} range in simulated studies of this size, "
        f"{SIMULATION_ASSUMPTION}; {ranks_note(is_adjusted=comparison.is_adjusted)}. "
        "Values are fractions."
    )
