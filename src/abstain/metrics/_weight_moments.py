"""Bias, variance and mean squared error of the weight of a sample of known population rank."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import polygamma

from abstain._foundation.special import SERIES_FROM, harmonic, harmonic_tail
from abstain.metrics._rank_distribution import Trials, Window, expected
from abstain.typing import FloatArray


class Moments(NamedTuple):
    """Of the error of a weight, arrays of shape (k,)."""

    bias: FloatArray
    variance: FloatArray
    mse: FloatArray


def moments_of(trials: Trials, estimator: str, draws: int) -> Moments:
    """Return the moments of an estimator's error; `draws` are those of "monte-carlo"."""
    found = MOMENTS[estimator](trials)
    if estimator != "monte-carlo":
        return found
    (spread,) = expected(trials, _spread_of_a_draw, 1) / draws
    return Moments(found.bias, found.variance + spread, found.mse + spread)


def _linear(trials: Trials, *, factor: float, shift: float, of_augrc: bool = False) -> Moments:
    """Moments of the weight factor x (r + shift)/n, in closed form."""
    u, n, m = trials.rank, trials.n, trials.count
    # r - n u has this mean: the sample itself, where it counts, less its own share.
    extra = (n - m) * trials.chance
    bias = factor * (extra + shift) / n
    if not of_augrc:
        bias = bias - (_above_linear(u) + (1.0 - factor) * u)
    variance = factor**2 * m * u * trials.chance / n**2
    return Moments(bias, variance, bias**2 + variance)


def _above_linear(u: FloatArray) -> FloatArray:
    """-ln(1 - u) - u, from its series where the difference would cancel."""
    small = np.minimum(u, 0.05)
    series = np.zeros_like(small)
    for j in range(13, 1, -1):
        series = small * series + 1.0 / j
    out: FloatArray = np.where(u < 0.05, small * small * series, -np.log1p(-u) - u)
    return out


def _curved(trials: Trials, error: Callable[[Window], FloatArray]) -> Moments:
    """Moments of a weight that is no straight line in r, summed over its values."""
    return Moments(*expected(trials, partial(_summed, error), 3))


def _summed(error: Callable[[Window], FloatArray], window: Window) -> tuple[FloatArray, ...]:
    """Return bias, variance and mean squared error.

    The bias is that of what is left of the error without its slope at the mean, since the excess
    has mean 0: terms of one sign and of the size of the bias, not of the square root of it.
    """
    e = error(window)
    slope = 1.0 / (window.trials.mean + 1.0)
    bias = window.mean(e + slope * window.excess)
    variance = window.mean(np.square(e - bias[:, None]))
    return bias, variance, window.mean(np.square(e))


def _log_error(window: Window) -> FloatArray:
    """ln((n + 1)/(above + 1)) + ln(1 - u), as the logarithm of a ratio near 1."""
    t = window.trials
    whole = (t.n + 1.0) * t.chance
    rest = (t.n + 1.0 - t.count) * t.rank - (t.n - t.count)
    out: FloatArray = -np.log1p((window.excess + rest) / whole)
    return out


def _plugin_error(window: Window) -> FloatArray:
    """H_n - H_above + ln(1 - u), from the series of both where they are long."""
    t = window.trials
    few = np.minimum(window.above, SERIES_FROM)
    near: FloatArray = harmonic(t.n) - t.target - harmonic(few)
    if not np.any(window.above >= SERIES_FROM):
        return near
    above = np.maximum(window.above, SERIES_FROM)
    n = np.maximum(t.n, SERIES_FROM)
    many = window.above >= SERIES_FROM
    ratio = (window.excess - (t.n - t.count) * t.chance) / (t.n * t.chance)
    logarithm = np.log1p(np.where(many, ratio, 0.0))
    far: FloatArray = harmonic_tail(n) - harmonic_tail(above) - logarithm
    return np.where(many, far, near)


def _spread_of_a_draw(window: Window) -> tuple[FloatArray]:
    """Mean variance of one draw of -ln(1 - beta): the sum of 1/k^2 for k from above + 1 to n."""
    n, above = window.trials.n, window.above
    near = polygamma(1, np.minimum(above, SERIES_FROM) + 1.0) - polygamma(1, n + 1.0)
    x, y = np.maximum(above, SERIES_FROM) + 0.5, np.maximum(n, SERIES_FROM) + 0.5
    far = (y - x) / (x * y) + _trigamma_tail(x) - _trigamma_tail(y)
    return (window.mean(np.where(above >= SERIES_FROM, far, near)),)


def _trigamma_tail(x: FloatArray) -> FloatArray:
    """Trigamma(x + 1/2) - 1/x for x >= 32."""
    v = 1.0 / (x * x)
    return -v / x * (1 / 12 - v * (7 / 240 - v * 31 / 1344))


def _plugin(trials: Trials) -> Moments:
    found = _curved(trials, _plugin_error)
    # H_n less the mean of H_above is a power series without its first terms.
    exact = (trials.n - trials.count) / trials.n - log_series_tail(trials.rank, trials.count)
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
MOMENTS: dict[str, Callable[[Trials], Moments]] = {
    "plugin": _plugin,
    "log": partial(_curved, error=_log_error),
    "sele": partial(_linear, factor=1.0, shift=0.0),
    "2sele": partial(_linear, factor=2.0, shift=0.0),
    "augrc": partial(_linear, factor=1.0, shift=-0.5, of_augrc=True),
    "monte-carlo": _plugin,
}
