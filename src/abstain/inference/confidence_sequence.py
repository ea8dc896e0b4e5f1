"""Confidence sequences: confidence intervals of a mean that hold at all times simultaneously."""

from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.errors import DomainError
from abstain.inference.intervals import Interval, check_level
from abstain.typing import AnyArray, FloatArray

#: Number of bisection steps between a bound and the mean, enough for the last bit.
_BISECTION_STEPS: Final = 64


def anytime_interval(
    total: AnyArray, n: AnyArray, *, level: float = 0.95, prior: tuple[float, float] = (0.5, 0.5)
) -> Interval:
    """Compute a confidence interval of a mean that holds at all times simultaneously.

    Answers: where may the true risk lie, if I look after every label and may stop at any time?

    Parameters
    ----------
    total : float
        Sum of the values, which lie in [0, 1]. For 0/1 losses, the number of failures.
    n : float
        Number of values.
    level : float, default=0.95
        With at least this probability, the intervals at *all* n contain the mean.
    prior : tuple of float
        Parameters of the beta mixture. They affect the length of the intervals, not the level.

    Returns
    -------
    Interval
        Within [0, 1], and equal to [0, 1] without data. At 1,000 values, it is about 1.5 times as
        long as an interval for a single look.

    Raises
    ------
    DomainError
        If not 0 <= total <= n, or if `level` is not between 0 and 1.

    Notes
    -----
    The interval contains the means that a mixture of bets does not refute. For each mean m, the
    likelihood ratio of a mixture of coins with a beta prior to the coin m is a martingale [1]_ with
    a closed form. For values between 0 and 1, the likelihood ratio is smaller than the capital of
    the same bets, because the logarithm is concave. The interval is then valid, but longer than
    necessary [2]_. It depends only on the sum of the values, not on their order.

    References
    ----------
    .. [1] Robbins (1970), Statistical methods related to the law of the iterated logarithm,
       https://doi.org/10.1214/aoms/1177696786
    .. [2] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting,
       https://arxiv.org/abs/2010.09686

    Examples
    --------
    >>> from abstain.inference.confidence_sequence import anytime_interval
    >>> interval = anytime_interval(5, 100)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0071, 0.1558)
    """
    low, high = anytime_limits(total, n, level=level, prior=prior)
    return Interval(float(low), float(high), level, "confidence sequence, beta mixture of bets")


def anytime_limits(
    total: AnyArray, n: AnyArray, *, level: float = 0.95, prior: tuple[float, float] = (0.5, 0.5)
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of `anytime_interval` for arrays of sums."""
    k, size = np.broadcast_arrays(np.asarray(total, np.float64), np.asarray(n, np.float64))
    a, b = (checks.positive(x, "prior") for x in prior)
    is_invalid = ~((k >= 0) & (k <= size))
    if is_invalid.any():
        first_total, first_n = k[is_invalid].flat[0], size[is_invalid].flat[0]
        raise DomainError(f"`total` must lie between 0 and `n`; got {first_total:g} of {first_n:g}")
    log_mixture_likelihood = special.betaln(a + k, b + size - k) - special.betaln(a, b)
    max_log_ratio = -np.log(1 - check_level(level))

    def is_compatible(m: FloatArray) -> FloatArray:
        """Return whether the bets against the mean m have not refuted it."""
        log_likelihood = special.xlogy(k, m) + special.xlog1py(size - k, -m)
        return np.asarray(log_mixture_likelihood - log_likelihood < max_log_ratio)

    mean = k / np.maximum(size, 1e-300)
    bounds = []
    for range_bound in (0.0, 1.0):
        excluded, compatible = np.full(k.shape, range_bound), mean.copy()
        for _ in range(_BISECTION_STEPS):
            middle = (excluded + compatible) / 2
            middle_is_compatible = is_compatible(middle)
            excluded = np.where(middle_is_compatible, excluded, middle)
            compatible = np.where(middle_is_compatible, middle, compatible)
        reaches_range_bound = is_compatible(np.full(k.shape, range_bound))
        bounds.append(np.where(reaches_range_bound, range_bound, compatible))
    return bounds[0], bounds[1]
