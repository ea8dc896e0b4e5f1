"""`abstain evaluate`: from files of predictions to numbers, tables and a report."""

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from abstain.cli._console import console
from abstain.cli._words import ARGUMENTS
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
        notes=reading.notes,
    )
    # Files first: whoever reads the table through `head` closes the pipe early.
    left = [] if out is None else _leave(evaluation, reading.source, out)
    _print(evaluation, left, full=full)


def _read(files: tuple[Path, ...], columns: Columns) -> Reading:
    if not files:
        msg = "name at least one file of predictions"
        raise AbstainError(msg)
    options = {k: getattr(columns, k) for k in columns.__dataclass_fields__}
    options["loss"] = options.pop("own_loss")
    for name in ("logits", "probabilities", "unknown_label"):
        options[name] = options[name] or None
    return read_predictions(files[0] if len(files) == 1 else list(files), **options)


def _leave(evaluation: Evaluation, source: str, out: Path) -> list[Path]:
    from abstain.report import write_html
    from abstain.tables import write_results

    command = shlex.join(["abstain", *ARGUMENTS.get()])
    return [
        *write_results(evaluation.rows(), out),
        write_html(evaluation, out / "report.html", source=source, command=command),
    ]


def _print(evaluation: Evaluation, left: list[Path], *, full: bool) -> None:
    from rich.text import Text

    from abstain.plots.visible import visible
    from abstain.report import terminal_table

    console().print(terminal_table(evaluation, full=full))
    if left:
        # A Text, as rich reads markup in a plain string.
        files = Text(visible("Left " + ", ".join(str(path) for path in left)))
        console().print(files, soft_wrap=True)
