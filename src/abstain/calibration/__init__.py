"""Calibration maps from a confidence to the probability of a correct prediction.

Each function ``fit_...`` fits a map to held-out samples and returns a `Calibration` with the
methods ``apply`` and ``to_json``. The function `from_json` restores a calibration from JSON text.
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
