"""Records: what each of their fields may hold, declared once, as its type.

A record is a frozen dataclass. A bound of a field is a `msgspec.Meta` in its annotation, a closed
choice a `Literal`, and msgspec holds the values to them, whether they come from a caller or from a
file. It was taken over pydantic because it checks plain dataclasses as they are, without a base
class, asks for no other package, and takes some 6 ms to import. It is strict here: the text "3"
is no number and True no count. What it has no words for is added: the sentence that names the
field and the value, and arrays whose axes go together.
"""

import math
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, TypeVar, get_type_hints

import msgspec
import numpy as np
from msgspec import Meta
from msgspec import inspect as types

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.json_records import raise_error, short_repr
from abstain.errors import DomainError, InputError, ShapeError, suggest
from abstain.typing import Array

RecordT = TypeVar("RecordT")

# ------------------------------------------------------------------------------------ field rules
#: The largest numbers that JSON and NumPy keep; none of these is infinite or NaN.
_LARGEST, _LONGEST = sys.float_info.max, 2**63 - 1

Number = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
NonNegative = Annotated[float, Meta(ge=0.0, le=_LARGEST)]
Positive = Annotated[float, Meta(gt=0.0, le=_LARGEST)]
Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
OpenFraction = Annotated[float, Meta(gt=0.0, lt=1.0)]
NonNegativeInt = Annotated[int, Meta(ge=0, le=_LONGEST)]
PositiveInt = Annotated[int, Meta(ge=1, le=_LONGEST)]
AtLeastTwo = Annotated[int, Meta(ge=2, le=_LONGEST)]
NonEmptyText = Annotated[str, Meta(min_length=1)]
#: A text of something else than blanks.
NonBlankText = Annotated[str, Meta(pattern=r"\S")]

#: Declares a tuple that holds each value once: one at least, or perhaps none.
DISTINCT_NONEMPTY = Meta(min_length=1, extra={"once": True})
DISTINCT = Meta(extra={"once": True})


def between(low: float, high: float) -> Meta:
    """Declare the least and the largest number."""
    return Meta(ge=low, le=high)


def axes(*names: str) -> Meta:
    """Declare what the axes of an array, or the entries of a tuple, count.

    Axes of one name have one length in all fields of a record.
    """
    return Meta(extra={"axes": names})


def entries(axis: str, description: str, *, distinct: bool = False) -> Meta:
    """Declare what the entries of a tuple, of which there is one at least, count and are."""
    return Meta(min_length=1, extra={"axes": (axis,), "words": description, "distinct": distinct})


ClassNames = Annotated[
    tuple[Any, ...], entries("K", "a list of distinct class names", distinct=True)
]


@dataclass(frozen=True)
class _Schema:
    """The fields of a kind of record as msgspec has them, and those with axes."""

    struct: type[msgspec.Struct]
    types: dict[str, types.Type]
    extra: dict[str, dict[str, Any]]


@cache
def _schema(kind: Any) -> _Schema:
    hints = get_type_hints(kind, include_extras=True)
    names = [f.name for f in fields(kind)]
    struct = msgspec.defstruct(kind.__name__, [(name, hints[name]) for name in names])
    info = types.type_info(struct)
    found: dict[str, types.Type] = {f.name: f.type for f in getattr(info, "fields", ())}
    extra = {name: held for name, t in found.items() if (held := _extra(t))}
    return _Schema(struct, found, extra)


def _extra(t: types.Type) -> dict[str, Any]:
    """Return what the annotation of a field says beside what msgspec checks."""
    parts = t.types if isinstance(t, types.UnionType) else (t,)
    return next((x.extra or {} for x in parts if isinstance(x, types.Metadata)), {})


def _bare(t: types.Type) -> types.Type:
    """Return the type of values that are there: not None, without our own words."""
    if isinstance(t, types.UnionType):
        t = next(x for x in t.types if not isinstance(x, types.NoneType))
    return t.type if isinstance(t, types.Metadata) else t


def check(record: object, *, owner: str = "") -> None:
    """Hold each field of a new record to its type, and keep it as that type.

    Called in its `__post_init__`. `of` says what the record is ("a decision rule") in messages,
    where that is not plain. An InputError, or a kind of it, names the field and the value.
    """
    for name, value in _held(record, str, f" of {owner}" if owner else "").items():
        object.__setattr__(record, name, value)


