"""The bootstrap of any statistic that can be computed from counts."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from abstain.errors import ShapeError
from abstain.inference.draws import BLOCK, Draws
from abstain.typing import Array, FloatArray

#: From counts of shape (n, b) to values of shape (..., b).
Statistic: TypeAlias = Callable[[Array], Array]


def bootstrap(statistic: Statistic, draws: Draws) -> FloatArray:
    """Compute a statistic of every resample, a block of resamples at a time.

    Parameters
    ----------
    statistic : callable
        Takes counts of shape (n, b), how often each of n samples is in each of b resamples, as
        small unsigned integers; returns values of shape (..., b). NaN where undefined.
    draws : Draws
        The plan of resamples.

    Returns
    -------
    ndarray of shape (..., resamples)
        The replicates. Only they and one block of counts are held.
    """
    out: FloatArray | None = None
    for block, counts in enumerate(draws):
        values = np.asarray(statistic(counts), np.float64)
        if not values.ndim or values.shape[-1] != counts.shape[1]:
            msg = (
                "`statistic` must return one value for each resample on its last axis, which "
                f"holds {counts.shape[1]}; got shape {values.shape}"
            )
            raise ShapeError(msg)
        if out is None:
            out = np.empty((*values.shape[:-1], draws.resamples))
        out[..., block * BLOCK : block * BLOCK + values.shape[-1]] = values
    return np.empty(0) if out is None else out
