"""The charts of an evaluation: what they draw, and their Vega-Lite specifications."""

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
from abstain.plots.style import BINS, dash, variable
from abstain.plots.words import percent
from abstain.report.subjects.evaluation.lookup import Pivot
from abstain.typing import Array

#: What JSON holds under a name.
Json = dict[str, Any]

#: Vertices of one curve at most, and of all curves of a page together.
_VERTICES = 400
_PAGE_BUDGET = 30_000
_FEWEST = 60

#: Coverages of all bands of a page together, and of one band at least.
_BANDS_BUDGET = 12_000
_FEWEST_OF_BAND = 20
_BAND_DIGITS = 4

#: Numbers about the groups of all cases of a page together.
_GROUPS_BUDGET = 300_000

# Drawing needs no more digits; thresholds near 1 are told apart by theirs.
_DIGITS = 6
_THRESHOLD_DIGITS = 9


def chart_data(pivot: Pivot) -> dict[str, Any]:
    """Return the curves of every split and score, thinned, keyed by position."""
    vertices = max(_FEWEST, min(_VERTICES, _PAGE_BUDGET // max(len(pivot.cases), 1)))
    cases = [_case(case, pivot, vertices) for case in pivot.cases.values()]
    level = ""
    coverages = max(_FEWEST_OF_BAND, _BANDS_BUDGET // max(len(pivot.cases), 1))
    for case, drawn in zip(pivot.cases.values(), cases, strict=True):
        if case.band is not None and np.isfinite(case.band.low).all():
            drawn["band"] = _band(case.band, coverages)
            level = percent(case.band.level)
    return {"scores": pivot.scores, "level": level, "cases": cases}


def _case(case: ScoreCurves, pivot: Pivot, vertices: int) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "split": pivot.split_place[case.split],
        "score": pivot.score_place[case.score],
        "risk": _rounded(case.risk, _DIGITS),
        "curve": _risk_coverage(case.selective, case.generalized, vertices),
    }
    if case.reliability is not None:
        drawn["reliability"] = _reliability(case.reliability)
    most = _GROUPS_BUDGET // (2 * vertices * len(pivot.cases))
    if case.group_curves and most:
        at = np.array(drawn["curve"]["threshold"], dtype=float)
        drawn["groups"] = [_group(n, c, at) for n, c in [*case.group_curves.items()][:most]]
    for name, curve in (("cwsa", case.cwsa), ("cwsa_plus", case.cwsa_plus)):
        if curve is not None:
            drawn[name] = _metric_coverage(curve)
    return drawn


def _risk_coverage(
    selective: RiskCoverageCurve, generalized: RiskCoverageCurve, vertices: int
) -> dict[str, list[Any]]:
    """Put both risks on the vertices that the selective curve keeps; both have the same ones."""
    drawn = thin(selective, vertices=vertices)
    kept = np.isin(generalized.thresholds, drawn.thresholds)
    return {
        "threshold": _column(drawn.thresholds, _THRESHOLD_DIGITS),
        "coverage": _column(drawn.coverage),
        "selective": _column(drawn.risk),
        "generalized": _column(generalized.risk[kept]),
        "accepted": [int(v) for v in drawn.accepted],
        "failures": _column(drawn.failures),
        "usable": [int(v) for v in drawn.usable],
    }


def _group(name: str, curve: RiskCoverageCurve, thresholds: Array) -> dict[str, Any]:
    """Return how many of a group are accepted at each threshold, and the loss of these."""
    # Thresholds as they are written: rounded, as those of the group are.
    own = np.array(_column(curve.thresholds, _THRESHOLD_DIGITS), dtype=float)
    place = np.searchsorted(-own, -thresholds, side="right")
    accepted, failures = (
        np.append(0, to_numpy(x, "curve")) for x in (curve.accepted, curve.failures)
    )
    return {
        "name": name,
        "n": int(accepted[-1]),
        "accepted": [int(v) for v in accepted[place]],
        "failures": _column(failures[place]),
    }


def _band(band: RiskCoverageBand, most: int) -> dict[str, list[Any]]:
    """Return the band of the selective risk; that of the generalized risk is coverage times it."""
    size = band.coverage.size
    kept = np.linspace(0, size - 1, min(most, size)).round().astype(np.int64)
    speaks = band.coverage[kept] >= band.simultaneous_from
    return {
        "coverage": _column(band.coverage[kept], _BAND_DIGITS),
        "risk": _column(band.risk[kept], _BAND_DIGITS),
        "low": _column(band.low[kept], _BAND_DIGITS),
        "high": _column(band.high[kept], _BAND_DIGITS),
        "low_all": _column(np.where(speaks, band.low_all[kept], np.nan), _BAND_DIGITS),
        "high_all": _column(np.where(speaks, band.high_all[kept], np.nan), _BAND_DIGITS),
    }


def _reliability(curve: ReliabilityCurve) -> dict[str, list[Any]]:
    filled = np.flatnonzero(curve.count > 0)
    return {
        "confidence": _column(curve.confidence[filled]),
        "accuracy": _column(curve.accuracy[filled]),
        "count": [int(v) for v in curve.count[filled]],
    }


def _metric_coverage(curve: MetricCoverageCurve) -> dict[str, list[Any]]:
    defined = np.flatnonzero(np.isfinite(curve.value))
    return {
        "threshold": _column(curve.thresholds[defined], _THRESHOLD_DIGITS),
        "coverage": _column(curve.coverage[defined]),
        "value": _column(curve.value[defined]),
    }


def _column(values: Array, digits: int = _DIGITS) -> list[float | None]:
    return [_rounded(float(v), digits) for v in values]


def _rounded(value: float, digits: int) -> float | int | None:
    """Shorten a number for JSON, which has no NaN and no infinities."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


# ------------------------------------------------------------------------------- specifications
# Vega-Lite as plain JSON: https://vega.github.io/vega-lite/docs. The tests hold each of them to its
# schema. Colors are the CSS variables of the page, so one drawing serves the light and the dark
# scheme and paper.
_HEIGHT = 340
_COVERAGE = "Coverage: share of samples accepted"
_INK, _MUTED, _GRID = "var(--ink)", "var(--muted)", "var(--grid)"
_UNIT: Final[Json] = {"domain": [0, 1], "nice": False}
# `top` is set by the page: a spike at the first few accepted samples would flatten the rest.
_FROM_ZERO: Final[Json] = {"zero": True, "nice": True, "domainMax": {"expr": "top"}}
_SQUARE: Final[Json] = {"domain": [-0.03, 1.03], "nice": False}  # room for the dots at 0 and 1

#: The name of the layer that the pointer is about, which the two selections belong to.
_DOTS = "dots"

# A wheel without Ctrl scrolls the page, and a finger scrolls it too: a chart that catches
# either is a trap. The buttons under the chart zoom without both.
_ZOOM = "wheel![event.ctrlKey || event.metaKey]"
_PAN = "[pointerdown[event.pointerType === 'mouse'], window:pointerup] > window:pointermove!"


def _number(field: str, **said: Any) -> Json:
    """Return a channel of numbers."""
    return {"field": field, "type": "quantitative", **said}


def _name(field: str, **said: Any) -> Json:
    """Return a channel of names."""
    return {"field": field, "type": "nominal", **said}


def _mark(kind: str, **look: Any) -> Json:
    """Return a mark that ends where the axes end."""
    return {"type": kind, "clip": True, **look}


@dataclass(frozen=True)
class _Axes:
    """What the layers of a chart share: two axes, and a color and dashes for each score.

    A dataset of the page has the fields of `x` and `y`, and the name of the score.
    """

    scores: list[str]
    x: Json
    y: Json
    data: str = "curves"

    def layer(self, mark: Json, *, data: str = "", **channels: Json | list[Json]) -> Json:
        """Draw a dataset in the colors of its scores; channels named here replace the shared."""
        encoding = {"x": self.x, "y": self.y, "color": self.color, **channels}
        return {"data": {"name": data or self.data}, "mark": mark, "encoding": encoding}

    def line(self, **look: Any) -> Json:
        """Join the points of each score from left to right."""
        order = _number(self.x["field"])
        return self.layer(_mark("line", **look), strokeDash=self.dashes, order=order)

    def dots(self, fields: tuple[tuple[str, str, str], ...]) -> Json:
        """Draw the dot next to the pointer, with what is said of it."""
        said = [_number(field, title=title, format=form) for field, title, form in fields]
        near = {"condition": {"param": "near", "empty": False, "value": 1}, "value": 0}
        tooltip = [_name("score", title="score"), *said]
        layer = self.layer(_mark("point", filled=True, size=70), opacity=near, tooltip=tooltip)
        return {"name": _DOTS, **layer}

    def reference(self) -> Json:
        """Draw the dotted line of what is known without looking; it shares titles and scales."""
        x, y = (_number(n, title=axis["title"]) for n, axis in (("x", self.x), ("y", self.y)))
        mark = _mark("line", color=_MUTED, strokeWidth=1, strokeDash=[2, 4])
        return {"data": {"name": "reference"}, "mark": mark, "encoding": {"x": x, "y": y}}

    @property
    def color(self) -> Json:
        """The colors of the scores."""
        return self._by_score([variable(i) for i in range(len(self.scores))])

    @property
    def dashes(self) -> Json:
        """The dashes of the scores."""
        return self._by_score([dash(i) for i in range(len(self.scores))])

    def _by_score(self, looks: Sequence[str | list[int]]) -> Json:
        return _name("score", legend=None, scale={"domain": self.scores, "range": looks})


def risk_coverage(scores: list[str], *, kind: str, zero_one: bool, level: str = "") -> Json:
    """Return the selective or the generalized risk-coverage chart.

    The page sets the datasets ``curves`` (coverage, risk, threshold, accepted, failures, usable,
    score), ``reference`` (coverage, risk: what accepting everything costs) and ``chosen``
    (coverage, risk, score: the working point that its reader has chosen); with bands, whose `level`
    is in words, also ``bands`` (coverage, risk_low, risk_high, score) and ``edges`` (coverage,
    risk, end, score: the band of the whole curve).
    """
    y = _number("risk", title=_RISK_TITLES[kind, zero_one], scale=_FROM_ZERO)
    axes = _Axes(scores, _number("coverage", title=_COVERAGE, scale=_UNIT), y)
    points = axes.layer(_mark("point", filled=True, shape="circle", size=14, opacity=0.6))
    layers = [
        axes.reference(),
        axes.line(strokeWidth=2, strokeJoin="round"),
        {**points, "transform": [{"filter": "datum.usable"}]},
        *_chosen(axes),
        axes.dots(_TOOLTIPS[kind]),
    ]
    said = _DESCRIPTIONS[kind]
    if not level:
        return _chart(layers, said)
    return _chart([*_bands(axes), *layers], f"{said} The light areas are {level} bands.")


def _chosen(axes: _Axes) -> list[Json]:
    """Draw the working point that the reader has chosen: its coverage, and its place."""
    rule = {
        "data": {"name": "chosen"},
        "mark": _mark("rule", color=_INK, strokeWidth=1, opacity=0.6),
        "encoding": {"x": axes.x},
    }
    return [rule, axes.layer(_mark("point", size=110, strokeWidth=2, color=_INK), data="chosen")]


def _bands(axes: _Axes) -> list[Json]:
    """Draw the band at each coverage as a light area, that of the whole curve by its edges."""
    area = {
        "data": {"name": "bands"},
        "mark": _mark("area", opacity={"expr": "veil"}),
        "encoding": {
            "x": axes.x,
            "y": {**axes.y, "field": "risk_low"},
            "y2": {"field": "risk_high"},
            "fill": axes.color,
        },
    }
    look = _mark("line", strokeWidth=1, opacity=0.7, strokeDash=[1, 3], strokeCap="round")
    return [
        area,
        axes.layer(look, data="edges", detail=_name("end"), order=_number("coverage")),
    ]


def reliability(scores: list[str]) -> Json:
    """Return the reliability diagram: observed accuracy against mean confidence, by bin."""
    x, y = (
        _number(field, title=title, scale=_SQUARE)
        for field, title in zip(("confidence", "accuracy"), BINS, strict=True)
    )
    axes = _Axes(scores, x, y, data="reliability")
    size = _number("count", legend=None, scale={"range": [14, 220]})
    layers = [
        axes.reference(),
        # Bins of a few samples jump about: the dots carry the message, the lines only join them.
        axes.line(strokeWidth=1.5, opacity=0.45),
        axes.layer(_mark("circle", opacity=0.9), size=size),
        axes.dots(_TOOLTIPS["reliability"]),
    ]
    return _chart(layers, _DESCRIPTIONS["reliability"])


def metric_coverage(scores: list[str], *, title: str) -> Json:
    """Return a chart of a threshold metric (CWSA, CWSA+) against the coverage it leaves."""
    x = _number("coverage", title=_COVERAGE, scale=_UNIT)
    axes = _Axes(scores, x, _number("value", title=title, scale={"zero": False}))
    layers = [axes.line(strokeWidth=2), axes.dots(_TOOLTIPS["metric"])]
    return _chart(layers, f"{title} against coverage, one line for each score.")


_RISK_TITLES = {
    ("selective", True): "Selective risk: share wrong of the accepted",
    ("selective", False): "Selective risk: mean loss of the accepted",
    ("generalized", True): "Generalized risk: share accepted and wrong",
    ("generalized", False): "Generalized risk: accepted loss per sample",
}

_DESCRIPTIONS = {
    "selective": "Selective risk against coverage, one line for each score. Lower is better.",
    "generalized": "Generalized risk against coverage, one line for each score. Lower is better.",
    "reliability": "Share right against mean confidence, one line for each score. "
    "On the diagonal, confidence means what it says.",
}

# (field, name read by people, number format)
_RISK_FIELDS = (
    ("threshold", "accept when confidence ≥", ".6~g"),
    ("coverage", "coverage", ".4f"),
    ("risk", "risk", ".5f"),
    ("accepted", "accepted", ","),
    ("failures", "failures among them", ",.6~g"),
)
_TOOLTIPS = {
    "selective": _RISK_FIELDS,
    "generalized": _RISK_FIELDS,
    "reliability": (
        ("confidence", "mean confidence", ".4f"),
        ("accuracy", "share right", ".4f"),
        ("count", "samples", ","),
    ),
    "metric": (
        ("threshold", "accept when confidence ≥", ".6~g"),
        ("coverage", "coverage", ".4f"),
        ("value", "value", ".4f"),
    ),
}


def _chart(layers: list[Json], description: str) -> Json:
    """Return the chart of some layers, the last of which is what the pointer is about."""
    near = {"type": "point", "on": "pointerover", "clear": "pointerout", "nearest": True}
    zoom = {"type": "interval", "zoom": _ZOOM, "translate": _PAN}
    return {
        "description": description,
        "width": "container",
        "height": _HEIGHT,
        "layer": layers,
        "params": [
            {"name": "near", "select": near, "views": [_DOTS]},
            {"name": "zoom", "select": zoom, "bind": "scales", "views": [_DOTS]},
            # Set by the page: where the axis ends, and how much one band covers of another.
            {"name": "top", "value": 1},
            {"name": "veil", "value": 0.16},
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
