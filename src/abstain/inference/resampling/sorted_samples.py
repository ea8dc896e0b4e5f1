"""Samples that are sorted once by confidence and partitioned into slots for all resamples.

A slot is a sequence of neighboring samples. A tie group with a failure or with several samples is
an *exact* slot, whose area is computed exactly. The first samples are also exact slots. Every other
slot is a *cell* of up to 16 successes, whose area is computed by a series (see
`abstain.inference.resampled_areas`).

A success that is drawn k times, after m accepted samples with a risk of about `max_risk`, adds to
total x AURC the area of k trapezoids of width 1 and

    max_risk (k^3 - k) / (6 m^2) (1 + (3 k^2 - 2) / (10 m^2) + ...)

The kernels sum only the first term, with one center m for each cell.
"""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from abstain._foundation.arrays import read_only
from abstain._foundation.lazy_imports import special
from abstain.typing import Array, BoolArray, FloatArray, IntArray

#: Maximum number of samples in a cell, because larger cells do not save more time.
MAX_CELL_SIZE = 16

#: Minimum divisor of the share of failures among the accepted samples.
_MIN_ACCEPTED_FOR_SHARE = 64


@dataclass(frozen=True, eq=False)
class SlotLayout:
    """A partition of the sorted samples into slots, from the most to the least confident."""

    #: Shape (n_groups,). Indices of the slots that are computed exactly.
    exact_slots: IntArray
    #: Shape (n_cells,). Indices of the slots that are cells.
    cell_slots: IntArray
    #: Shape (n_cells,). Number of exact slots before each cell.
    n_exact_before_cell: IntArray
    #: Sparse matrix of shape (n_slots, n) that sums over the samples of each slot.
    slot_sum: Any
    #: Sparse matrix of shape (n_groups, n) that sums over the failures of each exact slot.
    failure_sum: Any
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
        """Position of the first tie group with a failure, or n if there are no failures."""
        failure_positions = np.flatnonzero(self.is_failure)
        if not failure_positions.size:
            return self.n_samples
        group = np.searchsorted(self.group_starts, failure_positions[0], side="right") - 1
        return int(self.group_starts[group])

    @cached_property
    def is_exact(self) -> BoolArray:
        """Whether the area of each tie group is computed exactly, shape (g,)."""
        has_failure = self.is_failure[self.group_starts]
        has_ties = self.group_ends - self.group_starts > 1
        # The risk before the first failure is 0.
        has_risk = self.group_starts >= self.first_failure_start
        is_exact: BoolArray = (has_failure | has_ties) & has_risk
        return is_exact

    @cached_property
    def exact_bounds(self) -> tuple[IntArray, IntArray]:
        """Start and end positions of the exactly computed groups."""
        return self.group_starts[self.is_exact], self.group_ends[self.is_exact]

    @cached_property
    def max_risk(self) -> float:
        """Largest selective risk, computed as if at least 64 samples were accepted."""
        positions = np.flatnonzero(self.is_failure)
        n_failures = np.arange(1, positions.size + 1)
        shares = n_failures / np.maximum(positions + 1, _MIN_ACCEPTED_FOR_SHARE)
        return float(shares.max(initial=0.0))

    def layout(self, n_single: int, pairs_from: float) -> SlotLayout:
        """Return a cached partition of the samples into slots.

        Each of the first `n_single` samples is a separate slot. From position `pairs_from` on, a
        cell contains at least two samples.
        """
        key = (n_single, float(pairs_from))
        if key not in self._layouts:
            self._layouts[key] = self._compute_layout(n_single, pairs_from)
        return self._layouts[key]

    def _compute_layout(self, n_single: int, pairs_from: float) -> SlotLayout:
        """Divide the sorted samples into exact slots and cells."""
        is_early = (self.group_starts < n_single) & (self.group_starts >= self.first_failure_start)
        exact_groups = np.flatnonzero(self.is_exact | is_early)
        exact_starts = self.group_starts[exact_groups]
        exact_ends = self.group_ends[exact_groups]
        cell_edges = _cell_edges(n_single, pairs_from, self.n_samples)
        slot_edges = _slot_edges(exact_starts, exact_ends, cell_edges, self.n_samples)
        is_exact_start = np.zeros(self.n_samples + 1, bool)
        is_exact_start[exact_starts] = True
        is_exact_slot = is_exact_start[slot_edges[:-1]]
        cell_slots = np.flatnonzero(~is_exact_slot)
        failure_edges = np.append(0, np.cumsum(self.is_failure)[exact_ends - 1])
        return SlotLayout(
            exact_slots=np.flatnonzero(is_exact_slot),
            cell_slots=cell_slots,
            n_exact_before_cell=np.cumsum(is_exact_slot)[cell_slots],
            slot_sum=_sum_matrix(self.order, slot_edges, self.n_samples),
            failure_sum=_sum_matrix(self.order[self.is_failure], failure_edges, self.n_samples),
            max_slot_size=int(np.diff(slot_edges).max()),
        )


def _sum_matrix(samples: IntArray, edges: IntArray, n_samples: int) -> Any:
    """Return the sparse matrix whose row i sums `samples[edges[i]:edges[i + 1]]`."""
    from scipy.sparse import csr_matrix

    ones = np.ones(samples.size, np.int8)
    columns = samples.astype(np.int32)
    row_pointers = edges.astype(np.int32)
    return csr_matrix((ones, columns, row_pointers), shape=(edges.size - 1, n_samples))


