"""What a rule may get wrong on data without labels: estimates beside its checked coverage."""

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any, Final

from abstain._foundation.notes import Note
from abstain.evaluation.rules.data import RuleData
from abstain.shift import UnlabeledRisk, unlabeled_risk
from abstain.thresholds import DecisionRule

#: The columns of a row of results, and the estimates in them.
ESTIMATES: Final = {
    "estimated_risk_mean_confidence": "mean_confidence",
    "estimated_risk_thresholded_confidence": "thresholded_confidence",
    "estimated_risk_reweighted": "reweighted",
}


def estimate_risks(
    rule: DecisionRule, parts: Sequence[RuleData], calibration: RuleData | None
) -> tuple[UnlabeledRisk | None, ...]:
    """Estimate the selective risk of each data set without labels; None for the others.

    It takes one threshold on the scale of the confidences, and calibration data with 0/1 losses,
    whose weights may be density ratios where the rule is for other data.
    """
    nothing = (None,) * len(parts)
    known = None if calibration is None else calibration.s
    if rule.parts or known is None or rule.threshold is None:
        return nothing
    if not known.is_binary or (known.weight is not None and not rule.promised_for):
        return nothing
    more: dict[str, Any] = {"threshold": rule.threshold, "ratio": known.weight}
    return tuple(
        unlabeled_risk(known.confidence, known.loss, part.values, **more)
        if part.loss is None
        else None
        for part in parts
    )


def estimate_notes(
    parts: Sequence[RuleData], estimates: Sequence[UnlabeledRisk | None]
) -> Iterator[Note]:
    """Say what is estimated of each data set, and that nothing is promised."""
    for part, found in zip(parts, estimates, strict=True):
        if found is None or found.accepted == 0:
            continue
        by_ratios = (
            ""
            if isnan(found.reweighted)
            else (f", {100 * found.reweighted:.3g} % by the density ratios")
        )
        yield Note(
            "estimated_risk",
            f"{part.name}: estimated without labels, which promises nothing: of the answers "
            f"{100 * found.mean_confidence:.3g} % are wrong by their calibrated confidence, "
            f"{100 * found.thresholded_confidence:.3g} % by thresholded confidence (ATC)"
            f"{by_ratios}; {100 * found.calibration_risk:.3g} % were on the calibration data. "
            "Errors that these do not have, such as those on new classes, are not seen.",
        )


def estimate_columns(found: UnlabeledRisk | None) -> dict[str, float]:
    """Return the estimates as columns of a row; NaN where there are none."""
    nan = float("nan")
    return {
        column: nan if found is None else float(getattr(found, name))
        for column, name in ESTIMATES.items()
    }
