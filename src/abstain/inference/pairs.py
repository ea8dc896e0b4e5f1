"""Sums for tests of pairs of numbers from the same samples, and intervals of their ratios.

The error of each number is the sum of the contributions of independent units. A unit is a sample or
a cluster of samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain.inference.small_samples import (
    FailureCount,
    as_failure_count,
    correct_skewness,
    rounding_error,
    satterthwaite_degrees,
    t_quantiles,
)
from abstain.typing import BoolArray, FloatArray, IntArray

#: Maximum number of entries in a block, so that a block fits into the cache.
_MAX_BLOCK_ENTRIES: Final = 1 << 15

#: Maximum number of units in a block. Short sums have small rounding errors.
_MAX_BLOCK_UNITS: Final = 512

# Rows of `PairPowerSums.ratio_sums`. With a = first - anchor x second, b = second and s = anchor -
# ratio, first - ratio x second equals a + s b. The sums of (a + s b)^2, (a + s b)^3 and (a + s b)^4
# are polynomials in s. The rows contain their coefficients from the constant term on.
_SECOND_POWER, _THIRD_POWER, _FOURTH_POWER = slice(0, 3), slice(3, 7), slice(7, 12)

#: Binomial coefficients of these polynomials.
_BINOMIAL_COEFFICIENTS = np.array([1, 2, 1, 1, 3, 3, 1, 1, 4, 6, 4, 1.0])[:, None]

#: Rows with the powers of b, which do not depend on the first number of a pair.
_POWERS_OF_SECOND = [2, 6, 11]

#: Maximum of the anchor, and inverse of its minimum.
_MAX_ANCHOR = 1e6


def pair_indices(k: int) -> tuple[IntArray, IntArray]:
    """Return the indices of the two columns of every pair, as in `itertools.combinations`."""
    first, second = np.triu_indices(k, 1)
    return first, second


def _pairs_by_first_column(k: int) -> list[slice]:
    """Return, for each of k columns, the slice of the pairs with all later columns."""
    slices = []
    start = 0
    for n_later in range(k - 1, 0, -1):
        slices.append(slice(start, start + n_later))
        start += n_later
    return slices


@dataclass(frozen=True, eq=False)
class PairPowerSums:
    """Sums over the units of powers of (first - ratio x second) for every pair and any ratio.

    The sums are polynomials around an anchor ratio, which avoids cancellation for ratios near the
    anchor.
    """

    #: Shape (12, pairs).
    ratio_sums: FloatArray
    #: Shape (pairs,). Anchor ratio of the polynomials.
    anchor: FloatArray
    #: Shape (3, pairs). Sums of the second, third and fourth power of first - second.
    difference_sums: FloatArray
    #: Shape (pairs,). Largest |first - second| of a unit.
    max_difference: FloatArray
    #: Shape (pairs,). Largest |first| or |second| of a unit.
    max_contribution: FloatArray

    @classmethod
    def from_contributions(
        cls, contributions: FloatArray, values: FloatArray | None = None
    ) -> "PairPowerSums":
        """Compute the sums from the contributions of the units to k numbers, shape (units, k).

        The anchor of a pair is the ratio of its two `values`, or 1 if a value is not positive.
        """
        n_units, k = contributions.shape
        first, second = pair_indices(k)
        if values is None:
            values = np.ones(k)
        anchor = _anchor_ratios(values)
        ratio_sums = np.zeros((12, first.size))
        difference_sums = np.zeros((3, first.size))
        max_difference = np.zeros(first.size)
        column_sums = np.zeros((3, k))
        step = max(min(_MAX_BLOCK_ENTRIES // k, _MAX_BLOCK_UNITS), 64)
        for start in range(0, n_units, step):
            columns = np.ascontiguousarray(contributions[start : start + step].T)
            column_sums += _sum_powers(columns)
            for i, pairs in enumerate(_pairs_by_first_column(k)):
                later_columns = columns[i + 1 :]
                from_anchor = columns[i] - anchor[pairs, None] * later_columns
                _add_products(ratio_sums[:, pairs], from_anchor, later_columns)
                difference = columns[i] - later_columns
                difference_sums[:, pairs] += _sum_powers(difference)
                block_maximum = np.abs(difference).max(axis=1)
                max_difference[pairs] = np.maximum(max_difference[pairs], block_maximum)
        ratio_sums[_POWERS_OF_SECOND] = column_sums[:, second]
        max_of_column = np.abs(contributions).max(axis=0, initial=0.0)
        return cls(
            ratio_sums=_BINOMIAL_COEFFICIENTS * ratio_sums,
            anchor=anchor,
            difference_sums=difference_sums,
            max_difference=max_difference,
            max_contribution=np.maximum(max_of_column[first], max_of_column[second]),
        )

    @property
    def second_powers(self) -> FloatArray:
        """Polynomial coefficients of the sum of second powers, shape (3, pairs)."""
        return self.ratio_sums[_SECOND_POWER]

    @property
    def third_powers(self) -> FloatArray:
        """Polynomial coefficients of the sum of third powers, shape (4, pairs)."""
        return self.ratio_sums[_THIRD_POWER]

    @property
    def fourth_powers(self) -> FloatArray:
        """Polynomial coefficients of the sum of fourth powers, shape (5, pairs)."""
        return self.ratio_sums[_FOURTH_POWER]

    def select(self, pairs: "slice | BoolArray | IntArray") -> "PairPowerSums":
        """Return a subset of the pairs."""
        return PairPowerSums(
            self.ratio_sums[:, pairs],
            self.anchor[pairs],
            self.difference_sums[:, pairs],
            self.max_difference[pairs],
            self.max_contribution[pairs],
        )

    def without_rounding(self, contributions: FloatArray, tolerance: FloatArray) -> "PairPowerSums":
        """Return sums in which contributions and differences within the tolerance are exactly 0.

        Otherwise, a test might reject the null hypothesis for a difference that is only a rounding
        error.
        """
        max_of_column = np.abs(contributions).max(axis=0, initial=0.0)
        first, second = pair_indices(max_of_column.size)
        is_zero = np.stack([max_of_column[first], max_of_column[second]]) <= tolerance
        out = self._copy()
        for i in np.flatnonzero(is_zero.any(axis=0)):
            columns = contributions[:, [first[i], second[i]]]
            columns = np.where(is_zero[:, i], 0.0, columns)
            pair = PairPowerSums.from_contributions(columns, np.array([self.anchor[i], 1.0]))
            out.ratio_sums[:, i] = pair.ratio_sums[:, 0]
            out.difference_sums[:, i] = pair.difference_sums[:, 0]
            out.max_difference[i] = pair.max_difference[0]
            out.max_contribution[i] = pair.max_contribution[0]
        is_equal = out.max_difference <= tolerance
        out.ratio_sums[:, is_equal] = 0.0
        out.difference_sums[:, is_equal] = 0.0
        out.max_difference[is_equal] = 0.0
        return out

    def _copy(self) -> "PairPowerSums":
        """Return a copy whose arrays can be modified."""
        return PairPowerSums(
            self.ratio_sums.copy(),
            self.anchor.copy(),
            self.difference_sums.copy(),
            self.max_difference.copy(),
            self.max_contribution.copy(),
        )


def _anchor_ratios(values: FloatArray) -> FloatArray:
    """Return the clipped ratio of every pair of values, or 1 if a value is not positive."""
    first_index, second_index = pair_indices(values.size)
    first = values[first_index]
    second = values[second_index]
    has_ratio = (first > 0) & (second > 0) & np.isfinite(first) & np.isfinite(second)
    ratios = np.divide(first, second, out=np.ones(first.size), where=has_ratio)
    return np.clip(ratios, 1 / _MAX_ANCHOR, _MAX_ANCHOR)


def _sum_powers(columns: FloatArray) -> FloatArray:
    """Return the sums of second, third and fourth powers of each row, shape (3, rows)."""
    square = columns * columns
    second_powers = _dot_rows(columns, columns)
    third_powers = _dot_rows(square, columns)
    fourth_powers = _dot_rows(square, square)
    return np.stack([second_powers, third_powers, fourth_powers])


def _dot_rows(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the dot product of each row of `a` with the same row of `b`."""
    return np.asarray(np.einsum("pn,pn->p", a, b))


