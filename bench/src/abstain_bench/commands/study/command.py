"""The command of a study, created from its entry."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter as Argument
from inspect import Signature, cleandoc
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_origin

from cyclopts import Parameter

from abstain._foundation.notes import Note
from abstain.cli.console import exit_on_interrupt, progress_bar, show_status
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
from abstain.errors import InputError
from abstain_bench.commands.job_lines import JobLines
from abstain_bench.studies import StudyEntry, StudyOption, StudyResult


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


#: File with the parameters, conclusion and notes of a study.
STUDY_RECORD: Final = "study.json"

#: Option that runs a study with its small settings.
Quick = Annotated[bool, Parameter(help="Use small settings that take seconds", negative=())]

#: The same option of a study that has no smaller settings, so that scripts can pass it to all.
AlwaysQuick = Annotated[
    bool, Parameter(help="No effect, because this study takes seconds", negative=())
]

#: Output options without files.
NO_OUTPUT = StudyOutput()


def command_of(entry: StudyEntry) -> Callable[..., None]:
    """Return the command of a study: the options and the help are those of its function."""
    command_signature = _signature_of(entry)
    parameters = {option.flag: option.name for option in entry.options}

    # Options that are not passed have the defaults of the study function.
    def study(*args: Any, **kwargs: Any) -> None:
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

    text = cleandoc(entry.run.__doc__ or entry.question)
    text = text.partition("\nParameters\n---")[0].partition("\nReturns\n---")[0]
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    study.__doc__ = "\n\n".join(paragraphs).replace("``", "`")
    study.__annotations__ = {}
    vars(study)["__signature__"] = command_signature
    return study


def _signature_of(entry: StudyEntry) -> Signature:
    """Return the signature from which the parser of the command is made."""
    arguments = [_argument_of(option) for option in entry.options]
    if entry.reads_files:
        files = Argument("files", Argument.POSITIONAL_ONLY, default=(), annotation=Files)
        arguments = [files, _keyword("columns", _flattened(Columns), DEFAULT_COLUMNS), *arguments]
    arguments.append(_keyword("quick", Quick if entry.quick else AlwaysQuick, default=False))
    if entry.configuration is not None:
        arguments.append(_keyword("print_config", PrintConfig, default=False))
    return Signature([*arguments, _keyword("leave", _flattened(StudyOutput), NO_OUTPUT)])


def _argument_of(option: StudyOption) -> Argument:
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
    """Run a study, print its result, and write its files."""
    from abstain_bench.pages import study_terminal

    data, notes = read_by_name(files, columns)
    inputs = [*files, *(arguments.get(o.name) for o in entry.options if o.is_positional)]
    # A folder that cannot be written to is rejected before the work and not after it.
    target = check_folder(output.out, [*RESULTS, REPORT], inputs)
    result = run_study(entry, output.out, arguments, data)
    result = replace(result, notes=(*result.notes, *notes))
    job_folders = () if output.out is None else [output.out / name for name in entry.job_folders]
    write_and_print(
        lambda: study_terminal(result),
        lambda: study_files(result, output.figures),
        target,
        after=job_folders,
    )
    if has_missing_jobs(result):
        # A script notices that not all was done, after everything has been written.
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
    """Run a study that stores its jobs, and display their progress."""
    from abstain_bench.runs.store import JOBS

    message = "the same command continues."
    message = message if out is not None else f"nothing is stored; with --out, {message}"
    with exit_on_interrupt(message), progress_bar() as bar:
        jobs = None if out is None else out / JOBS
        with JobLines(bar, folder=jobs) as lines:
            return run(out=out, on_outcome=lines)


def has_missing_jobs(result: StudyResult) -> bool:
    """Return True if jobs of a study failed or were skipped."""
    jobs = result.rows("jobs") if "jobs" in result.tables else ()
    return any(row.get("status") in {"failed", "left out"} for row in jobs)


def study_files(result: StudyResult, formats: Sequence[str]) -> dict[str, bytes]:
    """Return the files of a study: tables, page, figures and the record for programs."""
    from abstain_bench.pages import study_html

    first, *other_names = result.tables
    tables = {"results": result.rows(first)} | {name: result.rows(name) for name in other_names}
    page = study_html(result, command=current_command())
    record = {name: getattr(result, name) for name in ("name", "parameters", "verdict")}
    record["notes"] = [
        f"Warning: {note}" if isinstance(note, Note) and note.level == "warning" else str(note)
        for note in result.notes
    ]
    record["seconds"] = result.seconds
    text = json.dumps(record, indent=1, default=str, ensure_ascii=False) + "\n"
    return {**make_files(tables, page, result, formats), STUDY_RECORD: text.encode()}
