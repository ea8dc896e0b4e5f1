"""Distinct numbers and how many there are of each: what exact states count with."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from abstain._foundation.arrays import sealed
from abstain.errors import InputError
from abstain.typing import Array, IntArray

#: So many numbers wait, at least, before they are sorted in among the others.
WAITING = 1 << 22


@dataclass(frozen=True, eq=False)
class Tally:
    """How many there are of each number; what came last waits until it is worth sorting."""

    #: Shape (k,). Distinct, ascending.
    value: Array
    #: Shape (k,). At least 1.
    count: IntArray
    #: Numbers that are not counted yet, in any order.
    waiting: tuple[Array, ...] = ()

    def __post_init__(self) -> None:
        """Seal the arrays: states share them."""
        object.__setattr__(self, "value", sealed(self.value))
        object.__setattr__(self, "count", sealed(self.count))

    @cached_property
    def settled(self) -> "Tally":
        """The same with nothing waiting."""
        if not self.waiting:
            return self
        new = _counted(np.concatenate(self.waiting))
        return new if not self.value.size else _joined(self, new)

    def adding(self, values: Array) -> "Tally":
        """Return the tally with these numbers too, which are kept as they are for a while."""
        if not values.size:
            return self
        waiting = (*self.waiting, values)
        out = Tally(self.value, self.count, waiting)
        enough = sum(x.size for x in waiting) >= max(WAITING, self.value.size)
        return out.settled if enough else out

    def joined(self, other: "Tally") -> "Tally":
        """Return the tally of the numbers of both."""
        one, two = self.settled, other.settled
        if not (one.value.size and two.value.size):
            return one if one.value.size else two
        return _joined(one, two)

    def at(self, dtype: np.dtype[Any]) -> "Tally":
        """Return the same numbers in a wider type, with nothing waiting."""
        here = self.settled
        return Tally(here.value.astype(dtype, copy=False), here.count)


def tally_of(value: Array, count: Array, name: str) -> Tally:
    """Return the tally of a file's arrays; refuse such as no tally has."""
    fine = (
        value.ndim == count.ndim == 1
        and value.size == count.size
        and value.dtype.kind == "f"
        and count.dtype == np.int64
        and bool(np.isfinite(value).all())
        and bool((value[1:] > value[:-1]).all())
        and bool((count > 0).all())
    )
    if not fine:
        msg = f"{name!r} must be ascending numbers with counts of at least 1"
        raise InputError(msg)
    return Tally(value, count)


def empty_tally() -> Tally:
    """Return the tally of no numbers, of the narrowest type."""
    return Tally(np.zeros(0, np.float16), np.zeros(0, np.int64))


def _counted(values: Array) -> Tally:
    ordered = np.sort(values)
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, ordered.size)
    return Tally(ordered[ends - 1], np.diff(ends, prepend=0))


def _joined(one: Tally, two: Tally) -> Tally:
    value = np.concatenate((one.value, two.value))
    # Two ascending runs: a stable sort merges them.
    order = np.argsort(value, kind="stable")
    value, count = value[order], np.concatenate((one.count, two.count))[order]
    first = np.flatnonzero(np.append(True, value[1:] != value[:-1]))
    return Tally(value[first], np.add.reduceat(count, first))
