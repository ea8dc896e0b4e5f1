"""What differs between two configurations in plain values, in lines for people."""

from collections.abc import Iterator, Mapping
from typing import Any

#: Where the files are is no part of what a run depends on.
_SAME = {"folder"}


def changes_in(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a line for each field that differs."""
    old, new = dict(_fields(before, "")), dict(_fields(now, ""))
    names = [name for name in {**old, **new} if name not in _SAME]
    return [
        f"{name}: {_difference(old.get(name), new.get(name))}"
        for name in names
        if old.get(name) != new.get(name)
    ]


def _fields(found: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for name, value in found.items():
        if isinstance(value, Mapping):
            yield from _fields(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _difference(old: Any, new: Any) -> str:
    """Say what came and went of two lists, or both values."""
    if isinstance(old, list) and isinstance(new, list):
        came = [value for value in new if value not in old]
        went = [value for value in old if value not in new]
        said = [
            f"{word} {_said(some)}" for word, some in (("with", came), ("without", went)) if some
        ]
        return ", ".join(said) or "in another order"
    return f"{_said(old)} -> {_said(new)}"


def _said(value: Any) -> str:
    if value is None:
        return "not there"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
