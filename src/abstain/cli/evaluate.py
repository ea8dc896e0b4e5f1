"""`abstain evaluate`: evaluate confidence scores on files of predictions."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

import abstain as ab
from abstain._foundation.input_files import check_exists
from abstain.cli.console import show_status
from abstain.cli.engine import Engine
from abstain.cli.options import (
    COLUMNS_GROUP,
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
    PAPER_TABLES,
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
    """Options of `evaluate` for confidence intervals."""

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
        """Return the options for `ab.evaluate`, and raise an error if options have no effect."""
        unused = []
        if self.bootstrap is not None and self.interval != "bootstrap":
            unused.append("--bootstrap")
        if self.level is not None and self.interval == "none":
            unused.append("--level")
        if self.clustered and self.interval == "none":
            unused.append("--clustered")
        if unused:
            verb = "has" if len(unused) == 1 else "have"
            remedy = "pass --interval bootstrap"
            if unused != ["--bootstrap"]:
                remedy = "choose another method of intervals"
            raise InputError(
                f"{', '.join(unused)} {verb} no effect with --interval {self.interval}; {remedy}, "
                f"or drop {'it' if len(unused) == 1 else 'them'}"
            )
        options = {name: getattr(self, name) for name in self.__dataclass_fields__}
        options["rng"] = options.pop("seed")
        return {name: value for name, value in options.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class EvaluationOutput:
    """Options of `evaluate` for its output."""

    out: Annotated[
        Path | None, Parameter(help="Folder for results.parquet, results.csv and report.html")
    ] = None
    pictures: Annotated[
        Path | None,
        Parameter(help="Folder of the images named by --id (default: folder of the first file)"),
    ] = None
    full: Annotated[bool, Parameter(help="Print all metrics", negative=())] = False

    def check(self) -> None:
        """Raise an error if --pictures has no effect or its folder does not exist."""
        if self.pictures is None:
            return
        if self.out is None:
            raise InputError(
                "--pictures adds images to the report of --out; add --out, or drop --pictures"
            )
        check_exists(self.pictures)

    def make_page(self, evaluation: "Evaluation", source: str, file: Path) -> str:
        """Return the report with the images of its samples."""
        from abstain.report import html_report, sample_images

        folders = (self.pictures,) if self.pictures else _image_folders(file)
        candidates = [sample_images(evaluation, folder) for folder in folders]
        pictures = max(candidates, key=lambda candidate: len(candidate.sources))
        return html_report(evaluation, source=source, command=current_command(), images=pictures)


def _image_folders(file: Path) -> tuple[Path, ...]:
    """Return the folders in which images may be located."""
    working_folder = Path()
    if original_name(file) == STDIN_NAME:
        return (working_folder,)
    return (file.parent, working_folder)


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
    columns: Annotated[Columns, COLUMNS_GROUP] = DEFAULT_COLUMNS,
    score: Annotated[
        tuple[str, ...], repeatable("Score (default: all; `abstain list scores`)")
    ] = (),
    metric: Metrics = (),
    loss: Loss = None,
    intervals: Annotated[Intervals, Parameter(name="*")] = _INTERVALS,
    engine: Annotated[Engine, Parameter(name="*", group="Large data")] = _MEMORY,
    output: Annotated[EvaluationOutput, Parameter(name="*", group="Output")] = _PRINTED,
) -> None:
    """Evaluate confidence scores on files of predictions.

    The command prints a table. With --out, the command also writes tables of all numbers and a
    report. Values are fractions.
    """
    from abstain.report import terminal_table

    options = intervals.options()
    output.check()
    engine.check()
    if columns.group and output.out is None and not intervals.clustered:
        raise InputError(
            "--group has no effect without --out, which reports groups, or --clustered; add one of "
            "them, or drop --group"
        )
    arguments = {"scores": score or None, "metrics": metric or None, "loss": loss, **options}
    arguments["curves"] = output.out is not None
    file_names = [*RESULTS, REPORT, *PAPER_TABLES]
    source: Reading | PredictionScan
    if engine.in_memory:
        files = expand_patterns(files)
        folder = check_folder(output.out, file_names, files)
        source = read_files(files, columns)
        with show_status("Evaluating"):
            evaluation = ab.evaluate(source, notes=source.notes, **arguments)
    else:
        source = engine.scan(files, columns)
        folder = check_folder_for_large_inputs(output.out, file_names, source.paths)
        evaluation = engine.evaluate(source, arguments)

    def make_output_files() -> dict[str, bytes]:
        from abstain.report.paper import paper_files

        page = output.make_page(evaluation, source.source, files[0])
        return {**make_files({"results": evaluation.rows()}, page), **paper_files(evaluation)}

    write_and_print(lambda: terminal_table(evaluation, full=output.full), make_output_files, folder)
