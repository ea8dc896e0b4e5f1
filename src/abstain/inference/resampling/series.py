"""The series of wide trapezoids: its tables, and how soon what it leaves out is small enough.

A success drawn k times when m are accepted and the risk is about `slope` adds to total x AURC, on
top of unit trapezoids, slope (k^3 - k) / (6 m^2) (1 + (3 k^2 - 2) / (10 m^2) + ...). Only the first
term is summed, cell by cell. What is left out of a cell depends on how the middles of its samples
are treated.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from abstain._foundation.arrays import read_only
from abstain._foundation.lazy_imports import special
from abstain.typing import Array, FloatArray

#: What the terms left out may add up to, a fifth of what is promised; where they are as often
#: positive as negative the figure is nominal: against the exact form 5e-13 was the most seen in
#: 12,000 to 32,500 resamples each of n = 1000 to 30,000 with 5 to 30 % failures.
_LEFT_OUT, _LEFT_OUT_AT_RANDOM = 2e-13, 4e-13

#: How much larger the errors of clusters may be that lie together in the order.
_TOGETHER = 4.0


@dataclass(frozen=True)
class Rest:
    """Moments and maximum of the counts of a block."""

    #: Means of k^3 and k^5.
    third: float
    fifth: float
    #: Root mean square of (k^3 - k) / 6.
    excess: float
    #: The largest count.
    most: int
    #: The largest resample.
    total: int

    @classmethod
    def of(cls, counts: Array, total: int, *, clustered: bool) -> "Rest":
        """Take the moments over a few resamples."""
        k = counts[:, :4].astype(np.float64)
        square = k * k
        cube = square * k
        excess = float(np.sqrt(np.mean((cube - k) ** 2))) / 6.0
        if clustered:
            # Neighbors of one cluster are drawn together, so that their errors add up.
            excess *= _TOGETHER
        fifth = float(np.mean(cube * square))
        return cls(float(cube.mean()), fifth, excess, int(counts.max()), total)

    def with_middles(self, slope: float) -> float:
        """Return how many must be accepted if the middles of four are expanded around their own.

        From m on, the next terms add up to slope / (3 total m^3) times the mean over the samples
        of k^5 / 20, for the series, and of about k^3, for the expansion.
        """
        each = self.fifth / 20.0 + self.third
        return self._at_least(float(np.cbrt(slope * each / (3.0 * _LEFT_OUT * self.total))))

    def with_own_middle(self, slope: float) -> float:
        """Return how many must be accepted if every success has its own middle."""
        each = self.fifth / 20.0
        return self._at_least(float(np.cbrt(slope * each / (3.0 * _LEFT_OUT * self.total))))

    def with_one_middle(self, slope: float) -> float:
        """Return how many must be accepted if two successes share the middle of both.

        The error of a cell of L samples is as often positive as negative, since its samples might
        have come in any order: about 3 slope / m^3 times the root of L^3 / 12 and the root mean
        square of the excess. From m on these add up, as squares, to 0.39 L slope excess / (total
        m^2.5); that may be a few times smaller than what is allowed.
        """
        spread = 2.0 * 0.39 * slope * self.excess
        return self._at_least(float(spread / (_LEFT_OUT_AT_RANDOM * self.total)) ** 0.4)

    def _at_least(self, m: float) -> float:
        return max(16.0 * self.most, m)


class CountSeries(NamedTuple):
    """What depends on a number of samples c only, for c from 0 on."""

    #: H_c - 1/(2c), the harmonic numbers as trapezoids: its differences are the area of the
    #: trapezoids under 1/x with vertices at whole numbers.
    trapezoid: FloatArray
    #: H_0 + ... + H_{c-1}.
    harmonic: FloatArray


class WantedAreas(NamedTuple):
    """Which areas to compute besides the AUGRC."""

    #: The trapezoid AURC.
    aurc: bool
    #: The plug-in AURC.
    plugin: bool


@lru_cache(maxsize=2)
def tables(most: int) -> CountSeries:
    """Tabulate up to `most` samples."""
    c = np.arange(most + 1.0)
    harmonic = special.digamma(c + 1.0) + np.euler_gamma
    harmonic[0] = 0.0
    trapezoid = harmonic - 0.5 / np.maximum(c, 1.0)
    trapezoid[0] = 0.0
    return CountSeries(read_only(trapezoid), read_only(c * harmonic - c))
