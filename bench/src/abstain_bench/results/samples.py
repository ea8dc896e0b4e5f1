"""What networks say of a study: read once, judged, and how likely they are right if they say so."""

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
from abstain_bench.runs.studies import Study, StudyLoss, concatenate_scores, study_loss

__all__ = ["Calibrators", "StoredScores", "StudySamples", "averages_of"]

#: What of it is kept from one metric to the next, in samples; each takes about 100 bytes.
_MOST: Final = 2_000_000


def averages_of(method: str) -> bool:
    """Tell whether a method judges the averaged prediction; one that was added does not."""
    return method in METHODS and METHODS[method].uses_mean_prediction


class StoredScores:
    """The scores of a store, kept no longer than studies, which come in their order, need them."""

    def __init__(self, store: Store, studies: Sequence[Study]) -> None:
        self.store = store
        self._runs = {(run.arm, run.setting, run.seed): run for run in store.tested_runs}
        self._asked = Counter(key for study in studies for key in study.exposures)
        self._read: dict[tuple[str, str], RunScores] = {}

    def run(self, place: tuple[str, str], seed: int) -> Run | None:
        """Return the run of an arm, setting and seed; None where it was not tested."""
        return self._runs.get((*place, seed))

    def parts(self, study: Study, run: Run) -> list[RunScores]:
        """Return what a run says of each exposure of a study."""
        lacking = [key for key in study.exposures if (run.name, key) not in self._read]
        if lacking:
            found = self.store.scores_of(run, lacking)
            self._read |= {(run.name, key): own for key, own in found.items()}
        return [self._read[run.name, key] for key in study.exposures]

    def validation(self, run: Run) -> RunScores | None:
        """Return what a run says of the validation pictures; None where that was not kept."""
        try:
            return self.store.scores(run, VALIDATION)
        except InputError:
            return None

    def study(self, study: Study, runs: Iterable[Run]) -> dict[str, RunScores]:
        """Return what runs say of a study, by their names: of the same pictures all."""
        found: dict[str, RunScores] = {}
        for run in runs:
            own = found[run.name] = concatenate_scores(study, self.parts(study, run))
            first_name, first = next(iter(found.items()))
            same = np.array_equal(own.labels, first.labels)
            if not same or not np.array_equal(own.source_indices, first.source_indices):
                raise FileFormatError(
                    f"the runs {first_name!r} and {run.name!r} must have been tested on the same "
                    f"pictures of {study.name!r}, in one order; their labels or places differ"
                )
        return found

    def over(self, study: Study) -> None:
        """Forget what no later study needs."""
        self._asked.subtract(study.exposures)
        self._read = {place: own for place, own in self._read.items() if self._asked[place[1]] > 0}


class Calibrators:
    """Platt scaling of every method of every run, fitted when it is first asked for."""

    def __init__(self, reading: StoredScores) -> None:
        self._reading = reading
        self._validation: dict[str, RunScores | None] = {}
        self._fitted: dict[tuple[str, str], CalibratedScore | None] = {}

    def validation(self, run: Run, method: str) -> Predictions | None:
        """Return what a method says of the validation pictures; None where it says nothing."""
        if run.name not in self._validation:
            self._validation[run.name] = self._reading.validation(run)
        known = self._validation[run.name]
        if known is None or not np.isfinite(known.confidence.get(method, np.nan)).all():
            return None
        return to_predictions(known, [method], uses_mean_prediction=averages_of(method))

    def there(self, run: Run, method: str) -> bool:
        """Tell whether a method could be calibrated."""
        place = (run.name, method)
        if place not in self._fitted:
            known = self.validation(run, method)
            self._fitted[place] = None if known is None else _fitted(method, known)
        return self._fitted[place] is not None

    def apply(self, run: Run, method: str, confidence: FloatArray) -> FloatArray:
        """Return the probabilities of being right; `there` has to be true."""
        known, state = self.validation(run, method), self._fitted[run.name, method]
        if known is None or state is None:
            raise MissingInputError(
                f"{method!r} has no confidences of the validation data of {run.name!r}"
            )
        asked = Predictions(confidence={method: confidence}, unlabeled=True)
        try:
            found = state.score(asked).probability
        except MissingInputError:
            # On validation data it was within [0, 1] by chance: it is no probability.
            values = known.confidence[method]
            found = fit_platt(values, per_sample_loss(known)).apply(confidence)
        return np.asarray(found)


