"""The figures of a benchmark: few lines each, chosen by rank, with the baseline beside them."""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Final

from abstain.benchmark.protocol import Study
from abstain.benchmark.results import BenchmarkResults, ThresholdRow
from abstain.benchmark.results.records import MEAN
from abstain.plots import RankingChangeDisplay, Series, SeriesDisplay
from abstain.plots.backbones import BackboneDisplay, BackboneValue
from abstain.plots.drawable import Drawable
from abstain.report.document import NAN, Figure
from abstain.report.subjects.benchmark.facts import model_of
from abstain.report.subjects.benchmark.leaderboard import NEW, Leaderboard, at
from abstain.report.words import listed, percent

#: Lines of a figure, beside that of the baseline.
_LINES: Final = 4

#: The panels of the figure of growing corruption.
_EXCESS, _COVERAGE = "Risk above the target", "Coverage"

_FOLDED: Final = (
    "Below: all types of corruption together, severity by severity. The column of corruptions in "
    "the main table is the mean over the severities, as in FD-Shifts; “pooled” takes the pictures "
    "of all severities together, which is another number."
)

#: Metrics of the comparison of backbones.
_BACKBONES: Final = ("accuracy", "failure_auroc", "aurc")


#: The figure of a change of metric: its title, and how it is read.
CHANGE: Final = "From AURC to AUGRC: how the ranking changes"
CHANGE_SAID: Final = "Solid orange lines fall, dashed blue ones rise, thin ones stay."


def figure(display: Drawable | None, key: str, title: str, about: str) -> list[Figure]:
    """Return a figure of the page, where there is something to draw."""
    return [] if display is None else [Figure(f"figure-{key}", f"{title}.", lambda: display, about)]


def drawn(board: Leaderboard) -> tuple[str, ...]:
    """Return all methods that some figure draws, so that each keeps its color on the page."""
    names = [name for study in board.results.headline for name in board.leaders(study)]
    return tuple(dict.fromkeys([board.baseline, *names, *shown_by_severity(board)]))


def curves_of(board: Leaderboard, study: Study) -> SeriesDisplay | None:
    """Return risk against coverage of the leaders, the baseline, and a random order."""
    own = {name: board.results.curves.get((study.name, name)) for name in board.leaders(study)}
    series = tuple(
        Series(name, tuple(curve.coverage.tolist()), tuple(curve.selective_risk.tolist()))
        for name, curve in own.items()
        if curve is not None and len(curve.coverage)
    )
    if not series:
        return None
    # In a random order the selective risk is that of full coverage everywhere.
    full = next((s for s in series if s.name == board.baseline), series[0])
    return SeriesDisplay(
        series,
        f"Risk and coverage, {study.title}",
        "Coverage (share accepted)",
        "Selective risk",
        log_x=False,
        level={"": full.y[-1]},
        level_name=f"random order ({full.name})",
        order=drawn(board),
    )


def change_of(board: Leaderboard, study: Study | None) -> RankingChangeDisplay | None:
    """Return how the ranking changes from AURC to AUGRC; over all studies without one."""
    metrics = ("aurc", "augrc")
    if not set(metrics) <= set(board.results.comparisons):
        return None
    before, after = (board.ranks(metric, study) for metric in metrics)
    both = {name: (rank, after[name]) for name, rank in before.items() if name in after}
    if len(both) < 2:
        return None
    return RankingChangeDisplay(*metrics, both, at(study) if study else None, None)


def backbones_of(board: Leaderboard, beside: Sequence[Leaderboard]) -> BackboneDisplay | None:
    """Return the models of several benchmarks side by side; None for one only."""
    values = tuple(
        value
        for metric in _BACKBONES
        for study in board.results.headline
        if not (metric == "accuracy" and study.kind in NEW)
        for model, one in _named([board, *beside]).items()
        if metric in one.results.comparisons
        for value in _backbone(one, metric, study.name, model, board.baseline)
    )
    if not beside or not values:
        return None
    return BackboneDisplay(values, f"{board.baseline} (baseline)", "Backbones")


