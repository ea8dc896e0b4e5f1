"""The ratio of two numbers of the same samples: every ratio that the test does not reject.

Fieller's interval. The test of "first = r second" is that of the difference first - r second, with
the same degrees of freedom and the same correction of skewness, so that the interval holds 1 if
and only if the interval of the difference holds 0. (On the log scale, with few failures, true
ratios of 1 are excluded one time in ten.)
"""

from collections.abc import Callable
from math import comb, exp, inf, log

import numpy as np
from scipy.optimize import brentq

from abstain.inference.small_samples import degrees_from, straightened, t_quantile
from abstain.typing import FloatArray

#: How far to look for an end, on the log scale: beyond it there is none.
_FARTHEST = 30.0


def ratio_ends(
    values: tuple[float, float], parts: FloatArray, most_degrees: float, *, level: float
) -> tuple[float, float]:
    """Return the ends; 0 or inf where no ratio on that side is rejected."""
    lead = _lead(values, parts, most_degrees, level=level)
    center = log(values[0] / values[1])
    low = _end(lambda x: lead(exp(center - x))[0])
    high = _end(lambda x: lead(exp(center + x))[1])
    return exp(center - low) if low < inf else 0.0, exp(center + high) if high < inf else inf


def _lead(
    values: tuple[float, float], parts: FloatArray, most_degrees: float, *, level: float
) -> Callable[[float], tuple[float, float]]:
    """Return how far the statistic of a ratio is above and below what the test allows."""
    apart, second = parts[:, 0] - parts[:, 1], parts[:, 1]
    units = apart.size
    # first - r second = (first - second) - (r - 1) second: nothing cancels where both are alike.
    powers = [[np.sum(apart ** (k - j) * second**j) for j in range(k + 1)] for k in (2, 3, 4)]

    def lead(ratio: float) -> tuple[float, float]:
        s = 1.0 - ratio
        two, three, four = (
            float(sum(comb(len(p) - 1, j) * s**j * x for j, x in enumerate(p))) for p in powers
        )
        # Where the second follows the first exactly, one ratio has no spread but its rounding.
        two = max(two, 1e-28 * float(powers[0][0] + s * s * powers[0][2]), 1e-300)
        difference = values[0] - ratio * values[1]
        t = difference / (two * units / (units - 1)) ** 0.5
        reach = t_quantile(level, max(1.0, min(degrees_from(two, four, units), most_degrees)))
        statistic = straightened(t, three / two**1.5)
        return statistic - reach, -statistic - reach

    return lead


def _end(lead: Callable[[float], float]) -> float:
    """Return the first place, from 0 on, where the lead is no longer negative; inf for none."""
    inside, step = 0.0, 1e-6
    if lead(inside) >= 0:  # at a level so low that the correction alone is more
        return inside
    while step < _FARTHEST:
        if lead(step) >= 0:
            return float(brentq(lead, inside, step, xtol=1e-13, rtol=1e-12))
        inside, step = step, step * 1.3
    return inf
