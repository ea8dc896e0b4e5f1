"""Anytime-valid tests and confidence sequences from bets on a mean."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.lazy_imports import special
from abstain.errors import DomainError
from abstain.inference.intervals import Interval, check_level
from abstain.typing import AnyArray, FloatArray

#: Assumed deviations of the true odds from the claim, in log-odds. They are factors from 1.2 to 30
#: of the odds.
TILTS: Final = (0.2, 0.4, 0.7, 1.2, 2.0, 3.4)
#: Upper limit of the money on a bet, which prevents an overflow.
_MAX_MONEY: Final = 1e280


@dataclass(frozen=True, eq=False)
class Wager:
    """Bets that the mean of a stream of values in [0, 1] is outside a claimed range.

    The capital starts at 1. If the claim is true for the conditional mean of each value, the
    capital is a nonnegative supermartingale. By Ville's inequality, the probability that the
    capital *ever* reaches 1/alpha is then at most alpha. Each bet multiplies its money by the
    likelihood ratio of a coin whose odds differ from the claim by a fixed factor. At each time, a
    part of the initial capital is added to the bets, so that a late change is detected almost as
    fast as an early change.

    Attributes
    ----------
    claims, stakes : ndarray of shape (bets,)
        The claimed mean and the stake of each bet. A value x multiplies the money of the bet by the
        nonnegative factor 1 + stake (x - claim).
    money : ndarray of shape (..., bets)
        The money on each bet. The leading axes are parallel streams.
    n_values : int
        Number of processed values of each stream.

    Examples
    --------
    >>> from abstain.inference.wager import wager
    >>> bet = wager(high=0.1)
    >>> quiet, loud = bet.update([0.0] * 50), bet.update([0.0, 1.0] * 25)
    >>> round(float(quiet.capital), 2), bool(loud.capital > 1000)
    (0.25, True)
    """

    claims: FloatArray
    stakes: FloatArray
    money: FloatArray
    n_values: int = 0

    @property
    def capital(self) -> FloatArray:
        """Total capital of each stream, including money that is not yet bet. It starts at 1."""
        return np.asarray(self.money.sum(axis=-1) + unallocated_share(self.n_values))

    def update(self, values: AnyArray) -> "Wager":
        """Return the wager after more values.

        Parameters
        ----------
        values : array of shape (t,) or (t, ...)
            Values in [0, 1] in the order of time. Further axes are parallel streams.

        Returns
        -------
        Wager
            The wager after t more values.

        Raises
        ------
        DomainError
            If a value is outside [0, 1].
        """
        array = np.asarray(values, dtype=np.float64)
        is_invalid = ~((array >= 0) & (array <= 1))
        if is_invalid.any():
            first_invalid = float(array[is_invalid].flat[0])
            raise DomainError(f"`values` must lie in [0, 1]; got {first_invalid!r}")
        money = self.money
        for n_values, value in enumerate(array, self.n_values + 1):
            money = update_money(money, value, n_values, self.claims, self.stakes)
        return replace(self, money=read_only(money), n_values=self.n_values + len(array))


def wager(
    low: float = 0.0, high: float = 1.0, *, streams: Iterable[int] = (), tilts: AnyArray = TILTS
) -> Wager:
    """Create bets that a mean is outside a claimed range.

    Answers: would I reliably detect when this guarantee no longer holds?

    Parameters
    ----------
    low, high : float
        The claimed range of the mean. There is no bet against a bound of 0 or 1, because every mean
        satisfies it.
    streams : sequence of int
        Shape of the parallel streams. The shape () stands for a single stream.
    tilts : sequence of float
        Assumed deviations of the true odds from the claim, in log-odds, with equal shares of the
        money.

    Returns
    -------
    Wager
        A wager with a capital of 1. At any time, the inverse of the capital is an anytime-valid
        p-value.

    Raises
    ------
    DomainError
        If not 0 <= low <= high <= 1, or if the claim allows every mean.

    Notes
    -----
    The bets of [1]_ are mixed over fixed stakes and starting times. Values between 0 and 1 are
    treated as fractions of a failure. Each value requires one multiplication for each bet.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting,
       https://arxiv.org/abs/2010.09686

    Examples
    --------
    >>> from abstain.inference.wager import wager
    >>> float(wager(0.4, 0.6).capital)
    1.0
    """
    low = checks.fraction(low, "low")
    high = checks.fraction(high, "high")
    if low > high:
        raise DomainError(f"`low` must be at most `high`; got {low!r} and {high!r}")
    sides = []
    if 0 < high < 1:
        sides.append((high, 1.0))
    if 0 < low < 1:
        sides.append((low, -1.0))
    if not sides:
        raise DomainError(
            "the claim allows every mean: `high` or `low` must be above 0 and below 1; got "
            f"{low!r} to {high!r}"
        )
    tilt_sizes = np.asarray(tilts, np.float64)
    claims = np.concatenate([np.full(tilt_sizes.shape, claim) for claim, _ in sides])
    log_odds_shift = np.concatenate([sign * tilt_sizes for _, sign in sides])
    odds = claims / (1 - claims) * np.exp(log_odds_shift)
    assumed_mean = odds / (1 + odds)
    stakes = (assumed_mean - claims) / (claims * (1 - claims))
    money = np.zeros((*streams, claims.size))
    return Wager(read_only(claims), read_only(stakes), read_only(money))


def update_money(
    money: FloatArray, value: AnyArray, n_values: int, claims: FloatArray, stakes: FloatArray
) -> FloatArray:
    """Return the money on each bet after value number `n_values` of the stream."""
    newly_allocated = (unallocated_share(n_values - 1) - unallocated_share(n_values)) / claims.size
    factor = 1 + stakes * (np.asarray(value)[..., None] - claims)
    return np.minimum((money + newly_allocated) * factor, _MAX_MONEY)


class RunningWager:
    """Wager that processes one value at a time in place, with the same results as `Wager`."""

    def __init__(self, wager: Wager) -> None:
        self.claims = wager.claims
        self.stakes = wager.stakes
        self.money = wager.money.copy()
        self.n_values = wager.n_values
        self._factor = np.empty_like(self.money)
        self._unallocated = unallocated_share(wager.n_values)
        self._n_streams = self.money.size // self.claims.size

    def add(self, value: AnyArray) -> None:
        """Process the next value, which is a number or an array of shape (streams, 1)."""
        money = self.money
        factor = self._factor
        self.n_values += 1
        unallocated = unallocated_share(self.n_values)
        newly_allocated = (self._unallocated - unallocated) / self.claims.size
        self._unallocated = unallocated
        np.subtract(value, self.claims, out=factor)
        factor *= self.stakes
        factor += 1.0
        money += newly_allocated
        money *= factor
        np.minimum(money, _MAX_MONEY, out=money)

    @property
    def capital(self) -> float:
        """Mean of the total capital over the streams."""
        mean_money = float(np.add.reduce(self.money, axis=None)) / self._n_streams
        return mean_money + self._unallocated


def unallocated_share(n_values: int) -> float:
    """Return the share of the initial capital that is not yet bet after `n_values` values."""
    return 1 / math.log2(n_values + 2)


#: Number of bisection steps between a bound and the mean, which determine all bits of the result.
_BISECTION_STEPS: Final = 64


def anytime_interval(
    total: AnyArray, n: AnyArray, *, level: float = 0.95, prior: tuple[float, float] = (0.5, 0.5)
) -> Interval:
    """Compute a confidence interval of a mean that is valid at all sample sizes simultaneously.

    Answers: in which range is the true risk, if I inspect the interval after every label and may
    stop at any time?

    Parameters
    ----------
    total : float
        Sum of the values, which lie in [0, 1]. For 0/1 losses, the sum is the number of failures.
    n : float
        Number of values.
    level : float, default=0.95
        Minimum probability that the intervals at *all* n contain the mean.
    prior : tuple of float
        Parameters of the beta mixture, which affect the length of the intervals but not the level.

    Returns
    -------
    Interval
        The interval, which lies in [0, 1] and equals [0, 1] without data. At 1,000 values, the
        interval is about 1.5 times as long as an interval for a fixed sample size.

    Raises
    ------
    DomainError
        If not 0 <= total <= n, or if `level` is not between 0 and 1.

    Notes
    -----
    The interval contains all means m that a mixture of bets does not reject. The capital of the
    bets is a likelihood ratio. The numerator is the likelihood of a mixture of coins with a beta
    prior, and the denominator is the likelihood of a coin with mean m. The capital is a martingale
    with a closed form [1]_. For values strictly between 0 and 1, the interval is valid but longer
    than necessary [2]_. The interval does not depend on the order of the values.

    References
    ----------
    .. [1] Robbins (1970), Statistical methods related to the law of the iterated logarithm,
       https://doi.org/10.1214/aoms/1177696786
    .. [2] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting,
       https://arxiv.org/abs/2010.09686

    Examples
    --------
    >>> from abstain.inference.wager import anytime_interval
    >>> interval = anytime_interval(5, 100)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0071, 0.1558)
    """
    low, high = anytime_limits(total, n, level=level, prior=prior)
    return Interval(float(low), float(high), level, "confidence sequence, beta mixture of bets")


def anytime_limits(
    total: AnyArray, n: AnyArray, *, level: float = 0.95, prior: tuple[float, float] = (0.5, 0.5)
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of `anytime_interval` for arrays of sums and numbers of values."""
    totals, n_values = np.broadcast_arrays(np.asarray(total, np.float64), np.asarray(n, np.float64))
    alpha = checks.positive(prior[0], "prior")
    beta = checks.positive(prior[1], "prior")
    is_invalid = ~((totals >= 0) & (totals <= n_values))
    if is_invalid.any():
        first_total = totals[is_invalid].flat[0]
        first_n = n_values[is_invalid].flat[0]
        raise DomainError(f"`total` must lie between 0 and `n`; got {first_total:g} of {first_n:g}")
    log_mixture_likelihood = special.betaln(alpha + totals, beta + n_values - totals)
    log_mixture_likelihood -= special.betaln(alpha, beta)
    max_log_ratio = -np.log(1 - check_level(level))

    def is_compatible(m: FloatArray) -> FloatArray:
        """Return a mask of the means that the bets do not reject."""
        log_likelihood = special.xlogy(totals, m) + special.xlog1py(n_values - totals, -m)
        return np.asarray(log_mixture_likelihood - log_likelihood < max_log_ratio)

    def find_bound(range_bound: float) -> FloatArray:
        """Find, by bisection, the mean nearest to 0 or 1 that the bets do not reject."""
        excluded = np.full(totals.shape, range_bound)
        compatible = totals / np.maximum(n_values, 1e-300)
        for _ in range(_BISECTION_STEPS):
            middle = (excluded + compatible) / 2
            middle_is_compatible = is_compatible(middle)
            excluded = np.where(middle_is_compatible, excluded, middle)
            compatible = np.where(middle_is_compatible, middle, compatible)
        reaches_range_bound = is_compatible(np.full(totals.shape, range_bound))
        return np.where(reaches_range_bound, range_bound, compatible)

    return find_bound(0.0), find_bound(1.0)
