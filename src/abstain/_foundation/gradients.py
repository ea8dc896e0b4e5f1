"""Arrays with gradients, and arrays that their own library processes instead of NumPy.

A result of such arrays stays in their library until the last number. This number is a Python float,
or a zero-dimensional array if a gradient flows through it.
"""

import sys
from typing import Any

import numpy as np

from abstain._foundation.arrays import (
    is_on_device,
    is_torch,
    is_traced,
    library_of,
    move_to_library_of,
    namespace,
)
from abstain.typing import AnyArray, Scalar

_HOST_TYPES = (np.ndarray, np.generic, float, int, list, tuple)


def carries_gradient(x: Any) -> bool:
    """Return whether the library of `x` records operations on it for differentiation."""
    if isinstance(x, _HOST_TYPES):
        return False
    if is_torch(x):
        return bool(x.requires_grad) and bool(sys.modules["torch"].is_grad_enabled())
    return is_traced(x)


def is_computed_by_own_library(x: Any) -> bool:
    """Return whether the library of `x` performs the computation instead of NumPy."""
    return not isinstance(x, np.ndarray) and (is_on_device(x) or carries_gradient(x))


def without_gradient(x: Any) -> Any:
    """Return `x` detached from its gradient; None stays None."""
    if is_torch(x):
        return x.detach()
    return sys.modules["jax"].lax.stop_gradient(x) if is_traced(x) else x


def as_scalar(x: Any) -> Scalar:
    """Return a float, or the zero-dimensional array `x` if a gradient flows through it."""
    if isinstance(x, float):
        return float(x)
    result: Scalar = x if carries_gradient(x) else float(x)
    return result


def value_with_gradient(x: Any, value: Any) -> Any:
    """Return `value` with the gradient of `x`, whose exact value it is."""
    return x + without_gradient(value - x) if carries_gradient(x) else value


def as_double(x: AnyArray) -> AnyArray:
    """Return `x` in double precision, or in the highest precision of its library."""
    xp = namespace(x)
    return xp.astype(x, double_dtype(xp))


def double_dtype(xp: Any) -> Any:
    """Return the dtype for double precision; JAX has float32 only, unless x64 is enabled."""
    if xp.__name__.startswith("jax"):
        return sys.modules["jax"].dtypes.canonicalize_dtype(np.float64)
    return xp.float64


def as_double_like(values: AnyArray, reference: AnyArray) -> AnyArray:
    """Convert NumPy values to double precision in the library and on the device of `reference`."""
    host = np.asarray(values, dtype=np.float64)
    if isinstance(reference, np.ndarray):
        return host
    if is_traced(reference) or library_of(reference) in {"jax", "jaxlib"}:
        xp = sys.modules["jax"].numpy
        return xp.asarray(host.astype(double_dtype(xp)))
    return as_double(move_to_library_of(host, "values", reference))


def stack_scalars(values: list[Any]) -> AnyArray:
    """Stack the results of `as_scalar` into one array; gradients are kept."""
    with_gradient = next((value for value in values if carries_gradient(value)), None)
    if with_gradient is None:
        return np.array(values, dtype=np.float64)
    xp, zero = namespace(with_gradient), without_gradient(with_gradient) * 0.0
    return xp.stack([zero + value for value in values])
