"""What one looks at: curves, and the pictures that a method is most wrong about."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from abstain._foundation.scored import Scored
from abstain.benchmark.results.records import CurvePoints, Extreme
from abstain.benchmark.results.samples import Samples
from abstain.benchmark.results.settings import averages_of
from abstain.benchmark.runs import Run, RunScores
from abstain.curves import thin
from abstain.curves.risk_coverage import curve_of
from abstain.typing import BoolArray, FloatArray, IntArray

__all__ = ["EXTREMES", "POINTS", "curve_points", "extremes_of", "mean_curve"]

#: The most points of a curve.
POINTS: Final = 200
#: How many pictures of each kind.
EXTREMES: Final = 8


def curve_points(s: Scored, run: Run) -> CurvePoints:
    """Return the curve of selective and generalized risk, thinned."""
    # `thin` keeps what is high or low in each step of coverage, which may be two more.
    curve = thin(curve_of(s.groups, "selective"), vertices=POINTS - 2)
    coverage, risk = np.asarray(curve.coverage), np.asarray(curve.risk)
    return CurvePoints(coverage, risk, coverage * risk, str(run.seed))


def mean_curve(cases: Sequence[Scored], run: Run) -> CurvePoints:
    """Return the mean of several curves at the same coverages: its area is the mean of theirs."""
    coverage = np.arange(1, POINTS + 1) / POINTS
    curves = [curve_of(s.groups, "selective") for s in cases]
    # Flat below the first vertex, as the area has it.
    each = [np.interp(coverage, np.asarray(c.coverage), np.asarray(c.risk)) for c in curves]
    risk = np.mean(each, axis=0)
    return CurvePoints(coverage, risk, coverage * risk, str(run.seed))


def extremes_of(
    samples: Samples, parts: list[RunScores], run: Run, method: str
) -> Iterator[Extreme]:
    """Return the most confident failures and the least confident successes of one run."""
    s, scores = samples.scored(run, method), samples.scores[run.name]
    counts = np.ones(s.n, bool) if s.weight is None else s.weight > 0
    failed = np.asarray(s.loss) > 0
    prediction = scores.predicted(averages_of(method))
    starts = np.cumsum([0, *(part.n for part in parts)])
    known = np.sort(s.confidence[counts])
    for kind, rows in (
        ("overconfident", _first(-s.confidence, counts & failed)),
        ("underconfident", _first(s.confidence, counts & ~failed)),
    ):
        for rank, row in enumerate(rows.tolist(), 1):
            part = int(np.searchsorted(starts, row, side="right")) - 1
            yield Extreme(
                study=samples.study.name,
                method=method,
                run=run.name,
                seed=run.seed,
                kind=kind,
                rank=rank,
                exposure=samples.study.exposures[part],
                row=row - int(starts[part]),
                label=int(scores.labels[row]),
                prediction=int(prediction[row]),
                confidence=float(s.confidence[row]),
                quantile=_quantile(known, float(s.confidence[row])),
            )


def _first(values: FloatArray, among: BoolArray) -> IntArray:
    """Return the rows of the lowest values among some, of equal ones the first."""
    rows = np.flatnonzero(among)
    return rows[np.argsort(values[rows], kind="stable")[:EXTREMES]]


def _quantile(known: FloatArray, value: float) -> float:
    """Return the share that is lower, ties half."""
    below = np.searchsorted(known, value, side="left")
    return float((below + np.searchsorted(known, value, side="right")) / 2 / known.size)
