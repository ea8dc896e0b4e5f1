"""Exact integration of risk-coverage curves over a coverage interval, as weights on vertices.

An area is a weighted sum of the risks at the vertices, so every area keeps a contribution for
each sample.
"""

import numpy as np

from abstain.typing import FloatArray


def linear_weights(coverage: FloatArray, low: float, high: float, *, flat: bool) -> FloatArray:
    """Return vertex weights that integrate the piecewise linear curve over [low, high].

    Below the first vertex the curve is flat (selective risk, as FD-Shifts extends it), or it
    rises from the origin (generalized risk); the origin's value is zero and needs no weight.
    """
    right = coverage
    left = np.concatenate(([0.0], coverage[:-1]))
    width = right - left
    divisor = _nonzero(width)
    start = np.clip((low - left) / divisor, 0.0, 1.0)
    end = np.clip((high - left) / divisor, 0.0, 1.0)
    whole = width * (end - start)
    # Inside a segment the right vertex counts with t and the left one with 1 - t.
    upper = width * (end - start) * (end + start) / 2
    if flat:
        upper[0] = whole[0]
    weights = upper.copy()
    weights[:-1] += (whole - upper)[1:]
    return weights


def hyperbolic_weights(coverage: FloatArray, low: float, high: float) -> FloatArray:
    """Return weights on the *generalized* risks that integrate the selective risk exactly.

    Between two vertices the generalized risk is a straight line A + B c (a tie group accepted
    in part, at random), so the selective risk is A/c + B and its integral A ln c + B c.
    """
    right = coverage
    left = np.concatenate(([0.0], coverage[:-1]))
    start, end = np.clip(low, left, right), np.clip(high, left, right)
    width = right - left
    span = end - start
    log_ratio = np.zeros_like(span)
    inside = (left > 0) & (span > 0)
    log_ratio[inside] = np.log1p(span[inside] / start[inside])
    # The line through (left, G0), (right, G1): A = (G0 right - G1 left)/width, B = (G1 - G0)/width.
    # In the first segment G0 = left = 0, so A vanishes and the logarithm never counts.
    on_right: FloatArray = (span - left * log_ratio) / _nonzero(width)
    on_left = (right * log_ratio - span) / _nonzero(width)
    weights = on_right
    weights[:-1] += on_left[1:]
    return weights


def _nonzero(width: FloatArray) -> FloatArray:
    """Replace the width of a segment too light to move the coverage; its area is 0 anyway."""
    return np.where(width > 0, width, 1.0)
