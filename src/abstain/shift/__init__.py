"""Distribution shift between calibration data and unlabeled data of the application.

The package provides known and estimated density ratios, which the rules in `abstain.thresholds`
accept as `ratio=`. The package also estimates the risk without labels, but without a guarantee.
"""

from abstain.shift.estimates import UnlabeledRisk, unlabeled_risk
from abstain.shift.labels import LabelShift, label_shift
from abstain.shift.ratios import DensityRatios, FittedRatios, density_ratios, fit_ratios

__all__ = [
    "DensityRatios",
    "FittedRatios",
    "LabelShift",
    "UnlabeledRisk",
    "density_ratios",
    "fit_ratios",
    "label_shift",
    "unlabeled_risk",
]
