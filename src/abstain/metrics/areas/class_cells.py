"""The samples of each class, from the most confident on: what class-balanced areas sum over."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation.order import runs_of
from abstain._foundation.scored import Scored
from abstain.metrics.class_views import view_of
from abstain.typing import Array, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ClassCells:
    """The rows of the host that have weight, class by class, each from the most confident on.

    Rows of one class and one confidence are a cell, in which a curve of the class has a vertex.
    """

    #: Shape (n,). The rows in that order.
    rows: Array | slice
    #: Shape (n,). The cell of each.
    cell: Array
    #: Shape (c,). The tie group of each cell, and its class among those present.
    group: Array
    owner: Array
    #: Shape (c,). Weight and loss mass of the class down to each cell.
    through: FloatArray
    loss_through: FloatArray
    #: Shape (k,). How many independent samples of each class there are, by Kish's formula.
    size: FloatArray

    @classmethod
    def of(cls, s: Scored) -> "ClassCells":
        """Sort them."""
        labels = view_of(s).labels
        rows, group = _in_order(s, labels)
        codes = labels[rows]
        new_class = np.append(True, codes[1:] != codes[:-1])
        first = new_class | np.append(True, group[1:] != group[:-1])
        starts = np.flatnonzero(first)
        opens = np.flatnonzero(new_class[starts])
        mass = s.loss[rows].astype(np.float64)
        weight = np.ones(mass.size) if s.weight is None else s.weight[rows]
        mass *= weight
        return cls(
            rows,
            np.cumsum(first, dtype=np.int32) - 1,
            group[starts],
            np.cumsum(new_class[starts], dtype=np.int32) - 1,
            _sums_from(np.add.reduceat(weight, starts), opens),
            _sums_from(np.add.reduceat(mass, starts), opens),
            _sizes(weight, starts[opens], counted=s.counted),
        )

    @property
    def present(self) -> int:
        """How many classes there are."""
        return int(self.owner[-1]) + 1

    @property
    def risk(self) -> FloatArray:
        """The selective risk of its class at each cell."""
        return self.loss_through / self.through

    @property
    def last(self) -> BoolArray:
        """Whether a cell is the last of its class."""
        return np.append(self.owner[1:] != self.owner[:-1], True)

    @property
    def class_weight(self) -> FloatArray:
        """The weight of each class, shape (k,)."""
        return np.asarray(self.through[self.last])

    @property
    def coverage(self) -> FloatArray:
        """The share of its class that is accepted at each cell."""
        return np.asarray(self.through / self.class_weight[self.owner])

    @property
    def loss(self) -> FloatArray:
        """The loss mass of each cell."""
        before = np.append(0.0, self.loss_through[:-1])
        return self.loss_through - np.where(np.append(True, self.last[:-1]), 0.0, before)

    @property
    def balance(self) -> FloatArray:
        """W/(K W_k) for each cell: with it all classes weigh the same."""
        mass = self.class_weight
        return np.asarray((mass.sum() / (self.present * mass))[self.owner])

    def until_next(self, to_come: FloatArray) -> FloatArray:
        """Return the step of a number of the tie groups from each cell to the next of its class."""
        here = to_come[self.group]
        return here - np.where(self.last, 0.0, np.append(here[1:], 0.0))

    def to_come(self, x: FloatArray) -> FloatArray:
        """Return the sum over each cell and those of its class that come after it."""
        ends = np.flatnonzero(self.last)[::-1]
        return _sums_from(x[::-1], x.size - 1 - ends)[::-1]


def class_cells(s: Scored) -> ClassCells:
    """Return the samples by class, sorted once."""
    return s.kinds_by_class.once(ClassCells.of)


def _in_order(s: Scored, labels: IntArray) -> tuple[Array | slice, Array]:
    """Return the rows that have weight by class and confidence, and the tie group of each."""
    if s.known_home is not None:
        # So come the rows of `Scored.kinds_by_class`.
        return slice(None), s.known_home
    runs = runs_of(s.confidence, None if s.weight is None else s.weight > 0)
    codes = labels[runs.order]
    if 0 <= codes.min() + 1 <= codes.max() < _COUNTED:
        # Small integers are sorted by counting them.
        codes = codes.astype(np.int16)
    by = np.argsort(codes, kind="stable")
    group = np.repeat(np.arange(runs.ends.size, dtype=np.int32), runs.count)
    return runs.order[by].astype(np.int32), group[by]


#: Codes of classes below this are sorted by counting.
_COUNTED = 1 << 15


def _sizes(weight: FloatArray, starts: IntArray, *, counted: bool) -> FloatArray:
    """Return the number of independent samples of each class, whose rows begin at `starts`."""
    total: FloatArray = np.add.reduceat(weight, starts)
    return total if counted else total**2 / np.add.reduceat(weight * weight, starts)


def _sums_from(x: FloatArray, starts: IntArray) -> FloatArray:
    """Return running sums that begin anew at each of the starts."""
    out: FloatArray = np.cumsum(x)
    offset = out[starts] - x[starts]
    out -= np.repeat(offset, np.diff(starts, append=x.size))
    return out
