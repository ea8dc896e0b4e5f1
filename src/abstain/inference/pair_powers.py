"""Sums over the units of the powers of the differences of every two columns, in one pass."""

from dataclasses import dataclass, fields, replace

import numpy as np

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
_FARTHEST = 1e6


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
    return np.clip(found, 1 / _FARTHEST, _FARTHEST)


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
