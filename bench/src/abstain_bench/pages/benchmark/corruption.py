"""Results of thresholds and values by severity of the corruptions."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from abstain.plots import Series, SeriesDisplay
from abstain.plots.formatting import format_percent
from abstain.report.document import Collapsible, Prose, Section, Table
from abstain.report.formatting import join_quoted
from abstain_bench.pages.benchmark.grids import TOP, back, figure, grid_table, head_of
from abstain_bench.pages.benchmark.leaderboard import Grid, Leaderboard, over_seeds
from abstain_bench.results import BenchmarkResults, ThresholdRow

#: The panels of the figure.
_EXCESS, _COVERAGE = "Risk above the target", "Coverage"

_FOLDED: Final = (
    "The tables contain each severity with all types of corruption. The column of corruptions in "
    "the main table is the mean over the severities, as in FD-Shifts; “pooled” ranks the images of "
    "all severities together, which is a different number."
)


def corruption_section(board: Leaderboard) -> Iterator[Section]:
    """Yield the section on the severities of the corruptions, if there are any."""
    if not any(study.severity for study in board.results.studies):
        return
    about = f"Risk and coverage are fractions{over_seeds(board.results.thresholds)}."
    title = "A threshold under increasing corruption"
    figures, tables = figure(severities_of(board), "severities", title, about), _tables(board)
    lead = _said(board, drawn=bool(figures), tables=bool(tables))
    blocks = (Prose(lead, "lead"), *figures, *tables, back(TOP))
    yield Section("severities", "Increasing corruption", blocks)


def _tables(board: Leaderboard) -> list[Collapsible]:
    """Return the tables of methods x severities by metric; none for a single severity."""
    corrupted = [study for study in board.results.studies if study.kind == "corruption"]
    studies = [study for study in corrupted if not study.headline]
    if len(studies) < 2 and len(corrupted) > len(studies):
        return []
    grids = [board.whole(metric).only(studies) for metric in board.results.comparisons]
    return [
        Collapsible(f"{head_of(grid)} by severity, all methods", (_by_severity(board, grid),))
        for grid in grids
        if grid.studies
    ]


def _by_severity(board: Leaderboard, grid: Grid) -> Table:
    table = grid_table(board, grid)
    return replace(table, title=f"{table.title} by severity")


def severities_of(board: Leaderboard) -> SeriesDisplay | None:
    """Return excess risk and coverage of the thresholds by severity, one line per method."""
    studies = _places(board.results)
    rows = [row for row in board.thresholds if row.study in studies]
    series = tuple(
        line
        for panel, field in ((_EXCESS, "excess"), (_COVERAGE, "coverage"))
        for name in board.followed
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
        order=board.drawn,
    )


def _line(
    rows: Sequence[ThresholdRow], studies: dict[str, float], panel: str, field: str
) -> Series | None:
    points = sorted((studies[row.study], float(getattr(row, field))) for row in rows)
    known = [(x, y) for x, y in points if not math.isnan(y)]
    if not known:
        return None
    x, y = zip(*known, strict=True)
    return Series(rows[0].method, x, y, panel=panel)


def _places(results: BenchmarkResults) -> dict[str, float]:
    """Return the severities of the studies with one severity; clean data have severity 0."""
    return {
        study.name: float(study.severity)
        for study in results.studies
        if study.kind == "iid" or study.severity
    }


def _said(board: Leaderboard, *, drawn: bool, tables: bool) -> str:
    """Describe the figure, or the reason for its absence."""
    promise = _promise(board.results)
    folded = f" {_FOLDED}" if tables else ""
    if not drawn:
        return f"{_why_not(board, promise)}{folded}"
    names = board.followed
    return (
        f"The thresholds were set on clean validation data {promise}. Above the dotted line, the "
        "risk exceeds the target; coverage is the share of accepted images. "
        f"Lines: {_listed(names)} (the best by rank under corruption, and the baseline "
        f"“{board.baseline}”)."
        f"{_without(board, names)}{_single(board.results)}{folded}"
    )


def _promise(results: BenchmarkResults) -> str:
    """Describe the target of the thresholds."""
    row = next(iter(results.thresholds), None)
    if row is None or math.isnan(row.risk):
        return "for a low share of failures among the accepted images"
    return (
        f"for a share of failures of at most {format_percent(row.risk)} among the accepted "
        f"images (the probability of exceeding it is at most {format_percent(row.delta)})"
    )


def _why_not(board: Leaderboard, promise: str) -> str:
    if not board.results.thresholds:
        return "No thresholds were set, so there is no figure."
    if not board.usable:
        return (
            f"For no method do the validation data support a threshold {promise}. A higher risk "
            "(`--risk`) may be attainable."
        )
    if len(_places(board.results)) < 2:
        return "Only one severity was evaluated, so there is no figure."
    return "No threshold accepts any image under corruption, so there is no figure."


def _without(board: Leaderboard, names: Sequence[str]) -> str:
    """Name the methods that are missing in the figure because they have no threshold."""
    usable, order = board.usable, board.corrupted
    ahead = order[: order.index(names[-1])] if names[-1] in order else order
    kept = {*ahead, board.baseline} - usable
    gone = [name for name in order if name in kept]
    if not gone:
        return ""
    return f" {_listed(gone)} {'has' if len(gone) == 1 else 'have'} no threshold for this target."


def _single(results: BenchmarkResults) -> str:
    own = [study.severity for study in results.studies if study.severity]
    return f" Only severity {own[0]} was tested." if len(own) == 1 else ""


def _listed(names: Sequence[str]) -> str:
    """Join up to five names; abbreviate longer lists."""
    if len(names) > 5 or len(names) < 2:
        return join_quoted(names)
    quoted = [f"“{name}”" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
