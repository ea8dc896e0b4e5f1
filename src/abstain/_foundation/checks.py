"""Validation at the public edge: rule, argument, first offending index and value, what to do.

Internals trust what passed here; nothing below calls these twice.
"""

from typing import Any

import numpy as np

from abstain._foundation.arrays import is_numpy, namespace, to_numpy
from abstain.errors import DomainError, InputError, ShapeError
from abstain.typing import AnyArray, Array, BoolArray, FloatArray

_NUMERIC = "biuf"

#: From here on, neighboring whole numbers are one float64.
FIRST_INEXACT_INTEGER = 2**53


def _first(bad: BoolArray) -> int:
    return int(np.flatnonzero(bad.ravel())[0])


def reject_entries(name: str, rule: str, values: Array, bad: BoolArray, *, hint: str = "") -> None:
    """Raise a DomainError that names the first offending entry, if there is one."""
    if not bad.any():
        return
    where = np.argwhere(bad)[0]
    index = int(where[0]) if where.size == 1 else tuple(int(i) for i in where)
    value = values[tuple(where)]
    count = int(bad.sum())
    more = f" ({count} such entries)" if count > 1 else ""
    raise DomainError(
        f"`{name}` {rule}; got {value!s} at index {index}{more}.{' ' + hint if hint else ''}"
    )


def vector(x: AnyArray, name: str, *, length: int | None = None, like: str = "") -> Array:
    """Return `x` as a one-dimensional numeric NumPy array of the given length."""
    out = to_numpy(x, name)
    if out.ndim != 1:
        raise ShapeError(f"`{name}` must have one axis (n,); got shape {out.shape}")
    if out.dtype.kind not in _NUMERIC:
        out = _numbers(out, name)
    if out.size == 0:
        raise ShapeError(f"`{name}` is empty; at least one sample is needed")
    if length is not None and out.size != length:
        rule = f"must have one entry for each of the {length} entries of `{like}`"
        raise ShapeError(f"`{name}` {rule}; got {out.size}")
    return out


def _numbers(x: Array, name: str) -> Array:
    """Turn an object array that holds plain numbers into floats; refuse everything else."""
    if x.dtype.kind == "O" and all(isinstance(v, float | int | np.number) for v in x):
        try:
            out = x.astype(np.float64)
        except OverflowError:
            raise DomainError(
                f"`{name}` must be finite; got a whole number beyond the range of float64"
            ) from None
        reject_rounding_ties(x, out, name)
        return out
    shown = x[0] if x.size else ""
    raise DomainError(f"`{name}` must hold numbers; got {x.dtype} values such as {shown!r}")


def finite(x: AnyArray, name: str, *, hint: str = "") -> Array:
    """Refuse NaN and infinities; integers and booleans pass untouched."""
    if not isinstance(x, np.ndarray):
        if not bool(namespace(x).all(namespace(x).isfinite(x))):
            finite(to_numpy(x, name), name, hint=hint)
        elsewhere: Array = x
        return elsewhere
    if x.dtype.kind != "f":
        return x
    # A finite sum proves that every entry is finite, in one pass and without a mask.
    with np.errstate(over="ignore", invalid="ignore"):
        proven = np.isfinite(np.add.reduce(x, axis=None))
    if not proven:
        reject_entries(name, "must be finite", x, ~np.isfinite(x), hint=hint)
    return x


def confidence(x: AnyArray, name: str = "confidence", *, length: int | None = None) -> Array:
    """Validate a confidence vector: one finite number a sample, higher is more trusted."""
    given = vector(x, name, length=length, like="labels")
    out = finite(
        _double(given),
        name,
        hint="Drop these samples, or give an abstention the lowest confidence instead.",
    )
    out = out if out.dtype.kind == "f" else out.astype(np.float64)
    if out is not given:
        reject_rounding_ties(given, out, name)
    return out


def reject_rounding_ties(given: Array, double: Array, name: str) -> None:
    """Refuse numbers that differ and are one number in the precision we compute in."""
    most = FIRST_INEXACT_INTEGER if double.dtype == np.float64 else 2**24
    if given.dtype.kind in "biuO" and not (np.abs(double) >= most).any():
        return
    order = np.argsort(given, kind="stable")
    found, kept = given[order], double[order]
    bad = np.flatnonzero((found[1:] != found[:-1]) & (kept[1:] == kept[:-1]))
    if bad.size == 0:
        return
    first, second = sorted((int(order[bad[0]]), int(order[bad[0] + 1])))
    raise DomainError(
        f"`{name}` must hold numbers that {double.dtype} tells apart; got {given[first]!s} at "
        f"index {first} and {given[second]!s} at index {second}, which would be tied. Subtract a "
        "constant from all, or pass their ranks"
    )


def loss(x: AnyArray, *, length: int | None = None) -> Array:
    """Validate a loss vector: one finite, non-negative number a sample."""
    out = finite(_double(vector(x, "loss", length=length, like="confidence")), "loss")
    if out.dtype.kind in "if" and out.min() < 0:
        reject_entries(
            "loss", "must not be negative", out, out < 0, hint="Pass a loss, not an accuracy."
        )
    return finite_sum(out, "loss")


#: Fewer samples of many may have confidences of 0 and 1 alone by chance.
_TELLING = 30


