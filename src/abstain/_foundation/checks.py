"""Validate the arguments of public functions, and normalize weights.

Error messages contain the argument, the rule, the first invalid value with its index, and a hint.
Internal functions do not validate their arguments again.
"""

import math
from typing import Any

import numpy as np

from abstain._foundation.arrays import is_numpy, namespace, to_numpy
from abstain.errors import DomainError, InputError, ShapeError
from abstain.typing import AnyArray, Array, BoolArray, FloatArray

_NUMERIC = "biuf"

#: Smallest integer from which float64 does not represent all integers.
FIRST_INEXACT_INTEGER = 2**53


def reject_entries(
    name: str, rule: str, values: Array, is_invalid: BoolArray, *, hint: str = ""
) -> None:
    """Raise a DomainError about the first invalid entry, if there is one."""
    if not is_invalid.any():
        return
    position = tuple(int(i) for i in np.argwhere(is_invalid)[0])
    index = position[0] if len(position) == 1 else position
    message = f"`{name}` {rule}; got {values[position]!s} at index {index}"
    n_invalid = int(is_invalid.sum())
    if n_invalid > 1:
        message += f" ({n_invalid} such entries)"
    message += "."
    if hint:
        message += f" {hint}"
    raise DomainError(message)


def vector(x: AnyArray, name: str, *, length: int | None = None, reference: str = "") -> Array:
    """Return `x` as a one-dimensional numeric NumPy array with the given length."""
    values = to_numpy(x, name)
    if values.ndim != 1:
        raise ShapeError(f"`{name}` must have one axis (n,); got shape {values.shape}")
    if values.dtype.kind not in _NUMERIC:
        values = _convert_objects(values, name)
    if values.size == 0:
        raise ShapeError(f"`{name}` is empty; at least one sample is needed")
    if length is not None and values.size != length:
        rule = f"must have one entry for each of the {length} entries of `{reference}`"
        raise ShapeError(f"`{name}` {rule}; got {values.size}")
    return values


def _convert_objects(x: Array, name: str) -> Array:
    """Convert an object array of Python numbers to float64. Other arrays raise a DomainError."""
    holds_numbers = x.dtype.kind == "O" and all(isinstance(v, float | int | np.number) for v in x)
    if not holds_numbers:
        example = x[0] if x.size else ""
        raise DomainError(f"`{name}` must hold numbers; got {x.dtype} values such as {example!r}")
    try:
        values = x.astype(np.float64)
    except OverflowError:
        raise DomainError(
            f"`{name}` must be finite; got an integer beyond the range of float64"
        ) from None
    reject_rounding_ties(x, values, name)
    return values


def finite(x: AnyArray, name: str, *, hint: str = "") -> Array:
    """Return the array if all entries are finite. Raise a DomainError otherwise."""
    if not isinstance(x, np.ndarray):
        if not bool(namespace(x).all(namespace(x).isfinite(x))):
            finite(to_numpy(x, name), name, hint=hint)
        array: Array = x
        return array
    if x.dtype.kind != "f":
        return x
    # A finite sum proves that all entries are finite, in one pass and without a mask.
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = np.isfinite(np.add.reduce(x, axis=None))
    if not is_finite:
        reject_entries(name, "must be finite", x, ~np.isfinite(x), hint=hint)
    return x


def confidence(x: AnyArray, name: str = "confidence", *, length: int | None = None) -> Array:
    """Validate confidences, one finite number per sample."""
    values = vector(x, name, length=length, reference="labels")
    hint = "Drop these samples, or give an abstention the lowest confidence instead."
    floats = finite(_narrow_to_double(values), name, hint=hint)
    if floats.dtype.kind != "f":
        floats = floats.astype(np.float64)
    if floats is not values:
        reject_rounding_ties(values, floats, name)
    return floats


def reject_rounding_ties(values: Array, rounded: Array, name: str) -> None:
    """Raise a DomainError if conversion to a float dtype makes different values equal."""
    first_inexact = FIRST_INEXACT_INTEGER if rounded.dtype == np.float64 else 2**24
    if values.dtype.kind in "biuO" and not (np.abs(rounded) >= first_inexact).any():
        return
    order = np.argsort(values, kind="stable")
    sorted_values = values[order]
    sorted_rounded = rounded[order]
    differs_from_next = sorted_values[1:] != sorted_values[:-1]
    becomes_tied = differs_from_next & (sorted_rounded[1:] == sorted_rounded[:-1])
    if not becomes_tied.any():
        return
    position = int(np.argmax(becomes_tied))
    first, second = sorted((int(order[position]), int(order[position + 1])))
    raise DomainError(
        f"`{name}` must hold numbers that {rounded.dtype} distinguishes; got {values[first]!s} at "
        f"index {first} and {values[second]!s} at index {second}, which would be tied. Subtract a "
        "constant from all, or pass their ranks"
    )


