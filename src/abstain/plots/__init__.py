"""Curves as matplotlib figures, each with the table of what it draws.

Every display has ``from_predictions``, ``from_curve``, ``.frame()`` and ``.plot(ax=)``.
matplotlib is loaded when something is drawn.
"""

from abstain.plots.failure_roc import FailureRocDisplay as FailureRocDisplay
from abstain.plots.metric_coverage import MetricCoverageDisplay as MetricCoverageDisplay
from abstain.plots.reliability import ReliabilityDisplay as ReliabilityDisplay
from abstain.plots.retention import AccuracyRejectionDisplay as AccuracyRejectionDisplay
from abstain.plots.retention import RetentionDisplay as RetentionDisplay
from abstain.plots.risk_coverage import RiskCoverageDisplay as RiskCoverageDisplay

__all__ = [
    "AccuracyRejectionDisplay",
    "FailureRocDisplay",
    "MetricCoverageDisplay",
    "ReliabilityDisplay",
    "RetentionDisplay",
    "RiskCoverageDisplay",
]
