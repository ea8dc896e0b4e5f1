"""A benchmark as a summary for a terminal of 60 columns or more."""

import math
from typing import TYPE_CHECKING, Final

from abstain.benchmark.results import BenchmarkResults
from abstain.plots import chosen
from abstain.report._terminal_parts import empty_table, text
from abstain.report.benchmark_grid import (
    NONE,
    Entry,
    Grid,
    baseline,
    checked_results,
    grid_of,
    mean_ranks,
    ranking_metrics,
)
from abstain.report.benchmark_tables import grid_head, mean_said
from abstain.report.benchmark_verdict import benchmark_verdict, is_tested
from abstain.report.terminal import findings_said
from abstain.report.words import short_title

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

#: Rows of the table of ranks; the files have all of them.
_MOST: Final = 8


def benchmark_terminal(results: BenchmarkResults) -> "RenderableType":
    """Lay the main results of a benchmark out for a terminal.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.

    Returns
    -------
    rich renderable
        The verdict, the leaders of each study, and the best methods over all studies; print it
        with a `rich.console.Console` of at least 60 columns.

    Raises
    ------
    InputError
        If `results` is something else.

    Notes
    -----
    Names are printed as they are: no markup is read from them, and control characters are
    written out.

    Examples
    --------
    >>> from abstain.report.benchmark_terminal import benchmark_terminal
    >>> benchmark_terminal({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    from rich.console import Group

    known = checked_results(results)
    body: list[RenderableType] = [text(said) for said in benchmark_verdict(known)]
    metrics = ranking_metrics(known)
    if metrics:
        grid = grid_of(known, metrics[0])
        body += [text(""), _leaders(grid, baseline(known)), text("")]
        if mean_ranks(known, metrics[0]):
            body += [_overall(known, metrics, grid), *_rest(known), text("")]
        body.append(text(_notes(grid, known.comparisons[metrics[0]].level), "dim"))
    if known.left_out:
        names = ", ".join(known.left_out)
        body += [text(f"Left out, see the report: {names}.", "dim")]
    body += [text(""), *findings_said(known.findings, everything=False)]
    return Group(*body)


def _rest(results: BenchmarkResults) -> "list[Text]":
    more = len(results.methods) - _MOST
    return [text(f"{more} more methods in the report", "dim")] if more > 0 else []


def _notes(grid: Grid, level: float) -> str:
    unit = "times 1000" if grid.kilo else "fractions"
    alpha = chosen.percent(round(1 - level, 10))
    return (
        f"Values are {unit}; ≈ and Alike: cannot be told from the best at {alpha}; the level "
        "holds for all pairs of a study together."
    )


def _leaders(grid: Grid, base: str) -> "Table":
    """Return one row a study: its leader, who is not told from it, and the baseline."""
    table = empty_table(grid_head(grid))
    table.add_column("Study", overflow="fold")
    table.add_column("Best", overflow="fold")
    table.add_column("Value", justify="right", no_wrap=True)
    table.add_column("Alike", justify="right", no_wrap=True)
    table.add_column("Baseline", justify="right", no_wrap=True)
    for i, study in enumerate(grid.studies):
        best, entries = grid.standing(i), grid.of(study)
        top = entries[best[0]].text if best else NONE
        table.add_row(
            text(study.title),
            text(", ".join(best) or NONE, "bold"),
            text(top),
            text(str(len(grid.standing(i, "not told apart"))) if is_tested(grid, i) else NONE),
            _marked(entries.get(base)),
        )
    return table


def _overall(results: BenchmarkResults, metrics: list[str], grid: Grid) -> "Table":
    """Return the methods with the best mean ranks, and in how many studies each is best."""
    table = empty_table("The best mean ranks over all studies")
    table.add_column("Method", overflow="fold")
    for metric in metrics:
        table.add_column(f"Rank by {short_title(metric)}", justify="right")
    table.add_column("Best in", justify="right", no_wrap=True)
    table.add_column("Alike in", justify="right", no_wrap=True)
    means = {metric: mean_ranks(results, metric) for metric in metrics}
    lines = {line.method.name: line for line in grid.lines}
    for name in list(means[metrics[0]])[:_MOST]:
        stands = [entry.stands for entry in lines[name].entries if entry]
        ranks = [mean_said(means[metric].get(name, math.nan)) for metric in metrics]
        counts = [str(stands.count(kind)) for kind in ("best", "not told apart")]
        table.add_row(text(name), *(text(cell) for cell in [*ranks, *counts]))
    return table


def _marked(entry: Entry | None) -> "Text":
    if entry is None:
        return text(NONE, "dim")
    tie = " ≈" if entry.stands == "not told apart" else ""
    return text(f"{entry.text}{tie}", "bold" if entry.stands == "best" else "")
