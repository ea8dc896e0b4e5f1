"""Arrays that their own library computes on: those on a device, those a gradient flows through.

What is computed from them stays with them until the last number. That number is a Python float,
or an array without axes where a gradient flows through it.
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
    to_numpy,
)
from abstain.typing import AnyArray, Scalar

_OF_HOST = (np.ndarray, np.generic, float, int, list, tuple)


def carries_gradient(x: Any) -> bool:
    """Tell whether the library of `x` records what is done with it, to differentiate it."""
    if isinstance(x, _OF_HOST):
        return False
    if is_torch(x):
        return bool(x.requires_grad) and bool(sys.modules["torch"].is_grad_enabled())
    return is_traced(x)


def is_computed_by_own_library(x: Any) -> bool:
    """Tell whether the own library of `x` computes on it, and not NumPy."""
    return not isinstance(x, np.ndarray) and (is_on_device(x) or carries_gradient(x))


def without_gradient(x: Any) -> Any:
    """Return the values of `x` alone: nothing that is done with them is differentiated."""
    if is_torch(x):
        return x.detach()
    return sys.modules["jax"].lax.stop_gradient(x) if is_traced(x) else x


def as_scalar(x: Any) -> Scalar:
    """Return the last number: a float, or an array without axes where a gradient flows."""
    if isinstance(x, float):
        return float(x)
    out: Scalar = x if carries_gradient(x) else float(x)
    return out


def value_with_gradient(x: Any, value: Any) -> Any:
    """Return `value` with the gradient of `x`, of which it is a rounding."""
    return x + without_gradient(value - x) if carries_gradient(x) else value


def plain(x: AnyArray | None) -> AnyArray | None:
    """Return an array without gradient; None stays None."""
    return None if x is None else without_gradient(x)


def as_double(x: AnyArray) -> AnyArray:
    """Return `x` in double precision, or in the widest precision that its library works in."""
    xp = namespace(x)
    return xp.astype(x, double_dtype(xp))


def double_dtype(xp: Any) -> Any:
    """Return the dtype for double precision; JAX has none unless it was told to."""
    if xp.__name__.startswith("jax"):
        return sys.modules["jax"].dtypes.canonicalize_dtype(np.float64)
    return xp.float64


def as_double_like(values: AnyArray, reference: AnyArray) -> AnyArray:
    """Return a few numbers of the host as an array like `reference`, in double precision."""
    host = np.asarray(values, dtype=np.float64)
    if isinstance(reference, np.ndarray):
        return host
    if is_traced(reference) or library_of(reference) in {"jax", "jaxlib"}:
        xp = sys.modules["jax"].numpy
        return xp.asarray(host.astype(double_dtype(xp)))
    return as_double(move_to_library_of(host, "values", reference))


def stack_scalars(values: list[Any]) -> AnyArray:
    """Return numbers, each from `scalar`, as one array; gradients flow on through it."""
    flowing = next((value for value in values if carries_gradient(value)), None)
    if flowing is None:
        return np.array(values, dtype=np.float64)
    xp, nothing = namespace(flowing), without_gradient(flowing) * 0.0
    return xp.stack([nothing + value for value in values])


def home(x: AnyArray) -> AnyArray:
    """Return an array of any library on the host, for a step that only the host can do."""
    return to_numpy(x, "values")
