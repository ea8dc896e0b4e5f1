"""Data and Vega-Lite specifications of the charts of an evaluation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain.curves.bands import RiskCoverageBand
from abstain.curves.metric_coverage import MetricCoverageCurve
from abstain.curves.reliability import ReliabilityCurve
from abstain.curves.risk_coverage import RiskCoverageCurve, thin
from abstain.evaluation.records import ScoreCurves
from abstain.plots.formatting import format_percent
from abstain.plots.style import RELIABILITY_TITLES, css_variable, dash_pattern
from abstain.report.subjects.evaluation.lookup import ResultLookup
from abstain.typing import Array

#: A JSON object.
Json = dict[str, Any]

#: Maximum number of vertices of one curve and of all curves of a page, and minimum for one curve.
_MAX_VERTICES = 400
_MAX_PAGE_VERTICES = 1_800
_MIN_VERTICES = 40

#: Maximum number of points of all bands of a page, and minimum for one band.
_MAX_PAGE_BAND_POINTS = 500
_MIN_BAND_POINTS = 16
_BAND_DIGITS = 4

#: Maximum number of values for the groups of all cases of a page.
_MAX_PAGE_GROUP_NUMBERS = 20_000

# Significant digits. Thresholds have more digits, because thresholds near 1 are close to each
# other.
_DIGITS = 6
_THRESHOLD_DIGITS = 9


def chart_data(lookup: ResultLookup) -> dict[str, Any]:
    """Return the curve of each split and score for the charts, with fewer points."""
    n_cases = max(len(lookup.cases), 1)
    n_vertices = max(_MIN_VERTICES, min(_MAX_VERTICES, _MAX_PAGE_VERTICES // n_cases))
    n_band_points = max(_MIN_BAND_POINTS, _MAX_PAGE_BAND_POINTS // n_cases)
    level = ""
    cases = []
    for case in lookup.cases.values():
        data = _case_data(case, lookup, n_vertices)
        if case.band is not None and np.isfinite(case.band.low).all():
            data["band"] = _band_data(case.band, n_band_points)
            level = format_percent(case.band.level)
        cases.append(data)
    return {"scores": lookup.scores, "level": level, "cases": cases}


def _case_data(case: ScoreCurves, lookup: ResultLookup, n_vertices: int) -> dict[str, Any]:
    """Return the curves of one split and score as lists that JSON can store."""
    data: dict[str, Any] = {
        "split": lookup.split_index[case.split],
        "score": lookup.score_index[case.score],
        "risk": _round_significant(case.risk, _DIGITS),
        "curve": _risk_coverage_data(case, n_vertices),
    }
    if case.reliability is not None:
        data["reliability"] = _reliability_data(case.reliability)
    max_groups = _MAX_PAGE_GROUP_NUMBERS // (2 * n_vertices * len(lookup.cases))
    if case.group_curves and max_groups:
        thresholds = np.array(data["curve"]["threshold"], dtype=float)
        group_curves = list(case.group_curves.items())[:max_groups]
        data["groups"] = [_group_data(name, curve, thresholds) for name, curve in group_curves]
    if case.cwsa is not None:
        data["cwsa"] = _metric_coverage_data(case.cwsa)
    if case.cwsa_plus is not None:
        data["cwsa_plus"] = _metric_coverage_data(case.cwsa_plus)
    return data


def _risk_coverage_data(case: ScoreCurves, n_vertices: int) -> dict[str, list[Any]]:
    """Return the numbers of accepted samples and failures at the points of a curve.

    The scripts of the page compute coverage and selective risk from these numbers. For weighted
    samples, the result also contains coverage and selective risk.
    """
    thinned = thin(case.selective, vertices=n_vertices)
    data: dict[str, list[Any]] = {
        "threshold": _rounded_list(thinned.thresholds, _THRESHOLD_DIGITS),
        "accepted": [int(v) for v in thinned.accepted],
        "failures": _rounded_list(thinned.failures),
        "usable": [int(v) for v in thinned.usable],
    }
    if not np.allclose(thinned.coverage * case.n, thinned.accepted):
        data["coverage"] = _rounded_list(thinned.coverage)
        data["selective"] = _rounded_list(thinned.risk)
    if case.probabilities is not None:
        # Thresholds decrease.
        index = np.searchsorted(-case.selective.thresholds, -thinned.thresholds)
        data["probability"] = _rounded_list(case.probabilities[index])
    return data


def _group_data(name: str, curve: RiskCoverageCurve, thresholds: Array) -> dict[str, Any]:
    """Return the number of accepted samples of a group and their loss at each threshold."""
    # Both thresholds are rounded in the same way, so that they can be compared.
    group_thresholds = np.array(_rounded_list(curve.thresholds, _THRESHOLD_DIGITS), dtype=float)
    index = np.searchsorted(-group_thresholds, -thresholds, side="right")
    # No sample of the group is accepted above its largest threshold.
    accepted = np.append(0, to_numpy(curve.accepted, "curve"))
    failures = np.append(0, to_numpy(curve.failures, "curve"))
    return {
        "name": name,
        "n": int(accepted[-1]),
        "accepted": [int(v) for v in accepted[index]],
        "failures": _rounded_list(failures[index]),
    }


def _band_data(band: RiskCoverageBand, max_points: int) -> dict[str, list[Any]]:
    """Return the confidence band of the selective risk at some coverages.

    The scripts of the page multiply the band by the coverage for the generalized risk.
    """
    size = band.coverage.size
    indices = np.linspace(0, size - 1, min(max_points, size)).round().astype(np.int64)
    has_simultaneous = band.coverage[indices] >= band.simultaneous_from
    return {
        "coverage": _rounded_list(band.coverage[indices], _BAND_DIGITS),
        "risk": _rounded_list(band.risk[indices], _BAND_DIGITS),
        "low": _rounded_list(band.low[indices], _BAND_DIGITS),
        "high": _rounded_list(band.high[indices], _BAND_DIGITS),
        "low_all": _rounded_list(
            np.where(has_simultaneous, band.low_all[indices], np.nan), _BAND_DIGITS
        ),
        "high_all": _rounded_list(
            np.where(has_simultaneous, band.high_all[indices], np.nan), _BAND_DIGITS
        ),
    }


def _reliability_data(curve: ReliabilityCurve) -> dict[str, list[Any]]:
    is_nonempty = np.flatnonzero(curve.count > 0)
    return {
        "confidence": _rounded_list(curve.confidence[is_nonempty]),
        "accuracy": _rounded_list(curve.accuracy[is_nonempty]),
        "count": [int(v) for v in curve.count[is_nonempty]],
    }


def _metric_coverage_data(curve: MetricCoverageCurve) -> dict[str, list[Any]]:
    is_defined = np.flatnonzero(np.isfinite(curve.value))
    return {
        "threshold": _rounded_list(curve.thresholds[is_defined], _THRESHOLD_DIGITS),
        "coverage": _rounded_list(curve.coverage[is_defined]),
        "value": _rounded_list(curve.value[is_defined]),
    }


def _rounded_list(values: Array, digits: int = _DIGITS) -> list[float | None]:
    return [_round_significant(float(v), digits) for v in values]


def _round_significant(value: float, digits: int) -> float | int | None:
    """Round a number for JSON, and replace NaN and infinite values by None."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded


