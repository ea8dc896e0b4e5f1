"""Read and write configurations in TOML."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from abstain._foundation import input_files
from abstain.errors import AbstainError, FileFormatError, InputError, UnknownNameError, suggest


def read_toml(path: Path) -> dict[str, Any]:
    """Read a configuration as nested plain values. Error messages have one line."""
    if not path.exists() and not path.is_symlink():
        raise InputError(f"there is no configuration {str(path)!r}")
    try:
        return tomllib.loads(input_files.read_text(path))
    except AbstainError:
        raise
    except RecursionError:
        raise FileFormatError(f"{path.name} is nested too deeply") from None
    except ValueError as error:
        # The text is not TOML, or it contains an integer with thousands of digits.
        first = str(error).partition(";")[0]
        raise FileFormatError(f"{path.name} is no TOML: {first}") from None


def get_table(tables: Mapping[str, Any], name: str, parent: str = "") -> dict[str, Any]:
    """Return a table by name, or an empty table. `parent` is the path of the outer table."""
    path = f"{parent}.{name}" if parent else name
    values = tables.get(name, {})
    if not isinstance(values, Mapping):
        raise InputError(f"`{path}` must be a table: [{path}]")
    return dict(values)


def check_field_names(names: Iterable[str], fields: Iterable[str], location: str) -> None:
    """Raise an UnknownNameError that lists all fields if a field does not exist."""
    available = list(fields)
    for name in names:
        if name not in available:
            raise UnknownNameError(
                f"{location} has no field {name!r}.{suggest(name, available)} It has "
                f"{', '.join(available)}."
            )


def toml_text(tables: Mapping[str, Any]) -> str:
    """Write nested plain values as TOML, from which `read_toml` returns equal values.

    Values are strings, numbers, booleans, lists of these, and tables. None is omitted, because TOML
    has no such value.
    """
    # tomli-w is not used, because it raises an error for None and writes each entry of a list on a
    # separate line. It would also be another dependency.
    return "\n".join(_lines(tables, ())).strip() + "\n"


def _lines(tables: Mapping[str, Any], parents: tuple[str, ...]) -> list[str]:
    """Return the lines of a table, followed by the lines of its nested tables."""
    values = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    lines = ["", f"[{'.'.join(map(_key, parents))}]"] if parents and (values or not tables) else []
    lines += [
        f"{_key(key)} = {_value(value)}" for key, value in values.items() if value is not None
    ]
    for key, value in tables.items():
        if isinstance(value, Mapping):
            lines += _lines(value, (*parents, key))
    return lines


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    # The escapes of JSON are valid in TOML, except that TOML also requires one for this character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
