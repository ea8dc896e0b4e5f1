"""Tables of harmonic numbers for the areas of resamples, and the error of truncated series.

A success that is drawn k times, after m accepted samples with a risk of about `max_risk`, adds to
total x AURC the area of k unit trapezoids and

    max_risk (k^3 - k) / (6 m^2) (1 + (3 k^2 - 2) / (10 m^2) + ...)

The kernels sum the first term only, cell by cell, with one center m for each cell. The
truncation error of a cell depends on how many of its samples share a center.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from abstain._foundation.arrays import read_only
from abstain._foundation.lazy_imports import special
from abstain.typing import Array, FloatArray

#: Largest sum of the truncated terms: a fifth of the guaranteed accuracy of 1e-12.
_MAX_TRUNCATION_ERROR = 2e-13

#: The same for terms of random sign, which mostly cancel. The limit is nominal: the largest error
#: against the exact form was 5e-13 in 12,000 to 32,500 resamples each of n = 1,000 to 30,000
#: samples with 5% to 30% failures.
_MAX_RANDOM_TRUNCATION_ERROR = 4e-13

#: Factor on the random error when the samples of a cluster are neighbours in the order.
_CLUSTER_FACTOR = 4.0


@dataclass(frozen=True)
class CountMoments:
    """Moments and maximum of the counts k of a block of resamples."""

    #: Means of k^3 and k^5.
    mean_cube: float
    mean_fifth_power: float
    #: Root mean square of (k^3 - k) / 6.
    rms_excess: float
    #: Largest count.
    max_count: int
    #: Size of the largest resample.
    max_total: int

    @classmethod
    def from_counts(cls, counts: Array, max_total: int, *, clustered: bool) -> "CountMoments":
        """Compute the moments from the first four resamples."""
        k = counts[:, :4].astype(np.float64)
        square = k * k
        cube = square * k
        rms_excess = float(np.sqrt(np.mean((cube - k) ** 2))) / 6.0
        if clustered:
            # Samples of a cluster are drawn together. If they are neighbours, their errors add up.
            rms_excess *= _CLUSTER_FACTOR
        fifth_power = float(np.mean(cube * square))
        return cls(float(cube.mean()), fifth_power, rms_excess, int(counts.max()), max_total)

    def min_accepted_four_around_center(self, max_risk: float) -> float:
        """Return how many samples must be accepted if four centers are expanded around their mean.

        After m accepted samples the truncated terms add up to max_risk / (3 total m^3) times the
        mean over the samples of k^5 / 20 (series) plus about k^3 (expansion of the centers).
        """
        return self._min_accepted(self.mean_fifth_power / 20.0 + self.mean_cube, max_risk)

    def min_accepted_single_centers(self, max_risk: float) -> float:
        """Return how many samples must be accepted if every success has its own center."""
        return self._min_accepted(self.mean_fifth_power / 20.0, max_risk)

    def min_accepted_shared_center(self, max_risk: float) -> float:
        """Return how many samples must be accepted if two successes share one center.

        The samples of a cell may have any order, so the error of a cell has a random sign. For a
        cell of L samples its size is about 3 max_risk / m^3 times sqrt(L^3 / 12) times the root
        mean square of the excess. The root of the sum of the squares of these errors from m on
        is 0.39 L max_risk rms_excess / (total m^2.5).
        """
        error_scale = 2.0 * 0.39 * max_risk * self.rms_excess
        relative_error = error_scale / (_MAX_RANDOM_TRUNCATION_ERROR * self.max_total)
        return max(16.0 * self.max_count, float(relative_error**0.4))

    def _min_accepted(self, mean_power: float, max_risk: float) -> float:
        cube = max_risk * mean_power / (3.0 * _MAX_TRUNCATION_ERROR * self.max_total)
        return max(16.0 * self.max_count, float(np.cbrt(cube)))


class HarmonicTables(NamedTuple):
    """Functions of a number of samples c, tabulated for c = 0, 1, 2, ..."""

    #: H_c - 1/(2c). A difference of two entries is the area of the trapezoids under 1/x that have
    #: vertices at whole numbers.
    trapezoid: FloatArray
    #: H_0 + ... + H_{c-1}, the sum of the harmonic numbers.
    harmonic_sum: FloatArray


class RequestedAreas(NamedTuple):
    """Areas to compute in addition to the AUGRC."""

    #: The trapezoid AURC.
    aurc: bool
    #: The plug-in AURC.
    plugin: bool


@lru_cache(maxsize=2)
def harmonic_tables(max_total: int) -> HarmonicTables:
    """Tabulate the harmonic functions for 0 to `max_total` samples."""
    c = np.arange(max_total + 1.0)
    harmonic = special.digamma(c + 1.0) + np.euler_gamma
    harmonic[0] = 0.0
    trapezoid = harmonic - 0.5 / np.maximum(c, 1.0)
    trapezoid[0] = 0.0
    return HarmonicTables(read_only(trapezoid), read_only(c * harmonic - c))
