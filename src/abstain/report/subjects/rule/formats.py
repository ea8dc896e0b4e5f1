"""A decision rule and what it keeps elsewhere, in the formats that have a name of their own."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from abstain._foundation.files import write_atomically
from abstain.evaluation.rules import RuleChecks
from abstain.plots.verdicts import checked_rule
from abstain.report.document import Origin
from abstain.report.figure_files import write_displays
from abstain.report.render.html import html
from abstain.report.render.terminal import terminal
from abstain.report.subjects.rule.document import TITLE, rule_document, rule_figures

if TYPE_CHECKING:
    from rich.console import RenderableType


def threshold_html(
    checks: RuleChecks,
    *,
    title: str = TITLE,
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write a decision rule and its checks as one self-contained HTML page.

    Parameters
    ----------
    checks : RuleChecks
        What `check_rule` returned.
    title : str
        The heading.
    source : str
        Where the calibration data come from.
    notes : sequence of str
        Sentences to show beside the warnings.
    command : str
        The command line or code that reproduces the page.

    Returns
    -------
    str
        HTML with style and figures inside; it loads nothing from the network and runs no script.

    Raises
    ------
    InputError
        If `checks` is something else.

    Notes
    -----
    Every string of the caller is escaped, also in the figures.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> page = threshold_html(check_rule(rule, {"<later>": later}))
    >>> "broken on \u201c&lt;later&gt;\u201d" in page
    True
    """
    return html(rule_document(checks, Origin(title, source, notes, command)))


def write_threshold(
    checks: RuleChecks,
    path: str | os.PathLike[str],
    *,
    title: str = TITLE,
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the page to a file: all of it or, when something fails, nothing.

    Parameters
    ----------
    checks : RuleChecks
        What `check_rule` returned.
    path : path-like
        The file; its folder must exist.
    title, source, notes, command
        As for `threshold_html`.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    InputError
        If `checks` is something else, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_threshold(check_rule(rule, later), f"{folder}/report.html")
    >>> written.name
    'report.html'
    """
    page = threshold_html(checks, title=title, source=source, notes=notes, command=command)
    write_atomically(Path(path), page.encode())
    return Path(path)


def threshold_terminal(checks: RuleChecks) -> "RenderableType":
    r"""Lay a decision rule and its checks out for a terminal.

    Parameters
    ----------
    checks : RuleChecks
        What `check_rule` returned.

    Returns
    -------
    rich renderable
        Print it with a `rich.console.Console`; it is made for 100 columns.

    Raises
    ------
    InputError
        If `checks` is something else.

    Notes
    -----
    Names and messages are printed as they are: no markup is read from them, and control
    characters are written out.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> from rich.console import Console
    >>> with (console := Console(width=80)).capture() as printed:
    ...     console.print(threshold_terminal(check_rule(rule, {"later": later})))
    >>> print(printed.get().splitlines()[0])
    Answer when the confidence is at least 0.5; abstain below.
    """
    return terminal(rule_document(checks, Origin()))


def write_rule_figures(
    checks: RuleChecks,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = ("svg", "png"),
) -> list[Path]:
    """Write the figures of a checked rule, each with its table.

    Parameters
    ----------
    checks : RuleChecks
        What `check_rule` returned.
    folder : path-like
        Made when it does not exist.
    formats : sequence of str, default=("svg", "png")
        Some of "svg", "png" and "pdf".

    Returns
    -------
    list of pathlib.Path
        The files written: for each figure one in each format and a CSV of what it draws.

    Raises
    ------
    InputError
        If `checks` is something else, a format is unknown, or a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     found = write_rule_figures(check_rule(rule, later), place, formats=["svg"])
    >>> [path.name for path in found]
    ['decision-rule.svg', 'decision-rule.csv', 'risk-excess.svg', 'risk-excess.csv']
    """
    return write_displays(rule_figures(checked_rule(checks)), folder, formats)
