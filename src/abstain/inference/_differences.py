"""The difference of two numbers of the same samples: its record, its interval, its ratio."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate, repeat, takewhile
from math import exp, inf, log
from typing import Any

import numpy as np

from abstain._foundation.imports import special
from abstain.inference.influence import covariance_of_shares
from abstain.inference.reach import OPEN, joint_p_value, levels_left, of_difference
from abstain.inference.small_samples import (
    Failures,
    counted,
    degrees_from,
    degrees_of_freedom,
    skewed,
    skewness,
    straightened,
    t_probability,
    t_quantile,
)
from abstain.typing import FloatArray

NAN = float("nan")

#: How far to look for an end, on the log scale: beyond it there is none.
_FARTHEST = 30.0

#: Where to look.
_STEPS = tuple(
    takewhile(lambda step: step < _FARTHEST, accumulate(repeat(1e-6), lambda step, _: step * 1.3))
)


@dataclass(frozen=True)
class Difference:
    """Two numbers of the same samples: first minus second.

    Attributes
    ----------
    value : float
        The difference.
    low, high : float
        Its interval; NaN when there is none, then `note` says why.
    level : float
        Of the intervals.
    standard_error : float
        Of the difference, the pairing counted.
    p_value : float
        Two-sided, of no difference.
    superiority : float
        The chance that the first is better in another study, were these values the true ones.
    ratio, ratio_low, ratio_high : float
        First over second with its interval, which may reach 0 or inf; NaN where one of them is
        not above zero.
    method : str
        How it was made, in words.
    note : str
        A warning for the reader; empty when there is none.
    """

    value: float
    low: float
    high: float
    level: float
    standard_error: float
    p_value: float
    superiority: float
    ratio: float
    ratio_low: float
    ratio_high: float
    method: str
    note: str = ""


def error_of(parts: FloatArray) -> float:
    """Return the standard error of the first number."""
    return float(np.sqrt(covariance_of_shares(parts)[0, 0]))


def quantile_words(degrees: float) -> str:
    """Name the quantile."""
    shown = f"{degrees:.3g}" if degrees < 1000 else f"{degrees:.0f}"
    return f"t with {shown} degrees of freedom"


def without_rounding(
    value: float, influences: FloatArray, least: float
) -> tuple[float, FloatArray]:
    """Return a difference and its influences with all that is `least` or less exactly 0.

    Rounding is as regular as data: it has a spread, and a test of its own finds it.
    """
    nothing = np.abs(influences).max(axis=0, initial=0.0) <= least
    if nothing.any():
        influences = np.where(nothing, 0.0, influences)
    if np.abs(influences[:, 0] - influences[:, 1]).max(initial=0.0) <= least:
        influences = influences[:, [0, 0]]
        value = 0.0 if abs(value) <= least else value
    return value, influences


@dataclass(frozen=True, eq=False)
class PairedNumbers:
    """Two numbers of the same samples, with what their errors are made of."""

    values: tuple[float, float]
    #: What each independent unit adds to the error of both, shape (units, 2).
    parts: FloatArray
    #: Of freedom, as many as the failures allow.
    most_degrees: float
    level: float

    @property
    def apart(self) -> FloatArray:
        """What each unit adds to the error of the difference."""
        return np.asarray(self.parts[:, 0] - self.parts[:, 1])


def plain_difference(pair: PairedNumbers, value: float, *, lower_is_better: bool) -> Difference:
    """Return the difference without its ratio; `value` is it, rid of rounding."""
    error = error_of(pair.apart[:, None])
    note = _why_no_difference(value, error, pair.parts)
    if note:
        return _not_apart(pair, value, error, note)
    test = _Test.of(pair, error)
    low, high = test.ends(value, pair.level)
    statistic = straightened(value / error, test.skew)
    better = -statistic if lower_is_better else statistic
    return Difference(
        value=value,
        low=low,
        high=high,
        level=pair.level,
        standard_error=error,
        p_value=test.p_value(value),
        superiority=t_probability(better, test.degrees),
        ratio=NAN,
        ratio_low=NAN,
        ratio_high=NAN,
        method="influence function, half of the skewness corrected, "
        + quantile_words(test.degrees),
    )


@dataclass(frozen=True)
class _Test:
    """The test of a difference: its standard error, degrees of freedom and skewness."""

    error: float
    degrees: float
    skew: float

    @classmethod
    def of(cls, pair: PairedNumbers, error: float) -> "_Test":
        degrees = min(degrees_of_freedom(pair.apart), pair.most_degrees)
        return cls(error, degrees, skewness(pair.apart))

    def ends(self, value: float, level: float) -> tuple[float, float]:
        """Return the interval of a difference."""
        reach = t_quantile(level, self.degrees)
        low = value - self.error * skewed(reach, self.skew)
        return low, value - self.error * skewed(-reach, self.skew)

    def p_value(self, value: float) -> float:
        """Return the two-sided p-value of a difference."""
        statistic = straightened(value / self.error, self.skew)
        return 2 * t_probability(-abs(statistic), self.degrees)


def most_degrees(failures: int | Failures | None) -> float:
    """Return the most degrees of freedom that so many failures allow."""
    known = counted(failures)
    return np.inf if known is None else max(1.0, known.number - 1.0)


def _not_apart(pair: PairedNumbers, value: float, error: float, note: str) -> Difference:
    """Return a difference that nothing varies: exactly 0, or without an interval."""
    same = value == 0 and np.isfinite(error)
    end, method = (0.0, "influence function") if same and pair.parts.any() else (NAN, "none")
    p_value, superiority = (1.0, 0.5) if same else (NAN, NAN)
    return Difference(
        value, end, end, pair.level, error, p_value, superiority, NAN, NAN, NAN, method, note
    )


def _why_no_difference(value: float, error: float, parts: FloatArray) -> str:
    if not np.isfinite(value):
        return "one of the two numbers is not finite"
    if not np.isfinite(error):
        return "one independent sample shows no spread"
    if error > 1e-14 * float(np.abs(parts).max(initial=0.0)):
        return ""
    if value != 0:
        return "no sample changes the difference, so its spread cannot be seen"
    seen = "" if parts.any() else ", and none changes either, so no spread can be seen"
    return f"every sample counts the same in both{seen}"


def with_ratio(found: Difference, pair: PairedNumbers) -> Difference:
    """Add the ratio with its interval, where both numbers are above zero."""
    if min(pair.values) <= 0:
        return found
    low, high = _ratio_ends(pair)
    return replace(found, ratio=pair.values[0] / pair.values[1], ratio_low=low, ratio_high=high)


def over_thresholds(found: Difference, pair: PairedNumbers, reaches: FloatArray) -> Difference:
    """Widen a difference, and its ratio, by the thresholds that the data leave open."""
    down, up = of_difference(reaches)
    test = _Test.of(pair, found.standard_error)
    left = levels_left(found.level)
    lows, highs = [(found.low, -1)], [(found.high, -1)]
    for step, own in enumerate(left):
        if down[step] > 0:
            lows.append((test.ends(found.value - down[step], own)[0], step))
        if up[step] > 0:
            highs.append((test.ends(found.value + up[step], own)[1], step))
    (low, lowest), (high, highest) = min(lows), max(highs)
    beside = _p_beside(test, found.value, down if found.value > 0 else up)
    p_value = max(found.p_value, joint_p_value(beside))
    wider = replace(found, low=low, high=high, p_value=p_value)
    if lowest == highest == -1:
        return wider
    wider = replace(wider, note=OPEN)
    if np.isnan(found.ratio):
        return wider
    # The ends of the ratio are where those of the difference were found.
    (one, two), (first, second) = pair.values, reaches
    if lowest >= 0:
        moved = one - first[0, lowest], two + second[1, lowest]
        own = _ratio_ends(replace(pair, values=moved, level=left[lowest]))
        wider = replace(wider, ratio_low=own[0])
    if highest >= 0:
        moved = one + first[1, highest], two - second[0, highest]
        own = _ratio_ends(replace(pair, values=moved, level=left[highest]))
        wider = replace(wider, ratio_high=own[1])
    return wider


def _p_beside(test: _Test, value: float, move: FloatArray) -> FloatArray:
    """Return the p-value of what is left of a difference at each step; 0 where nothing moves."""
    left, place = np.unique(np.maximum(abs(value) - move, 0.0), return_inverse=True)
    found = [test.p_value(float(np.sign(value)) * x) if x > 0 else 1.0 for x in left.tolist()]
    return np.where(move > 0, np.array(found)[place], 0.0)


def clipped(found: Difference, bounds: tuple[float, float]) -> Difference:
    """Keep the ends among the differences that two numbers within the bounds can have."""
    width = bounds[1] - bounds[0]
    low, high = (min(max(end, -width), width) for end in (found.low, found.high))
    return found if np.isnan(found.low) else replace(found, low=low, high=high)


# ------------------------------------------------------------------------------------ the ratio
def _ratio_ends(pair: PairedNumbers) -> tuple[float, float]:
    """Return the ends of Fieller's interval; 0 or inf where no ratio on that side is rejected.

    The test of "first = r second" is that of the difference first - r second, with the same degrees
    of freedom and the same correction of skewness, so that the interval holds 1 if and only if that
    of the difference holds 0. (On the log scale, with few failures, true ratios of 1 are excluded
    one time in ten.)
    """
    if min(pair.values) <= 0:
        return 0.0, inf
    lead = _Lead.of(pair)
    center = log(pair.values[0] / pair.values[1])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ahead = lead.at_all(np.exp(center - np.array(_STEPS)))[0] >= 0
        behind = lead.at_all(np.exp(center + np.array(_STEPS)))[1] >= 0
    low = _end(lambda x: lead.at(exp(center - x))[0], int(np.argmax(ahead)))
    high = _end(lambda x: lead.at(exp(center + x))[1], int(np.argmax(behind)))
    return exp(center - low) if low < inf else 0.0, exp(center + high) if high < inf else inf


@dataclass(frozen=True)
class _Lead:
    """How far the statistic of a ratio is above and below what the test allows."""

    pair: PairedNumbers
    #: Independent units.
    units: int
    #: The sums over the units of the second, third and fourth power of first - r second, as
    #: polynomials in 1 - r: coefficients, the constant first.
    powers: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, pair: PairedNumbers) -> "_Lead":
        """Sum the powers once."""
        # first - r second = (first - second) + (1 - r) second: nothing cancels where both are
        # alike.
        a, b = pair.apart, pair.parts[:, 1]
        aa, ab, bb = a * a, a * b, b * b
        powers = (
            (aa.sum(), 2 * ab.sum(), bb.sum()),
            (aa @ a, 3 * (aa @ b), 3 * (a @ bb), b @ bb),
            (aa @ aa, 4 * (aa @ ab), 6 * (aa @ bb), 4 * (ab @ bb), bb @ bb),
        )
        plain = tuple(tuple(float(c) for c in each) for each in powers)
        return cls(pair, a.size, plain)

    def at(self, ratio: float) -> tuple[float, float]:
        """Return both leads for one ratio."""
        s, (first, second) = 1.0 - ratio, self.pair.values
        two, three, four = (_polynomial(each, s) for each in self.powers)
        two = max(two, self._least(s), 1e-300)
        t = (first - ratio * second) / (two * self.units / (self.units - 1)) ** 0.5
        degrees = min(degrees_from(two, four, self.units), self.pair.most_degrees)
        reach = t_quantile(self.pair.level, max(1.0, degrees))
        statistic = straightened(t, three / two**1.5)
        return statistic - reach, -statistic - reach

    def at_all(self, ratios: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the same for many ratios at once, up to rounding."""
        s, (first, second) = 1.0 - ratios, self.pair.values
        two, three, four = (_polynomial(each, s) for each in self.powers)
        two = np.maximum(np.maximum(two, self._least(s)), 1e-300)
        t = (first - ratios * second) / np.sqrt(two * self.units / (self.units - 1))
        excess, most = four - two * two / self.units, max(self.units - 1.0, 1.0)
        degrees = np.where(excess <= 0, most, np.minimum(2 * two * two / excess, most))
        degrees = np.clip(degrees, 1.0, self.pair.most_degrees)
        reach = special.stdtrit(degrees, (1 + self.pair.level) / 2)
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
    from scipy.optimize import brentq

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
