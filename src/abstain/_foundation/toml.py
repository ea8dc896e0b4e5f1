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
    """Read a configuration file as nested dictionaries."""
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
    """Return the table with this name, or an empty table.

    In error messages, the path `parent` of the outer table precedes the name.
    """
    path = f"{parent}.{name}" if parent else name
    values = tables.get(name, {})
    if not isinstance(values, Mapping):
        raise InputError(f"`{path}` must be a table: [{path}]")
    return dict(values)


def check_field_names(names: Iterable[str], fields: Iterable[str], location: str) -> None:
    """Raise an UnknownNameError, which lists all fields, if a field is unknown."""
    available = list(fields)
    for name in names:
        if name not in available:
            raise UnknownNameError(
                f"{location} has no field {name!r}.{suggest(name, available)} It has "
                f"{', '.join(available)}."
            )


def toml_text(tables: Mapping[str, Any]) -> str:
    """Format nested dictionaries as TOML. Entries that are None are omitted."""
    # tomli-w raises an error for None, and writes each entry of a list on a separate line.
    return "\n".join(_lines(tables, ())).strip() + "\n"


def _lines(tables: Mapping[str, Any], parents: tuple[str, ...]) -> list[str]:
    """Return the lines of a table, followed by the lines of its nested tables."""
    lines = []
    values = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    if parents and (values or not tables):
        header = ".".join(_key(name) for name in parents)
        lines += ["", f"[{header}]"]
    for key, value in values.items():
        if value is not None:
            lines.append(f"{_key(key)} = {_value(value)}")
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