def _add_products(sums: FloatArray, a: FloatArray, b: FloatArray) -> None:
    """Add the products of powers of a and b (pairs, units), except powers of b alone, to `sums`."""
    aa = a * a
    ab = a * b
    bb = b * b
    # Second powers.
    sums[0] += _dot_rows(a, a)
    sums[1] += _dot_rows(a, b)
    # Third powers.
    sums[3] += _dot_rows(aa, a)
    sums[4] += _dot_rows(aa, b)
    sums[5] += _dot_rows(a, bb)
    # Fourth powers.
    sums[7] += _dot_rows(aa, aa)
    sums[8] += _dot_rows(aa, ab)
    sums[9] += _dot_rows(aa, bb)
    sums[10] += _dot_rows(ab, bb)


def max_degrees_for_failures(failures: int | FailureCount | None) -> float:
    """Return the maximum degrees of freedom, which are the failures minus 1, but at least 1."""
    failure_count = as_failure_count(failures)
    if failure_count is None:
        return np.inf
    return max(1.0, failure_count.n_failures - 1.0)


def magnitude(values: tuple[float, ...], bounds: tuple[float, float]) -> float:
    """Return the largest finite magnitude of the values and the width of their range."""
    width = bounds[1] - bounds[0]
    magnitudes = [abs(number) for number in (*values, width) if np.isfinite(number)]
    return max(magnitudes, default=0.0)


