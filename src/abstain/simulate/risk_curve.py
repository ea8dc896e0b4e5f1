"""The risk of a population as a function of coverage, and areas under this function.

A sample of population rank u is accepted if the coverage is at least c = 1 - u. The mean loss m at
each rank determines all values. The generalized risk at coverage c is the integral of m over the
ranks above 1 - c. AUGRC is the integral of u m(u), and AURC is the integral of -ln(1-u) m(u). The
functions depend on the coverage instead of the rank, because precision matters near c = 0.

Integrals have an error of at most `TOLERANCE`, or an error is raised. The integrand is transformed
to a line on which it vanishes at both ends. On this line, the trapezoidal rule converges faster
than any power of the step. Each step evaluates an array of points, which is faster than an adaptive
rule.
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

#: Integration limit on the transformed line, beyond which the share expit(-40) = 4e-18 is
#: negligible.
_MAX_ABSCISSA = 40.0

#: Exponents of the steps 1/2, 1/4, ..., 1/1024.
_HALVINGS = range(1, 11)


def integrate_line(f: Callable[[FloatArray], FloatArray], low: float, high: float) -> float:
    """Integrate a smooth function that vanishes at both ends of the line."""
    total, change = 0.0, np.inf
    for halving in _HALVINGS:
        step = 0.5**halving
        previous, total = total, float(step * f(np.arange(low, high + step / 2, step)).sum())
        previous_change, change = change, abs(total - previous)
        # If a refinement no longer reduces the change, only rounding errors remain.
        is_rounding = halving > 4 and change <= TOLERANCE and change > previous_change / 2
        if is_rounding or (halving > 2 and change <= _RELATIVE_TOLERANCE * abs(total)):
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
    """Integrate mean loss x weight over the coverages from low to high.

    The substitution c = low + (high - low) expit(x) moves the bounds to infinity. There, the
    integrand vanishes for the singularities that occur, which are -ln(1-u) at u = 1 and a power of
    u at u = 0. The mean loss must be smooth between the bounds. `weight` receives c and high - c in
    full precision.
    """

    def terms(x: FloatArray) -> FloatArray:
        share, complement = special.expit(x), special.expit(-x)
        c = np.maximum(low + (high - low) * share, SMALLEST)
        return np.asarray(
            loss_at(c) * weight(c, (high - low) * complement) * (high - low) * share * complement
        )

    return integrate_line(terms, -_MAX_ABSCISSA, _MAX_ABSCISSA)


#: A function from an array of coverages in (0, 1] to values.
OfCoverage = Callable[[FloatArray], FloatArray]

#: Definitions of the AURC for tied confidences.
TIES = ("averaged", "definition", "trapezoid")

#: Coverage below which closed forms of the generalized risk are too imprecise for a division.
_NEAR_ZERO = 1e-4


@dataclass(frozen=True)
class _CoverageInterval:
    """The coverages from `low` to `high`, inside the tie group `tie` or outside all tie groups."""

    low: float
    high: float
    tie: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """The risk of a population as a function of coverage.

    Attributes
    ----------
    loss_at : callable
        Function from a coverage c in (0, 1] to the mean loss of samples with population rank 1 - c.
        The function is constant over a tie group.
    loss_above : callable, optional
        Closed form of the integral of `loss_at` from 0 to c, which is the generalized risk.
    breaks : tuple of float
        Coverages at which the mean loss or its derivative jumps.
    ties : tuple of (float, float)
        For each tie group in ascending order, the coverages without and with the group.
    """

    loss_at: OfCoverage
    loss_above: OfCoverage | None = None
    breaks: tuple[float, ...] = ()
    ties: tuple[tuple[float, float], ...] = ()

    def margin(self, coverage: FloatArray) -> FloatArray:
        """Return the mean loss of the last accepted samples at each coverage, or its limit at 0."""
        return np.asarray(self.loss_at(np.maximum(coverage, SMALLEST)))

    def generalized(self, coverage: FloatArray) -> FloatArray:
        """Return the accepted loss at each coverage, where a tie group may be accepted in part."""
        if self.loss_above is not None:
            return np.asarray(self.loss_above(np.maximum(coverage, SMALLEST)))
        values = [self._integrated_loss(float(c)) for c in np.ravel(coverage)]
        return np.reshape(values, np.shape(coverage))

    def selective(self, coverage: FloatArray) -> FloatArray:
        """Return the mean loss of the accepted samples at each coverage, or its limit at 0."""
        coverages = np.ravel(coverage).astype(float)
        out = np.empty(coverages.size)
        is_small = coverages < _NEAR_ZERO
        out[~is_small] = self.generalized(coverages[~is_small]) / coverages[~is_small]
        for i in np.flatnonzero(is_small):
            c = float(coverages[i])
            limit = float(self.margin(np.array(0.0)))
            out[i] = self._integrated_loss(c) / c if c > SMALLEST else limit
        return np.reshape(out, np.shape(coverage))

    def generalized_area(self, low: float, high: float) -> float:
        """Return the area under the generalized risk between two coverages."""
        total = 0.0
        for piece in self._intervals(low, high):
            p, q = piece.low, piece.high
            start = self._generalized_at(p)
            if piece.tie is not None:
                total += (q - p) * (start + self._generalized_at(q)) / 2
            else:
                added_area = integrate_coverage(self.loss_at, _distance_to_end, p, q)
                total += (q - p) * start + added_area
        return total

    def selective_area(self, low: float, high: float, ties: str) -> float:
        """Return the area under the selective risk between two coverages. See `TIES` for `ties`."""
        total = 0.0
        for piece in self._intervals(low, high):
            if piece.tie is None:
                total += self._untied_area(piece.low, piece.high)
            elif ties == "averaged":
                total += self._averaged_tie_area(piece)
            else:
                total += self._complete_tie_area(piece, is_constant=ties == "definition")
        return total

    def _untied_area(self, low: float, high: float) -> float:
        before = self._generalized_at(low) * np.log(high / low) if low > 0 else 0.0
        return float(before) + integrate_coverage(self.loss_at, _log_ratio, low, high)

    def _averaged_tie_area(self, piece: _CoverageInterval) -> float:
        """Return the AURC within a tie group whose samples are accepted in random order.

        Within the group, the generalized risk is then a linear function of the coverage.
        """
        p, q = piece.low, piece.high
        start, end = self._generalized_at(p), self._generalized_at(q)
        if p == 0.0:
            return end
        slope = (end - start) / (q - p)
        return float(slope * (q - p) + (start - slope * p) * np.log(q / p))

    def _complete_tie_area(self, piece: _CoverageInterval, *, is_constant: bool) -> float:
        """Return the area in a tie group that is accepted as a whole.

        The selective risk is linear or, if `is_constant` is True, the risk after the group.
        """
        before, after = piece.tie or (piece.low, piece.high)
        end = self._generalized_at(after) / after
        start = end if is_constant or before == 0.0 else self._generalized_at(before) / before
        relative_position = ((piece.low + piece.high) / 2 - before) / (after - before)
        return (piece.high - piece.low) * (start + (end - start) * relative_position)

    def _generalized_at(self, coverage: float) -> float:
        return float(self.generalized(np.array(coverage))) if coverage > 0 else 0.0

    def _integrated_loss(self, coverage: float) -> float:
        """Integrate the mean loss from 0 to a coverage."""
        return sum(
            integrate_coverage(self.loss_at, constant_weight, piece.low, piece.high)
            for piece in self._intervals(0.0, coverage)
        )

    def _intervals(self, low: float, high: float) -> Iterator[_CoverageInterval]:
        """Divide the coverages from low to high at the breaks and at the bounds of tie groups."""
        edges = {low, high, *self.breaks, *(edge for tie in self.ties for edge in tie)}
        edges_in_range = sorted(edge for edge in edges if low <= edge <= high)
        starts = [tie[0] for tie in self.ties]
        for p, q in pairwise(edges_in_range):
            tie_index = bisect_left(starts, q) - 1
            is_in_tie = tie_index >= 0 and q <= self.ties[tie_index][1]
            yield _CoverageInterval(p, q, self.ties[tie_index] if is_in_tie else None)


def constant_weight(coverage: FloatArray, left: FloatArray) -> FloatArray:  # noqa: ARG001
    """Return the weight 1 for all coverages."""
    return np.ones_like(coverage)


def _distance_to_end(coverage: FloatArray, left: FloatArray) -> FloatArray:  # noqa: ARG001
    """Return the distance from a coverage to the upper bound of the range."""
    return left


def _log_ratio(coverage: FloatArray, left: FloatArray) -> FloatArray:
    """Return ln(upper bound/coverage) without cancellation at either end."""
    end = coverage + left
    is_near_end = left < coverage
    return np.where(
        is_near_end, -np.log1p(-np.where(is_near_end, left / end, 0.0)), np.log(end / coverage)
    )
