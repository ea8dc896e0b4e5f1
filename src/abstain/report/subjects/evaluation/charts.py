"""The charts of an evaluation: what they draw, and their Vega-Lite specifications."""

import math
from typing import Any

import numpy as np

from abstain.curves.bands import RiskCoverageBand
from abstain.curves.metric_coverage import MetricCoverageCurve
from abstain.curves.reliability import ReliabilityCurve
from abstain.curves.risk_coverage import RiskCoverageCurve, thin
from abstain.evaluation.records import Case
from abstain.plots.style import BINS, dash, variable
from abstain.plots.words import percent
from abstain.report.subjects.evaluation.lookup import Pivot
from abstain.typing import Array

#: Vertices of one curve at most, and of all curves of a page together.
_VERTICES = 400
_PAGE_BUDGET = 30_000
_FEWEST = 60

#: Coverages of all bands of a page together, and of one band at least.
_BANDS_BUDGET = 12_000
_FEWEST_OF_BAND = 20
_BAND_DIGITS = 4

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


def _case(case: Case, pivot: Pivot, vertices: int) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "split": pivot.split_place[case.split],
        "score": pivot.score_place[case.score],
        "risk": _rounded(case.risk, _DIGITS),
        "curve": _risk_coverage(case.selective, case.generalized, vertices),
    }
    if case.reliability is not None:
        drawn["reliability"] = _reliability(case.reliability)
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
# Colors are the CSS variables of the page, so one drawing serves the light and the dark scheme
# and paper.
_HEIGHT = 340
_COVERAGE = "Coverage: share of samples accepted"
_INK, _MUTED, _GRID = "var(--ink)", "var(--muted)", "var(--grid)"

# A wheel without Ctrl scrolls the page, and a finger scrolls it too: a chart that catches
# either is a trap. The buttons under the chart zoom without both.
_ZOOM = "wheel![event.ctrlKey || event.metaKey]"
_PAN = "[pointerdown[event.pointerType === 'mouse'], window:pointerup] > window:pointermove!"


def risk_coverage(
    scores: list[str], *, kind: str, zero_one: bool, level: str = ""
) -> dict[str, Any]:
    """Return the selective or the generalized risk-coverage chart.

    The datasets ``curves`` (coverage, risk, threshold, accepted, failures, usable, score) and
    ``reference`` (coverage, risk: what accepting everything costs) are set by the page; with
    bands, whose `level` is in words, also ``bands`` (coverage, risk_low, risk_high, score) and
    ``edges`` (coverage, risk, end, score: the band of the whole curve).
    """
    import altair as alt

    y_title = _RISK_TITLES[kind, zero_one]
    base = alt.Chart(alt.NamedData(name="curves")).encode(
        x=alt.X("coverage:Q", title=_COVERAGE, scale=_unit(alt)),
        y=alt.Y("risk:Q", title=y_title, scale=_from_zero(alt)),
        color=_color(alt, scores),
    )
    lines = base.mark_line(strokeWidth=2, clip=True, strokeJoin="round").encode(
        strokeDash=_dashes(alt, scores), order="coverage:Q"
    )
    usable = base.transform_filter("datum.usable").mark_point(
        filled=True, shape="circle", size=14, opacity=0.6, clip=True
    )
    hover = _hover(alt, base, _TOOLTIPS[kind])
    layers = [_reference(alt, _COVERAGE, y_title), lines, usable, *hover]
    said = _DESCRIPTIONS[kind]
    if level:
        layers[:0] = _bands(alt, scores, y_title)
        said = f"{said} The light areas are {level} bands."
    return _finished(alt, alt.layer(*layers), said)


def _bands(alt: Any, scores: list[str], y_title: str) -> list[Any]:
    """Draw the band at each coverage as a light area, that of the whole curve by its edges."""
    x = alt.X("coverage:Q", title=_COVERAGE, scale=_unit(alt))
    scale, color = _from_zero(alt), _color(alt, scores)
    low = alt.Y("risk_low:Q", title=y_title, scale=scale)
    area = (
        alt.Chart(alt.NamedData(name="bands"))
        .mark_area(opacity=alt.ExprRef("veil"), clip=True)
        .encode(x=x, y=low, y2="risk_high:Q", fill=color)
    )
    edges = (
        alt.Chart(alt.NamedData(name="edges"))
        .mark_line(strokeWidth=1, opacity=0.7, strokeDash=[1, 3], strokeCap="round", clip=True)
        .encode(
            x=x,
            y=alt.Y("risk:Q", title=y_title, scale=scale),
            color=color,
            detail="end:N",
            order="coverage:Q",
        )
    )
    return [area, edges]


