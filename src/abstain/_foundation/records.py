"""Validate the fields of records, which are frozen dataclasses, by their type annotations.

Annotations contain the bounds of a field as a `msgspec.Meta` or its choices as a `Literal`. msgspec
validates the values strictly, so the text "3" is not a number and True is not a count. This module
adds the validation of array shapes, and error messages with the field and the value.
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
#: The largest finite float and the largest 64-bit integer.
_MAX_FLOAT, _MAX_INT = sys.float_info.max, 2**63 - 1

Number = Annotated[float, Meta(ge=-_MAX_FLOAT, le=_MAX_FLOAT)]
NonNegative = Annotated[float, Meta(ge=0.0, le=_MAX_FLOAT)]
Positive = Annotated[float, Meta(gt=0.0, le=_MAX_FLOAT)]
Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
OpenFraction = Annotated[float, Meta(gt=0.0, lt=1.0)]
NonNegativeInt = Annotated[int, Meta(ge=0, le=_MAX_INT)]
PositiveInt = Annotated[int, Meta(ge=1, le=_MAX_INT)]
AtLeastTwo = Annotated[int, Meta(ge=2, le=_MAX_INT)]
NonEmptyText = Annotated[str, Meta(min_length=1)]
#: A text that contains a character other than white space.
NonBlankText = Annotated[str, Meta(pattern=r"\S")]

#: Annotations of a tuple of distinct values. Only a tuple with the second annotation may be empty.
DISTINCT_NONEMPTY = Meta(min_length=1, extra={"once": True})
DISTINCT = Meta(extra={"once": True})


def between(low: float, high: float) -> Meta:
    """Declare that a number is in [low, high]."""
    return Meta(ge=low, le=high)


def axes(*axis_names: str) -> Meta:
    """Declare the names of the axes of an array.

    An axis must have the same length in all fields of a record.
    """
    return Meta(extra={"axes": axis_names})


def entries(axis: str, description: str, *, distinct: bool = False) -> Meta:
    """Declare a nonempty tuple, the name of its axis and its description."""
    extra = {"axes": (axis,), "description": description, "distinct": distinct}
    return Meta(min_length=1, extra=extra)


ClassNames = Annotated[
    tuple[Any, ...], entries("K", "a list of distinct class names", distinct=True)
]


@dataclass(frozen=True)
class _Schema:
    """The msgspec types of the fields of a record class, and additional rules."""

    struct: type[msgspec.Struct]
    types: dict[str, types.Type]
    extra_rules: dict[str, dict[str, Any]]


@cache
def _schema(kind: Any) -> _Schema:
    """Return the field types and additional rules of a record class."""
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)]
    struct = msgspec.defstruct(kind.__name__, [(name, hints[name]) for name in names])
    struct_fields = getattr(types.type_info(struct), "fields", ())
    field_types: dict[str, types.Type] = {field.name: field.type for field in struct_fields}
    extra_rules = {}
    for name, field_type in field_types.items():
        rules = _extra_rules(field_type)
        if rules:
            extra_rules[name] = rules
    return _Schema(struct, field_types, extra_rules)


def _extra_rules(t: types.Type) -> dict[str, Any]:
    """Return the additional rules in a field's annotation, which msgspec does not check."""
    member_types = t.types if isinstance(t, types.UnionType) else (t,)
    for member_type in member_types:
        if isinstance(member_type, types.Metadata):
            return member_type.extra or {}
    return {}


def _value_type(t: types.Type) -> types.Type:
    """Return the type of a field, without the alternative None and without annotations."""
    if isinstance(t, types.UnionType):
        t = next(x for x in t.types if not isinstance(x, types.NoneType))
    return t.type if isinstance(t, types.Metadata) else t


def check(record: object, *, owner: str = "") -> None:
    """Validate each field of a new record, and convert it to the declared type.

    Records call this function in `__post_init__`. An invalid value raises an InputError that names
    the field and the value. If `owner` is set, such as to "a decision rule", the message contains
    it.
    """
    owner_phrase = f" of {owner}" if owner else ""
    for name, value in _validated_fields(record, str, owner_phrase).items():
        object.__setattr__(record, name, value)


def check_unconverted(record: object, display_name: Callable[[str], str] = str) -> None:
    """Validate each field of a new record without converting it.

    The original values are retained, so integers are not converted to floats. Error messages
    contain ``display_name(field)``.
    """
    _validated_fields(record, display_name, "")


