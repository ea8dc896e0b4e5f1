"""Sample weights where data come in: rows of weight 0 are dropped, extreme sums are rescaled.

A row with weight 0 is ignored, whatever else it holds. Only ratios of weights matter to a mean, so
that weights may be on any scale; their sum, and that of their squares, has to be a number.
"""

import math
from typing import Any

from abstain._foundation.arrays import namespace
from abstain.typing import AnyArray

#: A total weight between 2^-52 and 2^52 is taken as it is: it is a number of samples to the metrics
#: that depend on that number, such as the plug-in AURC. Above, one sample more changes nothing in
#: float64; below, weights can be no numbers of samples.
_MAX_EXPONENT = 52

#: So that the factor of subnormal weights is finite.
_MAX_SHIFT = 960


def weight_scale(total: float, n: int) -> float:
    """Return what n weights of this total are multiplied by.

    It is 1 for a total between 2^-52 and 2^52. A larger total becomes about 2^52, and a smaller one
    n, as if a row were one sample on average.
    """
    mantissa, exponent = math.frexp(total)
    if abs(exponent) <= _MAX_EXPONENT or not 0 < total < math.inf:
        return 1.0
    if exponent > 0:
        return math.ldexp(1.0, _MAX_EXPONENT - exponent)
    return math.ldexp(n / mantissa, min(-exponent, _MAX_SHIFT))


def rescale_weights(weight: AnyArray | None) -> Any:
    """Return weights, shape (n,), whose sum and sum of squares are finite and not 0."""
    if weight is None:
        return None
    xp = namespace(weight)
    scale = weight_scale(float(xp.sum(weight)), int(xp.count_nonzero(weight)))
    return weight if scale == 1.0 else weight * scale


def positive_weight_mask(weight: AnyArray | None) -> Any:
    """Return which rows have a positive weight, shape (n,); None where all have."""
    if weight is None:
        return None
    rows = weight > 0
    return None if bool(namespace(weight).all(rows)) else rows


def drop_zero_weights(weight: AnyArray | None, *columns: AnyArray) -> tuple[Any, ...]:
    """Return which rows count (None for all), and of those the rescaled weights and the columns."""
    weight = rescale_weights(weight)
    # A weight that vanishes beside the others is 0 too.
    rows = positive_weight_mask(weight)
    if weight is None or rows is None:
        return None, weight, *columns
    return rows, weight[rows], *(column[rows] for column in columns)
