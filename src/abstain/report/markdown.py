"""A metrics x scores table in Markdown, for an issue, a README or a notebook."""

from collections.abc import Sequence

from abstain.evaluation.records import Evaluation, Result
from abstain.plots.visible import visible
from abstain.report.grid import Grid, conventions, grids, is_best
from abstain.report.interval_words import bracketed
from abstain.report.words import arrow, number, title_of
from abstain.tables import split_name
from abstain.typing import Split

# Characters that start something in Markdown, also inside a table cell.
_SPECIAL = "\\`*_{}[]<>()#+!|~$&"


def markdown_table(
    evaluation: Evaluation,
    *,
    metrics: Sequence[str] | None = None,
    intervals: bool = False,
) -> str:
    r"""Write metrics x scores, one table a split, the best score of each metric in bold.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned.
    metrics : sequence of str, optional
        The rows, by name; by default every metric that was computed.
    intervals : bool, default=False
        Behind each value its interval in brackets; the footnote names level and forms.

    Returns
    -------
    str
        Markdown with a trailing line of conventions. Names are escaped.

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
    >>> table = markdown_table(ab.evaluate(predictions), metrics=["augrc", "accuracy"])
    >>> print(table.split("\n\n")[0])
    | Metric | confidence |
    | --- | ---: |
    | AUGRC ↓ | 0.09375 |
    | Accuracy ↑ | 0.7500 |
    >>> told = markdown_table(ab.evaluate(predictions), metrics=["accuracy"], intervals=True)
    >>> print(told.split("\n")[2])
    | Accuracy ↑ | 0.7500 [0.3006, 0.9544] |
    """
    tables = grids(evaluation, metrics)
    parts = [_table(grid, len(tables) > 1, intervals) for grid in tables]
    notes = " ".join(conventions(tables, intervals=intervals))
    return "\n\n".join([*parts, escape(notes)]) + "\n"


def _table(grid: Grid, titled: bool, intervals: bool) -> str:
    head = ["Metric", *(escape(score) for score in grid.scores)]
    lines = [_row(head), _row(["---", *["---:"] * len(grid.scores)])]
    for metric, results in grid.rows:
        sample = next(r for r in results if r is not None)
        cells = [_cell(grid, result, intervals) for result in results]
        lines.append(_row([f"{escape(title_of(metric))} {arrow(sample)}", *cells]))
    title = [_heading(grid.split), ""] if titled else []
    return "\n".join(title + lines)


def _heading(split: Split) -> str:
    return f"**{escape(split_name(split))}**"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(grid: Grid, result: Result | None, intervals: bool) -> str:
    if result is None:
        return ""
    text = number(result.value)
    marked = f"**{text}**" if is_best(grid, result) else text
    return f"{marked} {bracketed(result)}".rstrip() if intervals else marked


def escape(words: str) -> str:
    r"""Escape what Markdown would read as markup; a line break becomes a space.

    Examples
    --------
    >>> print(escape("a|b*c"))
    a\|b\*c
    """
    flat = visible(" ".join(words.split()))
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in flat)
