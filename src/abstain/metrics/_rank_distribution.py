"""Where a sample of known population rank lands among n: sums over the binomial distribution.

The number of samples above it is binomial. A sum over all its values would take n terms for each
rank, and its coefficients overflow; here it takes the values that have a chance at all, some
eleven standard deviations to both sides, and their chances come from the ratios of neighbors, which
neither overflow nor lose digits. Many ranks are summed side by side, in blocks of limited memory.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from abstain.typing import BoolArray, FloatArray, IntArray

#: Bernstein's inequality keeps what is left out below exp(-60) of the whole.
_EXPONENT = 60.0
#: Values summed at a time.
_AT_ONCE = 1 << 17


@dataclass(frozen=True, eq=False)
class Trials:
    """Samples that may each lie above one of known rank, one case for each entry.

    Attributes
    ----------
    rank : ndarray of shape (k,)
        Population rank u of the sample, in [0, 1).
    count : ndarray of shape (k,)
        How many other samples there are.
    n : ndarray of shape (k,)
        The n of the estimator: `count`, or one more.
    """

    rank: FloatArray
    count: FloatArray
    n: FloatArray

    @property
    def chance(self) -> FloatArray:
        """Chance of each to lie above."""
        return 1.0 - self.rank

    @property
    def mean(self) -> FloatArray:
        """Mean number above."""
        return self.count * self.chance

    @property
    def target(self) -> FloatArray:
        """-ln(1 - u), exact for small ranks too."""
        return -np.log1p(-self.rank)

    def of(self, rows: IntArray) -> "Trials":
        """Return some of the cases, each a row for sums over its values."""
        return Trials(*(x[rows, None] for x in (self.rank, self.count, self.n)))


@dataclass(frozen=True, eq=False)
class Window:
    """The numbers above that have a chance, one row for each case.

    Attributes
    ----------
    trials : Trials
        The cases, arrays of shape (k, 1).
    above : ndarray of shape (k, w)
        Numbers of samples above, from 0 to the count.
    excess : ndarray of shape (k, w)
        The same less their mean.
    probability : ndarray of shape (k, w)
        Each row sums to 1.
    """

    trials: Trials
    above: FloatArray
    excess: FloatArray
    probability: FloatArray

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the expectation of a number that is known for each value, shape (k,)."""
        out: FloatArray = np.sum(self.probability * values, axis=1)
        return out


def expected(
    trials: Trials, moments: Callable[[Window], tuple[FloatArray, ...]], size: int
) -> FloatArray:
    """Return moments of each case, shape (size, k); `moments` gets a window of some of them."""
    out = np.empty((size, trials.rank.size))
    for rows, window in _windows(trials):
        out[:, rows] = moments(window)
    return out


def _windows(trials: Trials) -> Iterator[tuple[IntArray, Window]]:
    count, chance = trials.count, trials.chance
    center = np.minimum(np.floor((count + 1.0) * chance), count)
    variance = count * chance * trials.rank
    # x with exp(-x^2 / (2 (variance + x/3))) = exp(-_EXPONENT), and a step for the rounded center.
    third = _EXPONENT / 3.0
    reach = np.ceil(third + np.sqrt(third**2 + 2.0 * _EXPONENT * variance)) + 1.0
    left, right = np.minimum(reach, center), np.minimum(reach, count - center)
    order = np.argsort(left + right, kind="stable")
    for rows in _blocks(order, left, right):
        mode = int(left[rows].max())
        above = center[rows, None] + np.arange(-mode, right[rows].max() + 1.0)
        yield rows, _window(trials.of(rows), above, mode)


def _blocks(order: IntArray, left: FloatArray, right: FloatArray) -> Iterator[IntArray]:
    """Cut cases of increasing width into blocks of about equal memory."""
    width = 1.0 + np.maximum.accumulate(left[order]) + np.maximum.accumulate(right[order])
    start = 0
    while start < order.size:
        rows = int(
            np.count_nonzero(width[start:] * np.arange(1, order.size - start + 1) <= _AT_ONCE)
        )
        stop = start + max(rows, 1)
        yield order[start:stop]
        start = stop


def _window(trials: Trials, above: FloatArray, mode: int) -> Window:
    inside = (above >= 0) & (above <= trials.count)
    probability = _probability(trials, above, inside, mode)
    above = np.clip(above, 0.0, trials.count)
    # From the side where the mean is small, so that small ranks keep their digits.
    low = trials.rank < 0.5
    below = trials.count * trials.rank - (trials.count - above)
    return Window(trials, above, np.where(low, below, above - trials.mean), probability)


def _probability(trials: Trials, above: FloatArray, inside: BoolArray, mode: int) -> FloatArray:
    """Return binomial probabilities from the ratios of neighbors, outward from the mode."""
    u, v, count = trials.rank, trials.chance, trials.count
    log_p = np.zeros_like(above)
    # Ratios of what cannot happen are 0, and so are its probabilities.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        rising = np.where(inside, (count - above + 1.0) * v / (above * u), 0.0)
        falling = np.where(inside, (above + 1.0) * u / ((count - above) * v), 0.0)
        up, down = np.log(rising[:, mode + 1 :]), np.log(falling[:, :mode])
    log_p[:, mode + 1 :] = np.cumsum(up, axis=1)
    log_p[:, :mode] = np.cumsum(down[:, ::-1], axis=1)[:, ::-1]
    p: FloatArray = np.exp(log_p)
    p /= p.sum(axis=1, keepdims=True)
    return p
