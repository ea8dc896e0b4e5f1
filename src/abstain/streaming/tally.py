"""Distinct numbers and how many there are of each: what exact states count with."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from abstain._foundation.arrays import read_only
from abstain._foundation.optional_packages import load_kernels
from abstain.errors import InputError
from abstain.typing import Array, IntArray

#: So many bytes of numbers wait, at least, before they are sorted in among the others.
WAITING = 1 << 27

#: From so many numbers on compiled kernels are loaded, which merge in one pass.
_MERGED = 1 << 22


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
        object.__setattr__(self, "value", read_only(self.value))
        object.__setattr__(self, "count", read_only(self.count))

    @cached_property
    def settled(self) -> "Tally":
        """The same with nothing waiting."""
        if not self.waiting:
            return self
        # A copy in any case, which is sorted in its place.
        new = _counted(np.concatenate(self.waiting))
        return new if not self.value.size else _joined(self, new)

    def adding(self, values: Array) -> "Tally":
        """Return the tally with these numbers too, which are kept as they are for a while."""
        if not values.size:
            return self
        out = Tally(self.value, self.count, with_one_more(self.waiting, values))
        return out.settled if are_many(out.waiting, max(WAITING, self.value.nbytes)) else out

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
        raise InputError(f"{name!r} must be ascending numbers with counts of at least 1")
    return Tally(value, count)


def empty_tally() -> Tally:
    """Return the tally of no numbers, of the narrowest type."""
    return Tally(np.zeros(0, np.float16), np.zeros(0, np.int64))


def with_one_more(waiting: tuple[Array, ...], values: Array) -> tuple[Array, ...]:
    """Let an array wait too; small ones are put together, so that there are never many."""
    kept, last = waiting, [values]
    while kept and kept[-1].dtype == values.dtype and kept[-1].size <= sum(x.size for x in last):
        kept, last = kept[:-1], [kept[-1], *last]
    return (*kept, np.concatenate(last) if len(last) > 1 else values)


def are_many(waiting: tuple[Array, ...], held: int) -> bool:
    """Tell whether what waits has so many bytes."""
    return sum(x.nbytes for x in waiting) >= held


def _counted(values: Array) -> Tally:
    """Sort and count numbers, in the place where they are."""
    values.sort()
    ends = np.empty(values.size, np.bool_)
    np.not_equal(values[1:], values[:-1], out=ends[:-1])
    ends[-1] = True
    last = np.flatnonzero(ends)
    return Tally(values[last], np.diff(last, prepend=-1))


def _joined(one: Tally, two: Tally) -> Tally:
    if one.value.size < two.value.size:
        one, two = two, one
    place = passed(two.value, one.value)
    known = one.value.take(place - 1, mode="clip") == two.value
    known &= place > 0
    count = one.count.copy()
    count[place[known] - 1] += two.count[known]
    new = np.flatnonzero(~known)
    # Where the new ones stand among all, and the old ones between them.
    here = place[new] + np.arange(new.size)
    old = np.ones(one.value.size + new.size, np.bool_)
    old[here] = False
    value = np.empty(old.size, np.result_type(one.value, two.value))
    counts = np.empty(old.size, np.int64)
    value[here], counts[here] = two.value[new], two.count[new]
    value[old], counts[old] = one.value, count
    return Tally(value, counts)


def neighbors(x: Array, to: float) -> Array:
    """Return the next floats of the same type towards an infinity, which may be it."""
    with np.errstate(all="ignore"):
        out: Array = np.nextafter(x, x.dtype.type(to))
    return out


def passed(points: Array, numbers: Array) -> IntArray:
    """Return how many of the numbers are at most each point; both ascend."""
    large = points.size + numbers.size >= _MERGED and points.dtype == numbers.dtype
    fast = load_kernels("abstain._foundation.compiled") if large else None
    if fast is None:
        return np.searchsorted(numbers, points, side="right")
    out: IntArray = fast.count_up_to(points, np.append(numbers, numbers.dtype.type(np.inf)))
    return out
