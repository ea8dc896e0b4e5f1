"""Results as tables for a paper: Markdown and LaTeX."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from abstain.benchmark.results import BenchmarkResults
from abstain.evaluation.comparison import Comparison
from abstain.evaluation.records import Evaluation
from abstain.report.render import latex, markdown
from abstain.report.subjects.benchmark import grids
from abstain.report.subjects.comparison.matrix import matrix
from abstain.report.subjects.evaluation import tables

#: Columns that a page upright has room for.
_WIDE: Final = 8


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
    >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
    >>> table = markdown_table(ab.evaluate(samples), metrics=["augrc"])
    >>> print(table.split("\n\n")[0])
    | Metric | confidence |
    | --- | ---: |
    | AUGRC ↓ | 0.09375 |
    >>> told = markdown_table(ab.evaluate(samples), metrics=["augrc"], intervals=True)
    >>> print(told.split("\n")[2])
    | AUGRC ↓ | 0.09375 [0.0007761, 0.4858] |
    """
    return markdown.written(tables.paper(evaluation, metrics, intervals=intervals))


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
        As for `markdown_table`.
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
    >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
    >>> table = latex_table(ab.evaluate(samples), metrics=["augrc"])
    >>> print(table.split("\n\n")[1])
    \begin{tabular}{lr}
    \toprule
    Metric & confidence \\
    \midrule
    AUGRC $\downarrow$ & 0.09375 \\
    \bottomrule
    \end{tabular}
    """
    shown = tables.paper(evaluation, metrics, thousand=thousand, intervals=intervals)
    return latex.written(shown)


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
    >>> import abstain as ab
    >>> from abstain.evaluation import compare
    >>> samples = ab.Predictions(
    ...     confidence={"msr": [4, 3, 2, 1], "p_e": [3, 4, 1, 2]}, loss=[0, 0, 1, 0]
    ... )
    >>> print(comparison_markdown(compare(samples)).split("\n\n")[0])
    | Method | AUGRC ↓ |
    | --- | ---: |
    | msr | 0.09375† |
    | p\_e | **0.03125** |
    """
    found = matrix(comparison, metrics, thousand=thousand, intervals=intervals)
    return markdown.written(found)


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
    metrics, thousand, intervals
        As for `comparison_markdown`.

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
    >>> import abstain as ab
    >>> from abstain.evaluation import compare
    >>> samples = ab.Predictions(
    ...     confidence={"msr": [4, 3, 2, 1], "p_e": [3, 4, 1, 2]}, loss=[0, 0, 1, 0]
    ... )
    >>> print(comparison_latex(compare(samples)).split("\n\n")[1])
    \begin{tabular}{lr}
    \toprule
    Method & AUGRC $\downarrow$ \\
    \midrule
    msr & 0.09375\textsuperscript{\dag} \\
    p\_e & \textbf{0.03125} \\
    \bottomrule
    \end{tabular}
    """
    found = matrix(comparison, metrics, thousand=thousand, intervals=intervals)
    return latex.written(found)


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
    >>> from abstain.report import benchmark_markdown
    >>> benchmark_markdown({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    table, notes = grids.paper(results, metric, intervals=intervals)
    return markdown.written((replace(table, spans=()), notes))


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
    metric, intervals
        As for `benchmark_markdown`.
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
    >>> from abstain.report import benchmark_latex
    >>> benchmark_latex({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    table, notes = grids.paper(results, metric, intervals=intervals, shades=shades)
    needs = r"\usepackage{booktabs}" + (r" \usepackage[table]{xcolor}" if shades else "")
    head = f"% {latex.label(table.columns[0].label)}. Needs {needs}"
    if len(table.columns) > _WIDE:
        head += "\n% Wide: \\resizebox{\\linewidth}{!}{...} around the tabular, or a sideways page."
    return latex.written((table, notes), head=head)
