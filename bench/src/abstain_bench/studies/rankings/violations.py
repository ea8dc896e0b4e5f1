"""Pairs that two metrics order differently, and the failures that make them.

AUGRC = (1 - AUROC) a (1 - a) + (1 - a)²/2 with a the accuracy, so a method of higher accuracy and
AUROC has the lower AUGRC. Where AURC prefers the other one it breaks requirement R2 of Traub et al.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any, Final

import numpy as np

from abstain._foundation.scored import Scored
from abstain.evaluation.comparison import ScoredRun
from abstain.metrics.contributions import compute_contributions
from abstain.metrics.failure_ranking import FAILURE_AUROC
from abstain.typing import FloatArray, IntArray
from abstain_bench.studies.rankings.changes import AFTER, BEFORE, RankedStudies

#: What a pair is judged by: the share of right answers, and how well failures are told.
_JUDGED: Final = ("correct", "AUROC")


@dataclass(frozen=True, eq=False)
class Disagreement:
    """Two methods that the metrics order differently.

    Attributes
    ----------
    study : str
        Where.
    better, worse : str
        By AUGRC; AURC has them the other way round.
    units : sequence of Unit
        A unit a run.
    values : mapping from str to (float, float)
        Accuracy, AUROC and both metrics, of the better and the worse.
    """

    study: str
    better: str
    worse: str
    units: Sequence[ScoredRun]
    values: dict[str, tuple[float, float]]

    @property
    def violates(self) -> bool:
        """Whether AURC prefers a method that is nowhere better and somewhere worse."""
        pairs = [self.values[name] for name in _JUDGED]
        # Rounding is no difference of accuracy.
        gaps = [0.0 if np.isclose(a, b, rtol=1e-12, atol=0) else a - b for a, b in pairs]
        return min(gaps) >= 0 and max(gaps) > 0

    @property
    def same_failures(self) -> bool:
        """Whether both methods have the same failures in every run, so that accuracy is equal."""
        pairs = ((unit.scored[self.better], unit.scored[self.worse]) for unit in self.units)
        return all(np.array_equal(better.loss, worse.loss) for better, worse in pairs)

    @property
    def preferred_by(self) -> float:
        """By which share of its own value the first metric prefers the worse method."""
        high, low = self.values[BEFORE.name]
        return (high - low) / low if low > 0 else float("inf")

    def _gaps(self, metric: str) -> FloatArray:
        """Return what each sample adds to the metric of the better method less that of the worse.

        The mean over the runs, which are of the same samples.
        """
        own = [
            _added(unit.scored[self.better], metric) - _added(unit.scored[self.worse], metric)
            for unit in self.units
        ]
        return np.asarray(np.mean(own, axis=0))

    @cached_property
    def gaps(self) -> tuple[FloatArray, FloatArray]:
        """What each sample adds to the difference, by either metric."""
        return self._gaps(BEFORE.name), self._gaps(AFTER.name)

    @cached_property
    def blamed(self) -> IntArray:
        """The samples for which the first metric charges the better method most, the most first."""
        first = self.gaps[0]
        order = np.argsort(-first, kind="stable")
        return np.asarray(order[first[order] > 0])

    @property
    def responsible(self) -> int:
        """How few samples turn the first metric: without what they add, both metrics agree."""
        gone = np.cumsum(self.gaps[0][self.blamed])
        return int(np.searchsorted(gone, self.gaps[0].sum()) + 1)

    def surer_than(self, method: str, row: int) -> float:
        """Return the share of the samples that a method trusts less than one, ties half."""
        found = []
        for unit in self.units:
            confidence = unit.scored[method].confidence
            below = np.mean(confidence < confidence[row]), np.mean(confidence <= confidence[row])
            found.append(sum(below) / 2)
        return float(np.mean(found))

    def brief(self) -> dict[str, Any]:
        """Return by how much the better method is ahead, and what turns the first metric."""
        return {
            "study": self.study,
            "better": self.better,
            "worse": self.worse,
            **{f"{name}_gap": own - other for name, (own, other) in self.values.items()},
            "failures": self.failures,
            "responsible": self.responsible,
        }

    @property
    def failures(self) -> int:
        """The failures of the better method, the fewest over the runs."""
        return min(unit.count_samples_and_failures(self.better)[1] for unit in self.units)

    def row(self) -> dict[str, Any]:
        """Return what there is to say of the pair."""
        told = {
            f"{name}_{who}": value
            for name, pair in self.values.items()
            for who, value in zip(("better", "worse"), pair, strict=True)
        }
        return {
            "study": self.study,
            "better": self.better,
            "worse": self.worse,
            "violates_R2": self.violates,
            "same_failures": self.same_failures,
            **told,
            "preferred_by": self.preferred_by,
            "failures": self.failures,
            "responsible": self.responsible,
        }


def failures_of(found: Disagreement, most: int) -> Iterator[dict[str, Any]]:
    """Return the failures that make the first metric prefer the other method, the worst first."""
    labels, names = found.units[0].labels, found.units[0].sample_names
    first, second = found.gaps
    for row in found.blamed[:most].tolist():
        yield {
            "study": found.study,
            "better": found.better,
            "worse": found.worse,
            "sample": str(row if names is None else names[row]),
            "label": "" if labels is None else str(labels[row]),
            f"{BEFORE.name}_gap": float(first[row]),
            f"{AFTER.name}_gap": float(second[row]),
            "less_sure_better": found.surer_than(found.better, row),
            "less_sure_worse": found.surer_than(found.worse, row),
        }


def _added(s: Scored, metric: str) -> FloatArray:
    return np.asarray(compute_contributions(s, metric), dtype=np.float64)


def disagreements(ranked: RankedStudies) -> Iterator[Disagreement]:
    """Return the pairs of each study whose samples can be looked at, violations first."""
    for study, units_of in ranked.units.items():
        if study in ranked.data:
            units = units_of()
            found = list(_of_study(study, units)) if units else []
            yield from sorted(found, key=lambda d: (not d.violates, -d.preferred_by))


def _of_study(study: str, units: Sequence[ScoredRun]) -> Iterator[Disagreement]:
    known = {method: _judged([unit.scored[method] for unit in units]) for method in units[0].scored}
    for better, worse in permutations(known, 2):
        values = {name: (known[better][name], known[worse][name]) for name in known[better]}
        first, second = values[BEFORE.name], values[AFTER.name]
        # What differs by rounding only is no difference.
        if second[0] < second[1] * (1 - 1e-12) and first[0] > first[1] * (1 + 1e-12):
            yield Disagreement(study, better, worse, units, values)


def _judged(runs: Sequence[Scored]) -> dict[str, float]:
    """Return the numbers of a method, means over its runs."""
    accuracy = [float(1 - np.average(s.loss.astype(np.float64), weights=s.weight)) for s in runs]
    found = {_JUDGED[0]: accuracy}
    metrics = ((_JUDGED[1], FAILURE_AUROC), (BEFORE.name, BEFORE), (AFTER.name, AFTER))
    found |= {name: [float(metric.compute(s).value) for s in runs] for name, metric in metrics}
    return {name: float(np.mean(values)) for name, values in found.items()}
