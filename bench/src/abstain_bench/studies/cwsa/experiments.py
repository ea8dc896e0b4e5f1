"""Run experiments on label noise, class imbalance, shifts and temperature scaling."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from abstain import simulate
from abstain.metrics import augrc, ece
from abstain.simulate import Population
from abstain.typing import FloatArray
from abstain_bench.studies._display import Row, group_rows
from abstain_bench.studies.cwsa.models import (
    CALIBRATED,
    QUANTITIES,
    ProbabilisticPredictions,
    finite_or_none,
    sweep_thresholds,
)

#: Shares of replaced labels, as in the released code.
NOISE_RATES: Final = (0.0, 0.1, 0.2, 0.3, 0.4)

#: Divisors of the logits. Temperatures below 1 increase the confidences.
TEMPERATURES: Final = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0)

#: Weighted shares of the class with the highest error rate.
CLASS_SHARES: Final = (0.02, 0.05, 0.1, 0.2, 0.4)

#: Names of the experiments in tables and files.
NOISE = "label-noise"
IMBALANCE = "imbalance"
SHARPENING = "sharpening"
SHIFT = "shift"
COMPARISON = "comparison"


@dataclass(frozen=True)
class Conditions:
    """Threshold of the experiments, and sample size and seed of the simulations."""

    threshold: float
    n_samples: int
    seed: int

    def measure(
        self, confidence: FloatArray, loss: FloatArray, *, weight: FloatArray | None = None
    ) -> dict[str, float | None]:
        """Compute metrics at the threshold and metrics over all samples."""
        sweep = sweep_thresholds(confidence, loss, [self.threshold], weight=weight)
        return {
            "accuracy": float(1 - np.average(loss, weights=weight)),
            **{name: finite_or_none(getattr(sweep, name)[0]) for name in QUANTITIES},
            "ECE": ece(confidence, loss, weight=weight),
            "AUGRC": augrc(confidence, loss, weight=weight),
        }


def run_experiments(
    datasets: Sequence[ProbabilisticPredictions],
    unshifted: Sequence[ProbabilisticPredictions],
    thresholds: FloatArray,
    conditions: Conditions,
) -> dict[str, list[Row]]:
    """Run the experiments on all data sets without shift, and compare all data sets.

    The comparison is named "shift" if some data sets are shifted, and "comparison" otherwise.
    """
    comparison = comparison_rows(datasets, conditions)
    has_shifts = len(unshifted) < len(datasets)
    imbalance: list[Row] = []
    sharpening: list[Row] = []
    for predictions in unshifted:
        imbalance += imbalance_rows(predictions, conditions)
        sharpening += sharpening_rows(predictions, thresholds)
    comparison = comparison_rows(datasets, conditions)
    has_shifts = len(unshifted) < len(datasets)
    return {
        NOISE: noise_rows(unshifted, conditions),
        IMBALANCE: imbalance,
        SHIFT: comparison if has_shifts else [],
        COMPARISON: [] if has_shifts else comparison,
        SHARPENING: sharpening,
    }


# ------------------------------------------------------------------------------ label noise
def noise_rows(datasets: Sequence[ProbabilisticPredictions], conditions: Conditions) -> list[Row]:
    """Compute metrics of the calibrated model and of all data sets with random labels."""
    population = simulate.confident_when_correct()
    n_classes = 3
    sample = population.sample(conditions.n_samples, rng=conditions.seed)
    model = ProbabilisticPredictions(
        CALIBRATED, sample.confidence, sample.loss, n_classes=n_classes
    )
    rows: list[Row] = []
    for predictions in (model, *datasets):
        for rate in NOISE_RATES:
            noisy = predictions.with_label_noise(rate)
            expected = None
            if predictions is model:
                noisy_population = add_label_noise(population, rate, n_classes)
                expected = float(simulate.expected_cwsa(noisy_population, conditions.threshold))
            rows.append({
                "data": predictions.name,
                "rate": rate,
                **conditions.measure(noisy.confidence, noisy.loss),
                "expected_cwsa": expected,
            })  # fmt: skip
    return rows


def add_label_noise(population: Any, rate: float, n_classes: int) -> Population:
    """Return a population of class scores in which a fraction of the labels is random."""
    parameters = population.parameters
    risk = parameters["risks"]
    noisy_risk = risk * (1 - rate / (n_classes - 1)) + (1 - risk) * rate
    return simulate.block_scores(
        parameters["low"], parameters["high"], parameters["mass"], noisy_risk
    )


# ------------------------------------------------------------------------------ class imbalance
def imbalance_rows(predictions: ProbabilisticPredictions, conditions: Conditions) -> list[Row]:
    """Compute metrics for several weights of the class with the highest error rate.

    If there are labels of fewer than two classes, the result is empty.
    """
    labels = predictions.labels
    if labels is None or not predictions.loss.any():
        return []
    classes = [label for label in np.unique(labels) if label >= 0 and (labels == label).sum() >= 2]
    if len(classes) < 2:
        return []
    error_rates = [float(predictions.loss[labels == label].mean()) for label in classes]
    hardest_class = classes[int(np.argmax(error_rates))]
    is_hard = labels == hardest_class
    of_class = conditions.measure(predictions.confidence[is_hard], predictions.loss[is_hard])
    rows: list[Row] = []
    for share in CLASS_SHARES:
        hard_weight = share / is_hard.mean()
        other_weight = (1 - share) / (1 - is_hard.mean())
        weight = np.where(is_hard, hard_weight, other_weight)
        rows.append({
            "data": predictions.name,
            "share": share,
            "class_error_rate": max(error_rates),
            **conditions.measure(predictions.confidence, predictions.loss, weight=weight),
            "cwsa_of_class": of_class["cwsa"],
        })  # fmt: skip
    return rows


# ------------------------------------------------------------------------------ shifts
def comparison_rows(
    datasets: Sequence[ProbabilisticPredictions], conditions: Conditions
) -> list[Row]:
    """Compute the metrics of each data set, if there are at least two."""
    if len(datasets) < 2:
        return []
    return [
        {
            "data": predictions.name,
            "score": predictions.score,
            "mean_confidence": float(predictions.confidence.mean()),
            **conditions.measure(predictions.confidence, predictions.loss),
        }
        for predictions in datasets
    ]


# ------------------------------------------------------------------------------ temperatures
def sharpening_rows(predictions: ProbabilisticPredictions, thresholds: FloatArray) -> list[Row]:
    """Compute metrics of predictions whose logits are divided by each temperature."""
    rows: list[Row] = []
    for temperature in TEMPERATURES:
        confidence = predictions.scale_confidence(temperature)
        sweep = predictions.sweep(thresholds, confidence)
        of_all_samples = {
            "ECE": ece(confidence, predictions.loss),
            # The Brier score is proper, so it does not reward overconfidence.
            "Brier": float(np.mean((confidence - 1 + predictions.loss) ** 2)),
            "AUGRC": augrc(predictions.scale_log_odds(temperature), predictions.loss),
        }
        rows += [
            {
                "data": predictions.name,
                "temperature": temperature,
                "threshold": threshold,
                **{name: finite_or_none(getattr(sweep, name)[i]) for name in QUANTITIES},
                **of_all_samples,
            }
            for i, threshold in enumerate(thresholds.tolist())
        ]
    return rows


def best_temperatures(rows: Sequence[Row]) -> Iterator[tuple[float, float, float]]:
    """Yield the optimal temperatures of CWSA, CWSA+ and the Brier score at each threshold.

    If CWSA+ is undefined for all temperatures, the optimal temperature of CWSA is used instead.
    """
    for group in group_rows(rows, "threshold").values():
        by_cwsa = max(group, key=lambda row: row["cwsa"])
        defined = [row for row in group if row["cwsa_plus"] is not None]
        by_cwsa_plus = max(defined, key=lambda row: row["cwsa_plus"]) if defined else by_cwsa
        by_brier = min(group, key=lambda row: row["Brier"])
        yield by_cwsa["temperature"], by_cwsa_plus["temperature"], by_brier["temperature"]


# ------------------------------------------------------------------------------ tidy table
def tidy_rows(experiment_rows: Mapping[str, Sequence[Row]], threshold: float) -> Iterator[Row]:
    """Convert the tables of all experiments to rows that each contain one number."""
    settings = {NOISE: "rate", IMBALANCE: "share", SHARPENING: "temperature"}
    quantities = ("accuracy", "mean_confidence", *QUANTITIES, "ECE", "Brier", "AUGRC")
    for experiment, rows in experiment_rows.items():
        for row in rows:
            for quantity in [name for name in quantities if name in row]:
                expected = row.get("expected_cwsa") if quantity == "cwsa" else None
                yield {
                    "experiment": experiment,
                    "data": row["data"],
                    "setting": row.get(settings.get(experiment, "")),
                    "threshold": row.get("threshold", threshold),
                    "quantity": quantity,
                    "value": row[quantity],
                    "expected": expected,
                    "sd": None,
                }
