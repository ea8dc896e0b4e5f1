"""Samples that stay where they are: validated, grouped and integrated by their own library.

For arrays on a device and for those a gradient flows through. Written against the array API, so
that PyTorch on CUDA, CuPy, and in the tests PyTorch on the CPU and array_api_strict, all run the
same lines.
"""

from typing import Any, NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import (
    is_on_device,
    is_traced,
    library_of,
    move_to_library_of,
    namespace,
    primal,
    to_numpy,
)
from abstain._foundation.gradients import (
    as_double,
    carries_gradient,
    is_computed_by_own_library,
    plain,
    without_gradient,
)
from abstain._foundation.weights import drop_zero_weights, rescale_weights
from abstain.errors import InputError
from abstain.typing import AnyArray


class DeviceArrays(NamedTuple):
    """Validated arrays of one library on one device.

    Gradients flow through the loss, and through the probability: the confidence itself, for
    what reads its values and not only its order.
    """

    confidence: Any
    loss: Any
    weight: Any
    probability: Any
    #: Which of the rows that were passed these are; None where all have a weight.
    rows: Any = None


def is_computed_on_device(
    confidence: AnyArray, loss: AnyArray, *, uses_values: bool = False
) -> bool:
    """Tell whether samples are computed on by their own library, and not by NumPy.

    They are when the confidence lies on a device or a gradient flows through the loss; with
    `uses_values`, for what reads more than the order of the confidences, or through these.
    """
    if isinstance(confidence, np.ndarray) and isinstance(loss, np.ndarray):
        return False
    read = uses_values and carries_gradient(confidence)
    return read or is_on_device(confidence) or carries_gradient(loss)


def validate_on_device(
    confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
) -> DeviceArrays:
    """Validate samples where they lie, the loss and the weight brought to the confidence.

    Rows of weight 0 are dropped.
    A confidence of the host goes to where the loss is.
    """
    for name, x in (("confidence", confidence), ("loss", loss)):
        if is_traced(x):
            primal(x, name)
    if not is_computed_by_own_library(confidence) and is_computed_by_own_library(loss):
        confidence = move_to_library_of(checks.confidence(confidence), "confidence", loss)
    xp = namespace(confidence)
    loss = _loss_beside(loss, confidence)
    weight = None if weight is None else move_to_library_of(_numbers(weight), "weight", confidence)
    weight = plain(weight)
    if not is_valid(xp, confidence, loss, weight):
        # The host's checks find the first offending entry and say what is wrong with it.
        host = checks.confidence(to_numpy(confidence, "confidence"))
        checks.loss(to_numpy(loss, "loss"), length=host.size)
        checks.weight(weight, length=host.size)
    probability, loss = as_numpy_float(confidence), as_double(loss)
    if xp.isdtype(confidence.dtype, "integral"):
        checks.reject_rounding_ties(
            to_numpy(confidence, "confidence"), to_numpy(probability, "confidence"), "confidence"
        )
    weight = None if weight is None else as_double(weight)
    _summable(without_gradient(loss), weight)
    rows, weight, loss, probability = drop_zero_weights(weight, loss, probability)
    return DeviceArrays(without_gradient(probability), loss, weight, probability, rows)


def _summable(loss: AnyArray, weight: AnyArray | None) -> None:
    """Refuse numbers so large that a sum of them overflows."""
    xp, sums = namespace(loss), {"loss": loss}
    # Some libraries compute with NumPy, which warns of what is about to be refused.
    with np.errstate(over="ignore"):
        if weight is not None:
            sums |= {"weight": weight, "weight * loss": weight * loss}
        for name, x in sums.items():
            if not bool(xp.isfinite(xp.sum(x))):
                checks.finite_sum(to_numpy(x, name), name)


def validate_weight_like(weight: AnyArray | None, reference: AnyArray) -> AnyArray | None:
    """Validate one weight for each entry of `reference`, shape (n,), and bring them there."""
    if weight is None or isinstance(reference, np.ndarray):
        return rescale_weights(checks.weight(weight, length=int(reference.shape[0])))
    brought = plain(move_to_library_of(_numbers(weight), "weight", reference))
    none = namespace(reference).zeros_like(reference)
    if not is_valid(namespace(reference), none, none, brought):
        checks.weight(brought, length=int(reference.shape[0]))
    return rescale_weights(as_double(brought))


def _loss_beside(loss: AnyArray, confidence: AnyArray) -> AnyArray:
    # Checked on the host where it is there: text would make the library of the device fail.
    brought = move_to_library_of(
        loss if is_computed_by_own_library(loss) else checks.loss(loss), "loss", confidence
    )
    if carries_gradient(loss) and not carries_gradient(brought):
        raise InputError(
            "`loss` and `confidence` must be arrays of one library for a gradient to flow; got "
            f"{library_of(loss)} and {library_of(confidence)}"
        )
    return brought


def as_numpy_float(confidence: AnyArray) -> AnyArray:
    """Return floats that NumPy would have, so that thresholds mean the same everywhere."""
    xp = namespace(confidence)
    if not xp.isdtype(confidence.dtype, "real floating"):
        return as_double(confidence)
    brain = "bfloat16" in str(confidence.dtype)
    return xp.astype(confidence, xp.float32) if brain else confidence


def _numbers(weight: AnyArray) -> AnyArray:
    return weight if is_computed_by_own_library(weight) else checks.vector(weight, "weight")


def is_valid(xp: Any, confidence: Any, loss: Any, weight: Any = None) -> bool:
    """Tell whether the arrays obey every rule, without bringing them to the host."""
    given = [x for x in (confidence, loss, weight) if x is not None]
    if any(x.ndim != 1 or x.shape != confidence.shape for x in given) or confidence.shape[0] == 0:
        return False
    kinds = ("bool", "real floating", "integral")
    if not all(xp.isdtype(x.dtype, kinds) and _finite(xp, x) for x in given):
        return False
    signed = [x for x in given[1:] if not xp.isdtype(x.dtype, "bool")]
    return not any(bool(xp.any(x < 0)) for x in signed) and (
        weight is None or bool(xp.any(weight != 0))
    )


def _finite(xp: Any, x: Any) -> bool:
    return not xp.isdtype(x.dtype, "real floating") or bool(xp.all(xp.isfinite(x)))
