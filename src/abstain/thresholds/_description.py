"""Sentences that describe a `DecisionRule`."""

from itertools import chain
from typing import Any


def describe_rule(rule: Any) -> str:
    """Describe a `DecisionRule` in one sentence, or in one sentence for each part."""
    if rule.parts:
        heading = f"By {rule.per}" if rule.per else "One threshold, several limits"
        lines = [f"{part.name}: {part.rule}".splitlines() for part in rule.parts]
        return "\n".join([f"{heading}:", *(f"  {line}" for line in chain(*lines))])
    if rule.threshold is None:
        return f"Accept nothing: {rule.reason}."
    score = f'"{rule.score}"' if rule.score else "the confidence"
    scale = f" ({rule.scale_description})" if rule.scale_description else ""
    accept = f"Accept when {score} is at least {rule.threshold:.6g}{scale}"
    if rule.coverage is None:
        return f"{accept}; {_describe_guarantee(rule)}."
    risk = "" if rule.risk is None else f" and a selective risk of {rule.risk:.4g}"
    # With weights, the coverage is not the share of accepted samples.
    calibration = (
        f"{rule.accepted} of {rule.n} calibration samples are accepted, a coverage of "
        f"{rule.coverage:.4g}{risk}"
    )
    return f"{accept}; {calibration}; {_describe_guarantee(rule)}."


def _describe_guarantee(rule: Any) -> str:
    """Describe the guarantee of a rule without parts as a clause."""
    if rule.guarantee == "none":
        return "nothing is guaranteed"
    side = "at least" if rule.guarantee == "coverage" else "at most"
    population = f", for {rule.population}" if rule.population else ""
    if rule.in_expectation:
        return (
            f"the {rule.guarantee} is {side} {rule.target:g} on average over calibration sets"
            f"{population}"
        )
    probability = 1 - (rule.delta or 0.0)
    return (
        f"with probability {probability:.6g} or more over calibration sets, the true "
        f"{rule.guarantee} of the rule is {side} {rule.target:g}{population}"
    )
