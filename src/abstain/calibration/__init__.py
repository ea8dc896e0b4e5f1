"""Calibration: from a confidence to a probability of being right, fitted on held-out samples.

Every ``fit_...`` returns a frozen state with ``.apply(x)`` and ``.to_json()``; `from_json` reads
it back. Knows nothing of confidence scores or metrics.
"""

from abstain.calibration.binning import Binning, fit_binning
from abstain.calibration.isotonic import Isotonic, fit_isotonic
from abstain.calibration.platt import Platt, fit_platt
from abstain.calibration.state import Calibration, from_json
from abstain.calibration.temperature import Temperature, fit_temperature

__all__ = [
    "Binning",
    "Calibration",
    "Isotonic",
    "Platt",
    "Temperature",
    "fit_binning",
    "fit_isotonic",
    "fit_platt",
    "fit_temperature",
    "from_json",
]