@dataclass(frozen=True, eq=False)
class PairedNumbers:
    """Pairs of numbers from the same samples, with all data that their tests require."""

    #: Both numbers of each pair, shape (2, pairs).
    values: FloatArray
    #: First minus second, or 0 if the difference is only a rounding error.
    differences: FloatArray
    #: Sums of powers of the contributions to the errors of both numbers.
    power_sums: PairPowerSums
    #: Number of independent units of each pair.
    n_units: FloatArray
    #: Upper limit of the degrees of freedom, from the number of failures.
    max_degrees: FloatArray
    level: float

    @classmethod
    def all_pairs(
        cls,
        values: FloatArray,
        contributions: FloatArray,
        *,
        bounds: tuple[float, float],
        failures: Sequence[int | FailureCount | None],
        level: float,
        n_units: FloatArray | None = None,
    ) -> "PairedNumbers":
        """Build all pairs of k numbers in the order of `itertools.combinations`.

        `contributions` is the result of `unit_contributions`, shape (units, k). `failures` contains
        the number of failures from which each number is computed.
        """
        first, second = pair_indices(values.size)
        if n_units is None:
            n_units = np.full(first.size, float(contributions.shape[0]))
        pair_values = np.stack([values[first], values[second]])
        magnitudes = [magnitude((a, b), bounds) for a, b in pair_values.T.tolist()]
        tolerance = rounding_error(n_units, np.array(magnitudes))
        max_degrees = np.array([max_degrees_for_failures(count) for count in failures])
        power_sums = PairPowerSums.from_contributions(contributions, values)
        power_sums = power_sums.without_rounding(contributions, tolerance / n_units)
        differences = pair_values[0] - pair_values[1]
        is_rounding = (power_sums.max_difference == 0) & (np.abs(differences) <= tolerance)
        differences[is_rounding] = 0.0
        max_degrees_of_pair = np.minimum(max_degrees[first], max_degrees[second])
        return cls(pair_values, differences, power_sums, n_units, max_degrees_of_pair, level)

    def select(self, pairs: "slice | BoolArray | IntArray") -> "PairedNumbers":
        """Return a subset of the pairs."""
        return PairedNumbers(
            self.values[:, pairs],
            self.differences[pairs],
            self.power_sums.select(pairs),
            self.n_units[pairs],
            self.max_degrees[pairs],
            self.level,
        )

    @property
    def standard_error(self) -> FloatArray:
        """The standard error of each difference, or NaN for a single unit."""
        factor = np.full(self.n_units.shape, np.nan)
        np.divide(self.n_units, self.n_units - 1, out=factor, where=self.n_units > 1)
        return np.asarray(np.sqrt(self.power_sums.difference_sums[0] * factor))


#: Maximum distance of a bound from the estimated ratio on the log scale. A bound that is farther
#: away is 0 or infinity.
_MAX_LOG_RATIO = 30.0


