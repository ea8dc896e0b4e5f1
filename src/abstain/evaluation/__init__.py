"""Joins predictions, scores and metrics; the only place that knows all three."""

from abstain.evaluation.calibration import (
    CalibratedScore,
    CalibrationCheck,
    calibrate,
    calibration_check,
)
from abstain.evaluation.comparison import Comparison, compare
from abstain.evaluation.criterion import SelectedScore, Tried, fit_score, select_score
from abstain.evaluation.evaluate import evaluate
from abstain.evaluation.posterior import PosteriorExpectation, posterior_expectation
from abstain.evaluation.records import Case, Evaluation, ExtremeSample, Finding, Part, Result
from abstain.evaluation.rules import RuleChecks, check_rule, set_threshold
from abstain.typing import Split

__all__ = [
    "CalibratedScore",
    "CalibrationCheck",
    "Case",
    "Comparison",
    "Evaluation",
    "ExtremeSample",
    "Finding",
    "Part",
    "PosteriorExpectation",
    "Result",
    "RuleChecks",
    "SelectedScore",
    "Split",
    "Tried",
    "calibrate",
    "calibration_check",
    "check_rule",
    "compare",
    "evaluate",
    "fit_score",
    "posterior_expectation",
    "select_score",
    "set_threshold",
]
