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
    """Binomial distributions of the number of samples that rank above a given sample.

    Each entry of the arrays is one case, which is a sample with a known population rank.
    """

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
        """Weight -ln(1 - u) of the sample in the population."""
        return -np.log1p(-self.rank)

    def as_columns(self, index: IntArray) -> "BinomialRanks":
        """Return the cases with these indices as arrays of shape (k, 1)."""
        return BinomialRanks(
            rank=self.rank[index, None], n_others=self.n_others[index, None], n=self.n[index, None]
        )


@dataclass(frozen=True, eq=False)
class Window:
    """Counts of more confident samples with non-negligible probability, one row per case."""

    #: Index of each case among all cases, shape (k,).
    index: IntArray
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


def _windows(ranks: BinomialRanks) -> Iterator[Window]:
    """Yield the probable counts of all cases in blocks that fit into memory."""
    mode = np.minimum(np.floor((ranks.n_others + 1.0) * ranks.probability_above), ranks.n_others)
    max_distance = _max_distance_from_mode(ranks)
    n_below_mode = np.minimum(max_distance, mode)
    n_above_mode = np.minimum(max_distance, ranks.n_others - mode)
    order = np.argsort(n_below_mode + n_above_mode, kind="stable")
    # A block that ends at position i of this order needs the largest widths up to i.
    max_below = np.maximum.accumulate(n_below_mode[order])
    max_above = np.maximum.accumulate(n_above_mode[order])
    width = 1.0 + max_below + max_above
    start = 0
    while start < order.size:
        n_values = width[start:] * np.arange(1, order.size - start + 1)
        n_cases = max(int(np.count_nonzero(n_values <= _MAX_VALUES)), 1)
        stop = start + n_cases
        index = order[start:stop]
        mode_column = int(max_below[stop - 1])
        distance = np.arange(-mode_column, max_above[stop - 1] + 1.0)
        yield _window(ranks, index, mode[index, None] + distance, mode_column)
        start = stop


def _max_distance_from_mode(ranks: BinomialRanks) -> FloatArray:
    """Return the distance from the mode beyond which probabilities are negligible."""
    variance = ranks.n_others * ranks.probability_above * ranks.rank
    # The distance x solves exp(-x^2 / (2 (variance + x/3))) = exp(-_EXPONENT). The additional 1 is
    # for the rounded mode.
    a = _EXPONENT / 3.0
    return np.ceil(a + np.sqrt(a**2 + 2.0 * _EXPONENT * variance)) + 1.0


def _window(
    all_ranks: BinomialRanks, index: IntArray, n_above: FloatArray, mode_column: int
) -> Window:
    """Compute the binomial probability of each count `n_above`.

    The probabilities are products of ratios of neighboring probabilities, starting at the mode.
    """
    ranks = all_ranks.as_columns(index)
    u, v, count = ranks.rank, ranks.probability_above, ranks.n_others
    in_range = (n_above >= 0) & (n_above <= count)
    log_p = np.zeros_like(n_above)
    # Counts outside the range have ratio 0 and therefore probability 0.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratios_up = np.where(in_range, (count - n_above + 1.0) * v / (n_above * u), 0.0)
        ratios_down = np.where(in_range, (n_above + 1.0) * u / ((count - n_above) * v), 0.0)
        log_steps_up = np.log(ratios_up[:, mode_column + 1 :])
        log_steps_down = np.log(ratios_down[:, :mode_column])
    log_p[:, mode_column + 1 :] = np.cumsum(log_steps_up, axis=1)
    log_p[:, :mode_column] = np.cumsum(log_steps_down[:, ::-1], axis=1)[:, ::-1]
    probability = np.exp(log_p)
    probability /= probability.sum(axis=1, keepdims=True)
    n_above = np.clip(n_above, 0.0, count)
    # The deviation is computed from the smaller of the two counts, so that small ranks keep their
    # digits.
    deviation_from_below = count * u - (count - n_above)
    deviation = np.where(u < 0.5, deviation_from_below, n_above - ranks.mean_above)
    return Window(index, ranks, n_above, deviation, probability)


class Moments(NamedTuple):
    """Bias, variance and mean squared error of a weight, arrays of shape (k,)."""

    bias: FloatArray
    variance: FloatArray
    mse: FloatArray