def _search_distances() -> FloatArray:
    """Return distances from 1e-6 to `_MAX_LOG_RATIO` that increase by a factor of 1.3."""
    distances = []
    distance = 1e-6
    while distance < _MAX_LOG_RATIO:
        distances.append(distance)
        distance *= 1.3
    return np.array(distances)


#: Distances at which the search for a bound evaluates the test.
_SEARCH_DISTANCES = _search_distances()

#: Number of pairs in a block, which limits the memory.
_BLOCK_SIZE = 512

#: Maximum number of steps of the root search, which is sufficient for bisection.
_MAX_ROOT_STEPS = 60


def ratio_intervals(pairs: PairedNumbers) -> tuple[FloatArray, FloatArray]:
    """Compute Fieller's interval of the ratio of each pair.

    The interval contains all ratios for which the t-test does not reject first - ratio x second =
    0. A bound is 0 or inf if the test rejects no ratio on this side. The interval contains 1 if and
    only if the interval of the difference contains 0.
    """
    first, second = pairs.values
    low = np.zeros(first.size)
    high = np.full(first.size, np.inf)
    has_ratio = np.flatnonzero((first > 0) & (second > 0))
    for start in range(0, has_ratio.size, _BLOCK_SIZE):
        block = has_ratio[start : start + _BLOCK_SIZE]
        selected = pairs.select(block)
        log_ratio = np.log(first[block] / second[block])
        low[block] = np.exp(log_ratio - _distances_to_bound(selected, -1.0))
        high[block] = np.exp(log_ratio + _distances_to_bound(selected, 1.0))
    return low, high


