"""A score sorted once for all its resamples, and what of it needs a look in every resample."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from abstain.typing import Array, BoolArray, FloatArray, IntArray

#: The widest cell: wider ones save nothing more.
WIDEST = 16

#: Below this many samples the share of failures so far says little.
_SETTLED = 64


@dataclass(frozen=True, eq=False)
class Slots:
    """The samples in slots, most confident first: events one by one, cells of successes between."""

    #: Shape (e,). The slots that are events: groups with a failure or a tie, and early groups.
    event: IntArray
    #: Shape (c,). The other slots.
    cell: IntArray
    #: Shape (c,). How many events come before each cell.
    before: IntArray
    #: Shape (slots, n). Sums the samples of each slot.
    slots: Any
    #: Shape (e, n). Sums the failures of each event.
    failures: Any
    #: The most samples in a slot.
    widest: int


@dataclass(frozen=True, eq=False)
class Ordered:
    """Samples from the most to the least confident, and where their ties begin."""

    #: Shape (n,). The samples.
    order: IntArray
    #: Shape (g,). Place of the first sample of each group of equal confidence.
    starts: IntArray
    #: Shape (n,). In this order.
    loss: Array
    #: Shape (n,). In this order.
    weight: FloatArray | None = None
    _layouts: dict[tuple[int, float], Slots] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.order.size

    @cached_property
    def failures_only(self) -> bool:
        """Whether losses are 0 or 1 and nothing is weighted, so that failures tell everything."""
        return self.weight is None and bool(((self.loss == 0) | (self.loss == 1)).all())

    @cached_property
    def stops(self) -> IntArray:
        """Place behind the last sample of each group."""
        return np.append(self.starts[1:], self.n)

    @cached_property
    def failed(self) -> BoolArray:
        """Whether each sample is a failure, in this order."""
        return np.asarray(self.loss != 0)

    @cached_property
    def first_failure(self) -> int:
        """Place of the first group that holds a failure; n if there is none."""
        found = np.flatnonzero(self.failed)
        if not found.size:
            return self.n
        return int(self.starts[np.searchsorted(self.starts, found[0], side="right") - 1])

    @cached_property
    def special(self) -> BoolArray:
        """Whether a group holds a failure or a tie, from the first failure on, shape (g,)."""
        special = self.failed[self.starts] | (self.stops - self.starts > 1)
        past: BoolArray = special & (self.starts >= self.first_failure)
        return past

    @cached_property
    def bounds(self) -> tuple[IntArray, IntArray]:
        """Places where the special groups begin and where they end."""
        return self.starts[self.special], self.stops[self.special]

    @cached_property
    def slope(self) -> float:
        """The largest share of failures among the accepted, past the first few."""
        place = np.flatnonzero(self.failed)
        share = np.arange(1, place.size + 1) / np.maximum(place + 1, _SETTLED)
        return float(share.max(initial=0.0))

    def layout(self, rows: int, pairs: float) -> Slots:
        """Lay the samples out, the first `rows` of them one by one; remembered.

        From place `pairs` on, cells of two are fine.
        """
        key = (rows, float(pairs))
        if key not in self._layouts:
            self._layouts[key] = self._laid_out(rows, pairs)
        return self._layouts[key]

    def _laid_out(self, rows: int, pairs: float) -> Slots:
        early = (self.starts < rows) & (self.starts >= self.first_failure)
        events = np.flatnonzero(self.special | early)
        begin, end = self.starts[events], self.stops[events]
        # An edge on the grid that falls inside an event is none.
        grid = _grid(rows, pairs, self.n)
        inside = np.searchsorted(begin, grid, side="right") > np.searchsorted(
            end, grid, side="right"
        )
        is_edge, is_begin = np.zeros(self.n + 1, bool), np.zeros(self.n + 1, bool)
        is_begin[begin] = True
        for places in (begin, end, grid[~inside], [0, self.n]):
            is_edge[places] = True
        edges = np.flatnonzero(is_edge)
        is_event = is_begin[edges[:-1]]
        cell = np.flatnonzero(~is_event)
        lost = np.append(0, np.cumsum(self.failed)[end - 1])
        return Slots(
            np.flatnonzero(is_event),
            cell,
            np.cumsum(is_event)[cell],
            _sums(self.order, edges, self.n),
            _sums(self.order[self.failed], lost, self.n),
            int(np.diff(edges).max()),
        )


def _sums(samples: IntArray, edges: IntArray, n: int) -> Any:
    """Return the matrix that sums the samples between edges; it need not move them."""
    from scipy.sparse import csr_matrix

    ones = np.ones(samples.size, np.int8)
    index = (samples.astype(np.int32), edges.astype(np.int32))
    return csr_matrix((ones, *index), shape=(edges.size - 1, n))


def _grid(rows: int, pairs: float, n: int) -> IntArray:
    """Return edges of cells from `rows` on: of one sample, of two from `pairs` on, then wider.

    How many samples may share a middle grows with the power 2.5 of the place.
    """
    parts, place = [np.array([0])], rows
    for width in range(1, WIDEST + 1):
        until = n if width == WIDEST else min(n, pairs * ((width + 1) / 2) ** 0.4)
        if place < until:
            parts.append(np.arange(place, until, width).astype(np.int64))
            place = int(parts[-1][-1]) + width
    return np.concatenate(parts)


def ordered(confidence: Array, loss: Array, weight: FloatArray | None = None) -> Ordered:
    """Sort validated samples once."""
    order = np.argsort(-confidence.astype(np.float64, copy=False))
    ranked = confidence[order]
    starts = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
    return Ordered(order, starts, loss[order], None if weight is None else weight[order])