def error_moments(ranks: BinomialRanks, estimator: str, draws: int) -> Moments:
    """Compute the bias, variance and mean squared error of the weights of an estimator.

    `draws` is the number of draws of "monte-carlo". Other estimators ignore this argument.
    """
    moments = MOMENTS[estimator](ranks)
    if estimator != "monte-carlo":
        return moments
    draw_variance = np.empty(ranks.rank.size)
    for window in _windows(ranks):
        variance_of_draw = sum_of_inverse_squares(window.n_above, window.ranks.n)
        draw_variance[window.index] = window.expectation(variance_of_draw) / draws
    return Moments(moments.bias, moments.variance + draw_variance, moments.mse + draw_variance)


def _moments_of_linear_weight(
    ranks: BinomialRanks, *, factor: float, shift: float, of_augrc: bool = False
) -> Moments:
    """Return the moments of the weight factor x (r + shift)/n in closed form."""
    u, n, n_others = ranks.rank, ranks.n, ranks.n_others
    # The mean of r - n u is 1 - u if the sample itself is one of the n samples, and 0 otherwise.
    mean_offset = (n - n_others) * ranks.probability_above
    bias = factor * (mean_offset + shift) / n
    if not of_augrc:
        bias = bias - (_log_minus_linear(u) + (1.0 - factor) * u)
    variance = factor**2 * n_others * u * ranks.probability_above / n**2
    return Moments(bias, variance, bias**2 + variance)


def _log_minus_linear(u: FloatArray) -> FloatArray:
    """Return -ln(1 - u) - u, computed from a power series for small u to avoid cancellation."""
    small_u = np.minimum(u, 0.05)
    # Horner's method for the sum of u^(j - 2)/j over j = 2, ..., 13.
    series = np.zeros_like(small_u)
    for j in range(13, 1, -1):
        series = small_u * series + 1.0 / j
    return np.where(u < 0.05, small_u * small_u * series, -np.log1p(-u) - u)


def _moments_by_summation(
    ranks: BinomialRanks, compute_error: Callable[[Window], FloatArray]
) -> Moments:
    """Compute the moments of the error of a weight by summation over all probable ranks."""
    bias = np.empty(ranks.rank.size)
    variance = np.empty_like(bias)
    mse = np.empty_like(bias)
    for window in _windows(ranks):
        error = compute_error(window)
        # The added term has mean 0. It cancels the linear part of the error, so that the sum of the
        # remaining small terms does not lose digits.
        slope = 1.0 / (window.ranks.mean_above + 1.0)
        mean_error = window.expectation(error + slope * window.deviation)
        bias[window.index] = mean_error
        variance[window.index] = window.expectation(np.square(error - mean_error[:, None]))
        mse[window.index] = window.expectation(np.square(error))
    return Moments(bias, variance, mse)


def _log_error(window: Window) -> FloatArray:
    """Return the error ln((n + 1)/(n_above + 1)) + ln(1 - u) of the log weight."""
    ranks = window.ranks
    mean_position = (ranks.n + 1.0) * ranks.probability_above
    offset = (ranks.n + 1.0 - ranks.n_others) * ranks.rank - (ranks.n - ranks.n_others)
    return np.asarray(-np.log1p((window.deviation + offset) / mean_position))


def _plugin_error(window: Window) -> FloatArray:
    """Return the error H_n - H_{n_above} + ln(1 - u) of the plug-in weight."""
    ranks = window.ranks
    is_large = window.n_above >= MIN_ASYMPTOTIC
    small_above = np.minimum(window.n_above, MIN_ASYMPTOTIC)
    exact: FloatArray = harmonic(ranks.n) - ranks.target - harmonic(small_above)
    if not np.any(is_large):
        return exact
    # For large counts, the asymptotic series of both harmonic numbers are subtracted.
    large_above = np.maximum(window.n_above, MIN_ASYMPTOTIC)
    large_n = np.maximum(ranks.n, MIN_ASYMPTOTIC)
    v = ranks.probability_above
    ratio = (window.deviation - (ranks.n - ranks.n_others) * v) / (ranks.n * v)
    logarithm = np.log1p(np.where(is_large, ratio, 0.0))
    from_series: FloatArray = harmonic_tail(large_n) - harmonic_tail(large_above) - logarithm
    return np.where(is_large, from_series, exact)


