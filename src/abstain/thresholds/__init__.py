"""Thresholds: when to answer, what that promises, and whether it holds elsewhere.

Every rule returns a `DecisionRule`: accept when confidence >= threshold.
"""

from abstain.thresholds.binomial import binomial_risk_bound
from abstain.thresholds.catalogue import fit
from abstain.thresholds.certified import learn_then_test, sgr
from abstain.thresholds.check import check, check_groups, check_many
from abstain.thresholds.conformal import conformal_risk_control, coverage_guarantee
from abstain.thresholds.empirical import chow, for_cost, for_coverage, for_risk
from abstain.thresholds.entry import RULES, Rule
from abstain.thresholds.rule import DecisionRule
from abstain.thresholds.rule_check import RuleCheck

#: The name that `RULES` had before.
METHODS = RULES

__all__ = [
    "METHODS",
    "RULES",
    "DecisionRule",
    "Rule",
    "RuleCheck",
    "binomial_risk_bound",
    "check",
    "check_groups",
    "check_many",
    "chow",
    "conformal_risk_control",
    "coverage_guarantee",
    "fit",
    "for_cost",
    "for_coverage",
    "for_risk",
    "learn_then_test",
    "sgr",
]
