"""Bias, variance and mean squared error of the weight of a sample of known population rank."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain._foundation.special import SERIES_FROM, harmonic, harmonic_tail
from abstain.typing import BoolArray, FloatArray, IntArray

#: Bernstein's inequality keeps what is left out below exp(-60) of the whole.
_EXPONENT = 60.0
#: Values summed at a time.
_MAX_VALUES = 1 << 17


@dataclass(frozen=True, eq=False)
class BinomialRanks:
    """Samples that may each lie above one of known rank, one case for each entry."""

    #: Population rank u of the sample, in [0, 1), shape (k,).
    rank: FloatArray
    #: How many other samples there are, shape (k,).
    n_others: FloatArray
    #: The n of the estimator: `count`, or one more, shape (k,).
    n: FloatArray

    @property
    def probability_above(self) -> FloatArray:
        """Chance of each to lie above."""
        return 1.0 - self.rank

    @property
    def mean_above(self) -> FloatArray:
        """Mean number above."""
        return self.n_others * self.probability_above

    @property
    def target(self) -> FloatArray:
        """-ln(1 - u), exact for small ranks too."""
        return -np.log1p(-self.rank)

    def select(self, rows: IntArray) -> "BinomialRanks":
        """Return some of the cases, each a row for sums over its values."""
        return BinomialRanks(*(x[rows, None] for x in (self.rank, self.n_others, self.n)))


@dataclass(frozen=True, eq=False)
class Window:
    """The numbers above that have a chance, one row for each case."""

    #: The cases, arrays of shape (k, 1).
    ranks: BinomialRanks
    #: Numbers of samples above, from 0 to the count, shape (k, w).
    n_above: FloatArray
    #: The same less their mean, shape (k, w).
    deviation: FloatArray
    #: Each row sums to 1, shape (k, w).
    probability: FloatArray

    def expectation(self, values: FloatArray) -> FloatArray:
        """Return the expectation of a number that is known for each value, shape (k,)."""
        out: FloatArray = np.sum(self.probability * values, axis=1)
        return out


def expected_moments(
    trials: BinomialRanks, moments: Callable[[Window], tuple[FloatArray, ...]], size: int
) -> FloatArray:
    """Return moments of each case, shape (size, k); `moments` gets a window of some of them."""
    out = np.empty((size, trials.rank.size))
    for rows, window in _windows(trials):
        out[:, rows] = moments(window)
    return out


def _windows(trials: BinomialRanks) -> Iterator[tuple[IntArray, Window]]:
    count, chance = trials.n_others, trials.probability_above
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
        yield rows, _window(trials.select(rows), above, mode)


def _blocks(order: IntArray, left: FloatArray, right: FloatArray) -> Iterator[IntArray]:
    """Cut cases of increasing width into blocks of about equal memory."""
    width = 1.0 + np.maximum.accumulate(left[order]) + np.maximum.accumulate(right[order])
    start = 0
    while start < order.size:
        rows = int(
            np.count_nonzero(width[start:] * np.arange(1, order.size - start + 1) <= _MAX_VALUES)
        )
        stop = start + max(rows, 1)
        yield order[start:stop]
        start = stop


def _window(trials: BinomialRanks, above: FloatArray, mode: int) -> Window:
    inside = (above >= 0) & (above <= trials.n_others)
    probability = _probability(trials, above, inside, mode)
    above = np.clip(above, 0.0, trials.n_others)
    # From the side where the mean is small, so that small ranks keep their digits.
    low = trials.rank < 0.5
    below = trials.n_others * trials.rank - (trials.n_others - above)
    return Window(trials, above, np.where(low, below, above - trials.mean_above), probability)


def _probability(
    trials: BinomialRanks, above: FloatArray, inside: BoolArray, mode: int
) -> FloatArray:
    """Return binomial probabilities from the ratios of neighbors, outward from the mode."""
    u, v, count = trials.rank, trials.probability_above, trials.n_others
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


class Moments(NamedTuple):
    """Of the error of a weight, arrays of shape (k,)."""

    bias: FloatArray
    variance: FloatArray
    mse: FloatArray


def error_moments(trials: BinomialRanks, estimator: str, draws: int) -> Moments:
    """Return the moments of an estimator's error; `draws` are those of "monte-carlo"."""
    found = MOMENTS[estimator](trials)
    if estimator != "monte-carlo":
        return found
    (spread,) = expected_moments(trials, _variance_of_one_draw, 1) / draws
    return Moments(found.bias, found.variance + spread, found.mse + spread)


