"""Simulate models whose expectations are exactly known, and load predictions."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from abstain import simulate
from abstain._foundation.lazy_imports import special
from abstain.confidence.registry import BASELINE
from abstain.errors import InputError, MissingInputError, UndefinedMetricWarning
from abstain.evaluation.inputs import compute_scores, join
from abstain.metrics import CwsaSweep, cwsa_sweep, ece, published_aurc
from abstain.predictions import Predictions, per_sample_loss
from abstain.simulate import Population
from abstain.typing import FloatArray, IntArray
from abstain_bench.studies._display import Row
from abstain_bench.studies._inputs import DataArgument, named_datasets

#: Quantities that are computed at each threshold of a sweep.
QUANTITIES: Final = ("coverage", "selective_accuracy", "cwsa", "cwsa_plus")

#: Display titles of the quantities.
TITLES: Final = {
    "cwsa": "CWSA",
    "cwsa_plus": "CWSA+",
    "selective_accuracy": "selective accuracy",
    "coverage": "coverage",
    "accuracy": "accuracy",
}

#: Metrics of all samples. They are computed as in the code of the paper.
OVERALL_METRICS: Final = ("ECE", "AURC")

#: Names of the models. The released code defines the first five models. The text of the paper
#: describes two of these models differently.
CALIBRATED = "calibrated"
OVERCONFIDENT = "overconfident"
UNDERCONFIDENT = "underconfident"
PERFECT = "perfect"
RANDOM = "random"
OVERCONFIDENT_TEXT = "overconfident, 90% accuracy"
PERFECT_TEXT = "perfect, certain"


def models() -> dict[str, Population]:
    """Return the populations of the simulated models by name."""
    names = (CALIBRATED, OVERCONFIDENT, UNDERCONFIDENT, PERFECT, RANDOM)
    populations = {name: simulate.make(f"cwsa-{name}") for name in names}
    populations[OVERCONFIDENT_TEXT] = simulate.uniform_confidence(informed_share=0.9)
    populations[PERFECT_TEXT] = simulate.discrete_scores([1.0], [1.0], [0.0])
    return populations


@dataclass(frozen=True, eq=False)
class SimulatedModel:
    """A population with its exact and simulated metrics at t thresholds."""

    name: str
    population: Population
    thresholds: FloatArray
    #: Number of samples in a simulation.
    n_samples: int
    seed: int
    #: Arrays by quantity, of shape (repeats, t). The shape for `OVERALL_METRICS` is (repeats, 1).
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
        """Draw repeated samples, and compute all metrics of each sample."""
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
        """Draw the same samples again, and compute their metrics at other thresholds."""
        return SimulatedModel.simulate(
            self.name,
            self.population,
            thresholds,
            n_samples=self.n_samples,
            repeats=len(self.sampled["ECE"]),
            seed=self.seed,
        )

    @cached_property
    def expected(self) -> CwsaSweep:
        """Exact expectations of the population, NaN at thresholds where no sample is accepted."""
        return population_sweep(self.population, self.thresholds)

    @cached_property
    def ece(self) -> float:
        """ECE of the population."""
        return population_ece(self.population)

    def sd(self, quantity: str) -> FloatArray:
        """Return the standard deviation over samples, NaN if a sample has no value."""
        return np.asarray(self.sampled[quantity].std(axis=0, ddof=1))

    def rows(self) -> list[Row]:
        """Return a row with the exact value, the mean and the standard deviation of each metric."""
        means = {quantity: self.sampled[quantity].mean(axis=0) for quantity in QUANTITIES}
        sds = {quantity: self.sd(quantity) for quantity in QUANTITIES}
        return sweep_rows(self.name, self.expected.threshold, means, vars(self.expected), sds)


def population_sweep(population: Population, thresholds: FloatArray) -> CwsaSweep:
    """Compute the exact metrics of a population at each threshold."""
    coverage = np.asarray(population.coverage(thresholds))
    risk = np.asarray(population.selective_risk(coverage))
    return CwsaSweep(
        threshold=thresholds,
        coverage=coverage,
        accepted=np.zeros(coverage.size, dtype=np.int64),
        selective_accuracy=np.where(coverage > 0, 1 - risk, np.nan),
        cwsa=simulate.expected_cwsa(population, thresholds),
        cwsa_plus=simulate.expected_cwsa_plus(population, thresholds),
    )


def population_ece(population: Population) -> float:
    """Compute the exact ECE of a population with ten bins by numerical integration."""
    edges = np.linspace(0, 1, 10_001)
    coverage = np.asarray(population.coverage(edges))
    generalized_risk = np.asarray(population.generalized_risk(coverage))
    share_in_interval = -np.diff(coverage)
    loss_in_interval = -np.diff(generalized_risk)
    confidence_sum = share_in_interval * (edges[1:] + edges[:-1]) / 2
    differences = confidence_sum - (share_in_interval - loss_in_interval)
    return float(np.abs(differences.reshape(10, -1).sum(axis=1)).sum())


def sweep_thresholds(
    confidence: FloatArray,
    loss: FloatArray,
    thresholds: Sequence[float] | FloatArray,
    *,
    weight: FloatArray | None = None,
) -> CwsaSweep:
    """Compute metrics at several thresholds, without warnings if no sample is accepted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return cwsa_sweep(confidence, loss, thresholds=np.asarray(thresholds), weight=weight)


