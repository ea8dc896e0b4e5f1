"""A confidence score to probabilities of being right, and what that changes on other samples."""

from abstain.evaluation.calibration.check import BeforeAfter, CalibrationCheck, calibration_check
from abstain.evaluation.calibration.fit import METHODS, Method, calibrate
from abstain.evaluation.calibration.score import CalibratedScore

__all__ = [
    "METHODS",
    "BeforeAfter",
    "CalibratedScore",
    "CalibrationCheck",
    "Method",
    "calibrate",
    "calibration_check",
]
