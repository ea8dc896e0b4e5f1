"""From the JSON text of a calibration back to its state."""

from typing import Any

from abstain.calibration._state import Calibration, known_kind, parsed
from abstain.calibration.binning import Binning
from abstain.calibration.isotonic import Isotonic
from abstain.calibration.platt import Platt
from abstain.calibration.temperature import Temperature

_KINDS: dict[str, type[Calibration]] = {
    state.kind: state for state in (Temperature, Platt, Isotonic, Binning)
}


def from_json(text: str) -> Calibration:
    """Read a calibration back from the text that its ``to_json`` gave.

    Parameters
    ----------
    text : str
        JSON with a field "kind" that names the method.

    Returns
    -------
    Temperature, Platt, Isotonic or Binning
        Equal to the one that was written, to the last digit.

    Raises
    ------
    InputError
        If the text is no JSON, its kind or format is unknown, or a field is missing, unknown,
        there twice, of the wrong type, or has a value that no fit gives. The field is named.

    Examples
    --------
    >>> from abstain.calibration import fit_platt, from_json
    >>> state = fit_platt([0.1, 0.3, 0.7, 0.9], [1, 0, 1, 0])
    >>> from_json(state.to_json()) == state
    True
    """
    return from_fields(parsed(text))


def from_fields(given: dict[str, Any]) -> Calibration:
    """Return the calibration of a parsed JSON object."""
    kind = known_kind(given, dict(_KINDS))
    return _KINDS[kind].of_fields(given)
