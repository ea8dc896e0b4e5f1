"""An evaluation in the formats that have a name of their own."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from abstain._foundation.files import write_atomically
from abstain.evaluation.records import Evaluation
from abstain.report.document import Origin
from abstain.report.render import latex, markdown
from abstain.report.render.html import html
from abstain.report.render.terminal import terminal
from abstain.report.subjects.evaluation import tables
from abstain.report.subjects.evaluation.document import evaluation_document

if TYPE_CHECKING:
    from rich.console import RenderableType


def html_report(
    evaluation: Evaluation,
    *,
    title: str = "Selective classification report",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write an evaluation as one self-contained HTML page.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned.
    title : str
        The heading.
    source : str
        Where the predictions come from: a file name, a description.
    notes : sequence of str
        Sentences to show beside the warnings.
    command : str
        The command line or code that reproduces the report.

    Returns
    -------
    str
        HTML with style, script and data inside; it loads nothing from the network.

    Raises
    ------
    InputError
        If `evaluation` is something else.

    Notes
    -----
    Every string of the caller is escaped, also inside the embedded JSON.

    Examples
    --------
    >>> import abstain as ab
    >>> predictions = ab.Predictions(
    ...     prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence=[0.9, 0.8, 0.7, 0.6]
    ... )
    >>> page = html_report(ab.evaluate(predictions), title="Four <samples>")
    >>> "<h1>Four &lt;samples&gt;</h1>" in page
    True
    """
    return html(evaluation_document(evaluation, Origin(title, source, notes, command)))


def write_html(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    title: str = "Selective classification report",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the report to a file: all of it or, when something fails, nothing.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned.
    path : path-like
        The file; its folder must exist.
    title, source, notes, command
        As for `html_report`.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    InputError
        If `evaluation` is something else, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import abstain as ab
    >>> predictions = ab.Predictions(
    ...     prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence=[0.9, 0.8, 0.7, 0.6]
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_html(ab.evaluate(predictions), f"{folder}/report.html")
    >>> written.name
    'report.html'
    """
    page = html_report(evaluation, title=title, source=source, notes=notes, command=command)
    write_atomically(Path(path), page.encode())
    return Path(path)


def terminal_table(evaluation: Evaluation, *, full: bool = False) -> "RenderableType":
    r"""Lay the results out for a terminal.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned.
    full : bool, default=False
        Every metric with the sentence that says what it means, instead of the headline ones.

    Returns
    -------
    rich renderable
        Print it with a `rich.console.Console`; it is made for 100 columns;
        on fewer it leaves out the last metrics, and says which.

    Raises
    ------
    InputError
        If `evaluation` is something else.

    Notes
    -----
    Names and messages are printed as they are: no markup is read from them, and control
    characters are written out.

    Examples
    --------
    >>> import abstain as ab
    >>> predictions = ab.Predictions(
    ...     prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence=[0.9, 0.8, 0.7, 0.6]
    ... )
    >>> from rich.console import Console
    >>> evaluation = ab.evaluate(predictions, metrics=["accuracy", "augrc"])
    >>> with (console := Console(width=60)).capture() as printed:
    ...     console.print(terminal_table(evaluation))
    >>> print("\n".join(line.rstrip() for line in printed.get().splitlines()[:3]))
    Score         Acc. ↑   AUGRC ↓
    ──────────────────────────────
    confidence    0.7500   0.09375
    """
    return terminal(evaluation_document(evaluation, Origin(), full=full))


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
    shown = tables.paper(evaluation, metrics, thousand=thousand, intervals=intervals)
    return latex.written(shown)
