"""What is left of sorted keys where only failures count: the groups that hold one, and the ties.

The risk over coverage turns upwards at a group that holds a failure and falls as 1/k over the
successes up to the next, however many of those are tied among themselves: a tie only leaves out
the vertices within it. So between two turns one group stands for all successes, and the ties among
them are looked for only by sums that go from vertex to vertex.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, TypeAlias

import numpy as np

from abstain._foundation.arrays import sealed
from abstain._foundation.packed import PackedKeys
from abstain._foundation.segments import steps
from abstain.errors import UncountedError
from abstain.typing import Array, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Ties:
    """The tie groups of successes alone, most confident first; found when they are asked for."""

    keys: PackedKeys

    @cached_property
    def _found(self) -> tuple[IntArray, IntArray]:
        keys, split = self.keys.keys, self.keys.split
        same = np.empty(keys.size + 1, np.bool_)
        np.equal(keys[1:], keys[:-1], out=same[1:-1])
        same[[0, split, -1]] = False
        # Where a run of equal keys begins, and its last: one after the other.
        runs = np.flatnonzero(same[1:] != same[:-1])
        start, end = runs[::2], runs[1::2] + 1
        key = keys.take(start)
        # Successes come first within a group: a failure of the same confidence would follow.
        mixed = keys.take(end, mode="clip") == (key | keys.dtype.type(1))
        mixed &= (end < keys.size) & (end != split)
        # A key of a failure is one that follows itself.
        alone = np.flatnonzero(~(mixed | (key & keys.dtype.type(1)).astype(np.bool_)))
        return sealed(start.take(alone)), sealed(end.take(alone))

    @property
    def above(self) -> IntArray:
        """How many samples are more confident than each, shape (t,)."""
        return self._found[0]

    @property
    def through(self) -> IntArray:
        """How many samples are at least as confident, shape (t,)."""
        return self._found[1]

    @property
    def samples(self) -> int:
        """How many samples there are in all of them."""
        return int((self.through - self.above).sum())

    def vertex(self, rank: int) -> int:
        """Return how many samples a vertex accepts that accepts so many successes or more."""
        place = int(np.searchsorted(self.above, rank)) - 1
        return rank if place < 0 else max(rank, int(self.through[place]))

    def segment(self, through: float) -> tuple[int, int]:
        """Return what the two vertices accept between which so much of successes lies."""
        place = int(np.searchsorted(self.above, through)) - 1
        if place >= 0 and self.through[place] > through:
            return int(self.above[place]), int(self.through[place])
        return int(np.floor(through)), int(np.ceil(through))

    def apart(self, ranks: IntArray) -> IntArray:
        """Return these numbers of samples, ascending; of one within a tie both its ends."""
        if not self.above.size:
            return np.unique(ranks)
        place = np.searchsorted(self.above, ranks) - 1
        within = (place >= 0) & (self.through[place] > ranks)
        tie = place[within]
        return np.unique(np.concatenate((ranks[~within], self.above[tie], self.through[tie])))

    def groups_beyond(self, rank: int) -> tuple[IntArray, IntArray]:
        """Return all groups that end after so many samples: where each ends, and its count."""
        whole, split, n = self.keys.keys, self.keys.split, self.keys.keys.size
        if rank == n:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        keys = whole[rank:]
        closes = np.append((keys[1:] ^ keys[:-1]) > 1, True)
        if rank < split < n:
            closes[split - rank - 1] = True
        end = np.flatnonzero(closes) + (rank + 1)
        low, high = (0, split) if rank < split else (split, n)
        begin = low + int(np.searchsorted(whole[low:high], keys[0] & ~keys.dtype.type(1)))
        return end, np.diff(end, prepend=begin)


class UncountedTies(Ties):
    """Those of a stream whose successes were only counted between the failures: all is refused."""

    def __init__(self) -> None:
        """Keep nothing."""

    def __getattribute__(self, name: str) -> object:
        """Refuse whatever is asked of them."""
        if not name.startswith("__"):
            refuse_uncounted()
        return object.__getattribute__(self, name)


def refuse_uncounted(who: str = "") -> NoReturn:
    """Refuse what takes the confidence of each success."""
    raise UncountedError(
        f"{who}needs the confidences of the successes, and a state of two passes only counts them "
        "between the failures; take `streaming.one_pass`, which keeps each distinct confidence, or "
        "`streaming.sorted_runs`, which keeps all on disk"
    )


#: Turns take less time than events from so many samples on, of which at most one in so many fails.
_MANY, _RARE = 1 << 14, 10


def are_few(n: int, failures: int) -> bool:
    """Tell whether turns are so few that to find them takes less time than to find events."""
    return n >= _MANY and _RARE * failures <= n


#: Confidences in descending order; number and failures of each, no other count, and which hold no
#: failure.
Turns: TypeAlias = tuple[Array, FloatArray, FloatArray, None, BoolArray, Ties]


def turns_of(keys: PackedKeys) -> Turns:
    """Return the groups that hold a failure, and between them the successes as one group each."""
    first, last, failed = keys.failing()
    bounds = np.empty(2 * first.size + 1, np.int64)
    bounds[:-1:2], bounds[1::2], bounds[-1] = first, last, keys.keys.size
    loss = np.zeros(bounds.size)
    loss[1::2] = failed
    count = steps(bounds)
    if not count.all():
        here = np.flatnonzero(count)
        bounds, count, loss = bounds[here], count[here], loss[here]
    return keys.values(bounds), count.astype(np.float64), loss, None, loss == 0, Ties(keys)
