"""All pairs of columns at once: powers of their differences, and intervals of their ratios."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import accumulate, repeat, takewhile
from typing import Protocol

import numpy as np

from abstain.inference.small_samples import degrees_from, straightened, t_quantiles
from abstain.typing import BoolArray, FloatArray, IntArray

#: Numbers of a block that are multiplied at a time, so that they stay in the cache, and units at
#: most, so that few are added one after another.
_BLOCK, _UNITS = 1 << 15, 512

#: The sums of the products of the powers of first - anchor second and of the second: coefficients
#: of the second, third and fourth power of first - r second as polynomials in anchor - r, the
#: constant first, and how often each product is in it.
_TWO, _THREE, _FOUR = slice(0, 3), slice(3, 7), slice(7, 12)
_TIMES = np.array([1, 2, 1, 1, 3, 3, 1, 1, 4, 6, 4, 1.0])[:, None]
#: Those of the second alone.
_ALONE = [2, 6, 11]

#: How far from 1 the polynomials are anchored at most.
_MAX_ANCHOR = 1e6


def first_and_second(k: int) -> tuple[IntArray, IntArray]:
    """Return the places of both of every pair of k, in the order of `itertools.combinations`."""
    first, second = np.triu_indices(k, 1)
    return first, second


@dataclass(frozen=True, eq=False)
class PairPowers:
    """Sums of powers of every two columns a and b: of a - r b for any r, nothing cancelled.

    a - r b = (a - s b) + (s - r) b for any anchor s, so that the powers near the anchor are sums of
    what the units differ by there. Those of the difference itself are summed apart. (The covariance
    of many columns is one product, but where two columns are alike the difference of its entries
    has lost their digits.)
    """

    #: Shape (12, pairs).
    sums: FloatArray
    #: Where the polynomials are anchored, shape (pairs,).
    anchor: FloatArray
    #: The sums of the second, third and fourth power of a - b, shape (3, pairs).
    even: FloatArray
    #: The largest |a - b| of a unit, shape (pairs,).
    apart: FloatArray
    #: The largest |a| or |b| of a unit, shape (pairs,).
    largest: FloatArray

    @classmethod
    def of(cls, parts: FloatArray, values: FloatArray | None = None) -> "PairPowers":
        """Sum over the units of parts (units, k).

        The anchors are the ratios of the values of two columns, shape (k,), where these are above
        0; by default 1.
        """
        units, k = parts.shape
        first, second = first_and_second(k)
        anchor = _anchors(np.ones(k) if values is None else values)
        sums, even, apart = (np.zeros((*own, first.size)) for own in ((12,), (3,), ()))
        alone = np.zeros((3, k))
        step = max(min(_BLOCK // k, _UNITS), 64)
        for start in range(0, units, step):
            x = np.ascontiguousarray(parts[start : start + step].T)
            alone += _second_to_fourth(x)
            done = 0
            for i in range(k - 1):
                rows = slice(done, done + k - 1 - i)
                others = x[i + 1 :]
                _add(sums[:, rows], x[i] - anchor[rows, None] * others, others)
                difference = x[i] - others
                even[:, rows] += _second_to_fourth(difference)
                np.maximum(apart[rows], np.abs(difference).max(axis=1), out=apart[rows])
                done = rows.stop
        sums[_ALONE] = alone[:, second]
        most = np.abs(parts).max(axis=0, initial=0.0)
        return cls(_TIMES * sums, anchor, even, apart, np.maximum(most[first], most[second]))

    @property
    def two(self) -> FloatArray:
        """Those of the second power, shape (3, pairs)."""
        return self.sums[_TWO]

    @property
    def three(self) -> FloatArray:
        """Those of the third power, shape (4, pairs)."""
        return self.sums[_THREE]

    @property
    def four(self) -> FloatArray:
        """Those of the fourth power, shape (5, pairs)."""
        return self.sums[_FOUR]

    def only(self, chosen: "slice | BoolArray | list[int]") -> "PairPowers":
        """Return some of the pairs."""
        return PairPowers(
            self.sums[:, chosen],
            self.anchor[chosen],
            self.even[:, chosen],
            self.apart[chosen],
            self.largest[chosen],
        )

    def without_rounding(self, parts: FloatArray, least: FloatArray) -> "PairPowers":
        """Take all that is `least` (of each pair) or less for exactly 0.

        Rounding is as regular as data: it has a spread, and a test of its own finds it.
        """
        most = np.abs(parts).max(axis=0, initial=0.0)
        first, second = first_and_second(most.size)
        nothing = np.stack([most[first], most[second]]) <= least
        out = replace(self, **{f.name: getattr(self, f.name).copy() for f in fields(self)})
        for p in np.flatnonzero(nothing.any(axis=0)):
            kept = np.where(nothing[:, p], 0.0, parts[:, [first[p], second[p]]])
            own = PairPowers.of(kept, np.array([self.anchor[p], 1.0]))
            out.sums[:, p], out.even[:, p] = own.sums[:, 0], own.even[:, 0]
            out.apart[p], out.largest[p] = own.apart[0], own.largest[0]
        same = out.apart <= least
        out.sums[:, same], out.even[:, same], out.apart[same] = 0.0, 0.0, 0.0
        return out


def _anchors(values: FloatArray) -> FloatArray:
    """Return the ratios of every two values, 1 where there is none, none very far from that."""
    first, second = (values[own] for own in first_and_second(values.size))
    above = (first > 0) & (second > 0) & np.isfinite(first) & np.isfinite(second)
    found = np.divide(first, second, out=np.ones(first.size), where=above)
    return np.clip(found, 1 / _MAX_ANCHOR, _MAX_ANCHOR)


def _second_to_fourth(x: FloatArray) -> FloatArray:
    """Return the sums of the second, third and fourth powers over the units of (k, units)."""
    square = x * x
    both = (x, x), (square, x), (square, square)
    return np.stack([np.einsum("pn,pn->p", *two) for two in both])


def _add(sums: FloatArray, a: FloatArray, b: FloatArray) -> None:
    """Add the units of one column against others, (k, units), in place; not those of b alone."""
    aa, ab, bb = a * a, a * b, b * b
    products = (
        *((a, a), (a, b), None),
        *((aa, a), (aa, b), (a, bb), None),
        *((aa, aa), (aa, ab), (aa, bb), (ab, bb), None),
    )
    for i, two in enumerate(products):
        if two is not None:
            sums[i] += np.einsum("pn,pn->p", *two)


#: How far to look for an end, on the log scale: beyond it there is none.
_MAX_LOG_RATIO = 30.0

#: Where to look.
_STEPS = np.array(
    list(
        takewhile(
            lambda step: step < _MAX_LOG_RATIO, accumulate(repeat(1e-6), lambda step, _: step * 1.3)
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