# ------------------------------------------------------------------------------- specifications
# The specifications are plain JSON (https://vega.github.io/vega-lite/docs). The tests validate the
# specifications against the schema. Colors are CSS variables of the page, so a chart works with the
# light and the dark color scheme and in print.
_HEIGHT = 340
_COVERAGE = "Coverage: share of accepted samples"
_INK, _MUTED, _GRID = "var(--ink)", "var(--muted)", "var(--grid)"
_UNIT_SCALE: Final[Json] = {"domain": [0, 1], "nice": False}
# The page sets `top`, because a high risk of the first few accepted samples would flatten the
# curve.
_RISK_SCALE: Final[Json] = {"zero": True, "nice": True, "domainMax": {"expr": "top"}}
_RELIABILITY_SCALE: Final[Json] = {
    "domain": [-0.03, 1.03],
    "nice": False,
}  # margin for the dots at 0 and 1

#: Name of the layer with the point next to the pointer, to which both selections belong.
_POINTER_LAYER = "dots"

# The mouse wheel without Ctrl and a finger scroll the page. A chart must not capture these
# gestures. The buttons below the chart are an alternative.
_ZOOM = "wheel![event.ctrlKey || event.metaKey]"
_PAN = "[pointerdown[event.pointerType === 'mouse'], window:pointerup] > window:pointermove!"


def _quantitative_channel(field: str, **options: Any) -> Json:
    """Return an encoding channel for numbers."""
    return {"field": field, "type": "quantitative", **options}


def _nominal_channel(field: str, **options: Any) -> Json:
    """Return an encoding channel for names."""
    return {"field": field, "type": "nominal", **options}


def _clipped_mark(kind: str, **style: Any) -> Json:
    """Return a mark that is clipped at the axes."""
    return {"type": kind, "clip": True, **style}


