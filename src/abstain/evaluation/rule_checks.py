"""The record of checked rules, under its earlier name."""

from abstain.evaluation.rules import CALIBRATION, RuleChecks

__all__ = ["CALIBRATION", "RuleChecks"]
