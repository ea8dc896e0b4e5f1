"""Sums over bins of confidence, computed in one pass without a sort."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np

from abstain._foundation.array_functions import sum_by_index
from abstain._foundation.arrays import as_double, is_numpy, without_gradient
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups, equal_mass_bins
from abstain.typing import AnyArray, Array, FloatArray, IntArray

#: Number of samples that are processed at once, so that temporary arrays fit into the cache.
BLOCK = 1 << 15

#: Number of separate sums ("lanes") to which consecutive samples are added. An addition to the same
#: sum would have to wait for the previous addition.
_N_LANES = 4

#: Maximum number of edges for which comparisons with each edge are faster than a binary search.
_MAX_COMPARED_EDGES = 48

#: Tolerance of `equal_mass_bins`.
_ROUNDING = 1e-12

Side = Literal["left", "right"]


@dataclass(frozen=True, eq=False)
class BinSums:
    """Sums over the samples of positive weight in each bin, shape (b,)."""

    #: Number of samples.
    count: IntArray
    #: Sums of the weight, of weight x confidence and of weight x loss.
    weight: FloatArray
    confidence: FloatArray
    loss: FloatArray


@dataclass(frozen=True, eq=False)
class BinCells:
    """The b bins between b - 1 edges and the cells in which samples are summed.

    For a boolean loss, each bin has one cell for successes and one cell for failures. For other
    losses, each bin has one cell.
    """

    #: Shape (b - 1,), ascending.
    edges: Array
    #: Side of an edge to which an equal value belongs. "left" is the bin below, and "right" is the
    #: bin above.
    side: Side
    #: Whether losses are booleans. If so, the first b cells are for successes and the others for
    #: failures.
    has_boolean_loss: bool

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return int(self.edges.size) + 1

    @cached_property
    def _lane_offsets(self) -> IntArray:
        """Index of the first cell of the lane of each sample in a block."""
        cells = self.n_bins * (1 + self.has_boolean_loss)
        return np.tile(np.arange(0, cells * _N_LANES, cells), BLOCK // _N_LANES)

    def bin_and_cell_index(self, p: Array, loss: Array) -> tuple[Array, IntArray]:
        """Return the bin and the cell for `sum_by_cell` of each of at most `BLOCK` samples."""
        index = bin_index(p, self.edges, self.side)
        cell = index
        if self.has_boolean_loss:
            cell = index + loss.view(np.int8) * index.dtype.type(self.n_bins)
        return index, cell + self._lane_offsets[: p.size]

    def sum_by_cell(self, index: IntArray, x: Array | None = None) -> FloatArray:
        """Return the sum of x over each cell, or the number of samples.

        The shape is (2, b) for a boolean loss, with successes first, and (1, b) for other losses.
        """
        n_kinds = 1 + self.has_boolean_loss
        shape = (_N_LANES, n_kinds, self.n_bins)
        lanes = np.bincount(index, x, _N_LANES * n_kinds * self.n_bins).reshape(shape)
        return np.asarray(lanes.sum(axis=0))


def bin_sums(s: Scored, edges: AnyArray, *, side: Side = "left") -> BinSums:
    """Compute sums over the b bins between b - 1 edges.

    With side "left", the bins are (a, b]. With side "right", the bins are [a, b). Comparisons use
    the wider precision of edges and samples.
    """
    if not is_numpy(s.probability_or_confidence) or s.precomputed_value_groups is not None:
        return _sum_groups(s.probability_groups, edges, side)
    cells = BinCells(edges, side, s.loss.dtype.kind == "b")
    blocks = [_sum_samples(s, slice(at, at + BLOCK), cells) for at in range(0, s.n_rows, BLOCK)]
    # Each block has its own sum, so the rounding error increases only with the number of blocks.
    return BinSums(*(sum(getattr(block, f.name) for block in blocks) for f in fields(BinSums)))


def _sum_samples(s: Scored, rows: slice, cells: BinCells) -> BinSums:
    """Compute the sums over one block of samples."""
    p, loss = s.probability_or_confidence[rows], s.loss[rows]
    weight = None if s.weight is None else s.weight[rows]
    index = cells.bin_and_cell_index(p, loss)[1]
    weight_sums = cells.sum_by_cell(index, weight)
    count = weight_sums if weight is None else cells.sum_by_cell(index, weight > 0)
    confidence = cells.sum_by_cell(index, p if weight is None else p * weight)
    if cells.has_boolean_loss:
        loss_sums = weight_sums[1]
    else:
        loss_sums = cells.sum_by_cell(index, loss if weight is None else loss * weight)
    return BinSums(
        count.sum(axis=0).astype(np.int64),
        as_double(weight_sums.sum(axis=0)),
        confidence.sum(axis=0),
        as_double(loss_sums.reshape(cells.n_bins)),
    )


def bin_index(p: Array, edges: Array, side: Side) -> Array:
    """Return the number of edges below each value, including equal edges if side is "right"."""
    if edges.size > _MAX_COMPARED_EDGES:
        return np.searchsorted(edges, p, side=side)
    index, is_above = np.zeros(p.size, np.int8), np.empty(p.size, np.bool_)
    compare = np.greater if side == "left" else np.greater_equal
    for edge in edges:
        index += compare(p, edge, out=is_above).view(np.int8)
    return index


def _sum_groups(groups: TieGroups, edges: AnyArray, side: Side) -> BinSums:
    """Compute the sums from tie groups in any array library."""
    xp, n_bins = groups.xp, int(edges.shape[0]) + 1
    values = xp.astype(without_gradient(groups.confidence), edges.dtype)
    index = xp.searchsorted(edges, values, side=side)
    weighted_confidence = groups.weight * groups.confidence
    count, weight, confidence, loss = (
        sum_by_index(index, x, n_bins)
        for x in (groups.count, groups.weight, weighted_confidence, groups.loss)
    )
    return BinSums(xp.astype(count, groups.count.dtype), weight, confidence, loss)


def equal_mass_edges(s: Scored, bins: int) -> AnyArray:
    """Return the same inner edges of bins of about equal weight as `equal_mass_bins`.

    Without weights, the function sorts only the values and inspects only ties at the edges.
    """
    p = s.probability_or_confidence
    if s.weight is not None or not is_numpy(p) or s.precomputed_value_groups is not None:
        return equal_mass_bins(s.probability_groups, bins)[1]
    ordered = np.sort(p)
    samples_per_bin = s.n_rows / bins
    edge_number = np.arange(1, bins)
    edge_values = ordered[
        np.minimum((edge_number * samples_per_bin).astype(np.int64), s.n_rows - 1)
    ]
    start = np.searchsorted(ordered, edge_values)
    end = np.searchsorted(ordered, edge_values, side="right")
    # A tie group belongs to the bin that contains the middle of the group.
    is_tie_above = (start + end) / (2 * samples_per_bin) + _ROUNDING >= edge_number
    edge_rows = np.unique(np.where(is_tie_above, start, end))
    return ordered[edge_rows[(edge_rows > 0) & (edge_rows < s.n_rows)] - 1].astype(np.float64)
