"""Sums over the units of the powers of the differences of every two columns, in one pass."""

from dataclasses import dataclass

import numpy as np

from abstain.typing import BoolArray, FloatArray, IntArray

#: Numbers of a block that are multiplied at a time, so that they stay in the cache, and units at
#: most, so that few are added one after another.
_BLOCK, _UNITS = 1 << 15, 512

#: The sums of the products of the powers of first - second and of the second: coefficients of
#: the second, third and fourth power of first - r second as polynomials in 1 - r, the constant
#: first, and how often each product is in it.
_TWO, _THREE, _FOUR = slice(0, 3), slice(3, 7), slice(7, 12)
_TIMES = np.array([1, 2, 1, 1, 3, 3, 1, 1, 4, 6, 4, 1.0])[:, None]


def first_and_second(k: int) -> tuple[IntArray, IntArray]:
    """Return the places of both of every pair of k, in the order of `itertools.combinations`."""
    first, second = np.triu_indices(k, 1)
    return first, second


@dataclass(frozen=True, eq=False)
class PairPowers:
    """Sums of powers of every two columns a and b: of a - r b for any r, nothing cancelled.

    a - r b = (a - b) + (1 - r) b, so that the powers of the difference itself are sums of what the
    units differ by. (The covariance of many columns is one product, but where two columns are
    alike the difference of its entries has lost their digits.)
    """

    #: Shape (12, pairs).
    sums: FloatArray
    #: The largest |a - b| of a unit, shape (pairs,).
    apart: FloatArray
    #: The largest |a| or |b| of a unit, shape (pairs,).
    largest: FloatArray

    @classmethod
    def of(cls, parts: FloatArray) -> "PairPowers":
        """Sum over the units of parts (units, k)."""
        units, k = parts.shape
        sums, apart = np.zeros((12, k * (k - 1) // 2)), np.zeros(k * (k - 1) // 2)
        step = max(min(_BLOCK // k, _UNITS), 64)
        for start in range(0, units, step):
            x = np.ascontiguousarray(parts[start : start + step].T)
            done = 0
            for i in range(k - 1):
                rows = slice(done, done + k - 1 - i)
                _add(sums[:, rows], apart[rows], x[i], x[i + 1 :])
                done = rows.stop
        first, second = first_and_second(k)
        most = np.abs(parts).max(axis=0, initial=0.0)
        return cls(_TIMES * sums, apart, np.maximum(most[first], most[second]))

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
        return PairPowers(self.sums[:, chosen], self.apart[chosen], self.largest[chosen])

    def without_rounding(self, parts: FloatArray, least: FloatArray) -> "PairPowers":
        """Take all that is `least` (of each pair) or less for exactly 0.

        Rounding is as regular as data: it has a spread, and a test of its own finds it.
        """
        most = np.abs(parts).max(axis=0, initial=0.0)
        first, second = first_and_second(most.size)
        nothing = np.stack([most[first], most[second]]) <= least
        sums, apart, largest = self.sums.copy(), self.apart.copy(), self.largest.copy()
        for p in np.flatnonzero(nothing.any(axis=0)):
            kept = np.where(nothing[:, p], 0.0, parts[:, [first[p], second[p]]])
            own = PairPowers.of(kept)
            sums[:, p], apart[p], largest[p] = own.sums[:, 0], own.apart[0], own.largest[0]
        same = apart <= least
        sums[:, same], apart[same] = 0.0, 0.0
        return PairPowers(sums, apart, largest)


def _add(sums: FloatArray, apart: FloatArray, one: FloatArray, others: FloatArray) -> None:
    """Add the units of one column against others, (k, units), in place."""
    a, b = one - others, others
    aa, ab, bb = a * a, a * b, b * b
    products = (
        *((a, a), (a, b), (b, b)),
        *((aa, a), (aa, b), (a, bb), (b, bb)),
        *((aa, aa), (aa, ab), (aa, bb), (ab, bb), (bb, bb)),
    )
    for i, (left, right) in enumerate(products):
        sums[i] += np.einsum("pn,pn->p", left, right)
    np.maximum(apart, np.abs(a).max(axis=1), out=apart)
