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
    """Return the line of a selective risk, with a dot at the marked coverage."""
    thinned = thin(curve, vertices=_MAX_VERTICES)
    x, y = (np.asarray(to_numpy(v, "curve"), float) for v in (thinned.coverage, thinned.risk))
    is_drawn = x >= min(_MIN_DRAWN_COVERAGE, float(x[-1]))
    x, y = x[is_drawn], y[is_drawn]
    i = int(np.searchsorted(x, MARKED_COVERAGE).clip(max=x.size - 1))
    return doc.ChartLine(index, tuple(x.tolist()), tuple(y.tolist()), ((float(x[i]), float(y[i])),))


def max_risk(lines: Sequence[doc.ChartLine]) -> float:
    """Return the upper limit of the risk axis."""
    risks = [
        y
        for line in lines
        for x, y in zip(line.x, line.y, strict=True)
        if x >= _MIN_COVERAGE_FOR_AXIS
    ]
    return 1.06 * max(risks, default=0.0) or 1.0


def reliability_line(curve: ReliabilityCurve, index: int) -> doc.ChartLine:
    """Return the accuracy by mean confidence in the bins with enough samples."""
    bins = np.flatnonzero(np.asarray(curve.count) >= MIN_BIN_COUNT)
    x = tuple(np.asarray(curve.confidence, float)[bins].tolist())
    y = tuple(np.asarray(curve.accuracy, float)[bins].tolist())
    return doc.ChartLine(index, x, y, tuple(zip(x, y, strict=True)))
