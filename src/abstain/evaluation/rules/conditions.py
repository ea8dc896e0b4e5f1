"""Describe the condition under which a decision rule answers, with few digits."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain.confidence.registry import BASELINE
from abstain.evaluation.rules.data import RuleData
from abstain.thresholds import DecisionRule
from abstain.thresholds.decimals import round_probability_up, shortest_decimal
from abstain.thresholds.rule_check import apply_rule

#: Smallest number of decimals of a displayed probability.
_MIN_DECIMALS: Final = 3


@dataclass(frozen=True)
class AnswerCondition:
    """The condition under which a rule answers a sample of a group.

    The displayed threshold has as few digits as possible. On the calibration data and the checked
    data, it accepts the same samples as the exact threshold.

    Attributes
    ----------
    group : str
        Name of the group, or "" for a rule with one threshold.
    symbol : str
        "p" if the threshold is a probability, and the name of the score otherwise.
    threshold : str
        The threshold as text, or "" if there is no threshold.
    opposite : str
        For two classes, the largest probability of the positive class at which the rule answers the
        negative class. If the number of classes is not two, the text is empty.
    """

    group: str
    symbol: str
    threshold: str
    opposite: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        """Alternative conditions, such as "p ≥ 0.920" and "p ≤ 0.080", if there is a threshold."""
        if not self.threshold:
            return ()
        above = f"{self.symbol} \u2265 {self.threshold}"
        return (above, f"{self.symbol} \u2264 {self.opposite}") if self.opposite else (above,)

    @property
    def text(self) -> str:
        """The condition as text, or "no threshold"."""
        return " or ".join(self.parts) or "no threshold"


def answer_conditions(
    rule: DecisionRule, data_sets: Sequence[RuleData], *, n_classes: int = 0
) -> tuple[AnswerCondition, ...]:
    """Return the condition that each threshold of a rule defines.

    `data_sets` contains the calibration data and the checked data on the scale of the rule.
    """
    is_computed_in_log_odds = any(data.is_in_log_odds for data in data_sets)
    is_probability = rule.scale == "log-odds" or (
        rule.scale == "unknown" and is_computed_in_log_odds
    )
    decisions = [apply_rule(rule, data.values, "score", data.threshold_group) for data in data_sets]
    thresholds = {"": rule.threshold}
    if rule.per:
        thresholds = {part.name: part.rule.threshold for part in rule.parts}
    # With two classes, the confidence is the larger of p and 1 - p.
    has_opposite = is_probability and n_classes == 2 and rule.score == BASELINE
    score_name = rule.score or "confidence"
    conditions = []
    for group, threshold in thresholds.items():
        symbol = "p" if is_probability else score_name
        if threshold is None:
            conditions.append(AnswerCondition(group, symbol, ""))
            continue
        rejected, accepted = -np.inf, np.inf
        for data, is_accepted in zip(data_sets, decisions, strict=True):
            in_group = np.ones(is_accepted.size, np.bool_)
            if rule.per and data.threshold_group is not None:
                in_group = data.threshold_group == group
            rejected = data.values[in_group & ~is_accepted].max(initial=rejected)
            accepted = data.values[in_group & is_accepted].min(initial=accepted)
        if is_probability:
            text = _probability_text(threshold, rejected, accepted)
        else:
            text = _score_text(threshold, rejected, accepted)
        if not text:
            # The probability is too close to 1 to be displayed as a decimal number.
            symbol = f"log-odds of {score_name}" if is_probability else symbol
            conditions.append(AnswerCondition(group, symbol, f"{threshold:.17g}"))
            continue
        opposite = f"{1 - Decimal(text):f}" if has_opposite else ""
        conditions.append(AnswerCondition(group, symbol, text, opposite))
    return tuple(conditions)


def _score_text(threshold: float, rejected: float, accepted: float) -> str:
    """Return the decimal with the fewest digits that separates the same confidences."""
    if np.isinf(rejected) and np.isinf(accepted):
        return f"{threshold:.9g}"
    return shortest_decimal(
        threshold,
        rejected=rejected,
        accepted=max(accepted, threshold),
        min_decimals=_MIN_DECIMALS if 0 < threshold < 1 else 0,
    )


def _probability_text(log_odds: float, rejected: float, accepted: float) -> str:
    """Return the probability with the fewest digits that separates the same samples."""
    probability = float(special.expit(log_odds))
    if np.isinf(rejected) and np.isinf(accepted):
        return round_probability_up(probability)
    return shortest_decimal(
        probability,
        rejected=float(special.expit(rejected)),
        accepted=float(special.expit(accepted)),
        min_decimals=_MIN_DECIMALS,
    )
