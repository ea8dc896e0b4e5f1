"""What a study found, in every format."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from abstain._foundation.files import write_atomically
from abstain.report.document import Origin
from abstain.report.figure_files import write_displays
from abstain.report.render.html import html
from abstain.report.render.terminal import terminal
from abstain.report.subjects.study.document import checked, study_document, study_figures
from abstain.studies import StudyResult

if TYPE_CHECKING:
    from rich.console import RenderableType


def study_html(
    result: StudyResult,
    *,
    title: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write what a study found as one self-contained HTML page.

    Parameters
    ----------
    result : StudyResult
        What a study returned.
    title : str, optional
        The heading; by default that of the study.
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
        If `result` is something else.

    Notes
    -----
    Every string of the caller is escaped, also in the figures.

    Examples
    --------
    >>> from abstain.studies import STUDIES
    >>> found = STUDIES["weights"].run(sizes=[8], points=5)
    >>> "<h1>The &lt;weights&gt;</h1>" in study_html(found, title="The <weights>")
    True
    """
    return html(study_document(result, Origin(title, "", notes, command)))


def write_study(
    result: StudyResult,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the page to a file: all of it or, when something fails, nothing.

    Parameters
    ----------
    result : StudyResult
        What a study returned.
    path : path-like
        The file; its folder must exist.
    title, notes, command
        As for `study_html`.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    InputError
        If `result` is something else, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from abstain.studies import STUDIES
    >>> found = STUDIES["weights"].run(sizes=[8], points=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_study(found, f"{folder}/report.html")
    >>> written.name
    'report.html'
    """
    page = study_html(result, title=title, notes=notes, command=command)
    write_atomically(Path(path), page.encode())
    return Path(path)


def study_terminal(result: StudyResult) -> "RenderableType":
    r"""Lay what a study found out for a terminal.

    Parameters
    ----------
    result : StudyResult
        What a study returned.

    Returns
    -------
    rich renderable
        The question, the verdict and the short tables; print it with a `rich.console.Console`.

    Raises
    ------
    InputError
        If `result` is something else.

    Notes
    -----
    Names are printed as they are: no markup is read from them, and control characters are
    written out.

    Examples
    --------
    >>> from rich.console import Console
    >>> from abstain.studies import STUDIES
    >>> found = STUDIES["weights"].run(sizes=[8], points=5)
    >>> with (console := Console(width=80)).capture() as screen:
    ...     console.print(study_terminal(found))
    >>> screen.get().splitlines()[0]
    'Bias and error of the rank weights'
    """
    return terminal(study_document(result, Origin()))


def write_study_figures(
    result: StudyResult,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = ("svg",),
) -> list[Path]:
    """Write the figures of a study, each with its table.

    Parameters
    ----------
    result : StudyResult
        What a study returned.
    folder : path-like
        Made when it does not exist.
    formats : sequence of str, default=("svg",)
        Some of "svg", "png" and "pdf".

    Returns
    -------
    list of pathlib.Path
        The files written: for each figure one in each format and a CSV of what it draws.

    Raises
    ------
    InputError
        If `result` is something else, a format is unknown, or a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from abstain.studies import STUDIES
    >>> found = STUDIES["weights"].run(sizes=[8], points=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_study_figures(found, folder)
    >>> [path.name for path in files][:2]
    ['bias.svg', 'bias.csv']
    """
    return write_displays(study_figures(checked(result)), folder, formats)
