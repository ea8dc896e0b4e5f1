"""A metrics x scores table in LaTeX, for a paper."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from abstain.evaluation.records import Evaluation, Result
from abstain.plots.visible import visible
from abstain.report.grid import Grid, conventions, grids, is_best
from abstain.report.interval_words import bracketed
from abstain.report.words import number, printed_x1000, thousandfold, title_of
from abstain.tables import split_name

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",  # \textquotedbl needs a font encoding that is not the default
    "\u2193": r"$\downarrow$",
    "\u2191": r"$\uparrow$",
    "\u202f": r"\,",
}


def latex_table(
    evaluation: Evaluation,
    *,
    metrics: Sequence[str] | None = None,
    thousand: bool = False,
    intervals: bool = False,
) -> str:
    r"""Write metrics x scores with the best score of each metric in bold.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned.
    metrics : sequence of str, optional
        The rows, by name; by default every metric that was computed.
    thousand : bool, default=False
        AURC and AUGRC times 1000, as the literature prints them; the row says so.
    intervals : bool, default=False
        Behind each value its interval in small brackets; the footnote names level and forms.

    Returns
    -------
    str
        A ``tabular`` (booktabs) with a footnote of conventions. Names are escaped.

    Raises
    ------
    InputError
        If `evaluation` is something else.
    UnknownNameError
        If the evaluation has no such metric.

    Examples
    --------
    >>> import abstain as ab
    >>> predictions = ab.Predictions(
    ...     prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence=[0.9, 0.8, 0.7, 0.6]
    ... )
    >>> table = latex_table(ab.evaluate(predictions), metrics=["augrc", "accuracy"])
    >>> print(table.split("\n\n")[1])
    \begin{tabular}{lr}
    \toprule
    Metric & confidence \\
    \midrule
    AUGRC $\downarrow$ & 0.09375 \\
    Accuracy $\uparrow$ & 0.7500 \\
    \bottomrule
    \end{tabular}
    """
    tables = grids(evaluation, metrics)
    shown = _Shown(thousand, intervals)
    parts = [_table(grid, shown, titled=len(tables) > 1) for grid in tables]
    notes = escape(" ".join(conventions(tables, intervals=intervals)))
    return (
        "\n\n".join(["% Needs \\usepackage{booktabs}", *parts, rf"{{\footnotesize {notes}}}"])
        + "\n"
    )


class _Shown(NamedTuple):
    """What the cells print."""

    thousand: bool
    intervals: bool


def _table(grid: Grid, shown: _Shown, *, titled: bool) -> str:
    heads = " & ".join(["Metric", *(escape(score) for score in grid.scores)])
    lines = [rf"\begin{{tabular}}{{l{'r' * len(grid.scores)}}}", r"\toprule"]
    if titled:
        label = escape(split_name(grid.split))
        lines += [rf"\multicolumn{{{len(grid.scores) + 1}}}{{l}}{{{label}}} \\", r"\midrule"]
    lines += [rf"{heads} \\", r"\midrule"]
    lines += [_row(grid, metric, results, shown) for metric, results in grid.rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _row(grid: Grid, metric: str, results: list[Result | None], shown: _Shown) -> str:
    sample = next(r for r in results if r is not None)
    scaled = shown.thousand and printed_x1000(metric)
    arrow = r"$\downarrow$" if sample.lower_is_better else r"$\uparrow$"
    unit = r" $\times 10^3$" if scaled else ""
    cells = [_cell(grid, result, scaled, shown.intervals) for result in results]
    return rf"{escape(title_of(metric))}{unit} {arrow} & {' & '.join(cells)} \\"


def _cell(grid: Grid, result: Result | None, scaled: bool, intervals: bool) -> str:
    if result is None:
        return "--"
    text = thousandfold(result.value) if scaled else number(result.value)
    marked = rf"\textbf{{{text}}}" if is_best(grid, result) else text
    interval = bracketed(result, times=1000 if scaled else 1) if intervals else ""
    return rf"{marked} {{\scriptsize {interval}}}" if interval else marked


def escape(words: str) -> str:
    r"""Escape what LaTeX would read as a command; a line break becomes a space.

    Examples
    --------
    >>> print(escape("50 % of a_b"))
    50 \% of a\_b
    """
    # split() would take the thin space between thousands for a break.
    flat = visible(re.sub(r"[ \t\r\n]+", " ", words))
    return "".join(_SPECIAL.get(c, c) for c in flat)
