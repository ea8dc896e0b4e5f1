"""Calibration errors of a `Scored` that meets the needs; the public names are in `calibration`."""

import numpy as np

from abstain._foundation.ranks import TieGroups, group_ties
from abstain._foundation.scored import Measured, Scored
from abstain.curves.reliability import Binning, bin_means, reliability_of
from abstain.metrics._views import probabilities_of, view_of


def ece_of(s: Scored, bins: int = 15, binning: Binning = "equal_width") -> Measured:
    """Mean gap between confidence and accuracy over right-closed bins."""
    return Measured(_error(s.probability_groups, bins, binning))


def _error(groups: TieGroups, bins: int, binning: Binning) -> float:
    curve = reliability_of(groups, bins=bins, binning=binning)
    gap = np.abs(curve.accuracy - curve.confidence)
    # An empty bin has neither an accuracy nor a weight.
    return float(np.nansum(gap * curve.weight) / curve.total)


def ece_right_open_of(s: Scored, bins: int) -> Measured:
    """Mean gap over bins [a, b): a confidence of 1.0 is in none, and still divided by."""
    groups = s.probability_groups
    # linspace, as the code that is reproduced: its edges decide where ties with them go.
    p = groups.confidence.astype(np.float64)
    index = np.searchsorted(np.linspace(0.0, 1.0, bins + 1), p, side="right") - 1
    # One bin more than asked for takes the confidence 1.0, and is left out of the sum.
    mass, mean_p, mean_loss = (x[:bins] for x in bin_means(groups, index, bins + 1))
    return Measured(float(np.nansum(np.abs(1.0 - mean_loss - mean_p) * mass) / groups.total))


def mce_of(s: Scored, bins: int = 15, binning: Binning = "equal_width") -> Measured:
    """Largest gap of all bins that hold a sample."""
    curve = reliability_of(s.probability_groups, bins=bins, binning=binning)
    return Measured(float(np.nanmax(np.abs(curve.accuracy - curve.confidence))))


def classwise_ece_of(s: Scored, bins: int = 15, binning: Binning = "equal_width") -> Measured:
    """Mean over classes of the gap between class probability and class frequency."""
    view = view_of(s)
    # Rounding may leave a probability a hair outside [0, 1], beyond the last bin.
    p = np.clip(probabilities_of(view), 0.0, 1.0)
    classes = (group_ties(p[:, k], view.labels != k, s.weight) for k in range(p.shape[1]))
    return Measured(float(np.mean([_error(groups, bins, binning) for groups in classes])))
