"""Exact integration of risk-coverage curves over a coverage interval, as weights on vertices.

An area is a weighted sum of the risks at the vertices, so every area keeps a contribution for
each sample.
"""

from abstain._foundation.array_functions import prepend_zero
from abstain._foundation.arrays import namespace
from abstain.typing import AnyArray, FloatArray


def linear_weights(coverage: FloatArray, low: float, high: float, *, flat: bool) -> AnyArray:
    """Return vertex weights that integrate the piecewise linear curve over [low, high].

    Below the first vertex the curve is flat (selective risk, as FD-Shifts extends it), or it
    rises from the origin (generalized risk); the origin's value is zero and needs no weight.
    """
    right, left = linear_segments(coverage, low, high, flat=flat)
    return right + _next(left)


def linear_segments(
    coverage: FloatArray, low: float, high: float, *, flat: bool
) -> tuple[AnyArray, AnyArray]:
    """Return how much the right and the left vertex of each segment count in it, each (g,)."""
    xp = namespace(coverage)
    left = prepend_zero(coverage[:-1]) if coverage.shape[0] > 1 else xp.zeros_like(coverage)
    width = coverage - left
    divisor = _nonzero(width)
    start = xp.clip((low - left) / divisor, 0.0, 1.0)
    end = xp.clip((high - left) / divisor, 0.0, 1.0)
    whole = width * (end - start)
    # Inside a segment the right vertex counts with t and the left one with 1 - t.
    upper = whole * (end + start) / 2
    if flat:
        upper = xp.concat((whole[:1], upper[1:]))
    return upper, whole - upper


def hyperbolic_weights(coverage: FloatArray, low: float, high: float) -> AnyArray:
    """Return weights on the *generalized* risks that integrate the selective risk exactly.

    Between two vertices the generalized risk is a straight line A + B c (a tie group accepted
    in part, at random), so the selective risk is A/c + B and its integral A ln c + B c.
    """
    xp, right = namespace(coverage), coverage
    left = prepend_zero(coverage[:-1]) if coverage.shape[0] > 1 else xp.zeros_like(coverage)
    start = xp.minimum(xp.clip(left, low, None), right)
    end = xp.minimum(xp.clip(left, high, None), right)
    width = right - left
    span = end - start
    inside = (left > 0) & (span > 0)
    zero = xp.zeros_like(span)
    log_ratio = xp.where(inside, xp.log1p(span / xp.where(inside, start, zero + 1.0)), zero)
    # The line through (left, G0), (right, G1): A = (G0 right - G1 left)/width, B = (G1 - G0)/width.
    # In the first segment G0 = left = 0, so A vanishes and the logarithm never counts.
    on_right: FloatArray = (span - left * log_ratio) / _nonzero(width)
    on_left = (right * log_ratio - span) / _nonzero(width)
    return on_right + _next(on_left)


def _next(x: FloatArray) -> AnyArray:
    """Return at each vertex what belongs to the segment after it; nothing after the last."""
    xp = namespace(x)
    return xp.concat((x[1:], xp.zeros_like(x[:1])))


def _nonzero(width: FloatArray) -> AnyArray:
    """Replace the width of a segment too light to move the coverage; its area is 0 anyway."""
    xp = namespace(width)
    return xp.where(width > 0, width, 1.0)


def trapezoid(y: FloatArray, x: FloatArray) -> AnyArray:
    """Return the area under the straight lines through (x, y)."""
    return namespace(y).sum((x[1:] - x[:-1]) * (y[1:] + y[:-1])) / 2
