"""What every fitted calibration is: frozen numbers, applied to arrays, kept as JSON."""

import json
from abc import ABC, abstractmethod
from dataclasses import Field, fields
from typing import Any, ClassVar

from abstain._foundation import checks, json_records, records
from abstain._foundation.scored import Scored, validate_samples
from abstain.errors import InputError
from abstain.typing import AnyArray

#: Of the text; a later one is refused, not misread.
FORMAT = 1

LOSS_HINT = "The probability of being right is one minus an expected loss in [0, 1]."


class Calibration(ABC):
    """A fitted calibration.

    Attributes
    ----------
    kind : str
        "temperature", "platt", "isotonic" or "binning".
    n : int
        Samples it was fitted on.
    note : str
        What to know about the fit, or empty.
    """

    kind: ClassVar[str]
    #: Every kind there is, by its name.
    kinds: ClassVar[dict[str, type["Calibration"]]] = {}

    n: int
    note: str

    def __init_subclass__(cls) -> None:
        """Make the kind known to `from_json`."""
        Calibration.kinds[cls.kind] = cls

    def __post_init__(self) -> None:
        """Hold every field to its type."""
        records.check(self)

    @abstractmethod
    def apply(self, x: AnyArray, /) -> AnyArray:
        """Return calibrated probabilities of the samples."""

    def to_json(self) -> str:
        """Return the calibration as a JSON text that `from_json` reads back exactly."""
        own = {f.name: getattr(self, f.name) for f in _fields(self)}
        return json.dumps({"kind": self.kind, "format": FORMAT, **own}, allow_nan=False)


def _fields(record: Any) -> tuple[Field[Any], ...]:
    """Return the fields of a state: every subclass is a dataclass."""
    return fields(record)


def right_or_wrong(confidence: AnyArray, loss: AnyArray, weight: AnyArray | None) -> Scored:
    """Validate what a calibration of a confidence is fitted on; losses lie in [0, 1]."""
    s = validate_samples(confidence, loss, weight)
    checks.unit_interval(s.loss, "loss", hint=LOSS_HINT)
    return s


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
    given: object = text
    if not isinstance(given, str):
        raise InputError(f"`text` must be a JSON text; got {type(given).__name__}")
    try:
        found = json_records.parse_object(text)
        state = Calibration.kinds[json_records.pop_kind(found, Calibration.kinds)]
        json_records.pop_version(found, "format", (FORMAT,))
        return records.from_fields(state, found, f"a calibration of kind {state.kind!r}")
    except InputError as error:
        why = str(error) if str(error)[-1] in ".?" else f"{error}."
        hint = "Fit it again, or take a text as saved."
        raise InputError(f"`text` is not the JSON of a calibration: {why} {hint}") from None
