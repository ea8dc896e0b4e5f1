"""The simulated models of the study: their law, and what samples of them give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from abstain import simulate
from abstain.metrics import CwsaSweep, cwsa_sweep, ece, published_aurc
from abstain.simulate import Population
from abstain.typing import FloatArray
from abstain_bench.studies._tables import Row

#: What a sweep has at each threshold, in the order of tables and figures.
QUANTITIES: Final = ("coverage", "selective_accuracy", "cwsa", "cwsa_plus")

#: What people read instead of the names of the tables.
TITLES: Final = {
    "cwsa": "CWSA",
    "cwsa_plus": "CWSA+",
    "selective_accuracy": "selective accuracy",
    "coverage": "coverage",
    "right": "share right",
}

#: Of all samples, as the authors' program computes them.
OF_ALL: Final = ("ECE", "AURC")

#: The five models as the released code draws them, and two that its prose describes otherwise.
CALIBRATED, OVERCONFIDENT, UNDERCONFIDENT = "calibrated", "overconfident", "underconfident"
PERFECT, RANDOM = "perfect", "random"
OVERCONFIDENT_TEXT, PERFECT_TEXT = "overconfident, 90 % known", "perfect, certain"


def models() -> dict[str, Population]:
    """Return the populations by the names that tables call them."""
    five = (CALIBRATED, OVERCONFIDENT, UNDERCONFIDENT, PERFECT, RANDOM)
    found = {name: simulate.make(f"cwsa-{name}") for name in five}
    found[OVERCONFIDENT_TEXT] = simulate.uniform_confidence(informed_share=0.9)
    found[PERFECT_TEXT] = simulate.discrete_scores([1.0], [1.0], [0.0])
    return found


@dataclass(frozen=True, eq=False)
class Simulated:
    """A model, what it has at each threshold, and what repeated samples have."""

    name: str
    population: Population
    thresholds: FloatArray
    #: Size and seed of the samples.
    samples: int
    seed: int
    #: From a quantity to the values of every sample, shape (repeats, t); of all, (repeats, 1).
    drawn: Mapping[str, FloatArray]

    @classmethod
    def of(
        cls,
        name: str,
        population: Population,
        thresholds: FloatArray,
        *,
        samples: int,
        repeats: int,
        seed: int,
    ) -> "Simulated":
        """Draw samples and sweep them."""
        draw = np.random.default_rng(seed)
        found: dict[str, list[Any]] = {quantity: [] for quantity in (*QUANTITIES, *OF_ALL)}
        for _ in range(repeats):
            confidence, loss = population.sample(samples, rng=draw)
            swept = swept_quietly(confidence, loss, thresholds)
            for quantity in QUANTITIES:
                found[quantity].append(getattr(swept, quantity))
            found["ECE"].append([ece(confidence, loss, bins=10, convention="right_open")])
            found["AURC"].append([published_aurc(confidence, loss, convention="cwsa")])
        drawn = {quantity: np.array(values) for quantity, values in found.items()}
        return cls(name, population, thresholds, samples, seed, drawn)

    def again(self, thresholds: FloatArray) -> "Simulated":
        """Draw the same samples and sweep other thresholds."""
        options = {"samples": self.samples, "seed": self.seed, "repeats": len(self.drawn["ECE"])}
        return Simulated.of(self.name, self.population, thresholds, **options)

    @cached_property
    def expected(self) -> dict[str, FloatArray]:
        """What endless data have, shape (t,); NaN where nothing is accepted."""
        return expected_of(self.population, self.thresholds)

    @cached_property
    def ece(self) -> float:
        """The ECE of endless data."""
        return ece_of(self.population)

    def spread(self, quantity: str) -> FloatArray:
        """Return the standard deviation over samples; NaN where one of them has no value."""
        return np.asarray(self.drawn[quantity].std(axis=0, ddof=1))

    def rows(self) -> list[Row]:
        """Return the sweep of the population, and the mean and spread of the samples."""
        out: list[Row] = []
        for quantity in QUANTITIES:
            mean, spread = self.drawn[quantity].mean(axis=0), self.spread(quantity)
            for i, threshold in enumerate(self.thresholds.tolist()):
                out.append(
                    {
                        "experiment": "sweep",
                        "data": self.name,
                        "setting": None,
                        "threshold": threshold,
                        "quantity": quantity,
                        "value": number(mean[i]),
                        "expected": number(self.expected[quantity][i]),
                        "sd": number(spread[i]),
                    }
                )
        return out


def expected_of(population: Population, thresholds: FloatArray) -> dict[str, FloatArray]:
    """Return what a population has at each threshold."""
    coverage = np.asarray(population.coverage(thresholds))
    risk = np.asarray(population.selective_risk(coverage))
    return {
        "coverage": coverage,
        "selective_accuracy": np.where(coverage > 0, 1 - risk, np.nan),
        "cwsa": simulate.expected_cwsa(population, thresholds),
        "cwsa_plus": simulate.expected_cwsa_plus(population, thresholds),
    }


def ece_of(population: Population, *, bins: int = 10) -> float:
    """Return the ECE of a population over even bins, to a thousandth of a bin."""
    edges = np.linspace(0, 1, 1000 * bins + 1)
    through = np.asarray(population.coverage(edges))
    wrong = np.asarray(population.generalized_risk(through))
    mass, lost = -np.diff(through), -np.diff(wrong)
    gap = mass * (edges[1:] + edges[:-1]) / 2 - (mass - lost)
    return float(np.abs(gap.reshape(bins, -1).sum(axis=1)).sum())


def area_of(value: FloatArray, coverage: FloatArray) -> float:
    """Return the AUC-MCC of a sweep of a population."""
    nothing = np.zeros(coverage.size, dtype=np.int64)
    swept = CwsaSweep(coverage, coverage, nothing, value, value, value)
    return swept.auc_mcc()


def swept_quietly(
    confidence: FloatArray,
    loss: FloatArray,
    thresholds: Sequence[float] | FloatArray,
    *,
    weight: FloatArray | None = None,
) -> CwsaSweep:
    """Sweep thresholds some of which may accept nothing."""
    import warnings

    from abstain.errors import UndefinedMetricWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return cwsa_sweep(confidence, loss, thresholds=np.asarray(thresholds), weight=weight)


def number(x: Any) -> float | None:
    """Return a number for a table; None where there is none."""
    return float(x) if np.isfinite(x) else None
