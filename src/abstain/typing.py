"""Type aliases of the package."""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Input of public functions: arrays of NumPy, PyTorch, CuPy or JAX, lists, series.
AnyArray: TypeAlias = Any

#: Value of a metric: a Python float. If the loss has a gradient (a PyTorch tensor with
#: `requires_grad`, an array inside `jax.grad`), a zero-dimensional array of that library.
Scalar: TypeAlias = float

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[Any]

#: The (column, value) pairs that select the rows of a split; empty for all rows.
Split: TypeAlias = tuple[tuple[str, str], ...]

#: A seed, a generator, or None for fresh entropy.
Rng: TypeAlias = int | np.random.Generator | None

#: Scale of a confidence; "score" is the scale of the score itself.
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
