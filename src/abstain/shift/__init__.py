"""Distribution shift between the calibration data and the unlabeled data of the application.

The package has density ratios, known or estimated, for the argument `ratio=` of the rules in
`abstain.thresholds`, and estimates of the risk without labels, which have no guarantee.
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
