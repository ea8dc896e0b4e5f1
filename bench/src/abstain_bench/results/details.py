"""What one looks at in one study: curves, calibration, thresholds, pictures most wrongly judged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain._foundation.scored import Scored
from abstain.curves import thin
from abstain.curves.risk_coverage import curve_from_groups
from abstain.errors import AbstainError
from abstain.evaluation import set_threshold
from abstain.evaluation.comparison import MEAN
from abstain.metrics.calibration import compute_ece
from abstain.predictions import Predictions
from abstain.thresholds import DecisionRule, RuleCheck, check
from abstain.typing import BoolArray, FloatArray, IntArray
from abstain_bench.results.records import (
    CalibrationRow,
    CurvePoints,
    Extreme,
    ThresholdRow,
)
from abstain_bench.results.samples import StudySamples, averages_of
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.store import Run, RunScores

#: The most points of a curve.
POINTS: Final = 200
#: How many pictures of each kind.
EXTREMES: Final = 8


def curve_points(s: Scored, run: Run) -> CurvePoints:
    """Return the curve of selective and generalized risk, thinned."""
    # `thin` keeps what is high or low in each step of coverage, which may be two more.
    curve = thin(curve_from_groups(s.groups, "selective"), vertices=POINTS - 2)
    coverage, risk = np.asarray(curve.coverage), np.asarray(curve.risk)
    return CurvePoints(coverage, risk, coverage * risk, str(run.seed))


def mean_curve(cases: Sequence[Scored], run: Run) -> CurvePoints:
    """Return the mean of several curves at the same coverages: its area is the mean of theirs."""
    coverage = np.arange(1, POINTS + 1) / POINTS
    curves = [curve_from_groups(s.groups, "selective") for s in cases]
    # Flat below the first vertex, as the area has it.
    each = [np.interp(coverage, np.asarray(c.coverage), np.asarray(c.risk)) for c in curves]
    risk = np.mean(each, axis=0)
    return CurvePoints(coverage, risk, coverage * risk, str(run.seed))


def extremes_of(
    samples: StudySamples, parts: list[RunScores], run: Run, method: str
) -> Iterator[Extreme]:
    """Return the most confident failures and the least confident successes of one run."""
    s, scores = samples.scored(run, method), samples.scores[run.name]
    counts = np.ones(s.n_rows, bool) if s.weight is None else s.weight > 0
    failed = np.asarray(s.loss) > 0
    prediction = scores.prediction_for(averages_of(method))
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


def calibration_rows(
    parts: Sequence[StudySamples], study: str, runs: Mapping[str, Sequence[Run]]
) -> Iterator[CalibrationRow]:
    """Return the calibration error of each method and seed, and the means over the seeds."""
    for method, own in runs.items():
        found = [
            CalibrationRow(study, method, str(run.seed), *_errors(parts, run, method))
            for run in own
            if parts[0].calibrators.there(run, method)
        ]
        yield from found
        if len(found) > 1:
            raw = _mean_if_all([row.raw for row in found])
            platt = sum(row.platt for row in found) / len(found)
            yield CalibrationRow(study, method, MEAN, raw, platt)


def _errors(parts: Sequence[StudySamples], run: Run, method: str) -> tuple[float | None, float]:
    """Return the calibration error as it is and after scaling, means over the parts."""
    raw: list[float | None] = []
    for part in parts:
        plain = part.scored(run, method)
        chance = _as_probability(method, plain.confidence)
        own = None if chance is None else Scored(chance, plain.loss, plain.weight, chance)
        raw.append(None if own is None else _error(own))
    platt = [_error(part.calibrated(run, method)) for part in parts]
    return _mean_if_all(raw), sum(platt) / len(platt)


def _error(s: Scored) -> float:
    """Return the expected calibration error of confidences that are probabilities."""
    return float(compute_ece(s).value)


def _as_probability(method: str, confidence: FloatArray) -> FloatArray | None:
    """Return confidences as the probabilities they are by nature; None where they are none.

    Methods whose confidence is the log-odds of a probability say so in their meaning; one that
    was added is a probability if all it says is.
    """
    if method in METHODS:
        return special.expit(confidence) if "log-odds" in METHODS[method].meaning else None
    inside = confidence.min() >= 0 and confidence.max() <= 1
    return confidence if inside else None


def _mean_if_all(values: Sequence[float | None]) -> float | None:
    """Return the mean, or None where one of them is none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


# --------------------------------------------------------------------- thresholds set beforehand


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Sets the thresholds of methods at a risk and a delta, and looks at what they achieve."""

    risk: float
    delta: float
    level: float
    _rules: dict[tuple[str, str], DecisionRule | None] = field(default_factory=dict)

    def rows(
        self, samples: StudySamples, runs: Mapping[str, Sequence[Run]]
    ) -> Iterator[ThresholdRow]:
        """Return the rows of one study: of each method and seed, and the means."""
        # A threshold meets all pictures: none can be left out for being classified wrongly.
        study = replace(samples.study, errors="kept")
        whole = StudySamples(study, samples.scores, samples.calibrators, samples.classes)
        for method, runs_of_method in runs.items():
            checks = {}
            for run in runs_of_method:
                check_result = self._check(whole, method, run)
                if check_result is not None:
                    checks[str(run.seed)] = check_result
            for seed, check_result in checks.items():
                yield self._row(samples, method, seed, (check_result,))
            if len(checks) > 1:
                yield self._row(samples, method, MEAN, tuple(checks.values()))

    def _row(
        self, samples: StudySamples, method: str, run: str, checks: tuple[RuleCheck, ...]
    ) -> ThresholdRow:
        return ThresholdRow(samples.study.name, method, run, self.risk, self.delta, checks)

    def _check(self, samples: StudySamples, method: str, run: Run) -> RuleCheck | None:
        rule = self._rule(samples, method, run)
        if rule is None:
            return None
        confidence = samples.scores[run.name].confidence[method]
        loss = samples.judged(run, method).loss
        # One method gave both, so they are in one unit, however far the values reach.
        name = samples.study.name
        return check(rule, confidence, loss, name=name, level=self.level, scale="score")

    def _rule(self, samples: StudySamples, method: str, run: Run) -> DecisionRule | None:
        """Return the rule of a method in one run; None where there are no validation data."""
        place = (run.name, method)
        if place not in self._rules:
            known = samples.calibrators.validation(run, method)
            self._rules[place] = None if known is None else self._set(method, known)
        return self._rules[place]

    def _set(self, method: str, known: Predictions) -> DecisionRule | None:
        try:
            return set_threshold(known, score=method, max_risk=self.risk, delta=self.delta)
        except AbstainError:
            return None