def _validated_fields(
    record: object, display_name: Callable[[str], str], owner_phrase: str
) -> dict[str, Any]:
    """Return the validated and converted fields of a record by name."""
    record_class: Callable[..., object] = type(record)
    schema = _schema(record_class)
    values = {name: getattr(record, name) for name in schema.types}
    python_values = {name: _to_python_number(value) for name, value in values.items()}
    try:
        converted = msgspec.convert(python_values, schema.struct)
    except msgspec.ValidationError as error:
        raise _validation_error(error, schema.types, values, display_name, owner_phrase) from None
    result: dict[str, Any] = {name: getattr(converted, name) for name in schema.types}
    sizes: dict[str, int] = {}
    for name, rules in schema.extra_rules.items():
        if "once" in rules:
            check_distinct(result[name], display_name(name))
        elif result[name] is not None:
            result[name] = _check_axes(name, result[name], rules, sizes)
    return result


def check_value(value: Any, kind: Any, name: str) -> Any:
    """Validate a value, and return it without conversion."""
    try:
        msgspec.convert({"": _to_python_number(value)}, dict[str, kind])
    except msgspec.ValidationError as error:
        raise _validation_error(
            error, {"": types.type_info(kind)}, {"": value}, lambda _: name
        ) from None
    return value


def check_distinct(values: Any, name: str, *, allow_empty: bool = True) -> None:
    """Raise an InputError if the values are not a list or tuple of distinct values."""
    if not isinstance(values, list | tuple) or not (values or allow_empty):
        rule = "a list" if allow_empty else "a list that is not empty"
        raise InputError(f"`{name}` must be {rule}; got {short_repr(values)}")
    for i, value in enumerate(values):
        if value in values[:i]:
            raise InputError(f"`{name}` must hold each value once; got {value!r} twice")


def from_fields(
    kind: Callable[..., RecordT], values: Mapping[str, Any], description: str
) -> RecordT:
    """Create a record from the fields of a file. A missing or unknown field raises an error."""
    check_field_names(values, _schema(kind).types, description)
    return kind(**values)


def check_field_names(values: Mapping[str, Any], names: Collection[str], description: str) -> None:
    """Raise an InputError if a field is missing or unknown."""
    unknown = [name for name in values if name not in names]
    for name in names:
        if name not in values:
            unknown_clause = f", and `{unknown[0]}` is not a field of it" if unknown else ""
            raise_error(f"the field `{name}` is missing in {description}{unknown_clause}")
    if unknown:
        raise_error(f"`{unknown[0]}` is not a field of {description}.{suggest(unknown[0], names)}")


def from_nested_fields(kind: Callable[..., RecordT], values: object, description: str) -> RecordT:
    """Create a record from a JSON object nested in another record."""
    if not isinstance(values, dict):
        raise_error(f"{description} must be an object with its fields; got {short_repr(values)}")
    return from_fields(kind, values, description)


