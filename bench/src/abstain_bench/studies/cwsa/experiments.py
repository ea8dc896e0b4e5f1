"""What is done to predictions: labels are replaced, classes made rare, claims sharpened."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from abstain import simulate
from abstain.metrics import augrc, ece
from abstain.simulate import Population
from abstain.typing import FloatArray
from abstain_bench.studies._tables import Row
from abstain_bench.studies.cwsa.answers import Answers
from abstain_bench.studies.cwsa.models import CALIBRATED, QUANTITIES, number, swept_quietly

#: Shares of labels that are replaced, as in the released code.
NOISE_RATES: Final = (0.0, 0.1, 0.2, 0.3, 0.4)

#: Temperatures by which logits are divided: below 1 claims become bolder.
TEMPERATURES: Final = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0)

#: Shares of all samples that the class with the most failures is given.
CLASS_SHARES: Final = (0.02, 0.05, 0.1, 0.2, 0.4)

#: The names of the experiments, as tables and files have them.
NOISE, IMBALANCE, SHARPENING = "label-noise", "imbalance", "sharpening"
SHIFT, COMPARISON = "shift", "comparison"


@dataclass(frozen=True)
class Conditions:
    """At which threshold experiments are read, and with which draws."""

    at: float
    samples: int
    seed: int

    def measured(
        self, confidence: FloatArray, loss: FloatArray, *, weight: FloatArray | None = None
    ) -> dict[str, float | None]:
        """Return what the experiments tell: at the threshold, and of all samples."""
        swept = swept_quietly(confidence, loss, [self.at], weight=weight)
        right = float(1 - np.average(loss, weights=weight))
        at = {quantity: number(getattr(swept, quantity)[0]) for quantity in QUANTITIES}
        return {
            "right": right,
            **at,
            "ECE": ece(confidence, loss, weight=weight),
            "AUGRC": augrc(confidence, loss, weight=weight),
        }


# ------------------------------------------------------------------------------ label noise
def noise_rows(judged: Sequence[Answers], asked: Conditions) -> list[Row]:
    """Replace a share of the labels, of the model that is called calibrated and of data sets."""
    population, classes = simulate.confident_when_correct(), 3
    drawn = population.sample(asked.samples, rng=asked.seed)
    model = Answers(CALIBRATED, drawn.confidence, drawn.loss, classes=classes)
    out: list[Row] = []
    for source, law in ((model, population), *((answers, None) for answers in judged)):
        for rate in NOISE_RATES:
            found = source.relabeled(rate)
            row = {"data": source.name, "rate": rate}
            row |= asked.measured(found.confidence, found.loss)
            row["expected_cwsa"] = None if law is None else _expected(law, rate, classes, asked.at)
            out.append(row)
    return out


def relabeled_law(population: Any, rate: float, classes: int) -> Population:
    """Return the law of a model of blocks when a share of the labels is replaced."""
    parts = population.parameters
    risk = parts["risks"]
    after = risk * (1 - rate / (classes - 1)) + (1 - risk) * rate
    return simulate.block_scores(parts["low"], parts["high"], parts["mass"], after)


def _expected(population: Population, rate: float, classes: int, at: float) -> float:
    return float(simulate.expected_cwsa(relabeled_law(population, rate, classes), at))


# ------------------------------------------------------------------------------ rare classes
def imbalance_rows(judged: Answers, asked: Conditions) -> list[Row]:
    """Weigh the class with the most failures up and down; none where classes are not known."""
    labels = judged.labels
    if labels is None or not judged.loss.any():
        return []
    known = [k for k in np.unique(labels) if k >= 0 and (labels == k).sum() >= 2]
    if len(known) < 2:
        return []
    failing = [float(judged.loss[labels == k].mean()) for k in known]
    hard = labels == known[int(np.argmax(failing))]
    own = asked.measured(judged.confidence[hard], judged.loss[hard])
    out: list[Row] = []
    for share in CLASS_SHARES:
        weight = np.where(hard, share / hard.mean(), (1 - share) / (1 - hard.mean()))
        row = {"data": judged.name, "share": share, "failing": max(failing)}
        row |= asked.measured(judged.confidence, judged.loss, weight=weight)
        out.append(row | {"cwsa_of_class": own["cwsa"]})
    return out


# ------------------------------------------------------------------------------ a shift
def comparison_rows(parts: Sequence[Answers], asked: Conditions) -> list[Row]:
    """Measure each data set at the threshold; none if there is only one."""
    if len(parts) < 2:
        return []
    out: list[Row] = []
    for part in parts:
        row = {
            "data": part.name,
            "score": part.score,
            "mean_confidence": float(part.confidence.mean()),
        }
        out.append(row | asked.measured(part.confidence, part.loss))
    return out


# ------------------------------------------------------------------------------ sharpening
def sharpening_rows(
    judged: Answers, thresholds: FloatArray, temperatures: Sequence[float] = TEMPERATURES
) -> list[Row]:
    """Divide the logits by temperatures: the same answers, claimed more or less boldly."""
    out: list[Row] = []
    for temperature in temperatures:
        confidence = judged.sharpened(temperature)
        area = augrc(judged.sharpened_log_odds(temperature), judged.loss)
        swept = swept_quietly(confidence, judged.loss, thresholds)
        for i, threshold in enumerate(thresholds.tolist()):
            out.append(
                {
                    "data": judged.name,
                    "temperature": temperature,
                    "threshold": threshold,
                    **{name: number(getattr(swept, name)[i]) for name in QUANTITIES},
                    "ECE": ece(confidence, judged.loss),
                    # Proper: least where each claim is the chance of being right.
                    "Brier": float(np.mean((confidence - 1 + judged.loss) ** 2)),
                    "AUGRC": area,
                }
            )
    return out


def by_data(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Group the rows of an experiment by their data set."""
    names = dict.fromkeys(row["data"] for row in rows)
    return {name: [row for row in rows if row["data"] == name] for name in names}


def boldest(rows: Sequence[Row]) -> Iterator[tuple[float, float, float]]:
    """Return the best temperatures of a data set by CWSA, CWSA+ and Brier score, by threshold."""
    for threshold in dict.fromkeys(row["threshold"] for row in rows):
        mine = [row for row in rows if row["threshold"] == threshold]
        best = max(mine, key=lambda row: row["cwsa"])
        known = [row for row in mine if row["cwsa_plus"] is not None]
        plus = max(known, key=lambda row: row["cwsa_plus"]) if known else best
        proper = min(mine, key=lambda row: row["Brier"])
        yield best["temperature"], plus["temperature"], proper["temperature"]


# ------------------------------------------------------------------------------ the tidy table
def tidy(rows: Sequence[Row], experiment: str, setting: str, at: float) -> Iterator[Row]:
    """Turn the table of an experiment into rows of one number each."""
    numbers = ("right", "mean_confidence", *QUANTITIES, "ECE", "Brier", "AUGRC")
    for row in rows:
        for quantity in numbers:
            if quantity in row:
                yield {
                    "experiment": experiment,
                    "data": row["data"],
                    "setting": row.get(setting),
                    "threshold": row.get("threshold", at),
                    "quantity": quantity,
                    "value": row[quantity],
                    "expected": row.get("expected_cwsa") if quantity == "cwsa" else None,
                    "sd": None,
                }