def _ratio_statistic(
    pairs: PairedNumbers, index: IntArray, ratio: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the t statistic of first - ratio x second and its degrees of freedom.

    `index` selects pairs, and `ratio` contains one ratio for each of them.
    """
    sums = pairs.power_sums
    n_units = pairs.n_units[index]
    first, second = pairs.values[:, index]
    from_anchor = sums.anchor[index] - ratio
    second_power = _polynomial(sums.second_powers[:, index], from_anchor)
    third_power = _polynomial(sums.third_powers[:, index], from_anchor)
    fourth_power = _polynomial(sums.fourth_powers[:, index], from_anchor)
    # If the second number is a multiple of the first, the true sum of squares is 0 at one ratio.
    # The lower limit is the rounding error of this sum.
    scale = sums.difference_sums[0][index] + (1 - ratio) ** 2 * sums.second_powers[2][index]
    second_power = np.maximum(np.maximum(second_power, 1e-28 * scale), 1e-300)
    standard_error = np.sqrt(second_power * n_units / (n_units - 1))
    t = (first - ratio * second) / standard_error
    degrees = satterthwaite_degrees(second_power, fourth_power, n_units)
    degrees = np.maximum(1.0, np.minimum(degrees, pairs.max_degrees[index]))
    return correct_skewness(t, third_power / second_power**1.5), degrees


def _polynomial(coefficients: FloatArray, x: FloatArray) -> FloatArray:
    """Evaluate a polynomial by Horner's rule. The first coefficient is the constant term."""
    value = np.zeros_like(x)
    for coefficient in coefficients[::-1]:
        value = value * x + coefficient
    return value


def _distances_to_bound(pairs: PairedNumbers, side: float) -> FloatArray:
    """Return the distance from the ratio of each pair to a bound of its interval, on the log scale.

    `side` is -1 for the lower bound and 1 for the upper bound. The distance is inf if the test
    rejects no ratio on this side.
    """
    all_pairs = np.arange(pairs.n_units.size)
    center = np.log(pairs.values[0] / pairs.values[1])

    def excess(index: IntArray, distance: FloatArray) -> FloatArray:
        """Return the test statistic minus its quantile, which is at least 0 if the test rejects."""
        ratio = np.exp(center[index] + side * distance)
        statistic, degrees = _ratio_statistic(pairs, index, ratio)
        return -side * statistic - t_quantiles(pairs.level, degrees)

    first_rejected = _first_rejected_index(pairs, side)
    has_bound = np.flatnonzero(first_rejected >= 0)
    upper = first_rejected[has_bound]
    max_distance = _SEARCH_DISTANCES[upper]
    min_distance = np.where(upper > 0, _SEARCH_DISTANCES[upper - 1], 0.0)
    distances = np.full(all_pairs.size, np.inf)
    distances[has_bound] = find_roots(excess, has_bound, min_distance, max_distance)
    # At a very low confidence level, the skewness correction alone exceeds the quantile.
    is_rejected_at_center = excess(all_pairs, np.zeros(all_pairs.size)) >= 0
    return np.where(is_rejected_at_center, 0.0, distances)


def _first_rejected_index(pairs: PairedNumbers, side: float) -> IntArray:
    """Return the index of the first distance that the test of each pair rejects, or -1."""
    all_pairs = np.arange(pairs.n_units.size)
    center = np.log(pairs.values[0] / pairs.values[1])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ratios = np.exp(center + side * _SEARCH_DISTANCES[:, None])
        statistic, degrees = _ratio_statistic(pairs, all_pairs, ratios)
    statistic = -side * statistic
    # Computing t quantiles is expensive. Most statistics are decided by the quantiles of the
    # smallest and the largest degrees of freedom of the pair.
    largest_quantile = t_quantiles(pairs.level, degrees.min(axis=0))
    smallest_quantile = t_quantiles(pairs.level, degrees.max(axis=0))
    is_rejected = statistic >= largest_quantile
    is_undecided = (statistic >= smallest_quantile) & ~is_rejected
    quantiles = t_quantiles(pairs.level, degrees[is_undecided])
    is_rejected[is_undecided] = statistic[is_undecided] >= quantiles
    return np.where(is_rejected.any(axis=0), np.argmax(is_rejected, axis=0), -1)


def find_roots(
    function: Callable[[IntArray, FloatArray], FloatArray],
    pairs: IntArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Find the root of a function for each pair by the method of Chandrupatla (1997).

    The function must have different signs at `low` and `high`. See
    https://doi.org/10.1016/s0965-9978(96)00051-8.
    """
    out = high.copy()
    # The root lies between a and b, and c is the point before a.
    a = low
    fa = function(pairs, low)
    b = high
    fb = function(pairs, high)
    c = a
    fc = fa
    t = np.full(a.shape, 0.5)
    active = np.arange(out.size)
    for _ in range(_MAX_ROOT_STEPS):
        x = a + t * (b - a)
        fx = function(pairs[active], x)
        has_sign_of_a = np.signbit(fx) == np.signbit(fa)
        c = np.where(has_sign_of_a, a, b)
        fc = np.where(has_sign_of_a, fa, fb)
        b = np.where(has_sign_of_a, b, a)
        fb = np.where(has_sign_of_a, fb, fa)
        a = x
        fa = fx
        is_a_closer = np.abs(fa) < np.abs(fb)
        out[active] = np.where(is_a_closer, a, b)
        tolerance = 4e-16 * np.abs(out[active]) / np.abs(b - a)
        is_open = (tolerance < 0.5) & (np.where(is_a_closer, fa, fb) != 0)
        if not is_open.any():
            break
        active = active[is_open]
        tolerance = tolerance[is_open]
        a, b, c = a[is_open], b[is_open], c[is_open]
        fa, fb, fc = fa[is_open], fb[is_open], fc[is_open]
        t = _next_fraction((a, b, c), (fa, fb, fc), tolerance)
    return out


def _next_fraction(
    points: tuple[FloatArray, FloatArray, FloatArray],
    values: tuple[FloatArray, FloatArray, FloatArray],
    tolerance: FloatArray,
) -> FloatArray:
    """Return the next point as a fraction of the distance from a to b."""
    a, b, c = points
    fa, fb, fc = values
    with np.errstate(divide="ignore", invalid="ignore"):
        xi = (a - b) / (c - b)
        phi = (fa - fb) / (fc - fb)
        first_term = fa / (fb - fa) * fc / (fb - fc)
        second_term = (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        interpolated = first_term + second_term
        is_safe = (phi * phi < xi) & ((1 - phi) ** 2 < 1 - xi)
    return np.clip(np.where(is_safe, interpolated, 0.5), tolerance, 1 - tolerance)
