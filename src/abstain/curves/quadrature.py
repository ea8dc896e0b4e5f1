"""Vertex weights that integrate risk-coverage curves exactly over a coverage interval.

An area is a weighted sum of the risks at the vertices, so each sample has a contribution to the
area.
"""

from abstain._foundation.array_functions import prepend_zero
from abstain._foundation.arrays import namespace
from abstain.typing import AnyArray, FloatArray


def linear_weights(
    coverage: FloatArray, low: float, high: float, *, is_flat_at_start: bool
) -> AnyArray:
    """Return vertex weights that integrate a piecewise linear curve over [low, high].

    Below the first vertex, the curve is either constant, as for the selective risk of FD-Shifts, or
    linear from the origin, as for the generalized risk. The value at the origin is 0 and needs no
    weight.
    """
    right, left = linear_segments(coverage, low, high, is_flat_at_start=is_flat_at_start)
    return right + _shift_left(left)


def linear_segments(
    coverage: FloatArray, low: float, high: float, *, is_flat_at_start: bool
) -> tuple[AnyArray, AnyArray]:
    """Return the weights of the right vertex and of the left vertex of each segment, (g,)."""
    xp = namespace(coverage)
    left = prepend_zero(coverage[:-1]) if coverage.shape[0] > 1 else xp.zeros_like(coverage)
    width = coverage - left
    divisor = _positive_or_one(width)
    start = xp.clip((low - left) / divisor, 0.0, 1.0)
    end = xp.clip((high - left) / divisor, 0.0, 1.0)
    segment_weight = width * (end - start)
    # At the relative position t in a segment, the right vertex has weight t and the left vertex has
    # weight 1 - t.
    right_weight = segment_weight * (end + start) / 2
    if is_flat_at_start:
        right_weight = xp.concat((segment_weight[:1], right_weight[1:]))
    return right_weight, segment_weight - right_weight


def hyperbolic_weights(coverage: FloatArray, low: float, high: float) -> AnyArray:
    """Return weights of the *generalized* risks that integrate the selective risk exactly.

    Between two vertices, a random part of a tie group is accepted, so the generalized risk has the
    linear form A + B c. The selective risk is A/c + B, and its integral is A ln c + B c.
    """
    xp, right = namespace(coverage), coverage
    left = prepend_zero(coverage[:-1]) if coverage.shape[0] > 1 else xp.zeros_like(coverage)
    start = xp.minimum(xp.clip(left, low, None), right)
    end = xp.minimum(xp.clip(left, high, None), right)
    width = right - left
    span = end - start
    has_area = (left > 0) & (span > 0)
    zero = xp.zeros_like(span)
    log_ratio = xp.where(has_area, xp.log1p(span / xp.where(has_area, start, zero + 1.0)), zero)
    # The line through (left, G0) and (right, G1) has A = (G0 right - G1 left)/width and B = (G1 -
    # G0)/width. In the first segment, G0 = left = 0, so A = 0 and the logarithm is not used.
    on_right: FloatArray = (span - left * log_ratio) / _positive_or_one(width)
    on_left = (right * log_ratio - span) / _positive_or_one(width)
    return on_right + _shift_left(on_left)


def _shift_left(x: FloatArray) -> AnyArray:
    """Shift the value of each segment to the vertex before it, with 0 for the last vertex."""
    xp = namespace(x)
    return xp.concat((x[1:], xp.zeros_like(x[:1])))


def _positive_or_one(width: FloatArray) -> AnyArray:
    """Replace widths of 0 by 1.

    A width is 0 if a weight is too small to change the coverage. The area of the segment is 0.
    """
    xp = namespace(width)
    return xp.where(width > 0, width, 1.0)


def trapezoid_area(y: FloatArray, x: FloatArray) -> AnyArray:
    """Compute the area under the piecewise linear curve through (x, y)."""
    return namespace(y).sum((x[1:] - x[:-1]) * (y[1:] + y[:-1])) / 2
