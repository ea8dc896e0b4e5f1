"""Estimates of the risk on unlabeled data sets."""

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Final

from abstain._foundation.notes import Note
from abstain.evaluation.rules.data import RuleData
from abstain.shift import UnlabeledRisk, unlabeled_risk
from abstain.thresholds import DecisionRule

#: For each column of a table of checks: the attribute of `UnlabeledRisk` that it contains.
ESTIMATES: Final = {
    "estimated_risk_mean_confidence": "mean_confidence",
    "estimated_risk_thresholded_confidence": "thresholded_confidence",
    "estimated_risk_reweighted": "reweighted",
}


def estimate_risks(
    rule: DecisionRule, data_sets: Sequence[RuleData], calibration: RuleData | None
) -> tuple[UnlabeledRisk | None, ...]:
    """Estimate the selective risk of each unlabeled data set; None for the others.

    Requires one threshold on the scale of the confidences, and calibration data with 0/1 losses.
    Their weights may be density ratios, if the guarantee is for other data.
    """
    no_estimates = (None,) * len(data_sets)
    samples = None if calibration is None else calibration.s
    if rule.parts or samples is None or rule.threshold is None:
        return no_estimates
    has_frequency_weights = samples.weight is not None and not rule.population
    if not samples.is_binary or has_frequency_weights:
        return no_estimates
    return tuple(
        unlabeled_risk(
            samples.confidence,
            samples.loss,
            data.values,
            threshold=rule.threshold,
            ratio=samples.weight,
        )
        if data.loss is None
        else None
        for data in data_sets
    )


def estimate_notes(
    data_sets: Sequence[RuleData], estimates: Sequence[UnlabeledRisk | None]
) -> Iterator[Note]:
    """Return a note with the estimates of each unlabeled data set."""
    for data, estimate in zip(data_sets, estimates, strict=True):
        if estimate is None or estimate.accepted == 0:
            continue
        reweighted = ""
        if not isnan(estimate.reweighted):
            reweighted = f", {100 * estimate.reweighted:.3g}% by density ratios"
        yield Note(
            "estimated_risk",
            f"{data.name}: the data have no labels, so the risk is only estimated, without a "
            f"guarantee. Estimated selective risk: {100 * estimate.mean_confidence:.3g}% by "
            f"calibrated confidence, {100 * estimate.thresholded_confidence:.3g}% by thresholded "
            f"confidence (ATC){reweighted}. On the calibration data it was "
            f"{100 * estimate.calibration_risk:.3g}%. The estimates miss errors that do not occur "
            "in the calibration data, such as those on new classes.",
        )


def estimate_columns(estimate: UnlabeledRisk | None) -> dict[str, float]:
    """Return the estimates as columns of a row; NaN if there are none."""
    if estimate is None:
        return dict.fromkeys(ESTIMATES, float("nan"))
    return {column: float(getattr(estimate, name)) for column, name in ESTIMATES.items()}
