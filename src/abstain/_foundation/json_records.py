"""Records kept as JSON text: how it is parsed, what kind it is of, and who reads that kind.

`abstain.tables` writes and reads the files and knows no record of the layers beside it.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from abstain.errors import FileFormatError, InputError, suggest

if TYPE_CHECKING:
    from abstain.typing import Array


class Written(Protocol):
    """A record that writes itself as JSON text, with its kind in the field `kind`."""

    def to_json(self) -> str: ...


#: From the field `kind` of a text to the function that reads it.
READERS: dict[str, Callable[[str], Written]] = {}

#: The same for records that are kept as plain values and arrays.
ARCHIVES: "dict[str, Callable[[Mapping[str, Any], Mapping[str, Array]], Any]]" = {}


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Say of a text that is refused within what it is no valid one of."""
    try:
        yield
    except InputError as error:
        raise FileFormatError(f"not a valid {what}: {error}") from error


def opened(text: str, kind: str, versions: tuple[int, ...]) -> tuple[dict[str, Any], int]:
    """Return the fields of a text of one kind, and which of these versions it is of."""
    found = parsed(text)
    take_kind(found, (kind,))
    return found, take_version(found, "version", versions)


def parsed(text: str, *, finite: bool = True) -> dict[str, Any]:
    """Return the fields of a JSON object: each there once, and no NaN or infinity if `finite`.

    By Python's own parser: that of msgspec takes the last of two fields of one name. The message
    of the `InputError` is a clause ("the field `n` is there twice"), for the caller to say of what.
    """
    found = value_of(text, finite=finite)
    if not isinstance(found, dict):
        refuse("it holds no JSON object ({...})" if finite else "it is another value")
    return found


def value_of(text: str, *, finite: bool = True) -> Any:
    """Return what a JSON text holds, read as `parsed` reads an object."""
    given: object = text
    if not isinstance(given, str):
        refuse(f"it must be JSON text; got {type(given).__name__}")
    try:
        constant = _no_constant if finite else None
        whole = replace_lone_surrogates(given)
        return json.loads(whole, object_pairs_hook=_once, parse_constant=constant)
    except InputError:
        raise
    except json.JSONDecodeError as error:
        refuse(f"it is no JSON: {error}")
    except RecursionError:
        refuse("it is JSON nested too deeply")
    except ValueError:
        # The limit that Python puts on the digits of integers.
        refuse("it holds a number of thousands of digits")


#: An escape in JSON text: a surrogate pair, a surrogate without its other half, or another one.
_ESCAPE = re.compile(
    r"\\(?:(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def replace_lone_surrogates(text: str) -> str:
    r"""Replace half of a surrogate pair, such as ``\ud83d`` alone, by U+FFFD.

    JSON permits such an escape and no encoding of text does. It is what remains of an emoji after a
    program has cut a text at a fixed length.
    """
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda match: r"\ufffd" if match["lone"] else match[0], text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in pairs:
        if name in out:
            refuse(f"the field `{name}` is there twice")
        out[name] = value
    return out


def _no_constant(name: str) -> NoReturn:
    refuse(f"every number must be finite; got {name}")


def take_kind(found: dict[str, Any], known: Iterable[str]) -> str:
    """Take the field `kind` out of those of a file: one of those known."""
    kind, allowed = found.pop("kind", None), list(known)
    if kind not in allowed:
        near = suggest(kind, allowed) if isinstance(kind, str) else ""
        one_of = f"{'one of ' if len(allowed) > 1 else ''}{', '.join(map(repr, allowed))}"
        refuse(f"the field `kind` must be {one_of}; got {shown(kind)}{near and '.' + near}")
    return str(kind)


def take_version(found: dict[str, Any], name: str, known: tuple[int, ...]) -> int:
    """Take the version of a file out of its fields; a later one is refused, not misread."""
    version = found.pop(name, None)
    if type(version) is not int or version not in known:
        rule = f"must be {' or '.join(map(str, known))}"
        refuse(f"the field `{name}` {rule}; got {shown(version)}")
    return version


def shown(value: object) -> str:
    """Write a value for a message, cut where it is long."""
    try:
        out = repr(value)
    except ValueError:
        return "an integer of too many digits"
    return out if len(out) <= 60 else f"{out[:57]}..."


def refuse(clause: str) -> NoReturn:
    """Raise an `InputError` with this clause and no cause."""
    raise InputError(clause) from None
