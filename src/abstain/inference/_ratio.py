"""The ratio of two numbers of the same samples: every ratio that the test does not reject.

Fieller's interval. The test of "first = r second" is that of the difference first - r second, with
the same degrees of freedom and the same correction of skewness, so that the interval holds 1 if
and only if the interval of the difference holds 0. (On the log scale, with few failures, true
ratios of 1 are excluded one time in ten.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, repeat, takewhile
from math import exp, inf, log
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtrit

from abstain.inference.small_samples import degrees_from, straightened, t_quantile
from abstain.typing import FloatArray

#: How far to look for an end, on the log scale: beyond it there is none.
_FARTHEST = 30.0

#: Where to look.
_STEPS = tuple(
    takewhile(lambda step: step < _FARTHEST, accumulate(repeat(1e-6), lambda step, _: step * 1.3))
)


def ratio_ends(
    values: tuple[float, float], parts: FloatArray, most_degrees: float, *, level: float
) -> tuple[float, float]:
    """Return the ends; 0 or inf where no ratio on that side is rejected."""
    lead = _Lead.of(values, parts, most_degrees, level)
    center = log(values[0] / values[1])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ahead = lead.at_all(np.exp(center - np.array(_STEPS)))[0] >= 0
        behind = lead.at_all(np.exp(center + np.array(_STEPS)))[1] >= 0
    low = _end(lambda x: lead.at(exp(center - x))[0], int(np.argmax(ahead)))
    high = _end(lambda x: lead.at(exp(center + x))[1], int(np.argmax(behind)))
    return exp(center - low) if low < inf else 0.0, exp(center + high) if high < inf else inf


@dataclass(frozen=True)
class _Lead:
    """How far the statistic of a ratio is above and below what the test allows.

    Attributes
    ----------
    values : tuple of float
        The two numbers.
    powers : tuple
        The sums over the units of the second, third and fourth power of first - r second, as
        polynomials in 1 - r: coefficients, the constant first.
    units : int
        Independent units.
    most_degrees : float
        Of freedom.
    level : float
        Of the interval.
    """

    values: tuple[float, float]
    powers: tuple[tuple[float, ...], ...]
    units: int
    most_degrees: float
    level: float

    @classmethod
    def of(
        cls, values: tuple[float, float], parts: FloatArray, most_degrees: float, level: float
    ) -> "_Lead":
        """Sum the powers once."""
        # first - r second = (first - second) + (1 - r) second: nothing cancels where both are
        # alike.
        a, b = parts[:, 0] - parts[:, 1], parts[:, 1]
        aa, ab, bb = a * a, a * b, b * b
        powers = (
            (aa.sum(), 2 * ab.sum(), bb.sum()),
            (aa @ a, 3 * (aa @ b), 3 * (a @ bb), b @ bb),
            (aa @ aa, 4 * (aa @ ab), 6 * (aa @ bb), 4 * (ab @ bb), bb @ bb),
        )
        plain = tuple(tuple(float(c) for c in each) for each in powers)
        return cls(values, plain, a.size, most_degrees, level)

    def at(self, ratio: float) -> tuple[float, float]:
        """Return both leads for one ratio."""
        s = 1.0 - ratio
        two, three, four = (_polynomial(each, s) for each in self.powers)
        two = max(two, self._least(s), 1e-300)
        t = (self.values[0] - ratio * self.values[1]) / (two * self.units / (self.units - 1)) ** 0.5
        degrees = min(degrees_from(two, four, self.units), self.most_degrees)
        reach = t_quantile(self.level, max(1.0, degrees))
        statistic = straightened(t, three / two**1.5)
        return statistic - reach, -statistic - reach

    def at_all(self, ratios: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the same for many ratios at once, up to rounding."""
        s = 1.0 - ratios
        two, three, four = (_polynomial(each, s) for each in self.powers)
        two = np.maximum(np.maximum(two, self._least(s)), 1e-300)
        t = (self.values[0] - ratios * self.values[1]) / np.sqrt(
            two * self.units / (self.units - 1)
        )
        excess, most = four - two * two / self.units, max(self.units - 1.0, 1.0)
        degrees = np.where(excess <= 0, most, np.minimum(2 * two * two / excess, most))
        reach = stdtrit(np.clip(degrees, 1.0, self.most_degrees), (1 + self.level) / 2)
        g = three / two**1.5 / 2
        statistic = t + g * t * t / 3 + g * g * t**3 / 27 + g / 6
        return statistic - reach, -statistic - reach

    def _least(self, s: Any) -> Any:
        """Where the second follows the first exactly, one ratio has no spread but its rounding."""
        return 1e-28 * (self.powers[0][0] + s * s * self.powers[0][2])


def _polynomial(coefficients: tuple[float, ...], s: Any) -> Any:
    """Return the value at s, by Horner's rule."""
    value: Any = 0.0
    for c in reversed(coefficients):
        value = value * s + c
    return value


def _end(lead: Callable[[float], float], guess: int) -> float:
    """Return the first place, from 0 on, where the lead is no longer negative; inf for none.

    The guess is the first of the steps where it is not.
    """
    if lead(0.0) >= 0:  # at a level so low that the correction alone is more
        return 0.0
    before = _STEPS[guess - 1] if guess else 0.0
    # Looking step by step costs more than all the rest of a comparison.
    if lead(_STEPS[guess]) >= 0 and lead(before) < 0:
        return float(brentq(lead, before, _STEPS[guess], xtol=1e-13, rtol=1e-12))
    inside = 0.0
    for step in _STEPS:
        if lead(step) >= 0:
            return float(brentq(lead, inside, step, xtol=1e-13, rtol=1e-12))
        inside = step
    return inf
