"""Compute the curves, calibration errors, thresholds and example images of a study."""

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
from abstain.typing import FloatArray
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


def curve_points(scored: Scored, run: Run) -> CurvePoints:
    """Compute a risk-coverage curve with at most `POINTS` points."""
    # `thin` may return two more points than requested.
    curve = thin(curve_from_groups(scored.groups, "selective"), vertices=POINTS - 2)
    coverage = np.asarray(curve.coverage)
    risk = np.asarray(curve.risk)
    return CurvePoints(coverage, risk, coverage * risk, str(run.seed))


def mean_curve(scored_parts: Sequence[Scored], run: Run) -> CurvePoints:
    """Average several risk-coverage curves at the same coverage values.

    The area under the mean curve equals the mean of the individual areas.
    """
    coverage = np.arange(1, POINTS + 1) / POINTS
    risks = []
    for scored in scored_parts:
        curve = curve_from_groups(scored.groups, "selective")
        # `interp` extends the risk at the lowest coverage to 0, as in the computation of the area.
        risks.append(np.interp(coverage, np.asarray(curve.coverage), np.asarray(curve.risk)))
    risk = np.mean(risks, axis=0)
    return CurvePoints(coverage, risk, coverage * risk, str(run.seed))


def extremes_of(
    samples: StudySamples, exposure_scores: list[RunScores], run: Run, method: str
) -> Iterator[Extreme]:
    """Yield the failures with the highest and the successes with the lowest confidence in a run.

    `exposure_scores` contains the scores of each exposure of the study.
    """
    scored = samples.scored(run, method)
    confidence = scored.confidence
    has_weight = np.ones(scored.n_rows, bool) if scored.weight is None else scored.weight > 0
    is_failure = np.asarray(scored.loss) > 0
    candidates = {
        "overconfident": (-confidence, has_weight & is_failure),
        "underconfident": (confidence, has_weight & ~is_failure),
    }
    study_scores = samples.scores[run.name]
    prediction = study_scores.prediction_for(uses_mean_prediction(method))
    first_rows = np.cumsum([0, *(scores.n for scores in exposure_scores)])
    sorted_confidence = np.sort(confidence[has_weight])
    for kind, (sort_key, is_candidate) in candidates.items():
        rows = np.flatnonzero(is_candidate)
        order = np.argsort(sort_key[rows], kind="stable")
        extreme_rows = rows[order[:EXTREMES]].tolist()
        for rank, row in enumerate(extreme_rows, 1):
            exposure_index = int(np.searchsorted(first_rows, row, side="right")) - 1
            yield Extreme(
                study=samples.study.name,
                method=method,
                run=run.name,
                seed=run.seed,
                kind=kind,
                rank=rank,
                exposure=samples.study.exposures[exposure_index],
                row=row - int(first_rows[exposure_index]),
                label=int(study_scores.labels[row]),
                prediction=int(prediction[row]),
                confidence=float(confidence[row]),
                quantile=_quantile(sorted_confidence, float(confidence[row])),
            )


def _quantile(sorted_values: FloatArray, value: float) -> float:
    """Return the fraction of values that are lower, where equal values count as one half."""
    n_lower = np.searchsorted(sorted_values, value, side="left")
    n_lower_or_equal = np.searchsorted(sorted_values, value, side="right")
    return float((n_lower + n_lower_or_equal) / 2 / sorted_values.size)


def calibration_rows(
    parts: Sequence[StudySamples], study: str, runs: Mapping[str, Sequence[Run]]
) -> Iterator[CalibrationRow]:
    """Yield the calibration errors of each method for each seed, and their means over seeds.

    If the study consists of several parts, the errors are averaged over the parts. Runs without
    validation data are omitted.
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
    """Compute the calibration errors of one method for one seed."""
    raw = _mean_if_all([_raw_calibration_error(part, run, method) for part in parts])
    platt = [float(compute_ece(part.calibrated(run, method)).value) for part in parts]
    return CalibrationRow(study, method, str(run.seed), raw, sum(platt) / len(platt))


def _raw_calibration_error(samples: StudySamples, run: Run, method: str) -> float | None:
    """Compute the calibration error before Platt scaling, or None for other scores.

    Log-odds are converted to probabilities. The scores of an added method are regarded as
    probabilities if all are in [0, 1].
    """
    scored = samples.scored(run, method)
    if method not in METHODS:
        if scored.confidence.min() < 0 or scored.confidence.max() > 1:
            return None
        probability = scored.confidence
    elif "log-odds" in METHODS[method].meaning:
        probability = special.expit(scored.confidence)
    else:
        return None
    as_probabilities = Scored(probability, scored.loss, scored.weight, probability)
    return float(compute_ece(as_probabilities).value)


def _mean_if_all(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values, or None if any value is None."""
    available = [value for value in values if value is not None]
    if len(available) < len(values):
        return None
    return sum(available) / len(available)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Decision rules that are fitted on validation data and evaluated on the studies.

    With probability 1 - `delta`, the selective risk of a rule is at most `risk`.
    """

    risk: float
    delta: float
    level: float
    _rules: dict[tuple[str, str], DecisionRule | None] = field(default_factory=dict)

    def rows(
        self, samples: StudySamples, runs: Mapping[str, Sequence[Run]]
    ) -> Iterator[ThresholdRow]:
        """Yield a row for each method and seed, and a row with the means over the seeds."""
        study = samples.study.name
        # A threshold is applied to all images, including images that the study excludes.
        all_samples = StudySamples(
            replace(samples.study, errors="kept"),
            samples.scores,
            samples.calibrators,
            samples.classes,
        )
        for method, runs_of_method in runs.items():
            check_by_seed: dict[str, RuleCheck] = {}
            for run in runs_of_method:
                rule = self._rule(samples, method, run)
                if rule is None:
                    continue
                confidence = samples.scores[run.name].confidence[method]
                loss = all_samples.study_loss(run, method).loss
                # All confidences of a method have the same scale.
                check_by_seed[str(run.seed)] = check(
                    rule, confidence, loss, name=study, level=self.level, scale="score"
                )
            for seed, rule_check in check_by_seed.items():
                yield ThresholdRow(study, method, seed, self.risk, self.delta, (rule_check,))
            if len(check_by_seed) > 1:
                all_checks = tuple(check_by_seed.values())
                yield ThresholdRow(study, method, MEAN, self.risk, self.delta, all_checks)

    def _rule(self, samples: StudySamples, method: str, run: Run) -> DecisionRule | None:
        """Return the decision rule of a method in a run, or None if it cannot be fitted."""
        key = (run.name, method)
        if key in self._rules:
            return self._rules[key]
        rule = None
        validation = samples.calibrators.validation(run, method)
        if validation is not None:
            with suppress(AbstainError):
                rule = set_threshold(validation, score=method, max_risk=self.risk, delta=self.delta)
        self._rules[key] = rule
        return rule