def _slot_edges(
    exact_starts: IntArray, exact_ends: IntArray, cell_edges: IntArray, n_samples: int
) -> IntArray:
    """Return the edges of all slots, which are exact slots or cells."""
    n_started = np.searchsorted(exact_starts, cell_edges, side="right")
    n_ended = np.searchsorted(exact_ends, cell_edges, side="right")
    is_within_exact = n_started > n_ended
    is_edge = np.zeros(n_samples + 1, bool)
    is_edge[[0, n_samples]] = True
    is_edge[exact_starts] = True
    is_edge[exact_ends] = True
    is_edge[cell_edges[~is_within_exact]] = True
    return np.flatnonzero(is_edge)


def _cell_edges(n_single: int, pairs_from: float, n_samples: int) -> IntArray:
    """Return the edges of cells from position `n_single` on.

    Up to position `pairs_from`, each cell contains one sample. Later cells contain up to 16.
    """
    # The truncation error of a cell decreases with the position to the power 2.5.
    edges = [np.array([0])]
    position = n_single
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


#: Maximum sum of the truncated terms, which is a fifth of the guaranteed accuracy of 1e-12.
_MAX_TRUNCATION_ERROR = 2e-13

#: The same maximum for terms of random sign, which mostly cancel. The largest measured error was
#: 5e-13, for 1,000 to 30,000 samples with 5% to 30% failures.
_MAX_RANDOM_TRUNCATION_ERROR = 4e-13

#: Factor on the random error if the samples of a cluster are neighbors in the order.
_CLUSTER_FACTOR = 4.0


@dataclass(frozen=True)
class CountMoments:
    """Moments and maximum of the counts k in a block of resamples."""

    #: Means of k^3 and k^5.
    mean_cube: float
    mean_fifth_power: float
    #: Root mean square of (k^3 - k) / 6.
    rms_excess: float
    #: Largest count.
    max_count: int
    #: Number of samples in the largest resample.
    max_total: int

    @classmethod
    def from_counts(cls, counts: Array, max_total: int, *, clustered: bool) -> "CountMoments":
        """Compute the moments of the counts in the first four resamples."""
        k = counts[:, :4].astype(np.float64)
        square = k * k
        cube = square * k
        rms_excess = float(np.sqrt(np.mean((cube - k) ** 2))) / 6.0
        if clustered:
            # The samples of a cluster are drawn together. If they are neighbors in the order, their
            # errors add up.
            rms_excess *= _CLUSTER_FACTOR
        fifth_power = float(np.mean(cube * square))
        return cls(float(cube.mean()), fifth_power, rms_excess, int(counts.max()), max_total)

    def min_accepted_four_around_center(self, max_risk: float) -> float:
        """Return the minimum number of accepted samples for an expansion of four centers."""
        # After m accepted samples, the truncation error is max_risk / (3 total m^3) times the mean
        # of k^5 / 20 (series) plus the mean of k^3 (expansion of the centers).
        return self._min_accepted(self.mean_fifth_power / 20.0 + self.mean_cube, max_risk)

    def min_accepted_single_centers(self, max_risk: float) -> float:
        """Return the minimum number of accepted samples for the series of a single success."""
        return self._min_accepted(self.mean_fifth_power / 20.0, max_risk)

    def min_accepted_shared_center(self, max_risk: float) -> float:
        """Return the minimum number of accepted samples for two successes with one center."""
        # The error of a cell of L samples has a random sign and a size of about 3 max_risk / m^3
        # sqrt(L^3 / 12) rms_excess. The root of the sum of squared errors from m on is 0.39 L
        # max_risk rms_excess / (total m^2.5).
        error_scale = 2.0 * 0.39 * max_risk * self.rms_excess
        relative_error = error_scale / (_MAX_RANDOM_TRUNCATION_ERROR * self.max_total)
        return max(16.0 * self.max_count, float(relative_error**0.4))

    def _min_accepted(self, mean_power: float, max_risk: float) -> float:
        cube = max_risk * mean_power / (3.0 * _MAX_TRUNCATION_ERROR * self.max_total)
        return max(16.0 * self.max_count, float(np.cbrt(cube)))


class HarmonicTables(NamedTuple):
    """Tables of functions of the number of samples c for c = 0, 1, 2, ..."""

    #: H_c - 1/(2c). The difference of two entries is the area of the trapezoids of width 1 under
    #: 1/x.
    trapezoid: FloatArray
    #: H_0 + ... + H_{c-1}, the sum of the harmonic numbers.
    harmonic_sum: FloatArray


class RequestedAreas(NamedTuple):
    """Areas that are computed in addition to the AUGRC."""

    #: The trapezoid AURC.
    aurc: bool
    #: The plug-in AURC.
    plugin: bool


@lru_cache(maxsize=2)
def harmonic_tables(max_total: int) -> HarmonicTables:
    """Compute the tables for 0 to `max_total` samples."""
    c = np.arange(max_total + 1.0)
    harmonic = special.digamma(c + 1.0) + np.euler_gamma
    harmonic[0] = 0.0
    trapezoid = harmonic - 0.5 / np.maximum(c, 1.0)
    trapezoid[0] = 0.0
    return HarmonicTables(read_only(trapezoid), read_only(c * harmonic - c))
