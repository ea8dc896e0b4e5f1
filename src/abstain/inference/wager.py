"""Bets against a claim about a mean: the capital grows only if the claim is false."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain.errors import DomainError
from abstain.typing import AnyArray, FloatArray

#: Assumed deviations of the true odds from the claim, in log-odds: factors of 1.2 to 30.
TILTS: Final = (0.2, 0.4, 0.7, 1.2, 2.0, 3.4)
#: Upper limit of the money on a bet, which would otherwise overflow.
_MAX_MONEY: Final = 1e280


@dataclass(frozen=True, eq=False)
class Wager:
    """Bets that the mean of a stream of values in [0, 1] leaves the claimed range at any time.

    As long as the claim allows the conditional mean of each value, the capital is a nonnegative
    (super)martingale that starts at 1. The probability that it *ever* reaches 1/alpha is then at
    most alpha (Ville's inequality), however often it is inspected. Each bet multiplies its money by
    the likelihood ratio of a coin whose odds differ from the claim by a factor. At each time, a
    share of the money that decreases like 1/log2 is put on new bets. A change after a long time is
    therefore detected almost as soon as a change at the start.

    Attributes
    ----------
    claims, stakes : ndarray of shape (bets,)
        The claimed mean and the stake of each bet. A value x multiplies the money of the bet by
        1 + stake (x - claim), which is never negative.
    money : ndarray of shape (..., bets)
        The money on each bet. The other axes are parallel streams.
    n_values : int
        Number of values of each stream so far.

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
        """Total capital of each stream, on bets and not yet on bets; 1 at the start."""
        return np.asarray(self.money.sum(axis=-1) + unallocated_share(self.n_values))

    def update(self, values: AnyArray) -> "Wager":
        """Return the wager after more values.

        Parameters
        ----------
        values : array of shape (t,) or (t, ...)
            Values in [0, 1], in the order of time. The other axes are the streams.

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
    """Start to bet that a mean is outside a claimed range.

    Answers: would I notice reliably if this guarantee stops holding one day?

    Parameters
    ----------
    low, high : float
        The claimed range of the mean. A bound of 0 or 1 claims nothing on its side, so there is no
        bet against it.
    streams : sequence of int
        Shape of the parallel streams; () is a single stream.
    tilts : sequence of float
        Assumed deviations of the truth from the claim, in log-odds. The money is divided equally
        among them.

    Returns
    -------
    Wager
        A wager with a capital of 1. The inverse of its capital is an anytime-valid p-value.

    Raises
    ------
    DomainError
        If not 0 <= low <= high <= 1, or if the claim allows every mean.

    Notes
    -----
    The bets of [1]_ with stakes that are fixed in advance, mixed over stakes and starting times. If
    the mean is below a claimed upper bound, the capital decreases. A value between 0 and 1 counts
    as a fraction of a failure. Cost: one multiplication for each value and bet.

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
    """Return the money on each bet after value number `n_values` (from 1 on) of each stream."""
    newly_allocated = (unallocated_share(n_values - 1) - unallocated_share(n_values)) / claims.size
    factor = 1 + stakes * (np.asarray(value)[..., None] - claims)
    return np.minimum((money + newly_allocated) * factor, _MAX_MONEY)


class RunningWager:
    """A wager that is updated in place, one value at a time, with the numbers of `Wager.update`."""

    def __init__(self, wager: Wager) -> None:
        self.claims, self.stakes = wager.claims, wager.stakes
        self.money, self.n_values = wager.money.copy(), wager.n_values
        self._factor = np.empty_like(self.money)
        self._unallocated = unallocated_share(wager.n_values)
        self._n_streams = self.money.size // self.claims.size

    def add(self, value: AnyArray) -> None:
        """Process the next value: a number, or an array of shape (streams, 1)."""
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
    """Return the share of the initial capital that is not on any bet after `n_values` values."""
    return 1 / math.log2(n_values + 2)