def reliability(scores: list[str]) -> dict[str, Any]:
    """Return the reliability diagram: observed accuracy against mean confidence, by bin."""
    import altair as alt

    x_title, y_title = BINS
    square = alt.Scale(domain=[-0.03, 1.03], nice=False)  # room for the dots at 0 and 1
    base = alt.Chart(alt.NamedData(name="reliability")).encode(
        x=alt.X("confidence:Q", title=x_title, scale=square),
        y=alt.Y("accuracy:Q", title=y_title, scale=square),
        color=_color(alt, scores),
    )
    # Bins of a few samples jump about: the dots carry the message, the lines only join them.
    lines = base.mark_line(strokeWidth=1.5, opacity=0.45, clip=True).encode(
        strokeDash=_dashes(alt, scores), order="confidence:Q"
    )
    points = base.mark_circle(opacity=0.9, clip=True).encode(
        size=alt.Size("count:Q", legend=None, scale=alt.Scale(range=[14, 220]))
    )
    layers = [
        _reference(alt, x_title, y_title),
        lines,
        points,
        *_hover(alt, base, _TOOLTIPS["reliability"]),
    ]
    return _finished(alt, alt.layer(*layers), _DESCRIPTIONS["reliability"])


def metric_coverage(scores: list[str], *, title: str) -> dict[str, Any]:
    """Return a chart of a threshold metric (CWSA, CWSA+) against the coverage it leaves."""
    import altair as alt

    base = alt.Chart(alt.NamedData(name="curves")).encode(
        x=alt.X("coverage:Q", title=_COVERAGE, scale=_unit(alt)),
        y=alt.Y("value:Q", title=title, scale=alt.Scale(zero=False)),
        color=_color(alt, scores),
    )
    lines = base.mark_line(strokeWidth=2, clip=True).encode(
        strokeDash=_dashes(alt, scores), order="coverage:Q"
    )
    layers = [lines, *_hover(alt, base, _TOOLTIPS["metric"])]
    return _finished(alt, alt.layer(*layers), f"{title} against coverage, one line for each score.")


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


def _unit(alt: Any) -> Any:
    return alt.Scale(domain=[0, 1], nice=False)


def _from_zero(alt: Any) -> Any:
    # `top` is set by the page: a spike at the first few accepted samples would flatten the rest.
    return alt.Scale(zero=True, nice=True, domainMax=alt.ExprRef("top"))


def _color(alt: Any, scores: list[str]) -> Any:
    palette = [variable(i) for i in range(len(scores))]
    return alt.Color("score:N", legend=None, scale=alt.Scale(domain=scores, range=palette))


def _dashes(alt: Any, scores: list[str]) -> Any:
    patterns = [dash(i) for i in range(len(scores))]
    return alt.StrokeDash("score:N", legend=None, scale=alt.Scale(domain=scores, range=patterns))


def _reference(alt: Any, x_title: str, y_title: str) -> Any:
    """Draw the dotted line of what is known without looking; it shares the titles of the axes."""
    return (
        alt.Chart(alt.NamedData(name="reference"))
        .mark_line(color=_MUTED, strokeWidth=1, strokeDash=[2, 4], clip=True)
        .encode(
            x=alt.X("x:Q", title=x_title),
            y=alt.Y("y:Q", title=y_title),
        )
    )


def _hover(alt: Any, base: Any, fields: tuple[tuple[str, str, str], ...]) -> list[Any]:
    near = alt.selection_point(
        name="near", nearest=True, on="pointerover", clear="pointerout", empty=False
    )
    tooltip = [alt.Tooltip("score:N", title="score")] + [
        alt.Tooltip(f"{name}:Q", title=title, format=form) for name, title, form in fields
    ]
    dots = base.mark_point(filled=True, size=70, clip=True).encode(
        opacity=alt.when(near).then(alt.value(1)).otherwise(alt.value(0)), tooltip=tooltip
    )
    return [dots.add_params(near)]


def _finished(alt: Any, chart: Any, description: str) -> dict[str, Any]:
    zoom = alt.selection_interval(name="zoom", bind="scales", zoom=_ZOOM, translate=_PAN)
    chart = chart.properties(width="container", height=_HEIGHT, description=description)
    chart.layer[-1] = chart.layer[-1].add_params(zoom)
    # Set by the page: where the axis ends, and how much one band covers of another.
    ends = (alt.param(name="top", value=1), alt.param(name="veil", value=0.16))
    chart = chart.add_params(*ends).configure(**_config(alt))
    spec: dict[str, Any] = chart.to_dict()
    # The address of the schema is the only URL in it, and nobody asks for it.
    spec.pop("$schema")
    return spec


def _config(alt: Any) -> dict[str, Any]:
    axis = alt.AxisConfig(
        labelColor=_MUTED,
        titleColor=_INK,
        gridColor=_GRID,
        domainColor=_GRID,
        tickColor=_GRID,
        labelFontSize=12,
        titleFontSize=12,
        titleFontWeight="normal",
        titlePadding=10,
        tickCount=6,
    )
    return {
        "background": "transparent",
        "font": "system-ui, sans-serif",
        "axis": axis,
        "view": alt.ViewConfig(stroke=None),
        "autosize": alt.AutoSizeParams(type="fit-x", contains="padding"),
    }
