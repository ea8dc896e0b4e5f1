"""What every fitted calibration is: frozen numbers, applied to arrays, kept as JSON."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Any, ClassVar, NoReturn, Self

from abstain._foundation import checks, saved
from abstain._foundation.scored import Scored, scored
from abstain.errors import InputError, suggest
from abstain.typing import AnyArray

#: Of the text; a later one is refused, not misread.
_FORMAT = 1
_FRAME = ("kind", "format")
_LARGEST = 2**63 - 1

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

    n: int
    note: str

    @abstractmethod
    def apply(self, x: AnyArray, /) -> AnyArray:
        """Return calibrated probabilities of the samples."""

    def to_json(self) -> str:
        """Return the calibration as a JSON text that `from_json` reads back exactly."""
        frame = {"kind": self.kind, "format": _FORMAT}
        own = {f.name: getattr(self, f.name) for f in _fields(self)}
        return json.dumps({**frame, **own}, allow_nan=False)

    @classmethod
    def of_fields(cls, given: dict[str, Any]) -> Self:
        """Build it from the fields of a JSON text, refusing what is missing or not known."""
        wanted = {f.name: f.type for f in _fields(cls)}
        for name in given:
            if name not in (*wanted, *_FRAME):
                refuse(f"there is no field `{name}` in a calibration of kind {cls.kind!r}.")
        for name in wanted:
            if name not in given:
                refuse(f"the field `{name}` is missing.")
        return cls(**{name: _READERS[kind](given[name], name) for name, kind in wanted.items()})


def _fields(record: Any) -> tuple[Field[Any], ...]:
    """Return the fields of a state: every subclass is a dataclass."""
    return fields(record)


def right_or_wrong(confidence: AnyArray, loss: AnyArray, weight: AnyArray | None) -> Scored:
    """Validate what a calibration of a confidence is fitted on; losses lie in [0, 1]."""
    s = scored(confidence, loss, weight)
    checks.unit_interval(s.loss, "loss", hint=LOSS_HINT)
    return s


def parsed(text: str) -> dict[str, Any]:
    """Parse a JSON object, with every name once and every number finite."""
    given: object = text
    if not isinstance(given, str):
        msg = f"`text` must be a JSON text; got {type(given).__name__}"
        raise InputError(msg)
    try:
        out = saved.parsed(text)
    except InputError as error:
        refuse(f"{error}.")
    return framed(out)


def framed(out: dict[str, Any]) -> dict[str, Any]:
    """Refuse the fields of another format; return them."""
    if out.get("format") != _FORMAT or isinstance(out["format"], bool):
        refuse(f"the field `format` must be {_FORMAT}; got {_short(out.get('format'))}.")
    return out


def known_kind(given: dict[str, Any], kinds: dict[str, type]) -> str:
    """Return the field `kind` of a text, one of those known."""
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        near = suggest(kind, kinds) if isinstance(kind, str) else ""
        allowed = ", ".join(map(repr, kinds))
        refuse(f"the field `kind` must be one of {allowed}; got {_short(kind)}.{near}")
    return kind


def refuse(rule: str) -> NoReturn:
    msg = f"`text` is not the JSON of a calibration: {rule} Fit it again, or take a text as saved."
    raise InputError(msg) from None


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(f"the field `{name}` must be a number; got {_short(value)}.")
    try:
        return float(value)
    except OverflowError:
        refuse(f"the field `{name}` must be finite; got {_short(value)}.")


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(f"the field `{name}` must be an integer; got {_short(value)}.")
    if abs(value) > _LARGEST:
        refuse(f"the field `{name}` must be at most {_LARGEST}; got a larger one.")
    return value


def _words(value: object, name: str) -> str:
    if not isinstance(value, str):
        refuse(f"the field `{name}` must be a text; got {_short(value)}.")
    return value


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        refuse(f"the field `{name}` must be true or false; got {_short(value)}.")
    return value


def numbers(value: object, name: str) -> tuple[float, ...]:
    """Read a list of numbers from a field."""
    if not isinstance(value, list):
        refuse(f"the field `{name}` must be a list of numbers; got {_short(value)}.")
    return tuple(_number(entry, f"{name}[{i}]") for i, entry in enumerate(value))


_READERS: dict[Any, Callable[[object, str], Any]] = {
    float: _number,
    int: _whole,
    str: _words,
    bool: _flag,
    tuple[float, ...]: numbers,
}
