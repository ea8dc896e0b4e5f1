"""Line charts of an evaluation for risk-coverage curves and reliability diagrams."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain.curves.reliability import ReliabilityCurve
from abstain.curves.risk_coverage import RiskCoverageCurve, thin
from abstain.report import document as doc

#: Coverage at which the curves have a dot.
MARKED_COVERAGE: Final = 0.8
#: Minimum number of samples of a bin of a reliability diagram.
MIN_BIN_COUNT: Final = 20

_MAX_VERTICES: Final = 120
#: The risk of the first accepted samples varies strongly. The lines therefore omit the first
#: samples, and a few further samples do not determine the axis.
_MIN_DRAWN_COVERAGE: Final = 0.02
_MIN_COVERAGE_FOR_AXIS: Final = 0.05


def risk_line(curve: RiskCoverageCurve, index: int) -> doc.ChartLine:
    """Return the line of the selective risk, which has a dot at the coverage `MARKED_COVERAGE`."""
    thinned = thin(curve, vertices=_MAX_VERTICES)
    coverage = np.asarray(to_numpy(thinned.coverage, "curve"), float)
    risk = np.asarray(to_numpy(thinned.risk, "curve"), float)
    is_drawn = coverage >= min(_MIN_DRAWN_COVERAGE, float(coverage[-1]))
    coverage = coverage[is_drawn]
    risk = risk[is_drawn]
    i = min(int(np.searchsorted(coverage, MARKED_COVERAGE)), coverage.size - 1)
    dot = (float(coverage[i]), float(risk[i]))
    return doc.ChartLine(index, tuple(coverage.tolist()), tuple(risk.tolist()), (dot,))


def max_risk(lines: Sequence[doc.ChartLine]) -> float:
    """Return the upper limit of the risk axis of a chart with these lines."""
    risks = [
        y
        for line in lines
        for x, y in zip(line.x, line.y, strict=True)
        if x >= _MIN_COVERAGE_FOR_AXIS
    ]
    return 1.06 * max(risks, default=0.0) or 1.0


def reliability_line(curve: ReliabilityCurve, index: int) -> doc.ChartLine:
    """Return a line of accuracy by mean confidence, for bins with enough samples."""
    bins = np.flatnonzero(np.asarray(curve.count) >= MIN_BIN_COUNT)
    x = tuple(np.asarray(curve.confidence, float)[bins].tolist())
    y = tuple(np.asarray(curve.accuracy, float)[bins].tolist())
    return doc.ChartLine(index, x, y, tuple(zip(x, y, strict=True)))
