"""Calibrate confidence scores to probabilities of a correct prediction, and check the result."""

from abstain.evaluation.calibration.check import CalibrationCheck, MetricChange, calibration_check
from abstain.evaluation.calibration.fit import CALIBRATIONS, CalibrationName, calibrate
from abstain.evaluation.calibration.score import CalibratedScore

__all__ = [
    "CALIBRATIONS",
    "CalibratedScore",
    "CalibrationCheck",
    "CalibrationName",
    "MetricChange",
    "calibrate",
    "calibration_check",
]
