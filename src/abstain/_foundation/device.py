"""Validate arrays that are on a device or have a gradient, without converting them to NumPy."""

from typing import Any, NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import (
    as_double,
    carries_gradient,
    is_computed_by_own_library,
    is_on_device,
    is_traced,
    library_of,
    move_to_library_of,
    namespace,
    primal,
    to_numpy,
    without_gradient,
)
from abstain._foundation.checks import drop_zero_weights, rescale_weights
from abstain.errors import InputError
from abstain.typing import AnyArray


class DeviceArrays(NamedTuple):
    """Validated arrays of one library on one device.

    The field `confidence` has no gradient. The field `probability` has the same values and retains
    the gradient.
    """

    confidence: Any
    loss: Any
    weight: Any
    probability: Any
    #: Mask of the caller's rows with a positive weight, or None if all weights are positive.
    row_mask: Any = None


def is_computed_on_device(
    confidence: AnyArray, loss: AnyArray, *, uses_values: bool = False
) -> bool:
    """Return whether the confidence or the loss is on a device or has a gradient.

    The gradient of the confidence is ignored unless `uses_values` is True.
    """
    if isinstance(confidence, np.ndarray) and isinstance(loss, np.ndarray):
        return False
    needs_confidence_gradient = uses_values and carries_gradient(confidence)
    return needs_confidence_gradient or is_on_device(confidence) or carries_gradient(loss)


def validate_on_device(
    confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
) -> DeviceArrays:
    """Validate samples on their device, and move loss and weight to the device of the confidence.

    If only the loss is on a device, the confidence is moved to the device of the loss. Rows with
    weight 0 are dropped.
    """
    confidence, loss, weight = _move_to_one_device(confidence, loss, weight)
    xp = namespace(confidence)
    if not is_valid(xp, confidence, loss, weight):
        # The check for NumPy arrays raises an error that describes the first invalid entry.
        host_confidence = checks.confidence(to_numpy(confidence, "confidence"))
        checks.loss(to_numpy(loss, "loss"), length=host_confidence.size)
        checks.weight(weight, length=host_confidence.size)
    probability = as_numpy_float(confidence)
    if xp.isdtype(confidence.dtype, "integral"):
        checks.reject_rounding_ties(
            to_numpy(confidence, "confidence"), to_numpy(probability, "confidence"), "confidence"
        )
    loss = as_double(loss)
    weight = None if weight is None else as_double(weight)
    _require_finite_sums(without_gradient(loss), weight)
    row_mask, weight, loss, probability = drop_zero_weights(weight, loss, probability)
    return DeviceArrays(without_gradient(probability), loss, weight, probability, row_mask)


def _move_to_one_device(
    confidence: AnyArray, loss: AnyArray, weight: AnyArray | None
) -> tuple[AnyArray, AnyArray, AnyArray | None]:
    """Move the arrays to the device of the confidence, or of the loss if only it is on a device."""
    for name, x in (("confidence", confidence), ("loss", loss)):
        if is_traced(x):
            # This call raises an error inside of jax.jit.
            primal(x, name)
    if not is_computed_by_own_library(confidence) and is_computed_by_own_library(loss):
        confidence = move_to_library_of(checks.confidence(confidence), "confidence", loss)
    loss = _move_loss(loss, confidence)
    if weight is not None:
        weight = move_to_library_of(_require_numbers(weight), "weight", confidence)
        weight = without_gradient(weight)
    return confidence, loss, weight


def _require_finite_sums(loss: AnyArray, weight: AnyArray | None) -> None:
    """Raise a DomainError if the sum of losses, of weights or of their products overflows."""
    xp = namespace(loss)
    summands = {"loss": loss}
    # Some libraries compute with NumPy, which would warn of an overflow.
    with np.errstate(over="ignore"):
        if weight is not None:
            summands["weight"] = weight
            summands["weight * loss"] = weight * loss
        for name, x in summands.items():
            if not bool(xp.isfinite(xp.sum(x))):
                checks.finite_sum(to_numpy(x, name), name)


def validate_weight_like(weight: AnyArray | None, reference: AnyArray) -> AnyArray | None:
    """Validate one weight per entry of `reference`, and move the weights to its device."""
    n = int(reference.shape[0])
    if weight is None or isinstance(reference, np.ndarray):
        return rescale_weights(checks.weight(weight, length=n))
    weight = move_to_library_of(_require_numbers(weight), "weight", reference)
    weight = without_gradient(weight)
    zeros = namespace(reference).zeros_like(reference)
    if not is_valid(namespace(reference), zeros, zeros, weight):
        checks.weight(weight, length=n)
    return rescale_weights(as_double(weight))


def _move_loss(loss: AnyArray, confidence: AnyArray) -> AnyArray:
    """Move the loss to the device of the confidence."""
    # A loss in host memory is validated there, because a device library would fail on text.
    valid_loss = loss if is_computed_by_own_library(loss) else checks.loss(loss)
    moved = move_to_library_of(valid_loss, "loss", confidence)
    if carries_gradient(loss) and not carries_gradient(moved):
        raise InputError(
            "`loss` and `confidence` must be arrays of one library for a gradient to flow; got "
            f"{library_of(loss)} and {library_of(confidence)}"
        )
    return moved


def as_numpy_float(confidence: AnyArray) -> AnyArray:
    """Convert confidences to the float dtype that their NumPy conversion would have."""
    xp = namespace(confidence)
    if not xp.isdtype(confidence.dtype, "real floating"):
        return as_double(confidence)
    is_bfloat16 = "bfloat16" in str(confidence.dtype)
    return xp.astype(confidence, xp.float32) if is_bfloat16 else confidence


def _require_numbers(weight: AnyArray) -> AnyArray:
    return weight if is_computed_by_own_library(weight) else checks.vector(weight, "weight")


def is_valid(xp: Any, confidence: Any, loss: Any, weight: Any = None) -> bool:
    """Return whether the arrays are valid. The arrays are not copied to host memory."""
    arrays = [x for x in (confidence, loss, weight) if x is not None]
    if any(x.ndim != 1 or x.shape != confidence.shape for x in arrays) or confidence.shape[0] == 0:
        return False
    numeric_kinds = ("bool", "real floating", "integral")
    if not all(xp.isdtype(x.dtype, numeric_kinds) and _is_finite(xp, x) for x in arrays):
        return False
    loss_and_weight = [x for x in arrays[1:] if not xp.isdtype(x.dtype, "bool")]
    if any(bool(xp.any(x < 0)) for x in loss_and_weight):
        return False
    return weight is None or bool(xp.any(weight != 0))


def _is_finite(xp: Any, x: Any) -> bool:
    return not xp.isdtype(x.dtype, "real floating") or bool(xp.all(xp.isfinite(x)))