@dataclass(frozen=True)
class _Axes:
    """The axes and the line styles that all layers of a chart share.

    The datasets of a chart contain the fields `x` and `y` and the name of the score. The
    `first_color` is the index of the color of the first score.
    """

    scores: list[str]
    x: Json
    y: Json
    data: str = "curves"
    first_color: int = 0

    def layer(self, mark: Json, *, data: str = "", **channels: Json | list[Json]) -> Json:
        """Return a layer that draws a dataset.

        The `channels` override the shared encodings.
        """
        encoding = {"x": self.x, "y": self.y, "color": self.color, **channels}
        return {"data": {"name": data or self.data}, "mark": mark, "encoding": encoding}

    def line(self, **style: Any) -> Json:
        """Return a layer that connects the points of each score from left to right."""
        order = _quantitative_channel(self.x["field"])
        return self.layer(_clipped_mark("line", **style), strokeDash=self.dashes, order=order)

    def dots(self, fields: tuple[tuple[str, str, str], ...]) -> Json:
        """Return a layer with the point next to the pointer and its tooltip."""
        channels = [
            _quantitative_channel(field, title=title, format=form) for field, title, form in fields
        ]
        opacity = {"condition": {"param": "near", "empty": False, "value": 1}, "value": 0}
        tooltip = [_nominal_channel("score", title="score"), *channels]
        layer = self.layer(
            _clipped_mark("point", filled=True, size=70), opacity=opacity, tooltip=tooltip
        )
        return {"name": _POINTER_LAYER, **layer}

    def reference(self) -> Json:
        """Return a layer with the dotted reference line."""
        x = _quantitative_channel("x", title=self.x["title"])
        y = _quantitative_channel("y", title=self.y["title"])
        mark = _clipped_mark("line", color=_MUTED, strokeWidth=1, strokeDash=[2, 4])
        return {"data": {"name": "reference"}, "mark": mark, "encoding": {"x": x, "y": y}}

    @property
    def color(self) -> Json:
        """Colors of the scores."""
        return self._score_channel([css_variable(i) for i in self._color_indices])

    @property
    def dashes(self) -> Json:
        """Dashes of the scores."""
        return self._score_channel([dash_pattern(i) for i in self._color_indices])

    @property
    def _color_indices(self) -> range:
        return range(self.first_color, self.first_color + len(self.scores))

    def _score_channel(self, styles: Sequence[str | list[int]]) -> Json:
        return _nominal_channel(
            "score", legend=None, scale={"domain": self.scores, "range": styles}
        )


def risk_coverage_chart(
    scores: list[str], *, kind: str, zero_one: bool, level: str = "", first_color: int = 0
) -> Json:
    """Return the risk-coverage chart of the selective or the generalized risk.

    The scripts of the page set the datasets of the chart. The dataset ``curves`` contains coverage,
    risk, threshold, accepted, failures, usable and score. The dataset ``reference`` contains the
    risk y of a random confidence score at the coverage x. The dataset ``selected`` contains
    coverage, risk and score at the threshold of the slider. If there are bands with a confidence
    `level` such as "95%", there are two other datasets. The dataset ``bands`` contains coverage,
    risk_low, risk_high and score of the pointwise bands. The dataset ``edges`` contains coverage,
    risk, end and score of the simultaneous bands.
    """
    y = _quantitative_channel("risk", title=_RISK_TITLES[kind, zero_one], scale=_RISK_SCALE)
    x = _quantitative_channel("coverage", title=_COVERAGE, scale=_UNIT_SCALE)
    axes = _Axes(scores, x, y, first_color=first_color)
    points = axes.layer(_clipped_mark("point", filled=True, shape="circle", size=14, opacity=0.6))
    layers = [
        axes.reference(),
        axes.line(strokeWidth=2, strokeJoin="round"),
        {**points, "transform": [{"filter": "datum.usable"}]},
        *_working_point_layers(axes),
        axes.dots(_TOOLTIPS[kind]),
    ]
    description = _DESCRIPTIONS[kind]
    if not level:
        return _chart(layers, description)
    return _chart(
        [*_band_layers(axes), *layers],
        f"{description} The light areas are {level} confidence bands.",
    )


def _working_point_layers(axes: _Axes) -> list[Json]:
    """Return the layers that mark the threshold of the slider with a point and a vertical line."""
    rule = {
        "data": {"name": "selected"},
        "mark": _clipped_mark("rule", color=_INK, strokeWidth=1, opacity=0.6),
        "encoding": {"x": axes.x},
    }
    return [
        rule,
        axes.layer(_clipped_mark("point", size=110, strokeWidth=2, color=_INK), data="selected"),
    ]


