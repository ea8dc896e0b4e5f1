"""Read the confidence scores of a study, and compute losses and calibrated probabilities."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from abstain._foundation.scored import ClassView, Scored
from abstain.calibration import fit_platt
from abstain.errors import AbstainError, FileFormatError, InputError, MissingInputError
from abstain.evaluation import CalibratedScore, calibrate
from abstain.evaluation.comparison import ScoredRun
from abstain.predictions import Predictions, per_sample_loss
from abstain.typing import FloatArray, IntArray
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.selection import to_predictions
from abstain_bench.runs.store import VALIDATION, Run, RunScores, Store
from abstain_bench.runs.studies import Study, StudyLoss, concatenate_scores, studies_of, study_loss

#: Maximum number of samples that remain cached between metrics. A sample needs about 100 bytes.
_MAX_CACHED: Final = 2_000_000


def uses_mean_prediction(method: str) -> bool:
    """Return whether a method evaluates the mean prediction of several passes or networks.

    Added methods never do.
    """
    return method in METHODS and METHODS[method].uses_mean_prediction


class StoredScores:
    """Reads the scores of a store, and caches them until no remaining study needs them.

    `studies` is the sequence of the studies that need scores.
    """

    def __init__(self, store: Store, studies: Sequence[Study]) -> None:
        self.store = store
        self._runs = {(run.arm, run.setting, run.seed): run for run in store.tested_runs}
        self._n_pending_uses = Counter(key for study in studies for key in study.exposures)
        self._read: dict[tuple[str, str], RunScores] = {}

    def run(self, setting: tuple[str, str], seed: int) -> Run | None:
        """Return the run of a setting (arm and label), or None if it was not tested."""
        return self._runs.get((*setting, seed))

    def exposure_scores(self, study: Study, run: Run) -> list[RunScores]:
        """Return the scores of one run for each exposure of a study."""
        missing_keys = [key for key in study.exposures if (run.name, key) not in self._read]
        if missing_keys:
            scores_by_key = self.store.scores_of(run, missing_keys)
            self._read |= {(run.name, key): scores for key, scores in scores_by_key.items()}
        return [self._read[run.name, key] for key in study.exposures]

    def validation(self, run: Run) -> RunScores | None:
        """Return the validation scores of a run, or None if they were not stored."""
        try:
            return self.store.scores(run, VALIDATION)
        except InputError:
            return None

    def scores_by_run(self, study: Study, runs: Iterable[Run]) -> dict[str, RunScores]:
        """Return the scores of runs for a study by run name.

        Raises
        ------
        FileFormatError
            If the runs were tested on different images or in different orders.
        """
        scores_by_run: dict[str, RunScores] = {}
        for run in runs:
            scores = concatenate_scores(study, self.exposure_scores(study, run))
            scores_by_run[run.name] = scores
            first_name, first = next(iter(scores_by_run.items()))
            has_same_labels = np.array_equal(scores.labels, first.labels)
            has_same_images = np.array_equal(scores.source_indices, first.source_indices)
            if not has_same_labels or not has_same_images:
                raise FileFormatError(
                    f"the runs {first_name!r} and {run.name!r} must have been tested on the same "
                    f"pictures of {study.name!r}, in one order; their labels or places differ"
                )
        return scores_by_run

    def release(self, study: Study) -> None:
        """Remove the scores of a study from the cache if no remaining study needs them."""
        self._n_pending_uses.subtract(study.exposures)
        self._read = {
            (run, key): scores
            for (run, key), scores in self._read.items()
            if self._n_pending_uses[key] > 0
        }


class Calibrators:
    """Fits Platt scaling for each method and run when it is first needed."""

    def __init__(self, reading: StoredScores) -> None:
        self._reading = reading
        self._validation: dict[str, RunScores | None] = {}
        self._fitted: dict[tuple[str, str], CalibratedScore | None] = {}

    def validation(self, run: Run, method: str) -> Predictions | None:
        """Return the validation predictions of a method, or None unless all scores are finite."""
        if run.name not in self._validation:
            self._validation[run.name] = self._reading.validation(run)
        scores = self._validation[run.name]
        if scores is None or not np.isfinite(scores.confidence.get(method, np.nan)).all():
            return None
        return to_predictions(scores, [method], uses_mean_prediction=uses_mean_prediction(method))

    def can_calibrate(self, run: Run, method: str) -> bool:
        """Return whether Platt scaling can be fitted for a method."""
        key = (run.name, method)
        if key not in self._fitted:
            validation = self.validation(run, method)
            fitted = None if validation is None else _fit_calibration(method, validation)
            self._fitted[key] = fitted
        return self._fitted[key] is not None

    def apply(self, run: Run, method: str, confidence: FloatArray) -> FloatArray:
        """Convert confidences to probabilities; requires that `can_calibrate` returns True."""
        validation = self.validation(run, method)
        calibrated = self._fitted[run.name, method]
        if validation is None or calibrated is None:
            raise MissingInputError(
                f"{method!r} has no confidences of the validation data of {run.name!r}"
            )
        predictions = Predictions(confidence={method: confidence}, unlabeled=True)
        try:
            probability = calibrated.score(predictions).probability
        except MissingInputError:
            # Some test scores are outside of [0, 1], so the scores are not probabilities.
            platt = fit_platt(validation.confidence[method], per_sample_loss(validation))
            probability = platt.apply(confidence)
        return np.asarray(probability)


def _fit_calibration(method: str, validation: Predictions) -> CalibratedScore | None:
    try:
        return calibrate(method, validation)
    except AbstainError:
        return None


@dataclass(frozen=True, eq=False)
class StudySamples:
    """Computes and caches the losses and the sorted samples of a study.

    Attributes
    ----------
    study : Study
        The study.
    scores : mapping from str to RunScores
        Scores of all exposures of the study by the name of the run.
    calibrators : Calibrators
        Platt scaling of the methods.
    classes : int
        Number of known classes.
    outlier_cost : float
        Cost of an accepted sample of a new class in studies with costs.
    """

    study: Study
    scores: Mapping[str, RunScores]
    calibrators: Calibrators
    classes: int
    outlier_cost: float = 2.0
    _losses: dict[tuple[str, bool], StudyLoss] = field(default_factory=dict)
    _scored: dict[tuple[str, str, bool], Scored] = field(default_factory=dict)

    def missing(self, run: Run, method: str) -> str:
        """Return the reason why a method has no values, or an empty string."""
        scores = self.scores[run.name]
        if method not in scores.confidence:
            return scores.reasons.get(method, f"no confidences for {self.study.name}")
        if not np.isfinite(scores.confidence[method]).all():
            return f"some of its confidences for {self.study.name} are no numbers"
        return ""

    def study_loss(self, run: Run, method: str) -> StudyLoss:
        """Return the losses of the predictions to which the scores of a method refer."""
        is_mean_prediction = uses_mean_prediction(method)
        key = (run.name, is_mean_prediction)
        if key not in self._losses:
            self._losses[key] = study_loss(
                self.study,
                self.scores[run.name],
                uses_mean_prediction=is_mean_prediction,
                outlier_cost=self.outlier_cost,
            )
        return self._losses[key]

    def scored(self, run: Run, method: str) -> Scored:
        """Return the scored samples with unscaled confidences."""
        return self._score_samples(run, method, calibrated=False)

    def calibrated(self, run: Run, method: str) -> Scored:
        """Return the scored samples with confidences that are calibrated to probabilities."""
        return self._score_samples(run, method, calibrated=True)

    def scored_run(
        self,
        seed: int,
        methods: Mapping[str, Run],
        *,
        calibrated: bool = False,
        study: Study | None = None,
    ) -> ScoredRun:
        """Return the scored samples of every method for one seed.

        `study` is the study in the result, which is the study of the samples by default.
        """
        named_study = study or self.study
        first_run = next(iter(methods.values()))
        first_scores = self.scores[first_run.name]
        return ScoredRun(
            data=(("study", named_study.name),),
            run=str(seed),
            scored={
                method: self._score_samples(run, method, calibrated=calibrated)
                for method, run in methods.items()
            },
            sample_names=None,
            labels=first_scores.labels,
            cluster=self._cluster,
            group=first_scores.source_indices,
            # All methods score the same rows of the same files.
            matched_by="name",
        )

    def subset(self, study: Study, rows: slice) -> "StudySamples":
        """Return a subset of the samples as another study."""
        subsets = {name: scores.subset(rows, study.name) for name, scores in self.scores.items()}
        return StudySamples(study, subsets, self.calibrators, self.classes, self.outlier_cost)

    def averaged_parts(self, reading: StoredScores, run: Run) -> list["StudySamples"]:
        """Return the samples of each part of a study, or an empty list without parts."""
        studies = {study.name: study for study in studies_of(reading.store.exposures)}
        parts = []
        start = 0
        for name in self.study.parts:
            n_samples = sum(scores.n for scores in reading.exposure_scores(studies[name], run))
            stop = start + n_samples
            parts.append(self.subset(studies[name], slice(start, stop)))
            start = stop
        return parts

    def clear_large_cache(self) -> None:
        """Clear the cache of sorted samples if it exceeds its maximum size."""
        n_cached = sum(scored.n_rows for scored in self._scored.values())
        if n_cached > _MAX_CACHED:
            self._scored.clear()

    @cached_property
    def _cluster(self) -> IntArray:
        """Integer code that identifies the image of each sample.

        Copies of the same image have the same code.
        """
        source_indices = next(iter(self.scores.values())).source_indices
        return np.unique(source_indices, return_inverse=True)[1].astype(np.int64)

    def _score_samples(self, run: Run, method: str, *, calibrated: bool) -> Scored:
        """Return the samples with the confidences or the calibrated probabilities of a method."""
        key = (run.name, method, calibrated)
        if key in self._scored:
            return self._scored[key]
        scores = self.scores[run.name]
        losses = self.study_loss(run, method)
        prediction = scores.prediction_for(uses_mean_prediction(method))
        confidence = scores.confidence[method]
        probability = None
        if calibrated:
            probability = self.calibrators.apply(run, method, confidence)
            confidence = probability
        class_view = ClassView(scores.labels, prediction, tuple(range(self.classes)))
        self._scored[key] = Scored(
            confidence,
            losses.loss,
            losses.weight,
            probability=probability,
            class_view=class_view,
        )
        return self._scored[key]
