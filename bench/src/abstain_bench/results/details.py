"""Details of one study: curves, calibration errors, thresholds, and the most extreme images."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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
from abstain.thresholds import DecisionRule, RuleCheck, check
from abstain_bench.results.records import (
    CalibrationRow,
    CurvePoints,
    Extreme,
    ThresholdRow,
)
from abstain_bench.results.samples import StudySamples, uses_mean_prediction
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.store import Run, RunScores

#: Maximum number of points of a curve.
POINTS: Final = 200
#: Number of images of each kind.
EXTREMES: Final = 8


def curve_points(s: Scored, run: Run) -> CurvePoints:
    """Return the curve of selective and generalized risk, thinned."""
    # `thin` may return two more vertices.
    curve = thin(curve_from_groups(s.groups, "selective"), vertices=POINTS - 2)
    coverage, risk = np.asarray(curve.coverage), np.asarray(curve.risk)
    return CurvePoints(coverage, risk, coverage * risk, str(run.seed))


def mean_curve(cases: Sequence[Scored], run: Run) -> CurvePoints:
    """Return the mean of several curves at the same coverages: its area is the mean of theirs."""
    coverage = np.arange(1, POINTS + 1) / POINTS
    curves = [curve_from_groups(s.groups, "selective") for s in cases]
    # The risk is constant below the first vertex, as in the area.
    risks = [np.interp(coverage, np.asarray(c.coverage), np.asarray(c.risk)) for c in curves]
    risk = np.mean(risks, axis=0)
    return CurvePoints(coverage, risk, coverage * risk, str(run.seed))


def extremes_of(
    samples: StudySamples, parts: list[RunScores], run: Run, method: str
) -> Iterator[Extreme]:
    """Yield the most confident failures and the least confident successes of one run."""
    s, scores = samples.scored(run, method), samples.scores[run.name]
    has_weight = np.ones(s.n_rows, bool) if s.weight is None else s.weight > 0
    is_failure = np.asarray(s.loss) > 0
    prediction = scores.prediction_for(uses_mean_prediction(method))
    first_rows = np.cumsum([0, *(part.n for part in parts)])
    sorted_confidence = np.sort(s.confidence[has_weight])
    for kind, confidence, mask in (
        ("overconfident", -s.confidence, has_weight & is_failure),
        ("underconfident", s.confidence, has_weight & ~is_failure),
    ):
        rows = np.flatnonzero(mask)
        lowest = rows[np.argsort(confidence[rows], kind="stable")[:EXTREMES]]
        for rank, row in enumerate(lowest.tolist(), 1):
            part = int(np.searchsorted(first_rows, row, side="right")) - 1
            value = float(s.confidence[row])
            # Half of the ties count as lower.
            n_lower = np.searchsorted(sorted_confidence, value, side="left")
            n_lower_or_equal = np.searchsorted(sorted_confidence, value, side="right")
            yield Extreme(
                study=samples.study.name,
                method=method,
                run=run.name,
                seed=run.seed,
                kind=kind,
                rank=rank,
                exposure=samples.study.exposures[part],
                row=row - int(first_rows[part]),
                label=int(scores.labels[row]),
                prediction=int(prediction[row]),
                confidence=value,
                quantile=float((n_lower + n_lower_or_equal) / 2 / sorted_confidence.size),
            )


def calibration_rows(
    parts: Sequence[StudySamples], study: str, runs: Mapping[str, Sequence[Run]]
) -> Iterator[CalibrationRow]:
    """Yield the calibration error of each method and seed, and the means over the seeds."""
    for method, runs_of_method in runs.items():
        rows = []
        for run in runs_of_method:
            if parts[0].calibrators.can_calibrate(run, method):
                raw = _mean_if_all([_raw_calibration_error(part, run, method) for part in parts])
                platt = [float(compute_ece(part.calibrated(run, method)).value) for part in parts]
                mean_platt = sum(platt) / len(platt)
                rows.append(CalibrationRow(study, method, str(run.seed), raw, mean_platt))
        yield from rows
        if len(rows) > 1:
            raw = _mean_if_all([row.raw for row in rows])
            mean_platt = sum(row.platt for row in rows) / len(rows)
            yield CalibrationRow(study, method, MEAN, raw, mean_platt)


def _raw_calibration_error(samples: StudySamples, run: Run, method: str) -> float | None:
    """Return the calibration error of unscaled confidences; None if they are no probabilities.

    The confidence of a method whose meaning contains "log-odds" is a probability after `expit`.
    That of an added method is a probability if all its values lie in [0, 1].
    """
    s = samples.scored(run, method)
    if method not in METHODS:
        if s.confidence.min() < 0 or s.confidence.max() > 1:
            return None
        probability = s.confidence
    elif "log-odds" in METHODS[method].meaning:
        probability = special.expit(s.confidence)
    else:
        return None
    return float(compute_ece(Scored(probability, s.loss, s.weight, probability)).value)


def _mean_if_all(values: Sequence[float | None]) -> float | None:
    """Return the mean; None if a value is missing."""
    available = [value for value in values if value is not None]
    return sum(available) / len(available) if len(available) == len(values) else None


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Sets the thresholds of methods on validation data, and checks them in each study."""

    risk: float
    delta: float
    level: float
    _rules: dict[tuple[str, str], DecisionRule | None] = field(default_factory=dict)

    def rows(
        self, samples: StudySamples, runs: Mapping[str, Sequence[Run]]
    ) -> Iterator[ThresholdRow]:
        """Yield the rows of one study: for each method and seed, and the means over the seeds."""
        study = samples.study.name
        # A threshold is applied to all images, also to those that the study leaves out.
        all_errors_kept = replace(samples.study, errors="kept")
        all_samples = StudySamples(
            all_errors_kept, samples.scores, samples.calibrators, samples.classes
        )
        for method, runs_of_method in runs.items():
            checks: dict[str, tuple[RuleCheck, ...]] = {}
            for run in runs_of_method:
                rule = self._rule(samples, method, run)
                if rule is not None:
                    confidence = samples.scores[run.name].confidence[method]
                    loss = all_samples.judged(run, method).loss
                    # The confidences of one method have one unit, whatever their range.
                    checks[str(run.seed)] = (
                        check(rule, confidence, loss, name=study, level=self.level, scale="score"),
                    )
            if len(checks) > 1:
                checks[MEAN] = tuple(single for (single,) in checks.values())
            for seed, checks_of_row in checks.items():
                yield ThresholdRow(study, method, seed, self.risk, self.delta, checks_of_row)

    def _rule(self, samples: StudySamples, method: str, run: Run) -> DecisionRule | None:
        """Return the rule of a method in one run; None without valid validation data."""
        key = (run.name, method)
        if key not in self._rules:
            validation = samples.calibrators.validation(run, method)
            self._rules[key] = None
            if validation is not None:
                with suppress(AbstainError):
                    self._rules[key] = set_threshold(
                        validation, score=method, max_risk=self.risk, delta=self.delta
                    )
        return self._rules[key]
