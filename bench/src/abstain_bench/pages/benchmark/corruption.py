"""Results of thresholds and values by severity of the corruptions."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from abstain.plots import Series, SeriesDisplay
from abstain.plots.formatting import format_percent
from abstain.report.document import Collapsible, Prose, Section, Table
from abstain.report.formatting import join_quoted
from abstain_bench.pages.benchmark.grids import TOP, back, figure, grid_table, metric_heading
from abstain_bench.pages.benchmark.leaderboard import Grid, Leaderboard, seeds_note
from abstain_bench.results import BenchmarkResults, ThresholdRow

#: The panels of the figure.
_EXCESS, _COVERAGE = "Risk above the target", "Coverage"

_TABLES_NOTE: Final = (
    "The tables contain each severity with all types of corruption. The column of corruptions in "
    "the main table is the mean over the severities, as in FD-Shifts; “pooled” ranks the images of "
    "all severities together, which is a different number."
)


def corruption_section(board: Leaderboard) -> Iterator[Section]:
    """Yield the section on the severities of the corruptions, if there are any."""
    if not any(study.severity for study in board.results.studies):
        return
    description = f"Risk and coverage are fractions{seeds_note(board.results.thresholds)}."
    title = "A threshold under increasing corruption"
    figures, tables = (
        figure(severity_display(board), "severities", title, description),
        _tables(board),
    )
    lead = _introduction(board, has_figure=bool(figures), has_tables=bool(tables))
    blocks = (Prose(lead, "lead"), *figures, *tables, back(TOP))
    yield Section("severities", "Increasing corruption", blocks)


def _tables(board: Leaderboard) -> list[Collapsible]:
    """Return the tables of methods x severities by metric; none for a single severity."""
    corrupted = [study for study in board.results.studies if study.kind == "corruption"]
    studies = [study for study in corrupted if not study.headline]
    if len(studies) < 2 and len(corrupted) > len(studies):
        return []
    grids = [board.full_grid(metric).select(studies) for metric in board.results.comparisons]
    return [
        Collapsible(
            f"{metric_heading(grid)} by severity, all methods", (_by_severity(board, grid),)
        )
        for grid in grids
        if grid.studies
    ]


def _by_severity(board: Leaderboard, grid: Grid) -> Table:
    table = grid_table(board, grid)
    return replace(table, title=f"{table.title} by severity")


def severity_display(board: Leaderboard) -> SeriesDisplay | None:
    """Return excess risk and coverage of the thresholds by severity, one line per method."""
    studies = _severity_by_study(board.results)
    rows = [row for row in board.thresholds if row.study in studies]
    series = tuple(
        line
        for panel, field in ((_EXCESS, "excess"), (_COVERAGE, "coverage"))
        for name in board.threshold_methods
        if (line := _line([row for row in rows if row.method == name], studies, panel, field))
    )
    if len({row.study for row in rows}) < 2 or not series:
        return None
    return SeriesDisplay(
        series,
        "A threshold under increasing corruption",
        "Severity of the corruptions (0: none)",
        "",
        log_x=False,
        level={_EXCESS: 0.0},
        level_name="target",
        order=board.plotted_methods,
    )


def _line(
    rows: Sequence[ThresholdRow], studies: dict[str, float], panel: str, field: str
) -> Series | None:
    points = sorted((studies[row.study], float(getattr(row, field))) for row in rows)
    defined = [(x, y) for x, y in points if not math.isnan(y)]
    if not defined:
        return None
    x, y = zip(*defined, strict=True)
    return Series(rows[0].method, x, y, panel=panel)


def _severity_by_study(results: BenchmarkResults) -> dict[str, float]:
    """Return the severities of the studies with one severity; clean data have severity 0."""
    return {
        study.name: float(study.severity)
        for study in results.studies
        if study.kind == "iid" or study.severity
    }


def _introduction(board: Leaderboard, *, has_figure: bool, has_tables: bool) -> str:
    """Describe the figure, or the reason for its absence."""
    target = _target_text(board.results)
    tables_note = f" {_TABLES_NOTE}" if has_tables else ""
    if not has_figure:
        return f"{_reason_without_figure(board, target)}{tables_note}"
    names = board.threshold_methods
    return (
        f"The thresholds were set on clean validation data {target}. Above the dotted line, the "
        "risk exceeds the target; coverage is the share of accepted images. "
        f"Lines: {_join_names(names)} (the best by rank under corruption, and the baseline "
        f"“{board.baseline}”)."
        f"{_missing_methods(board, names)}{_single_severity(board.results)}{tables_note}"
    )


def _target_text(results: BenchmarkResults) -> str:
    """Describe the target of the thresholds."""
    row = next(iter(results.thresholds), None)
    if row is None or math.isnan(row.risk):
        return "for a low share of failures among the accepted images"
    return (
        f"for a share of failures of at most {format_percent(row.risk)} among the accepted "
        f"images (the probability of exceeding it is at most {format_percent(row.delta)})"
    )


def _reason_without_figure(board: Leaderboard, target: str) -> str:
    if not board.results.thresholds:
        return "No thresholds were set, so there is no figure."
    if not board.methods_with_threshold:
        return (
            f"For no method do the validation data support a threshold {target}. A higher risk "
            "(`--risk`) may be attainable."
        )
    if len(_severity_by_study(board.results)) < 2:
        return "Only one severity was evaluated, so there is no figure."
    return "No threshold accepts any image under corruption, so there is no figure."


def _missing_methods(board: Leaderboard, names: Sequence[str]) -> str:
    """Name the methods that are missing in the figure because they have no threshold."""
    usable, order = board.methods_with_threshold, board.order_under_corruption
    better_methods = order[: order.index(names[-1])] if names[-1] in order else order
    expected = {*better_methods, board.baseline} - usable
    missing = [name for name in order if name in expected]
    if not missing:
        return ""
    verb = "has" if len(missing) == 1 else "have"
    return f" {_join_names(missing)} {verb} no threshold for this target."


def _single_severity(results: BenchmarkResults) -> str:
    severities = [study.severity for study in results.studies if study.severity]
    return f" Only severity {severities[0]} was tested." if len(severities) == 1 else ""


def _join_names(names: Sequence[str]) -> str:
    """Join up to five names; abbreviate longer lists."""
    if len(names) > 5 or len(names) < 2:
        return join_quoted(names)
    quoted = [f"“{name}”" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
