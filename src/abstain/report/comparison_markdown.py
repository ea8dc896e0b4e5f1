"""Methods x (metric, data set) in Markdown, the best in bold and ties with it marked."""

from collections.abc import Sequence

from abstain.evaluation.comparison import Comparison
from abstain.report.comparison_grid import Column, columns_of, footnote, interval_in, value_in
from abstain.report.markdown import escape

_TIE = "†"


def comparison_markdown(
    comparison: Comparison,
    *,
    metrics: Sequence[str] | None = None,
    thousand: bool = False,
    intervals: bool = False,
) -> str:
    r"""Write methods x (metric, data set), the best in bold, ties within uncertainty marked.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    metrics : sequence of str, optional
        The columns, by name; by default every metric that was compared.
    thousand : bool, default=False
        AURC and AUGRC times 1000, as the literature prints them; the column says so.
    intervals : bool, default=False
        Write the interval behind each value.

    Returns
    -------
    str
        Markdown with a trailing line that explains the marks. Names are escaped.

    Raises
    ------
    InputError
        If `comparison` is something else.
    UnknownNameError
        If the comparison has no such metric.

    Examples
    --------
    >>> from abstain.evaluation.comparison import Comparison, Estimate
    >>> values = {"msr": 0.04, "p|e": 0.03}
    >>> estimates = tuple(
    ...     Estimate("augrc", (), "", name, v, v - 0.01, v + 0.01, 0.005, 0.95, "", 900, 80, True)
    ...     for name, v in values.items()
    ... )
    >>> two = Comparison(
    ...     ("augrc",), tuple(values), ((),), ("",), 0.95, estimates, (), (), (), (), (), (), (), ""
    ... )
    >>> print(comparison_markdown(two).split("\n\n")[0])
    | Method | AUGRC ↓ |
    | --- | ---: |
    | msr | 0.04000 |
    | p\|e | **0.03000** |
    """
    columns = columns_of(comparison, metrics, thousand=thousand)
    lines = [
        _row(["Method", *map(_head, columns)]),
        _row(["---", *["---:"] * len(columns)]),
        *(
            _row([escape(method), *(_cell(c, method, intervals) for c in columns)])
            for method in comparison.methods
        ),
    ]
    notes = escape(" ".join(footnote(comparison, columns, intervals=intervals)))
    return "\n".join(lines) + "\n\n" + notes.replace(escape("{tie}"), _TIE) + "\n"


def _head(column: Column) -> str:
    unit = " × 1000" if column.kilo else ""
    label = f", {column.label}" if column.label else ""
    return f"{escape(column.title + unit)} {column.arrow}{escape(label)}"


def _cell(column: Column, method: str, intervals: bool) -> str:
    text, stands = value_in(column, method), column.footing.get(method)
    marked = f"**{text}**" if stands == "best" else text
    marked += _TIE if stands == "not told apart" else ""
    return marked + (_bracketed(column, method) if intervals else "")


def _bracketed(column: Column, method: str) -> str:
    return interval_in(column, method).replace("[", "\\[").replace("]", "\\]")


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
