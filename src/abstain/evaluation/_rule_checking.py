"""A rule on one data set, with labels or without, and on the curve of its calibration data."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from abstain._foundation.ranks import group_ties
from abstain.curves.risk_coverage import Kind, RiskCoverageCurve, curve_of
from abstain.errors import InputError
from abstain.evaluation._rule_data import Part
from abstain.inference.intervals import no_interval
from abstain.thresholds import DecisionRule, RuleCheck, check, check_groups
from abstain.typing import AnyArray, Scale

_NAN = float("nan")
_UNLABELED = "no labels are known"


def check_part(
    rule: DecisionRule, part: Part, level: float, scale: Scale | None
) -> tuple[RuleCheck, ...]:
    """Return what the rule achieves on a data set, then on each of its groups.

    Without losses, the coverage alone.
    """
    known = part.loss is not None
    loss = np.zeros(part.values.size) if part.loss is None else part.loss
    # A rule of before scales were recorded is compared as it was then, with a warning beside.
    bare = part.scored is None or (rule.scale == "unknown" and not part.own)
    values: AnyArray = part.values if bare else part.scored
    with_name: dict[str, Any] = {"name": part.name, "weight": part.weight, "level": level}
    try:
        if part.group is not None:
            return check_groups(rule, values, loss, part.group, scale=scale, **with_name)
        found = check(rule, values, loss, scale=scale, **with_name)
    except InputError as error:
        msg = f"{part.name}: {error}"
        raise type(error)(msg) from error
    return (found if known else _coverage_alone(found),)


def _coverage_alone(found: RuleCheck) -> RuleCheck:
    """Take back what depends on losses that are not known."""
    nothing = no_interval(found.coverage_interval.level, _UNLABELED)
    checked = replace(
        found,
        selective_risk=_NAN,
        selective_risk_interval=nothing,
        generalized_risk=_NAN,
        generalized_risk_interval=nothing,
    )
    if found.rule.quantity == "coverage" or found.verdict in {"unattainable", "no target"}:
        return checked
    return replace(checked, excess=_NAN, excess_interval=nothing, verdict="cannot tell")


def curve_for(rule: DecisionRule, part: Part) -> RiskCoverageCurve | None:
    """Return the curve of the risk that the rule is about."""
    kind: Kind = "generalized" if rule.quantity == "generalized risk" else "selective"
    if part.loss is None:
        return None
    return curve_of(group_ties(part.values, part.loss, part.weight), kind)


def is_binary(part: Part) -> bool:
    """Tell whether every loss known is 0 or 1."""
    return part.loss is None or bool(((part.loss == 0) | (part.loss == 1)).all())


def as_probability(rule: DecisionRule, parts: list[Part]) -> float | None:
    """Return the threshold as a probability, where it is known to be log-odds of one."""
    if rule.scale == "log-odds":
        return rule.threshold_on("probability")
    if rule.scale != "unknown" or rule.threshold is None or not in_log_odds(parts):
        return None
    return float(expit(rule.threshold))


def in_log_odds(parts: Sequence[Part]) -> bool:
    """Tell whether the score of a rule is computed there, as log-odds."""
    return any(p.scored is not None and not p.own and p.scored.scale == "log-odds" for p in parts)
