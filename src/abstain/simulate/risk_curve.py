"""Compute the risk of a population as a function of coverage, and areas under this curve.

Let m(c) be the mean loss of the samples at the threshold with coverage c. The generalized risk is
the integral of m from 0 to c. AUGRC is the integral of (1 - c) m(c), and AURC is the integral of
-ln(c) m(c).

Integrals are transformed to the real line, where the trapezoidal rule converges quickly. If the
estimated error exceeds `TOLERANCE`, an InputError is raised.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain.errors import InputError
from abstain.typing import FloatArray

#: Maximum absolute error of areas without a closed form. Most errors are about 1e-13.
TOLERANCE = 1e-10

#: Lower limit of coverages, because 0 has no logarithm.
SMALLEST = 1e-300

#: Relative difference between successive sums at which the refinement stops.
_RELATIVE_TOLERANCE = 1e-13

#: Bound of the transformed coverage. The remaining share expit(-40) = 4e-18 is negligible.
_MAX_ABSCISSA = 40.0

#: Exponents of the steps 1/2, 1/4, ..., 1/1024.
_HALVINGS = range(1, 11)


def integrate_line(f: Callable[[FloatArray], FloatArray], low: float, high: float) -> float:
    """Integrate a smooth function by the trapezoidal rule. The function must be 0 at the ends."""
    total = 0.0
    change = np.inf
    for halving in _HALVINGS:
        step = 0.5**halving
        points = np.arange(low, high + step / 2, step)
        previous_total = total
        previous_change = change
        total = float(step * f(points).sum())
        change = abs(total - previous_total)
        is_converged = halving > 2 and change <= _RELATIVE_TOLERANCE * abs(total)
        # If a refinement no longer reduces the change, only rounding errors remain.
        is_rounding = halving > 4 and change <= TOLERANCE and change > previous_change / 2
        if is_converged or is_rounding:
            return total
    if not change <= TOLERANCE:
        raise InputError(
            f"the mean loss of this population could not be integrated to {TOLERANCE:g}: the last "
            f"refinement changed it by {change:.1e}. Use less extreme parameters; for "
            "`rank_scores`, pass the ranks at which the function jumps or bends as `breaks`."
        )
    return total


def integrate_coverage(
    loss_at: Callable[[FloatArray], FloatArray],
    weight: Callable[[FloatArray, FloatArray], FloatArray],
    low: float,
    high: float,
) -> float:
    """Integrate mean loss x weight from coverage `low` to `high`.

    `loss_at` is a function of the coverage c. `weight` is a function of c and high - c. The
    function substitutes c = low + (high - low) expit(x).
    """
    width = high - low

    def integrand(x: FloatArray) -> FloatArray:
        share = special.expit(x)
        complement = special.expit(-x)
        coverage = np.maximum(low + width * share, SMALLEST)
        weighted_loss = loss_at(coverage) * weight(coverage, width * complement)
        return np.asarray(weighted_loss * width * share * complement)

    return integrate_line(integrand, -_MAX_ABSCISSA, _MAX_ABSCISSA)


#: Function of an array of coverages in (0, 1].
OfCoverage = Callable[[FloatArray], FloatArray]

#: Definitions of the AURC for tied confidences.
TIES = ("averaged", "definition", "trapezoid")

#: Coverage below which closed forms of the generalized risk are too imprecise for a division.
_NEAR_ZERO = 1e-4


@dataclass(frozen=True)
class _CoverageInterval:
    """The coverages from `low` to `high`. `tie` contains the bounds of their tie group, if any."""

    low: float
    high: float
    tie: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """The risk of a population as a function of coverage.

    Attributes
    ----------
    loss_at : callable
        Function from coverages in (0, 1] to the mean loss of the samples at the threshold.
    loss_above : callable, optional
        Function from coverages to the generalized risk, if it has a closed form.
    breaks : tuple of float
        Coverages at which the mean loss or its derivative is not continuous.
    ties : tuple of (float, float)
        Coverage before and after each tie group, in ascending order.
    """

    loss_at: OfCoverage
    loss_above: OfCoverage | None = None
    breaks: tuple[float, ...] = ()
    ties: tuple[tuple[float, float], ...] = ()

    def margin(self, coverage: FloatArray) -> FloatArray:
        """Return the mean loss of the samples at the threshold of each coverage."""
        return np.asarray(self.loss_at(np.maximum(coverage, SMALLEST)))

    def generalized(self, coverage: FloatArray) -> FloatArray:
        """Return the generalized risk at each coverage."""
        if self.loss_above is not None:
            return np.asarray(self.loss_above(np.maximum(coverage, SMALLEST)))
        values = [self._integrated_loss(float(c)) for c in np.ravel(coverage)]
        return np.reshape(values, np.shape(coverage))

    def selective(self, coverage: FloatArray) -> FloatArray:
        """Return the selective risk at each coverage, or its limit at coverage 0."""
        coverages = np.ravel(coverage).astype(float)
        risk = np.empty(coverages.size)
        is_small = coverages < _NEAR_ZERO
        risk[~is_small] = self.generalized(coverages[~is_small]) / coverages[~is_small]
        for i in np.flatnonzero(is_small):
            c = float(coverages[i])
            if c > SMALLEST:
                risk[i] = self._integrated_loss(c) / c
            else:
                risk[i] = self.margin(np.array(0.0))
        return np.reshape(risk, np.shape(coverage))

    def generalized_area(self, low: float, high: float) -> float:
        """Integrate the generalized risk from coverage `low` to `high`."""
        total = 0.0
        for interval in self._intervals(low, high):
            width = interval.high - interval.low
            start = self._generalized_at(interval.low)
            if interval.tie is not None:
                end = self._generalized_at(interval.high)
                total += width * (start + end) / 2
            else:
                added_area = integrate_coverage(
                    self.loss_at, _distance_to_end, interval.low, interval.high
                )
                total += width * start + added_area
        return total

    def selective_area(self, low: float, high: float, ties: str) -> float:
        """Integrate the selective risk from coverage `low` to `high`.

        `ties` is one of the definitions in `TIES`.
        """
        total = 0.0
        for interval in self._intervals(low, high):
            if interval.tie is None:
                total += self._untied_area(interval.low, interval.high)
            elif ties == "averaged":
                total += self._averaged_tie_area(interval)
            else:
                total += self._complete_tie_area(interval, is_constant=ties == "definition")
        return total

    def _untied_area(self, low: float, high: float) -> float:
        """Integrate the selective risk over an interval without ties."""
        area_of_earlier_loss = 0.0
        if low > 0:
            area_of_earlier_loss = float(self._generalized_at(low) * np.log(high / low))
        return area_of_earlier_loss + integrate_coverage(self.loss_at, _log_ratio, low, high)

    def _averaged_tie_area(self, interval: _CoverageInterval) -> float:
        """Integrate the selective risk if tied samples are accepted in random order."""
        low = interval.low
        high = interval.high
        start = self._generalized_at(low)
        end = self._generalized_at(high)
        if low == 0.0:
            return end
        # The generalized risk is a linear function of the coverage.
        slope = (end - start) / (high - low)
        return float(slope * (high - low) + (start - slope * low) * np.log(high / low))

    def _complete_tie_area(self, interval: _CoverageInterval, *, is_constant: bool) -> float:
        """Integrate the selective risk if tied samples are accepted together.

        If `is_constant` is True, the value at the upper end of the tie group is used. Otherwise,
        the values at both ends of the tie group are interpolated linearly.
        """
        before, after = interval.tie or (interval.low, interval.high)
        end = self._generalized_at(after) / after
        start = end
        if not is_constant and before > 0.0:
            start = self._generalized_at(before) / before
        middle = (interval.low + interval.high) / 2
        relative_position = (middle - before) / (after - before)
        return (interval.high - interval.low) * (start + (end - start) * relative_position)

    def _generalized_at(self, coverage: float) -> float:
        return float(self.generalized(np.array(coverage))) if coverage > 0 else 0.0

    def _integrated_loss(self, coverage: float) -> float:
        """Integrate the mean loss from 0 to a coverage."""
        total = 0.0
        for low, high in pairwise(self.edges_between(0.0, coverage)):
            total += integrate_coverage(self.loss_at, constant_weight, low, high)
        return total

    def edges_between(self, low: float, high: float) -> list[float]:
        """Return `low`, `high`, and the breaks and bounds of tie groups in between, sorted."""
        edges = {low, high, *self.breaks}
        for tie in self.ties:
            edges.update(tie)
        return sorted(edge for edge in edges if low <= edge <= high)

    def _intervals(self, low: float, high: float) -> Iterator[_CoverageInterval]:
        """Divide the interval from `low` to `high` at the breaks and the bounds of tie groups."""
        tie_starts = [tie[0] for tie in self.ties]
        for start, end in pairwise(self.edges_between(low, high)):
            tie = None
            tie_index = bisect_left(tie_starts, end) - 1
            if tie_index >= 0 and end <= self.ties[tie_index][1]:
                tie = self.ties[tie_index]
            yield _CoverageInterval(start, end, tie)


def constant_weight(coverage: FloatArray, left: FloatArray) -> FloatArray:  # noqa: ARG001
    """Return 1 for each coverage."""
    return np.ones_like(coverage)


def _distance_to_end(coverage: FloatArray, left: FloatArray) -> FloatArray:  # noqa: ARG001
    """Return the distance of each coverage from the upper bound."""
    return left


def _log_ratio(coverage: FloatArray, left: FloatArray) -> FloatArray:
    """Return ln(upper bound / coverage), accurately near the upper bound."""
    upper_bound = coverage + left
    is_near_bound = left < coverage
    relative_distance = np.where(is_near_bound, left / upper_bound, 0.0)
    return np.where(is_near_bound, -np.log1p(-relative_distance), np.log(upper_bound / coverage))
