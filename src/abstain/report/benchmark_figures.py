"""The figures of a benchmark: few lines each, chosen by rank, with the baseline beside them."""

import math
from collections.abc import Iterable, Sequence
from typing import Final

from abstain.benchmark.protocol import Study
from abstain.benchmark.results import BenchmarkResults, ThresholdRow
from abstain.plots import RankingChangeDisplay, Series, SeriesDisplay, chosen
from abstain.plots.backbones import BackboneDisplay, BackboneValue
from abstain.report.benchmark_facts import model_of
from abstain.report.benchmark_grid import (
    at,
    baseline,
    grid_of,
    headline,
    leaders,
    ranking_metrics,
)
from abstain.report.words import short_title

#: Metrics of the comparison of backbones.
_BACKBONES: Final = ("accuracy", "failure_auroc", "aurc")

#: The panels of the figure of growing corruption.
_EXCESS, _COVERAGE = "Risk above the target", "Coverage"


def drawn(results: BenchmarkResults) -> tuple[str, ...]:
    """Return all methods that some figure draws, so that each keeps its color on the page."""
    metrics = ranking_metrics(results)
    if not metrics:
        return ()
    names = [name for study in headline(results) for name in leaders(results, metrics[0], study)]
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
    studies = {
        study.name: float(study.severity)
        for study in results.studies
        if study.kind == "iid" or study.severity
    }
    rows = [row for row in mean_rows(results.thresholds) if row.study in studies]
    if len({row.study for row in rows}) < 3:
        return None
    pooled = next(s for s in results.studies if s.kind == "corruption" and not s.severity)
    names = leaders(results, ranking_metrics(results)[0], pooled)
    series = tuple(
        line
        for panel, field in ((_EXCESS, "excess"), (_COVERAGE, "coverage"))
        for name in names
        if (line := _line([row for row in rows if row.method == name], studies, panel, field))
    )
    if not series:
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


def mean_rows(rows: Iterable[ThresholdRow]) -> list[ThresholdRow]:
    """Return the rows of the means over the seeds, or those of the only seed."""
    known = list(rows)
    means = [row for row in known if row.run == "mean"]
    return means or known


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
    models = {f"{model_of(one) or 'model'}": one for one in (results, *beside)}
    if len(models) < 2:
        return None
    base = baseline(results)
    values = tuple(
        value
        for metric in _BACKBONES
        for study in headline(results)
        for model, one in models.items()
        if metric in one.comparisons
        for value in _backbone(one, metric, study.name, model, base)
    )
    if not values:
        return None
    return BackboneDisplay(values, f"{base} (baseline)", "Backbones")


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
    title = short_title(metric)
    first = best[0] if best else ""
    return [BackboneValue(model, studies[0].title, title, own[base].value, top, first)]
