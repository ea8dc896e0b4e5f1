"""The figures of a benchmark: few lines each, chosen by rank, with the baseline beside them."""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Final

from abstain.benchmark.protocol import Study
from abstain.benchmark.results import BenchmarkResults, ThresholdRow
from abstain.benchmark.results.records import MEAN
from abstain.plots import RankingChangeDisplay, Series, SeriesDisplay, chosen
from abstain.plots.backbones import BackboneDisplay, BackboneValue
from abstain.report.benchmark_facts import model_of
from abstain.report.benchmark_grid import (
    NEW,
    at,
    baseline,
    by_rank,
    grid_of,
    headline,
    leaders,
    ranking_metrics,
)
from abstain.report.words import short_title

#: Metrics of the comparison of backbones.
_BACKBONES: Final = ("accuracy", "failure_auroc", "aurc")

#: Lines of a figure, beside that of the baseline.
_LINES: Final = 4

#: The panels of the figure of growing corruption.
_EXCESS, _COVERAGE = "Risk above the target", "Coverage"


def drawn(results: BenchmarkResults) -> tuple[str, ...]:
    """Return all methods that some figure draws, so that each keeps its color on the page."""
    metrics = ranking_metrics(results)
    if not metrics:
        return ()
    names = [name for study in headline(results) for name in leaders(results, metrics[0], study)]
    names += [name for name in shown_by_severity(results) if name not in names]
    return tuple(dict.fromkeys([baseline(results), *names]))


def curves_of(
    results: BenchmarkResults, study: Study, order: Sequence[str]
) -> SeriesDisplay | None:
    """Return risk against coverage of the leaders, the baseline, and a random order."""
    names = leaders(results, ranking_metrics(results)[0], study)
    own = {name: results.curves.get((study.name, name)) for name in names}
    series = tuple(
        Series(name, tuple(curve.coverage.tolist()), tuple(curve.selective_risk.tolist()))
        for name, curve in own.items()
        if curve is not None and len(curve.coverage)
    )
    if not series:
        return None
    # In a random order the selective risk is that of full coverage everywhere.
    full = next((s for s in series if s.name == baseline(results)), series[0])
    return SeriesDisplay(
        series,
        f"Risk and coverage, {study.title}",
        "Coverage (share accepted)",
        "Selective risk",
        log_x=False,
        level={"": full.y[-1]},
        level_name=f"random order ({full.name})",
        order=tuple(order),
    )


def change_of(results: BenchmarkResults, study: Study | None) -> RankingChangeDisplay | None:
    """Return how the ranking changes from AURC to AUGRC; over all studies without one."""
    if not {"aurc", "augrc"} <= set(results.comparisons):
        return None
    before, after = (_ranks(results, metric, study) for metric in ("aurc", "augrc"))
    both = {name: (rank, after[name]) for name, rank in before.items() if name in after}
    if len(both) < 2:
        return None
    return RankingChangeDisplay("aurc", "augrc", both, at(study) if study else None, None)


def _ranks(results: BenchmarkResults, metric: str, study: Study | None) -> dict[str, float]:
    data = None if study is None else at(study)
    found = chosen.standings_in(results.comparisons[metric], metric, data)
    return {standing.method: standing.rank for standing in found}


def severities_of(results: BenchmarkResults, order: Sequence[str]) -> SeriesDisplay | None:
    """Return how far a threshold is from its promise as corruptions grow, one line a method."""
    studies = places_of(results)
    rows = [row for row in mean_rows(results.thresholds) if row.study in studies]
    series = tuple(
        line
        for panel, field in ((_EXCESS, "excess"), (_COVERAGE, "coverage"))
        for name in shown_by_severity(results)
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
        order=tuple(order),
    )


def places_of(results: BenchmarkResults) -> dict[str, float]:
    """Return the studies of one severity, and clean data, with their place on the axis."""
    return {
        study.name: float(study.severity)
        for study in results.studies
        if study.kind == "iid" or study.severity
    }


def shown_by_severity(results: BenchmarkResults) -> list[str]:
    """Return the best methods under corruption that have a threshold, and the baseline."""
    order, base = corruption_order(results), baseline(results)
    usable = with_threshold(results)
    names = [name for name in order if name in usable]
    return list(dict.fromkeys([*names[:_LINES], *([base] if base in names else [])]))


def corruption_order(results: BenchmarkResults) -> list[str]:
    """Return the methods by their rank under all corruptions, or under the strongest one."""
    corrupted = [study for study in results.studies if study.kind == "corruption"]
    metrics = ranking_metrics(results)
    if not corrupted or not metrics:
        return []
    return by_rank(results, metrics[0], min(corrupted, key=lambda s: (s.severity > 0, -s.severity)))


def with_threshold(results: BenchmarkResults) -> set[str]:
    """Return the methods that found a threshold for the target risk with some seed."""
    return {row.method for row in results.thresholds if row.verdict != "unattainable"}


def mean_rows(rows: Iterable[ThresholdRow]) -> list[ThresholdRow]:
    """Return the rows of the means over the seeds, and those of methods with one seed."""
    known = list(rows)
    means = {(row.study, row.method) for row in known if row.run == MEAN}
    return [row for row in known if row.run == MEAN or (row.study, row.method) not in means]


def _line(
    rows: Sequence[ThresholdRow], studies: dict[str, float], panel: str, field: str
) -> Series | None:
    points = sorted((studies[row.study], float(getattr(row, field))) for row in rows)
    known = [(x, y) for x, y in points if not math.isnan(y)]
    if not known:
        return None
    x, y = zip(*known, strict=True)
    return Series(rows[0].method, x, y, panel=panel)


def backbones_of(
    results: BenchmarkResults, beside: Sequence[BenchmarkResults]
) -> BackboneDisplay | None:
    """Return the models of several benchmarks side by side; None for one only."""
    models = _named([results, *beside])
    if len(models) < 2:
        return None
    base = baseline(results)
    values = tuple(
        value
        for metric in _BACKBONES
        for study in headline(results)
        if not (metric == "accuracy" and study.kind in NEW)
        for model, one in models.items()
        if metric in one.comparisons
        for value in _backbone(one, metric, study.name, model, base)
    )
    if not values:
        return None
    return BackboneDisplay(values, f"{base} (baseline)", "Backbones")


def _named(every: Sequence[BenchmarkResults]) -> dict[str, BenchmarkResults]:
    """Return benchmarks by the name of their networks; equal names get a number."""
    models: dict[str, BenchmarkResults] = {}
    for one in every:
        own = model_of(one) or "model"
        names = (own if i == 1 else f"{own} ({i})" for i in itertools.count(1))
        models[next(name for name in names if name not in models)] = one
    return models


def _backbone(
    results: BenchmarkResults, metric: str, name: str, model: str, base: str
) -> list[BackboneValue]:
    studies = [study for study in headline(results) if study.name == name]
    grid = grid_of(results, metric, studies)
    if not grid.studies:
        return []
    own, best = grid.of(studies[0]), grid.standing(0)
    if base not in own or math.isnan(own[base].value):
        return []
    top = own[best[0]].value if best else math.nan
    title = f"{short_title(metric)}\u00a0{grid.arrow}"
    first = best[0] if best else ""
    return [BackboneValue(model, studies[0].title, title, own[base].value, top, first)]