def check_unconverted(record: object, written: Callable[[str], str] = str) -> None:
    """Hold each field of a new record to its type, and leave it as it was written.

    For configurations, whose jobs are known by what is written: 1 is not 1.0. `written` makes the
    name of a field that of the file.
    """
    _held(record, written, "")


def _held(record: object, written: Callable[[str], str], of: str) -> dict[str, Any]:
    kind: Callable[..., object] = type(record)
    schema = _schema(kind)
    given = {name: getattr(record, name) for name in schema.types}
    try:
        made = msgspec.convert({k: _plain(v) for k, v in given.items()}, schema.struct)
    except msgspec.ValidationError as error:
        raise _refusal(error, schema.types, given, written, of) from None
    found: dict[str, Any] = {name: getattr(made, name) for name in schema.types}
    sizes: dict[str, int] = {}
    for name, extra in schema.extra.items():
        if "once" in extra:
            check_distinct(found[name], written(name))
        elif found[name] is not None:
            found[name] = _fitting(name, found[name], extra, sizes)
    return found


def check_value(given: Any, kind: Any, name: str) -> Any:
    """Hold one value to a type, and return it as it was written."""
    try:
        msgspec.convert({"": _plain(given)}, dict[str, kind])
    except msgspec.ValidationError as error:
        raise _refusal(error, {"": types.type_info(kind)}, {"": given}, lambda _: name) from None
    return given


def check_distinct(given: Any, name: str, *, empty: bool = True) -> None:
    """Refuse what is no sequence or holds a value twice, and nothing at all unless `empty`."""
    if not isinstance(given, list | tuple) or not (given or empty):
        rule = "a list" if empty else "a list that is not empty"
        raise InputError(f"`{name}` must be {rule}; got {short_repr(given)}")
    for place, one in enumerate(given):
        if one in given[:place]:
            raise InputError(f"`{name}` must hold each value once; got {one!r} twice")


def from_fields(kind: Callable[..., RecordT], found: Mapping[str, Any], what: str) -> RecordT:
    """Make a record of the fields of a file: every one there, and no other."""
    check_field_names(found, _schema(kind).types, what)
    return kind(**found)


def check_field_names(found: Mapping[str, Any], names: Collection[str], what: str) -> None:
    """Refuse a mapping that lacks one of the names or has a field of another name."""
    unknown = [name for name in found if name not in names]
    for name in names:
        if name not in found:
            also = f", and `{unknown[0]}` is no field of it" if unknown else ""
            raise_error(f"the field `{name}` is missing in {what}{also}")
    if unknown:
        raise_error(f"`{unknown[0]}` is no field of {what}.{suggest(unknown[0], names)}")


def from_nested_fields(kind: Callable[..., RecordT], found: object, what: str) -> RecordT:
    """Make a record that stands in another one: of an object with its fields."""
    if not isinstance(found, dict):
        raise_error(f"{what} must be an object with its fields; got {short_repr(found)}")
    return from_fields(kind, found, what)


