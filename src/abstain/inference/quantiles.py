"""Quantiles of resamples: a few quantiles of many short rows."""

from collections.abc import Sequence

import numpy as np

from abstain.typing import FloatArray


def quantiles(values: FloatArray, probabilities: Sequence[float] | FloatArray) -> FloatArray:
    """Compute ``np.quantile(values, probabilities, axis=-1)``, equal to the last digit.

    Each row is sorted once. For rows of a few hundred numbers, `np.quantile` takes ten times as
    long.
    """
    ordered = np.sort(values, axis=-1)
    last = ordered.shape[-1] - 1
    position = last * np.asarray(probabilities, np.float64)
    index = np.floor(position).astype(np.intp)
    fraction = (position - index).reshape((position.size, *(1,) * (values.ndim - 1)))
    lower = np.moveaxis(ordered[..., index], -1, 0)
    upper = np.moveaxis(ordered[..., np.minimum(index + 1, last)], -1, 0)
    # Interpolate from the nearer value, so that equal neighbours give exactly their value.
    from_lower = lower + (upper - lower) * fraction
    from_upper = upper - (upper - lower) * (1 - fraction)
    result: FloatArray = np.where(fraction < 0.5, from_lower, from_upper)
    has_nan = np.isnan(ordered[..., -1])
    return np.where(has_nan, np.nan, result) if has_nan.any() else result
