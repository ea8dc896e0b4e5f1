"""Calibrate confidence scores to probabilities of a correct prediction, and check the result."""

from abstain.evaluation.calibration.calibrated_score import (
    CALIBRATIONS,
    CalibratedScore,
    CalibrationName,
    calibrate,
)
from abstain.evaluation.calibration.check import CalibrationCheck, MetricChange, calibration_check

__all__ = [
    "CALIBRATIONS",
    "CalibratedScore",
    "CalibrationCheck",
    "CalibrationName",
    "MetricChange",
    "calibrate",
    "calibration_check",
]
