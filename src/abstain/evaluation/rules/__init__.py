"""Select decision rules on calibration data, and check them on other data."""

from abstain.evaluation.rules.check import check_rule
from abstain.evaluation.rules.record import CALIBRATION, RuleChecks
from abstain.evaluation.rules.threshold import set_threshold

__all__ = ["CALIBRATION", "RuleChecks", "check_rule", "set_threshold"]
