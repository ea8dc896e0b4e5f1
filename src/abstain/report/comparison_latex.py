"""Methods x (metric, data set) in LaTeX, the best in bold and ties with it marked."""

import itertools
from collections.abc import Sequence

from abstain.evaluation.comparison import Comparison
from abstain.report.comparison_grid import Column, columns_of, footnote, interval_in, value_in
from abstain.report.latex import escape

_TIE = r"\textsuperscript{\dag}"


def comparison_latex(
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
        A ``tabular`` (booktabs) with a footnote that explains the marks. Names are escaped.

    Raises
    ------
    InputError
        If `comparison` is something else.
    UnknownNameError
        If the comparison has no such metric.

    Examples
    --------
    >>> from abstain.evaluation.comparison import Comparison, Estimate
    >>> values = {"msr": 0.04, "p_e": 0.03}
    >>> estimates = tuple(
    ...     Estimate("augrc", (), "", name, v, v - 0.01, v + 0.01, 0.005, 0.95, "", 900, 80, True)
    ...     for name, v in values.items()
    ... )
    >>> two = Comparison(
    ...     ("augrc",), tuple(values), ((),), ("",), 0.95, estimates, (), (), (), (), (), (), (), ""
    ... )
    >>> print(comparison_latex(two).split("\n\n")[1])
    \begin{tabular}{lr}
    \toprule
    Method & AUGRC $\downarrow$ \\
    \midrule
    msr & 0.04000 \\
    p\_e & \textbf{0.03000} \\
    \bottomrule
    \end{tabular}
    """
    columns = columns_of(comparison, metrics, thousand=thousand)
    lines = [
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        *_heads(columns),
        r"\midrule",
        *(_row(method, columns, intervals) for method in comparison.methods),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    notes = escape(" ".join(footnote(comparison, columns, intervals=intervals)))
    notes = notes.replace(escape("{tie}"), _TIE)
    parts = ["% Needs \\usepackage{booktabs}", "\n".join(lines), rf"{{\footnotesize {notes}}}"]
    return "\n\n".join(parts) + "\n"


def _heads(columns: list[Column]) -> list[str]:
    """Return one row of heads, or metrics over the data sets when there are several."""
    if not any(column.label for column in columns):
        return [" & ".join(["Method", *map(_head, columns)]) + r" \\"]
    groups = [list(group) for _, group in itertools.groupby(columns, _head)]
    spans = [rf"\multicolumn{{{len(g)}}}{{c}}{{{_head(g[0])}}}" for g in groups]
    ends = list(itertools.accumulate((len(g) for g in groups), initial=1))
    rules = [rf"\cmidrule(lr){{{a + 1}-{b}}}" for a, b in itertools.pairwise(ends)]
    labels = " & ".join(["Method", *(escape(column.label) for column in columns)])
    return [" & ".join(["", *spans]) + r" \\", "".join(rules), rf"{labels} \\"]


def _head(column: Column) -> str:
    arrow = r"$\downarrow$" if column.arrow == "\u2193" else r"$\uparrow$"
    unit = r" $\times 10^3$" if column.kilo else ""
    return f"{escape(column.title)}{unit} {arrow}"


def _row(method: str, columns: list[Column], intervals: bool) -> str:
    cells = [_cell(column, method, intervals) for column in columns]
    return rf"{escape(method)} & {' & '.join(cells)} \\"


def _cell(column: Column, method: str, intervals: bool) -> str:
    text, stands = value_in(column, method).replace("–", "--"), column.footing.get(method)
    marked = rf"\textbf{{{text}}}" if stands == "best" else text
    marked += _TIE if stands == "not told apart" else ""
    return marked + (interval_in(column, method) if intervals else "")
