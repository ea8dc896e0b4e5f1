"""`abstain evaluate`: from files of predictions to numbers, tables and a report."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

import abstain as ab
from abstain._foundation.input_files import check_exists
from abstain.cli.console import show_status
from abstain.cli.engine import Engine
from abstain.cli.options import (
    DEFAULT_COLUMNS,
    Clustered,
    Columns,
    Files,
    Loss,
    OptionalLevel,
    Seed,
    repeatable,
)
from abstain.cli.output_folder import (
    REPORT,
    RESULTS,
    check_folder,
    check_folder_for_large_inputs,
    current_command,
    make_files,
    write_and_print,
)
from abstain.cli.predictions import expand_patterns, read_files
from abstain.cli.standard_input import STDIN_NAME, original_name
from abstain.errors import InputError

if TYPE_CHECKING:
    from abstain.evaluation import Evaluation
    from abstain.tables import PredictionScan, Reading


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """How `evaluate` makes intervals."""

    interval: Annotated[
        Literal["analytic", "bootstrap", "none"], Parameter(help="Method of the intervals")
    ] = "analytic"
    level: OptionalLevel = None
    bootstrap: Annotated[
        int | None, Parameter(help="Number of resamples of --interval bootstrap [default: 1000]")
    ] = None
    clustered: Clustered = False
    seed: Seed = 0

    def options(self) -> dict[str, Any]:
        """Return the options of `evaluate` that were given; refuse those without effect."""
        idle = ["--bootstrap"] if self.bootstrap is not None else []
        if self.interval == "none":
            idle += ["--level"] if self.level is not None else []
            idle += ["--clustered"] if self.clustered else []
        if idle and self.interval != "bootstrap":
            have = "--interval bootstrap" if idle == ["--bootstrap"] else "other intervals"
            msg = f"{', '.join(idle)}: without effect with --interval {self.interval}; take {have}"
            raise InputError(f"{msg}, or drop {'it' if len(idle) == 1 else 'them'}")
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        given["rng"] = given.pop("seed")
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class EvaluationOutput:
    """What `evaluate` prints and leaves."""

    out: Annotated[
        Path | None, Parameter(help="Folder for results.parquet, results.csv and report.html")
    ] = None
    pictures: Annotated[
        Path | None,
        Parameter(help="Folder of the images named by --id (default: folder of the first file)"),
    ] = None
    full: Annotated[bool, Parameter(help="Print all metrics", negative=())] = False

    def check(self) -> None:
        """Refuse pictures without a page to stand on, and a folder that is not there."""
        if self.pictures is None:
            return
        if self.out is None:
            raise InputError("--pictures: shown on the page of --out; give that, or drop it")
        check_exists(self.pictures)

    def write_page(self, evaluation: "Evaluation", source: str, file: Path) -> str:
        """Write the page, with the pictures of its samples."""
        from abstain.report import html_report, sample_pictures

        folders = (self.pictures,) if self.pictures else _image_folders(file)
        tried = [sample_pictures(evaluation, folder) for folder in folders]
        made = max(tried, key=lambda pictures: len(pictures.sources))
        return html_report(evaluation, source=source, command=current_command(), pictures=made)


def _image_folders(file: Path) -> tuple[Path, ...]:
    """Return where names of pictures may begin: beside the file, or where the command runs."""
    here = Path()
    return (here,) if original_name(file) == STDIN_NAME else (file.parent, here)


_INTERVALS = Intervals()
_PRINTED = EvaluationOutput()
_MEMORY = Engine()

Metrics = Annotated[
    tuple[str, ...],
    repeatable(
        "Metric, or several such as cwsa@0.5:0.99:20 (default: all; `abstain list metrics`)"
    ),
]


def evaluate(
    files: Files,
    /,
    *,
    columns: Annotated[Columns, Parameter(name="*")] = DEFAULT_COLUMNS,
    score: Annotated[
        tuple[str, ...], repeatable("Score (default: all; `abstain list scores`)")
    ] = (),
    metric: Metrics = (),
    loss: Loss = None,
    intervals: Annotated[Intervals, Parameter(name="*")] = _INTERVALS,
    engine: Annotated[Engine, Parameter(name="*")] = _MEMORY,
    output: Annotated[EvaluationOutput, Parameter(name="*")] = _PRINTED,
) -> None:
    """Evaluate confidence scores on files of predictions.

    The command prints a table. With --out, it also writes tables of all numbers and a report.
    Values are fractions.
    """
    from abstain.report import terminal_table

    options = intervals.options()
    output.check()
    if columns.group and output.out is None and not intervals.clustered:
        raise InputError(
            "--group: shown on the page of --out, or used with --clustered; give one, or drop it"
        )
    asked = {"scores": score or None, "metrics": metric or None, "loss": loss, **options}
    asked["curves"] = output.out is not None
    found: Reading | PredictionScan
    if engine.in_memory:
        files = expand_patterns(files)
        to = check_folder(output.out, [*RESULTS, REPORT], files)
        found = read_files(files, columns)
        with show_status("Evaluating"):
            evaluation = ab.evaluate(found, notes=found.notes, **asked)
    else:
        found = engine.scan(files, columns)
        to = check_folder_for_large_inputs(output.out, [*RESULTS, REPORT], found.paths)
        evaluation = engine.evaluate(found, asked)
    write_and_print(
        lambda: terminal_table(evaluation, full=output.full),
        lambda: make_files(
            {"results": evaluation.rows()}, output.write_page(evaluation, found.source, files[0])
        ),
        to,
    )
