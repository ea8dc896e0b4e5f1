"""Wagers against a claim about a mean: capital that grows only when the claim is wrong."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain.errors import DomainError
from abstain.typing import AnyArray, FloatArray

#: How far the odds of a claim are thought to be off, in log-odds: from a quarter more to 30 times.
TILTS: Final = (0.2, 0.4, 0.7, 1.2, 2.0, 3.4)
#: Above this a capital grows no more: it has won long ago, and would overflow.
_MOST: Final = 1e280


@dataclass(frozen=True, eq=False)
class Wager:
    """Bets that the mean of a stream in [0, 1] leaves what is claimed, from any moment on.

    While each value has, given those before it, a mean that the claim allows, the capital is a
    nonnegative (super)martingale that starts at 1: the chance that it *ever* reaches 1/alpha is at
    most alpha (Ville's inequality), however often it is looked at. Each bet takes the likelihood
    ratio of a coin whose odds are a factor away from the claim. A share of the money that shrinks
    as 1/log2 is put on a beginning at each moment, so that a change after a long time is found
    almost as soon as one at the start.

    Attributes
    ----------
    claims, edges : ndarray of shape (bets,)
        The claimed mean of each bet, and how much it stakes: a value x multiplies its money by
        1 + edge (x - claim), which is never negative.
    held : ndarray of shape (..., bets)
        The money on each bet; the axes before the last are streams side by side.
    steps : int
        How many values were seen.

    Examples
    --------
    >>> from abstain.inference.wager import wager
    >>> bet = wager(high=0.1)
    >>> quiet, loud = bet.after([0.0] * 50), bet.after([0.0, 1.0] * 25)
    >>> round(float(quiet.capital), 2), bool(loud.capital > 1000)
    (0.25, True)
    """

    claims: FloatArray
    edges: FloatArray
    held: FloatArray
    steps: int = 0

    @property
    def capital(self) -> FloatArray:
        """All that is owned, per stream: what is on bets and what waits; 1 at the start."""
        return np.asarray(self.held.sum(axis=-1) + waiting_share(self.steps))

    def after(self, values: AnyArray) -> "Wager":
        """Return the wager after more values.

        Parameters
        ----------
        values : array of shape (t,) or (t, ...)
            In [0, 1], in the order of time; the later axes are the streams.

        Returns
        -------
        Wager
            With t more steps.

        Raises
        ------
        DomainError
            A value outside [0, 1].
        """
        found = np.asarray(values, dtype=np.float64)
        outside = ~((found >= 0) & (found <= 1))
        if outside.any():
            bad = float(found[outside].flat[0])
            raise DomainError(f"`values` must lie in [0, 1]; got {bad!r}")
        held = self.held
        for step, x in enumerate(found, self.steps + 1):
            held = played(held, x, step, self.claims, self.edges)
        return replace(self, held=read_only(held), steps=self.steps + len(found))


def wager(
    low: float = 0.0, high: float = 1.0, *, streams: Iterable[int] = (), tilts: AnyArray = TILTS
) -> Wager:
    """Begin to bet that a mean is not within what is claimed.

    Answers: would I notice, and surely, when this promise breaks one day?

    Parameters
    ----------
    low, high : float
        The claim: the mean lies between them. At 0 and 1 there is nothing to bet against on that
        side.
    streams : sequence of int
        Shape of the streams that are watched side by side; () is one.
    tilts : sequence of float
        By how much, in log-odds, the truth is thought to be beyond the claim; the money is shared
        out evenly.

    Returns
    -------
    Wager
        With a capital of 1; 1 over the capital is an anytime-valid p-value.

    Raises
    ------
    DomainError
        Not 0 <= low <= high <= 1, or a claim that leaves nothing to bet against.

    Notes
    -----
    A bet of [1]_ with stakes that are fixed in advance, mixed over stakes and over beginnings; a
    claim about a mean that is below the claimed one shrinks the capital. A value between 0 and 1
    counts as that much of a one. Cost: one multiplication a value and bet.

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
    sides = [(high, 1.0)] * (0 < high < 1) + [(low, -1.0)] * (0 < low < 1)
    if not sides:
        raise DomainError(
            "the claim must leave something to bet against: `high` above 0 and below 1, or `low`; "
            f"got {low!r} to {high!r}"
        )
    claims = np.array([claim for claim, _ in sides for _ in tilts])
    moved = np.array([side * tilt for _, side in sides for tilt in tilts])
    odds = claims / (1 - claims) * np.exp(moved)
    thought = odds / (1 + odds)
    edges = (thought - claims) / (claims * (1 - claims))
    return Wager(read_only(claims), read_only(edges), read_only(np.zeros((*streams, claims.size))))


def played(
    held: FloatArray, x: AnyArray, step: int, claims: FloatArray, edges: FloatArray
) -> FloatArray:
    """Return the money on each bet after one value of each stream, the `step`-th from 1 on."""
    begun = (waiting_share(step - 1) - waiting_share(step)) / claims.size
    won = 1 + edges * (np.asarray(x)[..., None] - claims)
    return np.minimum((held + begun) * won, _MOST)


class RunningWager:
    """A wager that takes values one at a time, in place: the same numbers as `Wager.after`."""

    def __init__(self, wager: Wager) -> None:
        self.claims, self.edges = wager.claims, wager.edges
        self.held, self.steps = wager.held.copy(), wager.steps
        self._factor = np.empty_like(self.held)
        self._waiting = waiting_share(wager.steps)
        self._n_streams = self.held.size // self.claims.size

    def add(self, value: AnyArray) -> None:
        """Take the next value: a number, or an array of shape (streams, 1)."""
        held, factor = self.held, self._factor
        self.steps += 1
        waiting = waiting_share(self.steps)
        begun = (self._waiting - waiting) / self.claims.size
        self._waiting = waiting
        np.subtract(value, self.claims, out=factor)
        factor *= self.edges
        factor += 1.0
        held += begun
        held *= factor
        np.minimum(held, _MOST, out=held)

    @property
    def capital(self) -> float:
        """The mean over the streams of all that is owned."""
        return float(np.add.reduce(self.held, axis=None)) / self._n_streams + self._waiting


def waiting_share(steps: int) -> float:
    """Return the share of the first money that is not yet on any bet after so many steps."""
    return 1 / math.log2(steps + 2)