def loss(x: AnyArray, *, length: int | None = None) -> Array:
    """Validate losses, one finite and non-negative number per sample."""
    losses = vector(x, "loss", length=length, reference="confidence")
    losses = finite(_narrow_to_double(losses), "loss")
    if losses.dtype.kind in "if" and losses.min() < 0:
        hint = "Pass a loss, not an accuracy."
        reject_entries("loss", "must not be negative", losses, losses < 0, hint=hint)
    return finite_sum(losses, "loss")


#: Minimum size of a batch that is tested for swapped arguments. In a smaller batch, all confidences
#: can happen to be 0 or 1.
_MIN_CONCLUSIVE = 30


def reject_swapped_arguments(confidence: Array, loss: Array, *, is_batch: bool = False) -> None:
    """Raise an InputError if confidence and loss are probably swapped.

    The error is raised if all confidences are 0 or 1 and the losses have many values in [0, 1].
    With `is_batch`, small batches of a larger data set are not checked.
    """
    if is_batch and confidence.size < _MIN_CONCLUSIVE:
        return
    # The first confidence is rarely 0 or 1, so most tests end here.
    if confidence[0] not in {0, 1} or loss.dtype.kind != "f":
        return
    is_binary = bool(((confidence == 0) | (confidence == 1)).all())
    is_constant = confidence.min() == confidence.max()
    if not is_binary or is_constant or loss.max() > 1:
        return
    has_many_losses = np.unique(loss).size > max(2, loss.size / 2)
    if not has_many_losses:
        return
    raise InputError(
        "`confidence` must come first and `loss` second; got a confidence of only 0 and 1, and a "
        "loss with many values in [0, 1], which look swapped. If the order is right, replace the "
        "two confidence values by others, such as 1 and 2; only their order matters."
    )


def finite_sum(x: Array, name: str) -> Array:
    """Return the array if its sum does not overflow. Raise a DomainError otherwise."""
    with np.errstate(over="ignore"):
        total = x.sum(dtype=np.float64) if x.dtype.kind == "f" else 0.0
    if not np.isfinite(total):
        raise DomainError(
            f"`{name}` must have a finite sum; got numbers up to {x.max():g}. Rescale them."
        )
    return x


def finite_weighted_sum(loss: Array, weight: FloatArray) -> None:
    """Raise a DomainError if the sum of weight times loss overflows."""
    with np.errstate(over="ignore"):
        if not np.isfinite(float(loss.max()) * weight.sum()):
            finite_sum(weight * loss, "weight * loss")


def _narrow_to_double(x: Array) -> Array:
    """Convert extended precision, which some NumPy functions do not support, to float64."""
    is_extended = x.dtype.kind == "f" and x.dtype.itemsize > np.dtype(np.float64).itemsize
    return x.astype(np.float64) if is_extended else x


def weight(x: AnyArray | None, *, length: int, is_batch: bool = False) -> FloatArray | None:
    """Validate that sample weights are finite, non-negative and not all 0.

    With `is_batch`, all weights of the batch may be 0.
    """
    if x is None:
        return None
    values = finite(
        _narrow_to_double(vector(x, "weight", length=length, reference="confidence")), "weight"
    )
    if values.dtype.kind in "if" and values.min() < 0:
        reject_entries("weight", "must not be negative", values, values < 0)
    values = finite_sum(values.astype(np.float64, copy=False), "weight")
    if not is_batch and not values.any():
        raise DomainError("`weight` must not be zero everywhere; got only zeros")
    return values


def unit_interval(x: Array, name: str, *, hint: str = "") -> Array:
    """Return the array if all entries are in [0, 1]. Raise a DomainError otherwise."""
    if not is_numpy(x):
        if bool(namespace(x).any((x < 0) | (x > 1))):
            unit_interval(to_numpy(x, name), name, hint=hint)
        return x
    if x.dtype.kind != "b" and (x.min() < 0 or x.max() > 1):
        reject_entries(name, "must lie in [0, 1]", x, (x < 0) | (x > 1), hint=hint)
    return x


