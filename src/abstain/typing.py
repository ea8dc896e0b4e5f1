"""Type names used across the package."""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Anything the public functions take: NumPy, PyTorch, CuPy or JAX arrays, lists, series.
AnyArray: TypeAlias = Any

#: What a metric returns: a Python float. Where a gradient flows through a loss (a PyTorch tensor
#: with `requires_grad`, an array inside `jax.grad`) it is an array of that library without axes.
Scalar: TypeAlias = float

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[Any]

#: The (column, value) pairs that set a part of the rows apart; empty for all of them.
Split: TypeAlias = tuple[tuple[str, str], ...]

#: A seed, a generator, or None for fresh entropy.
Rng: TypeAlias = int | np.random.Generator | None

#: What confidences are measured in; "score" is a unit of their own.
Scale: TypeAlias = Literal["log-odds", "probability", "score"]

AurcEstimator: TypeAlias = Literal["trapezoid", "plugin", "log", "sele", "2sele"]

__all__ = [
    "AnyArray",
    "Array",
    "ArrayLike",
    "AurcEstimator",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "Rng",
    "Scalar",
    "Scale",
    "Split",
]
