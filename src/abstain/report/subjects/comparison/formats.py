"""A comparison in every format: a builder of what is said, and a renderer."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from abstain._foundation.files import write_atomically
from abstain.evaluation.comparison import Comparison
from abstain.plots.words import checked
from abstain.report.document import Origin
from abstain.report.figure_files import FORMATS, write_displays
from abstain.report.render.html import html
from abstain.report.render.latex import written as written_in_latex
from abstain.report.render.markdown import written as written_in_markdown
from abstain.report.render.terminal import terminal
from abstain.report.subjects.comparison.document import comparison_document
from abstain.report.subjects.comparison.figures import comparison_figures
from abstain.report.subjects.comparison.matrix import matrix

if TYPE_CHECKING:
    from rich.console import RenderableType


def comparison_html(
    comparison: Comparison,
    *,
    title: str = "Comparison of confidence scores",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write a comparison as one self-contained HTML page.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    title : str
        The heading.
    source : str
        Where the predictions come from: a file name, a description.
    notes : sequence of str
        Sentences to show beside the warnings.
    command : str
        The command line or code that reproduces the page.

    Returns
    -------
    str
        HTML with style, script and figures inside; it loads nothing from the network.

    Raises
    ------
    InputError
        If `comparison` is something else.

    Notes
    -----
    Every string of the caller is escaped, also in the figures.

    Examples
    --------
    >>> from abstain.evaluation.comparison import Comparison, Estimate
    >>> estimate = Estimate(
    ...     "augrc", (), "", "msr", 0.04, 0.03, 0.05, 0.005, 0.95, "log scale", 900, 80, True
    ... )
    >>> one = Comparison(
    ...     ("augrc",), ("msr",), ((),), ("",), 0.95, (estimate,), (), (), (), (), (), (), (), ""
    ... )
    >>> "<h1>One &lt;method&gt;</h1>" in comparison_html(one, title="One <method>")
    True
    """
    return html(comparison_document(comparison, Origin(title, source, notes, command)))


def write_comparison(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    title: str = "Comparison of confidence scores",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the page to a file: all of it or, when something fails, nothing.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    path : path-like
        The file; its folder must exist.
    title, source, notes, command
        As for `comparison_html`.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    InputError
        If `comparison` is something else, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from abstain.evaluation.comparison import Comparison, Estimate
    >>> estimate = Estimate(
    ...     "augrc", (), "", "msr", 0.04, 0.03, 0.05, 0.005, 0.95, "log scale", 900, 80, True
    ... )
    >>> one = Comparison(
    ...     ("augrc",), ("msr",), ((),), ("",), 0.95, (estimate,), (), (), (), (), (), (), (), ""
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_comparison(one, f"{folder}/comparison.html")
    >>> written.name
    'comparison.html'
    """
    page = comparison_html(comparison, title=title, source=source, notes=notes, command=command)
    write_atomically(Path(path), page.encode())
    return Path(path)


def comparison_terminal(comparison: Comparison, *, full: bool = False) -> "RenderableType":
    r"""Lay a comparison out for a terminal.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    full : bool, default=False
        A table for every metric and data set, and every finding, however many there are.

    Returns
    -------
    rich renderable
        Print it with a `rich.console.Console` of at least 60 columns.

    Raises
    ------
    InputError
        If `comparison` is something else.

    Notes
    -----
    Names and messages are printed as they are: no markup is read from them, and control
    characters are written out.

    Examples
    --------
    >>> from abstain.evaluation.comparison import Comparison, Estimate
    >>> estimate = Estimate(
    ...     "augrc", (), "", "msr", 0.04, 0.03, 0.05, 0.005, 0.95, "log scale", 900, 80, True
    ... )
    >>> one = Comparison(
    ...     ("augrc",), ("msr",), ((),), ("",), 0.95, (estimate,), (), (), (), (), (), (), (), ""
    ... )
    >>> from rich.console import Console
    >>> with (console := Console(width=60)).capture() as printed:
    ...     console.print(comparison_terminal(one))
    >>> print("\n".join(line.rstrip() for line in printed.get().splitlines()[:6]))
    Only “msr” has a value of AUGRC.
    <BLANKLINE>
    AUGRC ↓
    Method    Value       95 % interval  Ranks  p, best
    ───────────────────────────────────────────────────
    msr     0.04000  0.03000 to 0.05000
    """
    return terminal(comparison_document(comparison, Origin(), full=full))


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
    found = matrix(comparison, metrics, thousand=thousand, intervals=intervals)
    return written_in_markdown(found)


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
    found = matrix(comparison, metrics, thousand=thousand, intervals=intervals)
    return written_in_latex(found)


def write_figures(
    comparison: Comparison,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Write every figure of a comparison, each with its table.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    folder : path-like
        Made when it does not exist.
    formats : sequence of str, default=("svg", "pdf", "png")
        Some of these.

    Returns
    -------
    list of pathlib.Path
        The files written: for each figure one in each format and a CSV of what it draws.

    Raises
    ------
    InputError
        If `comparison` is something else, a format is unknown, or a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from abstain.evaluation.comparison import Comparison, Estimate
    >>> estimate = Estimate(
    ...     "augrc", (), "", "msr", 0.04, 0.03, 0.05, 0.005, 0.95, "log scale", 900, 80, True
    ... )
    >>> one = Comparison(
    ...     ("augrc",), ("msr",), ((),), ("",), 0.95, (estimate,), (), (), (), (), (), (), (), ""
    ... )
    >>> with tempfile.TemporaryDirectory() as place:
    ...     [path.name for path in write_figures(one, place, formats=["svg"])]
    ['forest_augrc.svg', 'forest_augrc.csv']
    """
    return write_displays(comparison_figures(checked(comparison)), folder, formats)
