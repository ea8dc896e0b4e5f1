"""Class names to codes: the code of a class is its place in `classes`, -1 is no known class."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain._foundation.names import encode_names
from abstain.errors import DomainError, InputError, ShapeError, suggest
from abstain.typing import AnyArray, Array, IntArray

#: The code of a sample of no known class.
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class CodedNames:
    """A column of names as codes into the distinct ones, as tables keep text: (n,) integers.

    Goes wherever an array of names does, and says what `encode` and `distinct` would otherwise
    find by looking at the name of every sample.
    """

    codes: Array
    #: Each once, and each the name of a sample.
    kinds: Array

    @property
    def dtype(self) -> "np.dtype[np.generic]":
        """The type of the names."""
        kind: np.dtype[np.generic] = self.kinds.dtype
        return kind

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        """Return the name of each sample."""
        return self.kinds[self.codes]

    def __getitem__(self, rows: Array) -> "CodedNames":
        """Return some of the samples."""
        kept, codes = encode_names(self.codes[rows], "rows")
        return CodedNames(codes, self.kinds[np.array(kept)])

    def distinct(self) -> list[Hashable]:
        """Return the names that samples have."""
        found: list[Hashable] = self.kinds.tolist()
        return found


def names(x: AnyArray, name: str) -> Array:
    """Return class names as a one-dimensional array of any kind."""
    out = to_numpy(x, name)
    if out.ndim == 2 and out.shape[1] == 1:
        hint = f" Pass `{name}[:, 0]`."
    elif out.ndim == 2:
        hint = " One-hot rows become classes with `.argmax(axis=1)`."
    else:
        hint = ""
    if out.ndim != 1:
        raise ShapeError(f"`{name}` must have one axis (n,); got shape {out.shape}.{hint}")
    if out.size == 0:
        raise ShapeError(f"`{name}` is empty; at least one sample is needed")
    if out.dtype.kind == "V":
        raise DomainError(
            f"`{name}` must hold names or numbers; got records or untyped bytes ({out.dtype})"
        )
    return out


def class_names(classes: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Validate the user's class names: distinct and hashable, as Python objects."""
    out = tuple(c.item() if isinstance(c, np.generic) else c for c in classes)
    try:
        count = len(set(out))
    except TypeError:
        raise InputError(f"`classes` must hold hashable names; got {out!r}") from None
    if count < len(out):
        twice = next(c for i, c in enumerate(out) if c in out[:i])
        raise InputError(f"`classes` must be distinct; got {twice!r} twice")
    return out


def encode(
    values: Array | CodedNames, classes: Sequence[Hashable], name: str, *, unknown: Hashable = None
) -> IntArray:
    """Return the code of each name, shape (n,); refuse a name that is no class."""
    if values.dtype.kind in "iu" and unknown is None and _is_range(classes):
        numbers = np.asarray(values)
        if numbers.min() >= 0 and numbers.max() < len(classes):
            return numbers.astype(np.int64)
    table: dict[Hashable, int] = {c: code for code, c in enumerate(classes)}
    if unknown is not None:
        table[unknown] = UNKNOWN
    if isinstance(values, CodedNames):
        kinds, places = values.distinct(), values.codes
    else:
        kinds, places = encode_names(values, name)
    known: IntArray = np.array([table.get(kind, -2) for kind in kinds], dtype=np.int64)
    codes = known[places]
    if known.min() == -2:
        _refuse_outside(np.asarray(values), codes == -2, classes, name)
    return codes


def _is_range(classes: Sequence[Hashable]) -> bool:
    return all(type(c) is int and c == i for i, c in enumerate(classes))


def _refuse_outside(values: Array, outside: Array, classes: Sequence[Hashable], name: str) -> None:
    where = int(np.flatnonzero(outside)[0])
    value = values[where]
    value = value.item() if isinstance(value, np.generic) else value
    count = int(outside.sum())
    more = f" ({count} such entries)" if count > 1 else ""
    known = ", ".join(map(repr, classes[:6])) + (", ..." if len(classes) > 6 else "")
    raise DomainError(
        f"`{name}` must be one of the {len(classes)} classes ({known}); "
        f"got {value!r} at index {where}{more}.{_advice(value, classes, name)}"
    )


def _advice(value: object, classes: Sequence[Hashable], name: str) -> str:
    kin = [c for c in classes if type(c) is not type(value) and str(c) == str(value)]
    if kin:
        return f" The class {kin[0]!r} is a {type(kin[0]).__name__}; give both the same type."
    near = suggest(value, [c for c in classes if isinstance(c, str)]) if type(value) is str else ""
    if name == "labels":
        return (
            f"{near} If it marks samples of no known class, pass `unknown_label={value!r}`; "
            "if the classes have names, give them in column order as `classes=`."
        )
    return f"{near} Give the names of all classes in column order as `classes=`."