def _named(every: Sequence[Leaderboard]) -> dict[str, Leaderboard]:
    """Return benchmarks by the name of their networks; equal names get a number."""
    models: dict[str, Leaderboard] = {}
    for one in every:
        own = model_of(one.results) or "model"
        names = (own if i == 1 else f"{own} ({i})" for i in itertools.count(1))
        models[next(name for name in names if name not in models)] = one
    return models


def _backbone(
    board: Leaderboard, metric: str, name: str, model: str, base: str
) -> list[BackboneValue]:
    grid = board.grid(metric)
    study = next((study for study in grid.studies if study.name == name), None)
    own = grid.column(study) if study else {}
    if study is None or base not in own or math.isnan(own[base].number.value):
        return []
    best = grid.standing(study)
    top, first = (own[best[0]].number.value, best[0]) if best else (NAN, "")
    arrow = "\u2193" if grid.label.better == "lower" else "\u2191"
    title = f"{grid.label.text}\u00a0{arrow}"
    return [BackboneValue(model, study.title, title, own[base].number.value, top, first)]


def severities_of(board: Leaderboard) -> SeriesDisplay | None:
    """Return how far a threshold is from its promise as corruptions grow, one line a method."""
    studies = _places(board.results)
    rows = [row for row in mean_rows(board.results.thresholds) if row.study in studies]
    series = tuple(
        line
        for panel, field in ((_EXCESS, "excess"), (_COVERAGE, "coverage"))
        for name in shown_by_severity(board)
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
        order=drawn(board),
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


def shown_by_severity(board: Leaderboard) -> list[str]:
    """Return the best methods under corruption that have a threshold, and the baseline."""
    usable = _with_threshold(board.results)
    names = [name for name in corruption_order(board) if name in usable]
    base = board.baseline
    return list(dict.fromkeys([*names[:_LINES], *([base] if base in names else [])]))


def corruption_order(board: Leaderboard) -> list[str]:
    """Return the methods by their rank under all corruptions, or under the strongest one."""
    corrupted = [study for study in board.results.studies if study.kind == "corruption"]
    if not corrupted:
        return []
    return board.order(min(corrupted, key=lambda s: (s.severity > 0, -s.severity)))


def _with_threshold(results: BenchmarkResults) -> set[str]:
    """Return the methods that found a threshold for the target risk with some seed."""
    return {row.method for row in results.thresholds if row.verdict != "unattainable"}


def mean_rows(rows: Iterable[ThresholdRow]) -> list[ThresholdRow]:
    """Return the rows of the means over the seeds, and those of methods with one seed."""
    known = list(rows)
    means = {(row.study, row.method) for row in known if row.run == MEAN}
    return [row for row in known if row.run == MEAN or (row.study, row.method) not in means]


def severities_said(board: Leaderboard, *, drawn: bool, tables: bool) -> str:
    """Say what the figure shows, or why there is none."""
    promise = _promise(board.results)
    folded = f" {_FOLDED}" if tables else ""
    if not drawn:
        return f"{_why_not(board.results, promise)}{folded}"
    names = shown_by_severity(board)
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
        f"to keep failures at {percent(row.risk)} of the accepted pictures or less (the chance of "
        f"more is at most {percent(row.delta)})"
    )


def _why_not(results: BenchmarkResults, promise: str) -> str:
    if not results.thresholds:
        return "No threshold was set, so there is no figure of what one keeps."
    if not _with_threshold(results):
        return (
            f"No method has a threshold that could promise on validation data {promise}. So "
            "nothing is drawn; a higher risk (`--risk`) may be attainable."
        )
    if len(_places(results)) < 2:
        return "One severity is all that was looked at, so nothing grows."
    return "No threshold accepted anything under corruption, so nothing is drawn."


def _without(board: Leaderboard, names: Sequence[str]) -> str:
    """Name the methods that would be drawn if a threshold of theirs could promise the risk."""
    usable, order = _with_threshold(board.results), corruption_order(board)
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
    """Write a few names in full, and more as the house does."""
    if len(names) > 5 or len(names) < 2:
        return listed(names)
    quoted = [f"“{name}”" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
