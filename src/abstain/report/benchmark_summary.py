"""From the results of a benchmark to one plain dict: everything the templates print."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from abstain.benchmark.protocol import ERRORS, Study
from abstain.benchmark.results import BenchmarkResults, Extreme
from abstain.plots import chosen
from abstain.plots._drawable import Drawable
from abstain.report.benchmark_facts import benchmark_title, facts_of, findings_said
from abstain.report.benchmark_figures import (
    backbones_of,
    change_of,
    curves_of,
    drawn,
    mean_rows,
    severities_of,
)
from abstain.report.benchmark_grid import (
    Grid,
    baseline,
    grid_of,
    headline,
    mean_ranks,
    ranking_metrics,
)
from abstain.report.benchmark_map import page_map
from abstain.report.benchmark_methods import page_method
from abstain.report.benchmark_parts import backbone_table, calibration_tables, inlier_tables
from abstain.report.benchmark_pictures import Pictures, shown_extremes
from abstain.report.benchmark_studies import (
    shots_of,
    study_about,
    study_table,
    threshold_table,
)
from abstain.report.benchmark_tables import Keys, kind_title, page_grid
from abstain.report.benchmark_verdict import benchmark_verdict
from abstain.report.comparison_svg import inline_svg
from abstain.report.glossary import metric_entries

_MEANS: Final = "Means over the seeds."
_CHANGE: Final = "From AURC to AUGRC: how the ranking changes"
_CHANGE_SAID: Final = (
    "Ranks over all studies. Drawn lines in orange fall from AURC to AUGRC, dashed ones in blue "
    "rise, thin ones stay."
)

_WORDS: Final = {
    "AURC, AUGRC": "times 1000 in all tables, as the literature prints them.",
    "ECE": (
        "of confidences that were calibrated by Platt scaling on validation data, since most "
        "confidences are no probabilities."
    ),
    "Rank": "1 is best; methods with equal values share the mean of their ranks.",
    "†": (
        "not told from the best of its column: the paired test of both on the same samples, "
        "adjusted for the number of pairs. It does not mean equal."
    ),
    "Inlier errors": "; ".join(f"“{name}”: {said}" for name, said in ERRORS.items()) + ".",
    "Threshold": (
        "set on validation data by selection with guaranteed risk (SGR), once for each network; "
        "what it promises holds for data like those only."
    ),
}


def summarize_benchmark(
    results: BenchmarkResults,
    pictures: Pictures | None,
    beside: Sequence[BenchmarkResults],
) -> dict[str, Any]:
    """Return what the templates of the page print; no number is computed here."""
    keys, order = Keys.of(results), drawn(results)
    shared = keys, order, shown_extremes(results), pictures
    whole = {metric: grid_of(results, metric, results.studies) for metric in results.comparisons}
    grids = {metric: grid.only(headline(results)) for metric, grid in whole.items()}
    means = {metric: mean_ranks(results, metric) for metric in grids}
    return {
        "title": benchmark_title(results),
        "verdict": benchmark_verdict(results),
        "facts": facts_of(results),
        "findings": findings_said(results),
        "level": chosen.percent(results.level),
        "tables": [
            page_grid(grid, keys, results.level, means[metric]) for metric, grid in grids.items()
        ],
        "change": _drawn(change_of(results, None), "change", _CHANGE, _CHANGE_SAID),
        "severities": _severities(results, whole, keys, order),
        "inliers": inlier_tables(results, whole, keys),
        "studies": [_study(results, study, grids, shared) for study in headline(results)],
        "methods": [page_method(results, m, grids, keys, means) for m in results.methods],
        "calibration": calibration_tables(results, keys),
        "backbones": _backbones(results, beside),
        "left_out": [{"name": name, "reason": why} for name, why in results.left_out.items()],
        "metrics": metric_entries(list(results.comparisons)),
        "words": [{"title": title, "meaning": said} for title, said in _WORDS.items()],
    }


def _drawn(display: Drawable | None, key: str, title: str, more: str = "") -> dict[str, str] | None:
    """Draw a figure for the page."""
    if display is None:
        return None
    return {
        "key": f"figure-{key}",
        "title": f"{title}.",
        "more": more,
        "svg": inline_svg(display, f"figure-{key}"),
    }


def _study(
    results: BenchmarkResults,
    study: Study,
    grids: Mapping[str, Grid],
    shared: tuple[Keys, Sequence[str], Sequence[Extreme], Pictures | None],
) -> dict[str, Any]:
    """Collect all about one study."""
    keys, order, shown, pictures = shared
    key = keys.studies[study.name]
    base = baseline(results)
    lines = f"The best four methods and the baseline “{base}”, of the first seed."
    figures = [
        _drawn(curves_of(results, study, order), f"{key}-curves", "Risk and coverage", lines),
        _drawn(change_of(results, study), f"{key}-change", _CHANGE),
    ]
    maps = [page_map(results, metric, study) for metric in ranking_metrics(results)]
    return {
        "key": key,
        "title": study.title,
        "kind": kind_title(study.kind),
        "about": study_about(results, study, grids),
        "figures": [figure for figure in figures if figure],
        "table": study_table(study, grids, keys, results.level),
        "maps": [square for square in maps if square],
        "thresholds": threshold_table(results, study, keys),
        "shots": shots_of(results, study, shown, pictures),
    }


def _severities(
    results: BenchmarkResults, grids: Mapping[str, Grid], keys: Keys, order: Sequence[str]
) -> dict[str, Any] | None:
    """Return what happens as corruptions grow; None where there are no severities."""
    studies = [study for study in results.studies if study.severity]
    if not studies:
        return None
    display = severities_of(results, order)
    figure = _drawn(display, "severities", "A threshold under growing corruption", _MEANS)
    first = next(iter(mean_rows(results.thresholds)), None)
    target = "" if first is None or math.isnan(first.risk) else f" of {chosen.percent(first.risk)}"
    said = (
        f"A threshold set on clean validation data for a selective risk{target} does not know of "
        "corruptions. Above the dotted line it answers wrongly more often than promised. Drawn "
        f"are the best four methods under corruption and the baseline “{baseline(results)}”."
    )
    shown = [page_grid(grids[m].only(studies), keys, results.level) for m in grids]
    return {
        "lead": said if figure else "All types of corruption together, severity by severity.",
        "figures": [figure] if figure else [],
        "tables": [table for table in shown if table["studies"]],
    }


def _backbones(
    results: BenchmarkResults, beside: Sequence[BenchmarkResults]
) -> dict[str, Any] | None:
    display = backbones_of(results, beside)
    if display is None:
        return None
    said = (
        f"Filled marks are the baseline “{baseline(results)}”, hollow ones the best method of "
        "each model by that metric. Compare accuracy first: a network that errs less leaves less "
        "to a confidence score."
    )
    figure = _drawn(display, "backbones", "Models side by side", "Values are fractions.")
    return {"lead": said, "figure": figure, "table": backbone_table(display)}
