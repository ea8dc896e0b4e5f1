"""Rules for the fields of a fitted score: checked when it is made, by fitting or from a file.

Each rule is the metadata of a dataclass field. It takes the field's name, the value and the
sizes of the axes met so far, and returns the value to keep.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import sealed
from abstain.errors import DomainError, InputError, ShapeError

Rule = Callable[[str, Any, dict[str, int]], Any]

#: The metadata of a field, and the key of its rule.
Metadata = dict[str, Rule]
RULE = "rule"


def array(*axes: str, optional: bool = False) -> Metadata:
    """Declare finite floats whose axes have these names; equal names are equal lengths."""
    return {RULE: partial(_array, axes, optional)}


def whole(low: int) -> Metadata:
    """Declare an integer of at least `low`."""
    return {RULE: partial(_whole, low)}


def number(low: float = -np.inf, high: float = np.inf, *, optional: bool = False) -> Metadata:
    """Declare one finite number in [low, high]; `optional` lets it be None."""
    return {RULE: partial(_number, low, high, optional)}


def flag() -> Metadata:
    """Declare a bool."""
    return {RULE: _flag}


def text() -> Metadata:
    """Declare a text that is not empty."""
    return {RULE: _text}


def choice(*allowed: str) -> Metadata:
    """Declare one of some texts."""
    return {RULE: partial(_choice, allowed)}


def class_names(axis: str) -> Metadata:
    """Declare the distinct class names, as many as the axis is long."""
    return {RULE: partial(_class_names, axis)}


def _array(axes: tuple[str, ...], optional: bool, name: str, x: Any, sizes: dict[str, int]) -> Any:
    if x is None and optional:
        return None
    if not isinstance(x, np.ndarray) or x.dtype.kind != "f":
        kind = f"{x.dtype} values" if isinstance(x, np.ndarray) else type(x).__name__
        msg = f"`{name}` must be an array of floats; got {kind}"
        raise InputError(msg)
    shape = f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"
    if x.ndim != len(axes) or not x.size:
        msg = f"`{name}` must have shape {shape}; got {x.shape}"
        raise ShapeError(msg)
    for axis, length in zip(axes, x.shape, strict=True):
        if sizes.setdefault(axis, length) != length:
            msg = f"`{name}` must have shape {shape} with {axis} = {sizes[axis]}; got {x.shape}"
            raise ShapeError(msg)
    native = x.astype(x.dtype.newbyteorder("="), copy=False)
    return sealed(checks.finite(np.ascontiguousarray(native), name))


def _whole(low: int, name: str, x: Any, _: dict[str, int]) -> int:
    if isinstance(x, bool) or not isinstance(x, int | np.integer) or x < low:
        msg = f"`{name}` must be an integer of at least {low}; got {x!r}"
        raise InputError(msg)
    return int(x)


def _number(
    low: float, high: float, optional: bool, name: str, x: Any, _: dict[str, int]
) -> float | None:
    if x is None and optional:
        return None
    if isinstance(x, bool | str):
        msg = f"`{name}` must be a number; got {x!r}"
        raise InputError(msg)
    try:
        value = checks.number(x, name)
    except OverflowError:
        msg = f"`{name}` must be finite; got an integer larger than any float"
        raise DomainError(msg) from None
    if not low <= value <= high:
        msg = f"`{name}` must lie in [{low:g}, {high:g}]; got {value!r}"
        raise DomainError(msg)
    return value


def _flag(name: str, x: Any, _: dict[str, int]) -> bool:
    if not isinstance(x, bool | np.bool_):
        msg = f"`{name}` must be True or False; got {x!r}"
        raise InputError(msg)
    return bool(x)


def _text(name: str, x: Any, _: dict[str, int]) -> str:
    if not isinstance(x, str) or not x:
        msg = f"`{name}` must be a text that is not empty; got {x!r}"
        raise InputError(msg)
    return x


def _choice(allowed: tuple[str, ...], name: str, x: Any, _: dict[str, int]) -> str:
    return checks.one_of(x, name, allowed)


def _class_names(axis: str, name: str, x: Any, sizes: dict[str, int]) -> tuple[Hashable, ...]:
    if not isinstance(x, list | tuple) or not x or not _distinct(x):
        msg = f"`{name}` must be a list of distinct class names; got {x!r}"
        raise InputError(msg)
    if sizes.setdefault(axis, len(x)) != len(x):
        msg = f"`{name}` must hold {sizes[axis]} names; got {len(x)}"
        raise ShapeError(msg)
    return tuple(x)


def _distinct(x: list[Any] | tuple[Any, ...]) -> bool:
    try:
        return len(set(x)) == len(x)
    except TypeError:
        return False
