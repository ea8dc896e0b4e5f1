"""Decision rules, their guarantees, and checks of decision rules on other data.

Every function that selects a threshold returns a `DecisionRule`, which accepts a sample if
confidence >= threshold. A decision rule with a threshold for each group, or with several risk
limits, consists of parts, which are decision rules too.
"""

from abstain.thresholds import certified, conformal, empirical
from abstain.thresholds.binomial import binomial_risk_bound, fixed_sequence
from abstain.thresholds.cascade import (
    Cascade,
    CascadeFrontier,
    CascadePlan,
    CascadeStage,
    daily_share,
)
from abstain.thresholds.catalogue import RULES, Rule, fit
from abstain.thresholds.certified import learn_then_test, sgr
from abstain.thresholds.check import (
    Disparity,
    check,
    check_groups,
    check_limits,
    check_many,
    disparities,
)
from abstain.thresholds.conformal import conformal_risk_control, coverage_guarantee
from abstain.thresholds.empirical import chow, for_cost, for_coverage, for_risk
from abstain.thresholds.limits import Limit, several_risks
from abstain.thresholds.mondrian import fit_groups
from abstain.thresholds.rule import DecisionRule, RulePart
from abstain.thresholds.rule_check import LoadCheck, RuleCheck, StageCheck

for _entry in (*empirical.ENTRIES, *certified.ENTRIES, *conformal.ENTRIES):
    RULES.add(_entry)

__all__ = [
    "RULES",
    "Cascade",
    "CascadeFrontier",
    "CascadePlan",
    "CascadeStage",
    "DecisionRule",
    "Disparity",
    "Limit",
    "LoadCheck",
    "Rule",
    "RuleCheck",
    "RulePart",
    "StageCheck",
    "binomial_risk_bound",
    "check",
    "check_groups",
    "check_limits",
    "check_many",
    "chow",
    "conformal_risk_control",
    "coverage_guarantee",
    "daily_share",
    "disparities",
    "fit",
    "fit_groups",
    "fixed_sequence",
    "for_cost",
    "for_coverage",
    "for_risk",
    "learn_then_test",
    "several_risks",
    "sgr",
]
