"""Calibration errors of a `Scored` that meets the needs; the public names are in `calibration`."""

import numpy as np

from abstain._foundation.scored import Measured, Scored
from abstain.curves.reliability import Binning, bin_means, reliability_of
from abstain.metrics._views import probabilities_of, view_of
from abstain.typing import Array, FloatArray


def _probability(s: Scored) -> Array:
    """Confidence as a probability of being right, of a `Scored` that meets `UNIT_CONFIDENCE`."""
    return s.confidence if s.probability is None else s.probability


def ece_of(s: Scored, bins: int = 15, binning: Binning = "equal_width") -> Measured:
    """Mean gap between confidence and accuracy over right-closed bins."""
    return Measured(_error(_probability(s), s.loss, s.weight, bins, binning))


def _error(p: Array, loss: Array, weight: FloatArray | None, bins: int, binning: Binning) -> float:
    curve = reliability_of(p, loss, weight, bins=bins, binning=binning)
    gap = np.abs(curve.accuracy - curve.confidence)
    # An empty bin has neither an accuracy nor a weight.
    return float(np.nansum(gap * curve.weight) / curve.total)


def ece_right_open_of(s: Scored, bins: int) -> Measured:
    """Mean gap over bins [a, b): a confidence of 1.0 is in none, and still divided by."""
    # linspace, as the code that is reproduced: its edges decide where ties with them go.
    p = _probability(s).astype(np.float64)
    index = np.searchsorted(np.linspace(0.0, 1.0, bins + 1), p, side="right") - 1
    kept = index < bins
    weight = None if s.weight is None else s.weight[kept]
    mass, mean_p, mean_loss = bin_means(index[kept], bins, p[kept], s.loss[kept], weight)
    return Measured(float(np.nansum(np.abs(1.0 - mean_loss - mean_p) * mass) / s.total))


def mce_of(s: Scored, bins: int = 15, binning: Binning = "equal_width") -> Measured:
    """Largest gap of all bins that hold a sample."""
    curve = reliability_of(_probability(s), s.loss, s.weight, bins=bins, binning=binning)
    return Measured(float(np.nanmax(np.abs(curve.accuracy - curve.confidence))))


def classwise_ece_of(s: Scored, bins: int = 15, binning: Binning = "equal_width") -> Measured:
    """Mean over classes of the gap between class probability and class frequency."""
    view = view_of(s)
    # Rounding may leave a probability a hair outside [0, 1], beyond the last bin.
    p = np.clip(probabilities_of(view), 0.0, 1.0)
    errors = [_error(p[:, k], view.labels != k, s.weight, bins, binning) for k in range(p.shape[1])]
    return Measured(float(np.mean(errors)))
