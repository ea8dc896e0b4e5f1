"""Shift: from calibration data to the data where a rule is used, whose labels nobody knows.

Density ratios, given or estimated, which the rules of `abstain.thresholds` take as `ratio=`; and
estimates of the risk without labels, which promise nothing.
"""

from abstain.shift.covariate import FittedRatios, fit_ratios
from abstain.shift.estimates import UnlabeledRisk, unlabeled_risk
from abstain.shift.labels import LabelShift, label_shift
from abstain.shift.ratios import DensityRatios, density_ratios

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
