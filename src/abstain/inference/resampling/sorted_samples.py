"""Samples sorted once by confidence, and their partition into slots for all resamples.

A slot is a set of neighbouring samples whose counts a resample may sum first. An *event* is a slot
with a failure or a tie; its trapezoid is evaluated exactly. A *cell* is a slot of successes, for
which a series is enough (see `abstain.inference.resampled_areas`).
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from abstain.typing import Array, BoolArray, FloatArray, IntArray

#: Largest number of samples in a cell. Larger cells save no more time.
MAX_CELL_SIZE = 16

#: Failure shares among fewer accepted samples are divided by this number instead.
_MIN_ACCEPTED_FOR_SHARE = 64


@dataclass(frozen=True, eq=False)
class SlotLayout:
    """A partition of the sorted samples into slots, from the most to the least confident."""

    #: Shape (n_events,). Indices of the slots that are events.
    event_slots: IntArray
    #: Shape (n_cells,). Indices of the slots that are cells.
    cell_slots: IntArray
    #: Shape (n_cells,). Number of events before each cell.
    n_events_before_cell: IntArray
    #: Sparse matrix of shape (n_slots, n) that sums a quantity over the samples of each slot.
    slot_sum: Any
    #: Sparse matrix of shape (n_events, n) that sums a quantity over the failures of each event.
    event_failure_sum: Any
    #: Number of samples in the largest slot.
    max_slot_size: int


@dataclass(frozen=True, eq=False)
class SortedSamples:
    """Samples sorted from the most to the least confident, with their tie groups."""

    #: Shape (n,). Indices that sort the samples.
    order: IntArray
    #: Shape (g,). Position of the first sample of each tie group.
    group_starts: IntArray
    #: Shape (n,). Losses in sorted order.
    loss: Array
    #: Shape (n,). Weights in sorted order.
    weight: FloatArray | None = None
    _layouts: dict[tuple[int, float], SlotLayout] = field(default_factory=dict, repr=False)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.order.size

    @cached_property
    def has_unweighted_binary_loss(self) -> bool:
        """Whether all losses are 0 or 1 and no sample is weighted."""
        return self.weight is None and bool(((self.loss == 0) | (self.loss == 1)).all())

    @cached_property
    def group_ends(self) -> IntArray:
        """Position after the last sample of each tie group."""
        return np.append(self.group_starts[1:], self.n_samples)

    @cached_property
    def is_failure(self) -> BoolArray:
        """Whether each sample is a failure, in sorted order."""
        return np.asarray(self.loss != 0)

    @cached_property
    def first_failure_start(self) -> int:
        """Start of the first tie group with a failure; n if there are no failures."""
        failure_positions = np.flatnonzero(self.is_failure)
        if not failure_positions.size:
            return self.n_samples
        group = np.searchsorted(self.group_starts, failure_positions[0], side="right") - 1
        return int(self.group_starts[group])

    @cached_property
    def is_event(self) -> BoolArray:
        """Whether each group has a failure or a tie; False before the first failure, shape (g,)."""
        has_failure_or_tie = self.is_failure[self.group_starts] | (
            self.group_ends - self.group_starts > 1
        )
        is_event: BoolArray = has_failure_or_tie & (self.group_starts >= self.first_failure_start)
        return is_event

    @cached_property
    def event_bounds(self) -> tuple[IntArray, IntArray]:
        """Start and end positions of the events."""
        return self.group_starts[self.is_event], self.group_ends[self.is_event]

    @cached_property
    def max_risk(self) -> float:
        """Largest share of failures among the accepted samples, damped for the first few."""
        positions = np.flatnonzero(self.is_failure)
        n_failures = np.arange(1, positions.size + 1)
        shares = n_failures / np.maximum(positions + 1, _MIN_ACCEPTED_FOR_SHARE)
        return float(shares.max(initial=0.0))

    def layout(self, n_single: int, pairs_from: float) -> SlotLayout:
        """Return the slots; layouts are cached.

        The first `n_single` samples have slots of one sample. From position `pairs_from` on, cells
        have at least two samples.
        """
        key = (n_single, float(pairs_from))
        if key not in self._layouts:
            self._layouts[key] = self._compute_layout(n_single, pairs_from)
        return self._layouts[key]

    def _compute_layout(self, n_single: int, pairs_from: float) -> SlotLayout:
        is_early = (self.group_starts < n_single) & (self.group_starts >= self.first_failure_start)
        events = np.flatnonzero(self.is_event | is_early)
        event_starts, event_ends = self.group_starts[events], self.group_ends[events]
        cell_edges = _cell_edges(n_single, pairs_from, self.n_samples)
        n_started = np.searchsorted(event_starts, cell_edges, side="right")
        n_ended = np.searchsorted(event_ends, cell_edges, side="right")
        is_within_event = n_started > n_ended
        is_event_start = np.zeros(self.n_samples + 1, bool)
        is_event_start[event_starts] = True
        is_edge = np.zeros(self.n_samples + 1, bool)
        for edges in (event_starts, event_ends, cell_edges[~is_within_event], [0, self.n_samples]):
            is_edge[edges] = True
        slot_edges = np.flatnonzero(is_edge)
        is_event_slot = is_event_start[slot_edges[:-1]]
        cell_slots = np.flatnonzero(~is_event_slot)
        failure_edges = np.append(0, np.cumsum(self.is_failure)[event_ends - 1])
        return SlotLayout(
            event_slots=np.flatnonzero(is_event_slot),
            cell_slots=cell_slots,
            n_events_before_cell=np.cumsum(is_event_slot)[cell_slots],
            slot_sum=_sum_matrix(self.order, slot_edges, self.n_samples),
            event_failure_sum=_sum_matrix(
                self.order[self.is_failure], failure_edges, self.n_samples
            ),
            max_slot_size=int(np.diff(slot_edges).max()),
        )


def _sum_matrix(samples: IntArray, edges: IntArray, n_samples: int) -> Any:
    """Return the sparse matrix that sums `samples[edges[i]:edges[i + 1]]` in row i."""
    from scipy.sparse import csr_matrix

    ones = np.ones(samples.size, np.int8)
    columns, row_pointers = samples.astype(np.int32), edges.astype(np.int32)
    return csr_matrix((ones, columns, row_pointers), shape=(edges.size - 1, n_samples))


def _cell_edges(n_single: int, pairs_from: float, n_samples: int) -> IntArray:
    """Return the edges of cells from position `n_single` on.

    Cells have one sample, from `pairs_from` on two, and then more. The number of samples that may
    share a cell grows with the power 2.5 of the position.
    """
    edges, position = [np.array([0])], n_single
    for width in range(1, MAX_CELL_SIZE + 1):
        end = n_samples
        if width < MAX_CELL_SIZE:
            end = min(n_samples, pairs_from * ((width + 1) / 2) ** 0.4)
        if position < end:
            edges.append(np.arange(position, end, width).astype(np.int64))
            position = int(edges[-1][-1]) + width
    return np.concatenate(edges)


def sort_samples(confidence: Array, loss: Array, weight: FloatArray | None = None) -> SortedSamples:
    """Sort validated samples by descending confidence."""
    order = np.argsort(-confidence.astype(np.float64, copy=False))
    sorted_confidence = confidence[order]
    is_group_start = np.append(True, sorted_confidence[1:] != sorted_confidence[:-1])
    sorted_weight = None if weight is None else weight[order]
    return SortedSamples(order, np.flatnonzero(is_group_start), loss[order], sorted_weight)
