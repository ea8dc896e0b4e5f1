"""Bets on a mean, which lead to anytime-valid tests and confidence sequences."""

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

#: Assumed deviations of the true odds from the claim, in log-odds. They correspond to factors of
#: the odds from 1.2 to 30.
TILTS: Final = (0.2, 0.4, 0.7, 1.2, 2.0, 3.4)
#: Upper limit of the money on a bet, which prevents an overflow.
_MAX_MONEY: Final = 1e280


@dataclass(frozen=True, eq=False)
class Wager:
    """Bets that the mean of a stream of values in [0, 1] leaves a claimed range.

    If the claim is true for the conditional mean of each value, the capital is a nonnegative
    supermartingale that starts at 1. By Ville's inequality, the probability that the capital *ever*
    reaches 1/alpha is then at most alpha. This bound holds for any number of inspections. Each bet
    multiplies its money by the likelihood ratio of a coin whose odds differ from the claim by a
    factor. At each time, a part of the initial capital is added to the bets. The remaining part
    decreases like 1/log2 of the number of values. The bets therefore detect a change after a long
    time almost as fast as a change at the start.

    Attributes
    ----------
    claims, stakes : ndarray of shape (bets,)
        The claimed mean and the stake of each bet. A value x multiplies the money of the bet by
        1 + stake (x - claim), which is never negative.
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
        """Total capital of each stream, including money that is not on bets; 1 at the start."""
        return np.asarray(self.money.sum(axis=-1) + unallocated_share(self.n_values))

    def update(self, values: AnyArray) -> "Wager":
        """Return the wager after more values.

        Parameters
        ----------
        values : array of shape (t,) or (t, ...)
            Values in [0, 1] in the order of time. The axes after the first axis are the streams.

        Returns
        -------
        Wager
            The wager with t more values.

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
        The claimed range of the mean. A bound of 0 or 1 claims nothing on its side, so the wager
        contains no bet against this bound.
    streams : sequence of int
        Shape of the parallel streams. The shape () is a single stream.
    tilts : sequence of float
        Assumed deviations of the true odds from the claim, in log-odds. The money is divided
        equally among the deviations.

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
    The bets are those of [1]_ with stakes that are fixed in advance. The wager is a mixture over
    stakes and starting times. If the mean is below a claimed upper bound, the capital decreases. A
    value between 0 and 1 counts as a fraction of a failure. The cost is one multiplication for each
    value and bet.

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
    low, high = checks.fraction(low, "low"), checks.fraction(high, "high")
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
    claims = np.array([claim for claim, _ in sides for _ in tilts])
    log_odds_shift = np.array([sign * tilt for _, sign in sides for tilt in tilts])
    odds = claims / (1 - claims) * np.exp(log_odds_shift)
    assumed_mean = odds / (1 + odds)
    stakes = (assumed_mean - claims) / (claims * (1 - claims))
    money = np.zeros((*streams, claims.size))
    return Wager(read_only(claims), read_only(stakes), read_only(money))


def update_money(
    money: FloatArray, value: AnyArray, n_values: int, claims: FloatArray, stakes: FloatArray
) -> FloatArray:
    """Return the money on each bet after `value`, which is value number `n_values` of a stream."""
    newly_allocated = (unallocated_share(n_values - 1) - unallocated_share(n_values)) / claims.size
    factor = 1 + stakes * (np.asarray(value)[..., None] - claims)
    return np.minimum((money + newly_allocated) * factor, _MAX_MONEY)


class RunningWager:
    """A wager that processes one value at a time in place, with the same numbers as `Wager`."""

    def __init__(self, wager: Wager) -> None:
        self.claims, self.stakes = wager.claims, wager.stakes
        self.money, self.n_values = wager.money.copy(), wager.n_values
        self._factor = np.empty_like(self.money)
        self._unallocated = unallocated_share(wager.n_values)
        self._n_streams = self.money.size // self.claims.size

    def add(self, value: AnyArray) -> None:
        """Process the next value, which is a number or an array of shape (streams, 1)."""
        money, factor = self.money, self._factor
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
    """Return the share of the initial capital that is not on bets after `n_values` values."""
    return 1 / math.log2(n_values + 2)


#: Number of bisection steps between a bound and the mean, which determine even the last bit.
_BISECTION_STEPS: Final = 64


def anytime_interval(
    total: AnyArray, n: AnyArray, *, level: float = 0.95, prior: tuple[float, float] = (0.5, 0.5)
) -> Interval:
    """Compute a confidence interval of a mean that is valid at all times simultaneously.

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
        interval is about 1.5 times as long as an interval that is inspected only once.

    Raises
    ------
    DomainError
        If not 0 <= total <= n, or if `level` is not between 0 and 1.

    Notes
    -----
    The interval contains all means that a mixture of bets does not refute. For each mean m,
    consider the likelihood ratio of a mixture of coins with a beta prior to the coin m. This ratio
    is a martingale [1]_ with a closed form. For values between 0 and 1, the likelihood ratio is
    smaller than the capital of the same bets, because the logarithm is concave. The interval is
    then valid but longer than necessary [2]_. The interval depends only on the sum of the values
    and not on their order.

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
    k, size = np.broadcast_arrays(np.asarray(total, np.float64), np.asarray(n, np.float64))
    a, b = (checks.positive(x, "prior") for x in prior)
    is_invalid = ~((k >= 0) & (k <= size))
    if is_invalid.any():
        first_total, first_n = k[is_invalid].flat[0], size[is_invalid].flat[0]
        raise DomainError(f"`total` must lie between 0 and `n`; got {first_total:g} of {first_n:g}")
    log_mixture_likelihood = special.betaln(a + k, b + size - k) - special.betaln(a, b)
    max_log_ratio = -np.log(1 - check_level(level))

    def is_compatible(m: FloatArray) -> FloatArray:
        """Return whether the bets do not refute the mean m."""
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
