"""Configurations in TOML: read, or said in one line why they cannot be, and written."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from abstain._foundation import input_files
from abstain.errors import AbstainError, FileFormatError, InputError, UnknownNameError, suggest


def read_toml(path: Path) -> dict[str, Any]:
    """Read a configuration as nested plain values, or say in one line why it cannot be read."""
    if not path.exists() and not path.is_symlink():
        raise InputError(f"there is no configuration {str(path)!r}")
    try:
        return tomllib.loads(input_files.read_text(path))
    except AbstainError:
        raise
    except RecursionError:
        raise FileFormatError(f"{path.name} is nested too deeply") from None
    except ValueError as error:
        # No TOML, or an integer of thousands of digits.
        first = str(error).partition(";")[0]
        raise FileFormatError(f"{path.name} is no TOML: {first}") from None


def get_table(found: Mapping[str, Any], name: str, where: str = "") -> dict[str, Any]:
    """Return a table by its name, empty where it is not given; `where` is what is above it."""
    full = f"{where}.{name}" if where else name
    given = found.get(name, {})
    if not isinstance(given, Mapping):
        raise InputError(f"`{full}` must be a table: [{full}]")
    return dict(given)


def check_field_names(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse a field that does not exist; the error names the nearest one, and all there are."""
    there = list(known)
    for name in given:
        if name not in there:
            raise UnknownNameError(
                f"{where} has no field {name!r}.{suggest(name, there)} It has {', '.join(there)}."
            )


def toml_text(tables: Mapping[str, Any]) -> str:
    """Write nested plain values as TOML: what `read_toml` reads as the same values.

    Values are texts, numbers, truth values, lists of these, and tables of all of it. What is None
    is left out: TOML has no such value.
    """
    # Not tomli-w: it raises on None, puts each entry of a list on its own line, and would be
    # another dependency for the lines below.
    return "\n".join(_lines(tables, ())).strip() + "\n"


def _lines(found: Mapping[str, Any], above: tuple[str, ...]) -> list[str]:
    own = {key: value for key, value in found.items() if not isinstance(value, Mapping)}
    lines = ["", f"[{'.'.join(map(_key, above))}]"] if above and (own or not found) else []
    lines += [f"{_key(key)} = {_value(value)}" for key, value in own.items() if value is not None]
    for key, value in found.items():
        if isinstance(value, Mapping):
            lines += _lines(value, (*above, key))
    return lines


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _value(given: Any) -> str:
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, list | tuple):
        return f"[{', '.join(map(_value, given))}]"
    return _quoted(given) if isinstance(given, str) else repr(given)


def _quoted(given: str) -> str:
    # The escapes of JSON are those of TOML, but for this character.
    return json.dumps(given, ensure_ascii=False).replace("\x7f", "\\u007f")
