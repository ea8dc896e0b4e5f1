"""Compute curves, calibration errors, thresholds and example images of a study."""

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
#: Number of overconfident images and of underconfident images.
EXTREMES: Final = 8


def curve_points(s: Scored, run: Run) -> CurvePoints:
    """Compute a risk-coverage curve with at most `POINTS` points."""
    # `thin` may return up to two additional vertices.
    curve = thin(curve_from_groups(s.groups, "selective"), vertices=POINTS - 2)
    coverage = np.asarray(curve.coverage)
    risk = np.asarray(curve.risk)
    return CurvePoints(coverage, risk, coverage * risk, str(run.seed))


def mean_curve(cases: Sequence[Scored], run: Run) -> CurvePoints:
    """Average several risk-coverage curves at equal coverages.

    The area under the mean curve is the mean of the areas.
    """
    coverage = np.arange(1, POINTS + 1) / POINTS
    curves = [curve_from_groups(s.groups, "selective") for s in cases]
    # Below the first vertex, the risk is constant, as in the computation of the area.
    risks = [np.interp(coverage, np.asarray(c.coverage), np.asarray(c.risk)) for c in curves]
    risk = np.mean(risks, axis=0)
    return CurvePoints(coverage, risk, coverage * risk, str(run.seed))


def extremes_of(
    samples: StudySamples, parts: list[RunScores], run: Run, method: str
) -> Iterator[Extreme]:
    """Yield the most confident failures and the least confident successes of a run.

    `parts` contains the scores of each exposure of the study.
    """
    s = samples.scored(run, method)
    scores = samples.scores[run.name]
    has_weight = np.ones(s.n_rows, bool) if s.weight is None else s.weight > 0
    is_failure = np.asarray(s.loss) > 0
    prediction = scores.prediction_for(uses_mean_prediction(method))
    first_rows = np.cumsum([0, *(part.n for part in parts)])
    sorted_confidence = np.sort(s.confidence[has_weight])
    for kind, sort_key, mask in (
        ("overconfident", -s.confidence, has_weight & is_failure),
        ("underconfident", s.confidence, has_weight & ~is_failure),
    ):
        rows = np.flatnonzero(mask)
        extreme_rows = rows[np.argsort(sort_key[rows], kind="stable")[:EXTREMES]]
        for rank, row in enumerate(extreme_rows.tolist(), 1):
            exposure_index = int(np.searchsorted(first_rows, row, side="right")) - 1
            confidence = float(s.confidence[row])
            n_lower = np.searchsorted(sorted_confidence, confidence, side="left")
            n_lower_or_equal = np.searchsorted(sorted_confidence, confidence, side="right")
            yield Extreme(
                study=samples.study.name,
                method=method,
                run=run.name,
                seed=run.seed,
                kind=kind,
                rank=rank,
                exposure=samples.study.exposures[exposure_index],
                row=row - int(first_rows[exposure_index]),
                label=int(scores.labels[row]),
                prediction=int(prediction[row]),
                confidence=confidence,
                # Samples with an equal confidence count half.
                quantile=float((n_lower + n_lower_or_equal) / 2 / sorted_confidence.size),
            )


def calibration_rows(
    parts: Sequence[StudySamples], study: str, runs: Mapping[str, Sequence[Run]]
) -> Iterator[CalibrationRow]:
    """Yield the calibration errors of each method and seed, and the means over the seeds.

    Calibration errors are averaged over the parts of the study. Runs without validation data are
    omitted.
    """
    for method, method_runs in runs.items():
        rows = [
            _calibration_row(parts, study, method, run)
            for run in method_runs
            if parts[0].calibrators.can_calibrate(run, method)
        ]
        yield from rows
        if len(rows) > 1:
            mean_raw = _mean_if_all([row.raw for row in rows])
            mean_platt = sum(row.platt for row in rows) / len(rows)
            yield CalibrationRow(study, method, MEAN, mean_raw, mean_platt)


def _calibration_row(
    parts: Sequence[StudySamples], study: str, method: str, run: Run
) -> CalibrationRow:
    """Compute the calibration errors of a method for one seed."""
    raw = _mean_if_all([_raw_calibration_error(part, run, method) for part in parts])
    platt = [float(compute_ece(part.calibrated(run, method)).value) for part in parts]
    return CalibrationRow(study, method, str(run.seed), raw, sum(platt) / len(platt))


def _raw_calibration_error(samples: StudySamples, run: Run, method: str) -> float | None:
    """Compute the calibration error of confidences before Platt scaling.

    Confidences that are log-odds are converted to probabilities. Confidences of added methods are
    probabilities if all confidences are in [0, 1]. The result is None if the confidences are not
    probabilities.
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
    """Return the mean of the values, or None if a value is None."""
    available = [value for value in values if value is not None]
    return sum(available) / len(available) if len(available) == len(values) else None


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Set thresholds of methods on validation data and check these thresholds in studies.

    The thresholds aim at a selective risk of at most `risk` with probability 1 - `delta`.
    """

    risk: float
    delta: float
    level: float
    _rules: dict[tuple[str, str], DecisionRule | None] = field(default_factory=dict)

    def rows(
        self, samples: StudySamples, runs: Mapping[str, Sequence[Run]]
    ) -> Iterator[ThresholdRow]:
        """Yield a row for each method and seed, and a row with means over the seeds."""
        study = samples.study.name
        # A threshold is applied to all images, including images that the study excludes.
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
                    # All confidences of a method have the same scale.
                    checks[str(run.seed)] = (
                        check(rule, confidence, loss, name=study, level=self.level, scale="score"),
                    )
            if len(checks) > 1:
                checks[MEAN] = tuple(single for (single,) in checks.values())
            for seed, checks_of_row in checks.items():
                yield ThresholdRow(study, method, seed, self.risk, self.delta, checks_of_row)

    def _rule(self, samples: StudySamples, method: str, run: Run) -> DecisionRule | None:
        """Return the decision rule of a method in a run, or None without valid validation data."""
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
