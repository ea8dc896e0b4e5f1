"""Calibration: from a confidence to a probability of being right, fitted on held-out samples.

Every ``fit_...`` returns a frozen state with ``.apply(x)`` and ``.to_json()``; `from_json` reads
it back. Knows nothing of confidence scores or metrics.
"""

from abstain.calibration.binning import Binning as Binning
from abstain.calibration.binning import fit_binning as fit_binning
from abstain.calibration.isotonic import Isotonic as Isotonic
from abstain.calibration.isotonic import fit_isotonic as fit_isotonic
from abstain.calibration.platt import Platt as Platt
from abstain.calibration.platt import fit_platt as fit_platt
from abstain.calibration.state import Calibration as Calibration
from abstain.calibration.state import from_json as from_json
from abstain.calibration.temperature import Temperature as Temperature
from abstain.calibration.temperature import fit_temperature as fit_temperature

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
