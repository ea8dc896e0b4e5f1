"""Sample weights of callers: rows of weight 0 are dropped, and extreme sums are rescaled.

A row with weight 0 is ignored, whatever its other values are. A mean depends only on the ratios of
weights, so they may have any scale, but their sum and the sum of their squares must be finite.
"""

import math
from typing import Any

from abstain._foundation.arrays import namespace
from abstain.typing import AnyArray

#: Weights with a total between 2^-52 and 2^52 are not rescaled, because metrics that depend on the
#: number of samples, such as the plug-in AURC, take the total for it. Above, adding one sample does
#: not change the total in float64. Below, the total cannot be a number of samples.
_MAX_EXPONENT = 52

#: Limits the factor for subnormal weights, so that it is finite.
_MAX_SHIFT = 960


def weight_scale(total: float, n: int) -> float:
    """Return the factor by which n weights with this total are multiplied.

    It is 1 for a total between 2^-52 and 2^52. A larger total becomes about 2^52, and a smaller one
    n, so that the mean weight is 1.
    """
    mantissa, exponent = math.frexp(total)
    if abs(exponent) <= _MAX_EXPONENT or not 0 < total < math.inf:
        return 1.0
    if exponent > 0:
        return math.ldexp(1.0, _MAX_EXPONENT - exponent)
    return math.ldexp(n / mantissa, min(-exponent, _MAX_SHIFT))


def rescale_weights(weight: AnyArray | None) -> Any:
    """Return weights, shape (n,), whose sum and sum of squares are finite and positive."""
    if weight is None:
        return None
    xp = namespace(weight)
    scale = weight_scale(float(xp.sum(weight)), int(xp.count_nonzero(weight)))
    return weight if scale == 1.0 else weight * scale


def positive_weight_mask(weight: AnyArray | None) -> Any:
    """Return a mask of the rows with a positive weight, shape (n,); None if all have one."""
    if weight is None:
        return None
    mask = weight > 0
    return None if bool(namespace(weight).all(mask)) else mask


def drop_zero_weights(weight: AnyArray | None, *columns: AnyArray) -> tuple[Any, ...]:
    """Select the rows with a positive weight.

    Returns the mask of these rows (None if all have a positive weight), their rescaled weights, and
    their entries of each column.
    """
    weight = rescale_weights(weight)
    # Rescaling can round a very small weight to 0, so the mask is computed afterwards.
    mask = positive_weight_mask(weight)
    if weight is None or mask is None:
        return None, weight, *columns
    return mask, weight[mask], *(column[mask] for column in columns)
