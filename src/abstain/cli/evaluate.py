"""`abstain evaluate`: from files of predictions to numbers, tables and a report."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from abstain.cli._console import console
from abstain.cli._words import as_options
from abstain.cli.columns import Columns, several
from abstain.errors import AbstainError
from abstain.evaluation import Evaluation
from abstain.evaluation import evaluate as evaluate_predictions
from abstain.tables import Reading, read_predictions

#: No option given: every column is looked for under its usual names.
_USUAL = Columns()


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
    out: Annotated[
        Path | None, Parameter(help="folder for results.parquet, results.csv and report.html")
    ] = None,
    full: Annotated[bool, Parameter(help="print every metric", negative=())] = False,
) -> None:
    """Evaluate confidence scores on files of predictions.

    Prints a table. With --out it also leaves tables of all numbers and a report to open.
    Values are fractions.
    """
    reading = _read(files, columns)
    evaluation = evaluate_predictions(
        reading,
        scores=score or None,
        metrics=metric or None,
        loss=loss,
        notes=[as_options(note) for note in reading.notes],
    )
    _print(evaluation, full=full)
    if out is not None:
        _leave(evaluation, reading, out)


def _read(files: tuple[Path, ...], columns: Columns) -> Reading:
    if not files:
        msg = "name at least one file of predictions"
        raise AbstainError(msg)
    options = {k: getattr(columns, k) for k in columns.__dataclass_fields__}
    options["loss"] = options.pop("own_loss")
    for name in ("logits", "probabilities", "unknown_label"):
        options[name] = options[name] or None
    return read_predictions(files[0] if len(files) == 1 else list(files), **options)


def _print(evaluation: Evaluation, *, full: bool) -> None:
    from abstain.report.terminal import terminal_table

    console().print(terminal_table(evaluation, full=full))


def _leave(evaluation: Evaluation, reading: Reading, out: Path) -> None:
    from abstain.report import write_html
    from abstain.tables import write_results

    out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["abstain", *sys.argv[1:]])
    paths = [
        *write_results(evaluation.rows(), out),
        write_html(evaluation, out / "report.html", source=reading.source, command=command),
    ]
    console().print("Left " + ", ".join(str(path) for path in paths), soft_wrap=True)