def finite_or_none(value: Any) -> float | None:
    """Convert NaN and infinity to None."""
    return float(value) if np.isfinite(value) else None


def sweep_rows(
    name: str,
    thresholds: FloatArray,
    values: Mapping[str, FloatArray],
    expected: Mapping[str, FloatArray] | None = None,
    sds: Mapping[str, FloatArray] | None = None,
) -> list[Row]:
    """Return a row for each metric and threshold."""
    return [
        {
            "experiment": "sweep",
            "data": name,
            "setting": None,
            "threshold": threshold,
            "quantity": quantity,
            "value": finite_or_none(values[quantity][i]),
            "expected": finite_or_none(expected[quantity][i]) if expected else None,
            "sd": finite_or_none(sds[quantity][i]) if sds else None,
        }
        for quantity in QUANTITIES
        for i, threshold in enumerate(thresholds.tolist())
    ]


# ------------------------------------------------------------------------------ predictions
#: Name of the digits without noise, and beginning of the names of shifted digits.
DIGITS: Final = "digits"

#: Standard deviations of the noise that is added to pixels from 0 to 16.
NOISE_LEVELS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0)

#: Log-odds of 1 - 1e-12, a lower bound of the log-odds that replace infinity.
_MIN_CERTAIN_LOG_ODDS: Final = 27.63


@dataclass(frozen=True, eq=False)
class ProbabilisticPredictions:
    """Confidences in [0, 1] and 0/1 losses of a model, with logits and labels if available."""

    name: str
    confidence: FloatArray
    loss: FloatArray
    logits: FloatArray | None = None
    labels: IntArray | None = None
    #: Number of classes, or 2 if the number is unknown.
    n_classes: int = 2
    #: Names of the data set and of the score.
    data: str = ""
    score: str = ""

    @cached_property
    def accuracy(self) -> float:
        """Share of correct predictions."""
        return float(1 - self.loss.mean())

    def sweep(
        self, thresholds: Sequence[float] | FloatArray, confidence: FloatArray | None = None
    ) -> CwsaSweep:
        """Compute the metrics at several thresholds, optionally with modified confidences."""
        if confidence is None:
            confidence = self.confidence
        return sweep_thresholds(confidence, self.loss, thresholds)

    def scale_confidence(self, temperature: float) -> FloatArray:
        """Apply temperature scaling to the logits or, without logits, to the log-odds."""
        return np.asarray(special.expit(self.scale_log_odds(temperature)))

    def scale_log_odds(self, temperature: float) -> FloatArray:
        """Return the log-odds of scaled confidences, which remain distinct near confidence 1."""
        if self.logits is None:
            return _replace_infinite(special.logit(self.confidence)) / temperature
        scaled = self.logits / temperature
        predicted = scaled.argmax(axis=1)[:, None]
        largest = np.take_along_axis(scaled, predicted, axis=1)[:, 0]
        other_logits = scaled.copy()
        np.put_along_axis(other_logits, predicted, -np.inf, axis=1)
        return _replace_infinite(largest - special.logsumexp(other_logits, axis=1))

    def with_label_noise(self, rate: float) -> "ProbabilisticPredictions":
        """Replace losses by their expectations if a fraction of the labels is random."""
        # A wrong prediction becomes correct if the random label equals the prediction.
        probability_of_match = rate / max(self.n_classes - 1, 1)
        loss = self.loss * (1 - probability_of_match) + (1 - self.loss) * rate
        return replace(self, loss=loss)


