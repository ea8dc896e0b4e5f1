"""Thresholds: when to answer, what that promises, and whether it holds elsewhere.

Every method returns a `DecisionRule`: accept when confidence >= threshold.
"""

from abstain.thresholds.binomial import binomial_risk_bound
from abstain.thresholds.check import RuleCheck, check, check_many
from abstain.thresholds.conformal import conformal_risk_control, coverage_guarantee
from abstain.thresholds.empirical import chow, for_cost, for_coverage, for_risk
from abstain.thresholds.groups import check_groups
from abstain.thresholds.ltt import learn_then_test
from abstain.thresholds.methods import METHODS, Method, fit
from abstain.thresholds.rule import DecisionRule
from abstain.thresholds.sgr import sgr

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
