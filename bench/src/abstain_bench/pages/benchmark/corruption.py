"""What happens to thresholds and values as corruptions grow, and why something is not drawn."""

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
    "Below: all types of corruption together, severity by severity. The column of corruptions in "
    "the main table is the mean over the severities, as in FD-Shifts; “pooled” takes the pictures "
    "of all severities together, which is another number."
)


def corruption_section(board: Leaderboard) -> Iterator[Section]:
    """Return what happens as corruptions grow, where there are several severities or one."""
    if not any(study.severity for study in board.results.studies):
        return
    about = f"Risk and coverage are fractions{over_seeds(board.results.thresholds)}."
    title = "A threshold under growing corruption"
    figures, tables = figure(severities_of(board), "severities", title, about), _tables(board)
    lead = _said(board, drawn=bool(figures), tables=bool(tables))
    blocks = (Prose(lead, "lead"), *figures, *tables, back(TOP))
    yield Section("severities", "Growing corruption", blocks)


def _tables(board: Leaderboard) -> list[Collapsible]:
    """Return methods x severities by each metric, and all together; none of one severity alone."""
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
    """Return how far a threshold is from its promise as corruptions grow, one line a method."""
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
        "A threshold under growing corruption",
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
    """Return the studies of one severity, and clean data, with their place on the axis."""
    return {
        study.name: float(study.severity)
        for study in results.studies
        if study.kind == "iid" or study.severity
    }


def _said(board: Leaderboard, *, drawn: bool, tables: bool) -> str:
    """Say what the figure shows, or why there is none."""
    promise = _promise(board.results)
    folded = f" {_FOLDED}" if tables else ""
    if not drawn:
        return f"{_why_not(board, promise)}{folded}"
    names = board.followed
    return (
        f"A threshold was set on clean validation data {promise}. It does not know of corruptions. "
        "Above the dotted line failures are more than that; coverage is the share still accepted. "
        f"Drawn: {_listed(names)} (the best by rank under corruption, and the baseline "
        f"“{board.baseline}”)."
        f"{_without(board, names)}{_single(board.results)}{folded}"
    )


def _promise(results: BenchmarkResults) -> str:
    """Say what was asked of thresholds."""
    row = next(iter(results.thresholds), None)
    if row is None or math.isnan(row.risk):
        return "to keep failures among the accepted pictures few"
    return (
        f"to keep failures at {format_percent(row.risk)} of the accepted pictures or less (the "
        f"chance of more is at most {format_percent(row.delta)})"
    )


def _why_not(board: Leaderboard, promise: str) -> str:
    if not board.results.thresholds:
        return "No threshold was set, so there is no figure of what one keeps."
    if not board.usable:
        return (
            f"No method has a threshold that could promise on validation data {promise}. So "
            "nothing is drawn; a higher risk (`--risk`) may be attainable."
        )
    if len(_places(board.results)) < 2:
        return "One severity is all that was looked at, so nothing grows."
    return "No threshold accepted anything under corruption, so nothing is drawn."


def _without(board: Leaderboard, names: Sequence[str]) -> str:
    """Name the methods that would be drawn if a threshold of theirs could promise the risk."""
    usable, order = board.usable, board.corrupted
    ahead = order[: order.index(names[-1])] if names[-1] in order else order
    kept = {*ahead, board.baseline} - usable
    gone = [name for name in order if name in kept]
    if not gone:
        return ""
    return f" {_listed(gone)} {'has' if len(gone) == 1 else 'have'} no such threshold."


def _single(results: BenchmarkResults) -> str:
    own = [study.severity for study in results.studies if study.severity]
    return f" Only severity {own[0]} was tested." if len(own) == 1 else ""


def _listed(names: Sequence[str]) -> str:
    """Write up to five names in full, and more as `listed` does."""
    if len(names) > 5 or len(names) < 2:
        return join_quoted(names)
    quoted = [f"“{name}”" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
