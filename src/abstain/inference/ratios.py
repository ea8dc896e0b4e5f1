"""Fieller's interval of the ratio of two numbers of the same samples, many pairs at once."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, repeat, takewhile
from typing import Protocol

import numpy as np

from abstain.inference.pair_powers import PairPowers
from abstain.inference.small_samples import degrees_from, straightened, t_quantiles
from abstain.typing import FloatArray, IntArray

#: How far to look for an end, on the log scale: beyond it there is none.
_FARTHEST = 30.0

#: Where to look.
_STEPS = np.array(
    list(
        takewhile(
            lambda step: step < _FARTHEST, accumulate(repeat(1e-6), lambda step, _: step * 1.3)
        )
    )
)

#: Pairs that are looked at together, to hold little.
_AT_A_TIME = 512

#: Steps of the search for a root; bisection alone would need no more.
_MOST_STEPS = 60

#: Pairs by their places, how far from the ratio found: how far the statistic is above what the
#: test allows.
_Lead = Callable[[IntArray, FloatArray], FloatArray]


class Ratios(Protocol):
    """Pairs of numbers, as `abstain.inference.differences.PairedNumbers` has them."""

    @property
    def values(self) -> FloatArray:
        """The numbers, shape (2, pairs)."""

    @property
    def powers(self) -> PairPowers:
        """Sums of powers of what the units add to the errors."""

    @property
    def units(self) -> FloatArray:
        """Independent units of each pair."""

    @property
    def most_degrees(self) -> FloatArray:
        """Of freedom, for each pair."""

    @property
    def level(self) -> float:
        """Of the interval."""


def ratio_ends(pairs: Ratios) -> tuple[FloatArray, FloatArray]:
    """Return the ends of Fieller's interval; 0 or inf where no ratio on that side is rejected.

    The test of "first = r second" is that of the difference first - r second, with the same degrees
    of freedom and the same correction of skewness, so that the interval holds 1 if and only if that
    of the difference holds 0. (On the log scale, with few failures, true ratios of 1 are excluded
    one time in ten.)
    """
    first, second = pairs.values
    low, high = np.zeros(first.size), np.full(first.size, np.inf)
    above = np.flatnonzero((first > 0) & (second > 0))
    for start in range(0, above.size, _AT_A_TIME):
        own = above[start : start + _AT_A_TIME]
        tested = _Tested.of(pairs, own)
        low[own] = tested.center_over(-_ends(tested, -1.0))
        high[own] = tested.center_over(_ends(tested, 1.0))
    return low, high


@dataclass(frozen=True, eq=False)
class _Tested:
    """The test of any ratio of each pair; arrays of shape (pairs,) or (terms, pairs)."""

    first: FloatArray
    second: FloatArray
    powers: PairPowers
    units: FloatArray
    most_degrees: FloatArray
    level: float

    @classmethod
    def of(cls, pairs: Ratios, chosen: IntArray) -> "_Tested":
        """Take some of the pairs."""
        first, second = pairs.values[:, chosen]
        powers = pairs.powers.only(chosen.tolist())
        units, most = pairs.units[chosen], pairs.most_degrees[chosen]
        return cls(first, second, powers, units, most, pairs.level)

    def center_over(self, move: FloatArray) -> FloatArray:
        """Return the ratio so far away from the one found, on the log scale."""
        return np.exp(np.log(self.first / self.second) + move)

    def at(self, p: IntArray, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the statistic of one ratio of each pair, and its degrees of freedom."""
        s, units = self.powers.anchor[p] - ratio, self.units[p]
        two, three, four = (
            _polynomial(own[:, p], s)
            for own in (self.powers.two, self.powers.three, self.powers.four)
        )
        # Where the second follows the first exactly, one ratio has no spread but its rounding.
        least = 1e-28 * (self.powers.even[0][p] + (1 - ratio) ** 2 * self.powers.two[2][p])
        two = np.maximum(np.maximum(two, least), 1e-300)
        t = (self.first[p] - ratio * self.second[p]) / np.sqrt(two * units / (units - 1))
        degrees = np.maximum(1.0, np.minimum(degrees_from(two, four, units), self.most_degrees[p]))
        return straightened(t, three / two**1.5), degrees


