"""What the charts draw, as columns of plain numbers, once for all charts of the page."""

import math
from typing import Any

import numpy as np

from abstain.curves.bands import RiskCoverageBand
from abstain.curves.metric_coverage import MetricCoverageCurve
from abstain.curves.reliability import ReliabilityCurve
from abstain.curves.risk_coverage import RiskCoverageCurve, thin
from abstain.evaluation.records import Case
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
        "split": pivot.splits.index(case.split),
        "score": pivot.scores.index(case.score),
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