def _fitted(method: str, known: Predictions) -> CalibratedScore | None:
    try:
        return calibrate(method, known)
    except AbstainError:
        return None


@dataclass(frozen=True, eq=False)
class StudySamples:
    """What all runs say of one study; what several metrics need is computed once.

    `scores` has all exposures of the study under each other, by the name of the run. `outlier_cost`
    is that of an accepted new class, where the study is about costs.
    """

    study: Study
    scores: Mapping[str, RunScores]
    calibrators: Calibrators
    classes: int
    outlier_cost: float = 2.0
    _judged: dict[tuple[str, bool], StudyLoss] = field(default_factory=dict)
    _scored: dict[tuple[str, str, bool], Scored] = field(default_factory=dict)

    def missing(self, run: Run, method: str) -> str:
        """Return why a method has no numbers here, or an empty string."""
        scores = self.scores[run.name]
        if method not in scores.confidence:
            return scores.reasons.get(method, f"no confidences for {self.study.name}")
        if not np.isfinite(scores.confidence[method]).all():
            return f"some of its confidences for {self.study.name} are no numbers"
        return ""

    def judged(self, run: Run, method: str) -> StudyLoss:
        """Return what counts as a failure of the prediction that a method belongs to."""
        place = (run.name, averages_of(method))
        if place not in self._judged:
            own = self.scores[run.name]
            cost = self.outlier_cost
            self._judged[place] = study_loss(
                self.study, own, uses_mean_prediction=place[1], outlier_cost=cost
            )
        return self._judged[place]

    def scored(self, run: Run, method: str) -> Scored:
        """Return what metrics take, by the confidence as it is."""
        return self._made(run, method, calibrated=False)

    def calibrated(self, run: Run, method: str) -> Scored:
        """Return what metrics take, by the calibrated confidence."""
        return self._made(run, method, calibrated=True)

    def unit(
        self,
        seed: int,
        methods: Mapping[str, Run],
        *,
        calibrated: bool = False,
        named: Study | None = None,
    ) -> ScoredRun:
        """Return all methods on these samples in one seed, perhaps as part of another study."""
        first = self.scores[next(iter(methods.values())).name]
        return ScoredRun(
            data=(("study", (named or self.study).name),),
            run=str(seed),
            scored={m: self._made(run, m, calibrated=calibrated) for m, run in methods.items()},
            sample_names=None,
            labels=first.labels,
            cluster=self._cluster,
            group=first.source_indices,
            # They are rows of the same files.
            matched_by="name",
            per_method_weights=self.study.errors == "removed",
        )

    def part(self, study: Study, rows: slice) -> "StudySamples":
        """Return some of the samples, as a study of their own."""
        own = {name: scores.subset(rows, study.name) for name, scores in self.scores.items()}
        return StudySamples(study, own, self.calibrators, self.classes, self.outlier_cost)

    def forget(self) -> None:
        """Forget what was sorted, where it is much: metrics then sort anew."""
        if sum(s.n_rows for s in self._scored.values()) > _MOST:
            self._scored.clear()

    @cached_property
    def _cluster(self) -> IntArray:
        """Codes of the pictures that copies share."""
        places = next(iter(self.scores.values())).source_indices
        return np.unique(places, return_inverse=True)[1].astype(np.int64)

    def _made(self, run: Run, method: str, *, calibrated: bool) -> Scored:
        place = (run.name, method, calibrated)
        if place not in self._scored:
            scores, counted = self.scores[run.name], self.judged(run, method)
            prediction = scores.prediction_for(averages_of(method))
            confidence = scores.confidence[method]
            chance = self.calibrators.apply(run, method, confidence) if calibrated else None
            self._scored[place] = Scored(
                confidence if chance is None else chance,
                counted.loss,
                counted.weight,
                probability=chance,
                class_view=ClassView(scores.labels, prediction, tuple(range(self.classes))),
            )
        return self._scored[place]
