"""`abstain compare`: compare methods on files of predictions, with tests and rankings."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

import abstain as ab
from abstain.cli.console import show_status
from abstain.cli.options import (
    COLUMNS_GROUP,
    DEFAULT_COLUMNS,
    Clustered,
    Columns,
    Files,
    Level,
    Loss,
    Seed,
    repeatable,
)
from abstain.cli.output_folder import (
    PAPER_TABLES,
    REPORT,
    RESULTS,
    check_folder,
    current_command,
    make_files,
    write_and_print,
)
from abstain.cli.predictions import FILENAME, add_split_columns, read_files
from abstain.errors import AbstainError
from abstain.metrics.catalogue import DEFAULT_METRIC

if TYPE_CHECKING:
    from abstain.evaluation import Comparison
    from abstain.tables import Reading


@dataclass(frozen=True, kw_only=True)
class TestOptions:
    """Options of `compare` for significance tests and rankings."""

    test: Annotated[
        Literal["influence", "bootstrap", "permutation"], Parameter(help="Test of the differences")
    ] = "influence"
    level: Level = 0.95
    adjustment: Annotated[
        Literal["holm", "bonferroni", "none"],
        Parameter(help="Adjustment of p-values for the number of pairs"),
    ] = "holm"
    bootstrap: Annotated[
        int, Parameter(help="Number of resamples for rankings and a second test")
    ] = 0
    literature: Annotated[
        bool,
        Parameter(help="Also report the Wilcoxon test on resamples, which is invalid", negative=()),
    ] = False
    ties: Annotated[
        Literal["mean", "min"],
        Parameter(help="Rank of equal methods; published tables use the lowest (min)"),
    ] = "mean"
    margin: Annotated[
        float | None, Parameter(help="Margin of the test that no method is worse than --reference")
    ] = None
    reference: Annotated[
        str | None,
        Parameter(
            help="Method to test against all others (k - 1 comparisons); select it before seeing "
            "the values"
        ),
    ] = None
    clustered: Clustered = False
    seed: Seed = 0


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Options of `compare` for its output."""

    figures: Annotated[
        tuple[Literal["svg", "pdf", "png"], ...],
        repeatable("Format of the figures written to --out"),
    ] = ()
    out: Annotated[Path | None, Parameter(help="Folder for tables and report.html")] = None
    full: Annotated[bool, Parameter(help="Print all tables", negative=())] = False


_TESTS, _OUTPUT = TestOptions(), OutputOptions()


def compare(
    files: Files,
    /,
    *,
    columns: Annotated[Columns, COLUMNS_GROUP] = DEFAULT_COLUMNS,
    score: Annotated[
        tuple[str, ...],
        repeatable("Score (default: the named confidences, otherwise all; `abstain list scores`)"),
    ] = (),
    metric: Annotated[tuple[str, ...], repeatable("Metric (`abstain list metrics`)")] = (
        DEFAULT_METRIC,
    ),
    loss: Loss = None,
    runs_from: Annotated[
        str | None, Parameter(help="Column with the run, or 'filename'; runs are averaged")
    ] = None,
    methods_from: Annotated[
        str | None, Parameter(help="Column with the method (model), or 'filename'")
    ] = None,
    tests: Annotated[TestOptions, Parameter(name="*")] = _TESTS,
    output: Annotated[OutputOptions, Parameter(name="*", group="Output")] = _OUTPUT,
) -> None:
    """Compare methods on the same samples with intervals, tests and rankings.

    The command prints a table. With --out, the command also writes tables of all numbers and a
    report. Values are fractions.
    """
    from abstain.report import comparison_terminal

    has_one_method = methods_from == FILENAME and len(files) < 2
    _check_options(columns, tests, output, has_one_method=has_one_method)
    folder = check_folder(output.out, [*RESULTS, REPORT, *PAPER_TABLES], files)
    split_columns, (runs, methods) = add_split_columns(columns, files, runs_from, methods_from)
    reading = read_files(files, split_columns)
    options = asdict(tests) | {"runs": runs, "methods": methods, "loss": loss}
    with show_status("Comparing"):
        comparison = ab.compare(
            reading,
            scores=_requested_scores(reading, columns, score),
            metrics=metric,
            rng=options.pop("seed"),
            published_test=options.pop("literature"),
            notes=reading.notes,
            **options,
        )
    write_and_print(
        lambda: comparison_terminal(comparison, full=output.full),
        lambda: _make_files(comparison, reading.source, output.figures),
        folder,
    )


def _check_options(
    columns: Columns, tests: TestOptions, output: OutputOptions, *, has_one_method: bool
) -> None:
    """Raise an error if options have no effect."""
    if has_one_method:
        raise AbstainError(
            "--methods-from filename requires one file per method; got one file. Name more files, "
            "or drop it"
        )
    if output.figures and output.out is None:
        raise AbstainError("--figures requires --out, the folder for the figures")
    if columns.group and not tests.clustered:
        raise AbstainError(
            "--group has no effect without --clustered; add --clustered, or drop --group"
        )


def _requested_scores(
    reading: "Reading", columns: Columns, scores: tuple[str, ...]
) -> list[str] | None:
    """Return the names of --score and --confidence, or None for all scores.

    Without --score, the columns of --confidence are compared with all scores of the class scores
    that --logits or --probabilities name.
    """
    confidences: list[str] = []
    if columns.confidence:
        confidences = list(next(iter(reading.values())).confidence or {})
    if scores:
        return list(dict.fromkeys((*scores, *confidences)))
    if columns.logits or columns.probabilities:
        return None
    return confidences or None


def _make_files(
    comparison: "Comparison", source: str, formats: tuple[str, ...]
) -> dict[str, bytes]:
    """Return the contents of the files that --out writes."""
    from abstain.report import comparison_html
    from abstain.report.paper import paper_files

    main_table, *other_tables = comparison.TABLES
    tables = {"results": comparison.rows(main_table)}
    tables |= {name: comparison.rows(name) for name in other_tables}
    page = comparison_html(comparison, source=source, command=current_command())
    files = make_files(tables, page, comparison, formats)
    return {**files, **paper_files(comparison)}
