"""A confidence score to probabilities of being right, and what that changes on other samples."""

from abstain.evaluation.calibration.check import BeforeAfter, CalibrationCheck, calibration_check
from abstain.evaluation.calibration.fit import CALIBRATIONS, CalibrationName, calibrate
from abstain.evaluation.calibration.score import CalibratedScore

__all__ = [
    "CALIBRATIONS",
    "BeforeAfter",
    "CalibratedScore",
    "CalibrationCheck",
    "CalibrationName",
    "calibrate",
    "calibration_check",
]
