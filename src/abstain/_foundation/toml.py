"""Reading and writing of configurations in TOML."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from abstain._foundation import input_files
from abstain.errors import AbstainError, FileFormatError, InputError, UnknownNameError, suggest


def read_toml(path: Path) -> dict[str, Any]:
    """Read a configuration as nested plain values; errors have messages of one line."""
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


def get_table(tables: Mapping[str, Any], name: str, parent: str = "") -> dict[str, Any]:
    """Return a table by its name, or an empty one; `parent` is the path of the outer table."""
    path = f"{parent}.{name}" if parent else name
    values = tables.get(name, {})
    if not isinstance(values, Mapping):
        raise InputError(f"`{path}` must be a table: [{path}]")
    return dict(values)


def check_field_names(names: Iterable[str], fields: Iterable[str], location: str) -> None:
    """Raise an UnknownNameError if a field does not exist; the message lists all fields."""
    available = list(fields)
    for name in names:
        if name not in available:
            raise UnknownNameError(
                f"{location} has no field {name!r}.{suggest(name, available)} It has "
                f"{', '.join(available)}."
            )


def toml_text(tables: Mapping[str, Any]) -> str:
    """Write nested plain values as TOML, so that `read_toml` returns equal values.

    Values are strings, numbers, booleans, lists of these, and tables. None is left out, because
    TOML has no such value.
    """
    # tomli-w is not used: it raises an error for None, writes each entry of a list on its own line,
    # and would be another dependency.
    return "\n".join(_lines(tables, ())).strip() + "\n"


def _lines(tables: Mapping[str, Any], parents: tuple[str, ...]) -> list[str]:
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
    # The escapes of JSON are valid in TOML, except for this character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
