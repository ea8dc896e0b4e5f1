"""Pairs of methods that two metrics rank in opposite orders, and the responsible failures.

AUGRC = (1 - AUROC) a (1 - a) + (1 - a)²/2 with the accuracy a, so a method of higher accuracy and
AUROC has the lower AUGRC. If AURC prefers the other method, it violates requirement R2 of Traub et
al.
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
from abstain_bench.studies.rankings.ranked_studies import (
    FIRST_METRIC,
    SECOND_METRIC,
    RankedStudies,
)

#: Factors of requirement R2.
_ACCURACY, _AUROC = "accuracy", "AUROC"

#: Relative differences up to this value are rounding errors.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, eq=False)
class Disagreement:
    """Two methods that the metrics rank in opposite orders.

    Attributes
    ----------
    study : str
        Name of the study.
    better, worse : str
        Better and worse method by AUGRC, which AURC ranks in the opposite order.
    runs : sequence of ScoredRun
        Samples of each run.
    values : mapping from str to (float, float)
        Accuracy, AUROC and both metrics of the better and of the worse method.
    """

    study: str
    better: str
    worse: str
    runs: Sequence[ScoredRun]
    values: dict[str, tuple[float, float]]

    @property
    def violates_r2(self) -> bool:
        """Whether AURC prefers a method that is worse in one factor and not better in the other."""
        differences = [
            0.0 if np.isclose(better, worse, rtol=_ROUNDING, atol=0) else better - worse
            for better, worse in (self.values[name] for name in (_ACCURACY, _AUROC))
        ]
        return min(differences) >= 0 and max(differences) > 0

    @property
    def has_same_failures(self) -> bool:
        """Whether both methods have the same failures in every run."""
        return all(
            np.array_equal(run.scored[self.better].loss, run.scored[self.worse].loss)
            for run in self.runs
        )

    @property
    def relative_preference(self) -> float:
        """Excess of AURC of the better method, relative to the worse method."""
        better, worse = self.values[FIRST_METRIC.name]
        return (better - worse) / worse if worse > 0 else float("inf")

    @cached_property
    def contribution_differences(self) -> tuple[FloatArray, FloatArray]:
        """Contribution of each sample to the difference of either metric, better minus worse."""
        first, second = (
            np.mean([self._contribution_difference(run, metric) for run in self.runs], axis=0)
            for metric in (FIRST_METRIC.name, SECOND_METRIC.name)
        )
        return np.asarray(first), np.asarray(second)

    def _contribution_difference(self, run: ScoredRun, metric: str) -> FloatArray:
        better, worse = run.scored[self.better], run.scored[self.worse]
        return _contributions(better, metric) - _contributions(worse, metric)

    @cached_property
    def adverse_samples(self) -> IntArray:
        """Samples that increase the first metric of the better method more, largest first."""
        differences = self.contribution_differences[0]
        order = np.argsort(-differences, kind="stable")
        return np.asarray(order[differences[order] > 0])

    @property
    def n_responsible(self) -> int:
        """Smallest number of samples without which both metrics agree."""
        differences = self.contribution_differences[0]
        removed = np.cumsum(differences[self.adverse_samples])
        return int(np.searchsorted(removed, differences.sum()) + 1)

    def confidence_quantile(self, method: str, row: int) -> float:
        """Return the share of samples with a lower confidence than one sample, ties half."""
        quantiles = []
        for run in self.runs:
            confidence = run.scored[method].confidence
            is_lower, is_lower_or_equal = (
                confidence < confidence[row],
                confidence <= confidence[row],
            )
            quantiles.append((np.mean(is_lower) + np.mean(is_lower_or_equal)) / 2)
        return float(np.mean(quantiles))

    @property
    def n_failures(self) -> int:
        """Number of failures of the better method, the minimum over the runs."""
        return min(run.count_samples_and_failures(self.better)[1] for run in self.runs)

    def violation_row(self) -> dict[str, Any]:
        """Return the differences of the two methods and the number of responsible failures."""
        return {
            "study": self.study,
            "better": self.better,
            "worse": self.worse,
            **{f"{name}_gap": better - worse for name, (better, worse) in self.values.items()},
            "failures": self.n_failures,
            "responsible": self.n_responsible,
        }

    def row(self) -> dict[str, Any]:
        """Return all numbers of the pair."""
        values: dict[str, float] = {}
        for name, (better, worse) in self.values.items():
            values |= {f"{name}_better": better, f"{name}_worse": worse}
        return {
            "study": self.study,
            "better": self.better,
            "worse": self.worse,
            "violates_R2": self.violates_r2,
            "same_failures": self.has_same_failures,
            **values,
            "relative_preference": self.relative_preference,
            "failures": self.n_failures,
            "responsible": self.n_responsible,
        }

    def failure_rows(self, max_failures: int) -> Iterator[dict[str, Any]]:
        """Yield the responsible failures, the largest contribution first."""
        labels, names = self.runs[0].labels, self.runs[0].sample_names
        first, second = self.contribution_differences
        for row in self.adverse_samples[:max_failures].tolist():
            yield {
                "study": self.study,
                "better": self.better,
                "worse": self.worse,
                "sample": str(row if names is None else names[row]),
                "label": "" if labels is None else str(labels[row]),
                f"{FIRST_METRIC.name}_gap": float(first[row]),
                f"{SECOND_METRIC.name}_gap": float(second[row]),
                "confidence_quantile_better": self.confidence_quantile(self.better, row),
                "confidence_quantile_worse": self.confidence_quantile(self.worse, row),
            }


def _contributions(samples: Scored, metric: str) -> FloatArray:
    return np.asarray(compute_contributions(samples, metric), dtype=np.float64)


def find_disagreements(ranked: RankedStudies) -> Iterator[Disagreement]:
    """Yield the disagreements of each study with available samples, violations of R2 first."""
    for study, load_runs in ranked.load_runs.items():
        if study not in ranked.data:
            continue
        runs = load_runs()
        pairs = list(_study_disagreements(study, runs)) if runs else []
        yield from sorted(pairs, key=lambda d: (not d.violates_r2, -d.relative_preference))


def _study_disagreements(study: str, runs: Sequence[ScoredRun]) -> Iterator[Disagreement]:
    numbers = {
        method: _mean_numbers([run.scored[method] for run in runs]) for method in runs[0].scored
    }
    for better, worse in permutations(numbers, 2):
        values = {name: (numbers[better][name], numbers[worse][name]) for name in numbers[better]}
        first, second = values[FIRST_METRIC.name], values[SECOND_METRIC.name]
        if second[0] < second[1] * (1 - _ROUNDING) and first[0] > first[1] * (1 + _ROUNDING):
            yield Disagreement(study, better, worse, runs, values)


def _mean_numbers(runs: Sequence[Scored]) -> dict[str, float]:
    """Return accuracy, AUROC and both metrics of a method, means over its runs."""
    numbers = {
        _ACCURACY: [
            float(1 - np.average(s.loss.astype(np.float64), weights=s.weight)) for s in runs
        ]
    }
    for name, metric in (
        (_AUROC, FAILURE_AUROC),
        (FIRST_METRIC.name, FIRST_METRIC),
        (SECOND_METRIC.name, SECOND_METRIC),
    ):
        numbers[name] = [float(metric.compute(samples).value) for samples in runs]
    return {name: float(np.mean(values)) for name, values in numbers.items()}
