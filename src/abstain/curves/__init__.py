"""Risk-coverage curves, ROC curves and reliability curves for selective classification."""

from abstain.curves.bands import RiskCoverageBand as RiskCoverageBand
from abstain.curves.bands import risk_coverage_band as risk_coverage_band
from abstain.curves.failure_roc import FailureRocCurve as FailureRocCurve
from abstain.curves.failure_roc import failure_roc_curve as failure_roc_curve
from abstain.curves.metric_coverage import MetricCoverageCurve as MetricCoverageCurve
from abstain.curves.metric_coverage import metric_coverage_curve as metric_coverage_curve
from abstain.curves.reliability import ReliabilityCurve as ReliabilityCurve
from abstain.curves.reliability import reliability_curve as reliability_curve
from abstain.curves.retention import AccuracyRejectionCurve as AccuracyRejectionCurve
from abstain.curves.retention import ErrorRetentionCurve as ErrorRetentionCurve
from abstain.curves.retention import accuracy_rejection_curve as accuracy_rejection_curve
from abstain.curves.retention import error_retention_curve as error_retention_curve
from abstain.curves.risk_coverage import RiskCoverageCurve as RiskCoverageCurve
from abstain.curves.risk_coverage import achievable_curve as achievable_curve
from abstain.curves.risk_coverage import (
    generalized_risk_coverage_curve as generalized_risk_coverage_curve,
)
from abstain.curves.risk_coverage import risk_coverage_curve as risk_coverage_curve
from abstain.curves.risk_coverage import thin as thin

__all__ = [
    "AccuracyRejectionCurve",
    "ErrorRetentionCurve",
    "FailureRocCurve",
    "MetricCoverageCurve",
    "ReliabilityCurve",
    "RiskCoverageBand",
    "RiskCoverageCurve",
    "accuracy_rejection_curve",
    "achievable_curve",
    "error_retention_curve",
    "failure_roc_curve",
    "generalized_risk_coverage_curve",
    "metric_coverage_curve",
    "reliability_curve",
    "risk_coverage_band",
    "risk_coverage_curve",
    "thin",
]
