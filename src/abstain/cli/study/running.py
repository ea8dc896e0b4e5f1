"""What all studies share on the command line: their data, running, and what is left behind."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from abstain.cli.columns import Columns, several
from abstain.cli.console import console, leave_word, working
from abstain.cli.out import REPORT, RESULTS, Out, command, place
from abstain.cli.reading import read
from abstain.errors import AbstainError, InputError
from abstain.predictions import Predictions
from abstain.tables import split_name

if TYPE_CHECKING:
    from abstain.studies import StudyResult


Sizes = Annotated[
    tuple[int, ...],
    Parameter(help="sample sizes, such as 8 32 128", negative=(), consume_multiple=True),
]


@dataclass(frozen=True, kw_only=True)
class StudyOutput:
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
NOTHING = StudyOutput()


def run_study(
    name: str,
    leave: StudyOutput,
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


def place_of(leave: StudyOutput, files: Sequence[Path | None] = ()) -> Out | None:
    """Refuse a folder that the files cannot be written to before the work and not after it."""
    return place(leave.out, [*RESULTS, REPORT], files)


def show_study(found: "StudyResult", leave: StudyOutput, to: Out | None, *more: Path) -> None:
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
    from abstain.report.files.figures import display_files
    from abstain.report.subjects.study.document import study_figures
    from abstain.tables.results import result_files

    files: dict[str, bytes] = {}
    for i, (name, rows) in enumerate(found.tables.items()):
        if rows:
            files |= result_files(rows, "results" if i == 0 else name)
    files[REPORT] = study_html(found, command=command()).encode()
    return files | display_files(study_figures(found), formats)


Files = Annotated[tuple[Path, ...], Parameter(help="CSV, Parquet, Feather, JSON lines, NPZ")]

#: No option given: every column is looked for under its usual names.
USUAL_COLUMNS = Columns()


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Which scores and losses of the files, and which populations."""

    population: Annotated[
        tuple[str, ...], several("a simulated population (`abstain list populations`)")
    ] = ()
    score: Annotated[
        tuple[str, ...], several("a score of the files (default: the six of the paper)")
    ] = ()
    loss: Annotated[
        tuple[str, ...], several("a loss of the files (default: zero_one, cross_entropy)")
    ] = ()

    def options(self) -> dict[str, Any]:
        """Return them as parameters of a study."""
        return {
            "populations": self.population,
            "scores": self.score or None,
            "losses": self.loss or None,
        }


#: Whatever a study takes by itself.
ANY_SOURCE = SourceOptions()


def read_named(files: tuple[Path, ...], columns: Columns) -> tuple[dict[str, Predictions], Any]:
    """Read files, if any; return the parts by name, and what the reader noted."""
    if not files:
        return {}, ()
    reading = read(files, columns)
    parts = list(reading.items())
    if len(files) == 1 and len(parts) == 1:
        return {files[0].name: parts[0][1]}, reading.notes
    return {_name(split): part for split, part in parts}, reading.notes


def _name(split: Any) -> str:
    """Write the values that set a part apart; the file by its name alone."""
    pairs = dict(split)
    file = pairs.pop("file", "")
    rest = split_name(tuple(pairs.items())) if pairs else ""
    return ", ".join(part for part in (file, rest) if part)
