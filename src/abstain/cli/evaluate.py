"""`abstain evaluate`: from files of predictions to numbers, tables and a report."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from abstain.cli.chance import Intervals
from abstain.cli.columns import Columns, several
from abstain.cli.console import console, leave_word, working
from abstain.cli.out import REPORT, RESULTS, command, place
from abstain.cli.reading import read, told
from abstain.errors import InputError
from abstain.evaluation import Evaluation
from abstain.evaluation import evaluate as evaluate_predictions

#: No option given: every column is looked for under its usual names.
_USUAL, _INTERVALS = Columns(), Intervals()


def evaluate(
    files: Annotated[tuple[Path, ...], Parameter(help="CSV, Parquet, Feather, JSON lines, NPZ")],
    /,
    *,
    columns: Annotated[Columns, Parameter(name="*")] = _USUAL,
    score: Annotated[
        tuple[str, ...], several("a score (default: all; `abstain list scores`)")
    ] = (),
    metric: Annotated[
        tuple[str, ...], several("a metric (default: all; `abstain list metrics`)")
    ] = (),
    loss: Annotated[
        str | None, Parameter(help="what counts as wrong (`abstain list losses`)")
    ] = None,
    intervals: Annotated[Intervals, Parameter(name="*")] = _INTERVALS,
    out: Annotated[
        Path | None, Parameter(help="folder for results.parquet, results.csv and report.html")
    ] = None,
    full: Annotated[bool, Parameter(help="print every metric", negative=())] = False,
) -> None:
    """Evaluate confidence scores on files of predictions.

    Prints a table. With --out it also leaves tables of all numbers and a report to open.
    Values are fractions.
    """
    options = intervals.chosen()
    if columns.group and out is None and not intervals.clustered:
        msg = "--group: shown on the page of --out, or used with --clustered; give one, or drop it"
        raise InputError(msg)
    to = place(out, [*RESULTS, REPORT], files)
    reading = read(files, columns)
    with working("Evaluating"):
        evaluation = evaluate_predictions(
            reading,
            scores=score or None,
            metrics=metric or None,
            loss=loss,
            rng=options.pop("seed"),
            notes=told(reading),
            **options,
        )
    # Files first: whoever reads the table through `head` closes the pipe early.
    left = [] if to is None else to.leave(_files(evaluation, reading.source))
    _print(evaluation, left, full=full)


def _files(evaluation: Evaluation, source: str) -> dict[str, bytes]:
    from abstain.report import html_report
    from abstain.tables.results import result_files

    page = html_report(evaluation, source=source, command=command())
    return {**result_files(evaluation.rows()), REPORT: page.encode()}


def _print(evaluation: Evaluation, left: list[Path], *, full: bool) -> None:
    from abstain.report import terminal_table

    console().print(terminal_table(evaluation, full=full))
    leave_word(left)