def _moments_of_linear_weight(
    trials: BinomialRanks, *, factor: float, shift: float, of_augrc: bool = False
) -> Moments:
    """Moments of the weight factor x (r + shift)/n, in closed form."""
    u, n, m = trials.rank, trials.n, trials.n_others
    # r - n u has this mean: the sample itself, where it counts, less its own share.
    extra = (n - m) * trials.probability_above
    bias = factor * (extra + shift) / n
    if not of_augrc:
        bias = bias - (_log_minus_linear(u) + (1.0 - factor) * u)
    variance = factor**2 * m * u * trials.probability_above / n**2
    return Moments(bias, variance, bias**2 + variance)


def _log_minus_linear(u: FloatArray) -> FloatArray:
    """-ln(1 - u) - u, from its series where the difference would cancel."""
    small = np.minimum(u, 0.05)
    series = np.zeros_like(small)
    for j in range(13, 1, -1):
        series = small * series + 1.0 / j
    out: FloatArray = np.where(u < 0.05, small * small * series, -np.log1p(-u) - u)
    return out


def _moments_by_summation(trials: BinomialRanks, error: Callable[[Window], FloatArray]) -> Moments:
    """Moments of a weight that is no straight line in r, summed over its values."""
    return Moments(*expected_moments(trials, partial(_moments_in_window, error), 3))


def _moments_in_window(
    error: Callable[[Window], FloatArray], window: Window
) -> tuple[FloatArray, ...]:
    """Return bias, variance and mean squared error.

    The bias is that of what is left of the error without its slope at the mean, since the excess
    has mean 0: terms of one sign and of the size of the bias, not of the square root of it.
    """
    e = error(window)
    slope = 1.0 / (window.ranks.mean_above + 1.0)
    bias = window.expectation(e + slope * window.deviation)
    variance = window.expectation(np.square(e - bias[:, None]))
    return bias, variance, window.expectation(np.square(e))


def _log_error(window: Window) -> FloatArray:
    """ln((n + 1)/(above + 1)) + ln(1 - u), as the logarithm of a ratio near 1."""
    t = window.ranks
    whole = (t.n + 1.0) * t.probability_above
    rest = (t.n + 1.0 - t.n_others) * t.rank - (t.n - t.n_others)
    out: FloatArray = -np.log1p((window.deviation + rest) / whole)
    return out


def _plugin_error(window: Window) -> FloatArray:
    """H_n - H_above + ln(1 - u), from the series of both where they are long."""
    t = window.ranks
    few = np.minimum(window.n_above, SERIES_FROM)
    near: FloatArray = harmonic(t.n) - t.target - harmonic(few)
    if not np.any(window.n_above >= SERIES_FROM):
        return near
    above = np.maximum(window.n_above, SERIES_FROM)
    n = np.maximum(t.n, SERIES_FROM)
    many = window.n_above >= SERIES_FROM
    ratio = (window.deviation - (t.n - t.n_others) * t.probability_above) / (
        t.n * t.probability_above
    )
    logarithm = np.log1p(np.where(many, ratio, 0.0))
    far: FloatArray = harmonic_tail(n) - harmonic_tail(above) - logarithm
    return np.where(many, far, near)


def _variance_of_one_draw(window: Window) -> tuple[FloatArray]:
    """Mean variance of one draw of -ln(1 - beta)."""
    return (window.expectation(sum_of_inverse_squares(window.n_above, window.ranks.n)),)


