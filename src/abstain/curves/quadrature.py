"""Compute weights, so that the weighted sum of the risks is the area under the curve.

The area can be restricted to an interval of coverages. The weights do not depend on the risks.
"""

from abstain._foundation.array_functions import prepend_zero
from abstain._foundation.arrays import namespace
from abstain.typing import AnyArray, FloatArray


def linear_weights(
    coverage: FloatArray, low: float, high: float, *, is_flat_at_start: bool
) -> AnyArray:
    """Return the weights of the risks for the area under a piecewise linear curve in [low, high].

    If `is_flat_at_start` is True, the curve is constant below its first point. Otherwise, the curve
    is linear from the origin to its first point.
    """
    right_weight, left_weight = linear_segments(
        coverage, low, high, is_flat_at_start=is_flat_at_start
    )
    return right_weight + _shift_left(left_weight)


def linear_segments(
    coverage: FloatArray, low: float, high: float, *, is_flat_at_start: bool
) -> tuple[AnyArray, AnyArray]:
    """Return the weights of the right and left end of each segment, shape (g,).

    A segment connects two neighboring points of the curve. The parameters are those of
    `linear_weights`.
    """
    xp = namespace(coverage)
    left = _previous_coverage(coverage)
    width = coverage - left
    divisor = _positive_or_one(width)
    start = xp.clip((low - left) / divisor, 0.0, 1.0)
    end = xp.clip((high - left) / divisor, 0.0, 1.0)
    segment_weight = width * (end - start)
    # At the relative position t in a segment, the right end has weight t and the left end has
    # weight 1 - t.
    right_weight = segment_weight * (end + start) / 2
    if is_flat_at_start:
        right_weight = xp.concat((segment_weight[:1], right_weight[1:]))
    return right_weight, segment_weight - right_weight


def hyperbolic_weights(coverage: FloatArray, low: float, high: float) -> AnyArray:
    """Return the weights of the *generalized* risks for the area under the selective risk.

    Between two points, the generalized risk is A + B c at coverage c. The selective risk is
    therefore A/c + B, and its integral is A ln c + B c.
    """
    xp = namespace(coverage)
    left = _previous_coverage(coverage)
    right = coverage
    start = xp.minimum(xp.clip(left, low, None), right)
    end = xp.minimum(xp.clip(left, high, None), right)
    width = right - left
    span = end - start
    has_area = (left > 0) & (span > 0)
    zero = xp.zeros_like(span)
    # In the first segment, A is 0 and the logarithm is not used.
    divisor = xp.where(has_area, start, zero + 1.0)
    log_ratio = xp.where(has_area, xp.log1p(span / divisor), zero)
    # The line through (left, G0) and (right, G1) has A = (G0 right - G1 left)/width and
    # B = (G1 - G0)/width.
    right_weight: FloatArray = (span - left * log_ratio) / _positive_or_one(width)
    left_weight = (right * log_ratio - span) / _positive_or_one(width)
    return right_weight + _shift_left(left_weight)


def _previous_coverage(coverage: FloatArray) -> AnyArray:
    """Return the coverage of the previous point for each point, and 0 for the first point."""
    if coverage.shape[0] == 1:
        return namespace(coverage).zeros_like(coverage)
    return prepend_zero(coverage[:-1])


def _shift_left(x: FloatArray) -> AnyArray:
    """Shift the entries to the left by one position, and append 0."""
    xp = namespace(x)
    return xp.concat((x[1:], xp.zeros_like(x[:1])))


def _positive_or_one(width: FloatArray) -> AnyArray:
    """Replace widths of 0 by 1 to avoid divisions by 0."""
    xp = namespace(width)
    return xp.where(width > 0, width, 1.0)


def trapezoid_area(y: FloatArray, x: FloatArray) -> AnyArray:
    """Compute the area under the piecewise linear curve through (x, y)."""
    return namespace(y).sum((x[1:] - x[:-1]) * (y[1:] + y[:-1])) / 2
