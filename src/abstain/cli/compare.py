"""`abstain compare`: from files of predictions to differences, rankings and a report."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from abstain.cli._console import console, leave_word
from abstain.cli._read import read, split_by
from abstain.cli._words import ARGUMENTS
from abstain.cli.chance import Tests
from abstain.cli.columns import Columns, several
from abstain.evaluation import Comparison
from abstain.evaluation import compare as compare_predictions
from abstain.tables import Reading

#: No option given: every column is looked for under its usual names.
_USUAL, _TESTS = Columns(), Tests()


def compare(
    files: Annotated[tuple[Path, ...], Parameter(help="CSV, Parquet, Feather, JSON lines, NPZ")],
    /,
    *,
    columns: Annotated[Columns, Parameter(name="*")] = _USUAL,
    score: Annotated[
        tuple[str, ...],
        several("a score (default: the confidences named, else all; `abstain list scores`)"),
    ] = (),
    metric: Annotated[tuple[str, ...], several("a metric (`abstain list metrics`)")] = ("augrc",),
    loss: Annotated[
        str | None, Parameter(help="what counts as wrong (`abstain list losses`)")
    ] = None,
    runs_from: Annotated[
        str | None, Parameter(help="column whose values are runs, or 'filename'; runs are averaged")
    ] = None,
    methods_from: Annotated[
        str | None, Parameter(help="column whose values are methods (models), or 'filename'")
    ] = None,
    tests: Annotated[Tests, Parameter(name="*")] = _TESTS,
    figures: Annotated[
        tuple[Literal["svg", "pdf", "png"], ...],
        several("with --out, also leave the figures of the report in this format"),
    ] = (),
    out: Annotated[Path | None, Parameter(help="folder for tables and report.html")] = None,
) -> None:
    """Compare methods on the same samples: differences with intervals, tests, rankings.

    Prints a table. With --out it also leaves tables of all numbers and a report to open.
    Values are fractions.
    """
    asked, (runs, methods) = split_by(columns, files, runs_from, methods_from)
    reading = read(files, asked)
    options = asdict(tests) | {"runs": runs, "methods": methods, "loss": loss}
    comparison = compare_predictions(
        reading,
        scores=score or _named(reading, columns),
        metrics=metric,
        rng=options.pop("seed"),
        notes=reading.notes,
        **options,
    )
    # Files first: whoever reads the table through `head` closes the pipe early.
    left = [] if out is None else _leave(comparison, reading.source, out, figures)
    _print(comparison, left)


def _named(reading: Reading, columns: Columns) -> list[str] | None:
    """Return the confidences that were asked for by name, if any."""
    if not columns.confidence:
        return None
    return list(next(iter(reading.values())).confidence or {})


def _leave(comparison: Comparison, source: str, out: Path, figures: tuple[str, ...]) -> list[Path]:
    from abstain.report import write_comparison, write_figures
    from abstain.tables import write_results

    command = shlex.join(["abstain", *ARGUMENTS.get()])
    left = list(write_results(comparison.rows("estimates"), out))
    for table in comparison.TABLES[1:]:
        rows = comparison.rows(table)
        if rows:
            left += write_results(rows, out, name=table)
    left.append(write_comparison(comparison, out / "report.html", source=source, command=command))
    if figures:
        write_figures(comparison, out / "figures", formats=figures)
        left.append(out / "figures")
    return left


def _print(comparison: Comparison, left: list[Path]) -> None:
    from abstain.report import comparison_terminal

    console().print(comparison_terminal(comparison))
    leave_word(left)
