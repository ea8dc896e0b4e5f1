"""The samples of one study, as every method of every run sees them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from abstain._foundation.scored import ClassView, Scored
from abstain.benchmark.protocol import Study, StudyLoss, judged
from abstain.benchmark.results.scores import Calibrators, averages_of
from abstain.benchmark.store import Run, RunScores
from abstain.evaluation.comparison import Unit
from abstain.typing import IntArray

__all__ = ["StudySamples"]

#: What of it is kept from one metric to the next, in samples; each takes about 100 bytes.
_MOST: Final = 2_000_000


@dataclass(frozen=True, eq=False)
class StudySamples:
    """What all runs say of one study; what several metrics need is computed once.

    Attributes
    ----------
    study : Study
        Which.
    scores : mapping from str to RunScores
        By the name of the run: all exposures of the study under each other.
    calibrators : Calibrators
        Fitted on validation data.
    classes : int
        How many classes are known.
    outlier_cost : float
        Of an accepted new class, where the study is about costs.
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
            self._judged[place] = judged(self.study, own, averages=place[1], outlier_cost=cost)
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
    ) -> Unit:
        """Return all methods on these samples in one seed, perhaps as part of another study."""
        first = self.scores[next(iter(methods.values())).name]
        return Unit(
            data=(("study", (named or self.study).name),),
            run=str(seed),
            scored={m: self._made(run, m, calibrated=calibrated) for m, run in methods.items()},
            names=None,
            labels=first.labels,
            cluster=self._cluster,
            group=first.places,
            # They are rows of the same files.
            matched="name",
            own_weights=self.study.errors == "removed",
        )

    def part(self, study: Study, rows: slice) -> "StudySamples":
        """Return some of the samples, as a study of their own."""
        own = {name: scores.rows(rows, study.name) for name, scores in self.scores.items()}
        return StudySamples(study, own, self.calibrators, self.classes, self.outlier_cost)

    def forget(self) -> None:
        """Forget what was sorted, where it is much: metrics then sort anew."""
        if sum(s.n for s in self._scored.values()) > _MOST:
            self._scored.clear()

    @cached_property
    def _cluster(self) -> IntArray:
        """Codes of the pictures that copies share."""
        places = next(iter(self.scores.values())).places
        return np.unique(places, return_inverse=True)[1].astype(np.int64)

    def _made(self, run: Run, method: str, *, calibrated: bool) -> Scored:
        place = (run.name, method, calibrated)
        if place not in self._scored:
            scores, counted = self.scores[run.name], self.judged(run, method)
            prediction = scores.predicted(averages_of(method))
            confidence = scores.confidence[method]
            chance = self.calibrators.apply(run, method, confidence) if calibrated else None
            self._scored[place] = Scored(
                confidence if chance is None else chance,
                counted.loss,
                counted.weight,
                probability=chance,
                view=ClassView(scores.labels, prediction, tuple(range(self.classes))),
            )
        return self._scored[place]