def _polynomial(coefficients: FloatArray, s: FloatArray) -> FloatArray:
    """Return the value at s, by Horner's rule."""
    value = np.zeros_like(s)
    for c in coefficients[::-1]:
        value = value * s + c
    return value


def _ends(tested: _Tested, side: float) -> FloatArray:
    """Return how far below (-1) or above (1) the ratio found the end lies, on the log scale.

    The first place, from 0 on, where the test rejects; inf for none.
    """
    every = np.arange(tested.first.size)
    center = np.log(tested.first / tested.second)

    def lead(p: IntArray, away: FloatArray) -> FloatArray:
        statistic, degrees = tested.at(p, np.exp(center[p] + side * away))
        return -side * statistic - t_quantiles(tested.level, degrees)

    guess = _first_step(tested, side)
    out = np.full(every.size, np.inf)
    found = np.flatnonzero(guess >= 0)
    inside = np.where(guess > 0, _STEPS[guess - 1], 0.0)
    # At a level so low that the correction alone is more.
    at_once = lead(every, np.zeros(every.size)) >= 0
    out[found] = roots(lead, found, inside[found], _STEPS[guess[found]])
    return np.where(at_once, 0.0, out)


def _first_step(tested: _Tested, side: float) -> IntArray:
    """Return the first of the steps at which each ratio is rejected; -1 for none."""
    every, steps = np.arange(tested.first.size), _STEPS[:, None]
    center = np.log(tested.first / tested.second)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        found, degrees = tested.at(every, np.exp(center + side * steps))
    statistic = -side * found
    # Quantiles are dear: only what lies between those of the most and the fewest degrees of
    # freedom of a pair needs one of its own.
    few, many = (t_quantiles(tested.level, d) for d in (degrees.min(axis=0), degrees.max(axis=0)))
    ahead = statistic >= few
    between = (statistic >= many) & ~ahead
    ahead[between] = statistic[between] >= t_quantiles(tested.level, degrees[between])
    return np.where(ahead.any(axis=0), np.argmax(ahead, axis=0), -1)


def roots(f: _Lead, pairs: IntArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return where each function is 0 between a place where it is below and one where it is not.

    Chandrupatla's method (1997), https://doi.org/10.1016/s0965-9978(96)00051-8: inverse quadratic
    steps where they are safe, halves where not, all pairs at once.
    """
    out = high.copy()
    a, b, fa, fb = low, high, f(pairs, low), f(pairs, high)
    c, fc, t = a, fa, np.full(a.shape, 0.5)
    left = np.arange(out.size)
    for _ in range(_MOST_STEPS):
        x = a + t * (b - a)
        fx = f(pairs[left], x)
        same = np.signbit(fx) == np.signbit(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        nearer = np.abs(fa) < np.abs(fb)
        out[left] = np.where(nearer, a, b)
        least = 4e-16 * np.abs(out[left]) / np.abs(b - a)
        going = (least < 0.5) & (np.where(nearer, fa, fb) != 0)
        if not going.any():
            break
        left, least = left[going], least[going]
        a, b, c, fa, fb, fc = (own[going] for own in (a, b, c, fa, fb, fc))
        t = _next((a, b, c), (fa, fb, fc), least)
    return out


def _next(
    places: tuple[FloatArray, FloatArray, FloatArray],
    values: tuple[FloatArray, FloatArray, FloatArray],
    least: FloatArray,
) -> FloatArray:
    """Return the share of the way from a to b to try next."""
    (a, b, c), (fa, fb, fc) = places, values
    with np.errstate(divide="ignore", invalid="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        curved = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (
            fc - fb
        )
        safe = (phi * phi < xi) & ((1 - phi) ** 2 < 1 - xi)
    return np.clip(np.where(safe, curved, 0.5), least, 1 - least)
