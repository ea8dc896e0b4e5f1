"""`abstain compare`: from files of predictions to differences, rankings and a report."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from abstain.cli.chance import Tests
from abstain.cli.columns import Columns, several
from abstain.cli.console import console, leave_word, working
from abstain.cli.out import REPORT, RESULTS, command, place
from abstain.cli.reading import FILENAME, read, split_by, told
from abstain.errors import AbstainError
from abstain.evaluation import Comparison
from abstain.evaluation import compare as compare_predictions
from abstain.tables import Reading


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What is printed and left behind."""

    figures: Annotated[
        tuple[Literal["svg", "pdf", "png"], ...],
        several("with --out, also leave the figures of the report in this format"),
    ] = ()
    out: Annotated[Path | None, Parameter(help="folder for tables and report.html")] = None
    full: Annotated[bool, Parameter(help="print every table", negative=())] = False


#: No option given: every column is looked for under its usual names.
_USUAL, _TESTS, _OUTPUT = Columns(), Tests(), OutputOptions()


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
    output: Annotated[OutputOptions, Parameter(name="*")] = _OUTPUT,
) -> None:
    """Compare methods on the same samples: differences with intervals, tests, rankings.

    Prints a table. With --out it also leaves tables of all numbers and a report to open.
    Values are fractions.
    """
    _refuse_idle(columns, tests, output, lonely=methods_from == FILENAME and len(files) < 2)
    to = place(output.out, [*RESULTS, REPORT], files)
    asked, (runs, methods) = split_by(columns, files, runs_from, methods_from)
    reading = read(files, asked)
    options = asdict(tests) | {"runs": runs, "methods": methods, "loss": loss}
    with working("Comparing"):
        comparison = compare_predictions(
            reading,
            scores=score or _named(reading, columns),
            metrics=metric,
            rng=options.pop("seed"),
            notes=told(reading),
            **options,
        )
    # Files first: whoever reads the table through `head` closes the pipe early.
    with working("Writing"):
        left = [] if to is None else to.leave(_files(comparison, reading.source, output.figures))
    _print(comparison, left, full=output.full)


def _refuse_idle(columns: Columns, tests: Tests, output: OutputOptions, *, lonely: bool) -> None:
    """Refuse options that nothing would read."""
    if lonely:
        msg = "--methods-from filename needs a file for each method; got one. Name more, or drop it"
        raise AbstainError(msg)
    if output.figures and output.out is None:
        msg = "--figures needs a folder to leave them in: --out"
        raise AbstainError(msg)
    if columns.group and not tests.clustered:
        msg = "--group: without effect but with --clustered; add that, or drop it"
        raise AbstainError(msg)


def _named(reading: Reading, columns: Columns) -> list[str] | None:
    """Return the confidences that were asked for by name, if any."""
    if not columns.confidence:
        return None
    return list(next(iter(reading.values())).confidence or {})


def _files(comparison: Comparison, source: str, formats: tuple[str, ...]) -> dict[str, bytes]:
    from abstain.report import comparison_html
    from abstain.report.files.figures import display_files
    from abstain.report.subjects.comparison.figures import comparison_figures
    from abstain.tables.results import result_files

    files = result_files(comparison.rows("estimates"))
    for table in comparison.TABLES[1:]:
        if rows := comparison.rows(table):
            files |= result_files(rows, table)
    files[REPORT] = comparison_html(comparison, source=source, command=command()).encode()
    if formats:
        files |= display_files(comparison_figures(comparison), formats)
    return files


def _print(comparison: Comparison, left: list[Path], *, full: bool) -> None:
    from abstain.report import comparison_terminal

    console().print(comparison_terminal(comparison, full=full))
    leave_word(left)
