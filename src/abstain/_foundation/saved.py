"""Records kept as JSON text: how the text is parsed, and how each kind registers its reader.

`abstain.tables` writes and reads the files and knows no record of the layers beside it.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from abstain.errors import InputError
from abstain.typing import Array


class Text(Protocol):
    """A record that writes itself as JSON text, with its kind in the field `kind`."""

    def to_json(self) -> str:
        """Return the record as JSON text."""


#: From the field `kind` of a text to the function that reads it.
READERS: dict[str, Callable[[str], Text]] = {}

#: The same for records that are kept as plain values and arrays.
ARCHIVES: dict[str, Callable[[Mapping[str, Any], Mapping[str, Array]], Any]] = {}


def parsed(text: str, *, finite: bool = True) -> dict[str, Any]:
    """Return the fields of a JSON object: each there once, and no NaN or infinity if `finite`.

    The message of the `InputError` is a clause ("the field `n` is there twice"), for the caller
    to say of what.
    """
    try:
        constant = _no_constant if finite else None
        found = json.loads(text, object_pairs_hook=_once, parse_constant=constant)
    except InputError:
        raise
    except TypeError:
        refuse(f"it must be JSON text; got {type(text).__name__}")
    except json.JSONDecodeError as error:
        refuse(f"it is no JSON: {error}")
    except RecursionError:
        refuse("it is JSON nested too deeply")
    except ValueError:
        # The limit that Python puts on the digits of integers.
        refuse("it holds a number of thousands of digits")
    if not isinstance(found, dict):
        refuse("it holds no JSON object with a field `kind`" if finite else "it is another value")
    return found


def refuse(clause: str) -> NoReturn:
    """Raise an `InputError` with this clause and no cause."""
    raise InputError(clause) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in pairs:
        if name in out:
            refuse(f"the field `{name}` is there twice")
        out[name] = value
    return out


def _no_constant(name: str) -> NoReturn:
    refuse(f"every number must be finite; got {name}")
