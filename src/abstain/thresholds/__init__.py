"""Thresholds: when to answer, what that promises, and whether it holds elsewhere.

Every method returns a `DecisionRule`: accept when confidence >= threshold.
"""

from abstain.thresholds.achieved import RuleCheck
from abstain.thresholds.binomial import binomial_risk_bound
from abstain.thresholds.certified import learn_then_test, sgr
from abstain.thresholds.check import check, check_groups, check_many
from abstain.thresholds.conformal import conformal_risk_control, coverage_guarantee
from abstain.thresholds.empirical import chow, for_cost, for_coverage, for_risk
from abstain.thresholds.entry import METHODS, Method
from abstain.thresholds.methods import fit
from abstain.thresholds.rule import DecisionRule

__all__ = [
    "METHODS",
    "DecisionRule",
    "Method",
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
