"""The risk of a population at every coverage, and the one place that turns it into areas.

A sample of population rank u is accepted from coverage c = 1 - u on. Everything follows from the
mean loss m at each rank: the generalized risk at coverage c is the integral of m over the ranks
above 1 - c, AUGRC that of u m(u), AURC that of -ln(1-u) m(u). Coverages are used in place of ranks,
since it is next to c = 0 that digits matter.

Integrals are known to a stated tolerance, or refused: the truth of a population is never a rough
number. Sums with an ever smaller step over a line on which the integrand vanishes at both ends
converge faster than any power of the step. One call takes a whole array of points: an adaptive rule
would invert a distribution function hundreds of times, one by one.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain.errors import InputError
from abstain.typing import FloatArray

#: Every area that has no closed form is known to this, absolutely; most to 1e-13.
TOLERANCE = 1e-10

#: Coverages below this are taken for it: a limit is asked for, and 0 has no logarithm.
MIN_COVERAGE = 1e-300

#: Two sums that agree this far, relatively, are the integral: a third would change nothing.
_RELATIVE_TOLERANCE = 1e-13

#: Beyond expit(-40) = 4e-18 of a range there is nothing to add.
_MAX_ABSCISSA = 40.0

#: Steps 1/2, 1/4, ..., 1/1024.
_HALVINGS = range(1, 11)


def integrate_line(f: Callable[[FloatArray], FloatArray], low: float, high: float) -> float:
    """Integrate a smooth function that vanishes at both ends of the line."""
    total, change = 0.0, np.inf
    for halving in _HALVINGS:
        step = 0.5**halving
        previous_total, total = total, float(step * f(np.arange(low, high + step / 2, step)).sum())
        previous_change, change = change, abs(total - previous_total)
        # What a refinement no longer improves is the rounding of the function.
        is_rounding_error = halving > 4 and change <= TOLERANCE and change > previous_change / 2
        if is_rounding_error or (halving > 2 and change <= _RELATIVE_TOLERANCE * abs(total)):
            return total
    if not change <= TOLERANCE:
        raise InputError(
            f"the mean loss of this population could not be integrated to {TOLERANCE:g}: the last "
            f"refinement moved it by {change:.1e}. Take parameters that are less extreme; for "
            "`rank_scores`, name the ranks at which it jumps or bends in `breaks`."
        )
    return total


def integrate_coverage(
    loss_at: Callable[[FloatArray], FloatArray],
    weight: Callable[[FloatArray, FloatArray], FloatArray],
    low: float,
    high: float,
) -> float:
    """Integrate mean loss x weight over the coverages from low to high.

    With c = low + (high - low) expit(x) the ends lie at infinity, where the integrand vanishes
    whatever its singularity: -ln(1-u) at u = 1, a power of u at u = 0. The mean loss is smooth
    between the ends; the weight gets c and high - c with all its digits.
    """

    def terms(x: FloatArray) -> FloatArray:
        share, rest = special.expit(x), special.expit(-x)
        c = np.maximum(low + (high - low) * share, MIN_COVERAGE)
        return np.asarray(loss_at(c) * weight(c, (high - low) * rest) * (high - low) * share * rest)

    return integrate_line(terms, -_MAX_ABSCISSA, _MAX_ABSCISSA)


#: A function of coverages in (0, 1], any shape.
CoverageFunction = Callable[[FloatArray], FloatArray]

#: What an AURC may mean when confidences are tied.
TIES = ("averaged", "definition", "trapezoid")

#: Below this coverage a difference of closed forms has too few digits to be divided by it.
_NEAR_ZERO = 1e-4


@dataclass(frozen=True)
class _Piece:
    """Coverages from low to high, within the tie from tie_low to tie_high or outside of all."""

    low: float
    high: float
    tie: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """The risk of a population as a function of coverage.

    Attributes
    ----------
    loss_at : callable
        Mean loss of the samples at the margin of a coverage c in (0, 1], that is, of population
        rank 1 - c; constant over a tie.
    loss_above : callable, optional
        Its integral from 0 to c, the generalized risk, in closed form.
    breaks : tuple of float
        Coverages at which the mean loss jumps or bends.
    ties : tuple of (float, float)
        Coverages just before and just after each group of equal confidence, ascending.
    """

    loss_at: CoverageFunction
    loss_above: CoverageFunction | None = None
    breaks: tuple[float, ...] = ()
    ties: tuple[tuple[float, float], ...] = ()

    def margin_loss(self, coverage: FloatArray) -> FloatArray:
        """Mean loss at the margin of each coverage; at 0, its limit."""
        return np.asarray(self.loss_at(np.maximum(coverage, MIN_COVERAGE)))

    def generalized_risk(self, coverage: FloatArray) -> FloatArray:
        """Loss accepted at each coverage; a tie that is cut is accepted at random in part."""
        if self.loss_above is not None:
            return np.asarray(self.loss_above(np.maximum(coverage, MIN_COVERAGE)))
        values = [self._integrated_loss(float(c)) for c in np.ravel(coverage)]
        return np.reshape(values, np.shape(coverage))

    def selective_risk(self, coverage: FloatArray) -> FloatArray:
        """Mean loss of what is accepted at each coverage; at 0, its limit."""
        flat = np.ravel(coverage).astype(float)
        out = np.empty(flat.size)
        small = flat < _NEAR_ZERO
        out[~small] = self.generalized_risk(flat[~small]) / flat[~small]
        for i in np.flatnonzero(small):
            c = float(flat[i])
            limit = float(self.margin_loss(np.array(0.0)))
            out[i] = self._integrated_loss(c) / c if c > MIN_COVERAGE else limit
        return np.reshape(out, np.shape(coverage))

    def generalized_area(self, low: float, high: float) -> float:
        """Area under the generalized risk between two coverages."""
        total = 0.0
        for piece in self._pieces(low, high):
            p, q = piece.low, piece.high
            start = self._generalized_risk_at(p)
            if piece.tie is not None:
                total += (q - p) * (start + self._generalized_risk_at(q)) / 2
            else:
                gained_area = integrate_coverage(self.loss_at, _remaining_coverage, p, q)
                total += (q - p) * start + gained_area
        return total

    def selective_area(self, low: float, high: float, ties: str) -> float:
        """Area under the selective risk between two coverages, ties taken as `TIES` says."""
        total = 0.0
        for piece in self._pieces(low, high):
            if piece.tie is None:
                total += self._area_without_ties(piece.low, piece.high)
            elif ties == "averaged":
                total += self._area_of_averaged_tie(piece)
            else:
                total += self._area_of_whole_tie(piece, flat=ties == "definition")
        return total

    def _area_without_ties(self, low: float, high: float) -> float:
        before = self._generalized_risk_at(low) * np.log(high / low) if low > 0 else 0.0
        return float(before) + integrate_coverage(self.loss_at, _log_ratio_to_end, low, high)

    def _area_of_averaged_tie(self, piece: _Piece) -> float:
        """Accept the tie at random in part: the generalized risk is a line through it."""
        p, q = piece.low, piece.high
        start, end = self._generalized_risk_at(p), self._generalized_risk_at(q)
        if p == 0.0:
            return end
        slope = (end - start) / (q - p)
        return float(slope * (q - p) + (start - slope * p) * np.log(q / p))

    def _area_of_whole_tie(self, piece: _Piece, *, flat: bool) -> float:
        """Accept the tie as a whole: a line between its risks, or the one after it."""
        before, after = piece.tie or (piece.low, piece.high)
        end = self._generalized_risk_at(after) / after
        start = end if flat or before == 0.0 else self._generalized_risk_at(before) / before
        middle = ((piece.low + piece.high) / 2 - before) / (after - before)
        return (piece.high - piece.low) * (start + (end - start) * middle)

    def _generalized_risk_at(self, coverage: float) -> float:
        return float(self.generalized_risk(np.array(coverage))) if coverage > 0 else 0.0

    def _integrated_loss(self, coverage: float) -> float:
        """Integrate the mean loss from 0 to one coverage."""
        return sum(
            integrate_coverage(self.loss_at, uniform_weight, piece.low, piece.high)
            for piece in self._pieces(0.0, coverage)
        )

    def _pieces(self, low: float, high: float) -> Iterator[_Piece]:
        """Cut the coverages from low to high at the breaks and around the ties."""
        edges = {low, high, *self.breaks, *(edge for tie in self.ties for edge in tie)}
        inner_edges = sorted(edge for edge in edges if low <= edge <= high)
        starts = [tie[0] for tie in self.ties]
        for p, q in pairwise(inner_edges):
            tie_index = bisect_left(starts, q) - 1
            is_in_tie = tie_index >= 0 and q <= self.ties[tie_index][1]
            yield _Piece(p, q, self.ties[tie_index] if is_in_tie else None)


def uniform_weight(coverage: FloatArray, remaining: FloatArray) -> FloatArray:  # noqa: ARG001
    """Weigh all coverages alike."""
    return np.ones_like(coverage)


def _remaining_coverage(coverage: FloatArray, remaining: FloatArray) -> FloatArray:  # noqa: ARG001
    """Distance from a coverage to the end of the range: over that much a loss stays accepted."""
    return remaining


def _log_ratio_to_end(coverage: FloatArray, remaining: FloatArray) -> FloatArray:
    """Ln(end/coverage), without cancellation at either end."""
    end = coverage + remaining
    is_near_end = remaining < coverage
    return np.where(
        is_near_end, -np.log1p(-np.where(is_near_end, remaining / end, 0.0)), np.log(end / coverage)
    )
