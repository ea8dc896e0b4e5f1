"""What a study found, as one HTML file that needs only a browser."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import abstain as ab
from abstain._foundation.files import write_atomically
from abstain.errors import InputError
from abstain.report.figure_files import write_displays
from abstain.report.glossary import linked
from abstain.report.html import environment, policy, resource, style, trusted
from abstain.report.render.svg import inline_svg
from abstain.report.study_words import Printed, checked_study, facts, head, printed, split_notes
from abstain.report.words import count
from abstain.studies import StudyResult

#: Rows of a table that the page holds; the files have all of them.
_MOST: Final = 200

#: The blank before a percent sign.
_PERCENT = re.compile(r"(?<=[0-9]) %")

#: What the name of a figure may hold: it becomes part of identifiers and of file names.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")


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
    known = checked_study(result)
    template = environment().get_template("study.html")
    warned, noted = split_notes([*known.notes, *notes])
    return template.render(
        title=title or known.title,
        question=_prose(known.question),
        verdict=[_prose(sentence) for sentence in known.verdict],
        facts=[{"label": label, "value": value} for label, value in facts(known)],
        findings=[
            {"level": "warning", "message": _prose(said), "place": "", "more": []}
            for said in warned
        ],
        notes=[_prose(note) for note in noted],
        tables=[_table(known, name) for name in known.open_tables if known.rows(name)],
        folded=[
            _table(known, name)
            for name in known.tables
            if name not in known.open_tables and known.rows(name)
        ],
        figures=_figures(known),
        words=[{"title": word, "meaning": _prose(said)} for word, said in known.glossary.items()],
        source=linked(known.source),
        command=command,
        version=ab.__version__,
        policy=policy(),
        trusted=trusted,
        css=trusted(style() + resource("comparison.css") + resource("study.css")),
    )


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
    known = checked_study(result)
    return write_displays(study_figures(known), folder, formats)


def _prose(text: str) -> str:
    """Keep a percent sign beside its number where a line ends."""
    return _PERCENT.sub("\u00a0%", text)


def study_figures(result: StudyResult) -> list[tuple[str, Any]]:
    """Return the figures of a study, each with its name; refuse a name that is no file name."""
    for name in result.figures:
        if not _NAME.fullmatch(name):
            msg = f"the name of a figure must be letters, digits and hyphens; got {name!r}"
            raise InputError(msg)
    return list(result.figures.items())


def _figures(result: StudyResult) -> list[dict[str, str]]:
    return [
        {
            "key": f"figure-{name}".replace(".", "-"),
            "title": getattr(display, "title", "") or head(name),
            "more": _prose(result.captions.get(name, "")),
            "svg": inline_svg(display, f"figure-{name}".replace(".", "-")),
        }
        for name, display in study_figures(result)
    ]


def _table(result: StudyResult, name: str) -> dict[str, Any]:
    found: Printed = printed(result, name, most=_MOST)
    return {
        "name": name,
        "title": head(name.replace("-", "_")),
        "caption": _prose(found.caption),
        "heads": list(zip(found.heads, found.numeric, strict=True)),
        "rows": [[replace(cell, text=_prose(cell.text)) for cell in row] for row in found.rows],
        "more": count(found.more) if found.more else "",
        "total": count(len(found.rows) + found.more),
    }
