"""Define a command `abstain study NAME` for each study, and `abstain study --all`."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter as Argument
from inspect import Signature, cleandoc
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Final, Literal, get_origin

from cyclopts import App, Parameter

import abstain as ab
from abstain._foundation.files import MANIFEST, published_hashes
from abstain._foundation.notes import Note
from abstain.cli.console import (
    console,
    exit_on_interrupt,
    print_written_files,
    progress_bar,
    show_status,
)
from abstain.cli.options import DEFAULT_COLUMNS, Columns, Files, PrintConfig, repeatable
from abstain.cli.output_folder import (
    REPORT,
    RESULTS,
    check_folder,
    current_command,
    make_files,
    write_and_print,
)
from abstain.cli.predictions import read_by_name
from abstain.errors import AbstainError, InputError
from abstain_bench.commands.console import JobLines
from abstain_bench.studies import STUDIES, StudyEntry, StudyOption, StudyResult


@dataclass(frozen=True, kw_only=True)
class StudyOutput:
    """Output options of a study."""

    out: Annotated[
        Path | None,
        Parameter(help="Folder for results.parquet, results.csv, figures and report.html"),
    ] = None
    figures: Annotated[
        tuple[Literal["svg", "png", "pdf"], ...],
        Parameter(help="Format of the figures of --out (repeatable)", negative=()),
    ] = ("svg",)


#: Name of the file with the parameters, conclusions and notes of a study.
STUDY_RECORD: Final = "study.json"

#: Option ``--quick`` of a study with small settings.
Quick = Annotated[bool, Parameter(help="Use small settings that take seconds", negative=())]

#: Option ``--quick`` of a study without small settings. Scripts can pass the option to all studies.
AlwaysQuick = Annotated[
    bool, Parameter(help="No effect, because this study takes seconds", negative=())
]

#: Default output options, with which no files are written.
NO_OUTPUT = StudyOutput()


def command_of(entry: StudyEntry) -> Callable[..., None]:
    """Create the command of a study with the options and the help text of its function."""
    command_signature = _signature_of(entry)
    parameters = {option.flag: option.name for option in entry.options}

    def study(*args: Any, **kwargs: Any) -> None:
        # Absent options are not bound, so they have the defaults of the study function.
        values = command_signature.bind(*args, **kwargs).arguments
        files = values.pop("files", ())
        columns = values.pop("columns", DEFAULT_COLUMNS)
        output = values.pop("leave", NO_OUTPUT)
        print_config = values.pop("print_config", False)
        arguments = dict(entry.quick) if values.pop("quick", False) else {}
        arguments |= {parameters[flag]: value for flag, value in values.items()}
        if print_config and entry.configuration is not None:
            sys.stdout.write(entry.configuration(**arguments))
            return
        _run(entry, output, arguments, files, columns)

    study.__doc__ = _help_text(entry)
    study.__annotations__ = {}
    vars(study)["__signature__"] = command_signature
    return study


def _help_text(entry: StudyEntry) -> str:
    """Return the docstring of a study up to its first section, with one line per paragraph."""
    docstring = cleandoc(entry.run.__doc__ or entry.question)
    text = docstring.partition("\nParameters\n---")[0].partition("\nReturns\n---")[0]
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return "\n\n".join(paragraphs).replace("``", "`")


def _signature_of(entry: StudyEntry) -> Signature:
    """Create the signature of the command, from which the parser derives its options."""
    arguments = []
    if entry.reads_files:
        files = Argument("files", Argument.POSITIONAL_ONLY, default=(), annotation=Files)
        arguments += [files, _keyword("columns", _flattened(Columns), DEFAULT_COLUMNS)]
    arguments += [_argument_of(option) for option in entry.options]
    arguments.append(_keyword("quick", Quick if entry.quick else AlwaysQuick, default=False))
    if entry.configuration is not None:
        arguments.append(_keyword("print_config", PrintConfig, default=False))
    arguments.append(_keyword("leave", _flattened(StudyOutput), NO_OUTPUT))
    return Signature(arguments)


def _argument_of(option: StudyOption) -> Argument:
    """Create the parameter of the command that corresponds to an option of the study."""
    if option.kind == tuple[str, ...]:
        parameter = repeatable(option.help)
    elif get_origin(option.kind) is tuple:
        parameter = Parameter(help=option.help, negative=(), consume_multiple=True)
    else:
        parameter = Parameter(help=option.help, negative=() if option.kind is bool else None)
    parameter_kind = Argument.POSITIONAL_ONLY if option.is_positional else Argument.KEYWORD_ONLY
    annotation: Any = Annotated[option.kind, parameter]
    return Argument(option.flag, parameter_kind, default=option.default, annotation=annotation)


def _keyword(name: str, kind: Any, default: Any) -> Argument:
    return Argument(name, Argument.KEYWORD_ONLY, default=default, annotation=kind)


def _flattened(kind: Any) -> Any:
    return Annotated[kind, Parameter(name="*")]


def _run(
    entry: StudyEntry,
    output: StudyOutput,
    arguments: dict[str, Any],
    files: tuple[Path, ...],
    columns: Columns,
) -> None:
    """Run a study, print its result, and write its tables, figures and page."""
    from abstain_bench.pages.study import study_terminal

    data, notes = read_by_name(files, columns)
    positional_options = [option.name for option in entry.options if option.is_positional]
    inputs = [*files, *map(arguments.get, positional_options)]
    # The folder is checked before the study runs, so that errors are raised early.
    target = check_folder(output.out, [*RESULTS, REPORT], inputs)
    study_result = run_study(entry, output.out, arguments, data)
    result = replace(study_result, notes=(*study_result.notes, *notes))
    job_folders = () if output.out is None else [output.out / name for name in entry.job_folders]
    write_and_print(
        lambda: study_terminal(result),
        lambda: study_files(result, output.figures),
        target,
        after=job_folders,
    )
    if has_missing_jobs(result):
        # The exit status reports missing jobs after all files have been written.
        sys.stdout.flush()
        raise SystemExit(1)


def run_study(
    entry: StudyEntry,
    out: Path | None,
    parameters: Mapping[str, Any],
    data: Mapping[str, Any] | None = None,
) -> StudyResult:
    """Run a study and display its progress."""
    data_arguments = [data or None] if entry.reads_files else []
    run = partial(entry.run, *data_arguments, **parameters)
    try:
        if entry.job_folders:
            return _run_with_jobs(run, out)
        with show_status(f"Studying: {entry.title}"):
            return run()
    except MemoryError as error:
        raise InputError(
            f"not enough memory: {error}; choose smaller sizes, fewer points or fewer repetitions"
        ) from None


def _run_with_jobs(run: Callable[..., StudyResult], out: Path | None) -> StudyResult:
    """Run a study that consists of several jobs, and display their progress."""
    from abstain_bench.runs.store import JOBS

    if out is None:
        jobs_folder = None
        message = "nothing is stored; with --out, the same command continues."
    else:
        jobs_folder = out / JOBS
        message = "the same command continues."
    with (
        exit_on_interrupt(message),
        progress_bar() as bar,
        JobLines(bar, folder=jobs_folder) as job_lines,
    ):
        return run(out=out, on_outcome=job_lines)


def has_missing_jobs(result: StudyResult) -> bool:
    """Return whether a job of a study failed or was skipped."""
    jobs = result.rows("jobs") if "jobs" in result.tables else ()
    return any(row.get("status") in {"failed", "left out"} for row in jobs)


def study_files(result: StudyResult, formats: Sequence[str]) -> dict[str, bytes]:
    """Return the content of each output file of a study by its file name."""
    from abstain_bench.pages.study import study_html

    first, *other_names = result.tables
    tables = {"results": result.rows(first)} | {name: result.rows(name) for name in other_names}
    page = study_html(result, command=current_command())
    return {**make_files(tables, page, result, formats), STUDY_RECORD: _record_content(result)}


def _record_content(result: StudyResult) -> bytes:
    """Return the parameters, the conclusions and the notes of a study in JSON format."""
    record = {
        "name": result.name,
        "parameters": result.parameters,
        "verdict": result.verdict,
        "notes": [_note_text(note) for note in result.notes],
        "seconds": result.seconds,
    }
    text = json.dumps(record, indent=1, default=str, ensure_ascii=False)
    return f"{text}\n".encode()


def _note_text(note: str | Note) -> str:
    is_warning = isinstance(note, Note) and note.level == "warning"
    return f"Warning: {note}" if is_warning else str(note)


#: Name of the result with an overview of all studies.
_ALL: Final = "all"


def rerun(output: StudyOutput, *, quick: bool) -> None:
    """Run every study, print the first sentence of each conclusion, and write all output files."""
    from abstain_bench.pages.study import study_terminal

    start = perf_counter()
    target = check_folder(output.out, [*RESULTS, REPORT], [])
    rows = []
    for entry in STUDIES.values():
        rows.append(_row(entry, output, quick=quick))
        overview = _overview(rows, perf_counter() - start, quick=quick)
        if target is not None:
            # The overview is written after each study, in case the command is interrupted.
            written = target.write(study_files(overview, output.figures))
    console().print(study_terminal(overview))
    done = [row["study"] for row in rows if row["status"] == "done"]
    if target is not None:
        print_written_files([*written, *(target.folder / name for name in done)])
    if len(done) < len(rows):
        raise SystemExit(1)


def _row(entry: StudyEntry, output: StudyOutput, *, quick: bool) -> dict[str, Any]:
    """Run a study if its files are incomplete, and return the row that summarizes it."""
    out = None if output.out is None else output.out / entry.name
    completed = _completed_record(out)
    if completed is not None:
        return _overview_row(entry, "done", completed["seconds"], completed["verdict"])
    try:
        target = check_folder(out, [*RESULTS, REPORT], [])
        result = run_study(entry, out, entry.quick if quick else {})
        if target is not None:
            target.write(study_files(result, output.figures))
    except (AbstainError, OSError) as error:
        return _overview_row(entry, "failed", None, [str(error)])
    status = "incomplete" if has_missing_jobs(result) else "done"
    return _overview_row(entry, status, result.seconds, result.verdict)


def _overview_row(
    entry: StudyEntry, status: str, seconds: float | None, verdict: Sequence[str]
) -> dict[str, Any]:
    """Return a row with the name, the status and the first conclusion of a study."""
    first_sentence = next(iter(verdict), "")
    return {"study": entry.name, "status": status, "seconds": seconds, "found": first_sentence}


def _completed_record(out: Path | None) -> dict[str, Any] | None:
    """Return the stored result of a study if the same command has completed it before."""
    if out is None or not {MANIFEST, STUDY_RECORD} <= published_hashes(out).keys():
        return None
    try:
        manifest = json.loads((out / MANIFEST).read_bytes())
        record = json.loads((out / STUDY_RECORD).read_bytes())
    except (OSError, ValueError):
        return None
    is_current = (
        manifest.get("command") == current_command() and manifest.get("abstain") == ab.__version__
    )
    return record if is_current else None


def _overview(rows: list[dict[str, Any]], seconds: float, *, quick: bool) -> StudyResult:
    """Create the summary of all studies, with the status and the first conclusion of each study."""
    done = sum(row["status"] == "done" for row in rows)
    verdict = [f"{done} of {len(STUDIES)} studies are complete."]
    verdict += [f"{row['study']}: {row['found']}" for row in rows if row["status"] != "done"]
    return StudyResult(
        _ALL,
        "All studies",
        "What are the conclusions of all studies?",
        parameters={"quick": quick},
        tables={"results": rows},
        captions={"results": "The page of a study is report.html in its folder."},
        verdict=tuple(verdict),
        seconds=seconds,
    )


study = App(
    name="study",
    help="Reproduce studies from the literature.",
    usage="Usage: abstain study COMMAND",
)
for _entry in STUDIES.values():
    study.command(command_of(_entry), name=_entry.name)


@study.default
def studies(
    name: Annotated[str, Parameter(show=False)] = "",
    /,
    *,
    run_all: Annotated[bool, Parameter("--all", help="Run all studies", negative=())] = False,
    quick: Quick = False,
    output: Annotated[StudyOutput, Parameter(name="*")] = NO_OUTPUT,
) -> None:
    """Reproduce studies from the literature.

    With --all, every study is run, and each writes its files to a subfolder of --out. If a study
    fails, the remaining studies are still run. If the command is interrupted, run it again to
    continue. The command exits with status 1 if a study failed.
    """
    if name:
        # Subcommands handle existing names; other names raise an error with a suggestion.
        STUDIES[name]
    elif run_all:
        rerun(output, quick=quick)
    else:
        study.help_print([])
