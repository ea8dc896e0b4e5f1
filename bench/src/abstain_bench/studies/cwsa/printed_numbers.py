"""Compare numbers that the paper reports for simulated models with exact values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain.report.formatting import join_first
from abstain.simulate import Population
from abstain.typing import FloatArray
from abstain_bench.published import table
from abstain_bench.studies._display import Row, group_rows
from abstain_bench.studies.cwsa.claims import OPEN, Claim, to_verdict
from abstain_bench.studies.cwsa.models import (
    CALIBRATED,
    OVERALL_METRICS,
    OVERCONFIDENT,
    OVERCONFIDENT_TEXT,
    PERFECT,
    PERFECT_TEXT,
    QUANTITIES,
    RANDOM,
    TITLES,
    UNDERCONFIDENT,
    SimulatedModel,
    population_sweep,
)
from abstain_bench.studies.published.contradictions import (
    CWSA_TABLES,
    is_above_bound,
    lines_by_threshold,
)

#: Simulated model and section of the paper for each model name in the text of the paper.
_MODEL_AND_SECTION: Final = {
    CALIBRATED: (CALIBRATED, "5.3"),
    OVERCONFIDENT: (OVERCONFIDENT_TEXT, "5.4"),
    UNDERCONFIDENT: (UNDERCONFIDENT, "5.5"),
    RANDOM: (RANDOM, "5.6"),
    PERFECT: (PERFECT_TEXT, "5.7"),
}

#: Number of samples of each model in the paper.
_N_SAMPLES: Final = 1000

#: A printed number is inconsistent with a model beyond this number of standard deviations.
_MAX_DISTANCE: Final = 4.0

#: Four standard deviations of the mean of 1,000 weights.
_PAIR_TOLERANCE: Final = 0.08

_QUANTITY_BY_NAME: Final = {name.casefold(): name for name in (*QUANTITIES, *OVERALL_METRICS)}
_NAMED_THRESHOLDS: Final = {"lowest": 0.5, "highest": 0.99}


def compare_printed_numbers(models: Sequence[SimulatedModel], thresholds: FloatArray) -> list[Row]:
    """Compare the numbers in the paper with exact expectations at the same thresholds."""
    at_thresholds = {}
    for model in models:
        if np.array_equal(model.thresholds, thresholds):
            at_thresholds[model.name] = model
        else:
            at_thresholds[model.name] = model.at_thresholds(thresholds)
    facts = [(fact, "text") for fact in table("cwsa_text")]
    facts += [(fact, "table") for name in CWSA_TABLES for fact in table(name)]
    return [_row(fact, at_thresholds, location) for fact, location in facts]


def _row(fact: Mapping[str, Any], models: Mapping[str, SimulatedModel], location: str) -> Row:
    """Return a row that compares a number in the paper with its expectation."""
    name, section = _MODEL_AND_SECTION[fact["model"]]
    model = models[name]
    quantity = _QUANTITY_BY_NAME[fact["metric"].casefold()]
    row: dict[str, Any] = {
        "section": section,
        "location": location,
        "model": fact["model"],
        "quantity": quantity,
        "threshold": fact["threshold"],
        "printed": fact["number"],
    }
    expectation = _expectation_and_sd(model, quantity, fact)
    if expectation is None:
        return row | {"expected": None, "sd": None, "distance_in_sd": None}
    expected, simulated_sd = expectation
    # The paper has another sample size than the simulation.
    sd = simulated_sd * np.sqrt(model.n_samples / _N_SAMPLES)
    difference = fact["number"] - expected
    # The paper states some numbers as lower bounds, which only an excess contradicts.
    is_lower_bound = "above" in fact.get("qualifier", "")
    distance = max(difference, 0.0) if is_lower_bound else abs(difference)
    n_decimals = len(fact["value"].partition(".")[2])
    max_rounding_error = 0.5 * 10.0**-n_decimals
    distance_in_sd = _divide(max(distance - max_rounding_error, 0.0), sd)
    return row | {"expected": expected, "sd": sd, "distance_in_sd": distance_in_sd}


def _divide(distance: float, sd: float) -> float:
    """Return the distance in standard deviations, which is infinite if the SD is 0."""
    if sd > 1e-12:
        return distance / sd
    return float("inf") if distance > 1e-9 else 0.0


def _expectation_and_sd(
    model: SimulatedModel, quantity: str, fact: Mapping[str, Any]
) -> tuple[float, float] | None:
    """Return the expectation and the SD of a number in the paper, or None if they are undefined."""
    if quantity in OVERALL_METRICS:
        exact = model.ece if quantity == "ECE" else model.population.aurc()
        return exact, float(model.sd(quantity)[0])
    expected = getattr(model.expected, quantity)
    sd = model.sd(quantity)
    if "peak" in fact.get("qualifier", ""):
        index = int(np.nanargmax(expected))
        return float(expected[index]), float(sd[index])
    printed_threshold = fact["threshold"]
    if printed_threshold == "all":
        return float(np.nanmean(expected)), float(np.nanmax(sd))
    threshold_text = fact.get("threshold_used") or _NAMED_THRESHOLDS.get(
        printed_threshold, printed_threshold
    )
    try:
        threshold = float(threshold_text)
    except ValueError:
        return None
    is_defined = np.isfinite(expected) & np.isfinite(sd)
    if not is_defined.any():
        return None
    thresholds = model.thresholds[is_defined]
    return (
        float(np.interp(threshold, thresholds, expected[is_defined])),
        float(np.interp(threshold, thresholds, sd[is_defined])),
    )


def check_printed_numbers(rows: Sequence[Row], overconfident: Population) -> Iterator[Claim]:
    """Test whether the numbers in the paper are possible and agree with the described models."""
    rows_by_source = group_rows(rows, "model", "location")
    for name, (_, section) in _MODEL_AND_SECTION.items():
        for (model, location), group in rows_by_source.items():
            if model == name:
                yield _check_model_numbers(name, section, location, group)
    for name in CWSA_TABLES:
        yield _check_table(name)
    yield _check_constant_accuracy()
    pair = {row["quantity"]: row["printed"] for row in rows if "lost" in row["threshold"]}
    if pair:
        yield _check_pair(pair, overconfident)


def _check_model_numbers(name: str, section: str, location: str, rows: Sequence[Row]) -> Claim:
    """Test whether the reported numbers of a model are close to their expectations."""
    compared = [row for row in rows if row["distance_in_sd"] is not None]
    distant = [row for row in compared if row["distance_in_sd"] > _MAX_DISTANCE]
    distant.sort(key=lambda row: -row["distance_in_sd"])
    n_close = len(compared) - len(distant)
    evidence = f"{n_close} of {len(compared)} within {_MAX_DISTANCE:g} standard deviations"
    if distant:
        details = [_printed_and_expected(row) for row in distant]
        evidence += f"; {join_first(details, 3)}"
    return Claim(
        section,
        f"The numbers of the {location} are those of the {name} model",
        to_verdict(holds=not distant, holds_somewhere=n_close > 0) if compared else OPEN,
        evidence,
    )


def _printed_and_expected(row: Row) -> str:
    threshold = f" at {row['threshold']}" if row["threshold"] else ""
    title = TITLES.get(row["quantity"], row["quantity"])
    return f"{title}{threshold} {row['printed']:g} instead of {row['expected']:.4g}"


def _check_table(name: str) -> Claim:
    """Test whether CWSA is at most coverage times CWSA+, which holds for all models."""
    lines = lines_by_threshold(name)
    impossible = [threshold for threshold, line in lines.items() if is_above_bound(line)]
    model = table(name)[0]["model"]
    evidence = (
        "CWSA exceeds coverage x CWSA+, which is impossible, at "
        f"{len(impossible)} of {len(lines)} thresholds"
    )
    if impossible:
        evidence += f": {', '.join(impossible)}"
    return Claim(
        _MODEL_AND_SECTION[model][1],
        f"The rows of the table of the {model} model are possible for one model",
        to_verdict(holds=not impossible, holds_somewhere=len(impossible) < len(lines)),
        evidence,
    )


def _check_constant_accuracy() -> Claim:
    """Test whether the reported selective accuracy is constant over thresholds."""
    accuracies = [
        fact["number"] for fact in table("cwsa_table_2") if fact["metric"] == "selective_accuracy"
    ]
    return Claim(
        _MODEL_AND_SECTION[OVERCONFIDENT][1],
        "The selective accuracy is 94.3% at all thresholds, because all samples are accepted",
        to_verdict(holds=max(accuracies) - min(accuracies) < 5e-4),
        f"{min(accuracies):.4f} to {max(accuracies):.4f} in the table of this section",
    )


def _check_pair(pair: Mapping[str, float], overconfident: Population) -> Claim:
    """Test whether a model has the numbers of both metrics at some common threshold."""
    thresholds = np.linspace(_NAMED_THRESHOLDS["lowest"], _NAMED_THRESHOLDS["highest"], 491)
    expected = population_sweep(overconfident, thresholds)
    distances = {name: np.abs(getattr(expected, name) - value) for name, value in pair.items()}
    is_close = np.max(list(distances.values()), axis=0) < _PAIR_TOLERANCE
    numbers = {name: f"{TITLES.get(name, name)} {value:g}" for name, value in pair.items()}
    closest = [
        f"{numbers[name]} near the threshold {thresholds[np.argmin(distance)]:.2f}"
        for name, distance in distances.items()
    ]
    return Claim(
        _MODEL_AND_SECTION[OVERCONFIDENT][1],
        f"The overconfident model has {' and '.join(numbers.values())} at one threshold",
        to_verdict(holds=bool(is_close.any())),
        f"its population has {', and '.join(closest)}",
    )
