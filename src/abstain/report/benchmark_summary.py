"""From the results of a benchmark to one plain dict: everything the templates print."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from abstain.benchmark.protocol import Study
from abstain.benchmark.results import BenchmarkResults, Extreme
from abstain.plots import chosen
from abstain.plots._drawable import Drawable
from abstain.report.benchmark_facts import benchmark_title, facts_of, findings_said
from abstain.report.benchmark_figures import (
    backbones_of,
    change_of,
    curves_of,
    drawn,
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
from abstain.report.benchmark_severities import severities_said, severity_tables
from abstain.report.benchmark_studies import (
    over_seeds,
    shots_of,
    study_about,
    study_table,
    threshold_table,
)
from abstain.report.benchmark_tables import Keys, kind_title, page_grid
from abstain.report.benchmark_verdict import benchmark_verdict
from abstain.report.benchmark_words import reading_of, words_of
from abstain.report.glossary import metric_entries
from abstain.report.render.svg import inline_svg

_CHANGE: Final = "From AURC to AUGRC: how the ranking changes"
_CHANGE_SAID: Final = "Solid orange lines fall, dashed blue ones rise, thin ones stay."
_CHANGE_ALL: Final = f"By the mean rank over all studies. {_CHANGE_SAID}"
_CURVES: Final = (
    "The share of failures among the accepted, as more and more is accepted; lower is better. The "
    "best four methods and the baseline"
)


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
            {
                **page_grid(grid, keys, results.level, means[metric]),
                "reading": reading_of(metric, kilo=grid.kilo),
            }
            for metric, grid in grids.items()
        ],
        "change": _drawn(change_of(results, None), "change", _CHANGE, _CHANGE_ALL),
        "severities": _severities(results, whole, keys, order),
        "inliers": inlier_tables(results, whole, keys),
        "studies": [_study(results, study, grids, shared) for study in headline(results)],
        "methods": [page_method(results, m, grids, keys, means) for m in results.methods],
        "calibration": calibration_tables(results, keys),
        "backbones": _backbones(results, beside),
        "left_out": [{"name": name, "reason": why} for name, why in results.left_out.items()],
        "metrics": metric_entries(list(results.comparisons)),
        "words": words_of(results),
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
    lines = f"{_CURVES} “{base}”, of the first seed."
    figures = [
        _drawn(curves_of(results, study, order), f"{key}-curves", "Risk and coverage", lines),
        _drawn(change_of(results, study), f"{key}-change", _CHANGE, _CHANGE_SAID),
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
    if not any(study.severity for study in results.studies):
        return None
    display = severities_of(results, order)
    tables = severity_tables(results, grids, keys)
    said = f"Risk and coverage are fractions{over_seeds(results.thresholds)}."
    figure = _drawn(display, "severities", "A threshold under growing corruption", said)
    return {
        "lead": severities_said(results, drawn=bool(figure), tables=bool(tables)),
        "figures": [figure] if figure else [],
        "tables": tables,
    }


def _backbones(
    results: BenchmarkResults, beside: Sequence[BenchmarkResults]
) -> dict[str, Any] | None:
    if not beside:
        return None
    display = backbones_of(results, beside)
    if display is None:
        said = "These benchmarks have no study and metric in common that could be compared."
        return {"lead": said, "figure": None, "table": None}
    said = (
        f"Filled marks are the baseline “{baseline(results)}”, hollow ones the best method of "
        "each model by that metric. Compare accuracy first: a network that errs less leaves less "
        "to a confidence score. Accuracy is shown where all classes are known."
    )
    more = "Values are fractions; the arrow points to where better is."
    figure = _drawn(display, "backbones", "Models side by side", more)
    return {"lead": said, "figure": figure, "table": backbone_table(display)}