def _replace_infinite(log_odds: FloatArray) -> FloatArray:
    """Replace infinite log-odds by finite values of larger magnitude than all others."""
    largest = np.abs(log_odds[np.isfinite(log_odds)]).max(initial=0.0)
    limit = max(_MIN_CERTAIN_LOG_ODDS, float(largest) + 1.0)
    return np.clip(log_odds, -limit, limit)


def load_predictions(data: DataArgument, scores: Sequence[str]) -> list[ProbabilisticPredictions]:
    """Return the predictions for each data set and score, by default for the digits."""
    datasets = named_datasets(data)
    if not datasets:
        return digits()
    loaded = []
    for name, predictions in datasets.items():
        loaded += _predictions_by_score(name, predictions, scores)
    return loaded


def _predictions_by_score(
    name: str, predictions: Predictions, scores: Sequence[str]
) -> list[ProbabilisticPredictions]:
    """Return the predictions for a data set with each score that has values in [0, 1]."""
    if predictions.weight is not None:
        raise InputError(
            f"the study changes labels and class shares, but {name!r} has weights: remove them"
        )
    requested = list(scores) or list(predictions.confidence or {}) or [BASELINE]
    losses = per_sample_loss(predictions, None).astype(np.float64)
    by_score = []
    for score in compute_scores(predictions, requested):
        samples = join(predictions, score, losses)
        if not (samples.has_probability and samples.is_binary):
            continue
        title = name if len(requested) == 1 else f"{name}, {score.name}"
        confidence = np.asarray(samples.probability_or_confidence, dtype=np.float64)
        view = samples.class_view
        if view is None:
            by_score.append(
                ProbabilisticPredictions(title, confidence, losses, data=name, score=score.name)
            )
            continue
        logits = None
        if score.name == BASELINE and view.log_probabilities is not None:
            logits = np.asarray(view.log_probabilities, dtype=np.float64)
        labels = np.asarray(view.labels)
        n_classes = len(view.classes)
        by_score.append(
            ProbabilisticPredictions(
                title, confidence, losses, logits, labels, n_classes, name, score.name
            )
        )
    if not by_score:
        raise MissingInputError(
            f"{name!r} has no confidence in [0, 1] with a 0/1 loss among {requested}"
        )
    return by_score


def digits(*, noise_levels: Sequence[float] = NOISE_LEVELS) -> list[ProbabilisticPredictions]:
    """Train a softmax regression on one half of the digits and predict the other half.

    The result contains predictions for several levels of noise in the test images.
    """
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    images: Any = load_digits()
    rng = np.random.default_rng(0)
    order = rng.permutation(images.target.size)
    n_train = order.size // 2
    train = order[:n_train]
    test = order[n_train:]
    # With the default penalty, the model would be underconfident.
    model = LogisticRegression(C=10.0, max_iter=500).fit(
        images.data[train] / 16, images.target[train]
    )
    labels = images.target[test]
    datasets = []
    for noise in noise_levels:
        pixels = images.data[test] + noise * rng.normal(size=images.data[test].shape)
        logits = model.decision_function(np.clip(pixels, 0, 16) / 16)
        confidence = np.exp(logits.max(axis=1) - special.logsumexp(logits, axis=1))
        loss = (logits.argmax(axis=1) != labels).astype(np.float64)
        name = DIGITS if noise == 0 else f"{DIGITS}, noise {noise:g}"
        datasets.append(
            ProbabilisticPredictions(
                name, np.minimum(confidence, 1.0), loss, logits, labels, 10, name, BASELINE
            )
        )
    return datasets
