"""Parse records from JSON text, and register a reader for each kind of record.

The registry is in this module, because `abstain.tables` cannot import all packages that define
records.
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
    """A record that can be written as JSON text. The field `kind` identifies its class."""

    def to_json(self) -> str: ...


#: Functions that read a record from JSON text, by the value of the field `kind`.
READERS: dict[str, Callable[[str], JsonRecord]] = {}

#: Functions that read a record from plain values and arrays, by the value of the field `kind`.
ARCHIVE_READERS: "dict[str, Callable[[Mapping[str, Any], Mapping[str, Array]], Any]]" = {}


@contextmanager
def invalid_file_errors(description: str) -> Iterator[None]:
    """Convert an InputError to a FileFormatError that names the kind of file."""
    try:
        yield
    except InputError as error:
        raise FileFormatError(f"not a valid {description}: {error}") from error


def parse_record(text: str, kind: str, versions: tuple[int, ...]) -> tuple[dict[str, Any], int]:
    """Return the fields and the version of a record, and validate its kind and version."""
    fields = parse_object(text)
    pop_kind(fields, (kind,))
    return fields, pop_version(fields, "version", versions)


def parse_object(text: str, *, finite: bool = True) -> dict[str, Any]:
    """Return the fields of a JSON object. Duplicate fields raise an InputError.

    With `finite`, NaN and infinity also raise an InputError. Error messages are clauses without the
    file name, such as "the field `n` occurs twice".
    """
    value = parse_value(text, finite=finite)
    if not isinstance(value, dict):
        raise_error("it is not a JSON object ({...})" if finite else "it is another value")
    return value


def parse_value(text: str, *, finite: bool = True) -> Any:
    """Parse a JSON text, with the same errors as `parse_object`."""
    source: object = text
    if not isinstance(source, str):
        raise_error(f"it must be JSON text; got {type(source).__name__}")
    try:
        on_constant = _reject_constant if finite else None
        valid_text = replace_lone_surrogates(source)
        return json.loads(valid_text, object_pairs_hook=_unique_fields, parse_constant=on_constant)
    except InputError:
        raise
    except json.JSONDecodeError as error:
        raise_error(f"it is not valid JSON: {error}")
    except RecursionError:
        raise_error("it is JSON nested too deeply")
    except ValueError:
        # Python limits the number of digits of an integer.
        raise_error("it holds a number of thousands of digits")


#: Pattern of an escape in JSON text. The groups are a surrogate pair and half of a surrogate pair.
_ESCAPE = re.compile(
    r"\\(?:(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def replace_lone_surrogates(text: str) -> str:
    r"""Replace half of a surrogate pair, such as ``\ud83d`` alone, by U+FFFD.

    JSON permits unpaired surrogates, which no text encoding can represent.
    """
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda match: r"\ufffd" if match["lone"] else match[0], text)


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise_error(f"the field `{name}` occurs twice")
        fields[name] = value
    return fields


def _reject_constant(name: str) -> NoReturn:
    raise_error(f"every number must be finite; got {name}")


def pop_kind(fields: dict[str, Any], kinds: Iterable[str]) -> str:
    """Remove the field `kind` and return its value, which must be in `kinds`."""
    kind = fields.pop("kind", None)
    allowed_kinds = list(kinds)
    if kind not in allowed_kinds:
        raise_error(_invalid_kind_message(kind, allowed_kinds))
    return str(kind)


def _invalid_kind_message(kind: object, allowed_kinds: list[str]) -> str:
    choices = ", ".join(repr(allowed) for allowed in allowed_kinds)
    if len(allowed_kinds) > 1:
        choices = f"one of {choices}"
    message = f"the field `kind` must be {choices}; got {short_repr(kind)}"
    suggestion = suggest(kind, allowed_kinds) if isinstance(kind, str) else ""
    return f"{message}.{suggestion}" if suggestion else message


def pop_version(fields: dict[str, Any], name: str, versions: tuple[int, ...]) -> int:
    """Remove the version and return its value, which must be in `versions`."""
    version = fields.pop(name, None)
    if type(version) is not int or version not in versions:
        rule = f"must be {' or '.join(map(str, versions))}"
        raise_error(f"the field `{name}` {rule}; got {short_repr(version)}")
    return version


def short_repr(value: object) -> str:
    """Return the repr of a value, truncated to 60 characters."""
    try:
        text = repr(value)
    except ValueError:
        return "an integer of too many digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def raise_error(clause: str) -> NoReturn:
    """Raise an InputError without exception chaining."""
    raise InputError(clause) from None