def reject_swapped_arguments(confidence: Array, loss: Array, *, is_batch: bool = False) -> None:
    """Refuse a 0/1 "confidence" beside a graded "loss": the two were passed in the other order.

    What may be a part of more samples is only judged where it is not small.
    """
    if is_batch and confidence.size < _TELLING:
        return
    # Almost every confidence has a first entry that is neither, so this costs nothing.
    if confidence[0] not in {0, 1} or loss.dtype.kind != "f":
        return
    if not ((confidence == 0) | (confidence == 1)).all() or confidence.min() == confidence.max():
        return
    if loss.max() > 1 or 2 * np.unique(loss).size <= max(4, loss.size):
        return
    raise InputError(
        "`confidence` must come first and `loss` second; got a confidence of only 0 and 1, and a "
        "loss with many values in [0, 1], which look swapped. If they are meant so, give the "
        "confidence two other values, such as 1 and 2: only its order counts."
    )


def finite_sum(x: Array, name: str) -> Array:
    """Refuse numbers so large that their sum overflows; nothing but NaN could come of them."""
    with np.errstate(over="ignore"):
        total = x.sum(dtype=np.float64) if x.dtype.kind == "f" else 0.0
    if not np.isfinite(total):
        raise DomainError(
            f"`{name}` must have a finite sum; got numbers up to {x.max():g}. Rescale them."
        )
    return x


def finite_weighted_sum(loss: Array, weight: FloatArray) -> None:
    """Refuse a weight x loss so large that its sum overflows."""
    with np.errstate(over="ignore"):
        if not np.isfinite(float(loss.max()) * weight.sum()):
            finite_sum(weight * loss, "weight * loss")


def _double(x: Array) -> Array:
    """Narrow extended precision, which NumPy's counting and sorting do not all know."""
    wide = x.dtype.kind == "f" and x.dtype.itemsize > np.dtype(np.float64).itemsize
    return x.astype(np.float64) if wide else x


def weight(x: AnyArray | None, *, length: int, is_batch: bool = False) -> FloatArray | None:
    """Validate sample weights: finite, non-negative, not all zero.

    What may be a part of more samples, such as a batch, may have only weights of 0.
    """
    if x is None:
        return None
    out = finite(_double(vector(x, "weight", length=length, like="confidence")), "weight")
    if out.dtype.kind in "if" and out.min() < 0:
        reject_entries("weight", "must not be negative", out, out < 0)
    out = finite_sum(out.astype(np.float64, copy=False), "weight")
    if not is_batch and not out.any():
        raise DomainError("`weight` must not be zero everywhere; got only zeros")
    return out


def unit_interval(x: Array, name: str, *, hint: str = "") -> Array:
    """Refuse entries outside [0, 1]."""
    if not is_numpy(x):
        if bool(namespace(x).any((x < 0) | (x > 1))):
            unit_interval(to_numpy(x, name), name, hint=hint)
        return x
    if x.dtype.kind != "b" and (x.min() < 0 or x.max() > 1):
        reject_entries(name, "must lie in [0, 1]", x, (x < 0) | (x > 1), hint=hint)
    return x


def binary_loss(x: Array, *, required_by: str) -> Array:
    """Refuse losses other than 0 and 1."""
    if not is_numpy(x):
        if bool(namespace(x).any((x != 0) & (x != 1))):
            binary_loss(to_numpy(x, "loss"), required_by=required_by)
        return x
    if x.dtype.kind != "b":
        reject_entries("loss", f"must be 0 or 1 for {required_by}", x, (x != 0) & (x != 1))
    return x


def fraction(x: float, name: str, *, low: float = 0.0, high: float = 1.0) -> float:
    """Validate one number in [low, high]."""
    value = number(x, name)
    if not low <= value <= high:
        rule = f"lie in [{low:g}, {high:g}]" if high < np.inf else f"be at least {low:g}"
        hint = percent_hint(value) if high <= 1 else ""
        raise DomainError(f"`{name}` must {rule}; got {value!r}{hint}")
    return value


def percent_hint(value: float) -> str:
    """Ask whether a number above 1 was meant as a percentage; empty where it cannot be one."""
    return f". Did you mean {value / 100:g}? Values are fractions" if 1 < value <= 100 else ""


def number(x: Any, name: str) -> float:
    """Validate one finite real number."""
    try:
        value = float(x)
    except (TypeError, ValueError):
        raise InputError(f"`{name}` must be a number; got {x!r}") from None
    except OverflowError:
        raise DomainError(
            f"`{name}` must be finite as a float; got an integer of too many digits"
        ) from None
    if not np.isfinite(value):
        raise DomainError(f"`{name}` must be finite; got {value!r}")
    return value


def positive(x: Any, name: str) -> float:
    """Validate one finite number above 0."""
    value = number(x, name)
    if value <= 0:
        raise DomainError(f"`{name}` must be above 0; got {value!r}")
    return value


def one_of(x: str, name: str, allowed: tuple[str, ...]) -> str:
    """Validate a choice among names."""
    if x not in allowed:
        raise InputError(f"`{name}` must be one of {', '.join(map(repr, allowed))}; got {x!r}")
    return x


def positive_int(x: Any, name: str) -> int:
    """Validate an integer of at least 1."""
    if isinstance(x, bool) or not isinstance(x, int | np.integer) or x < 1:
        raise InputError(f"`{name}` must be an integer of at least 1; got {x!r}")
    return int(x)