def sum_of_inverse_squares(above: FloatArray, n: FloatArray) -> FloatArray:
    """Return the sum of 1/k^2 over k = above + 1, ..., n."""
    small_above = np.minimum(above, MIN_ASYMPTOTIC)
    exact = special.polygamma(1, small_above + 1.0) - special.polygamma(1, n + 1.0)
    x, y = np.maximum(above, MIN_ASYMPTOTIC) + 0.5, np.maximum(n, MIN_ASYMPTOTIC) + 0.5
    from_series = (y - x) / (x * y) + _trigamma_tail(x) - _trigamma_tail(y)
    return np.where(above >= MIN_ASYMPTOTIC, from_series, exact)


def _trigamma_tail(x: FloatArray) -> FloatArray:
    """Return trigamma(x + 1/2) - 1/x for x >= 32."""
    v = 1.0 / (x * x)
    return -v / x * (1 / 12 - v * (7 / 240 - v * 31 / 1344))


def _moments_of_plugin(ranks: BinomialRanks) -> Moments:
    tail = log_series_tail(ranks.rank, ranks.n_others)
    exact_bias = (ranks.n - ranks.n_others) / ranks.n - tail
    return _moments_by_summation(ranks, _plugin_error)._replace(bias=exact_bias)


def log_series_tail(u: FloatArray, m: FloatArray) -> FloatArray:
    """Return the sum of u^j/j over j > m, for 0 <= u < 1 and integer m >= 0."""
    v = 1.0 - u
    b = m + 1.0
    is_near_one = (b * v < 2.0) & (u > 0.5)
    near_one = _log_series_tail_near_one(np.where(is_near_one, u, 0.0), m)
    fraction = _continued_fraction(np.where(is_near_one, 0.0, u / v), b)
    return np.where(is_near_one, near_one, u**b / (b * v * fraction))


def _log_series_tail_near_one(u: FloatArray, m: FloatArray) -> FloatArray:
    """Return -ln(1 - u) minus the first m terms of the series, as powers of v = 1 - u."""
    v = np.where(u > 0, 1.0 - u, 0.0)
    term = np.ones_like(v)
    alternating_sum = np.zeros_like(v)
    for i in range(1, 33):
        term = -term * (m - i + 1.0) * v / i
        alternating_sum -= term / i
    return np.asarray(-np.log1p(-u) - harmonic(m) + alternating_sum)


def _continued_fraction(x: FloatArray, b: FloatArray) -> FloatArray:
    """Return 1/2F1(1, 1; b + 1; -x) as a continued fraction of positive terms."""
    fraction = np.ones_like(x)
    for j in range(60, 0, -1):
        fraction = 1.0 + j * (b + j - 1.0) / ((b + 2 * j - 1.0) * (b + 2 * j)) * x / fraction
        i = j - 1
        fraction = 1.0 + (i + 1.0) * (b + i) / ((b + 2 * i) * (b + 2 * i + 1.0)) * x / fraction
    return fraction


#: Function that computes the moments of each estimator. The target is u for "augrc" and -ln(1 - u)
#: for other estimators.
MOMENTS: dict[str, Callable[[BinomialRanks], Moments]] = {
    "plugin": _moments_of_plugin,
    "log": partial(_moments_by_summation, compute_error=_log_error),
    "sele": partial(_moments_of_linear_weight, factor=1.0, shift=0.0),
    "2sele": partial(_moments_of_linear_weight, factor=2.0, shift=0.0),
    "augrc": partial(_moments_of_linear_weight, factor=1.0, shift=-0.5, of_augrc=True),
    "monte-carlo": _moments_of_plugin,
}


def mse_given_sample_rank(r: FloatArray, n: FloatArray, estimator: str, draws: int) -> FloatArray:
    """Return the mean squared error of the weight at rank r among n samples."""
    above = n - r
    # The population rank u has the distribution Beta(r, n + 1 - r). These are the mean and the
    # variance of -ln(1 - u).
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
