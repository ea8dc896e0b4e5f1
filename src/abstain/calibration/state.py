"""The base class `Calibration` of fitted calibration maps, and their JSON format."""

import json
from abc import ABC, abstractmethod
from dataclasses import Field, fields
from typing import Any, ClassVar

from abstain._foundation import checks, json_records, records
from abstain._foundation.scored import Scored, validate_samples
from abstain.errors import InputError
from abstain.typing import AnyArray

#: Version of the JSON format. A text of a later version raises an error.
FORMAT = 1

LOSS_HINT = "The calibrated probability is one minus an expected loss in [0, 1]."


class Calibration(ABC):
    """A fitted calibration map.

    Attributes
    ----------
    kind : str
        The kind "temperature", "platt", "isotonic" or "binning".
    n : int
        Number of fitting samples.
    note : str
        Remark about the fit, or an empty string.
    """

    kind: ClassVar[str]
    #: All subclasses by kind.
    classes_by_kind: ClassVar[dict[str, type["Calibration"]]] = {}

    n: int
    note: str

    def __init_subclass__(cls) -> None:
        """Register the subclass for `from_json`."""
        Calibration.classes_by_kind[cls.kind] = cls

    def __post_init__(self) -> None:
        """Validate the fields."""
        records.check(self)

    @abstractmethod
    def apply(self, x: AnyArray, /) -> AnyArray:
        """Return calibrated probabilities of the samples."""

    def to_json(self) -> str:
        """Return the calibration as JSON text for `from_json`."""
        values = {f.name: getattr(self, f.name) for f in _fields(self)}
        return json.dumps({"kind": self.kind, "format": FORMAT, **values}, allow_nan=False)


def _fields(record: Any) -> tuple[Field[Any], ...]:
    """Return the fields of a calibration."""
    return fields(record)


def validate_outcomes(confidence: AnyArray, loss: AnyArray, weight: AnyArray | None) -> Scored:
    """Validate the samples for the fit of a calibration, including losses in [0, 1]."""
    s = validate_samples(confidence, loss, weight)
    checks.unit_interval(s.loss, "loss", hint=LOSS_HINT)
    return s


def from_json(text: str) -> Calibration:
    """Restore a calibration from the result of its method ``to_json``.

    Parameters
    ----------
    text : str
        JSON text with the field "kind".

    Returns
    -------
    Temperature, Platt, Isotonic or Binning
        The saved calibration.

    Raises
    ------
    InputError
        If the text is not JSON, or its kind or format is unknown. An InputError is also raised if a
        field is missing, unknown, duplicate or invalid. The message names the field.

    Examples
    --------
    >>> from abstain.calibration import fit_platt, from_json
    >>> state = fit_platt([0.1, 0.3, 0.7, 0.9], [1, 0, 1, 0])
    >>> from_json(state.to_json()) == state
    True
    """
    source: object = text
    if not isinstance(source, str):
        raise InputError(f"`text` must be a JSON text; got {type(source).__name__}")
    try:
        values = json_records.parse_object(text)
        kind = json_records.pop_kind(values, Calibration.classes_by_kind)
        json_records.pop_version(values, "format", (FORMAT,))
        calibration_class = Calibration.classes_by_kind[kind]
        return records.from_fields(calibration_class, values, f"a calibration of kind {kind!r}")
    except InputError as error:
        reason = str(error) if str(error)[-1] in ".?" else f"{error}."
        hint = "Use the unchanged result of `to_json`, or fit the calibration again."
        raise InputError(f"`text` is not the JSON of a calibration: {reason} {hint}") from None
