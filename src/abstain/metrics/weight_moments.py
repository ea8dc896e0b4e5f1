"""Bias, variance and mean squared error of the rank weight of a sample at a given rank."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain._foundation.special import MIN_ASYMPTOTIC, harmonic, harmonic_tail
from abstain.typing import FloatArray, IntArray

#: By Bernstein's inequality, the neglected tail probability is below exp(-60).
_EXPONENT = 60.0
#: Maximum number of values that are summed at once.
_MAX_VALUES = 1 << 17


@dataclass(frozen=True, eq=False)
class BinomialRanks:
    """Binomial distribution of the number of samples above a sample of known population rank."""

    #: Population rank u of the sample, in [0, 1), shape (k,).
    rank: FloatArray
    #: Number of other samples, shape (k,).
    n_others: FloatArray
    #: Number of samples n of the estimator, which is `n_others` or `n_others` + 1, shape (k,).
    n: FloatArray

    @property
    def probability_above(self) -> FloatArray:
        """Probability that another sample has a higher confidence."""
        return 1.0 - self.rank

    @property
    def mean_above(self) -> FloatArray:
        """Expected number of samples with a higher confidence."""
        return self.n_others * self.probability_above

    @property
    def target(self) -> FloatArray:
        """Population weight -ln(1 - u), which is also accurate for small ranks."""
        return -np.log1p(-self.rank)

    def select(self, rows: IntArray) -> "BinomialRanks":
        """Return the selected cases as columns of shape (k, 1)."""
        return BinomialRanks(*(values[rows, None] for values in (self.rank, self.n_others, self.n)))


@dataclass(frozen=True, eq=False)
class Window:
    """Counts of more confident samples with non-negligible probability, one row per case."""

    #: The cases, arrays of shape (k, 1).
    ranks: BinomialRanks
    #: Number of more confident samples, from 0 to `n_others`, shape (k, w).
    n_above: FloatArray
    #: Number of more confident samples minus its mean, shape (k, w).
    deviation: FloatArray
    #: Probabilities, shape (k, w). Each row sums to 1.
    probability: FloatArray

    def expectation(self, values: FloatArray) -> FloatArray:
        """Return the expected value of `values`, shape (k,)."""
        return np.asarray(np.sum(self.probability * values, axis=1))


def _windows(trials: BinomialRanks) -> Iterator[tuple[IntArray, Window]]:
    """Yield the rows and the window of blocks of cases.

    The cases of a block have windows of similar width, and all blocks need about equal memory.
    """
    count = trials.n_others
    probability = trials.probability_above
    center = np.minimum(np.floor((count + 1.0) * probability), count)
    variance = count * probability * trials.rank
    # The distance x solves exp(-x^2 / (2 (variance + x/3))) = exp(-_EXPONENT). The additional 1 is
    # for the rounded center.
    a = _EXPONENT / 3.0
    max_distance = np.ceil(a + np.sqrt(a**2 + 2.0 * _EXPONENT * variance)) + 1.0
    n_below_mode = np.minimum(max_distance, center)
    n_above_mode = np.minimum(max_distance, count - center)
    order = np.argsort(n_below_mode + n_above_mode, kind="stable")
    max_below = np.maximum.accumulate(n_below_mode[order])
    max_above = np.maximum.accumulate(n_above_mode[order])
    width = 1.0 + max_below + max_above
    start = 0
    while start < order.size:
        block_sizes = width[start:] * np.arange(1, order.size - start + 1)
        stop = start + max(int(np.count_nonzero(block_sizes <= _MAX_VALUES)), 1)
        rows = order[start:stop]
        mode = int(max_below[stop - 1])
        above = center[rows, None] + np.arange(-mode, max_above[stop - 1] + 1.0)
        yield rows, _window(trials.select(rows), above, mode)
        start = stop


def _window(trials: BinomialRanks, above: FloatArray, mode: int) -> Window:
    """Return the binomial probabilities, computed from ratios of neighboring probabilities.

    The products of ratios start at the mode, which is in the column `mode`.
    """
    u, v, count = trials.rank, trials.probability_above, trials.n_others
    in_range = (above >= 0) & (above <= count)
    log_p = np.zeros_like(above)
    # Values outside the range have ratio 0 and therefore probability 0.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratios_up = np.where(in_range, (count - above + 1.0) * v / (above * u), 0.0)
        ratios_down = np.where(in_range, (above + 1.0) * u / ((count - above) * v), 0.0)
        log_steps_up = np.log(ratios_up[:, mode + 1 :])
        log_steps_down = np.log(ratios_down[:, :mode])
    log_p[:, mode + 1 :] = np.cumsum(log_steps_up, axis=1)
    log_p[:, :mode] = np.cumsum(log_steps_down[:, ::-1], axis=1)[:, ::-1]
    p = np.exp(log_p)
    p /= p.sum(axis=1, keepdims=True)
    above = np.clip(above, 0.0, count)
    # The deviation is computed from the smaller of the two counts, so that small ranks keep their
    # digits.
    deviation_from_below = count * u - (count - above)
    deviation = np.where(u < 0.5, deviation_from_below, above - trials.mean_above)
    return Window(trials, above, deviation, p)


class Moments(NamedTuple):
    """Moments of the error of a weight, arrays of shape (k,)."""

    bias: FloatArray
    variance: FloatArray
    mse: FloatArray


def error_moments(trials: BinomialRanks, estimator: str, draws: int) -> Moments:
    """Return the moments of the error of an estimator; only "monte-carlo" uses `draws`."""
    moments = MOMENTS[estimator](trials)
    if estimator != "monte-carlo":
        return moments
    draw_variance = np.empty(trials.rank.size)
    for rows, window in _windows(trials):
        variance_of_draw = sum_of_inverse_squares(window.n_above, window.ranks.n)
        draw_variance[rows] = window.expectation(variance_of_draw) / draws
    return Moments(moments.bias, moments.variance + draw_variance, moments.mse + draw_variance)


def _moments_of_linear_weight(
    trials: BinomialRanks, *, factor: float, shift: float, of_augrc: bool = False
) -> Moments:
    """Return the moments of the weight factor x (r + shift)/n in closed form."""
    u, n, m = trials.rank, trials.n, trials.n_others
    # The mean of r - n u is 1 - u if the sample itself is one of the n samples, and 0 otherwise.
    mean_offset = (n - m) * trials.probability_above
    bias = factor * (mean_offset + shift) / n
    if not of_augrc:
        bias = bias - (_log_minus_linear(u) + (1.0 - factor) * u)
    variance = factor**2 * m * u * trials.probability_above / n**2
    return Moments(bias, variance, bias**2 + variance)


def _log_minus_linear(u: FloatArray) -> FloatArray:
    """Return -ln(1 - u) - u, computed from its series for small u to avoid cancellation."""
    clipped = np.minimum(u, 0.05)
    series = np.zeros_like(clipped)
    for j in range(13, 1, -1):
        series = clipped * series + 1.0 / j
    return np.where(u < 0.05, clipped * clipped * series, -np.log1p(-u) - u)


def _moments_by_summation(trials: BinomialRanks, error: Callable[[Window], FloatArray]) -> Moments:
    """Return the moments of a weight that is nonlinear in the rank r by summation over r.

    Before averaging, the function removes from the error a term that is linear in the deviation and
    has mean 0. The remaining terms have the size of the bias, so the sum does not lose digits.
    """
    bias, variance, mse = np.empty((3, trials.rank.size))
    for rows, window in _windows(trials):
        e = error(window)
        slope = 1.0 / (window.ranks.mean_above + 1.0)
        bias[rows] = window.expectation(e + slope * window.deviation)
        variance[rows] = window.expectation(np.square(e - bias[rows, None]))
        mse[rows] = window.expectation(np.square(e))
    return Moments(bias, variance, mse)


def _log_error(window: Window) -> FloatArray:
    """Return ln((n + 1)/(n_above + 1)) + ln(1 - u) as the logarithm of a ratio near 1."""
    ranks = window.ranks
    mean_position = (ranks.n + 1.0) * ranks.probability_above
    offset = (ranks.n + 1.0 - ranks.n_others) * ranks.rank - (ranks.n - ranks.n_others)
    return np.asarray(-np.log1p((window.deviation + offset) / mean_position))


def _plugin_error(window: Window) -> FloatArray:
    """Return H_n - H_{n_above} + ln(1 - u), computed from asymptotic series for large counts."""
    ranks = window.ranks
    small_above = np.minimum(window.n_above, MIN_ASYMPTOTIC)
    exact: FloatArray = harmonic(ranks.n) - ranks.target - harmonic(small_above)
    if not np.any(window.n_above >= MIN_ASYMPTOTIC):
        return exact
    large_above = np.maximum(window.n_above, MIN_ASYMPTOTIC)
    large_n = np.maximum(ranks.n, MIN_ASYMPTOTIC)
    is_large = window.n_above >= MIN_ASYMPTOTIC
    v = ranks.probability_above
    ratio = (window.deviation - (ranks.n - ranks.n_others) * v) / (ranks.n * v)
    logarithm = np.log1p(np.where(is_large, ratio, 0.0))
    from_series: FloatArray = harmonic_tail(large_n) - harmonic_tail(large_above) - logarithm
    return np.where(is_large, from_series, exact)


def sum_of_inverse_squares(above: FloatArray, n: FloatArray) -> FloatArray:
    """Return the variance of -ln(1 - beta), the sum of 1/k^2 over k = above + 1, ..., n."""
    small_above = np.minimum(above, MIN_ASYMPTOTIC)
    exact = special.polygamma(1, small_above + 1.0) - special.polygamma(1, n + 1.0)
    x, y = np.maximum(above, MIN_ASYMPTOTIC) + 0.5, np.maximum(n, MIN_ASYMPTOTIC) + 0.5
    from_series = (y - x) / (x * y) + _trigamma_tail(x) - _trigamma_tail(y)
    return np.where(above >= MIN_ASYMPTOTIC, from_series, exact)


def _trigamma_tail(x: FloatArray) -> FloatArray:
    """Return trigamma(x + 1/2) - 1/x for x >= 32."""
    v = 1.0 / (x * x)
    return -v / x * (1 / 12 - v * (7 / 240 - v * 31 / 1344))


def _moments_of_plugin(trials: BinomialRanks) -> Moments:
    # H_n minus the mean of H_{n_above} is a power series from which the first terms are omitted.
    tail = log_series_tail(trials.rank, trials.n_others)
    exact_bias = (trials.n - trials.n_others) / trials.n - tail
    return _moments_by_summation(trials, _plugin_error)._replace(bias=exact_bias)


def log_series_tail(u: FloatArray, m: FloatArray) -> FloatArray:
    """Return the sum of u^j/j over j > m, for 0 <= u < 1 and integer m >= 0."""
    v, b = 1.0 - u, m + 1.0
    is_near_one = (b * v < 2.0) & (u > 0.5)
    # If the tail is most of -ln(1 - u), the first m terms are subtracted as an alternating series.
    clipped = np.where(is_near_one, v, 0.0)
    term, alternating_sum = np.ones_like(clipped), np.zeros_like(clipped)
    for i in range(1, 33):
        term = -term * (m - i + 1.0) * clipped / i
        alternating_sum -= term / i
    tail_near_one = -np.log1p(-np.where(is_near_one, u, 0.0)) - harmonic(m) + alternating_sum
    # Otherwise, the tail is u^b/(b v) 2F1(1, 1; b + 1; -u/v), computed as a continued fraction of
    # positive terms.
    x, fraction = np.where(is_near_one, 0.0, u / v), np.ones_like(v)
    for j in range(60, 0, -1):
        fraction = 1.0 + j * (b + j - 1.0) / ((b + 2 * j - 1.0) * (b + 2 * j)) * x / fraction
        i = j - 1
        fraction = 1.0 + (i + 1.0) * (b + i) / ((b + 2 * i) * (b + 2 * i + 1.0)) * x / fraction
    return np.where(is_near_one, tail_near_one, u**b / (b * v * fraction))


#: Function of each estimator. The target is u for "augrc" and -ln(1 - u) for other estimators.
MOMENTS: dict[str, Callable[[BinomialRanks], Moments]] = {
    "plugin": _moments_of_plugin,
    "log": partial(_moments_by_summation, error=_log_error),
    "sele": partial(_moments_of_linear_weight, factor=1.0, shift=0.0),
    "2sele": partial(_moments_of_linear_weight, factor=2.0, shift=0.0),
    "augrc": partial(_moments_of_linear_weight, factor=1.0, shift=-0.5, of_augrc=True),
    "monte-carlo": _moments_of_plugin,
}


def mse_given_sample_rank(r: FloatArray, n: FloatArray, estimator: str, draws: int) -> FloatArray:
    """Return the mean squared error of the weight at rank r among n samples.

    The population rank u has the distribution Beta(r, n + 1 - r), and the mean of -ln(1 - u) is H_n
    - H_{n-r}.
    """
    above = n - r
    mean = harmonic(n) - harmonic(above)
    variance = sum_of_inverse_squares(above, n)
    if estimator == "monte-carlo":
        return variance * (1.0 + 1.0 / draws)
    if estimator == "augrc":
        return (0.5 - r / (n + 1.0)) ** 2 / n**2 + r * (above + 1.0) / ((n + 1.0) ** 2 * (n + 2.0))
    weights = {
        "plugin": mean,
        "log": np.log1p(r / (above + 1.0)),
        "sele": r / n,
        "2sele": 2.0 * r / n,
    }
    return np.asarray(variance + (weights[estimator] - mean) ** 2)
