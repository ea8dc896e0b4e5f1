"""The command of a study, made from its entry."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter as Argument
from inspect import Signature, cleandoc, signature
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_origin

from cyclopts import Parameter

from abstain._foundation.notes import Note
from abstain.cli.console import interruptible, progress, working
from abstain.cli.options import USUAL_COLUMNS, Columns, Files, PrintConfig, several
from abstain.cli.out import REPORT, RESULTS, command, files_of, finish, place
from abstain.cli.predictions import read_named
from abstain.errors import InputError
from abstain_bench.commands.job_lines import JobLines
from abstain_bench.studies import StudyEntry, StudyOption, StudyResult


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


#: What a study says, for a program: its parameters, verdict and notes.
SAID: Final = "study.json"

#: Whether a study is run with the settings of its entry that take seconds.
Quick = Annotated[bool, Parameter(help="smaller settings, for a look in seconds", negative=())]

#: The same option of a study that has no smaller settings, so that scripts can pass it to all.
AlwaysQuick = Annotated[
    bool, Parameter(help="no effect: this study always takes seconds", negative=())
]

#: Nothing is left behind but what is printed.
NOTHING = StudyOutput()


def command_of(entry: StudyEntry) -> Callable[..., None]:
    """Return the command of a study, whose signature and help are those of its entry."""
    asked = signature_of(entry)
    names = {option.flag or option.name: option.name for option in entry.options}

    # What is not given is left to the study, which has its own defaults.
    def study(*by_place: Any, **by_name: Any) -> None:
        given = asked.bind(*by_place, **by_name).arguments
        files = given.pop("files", ())
        columns = given.pop("columns", USUAL_COLUMNS)
        leave = given.pop("leave", NOTHING)
        printed = given.pop("print_config", False)
        usual = entry.quick if given.pop("quick", False) else {}
        parameters = {**usual, **{names[flag]: value for flag, value in given.items()}}
        if printed and entry.configuration is not None:
            sys.stdout.write(entry.configuration(**parameters))
            return
        run(entry, leave, parameters, files, columns)

    study.__doc__ = cleandoc(entry.about or entry.question)
    study.__annotations__ = {}
    vars(study)["__signature__"] = asked
    return study


def signature_of(entry: StudyEntry) -> Signature:
    """Return the signature from which the parser of the command is made."""
    usual = signature(entry.run).parameters
    found = [_argument("files", Files, (), positional=True)] if entry.reads else []
    found += [_argument_of(o, usual[o.name].default) for o in entry.options if o.positional]
    if entry.reads:
        found.append(_argument("columns", Annotated[Columns, Parameter(name="*")], USUAL_COLUMNS))
    found += [_argument_of(o, usual[o.name].default) for o in entry.options if not o.positional]
    found.append(_argument("quick", Quick if entry.quick else AlwaysQuick, default=False))
    if entry.configuration is not None:
        found.append(_argument("print_config", PrintConfig, default=False))
    found.append(_argument("leave", Annotated[StudyOutput, Parameter(name="*")], NOTHING))
    return Signature(found)


def _argument_of(option: StudyOption, default: Any) -> Argument:
    if option.kind == tuple[str, ...]:
        told = several(option.meaning)
    elif get_origin(option.kind) is tuple:
        told = Parameter(help=option.meaning, negative=(), consume_multiple=True)
    else:
        told = Parameter(help=option.meaning, negative=() if option.kind is bool else None)
    annotated: Any = Annotated
    kind = annotated[option.kind, told]
    return _argument(option.flag or option.name, kind, default, positional=option.positional)


def _argument(name: str, kind: Any, default: Any, *, positional: bool = False) -> Argument:
    place = Argument.POSITIONAL_ONLY if positional else Argument.KEYWORD_ONLY
    return Argument(name, place, default=default, annotation=kind)


def run(
    entry: StudyEntry,
    leave: StudyOutput,
    parameters: dict[str, Any],
    files: tuple[Path, ...],
    columns: Columns,
) -> None:
    """Run a study, print what it found, and leave its files."""
    from abstain_bench.pages import study_terminal

    data, notes = read_named(files, columns)
    by_place = [parameters.get(o.name) for o in entry.options if o.positional]
    # A folder that cannot be written to is refused before the work and not after it.
    to = place(leave.out, [*RESULTS, REPORT], [*files, *by_place])
    found = found_by(entry, leave.out, parameters, data)
    found = replace(found, notes=(*found.notes, *notes))
    kept = () if leave.out is None else [leave.out / name for name in entry.keeps]
    finish(lambda: study_terminal(found), lambda: left_by(found, leave.figures), to, after=kept)
    if missing(found):
        # A script notices that not all was done, after everything has been written.
        sys.stdout.flush()
        raise SystemExit(1)


def found_by(
    entry: StudyEntry,
    out: Path | None,
    parameters: Mapping[str, Any],
    data: Mapping[str, Any] | None = None,
) -> StudyResult:
    """Run a study and say what goes on."""
    read = [data or None] if entry.reads else []
    run = partial(entry.run, *read, **parameters)
    try:
        if entry.keeps:
            return _kept(run, out)
        with working(f"Studying: {entry.title}"):
            return run()
    except MemoryError as error:
        raise InputError(
            f"not enough memory: {error}; ask for smaller sizes, fewer points or repeats"
        ) from None


def _kept(run: Callable[..., StudyResult], out: Path | None) -> StudyResult:
    """Run a study that keeps what is done, and say which part of it is."""
    from abstain_bench.runs.store import JOBS

    after = "the same command goes on from here."
    after = after if out is not None else f"nothing is kept; with --out {after}"
    with interruptible(after), progress() as bar:
        jobs = None if out is None else out / JOBS
        with JobLines(bar, folder=jobs) as lines:
            return run(out=out, on_outcome=lines)


def missing(found: StudyResult) -> bool:
    """Tell whether jobs of a study were not done."""
    jobs = found.rows("jobs") if "jobs" in found.tables else ()
    return any(row.get("status") in {"failed", "left out"} for row in jobs)


def left_by(found: StudyResult, formats: Sequence[str]) -> dict[str, bytes]:
    """Return the files of a study: tables, page, figures, and what it says."""
    from abstain_bench.pages import study_html

    first, *others = found.tables
    tables = {"results": found.rows(first)} | {name: found.rows(name) for name in others}
    page = study_html(found, command=command())
    said = {name: getattr(found, name) for name in ("name", "parameters", "verdict")}
    said["notes"] = [
        f"Warning: {note}" if isinstance(note, Note) and note.level == "warning" else str(note)
        for note in found.notes
    ]
    said["seconds"] = found.seconds
    words = json.dumps(said, indent=1, default=str, ensure_ascii=False) + "\n"
    return {**files_of(tables, page, found, formats), SAID: words.encode()}
