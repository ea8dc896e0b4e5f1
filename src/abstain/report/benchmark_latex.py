"""Methods x studies in LaTeX, in the layout of the papers."""

import itertools
from typing import Final

from abstain.benchmark.results import BenchmarkResults
from abstain.errors import UnknownNameError, suggest
from abstain.report.benchmark_grid import (
    NONE,
    Entry,
    Grid,
    checked_results,
    footnote,
    grid_of,
    mean_ranks,
    ranking_metrics,
)
from abstain.report.benchmark_tables import arm_title, kind_title, mean_said, shade_of
from abstain.report.latex import escape

_TIE: Final = r"\textsuperscript{\dag}"
#: Columns that a page upright has room for.
_WIDE: Final = 8
#: How strong the color of a cell is, in percent.
_STRENGTH: Final = {"r0": 45, "r1": 34, "r2": 24, "r3": 15, "r4": 8}


def benchmark_latex(
    results: BenchmarkResults,
    metric: str | None = None,
    *,
    intervals: bool = False,
    shades: bool = False,
) -> str:
    r"""Write one metric as a table: studies as columns, methods as rows grouped by training.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.
    metric : str, optional
        By default AUGRC, or else the first that was computed.
    intervals : bool, default=False
        Write the interval behind each value.
    shades : bool, default=False
        Color the cells by rank; needs ``\usepackage[table]{xcolor}``.

    Returns
    -------
    str
        A ``tabular`` (booktabs) with a footnote that explains the marks. Names are escaped.

    Raises
    ------
    InputError
        If `results` is something else.
    UnknownNameError
        If the benchmark has no such metric.

    Examples
    --------
    >>> from abstain.report.benchmark_latex import benchmark_latex
    >>> benchmark_latex({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    name = metric_of_results(results, metric)
    grid, means = grid_of(results, name), mean_ranks(results, name)
    width = len(grid.studies) + 1 + bool(means)
    lines = [rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}", r"\toprule", *_heads(grid, means)]
    for arm, rows in grid.groups:
        title = escape(arm_title(arm))
        lines += [r"\midrule", rf"\multicolumn{{{width}}}{{l}}{{\emph{{{title}}}}} \\"]
        for row in rows:
            cells = [_cell(entry, intervals, shades) for entry in row.entries]
            own = means.get(row.method.name)
            cells += [mean_said(own).replace(NONE, "--") if own is not None else "--"] * bool(means)
            lines.append(" & ".join([escape(row.method.name), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    level = results.comparisons[name].level
    notes = escape(" ".join(footnote(grid, level, intervals=intervals, ranked=bool(means))))
    notes = notes.replace(escape("{tie}"), _TIE)
    needs = r"\usepackage{booktabs}" + (r" \usepackage[table]{xcolor}" if shades else "")
    head = f"% {_title(grid)}. Needs {needs}"
    if width > _WIDE:
        head += "\n% Wide: \\resizebox{\\linewidth}{!}{...} around the tabular, or a sideways page."
    return "\n\n".join([head, "\n".join(lines), rf"{{\footnotesize {notes}}}"]) + "\n"


def metric_of_results(results: BenchmarkResults, metric: str | None) -> str:
    """Return a metric of the results, by default the one that ranks first."""
    known = checked_results(results)
    if metric is None:
        return ranking_metrics(known)[0]
    if metric not in known.comparisons:
        hint = suggest(str(metric), known.comparisons)
        msg = f"`metric`: the benchmark has no metric {metric!r}.{hint}"
        raise UnknownNameError(msg)
    return metric


def _title(grid: Grid) -> str:
    arrow = r"$\downarrow$" if grid.arrow == "\u2193" else r"$\uparrow$"
    unit = r" $\times 10^3$" if grid.kilo else ""
    return f"{escape(grid.title)}{unit} {arrow}"


def _heads(grid: Grid, means: dict[str, float]) -> list[str]:
    spans = [
        rf"\multicolumn{{{size}}}{{c}}{{{escape(kind_title(kind))}}}" for kind, size in grid.spans
    ]
    ends = list(itertools.accumulate((size for _, size in grid.spans), initial=1))
    rules = [rf"\cmidrule(lr){{{a + 1}-{b}}}" for a, b in itertools.pairwise(ends)]
    last = ["Mean rank"] if means else []
    studies = [_title(grid), *(escape(study.title) for study in grid.studies), *last]
    above = ["", *spans, *([""] if means else [])]
    return [" & ".join(above) + r" \\", "".join(rules), " & ".join(studies) + r" \\"]


def _cell(entry: Entry | None, intervals: bool, shades: bool) -> str:
    if entry is None:
        return "--"
    text = entry.text.replace(NONE, "--")
    marked = rf"\textbf{{{text}}}" if entry.stands == "best" else text
    marked += _TIE if entry.stands == "not told apart" else ""
    if intervals and entry.interval:
        marked += rf" {{\scriptsize [{entry.interval.replace(' to ', ', ')}]}}"
    shade = shade_of(entry) if shades else ""
    return rf"\cellcolor{{blue!{_STRENGTH[shade]}}}{marked}" if shade else marked
