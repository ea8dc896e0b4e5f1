"""Simulated models of the study: populations, exact values, and repeated samples."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from abstain import simulate
from abstain.errors import UndefinedMetricWarning
from abstain.metrics import CwsaSweep, cwsa_sweep, ece, published_aurc
from abstain.simulate import Population
from abstain.typing import FloatArray
from abstain_bench.studies._tables import Row

#: Quantities of a sweep at each threshold, in the order of tables and figures.
QUANTITIES: Final = ("coverage", "selective_accuracy", "cwsa", "cwsa_plus")

#: Titles of the quantities.
TITLES: Final = {
    "cwsa": "CWSA",
    "cwsa_plus": "CWSA+",
    "selective_accuracy": "selective accuracy",
    "coverage": "coverage",
    "accuracy": "accuracy",
}

#: Metrics of all samples, as the code of the paper computes them.
OVERALL_METRICS: Final = ("ECE", "AURC")

#: The five models of the released code, and two that the text of the paper describes differently.
CALIBRATED, OVERCONFIDENT, UNDERCONFIDENT = "calibrated", "overconfident", "underconfident"
PERFECT, RANDOM = "perfect", "random"
OVERCONFIDENT_TEXT, PERFECT_TEXT = "overconfident, 90% accuracy", "perfect, certain"


def models() -> dict[str, Population]:
    """Return the populations by their names in tables."""
    names = (CALIBRATED, OVERCONFIDENT, UNDERCONFIDENT, PERFECT, RANDOM)
    populations = {name: simulate.make(f"cwsa-{name}") for name in names}
    populations[OVERCONFIDENT_TEXT] = simulate.uniform_confidence(informed_share=0.9)
    populations[PERFECT_TEXT] = simulate.discrete_scores([1.0], [1.0], [0.0])
    return populations


@dataclass(frozen=True, eq=False)
class SimulatedModel:
    """A population with its exact values at thresholds, and the values of repeated samples."""

    name: str
    population: Population
    thresholds: FloatArray
    #: Size and seed of the samples.
    n_samples: int
    seed: int
    #: Values of every sample by quantity, shape (repeats, t); `OVERALL_METRICS`: (repeats, 1).
    sampled: Mapping[str, FloatArray]

    @classmethod
    def simulate(
        cls,
        name: str,
        population: Population,
        thresholds: FloatArray,
        *,
        n_samples: int,
        repeats: int,
        seed: int,
    ) -> "SimulatedModel":
        """Draw samples and sweep the thresholds."""
        rng = np.random.default_rng(seed)
        values: dict[str, list[Any]] = {name: [] for name in (*QUANTITIES, *OVERALL_METRICS)}
        for _ in range(repeats):
            confidence, loss = population.sample(n_samples, rng=rng)
            sweep = sweep_thresholds(confidence, loss, thresholds)
            for quantity in QUANTITIES:
                values[quantity].append(getattr(sweep, quantity))
            values["ECE"].append([ece(confidence, loss, bins=10, convention="right_open")])
            values["AURC"].append([published_aurc(confidence, loss, convention="cwsa")])
        sampled = {quantity: np.array(rows) for quantity, rows in values.items()}
        return cls(name, population, thresholds, n_samples, seed, sampled)

    def at_thresholds(self, thresholds: FloatArray) -> "SimulatedModel":
        """Draw the same samples again and sweep other thresholds."""
        return SimulatedModel.simulate(
            self.name,
            self.population,
            thresholds,
            n_samples=self.n_samples,
            repeats=len(self.sampled["ECE"]),
            seed=self.seed,
        )

    @cached_property
    def expected(self) -> dict[str, FloatArray]:
        """Exact values of the population, shape (t,); NaN if no sample is accepted."""
        return population_sweep(self.population, self.thresholds)

    @cached_property
    def ece(self) -> float:
        """ECE of the population."""
        return population_ece(self.population)

    def sd(self, quantity: str) -> FloatArray:
        """Return the standard deviation over samples; NaN if a sample has no value."""
        return np.asarray(self.sampled[quantity].std(axis=0, ddof=1))

    def rows(self) -> list[Row]:
        """Return the sweep of the population with mean and SD of the samples."""
        rows: list[Row] = []
        for quantity in QUANTITIES:
            mean, sd = self.sampled[quantity].mean(axis=0), self.sd(quantity)
            rows += [
                {
                    "experiment": "sweep",
                    "data": self.name,
                    "setting": None,
                    "threshold": threshold,
                    "quantity": quantity,
                    "value": finite_or_none(mean[i]),
                    "expected": finite_or_none(self.expected[quantity][i]),
                    "sd": finite_or_none(sd[i]),
                }
                for i, threshold in enumerate(self.thresholds.tolist())
            ]
        return rows


def population_sweep(population: Population, thresholds: FloatArray) -> dict[str, FloatArray]:
    """Compute the exact values of a population at each threshold."""
    coverage = np.asarray(population.coverage(thresholds))
    risk = np.asarray(population.selective_risk(coverage))
    return {
        "coverage": coverage,
        "selective_accuracy": np.where(coverage > 0, 1 - risk, np.nan),
        "cwsa": simulate.expected_cwsa(population, thresholds),
        "cwsa_plus": simulate.expected_cwsa_plus(population, thresholds),
    }


def population_ece(population: Population, *, bins: int = 10) -> float:
    """Compute the ECE of a population with bins of equal width, by 1,000 intervals for each bin."""
    edges = np.linspace(0, 1, 1000 * bins + 1)
    coverage = np.asarray(population.coverage(edges))
    generalized_risk = np.asarray(population.generalized_risk(coverage))
    mass, loss = -np.diff(coverage), -np.diff(generalized_risk)
    differences = mass * (edges[1:] + edges[:-1]) / 2 - (mass - loss)
    return float(np.abs(differences.reshape(bins, -1).sum(axis=1)).sum())


def population_auc_mcc(value: FloatArray, coverage: FloatArray) -> float:
    """Compute the AUC-MCC of the sweep of a population."""
    n_accepted = np.zeros(coverage.size, dtype=np.int64)
    return CwsaSweep(coverage, coverage, n_accepted, value, value, value).auc_mcc()


def sweep_thresholds(
    confidence: FloatArray,
    loss: FloatArray,
    thresholds: Sequence[float] | FloatArray,
    *,
    weight: FloatArray | None = None,
) -> CwsaSweep:
    """Sweep thresholds without a warning if a threshold accepts no sample."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return cwsa_sweep(confidence, loss, thresholds=np.asarray(thresholds), weight=weight)


def finite_or_none(value: Any) -> float | None:
    """Return a number for a table, and None for NaN or infinity."""
    return float(value) if np.isfinite(value) else None