def _to_python_number(value: Any) -> Any:
    """Convert NumPy numbers to Python numbers, also in lists and tuples."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) in {list, tuple}:
        return type(value)(_to_python_number(item) for item in value)
    if type(value) is int and abs(value) > _MAX_FLOAT:
        # Before 0.22, msgspec raises various errors for integers beyond the range of float64.
        return math.inf
    return value


# ------------------------------------------------------------------------------------ arrays
def _check_axes(name: str, value: Any, rules: Mapping[str, Any], sizes: dict[str, int]) -> Any:
    """Validate the shape of an array or the length of a tuple, and return the value.

    `sizes` contains the length of each axis in previous fields. The function adds new axes.
    """
    if isinstance(value, np.ndarray):
        _check_array_axes(name, value, rules["axes"], sizes)
        native_dtype = value.dtype.newbyteorder("=")
        native: Array = np.ascontiguousarray(value.astype(native_dtype, copy=False))
        return read_only(checks.finite(native, name))
    if rules["distinct"] and not _has_distinct_entries(value):
        raise InputError(f"`{name}` must be {rules['description']}; got {short_repr(list(value))}")
    axis = rules["axes"][0]
    length = sizes.setdefault(axis, len(value))
    if len(value) != length:
        entry_noun = "classes" if axis == "K" else axis
        raise ShapeError(
            f"`{name}` must have one entry for each of the {length} {entry_noun}; got {len(value)}"
        )
    return value


def _check_array_axes(
    name: str, array: Array, axis_names: tuple[str, ...], sizes: dict[str, int]
) -> None:
    """Raise an error if an array is not floating-point or does not have the declared axes."""
    if array.dtype.kind != "f":
        raise InputError(f"`{name}` must be an array of floats; got {array.dtype} values")
    shape = f"({axis_names[0]},)" if len(axis_names) == 1 else f"({', '.join(axis_names)})"
    if array.ndim != len(axis_names) or not array.size:
        raise ShapeError(f"`{name}` must have shape {shape}; got {array.shape}")
    for axis, length in zip(axis_names, array.shape, strict=True):
        if sizes.setdefault(axis, length) != length:
            raise ShapeError(
                f"`{name}` must have shape {shape} with {axis} = {sizes[axis]}; got {array.shape}"
            )


def _has_distinct_entries(x: tuple[Any, ...]) -> bool:
    try:
        return len(set(x)) == len(x)
    except TypeError:
        return False


# ------------------------------------------------------------------------------------ messages
#: Pattern of the field and index in an error message of msgspec, such as " - at `$.field[3]`".
_ERROR_LOCATION = re.compile(
    r" - at `\$(?:\.(?P<field>\w+)|\[\.\.\.\])?(?:\[(?P<index>\d+)\])?(?P<nested_path>.*)`"
)


def _validation_error(
    error: msgspec.ValidationError,
    field_types: Mapping[str, types.Type],
    values: Mapping[str, Any],
    display_name: Callable[[str], str],
    owner_phrase: str = "",
) -> InputError:
    """Return an error that names the field, the violated rule and the value."""
    location = _ERROR_LOCATION.search(str(error))
    if location is None or location["nested_path"]:
        # The message of msgspec names the location in the nested record.
        return InputError(str(error))
    field = location["field"] or ""
    name = f"`{display_name(field)}`{owner_phrase}"
    value = _to_python_scalar(values[field])
    field_type = _value_type(field_types[field])
    field_rules = _extra_rules(field_types[field])
    if location["index"] is not None:
        return _item_error(error, name, field_type, value, int(location["index"]))
    if "axes" in field_rules and isinstance(value, list | tuple) and not value:
        return ShapeError(f"{name} is empty; at least one entry is needed")
    if isinstance(field_type, types.DictType):
        rule = f"be a table: [{display_name(field)}]"
    elif "description" in field_rules:
        rule = f"be {field_rules['description']}"
    else:
        rule = _rule_text(field_type, value, is_item=False)
    return _rule_error(f"{name} must {rule}", field_type, value)


def _item_error(
    error: msgspec.ValidationError, name: str, field_type: types.Type, value: Any, index: int
) -> InputError:
    """Return an error about an invalid item of a list."""
    item_type = _item_type(field_type, index)
    if isinstance(item_type, types.DataclassType):
        return InputError(str(error))
    item = _to_python_scalar(value[index])
    rule = _rule_text(item_type, item, is_item=True)
    return _rule_error(f"{name} must {rule}", item_type, item, f" at index {index}")


def _to_python_scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _rule_error(rule: str, kind: types.Type, value: Any, position: str = "") -> InputError:
    """Return a DomainError for a number out of range, or an InputError for a wrong type."""
    is_float_out_of_range = isinstance(kind, types.FloatType) and type(value) in {int, float}
    is_integer_out_of_range = isinstance(kind, types.IntType) and type(value) is int
    is_out_of_range = is_float_out_of_range or is_integer_out_of_range
    error_class = DomainError if is_out_of_range else InputError
    return error_class(f"{rule}; got {short_repr(value)}{position}")


def _item_type(kind: Any, index: int) -> types.Type:
    is_tuple = isinstance(kind, types.TupleType)
    return _value_type(kind.item_types[index] if is_tuple else kind.item_type)


def _rule_text(t: Any, value: Any, *, is_item: bool) -> str:
    """Return the violated rule as text, such as "be at least 0"."""
    if is_item and isinstance(t, types.IntType):
        return f"hold whole numbers from {t.ge} to {t.le}"
    write_rule = next(rule for kind, rule in _RULES.items() if isinstance(t, kind))
    return write_rule(t, value)


def _number_rule(t: Any, value: Any) -> str:
    """Return the violated rule for a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "be a number"
    # NaN fails the comparison, and an integer may be larger than any float.
    is_finite = -_MAX_FLOAT <= value <= _MAX_FLOAT
    if not is_finite:
        return "be finite"
    if t.gt is not None:
        return f"be above {t.gt:g}" if t.lt is None else "lie strictly between 0 and 1"
    if t.le == _MAX_FLOAT:
        return f"be at least {t.ge:g}"
    return f"lie in [{t.ge:g}, {t.le:g}]"


def _integer_rule(t: Any, value: Any) -> str:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if is_integer and t.le is not None and value > t.le:
        return f"be at most {t.le:,}"
    return "be an integer" if t.ge is None else f"be an integer of at least {t.ge}"


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
