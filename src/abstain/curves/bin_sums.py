"""Sum weights, confidences and losses in bins of confidence without sorting."""

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

#: Number of separate sums of each bin, to which consecutive samples are added in turn. This is
#: faster than one sum, because an addition does not have to wait for the previous addition.
_N_LANES = 4

#: Maximum number of edges for which comparisons with each edge are faster than a binary search.
_MAX_COMPARED_EDGES = 48

#: Tolerance of `equal_mass_bins`.
_ROUNDING = 1e-12

Side = Literal["left", "right"]


@dataclass(frozen=True, eq=False)
class BinSums:
    """The number of samples and sums of weight, confidence and loss in each bin, shape (b,)."""

    #: Number of samples.
    count: IntArray
    #: Sums of the weight, of weight x confidence and of weight x loss.
    weight: FloatArray
    confidence: FloatArray
    loss: FloatArray


@dataclass(frozen=True, eq=False)
class BinCells:
    """Bins of confidence, which are subdivided into cells by loss.

    With a boolean loss, the first b cells contain the successes of the b bins, and the others the
    failures. With other losses, each bin is one cell.
    """

    #: Ascending edges, shape (b - 1,).
    edges: Array
    #: Bin of a value that equals an edge: "left" for the bin below, "right" for the bin above.
    side: Side
    #: Whether losses are booleans.
    has_boolean_loss: bool

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return int(self.edges.size) + 1

    @cached_property
    def _lane_offsets(self) -> IntArray:
        """Offset of the cell index of each sample in a block."""
        n_cells = self.n_bins * (1 + self.has_boolean_loss)
        return np.tile(np.arange(0, n_cells * _N_LANES, n_cells), BLOCK // _N_LANES)

    def bin_and_cell_index(self, p: Array, loss: Array) -> tuple[Array, IntArray]:
        """Return the bin indices and the cell indices of at most `BLOCK` samples."""
        index = bin_index(p, self.edges, self.side)
        cell = index
        if self.has_boolean_loss:
            cell = index + loss.view(np.int8) * index.dtype.type(self.n_bins)
        return index, cell + self._lane_offsets[: p.size]

    def sum_by_cell(self, index: IntArray, x: Array | None = None) -> FloatArray:
        """Return the sum of x in each cell, or the number of samples if x is None.

        The shape is (2, b) for a boolean loss (successes, failures), and (1, b) for other losses.
        """
        n_losses = 1 + self.has_boolean_loss
        sums = np.bincount(index, x, _N_LANES * n_losses * self.n_bins)
        sums = sums.reshape(_N_LANES, n_losses, self.n_bins)
        return np.asarray(sums.sum(axis=0))


def bin_sums(s: Scored, edges: AnyArray, *, side: Side = "left") -> BinSums:
    """Compute the sums in b bins of confidence, given the b - 1 inner edges.

    If `side` is "left", each bin includes its upper edge. If `side` is "right", each bin includes
    its lower edge.
    """
    if not is_numpy(s.probability_or_confidence) or s.precomputed_value_groups is not None:
        return _sum_groups(s.probability_groups, edges, side)
    cells = BinCells(edges, side, s.loss.dtype.kind == "b")
    # Each block has its own sum, so the rounding error increases only with the number of blocks.
    block_sums = [
        _sum_samples(s, slice(start, start + BLOCK), cells) for start in range(0, s.n_rows, BLOCK)
    ]
    totals = {
        field.name: sum(getattr(block, field.name) for block in block_sums)
        for field in fields(BinSums)
    }
    return BinSums(**totals)


def _sum_samples(s: Scored, block: slice, cells: BinCells) -> BinSums:
    """Compute the sums over one block of samples."""
    p = s.probability_or_confidence[block]
    loss = s.loss[block]
    weight = None if s.weight is None else s.weight[block]
    index = cells.bin_and_cell_index(p, loss)[1]
    weight_sums = cells.sum_by_cell(index, weight)
    counts = weight_sums if weight is None else cells.sum_by_cell(index, weight > 0)
    weighted_p = p if weight is None else p * weight
    p_sums = cells.sum_by_cell(index, weighted_p)
    if cells.has_boolean_loss:
        # The second row contains the failures.
        loss_sums = weight_sums[1]
    else:
        weighted_loss = loss if weight is None else loss * weight
        loss_sums = cells.sum_by_cell(index, weighted_loss)[0]
    return BinSums(
        count=counts.sum(axis=0).astype(np.int64),
        weight=as_double(weight_sums.sum(axis=0)),
        confidence=p_sums.sum(axis=0),
        loss=as_double(loss_sums),
    )


def bin_index(p: Array, edges: Array, side: Side) -> Array:
    """Return the index of the bin of each value.

    A value at an edge is in the bin below if `side` is "left", otherwise in the bin above.
    """
    if edges.size > _MAX_COMPARED_EDGES:
        return np.searchsorted(edges, p, side=side)
    index = np.zeros(p.size, np.int8)
    is_above = np.empty(p.size, np.bool_)
    compare = np.greater if side == "left" else np.greater_equal
    for edge in edges:
        index += compare(p, edge, out=is_above).view(np.int8)
    return index


def _sum_groups(groups: TieGroups, edges: AnyArray, side: Side) -> BinSums:
    """Compute the sums from tie groups, for arrays of any library."""
    xp = groups.xp
    n_bins = int(edges.shape[0]) + 1
    confidence = xp.astype(without_gradient(groups.confidence), edges.dtype)
    index = xp.searchsorted(edges, confidence, side=side)
    counts = sum_by_index(index, groups.count, n_bins)
    return BinSums(
        count=xp.astype(counts, groups.count.dtype),
        weight=sum_by_index(index, groups.weight, n_bins),
        confidence=sum_by_index(index, groups.weight * groups.confidence, n_bins),
        loss=sum_by_index(index, groups.loss, n_bins),
    )


def equal_mass_edges(s: Scored, bins: int) -> AnyArray:
    """Return the inner edges of bins with about equal weight.

    For unweighted samples, this function is faster than `equal_mass_bins`.
    """
    p = s.probability_or_confidence
    if s.weight is not None or not is_numpy(p) or s.precomputed_value_groups is not None:
        return equal_mass_bins(s.probability_groups, bins)[1]
    sorted_p = np.sort(p)
    samples_per_bin = s.n_rows / bins
    edge_number = np.arange(1, bins)
    edge_index = (edge_number * samples_per_bin).astype(np.int64)
    edge_values = sorted_p[np.minimum(edge_index, s.n_rows - 1)]
    tie_start = np.searchsorted(sorted_p, edge_values)
    tie_end = np.searchsorted(sorted_p, edge_values, side="right")
    # A tie group belongs to the bin that contains the middle of the group.
    is_tie_above = (tie_start + tie_end) / (2 * samples_per_bin) + _ROUNDING >= edge_number
    bin_starts = np.unique(np.where(is_tie_above, tie_start, tie_end))
    inner_starts = bin_starts[(bin_starts > 0) & (bin_starts < s.n_rows)]
    return sorted_p[inner_starts - 1].astype(np.float64)