def _plain(value: Any) -> Any:
    """Return the numbers of NumPy as those of Python."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) is int and abs(value) > _LARGEST:
        # Before 0.22 msgspec fails on an integer that no float reaches, in other ways each time.
        return math.inf
    return type(value)(map(_plain, value)) if type(value) in {list, tuple} else value


# ------------------------------------------------------------------------------------ arrays
def _fitting(name: str, x: Any, extra: Mapping[str, Any], sizes: dict[str, int]) -> Any:
    """Hold an array or a tuple to its axes, of which `sizes` has the lengths met so far."""
    names: tuple[str, ...] = extra["axes"]
    if not isinstance(x, np.ndarray):
        if extra["distinct"] and not _distinct(x):
            raise InputError(f"`{name}` must be {extra['words']}; got {short_repr(list(x))}")
        if (length := sizes.setdefault(names[0], len(x))) != len(x):
            counted = "classes" if names[0] == "K" else names[0]
            raise ShapeError(
                f"`{name}` must have one entry for each of the {length} {counted}; got {len(x)}"
            )
        return x
    if x.dtype.kind != "f":
        raise InputError(f"`{name}` must be an array of floats; got {x.dtype} values")
    shape = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    if x.ndim != len(names) or not x.size:
        raise ShapeError(f"`{name}` must have shape {shape}; got {x.shape}")
    for axis, length in zip(names, x.shape, strict=True):
        if sizes.setdefault(axis, length) != length:
            raise ShapeError(
                f"`{name}` must have shape {shape} with {axis} = {sizes[axis]}; got {x.shape}"
            )
    native: Array = np.ascontiguousarray(x.astype(x.dtype.newbyteorder("="), copy=False))
    return read_only(checks.finite(native, name))


def _distinct(x: tuple[Any, ...]) -> bool:
    try:
        return len(set(x)) == len(x)
    except TypeError:
        return False


# ------------------------------------------------------------------------------------ sentences
_PLACE = re.compile(r" - at `\$(?:\.(\w+)|\[\.\.\.\])?(?:\[(\d+)\])?(.*)`")


def _refusal(
    error: msgspec.ValidationError,
    known: Mapping[str, types.Type],
    given: Mapping[str, Any],
    written: Callable[[str], str],
    of: str = "",
) -> InputError:
    """Return msgspec's refusal as a sentence: the field, the rule it breaks, the value."""
    place = _PLACE.search(str(error))
    field, at = (place[1] or "", place[2]) if place else ("", None)
    inner = (
        field
        and at is not None
        and isinstance(_item(_bare(known[field]), int(at)), types.DataclassType)
    )
    if place is None or place[3] or inner:
        # Of a record inside this one: the words of msgspec say where.
        return InputError(str(error))
    found, kind, extra = given[field], _bare(known[field]), _extra(known[field])
    name, where = f"`{written(field)}`{of}", ""
    if at is not None:
        found, extra, where = found[int(at)], {}, f" at index {at}"
        kind = _item(kind, int(at))
    elif "axes" in extra and isinstance(found, list | tuple) and not found:
        return ShapeError(f"{name} is empty; at least one entry is needed")
    found = found.item() if isinstance(found, np.generic) else found
    rule = f"be {extra['words']}" if "words" in extra else _rule(kind, found, item=at is not None)
    if isinstance(kind, types.DictType):
        rule = f"be a table: [{written(field)}]"
    alike = {types.FloatType: (int, float), types.IntType: (int,)}.get(type(kind), ())
    beyond = type(found) in alike
    return (DomainError if beyond else InputError)(
        f"{name} must {rule}; got {short_repr(found)}{where}"
    )


def _item(kind: Any, at: int) -> types.Type:
    return _bare(kind.item_types[at] if isinstance(kind, types.TupleType) else kind.item_type)


def _rule(t: Any, value: Any, *, item: bool) -> str:
    if item and isinstance(t, types.IntType):
        return f"hold whole numbers from {t.ge} to {t.le}"
    return next(rule for kind, rule in _RULES.items() if isinstance(t, kind))(t, value)


def _number_rule(t: Any, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "be a number"
    if not math.isfinite(value) if isinstance(value, float) else abs(value) > _LARGEST:
        return "be finite"
    if t.gt is not None:
        return f"be above {t.gt:g}" if t.lt is None else "lie strictly between 0 and 1"
    return f"be at least {t.ge:g}" if t.le == _LARGEST else f"lie in [{t.ge:g}, {t.le:g}]"


def _integer_rule(t: Any, value: Any) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    beyond = whole and t.le is not None and value > t.le
    least = "" if t.ge is None else f" of at least {t.ge}"
    return f"be at most {t.le:,}" if beyond else f"be an integer{least}"


def _text_rule(t: Any, _: Any) -> str:
    return "be a text that is not empty" if t.min_length or t.pattern else "be a text"


def _list_rule(t: Any, _: Any) -> str:
    if isinstance(t.item_type, types.FloatType):
        return "be a list of numbers"
    return f"be a list{' that is not empty' if t.min_length else ''}"


_RULES: dict[type, Callable[[Any, Any], str]] = {
    types.FloatType: _number_rule,
    types.IntType: _integer_rule,
    types.StrType: _text_rule,
    types.BoolType: lambda _, __: "be true or false",
    types.LiteralType: lambda t, _: f"be one of {', '.join(map(repr, t.values))}",
    types.VarTupleType: _list_rule,
    types.ListType: _list_rule,
    types.TupleType: lambda t, _: f"be a list of {len(t.item_types)} numbers",
    types.CustomType: lambda _, __: "be an array of floats",
    types.Type: lambda _, __: "be another value",
}
