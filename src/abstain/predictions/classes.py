"""Encode class names as integers.

The code of a class is its index in `classes`. The code -1 marks a label that is not a class.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain._foundation.names import encode_names
from abstain.errors import DomainError, InputError, ShapeError, suggest
from abstain.typing import AnyArray, Array, IntArray

#: The code of a label that is not a class.
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class CodedNames:
    """A column of names, stored as distinct names and one integer code per sample."""

    codes: Array
    #: The distinct names. Each name belongs to at least one sample.
    distinct_names: Array

    @property
    def dtype(self) -> "np.dtype[np.generic]":
        """Data type of the names."""
        dtype: np.dtype[np.generic] = self.distinct_names.dtype
        return dtype

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        """Return the name of each sample."""
        return self.distinct_names[self.codes]

    def __getitem__(self, rows: Array) -> "CodedNames":
        """Return the entries of the selected samples."""
        occurring, codes = encode_names(self.codes[rows], "rows")
        return CodedNames(codes, self.distinct_names[np.array(occurring)])

    def distinct(self) -> list[Hashable]:
        """Return the distinct names."""
        names: list[Hashable] = self.distinct_names.tolist()
        return names


def validate_names(x: AnyArray, name: str) -> Array:
    """Validate a one-dimensional array of class names of any type."""
    values = to_numpy(x, name)
    if values.ndim == 2 and values.shape[1] == 1:
        hint = f" Pass `{name}[:, 0]`."
    elif values.ndim == 2:
        hint = " One-hot rows become classes with `.argmax(axis=1)`."
    else:
        hint = ""
    if values.ndim != 1:
        raise ShapeError(f"`{name}` must have one axis (n,); got shape {values.shape}.{hint}")
    if values.size == 0:
        raise ShapeError(f"`{name}` is empty; at least one sample is needed")
    if values.dtype.kind == "V":
        raise DomainError(
            f"`{name}` must hold names or numbers; got records or untyped bytes ({values.dtype})"
        )
    return values


def check_class_names(classes: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Validate that class names are distinct and hashable. Return them as Python objects."""
    names = tuple(c.item() if isinstance(c, np.generic) else c for c in classes)
    try:
        count = len(set(names))
    except TypeError:
        raise InputError(f"`classes` must hold hashable names; got {names!r}") from None
    if count < len(names):
        duplicate = next(c for i, c in enumerate(names) if c in names[:i])
        raise InputError(f"`classes` must be distinct; got {duplicate!r} twice")
    return names


def encode_classes(
    values: Array | CodedNames, classes: Sequence[Hashable], name: str, *, unknown: Hashable = None
) -> IntArray:
    """Return the code of each name, shape (n,), or raise a DomainError if it is not a class."""
    if values.dtype.kind in "iu" and unknown is None and _is_range(classes):
        numbers = np.asarray(values)
        if numbers.min() >= 0 and numbers.max() < len(classes):
            return numbers.astype(np.int64)
    code_by_name: dict[Hashable, int] = {c: code for code, c in enumerate(classes)}
    if unknown is not None:
        code_by_name[unknown] = UNKNOWN
    if isinstance(values, CodedNames):
        distinct_names = values.distinct()
        name_index = values.codes
    else:
        distinct_names, name_index = encode_names(values, name)
    code_by_index: IntArray = np.array(
        [code_by_name.get(kind, -2) for kind in distinct_names], dtype=np.int64
    )
    codes = code_by_index[name_index]
    if code_by_index.min() == -2:
        _reject_unknown_names(np.asarray(values), codes == -2, classes, name)
    return codes


def _is_range(classes: Sequence[Hashable]) -> bool:
    return all(type(c) is int and c == i for i, c in enumerate(classes))


def _reject_unknown_names(
    values: Array, is_invalid: Array, classes: Sequence[Hashable], name: str
) -> None:
    """Raise a DomainError about the first name that is not a class."""
    index = int(np.flatnonzero(is_invalid)[0])
    value = values[index]
    if isinstance(value, np.generic):
        value = value.item()
    count = int(is_invalid.sum())
    count_note = f" ({count} such entries)" if count > 1 else ""
    examples = ", ".join(map(repr, classes[:6]))
    if len(classes) > 6:
        examples += ", ..."
    raise DomainError(
        f"`{name}` must be one of the {len(classes)} classes ({examples}); "
        f"got {value!r} at index {index}{count_note}.{_advice(value, classes, name)}"
    )


def _advice(value: object, classes: Sequence[Hashable], name: str) -> str:
    """Return a hint for correcting a name that is not a class."""
    same_text = [c for c in classes if type(c) is not type(value) and str(c) == str(value)]
    if same_text:
        type_name = type(same_text[0]).__name__
        return f" The class {same_text[0]!r} is a {type_name}; use one type for both."
    suggestion = ""
    if type(value) is str:
        suggestion = suggest(value, [c for c in classes if isinstance(c, str)])
    if name == "labels":
        return (
            f"{suggestion} If it marks samples of no known class, pass `unknown_label={value!r}`; "
            "if the classes have names, pass them in column order as `classes=`."
        )
    return f"{suggestion} Pass the names of all classes in column order as `classes=`."
