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


class JsonRecord(Protocol):
    """A record that writes itself as JSON text, with its kind in the field `kind`."""

    def to_json(self) -> str: ...


#: From the field `kind` of a text to the function that reads it.
READERS: dict[str, Callable[[str], JsonRecord]] = {}

#: The same for records that are kept as plain values and arrays.
ARCHIVE_READERS: "dict[str, Callable[[Mapping[str, Any], Mapping[str, Array]], Any]]" = {}


@contextmanager
def invalid_file_errors(what: str) -> Iterator[None]:
    """Say of a text that is refused within what it is no valid one of."""
    try:
        yield
    except InputError as error:
        raise FileFormatError(f"not a valid {what}: {error}") from error


def parse_record(text: str, kind: str, versions: tuple[int, ...]) -> tuple[dict[str, Any], int]:
    """Return the fields of a text of one kind, and which of these versions it is of."""
    found = parse_object(text)
    pop_kind(found, (kind,))
    return found, pop_version(found, "version", versions)


def parse_object(text: str, *, finite: bool = True) -> dict[str, Any]:
    """Return the fields of a JSON object: each there once, and no NaN or infinity if `finite`.

    By Python's own parser: that of msgspec takes the last of two fields of one name. The message
    of the `InputError` is a clause ("the field `n` is there twice"), for the caller to say of what.
    """
    found = parse_value(text, finite=finite)
    if not isinstance(found, dict):
        raise_error("it holds no JSON object ({...})" if finite else "it is another value")
    return found


def parse_value(text: str, *, finite: bool = True) -> Any:
    """Return what a JSON text holds, read as `parsed` reads an object."""
    given: object = text
    if not isinstance(given, str):
        raise_error(f"it must be JSON text; got {type(given).__name__}")
    try:
        constant = _no_constant if finite else None
        whole = replace_lone_surrogates(given)
        return json.loads(whole, object_pairs_hook=_once, parse_constant=constant)
    except InputError:
        raise
    except json.JSONDecodeError as error:
        raise_error(f"it is no JSON: {error}")
    except RecursionError:
        raise_error("it is JSON nested too deeply")
    except ValueError:
        # The limit that Python puts on the digits of integers.
        raise_error("it holds a number of thousands of digits")


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
            raise_error(f"the field `{name}` is there twice")
        out[name] = value
    return out


def _no_constant(name: str) -> NoReturn:
    raise_error(f"every number must be finite; got {name}")


def pop_kind(found: dict[str, Any], known: Iterable[str]) -> str:
    """Take the field `kind` out of those of a file: one of those known."""
    kind, allowed = found.pop("kind", None), list(known)
    if kind not in allowed:
        near = suggest(kind, allowed) if isinstance(kind, str) else ""
        one_of = f"{'one of ' if len(allowed) > 1 else ''}{', '.join(map(repr, allowed))}"
        raise_error(
            f"the field `kind` must be {one_of}; got {short_repr(kind)}{near and '.' + near}"
        )
    return str(kind)


def pop_version(found: dict[str, Any], name: str, known: tuple[int, ...]) -> int:
    """Take the version of a file out of its fields; a later one is refused, not misread."""
    version = found.pop(name, None)
    if type(version) is not int or version not in known:
        rule = f"must be {' or '.join(map(str, known))}"
        raise_error(f"the field `{name}` {rule}; got {short_repr(version)}")
    return version


def short_repr(value: object) -> str:
    """Write a value for a message, cut where it is long."""
    try:
        out = repr(value)
    except ValueError:
        return "an integer of too many digits"
    return out if len(out) <= 60 else f"{out[:57]}..."


def raise_error(clause: str) -> NoReturn:
    """Raise an `InputError` with this clause and no cause."""
    raise InputError(clause) from None
