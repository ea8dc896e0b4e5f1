"""Methods x studies in Markdown."""

from abstain.benchmark.results import BenchmarkResults
from abstain.report.benchmark_grid import Entry, footnote, grid_of, mean_ranks
from abstain.report.benchmark_latex import metric_of_results
from abstain.report.benchmark_tables import arm_title, grid_head, mean_said
from abstain.report.markdown import escape

_TIE = "†"


def benchmark_markdown(
    results: BenchmarkResults, metric: str | None = None, *, intervals: bool = False
) -> str:
    """Write one metric as a table: studies as columns, methods as rows grouped by training.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.
    metric : str, optional
        By default AUGRC, or else the first that was computed.
    intervals : bool, default=False
        Write the interval behind each value.

    Returns
    -------
    str
        Markdown with a trailing line that explains the marks. Names are escaped.

    Raises
    ------
    InputError
        If `results` is something else.
    UnknownNameError
        If the benchmark has no such metric.

    Examples
    --------
    >>> from abstain.report.benchmark_markdown import benchmark_markdown
    >>> benchmark_markdown({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    name = metric_of_results(results, metric)
    grid, means = grid_of(results, name), mean_ranks(results, name)
    last = ["Mean rank"] if means else []
    width = len(grid.studies) + len(last)
    heads = [grid_head(grid), *(study.title for study in grid.studies), *last]
    lines = [_row([escape(head) for head in heads]), _row(["---", *["---:"] * width])]
    for arm, rows in grid.groups:
        lines.append(_row([f"*{escape(arm_title(arm))}*", *[""] * width]))
        for row in rows:
            cells = [_cell(entry, intervals) for entry in row.entries]
            cells += [mean_said(means.get(row.method.name, float("nan")))] * len(last)
            lines.append(_row([escape(row.method.name), *cells]))
    level = results.comparisons[name].level
    notes = escape(" ".join(footnote(grid, level, intervals=intervals, ranked=bool(means))))
    return "\n".join(lines) + "\n\n" + notes.replace(escape("{tie}"), _TIE) + "\n"


def _cell(entry: Entry | None, intervals: bool) -> str:
    if entry is None:
        return "–"
    text = f"**{entry.text}**" if entry.stands == "best" else entry.text
    text += _TIE if entry.stands == "not told apart" else ""
    if not (intervals and entry.interval):
        return text
    return f"{text} \\[{entry.interval.replace(' to ', ', ')}\\]"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
