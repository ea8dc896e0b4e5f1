"""What all studies share on the command line: options, running, and what is left behind."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from abstain.cli._console import console, leave_word, working
from abstain.cli._out import REPORT, RESULTS, Out, command, place
from abstain.errors import AbstainError, InputError

if TYPE_CHECKING:
    from abstain.studies import StudyResult

Sizes = Annotated[
    tuple[int, ...],
    Parameter(help="sample sizes, such as 8 32 128", negative=(), consume_multiple=True),
]


@dataclass(frozen=True, kw_only=True)
class Leave:
    """What a study leaves behind."""

    out: Annotated[
        Path | None,
        Parameter(help="folder for results.parquet, results.csv, figures and report.html"),
    ] = None
    figures: Annotated[
        tuple[Literal["svg", "png", "pdf"], ...],
        Parameter(help="format of the figures of --out (repeatable)", negative=()),
    ] = ("svg",)


#: Nothing is left behind but what is printed.
NOTHING = Leave()


def run_study(
    name: str,
    leave: Leave,
    *data: Any,
    files: Sequence[Path] = (),
    notes: Sequence[str] = (),
    **parameters: Any,
) -> None:
    """Run a study by name, print what it found, and leave its files.

    `files` are those that the data were read from, and `notes` those of their reader.
    """
    from abstain.studies import STUDIES

    entry = STUDIES[name]
    to = place_of(leave, files)
    try:
        with working(f"Studying: {entry.title}"):
            found = entry.run(*data, **parameters)
    except MemoryError as error:
        msg = f"not enough memory: {error}; ask for smaller sizes, fewer points or repeats"
        raise InputError(msg) from None
    if notes:
        found = replace(found, notes=(*found.notes, *notes))
    show_study(found, leave, to)


def place_of(leave: Leave, files: Sequence[Path | None] = ()) -> Out | None:
    """Refuse a folder that the files cannot be written to before the work and not after it."""
    return place(leave.out, [*RESULTS, REPORT], files)


def show_study(found: "StudyResult", leave: Leave, to: Out | None, *more: Path) -> None:
    """Leave the files of a study, print what it found, and name the files with `more`."""
    from abstain.report import study_terminal

    # Files first: whoever reads the table through `head` closes the pipe early.
    try:
        with working("Writing"):
            left = [] if to is None else to.leave(study_files(found, leave.figures))
    except (AbstainError, OSError):
        # What was found is not lost with the place for its files.
        console().print(study_terminal(found))
        raise
    console().print(study_terminal(found))
    leave_word([*left, *more])


def study_files(found: "StudyResult", formats: Sequence[str]) -> dict[str, bytes]:
    """Return the tables, the page and the figures of a study."""
    from abstain.report import study_html
    from abstain.report.figure_files import display_files
    from abstain.report.study_html import study_figures
    from abstain.tables.results import result_files

    files: dict[str, bytes] = {}
    for i, (name, rows) in enumerate(found.tables.items()):
        if rows:
            files |= result_files(rows, "results" if i == 0 else name)
    files[REPORT] = study_html(found, command=command()).encode()
    return files | display_files(study_figures(found), formats)