def _band_layers(axes: _Axes) -> list[Json]:
    """Return layers that show the pointwise band as an area and the simultaneous band as lines."""
    area = {
        "data": {"name": "bands"},
        "mark": _clipped_mark("area", opacity={"expr": "band_opacity"}),
        "encoding": {
            "x": axes.x,
            "y": {**axes.y, "field": "risk_low"},
            "y2": {"field": "risk_high"},
            "fill": axes.color,
        },
    }
    edge_mark = _clipped_mark(
        "line", strokeWidth=1, opacity=0.7, strokeDash=[1, 3], strokeCap="round"
    )
    return [
        area,
        axes.layer(
            edge_mark,
            data="edges",
            detail=_nominal_channel("end"),
            order=_quantitative_channel("coverage"),
        ),
    ]


def reliability_chart(scores: list[str], *, first_color: int = 0) -> Json:
    """Return the reliability diagram, which shows accuracy by mean confidence in bins."""
    x, y = (
        _quantitative_channel(field, title=title, scale=_RELIABILITY_SCALE)
        for field, title in zip(("confidence", "accuracy"), RELIABILITY_TITLES, strict=True)
    )
    axes = _Axes(scores, x, y, data="reliability", first_color=first_color)
    size = _quantitative_channel("count", legend=None, scale={"range": [14, 220]})
    layers = [
        axes.reference(),
        # Lines are thin, because the accuracy in small bins varies strongly.
        axes.line(strokeWidth=1.5, opacity=0.45),
        axes.layer(_clipped_mark("circle", opacity=0.9), size=size),
        axes.dots(_TOOLTIPS["reliability"]),
    ]
    return _chart(layers, _DESCRIPTIONS["reliability"])


def metric_coverage_chart(scores: list[str], *, title: str, first_color: int = 0) -> Json:
    """Return a chart of CWSA or CWSA+ by coverage."""
    x = _quantitative_channel("coverage", title=_COVERAGE, scale=_UNIT_SCALE)
    y = _quantitative_channel("value", title=title, scale={"zero": False})
    axes = _Axes(scores, x, y, first_color=first_color)
    layers = [axes.line(strokeWidth=2), axes.dots(_TOOLTIPS["metric"])]
    return _chart(layers, f"{title} by coverage, one line for each score.")


_RISK_TITLES = {
    ("selective", True): "Selective risk: share of wrong accepted answers",
    ("selective", False): "Selective risk: mean loss of accepted samples",
    ("generalized", True): "Generalized risk: share of samples accepted and wrong",
    ("generalized", False): "Generalized risk: accepted loss per sample",
}

_DESCRIPTIONS = {
    "selective": "Selective risk by coverage, one line for each score. Lower is better.",
    "generalized": "Generalized risk by coverage, one line for each score. Lower is better.",
    "reliability": "Accuracy by mean confidence, one line for each score. "
    "A calibrated score lies on the diagonal.",
}

# (field, title, number format)
_RISK_FIELDS = (
    ("threshold", "accept when confidence ≥", ".6~g"),
    ("coverage", "coverage", ".4f"),
    ("risk", "risk", ".5f"),
    ("accepted", "accepted", ","),
    ("failures", "failures among accepted", ",.6~g"),
)
_TOOLTIPS = {
    "selective": _RISK_FIELDS,
    "generalized": _RISK_FIELDS,
    "reliability": (
        ("confidence", "mean confidence", ".4f"),
        ("accuracy", "accuracy", ".4f"),
        ("count", "samples", ","),
    ),
    "metric": (
        ("threshold", "accept when confidence ≥", ".6~g"),
        ("coverage", "coverage", ".4f"),
        ("value", "value", ".4f"),
    ),
}


def _chart(layers: list[Json], description: str) -> Json:
    """Return the chart of the given layers, with the point next to the pointer on top."""
    pointer_selection = {
        "type": "point",
        "on": "pointerover",
        "clear": "pointerout",
        "nearest": True,
    }
    zoom_selection = {"type": "interval", "zoom": _ZOOM, "translate": _PAN}
    return {
        "description": description,
        "width": "container",
        "height": _HEIGHT,
        "layer": layers,
        "params": [
            {"name": "near", "select": pointer_selection, "views": [_POINTER_LAYER]},
            {"name": "zoom", "select": zoom_selection, "bind": "scales", "views": [_POINTER_LAYER]},
            # The page sets the upper limit of the risk axis and the opacity of the bands.
            {"name": "top", "value": 1},
            {"name": "band_opacity", "value": 0.16},
        ],
        "config": _CONFIG,
    }


_CONFIG: Final[Json] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "axis": {
        "labelColor": _MUTED,
        "titleColor": _INK,
        "gridColor": _GRID,
        "domainColor": _GRID,
        "tickColor": _GRID,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "tickCount": 6,
    },
    "view": {"stroke": None},
    "autosize": {"type": "fit-x", "contains": "padding"},
}
