"""What stands between the tables of a benchmark: new classes three ways, calibration, models."""

import math
from collections.abc import Mapping
from typing import Any, Final

from abstain.benchmark.results import BenchmarkResults, CalibrationRow
from abstain.benchmark.results.records import MEAN
from abstain.plots.backbones import BackboneDisplay
from abstain.report.benchmark_grid import NONE, Grid, headline, ranking_metrics
from abstain.report.benchmark_tables import Keys, link, numeral, page_grid, plain_table, words

_INLIERS: Final = (
    "The same pictures, judged in three ways. Removed: wrong answers about known classes are left "
    "out, so that only accepting a new class is a failure. Kept: both are failures. By cost: both "
    "are, and accepting a new class costs {cost}. A method that leads in one need not in the "
    "others."
)
_HEADS: Final = {"removed": "errors removed", "kept": "errors kept", "scod": "by cost"}

_CALIBRATION: Final = (
    "The expected calibration error (ECE) says how far confidences are from the share of right "
    "answers: 0 is best. Before the arrow it is that of the confidences as they are, behind it "
    "after Platt scaling on validation data; confidences that are no probabilities have the second "
    "only. What was calibrated without a shift need not be under it. Fractions{means}."
)


def inlier_tables(
    results: BenchmarkResults, grids: Mapping[str, Grid], keys: Keys
) -> dict[str, Any] | None:
    """Return the studies of new classes with errors removed, kept and by cost side by side."""
    new = [study for study in results.studies if study.kind in {"new-class", "far-new-class"}]
    if len({study.errors for study in new}) < 2:
        return None
    # Each family of three stands together, under one head that is the title of the first.
    families: dict[tuple[str, ...], list[Any]] = {}
    for study in new:
        families.setdefault(study.exposures, []).append(study)
    order = [study for family in families.values() for study in family]
    tables = []
    for metric in ranking_metrics(results):
        table = page_grid(grids[metric].only(order), keys, results.level)
        shown = [study for study in order if study in grids[metric].studies]
        spans: dict[tuple[str, ...], int] = {}
        for study in shown:
            spans[study.exposures] = spans.get(study.exposures, 0) + 1
        table["spans"] = [
            {"title": families[own][0].title, "size": size} for own, size in spans.items()
        ]
        table["studies"] = [
            {"key": keys.studies.get(s.name, ""), "title": _HEADS.get(s.errors, s.errors)}
            for s in shown
        ]
        tables.append(table)
    cost = results.facts.get("outlier_cost")
    said = f"{cost:g}, an error 1" if isinstance(cost, int | float) else "more"
    return {"lead": _INLIERS.format(cost=said), "tables": tables}


def calibration_tables(results: BenchmarkResults, keys: Keys) -> dict[str, Any] | None:
    """Return ECE before and after calibration, methods x studies."""
    # The mean over the seeds, or where a method has one seed, that.
    rows = sorted(results.calibration, key=lambda row: row.run == MEAN)
    known = {(row.method, row.study): row for row in rows}
    studies = [s for s in headline(results) if any(row.study == s.name for row in rows)]
    methods = [m for m in results.methods if any(row.method == m.name for row in rows)]
    if not studies or not methods:
        return None
    heads = [("Method", False), *((study.title, True) for study in studies)]
    body = [
        [
            link(keys.methods[method.name], method.name, method.title),
            *(_calibrated(known.get((method.name, study.name))) for study in studies),
        ]
        for method in methods
    ]
    title = "ECE as it is → after Platt scaling"
    means = ", means over the seeds" if rows[-1].run == MEAN else ""
    lead = _CALIBRATION.format(means=means)
    return {"lead": lead, "tables": [plain_table(title, title, heads, body)]}


def _calibrated(row: CalibrationRow | None) -> dict[str, Any]:
    if row is None:
        return numeral(math.nan)
    after = NONE if math.isnan(row.platt) else f"{row.platt:.3f}"
    if row.raw is None or math.isnan(row.raw):
        return numeral(row.platt, after)
    return numeral(row.platt, f"{row.raw:.3f} → {after}")


def backbone_table(display: BackboneDisplay) -> dict[str, Any]:
    """Return what the figure of the models draws."""
    heads = [
        ("Metric", False),
        ("Study", False),
        ("Model", False),
        ("Baseline", True),
        ("Best", True),
        ("Best method", False),
    ]
    rows = [
        [
            link("", v.metric),
            words(v.data),
            words(v.model),
            numeral(v.plain),
            numeral(v.best),
            words(v.best_method),
        ]
        for v in display.values
    ]
    title = "Baseline and best method of each model, fractions"
    return plain_table(title, title, heads, rows)
