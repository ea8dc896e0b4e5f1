"""Correct for a distribution shift between calibration data and deployed data without labels.

Density ratios can be passed or estimated, and the rules in `abstain.thresholds` accept them as
`ratio=`. The package also estimates the risk of unlabeled data, without a guarantee.
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