def binary_loss(x: Array, *, required_by: str) -> Array:
    """Return the array if all losses are 0 or 1. Raise a DomainError otherwise."""
    if not is_numpy(x):
        if bool(namespace(x).any((x != 0) & (x != 1))):
            binary_loss(to_numpy(x, "loss"), required_by=required_by)
        return x
    if x.dtype.kind != "b":
        reject_entries("loss", f"must be 0 or 1 for {required_by}", x, (x != 0) & (x != 1))
    return x


def fraction(x: float, name: str, *, low: float = 0.0, high: float = 1.0) -> float:
    """Validate a number in [low, high], and return it as a float."""
    value = number(x, name)
    if not low <= value <= high:
        rule = f"lie in [{low:g}, {high:g}]" if high < np.inf else f"be at least {low:g}"
        hint = percent_hint(value) if high <= 1 else ""
        raise DomainError(f"`{name}` must {rule}; got {value!r}{hint}")
    return value


def percent_hint(value: float) -> str:
    """Return a hint if a number is probably a percentage instead of a fraction."""
    return f". Did you mean {value / 100:g}? Values are fractions" if 1 < value <= 100 else ""


def number(x: Any, name: str) -> float:
    """Validate a finite real number, and return it as a float."""
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
    """Validate a finite positive number, and return it as a float."""
    value = number(x, name)
    if value <= 0:
        raise DomainError(f"`{name}` must be above 0; got {value!r}")
    return value


def one_of(x: str, name: str, allowed: tuple[str, ...]) -> str:
    """Return an allowed name. Other names raise an InputError."""
    if x not in allowed:
        raise InputError(f"`{name}` must be one of {', '.join(map(repr, allowed))}; got {x!r}")
    return x


def positive_int(x: Any, name: str) -> int:
    """Validate an integer of at least 1, and return it as an int."""
    if isinstance(x, bool) or not isinstance(x, int | np.integer) or x < 1:
        raise InputError(f"`{name}` must be an integer of at least 1; got {x!r}")
    return int(x)


# ------------------------------------------------------------------------------------ weights
#: Weights are rescaled only if their total is below 2^-52 or above 2^52, because some metrics use
#: the total as the number of samples.
_MAX_EXPONENT = 52

#: Maximum exponent of the scale factor, which keeps the factor finite for subnormal weights.
_MAX_SHIFT = 960


def weight_scale(total: float, n: int) -> float:
    """Return a factor by which n weights with sum `total` are multiplied.

    The factor is 1 for totals from 2^-52 to 2^52. Larger totals are scaled to about 2^52. Smaller
    totals are scaled to n, so that the mean weight is 1.
    """
    mantissa, exponent = math.frexp(total)
    if abs(exponent) <= _MAX_EXPONENT or not 0 < total < math.inf:
        return 1.0
    if exponent > 0:
        return math.ldexp(1.0, _MAX_EXPONENT - exponent)
    return math.ldexp(n / mantissa, min(-exponent, _MAX_SHIFT))


def rescale_weights(weight: AnyArray | None) -> Any:
    """Rescale very large or very small weights to prevent overflow of their sum of squares."""
    if weight is None:
        return None
    xp = namespace(weight)
    scale = weight_scale(float(xp.sum(weight)), int(xp.count_nonzero(weight)))
    return weight if scale == 1.0 else weight * scale


def positive_weight_mask(weight: AnyArray | None) -> Any:
    """Return a mask of the rows with a positive weight, shape (n,), or None if all are positive."""
    if weight is None:
        return None
    mask = weight > 0
    return None if bool(namespace(weight).all(mask)) else mask


def drop_zero_weights(weight: AnyArray | None, *columns: AnyArray) -> tuple[Any, ...]:
    """Rescale the weights, and select the rows with a positive weight from each column.

    The result contains the row mask, the selected weights and the selected column entries. The mask
    is None if all weights are positive.
    """
    weight = rescale_weights(weight)
    # Rescaling can round a tiny weight to 0, so the mask is computed after it.
    mask = positive_weight_mask(weight)
    if weight is None or mask is None:
        return None, weight, *columns
    return mask, weight[mask], *(column[mask] for column in columns)
