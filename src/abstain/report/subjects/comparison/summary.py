"""Summary of a comparison for a terminal or a notebook."""

import math
from collections.abc import Iterator, Sequence

from abstain.evaluation.comparison import Comparison
from abstain.plots.formatting import format_percent
from abstain.report.document import Block, Prose, SeeAlso
from abstain.report.formatting import format_narrow_number, join_first
from abstain.report.subjects.comparison.metric_result import (
    MetricResult,
    metric_results,
)
from abstain.report.subjects.comparison.overall import independence_caution
from abstain.report.subjects.comparison.overview import Overview
from abstain.report.subjects.comparison.verdict import non_inferiority_lines

#: Maximum number of tables. With more tables, the summary has a line for each table.
_MAX_TABLES = 6

#: Maximum number of methods in a line.
_MAX_NAMES = 4


def summary_blocks(comparison: Comparison, *, is_complete: bool) -> Iterator[Block]:
    """Yield the main result, and a table or a line of text for each metric and data set."""
    results = list(metric_results(comparison))
    has_tables = is_complete or len(results) <= _MAX_TABLES
    caution = independence_caution(comparison)
    if caution:
        yield Prose(caution, "about")
    if has_tables:
        for result in results:
            overview = Overview(result)
            if overview.rows:
                yield from overview.summary_table(is_complete=is_complete)
    else:
        for result in results:
            yield Prose(_summary_line(result))
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
    yield Prose(_footnote(comparison, results if has_tables else []), "notes")


def _summary_line(result: MetricResult) -> str:
    """Return a line with the best methods and the methods that are not significantly worse."""
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


def _footnote(comparison: Comparison, tables: Sequence[MetricResult]) -> str:
    """Explain the intervals and the tests of the printed tables, or of lines without tables."""
    test = comparison.describe_tests()
    test_note = f" ({test})" if test else ""
    if not tables:
        return (
            f"In brackets: {format_percent(comparison.level)} intervals. Significance is based on "
            f"the {comparison.p_value_label}-value{test_note}. Values are fractions."
        )
    overviews = [overview for overview in map(Overview, tables) if overview.rows]
    notes = {overview.test_note(has_lines=False): None for overview in overviews}
    if len(notes) > 1:
        notes = {overview.test_note_of_tables(): None for overview in overviews}
    return " ".join((*notes, "Values are fractions."))
