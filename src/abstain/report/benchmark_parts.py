"""What stands between the tables of a benchmark: new classes three ways, calibration, models."""

import math
from collections.abc import Mapping
from typing import Any, Final

from abstain.benchmark.results import BenchmarkResults, CalibrationRow
from abstain.plots.backbones import BackboneDisplay
from abstain.report.benchmark_grid import NONE, Grid, headline, ranking_metrics
from abstain.report.benchmark_tables import Keys, link, numeral, page_grid, plain_table, words

_INLIERS: Final = (
    "The same pictures, judged in three ways. Removed: wrong answers about known classes are left "
    "out, so that only accepting a new class is a failure. Kept: both are failures. By cost: both "
    "are, and accepting a new class costs more. A method that leads in one need not in the others."
)
_HEADS: Final = {"removed": "errors removed", "kept": "errors kept", "scod": "by cost"}

_CALIBRATION: Final = (
    "Expected calibration error: how far confidences are from the share that is right. As it is, "
    "for confidences that claim to be probabilities; behind the arrow after Platt scaling on "
    "validation data. Shifts break what was calibrated without them. Fractions, means over the "
    "seeds."
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
    return {"lead": _INLIERS, "tables": tables}


def calibration_tables(results: BenchmarkResults, keys: Keys) -> dict[str, Any] | None:
    """Return ECE before and after calibration, methods x studies."""
    rows = [row for row in results.calibration if row.run == "mean"] or list(results.calibration)
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
    return {"lead": _CALIBRATION, "tables": [plain_table(title, title, heads, body)]}


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