def sum_of_inverse_squares(above: FloatArray, n: FloatArray) -> FloatArray:
    """Sum of 1/k^2 for k from above + 1 to n: the variance of -ln(1 - beta) at a rank."""
    near = special.polygamma(1, np.minimum(above, SERIES_FROM) + 1.0) - special.polygamma(
        1, n + 1.0
    )
    x, y = np.maximum(above, SERIES_FROM) + 0.5, np.maximum(n, SERIES_FROM) + 0.5
    far = (y - x) / (x * y) + _trigamma_tail(x) - _trigamma_tail(y)
    return np.where(above >= SERIES_FROM, far, near)


def _trigamma_tail(x: FloatArray) -> FloatArray:
    """Trigamma(x + 1/2) - 1/x for x >= 32."""
    v = 1.0 / (x * x)
    return -v / x * (1 / 12 - v * (7 / 240 - v * 31 / 1344))


def _moments_of_plugin(trials: BinomialRanks) -> Moments:
    found = _moments_by_summation(trials, _plugin_error)
    # H_n less the mean of H_above is a power series without its first terms.
    exact = (trials.n - trials.n_others) / trials.n - log_series_tail(trials.rank, trials.n_others)
    return found._replace(bias=exact)


def log_series_tail(u: FloatArray, m: FloatArray) -> FloatArray:
    """Sum of u^j/j over j > m, for 0 <= u < 1 and whole m >= 0."""
    v, b = 1.0 - u, m + 1.0
    near = (b * v < 2.0) & (u > 0.5)
    # Where the tail is most of -ln(1 - u): what is missing is an alternating series.
    small = np.where(near, v, 0.0)
    term, missing = np.ones_like(small), np.zeros_like(small)
    for i in range(1, 33):
        term = -term * (m - i + 1.0) * small / i
        missing -= term / i
    whole = -np.log1p(-np.where(near, u, 0.0)) - harmonic(m) + missing
    # Elsewhere u^b/(b v) 2F1(1, 1; b + 1; -u/v) as a continued fraction of positive terms.
    x, fraction = np.where(near, 0.0, u / v), np.ones_like(v)
    for j in range(60, 0, -1):
        fraction = 1.0 + j * (b + j - 1.0) / ((b + 2 * j - 1.0) * (b + 2 * j)) * x / fraction
        i = j - 1
        fraction = 1.0 + (i + 1.0) * (b + i) / ((b + 2 * i) * (b + 2 * i + 1.0)) * x / fraction
    return np.where(near, whole, u**b / (b * v * fraction))


#: By estimator. The target is u for "augrc", -ln(1 - u) for all others.
MOMENTS: dict[str, Callable[[BinomialRanks], Moments]] = {
    "plugin": _moments_of_plugin,
    "log": partial(_moments_by_summation, error=_log_error),
    "sele": partial(_moments_of_linear_weight, factor=1.0, shift=0.0),
    "2sele": partial(_moments_of_linear_weight, factor=2.0, shift=0.0),
    "augrc": partial(_moments_of_linear_weight, factor=1.0, shift=-0.5, of_augrc=True),
    "monte-carlo": _moments_of_plugin,
}


def mse_given_sample_rank(r: FloatArray, n: FloatArray, estimator: str, draws: int) -> FloatArray:
    """Return the squared error of the weight of rank r among n, whose population rank is random.

    The population rank has the distribution Beta(r, n + 1 - r), under which -ln(1 - u) has mean
    H_n - H_{n-r}.
    """
    above = n - r
    mean, spread = harmonic(n) - harmonic(above), sum_of_inverse_squares(above, n)
    if estimator == "monte-carlo":
        return spread * (1.0 + 1.0 / draws)
    if estimator == "augrc":
        return (0.5 - r / (n + 1.0)) ** 2 / n**2 + r * (above + 1.0) / ((n + 1.0) ** 2 * (n + 2.0))
    weights = {
        "plugin": mean,
        "log": np.log1p(r / (above + 1.0)),
        "sele": r / n,
        "2sele": 2.0 * r / n,
    }
    found: FloatArray = spread + (weights[estimator] - mean) ** 2
    return found
