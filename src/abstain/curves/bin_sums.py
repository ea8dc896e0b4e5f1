"""What bins of confidence hold: one pass over the samples, without their order."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np

from abstain._foundation.array_functions import sum_by_index
from abstain._foundation.arrays import is_numpy
from abstain._foundation.gradients import as_double, without_gradient
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups, equal_mass_bins
from abstain.typing import AnyArray, Array, FloatArray, IntArray

#: Samples that are put into bins at once, so that temporaries stay in the cache.
BLOCK = 1 << 15

#: Neighbors add to numbers of their own: one that adds to the number before it waits for it.
_LANES = 4

#: Up to so many edges it is faster to compare with each of them than to search.
_COMPARED = 48

#: What `equal_mass_bins` takes for equal.
_ROUNDING = 1e-12

Side = Literal["left", "right"]


@dataclass(frozen=True, eq=False)
class BinSums:
    """Sums over the samples of each bin, shape (b,); those of weight 0 are in none."""

    #: Number of samples.
    count: IntArray
    #: Sums of the weight, of weight x confidence and of weight x loss.
    weight: FloatArray
    confidence: FloatArray
    loss: FloatArray


@dataclass(frozen=True, eq=False)
class Cells:
    """The bins between b - 1 edges, successes and failures apart where all losses are either."""

    #: Shape (b - 1,), rising.
    inner: Array
    #: A value at an edge lies below it with "left", above it with "right".
    side: Side
    #: Whether losses are booleans: then the first b cells are of successes, the others of failures.
    parted: bool

    @property
    def bins(self) -> int:
        """Number of bins."""
        return int(self.inner.size) + 1

    @cached_property
    def _lanes(self) -> IntArray:
        """Where the cells of each of neighboring samples begin."""
        cells = self.bins * (1 + self.parted)
        return np.tile(np.arange(0, cells * _LANES, cells), BLOCK // _LANES)

    def places(self, p: Array, loss: Array) -> tuple[Array, IntArray]:
        """Return the bin of each of at most `BLOCK` samples, and where it is added by `sums`."""
        place = _places_in(p, self.inner, self.side)
        failed = loss.view(np.int8) * place.dtype.type(self.bins) if self.parted else 0
        return place, (place + failed) + self._lanes[: p.size]

    def sums(self, index: IntArray, x: Array | None = None) -> FloatArray:
        """Sum x over each cell, or count its samples: shape (2, b) if parted, (1, b) if not."""
        kinds = 1 + self.parted
        shape = (_LANES, kinds, self.bins)
        lanes = np.bincount(index, x, _LANES * kinds * self.bins).reshape(shape)
        return np.asarray(lanes.sum(axis=0))


def bin_sums(s: Scored, inner: AnyArray, *, side: Side = "left") -> BinSums:
    """Sum over the b bins between b - 1 edges, each in the wider precision of it and the samples.

    A probability that is an edge lies below it with "left", so bins are (a, b]; above with "right".
    """
    if not is_numpy(s.probability_or_confidence) or s.precomputed_value_groups is not None:
        return _of_groups(s.probability_groups, inner, side)
    cells = Cells(inner, side, s.loss.dtype.kind == "b")
    blocks = [_of_samples(s, slice(at, at + BLOCK), cells) for at in range(0, s.n_rows, BLOCK)]
    # A block is summed by itself first, so rounding grows with the blocks only.
    return BinSums(*(sum(getattr(block, f.name) for block in blocks) for f in fields(BinSums)))


def _of_samples(s: Scored, rows: slice, cells: Cells) -> BinSums:
    p, loss = s.probability_or_confidence[rows], s.loss[rows]
    weight = None if s.weight is None else s.weight[rows]
    index = cells.places(p, loss)[1]
    own = cells.sums(index, weight)
    count = own if weight is None else cells.sums(index, weight > 0)
    confidence = cells.sums(index, p if weight is None else p * weight)
    mass = own[1] if cells.parted else cells.sums(index, loss if weight is None else loss * weight)
    return BinSums(
        count.sum(axis=0).astype(np.int64),
        as_double(own.sum(axis=0)),
        confidence.sum(axis=0),
        as_double(mass.reshape(cells.bins)),
    )


def _places_in(p: Array, inner: Array, side: Side) -> Array:
    """Return how many edges are below each value, with "right" also those at it."""
    if inner.size > _COMPARED:
        return np.searchsorted(inner, p, side=side)
    place, passed = np.zeros(p.size, np.int8), np.empty(p.size, np.bool_)
    beyond = np.greater if side == "left" else np.greater_equal
    for edge in inner:
        place += beyond(p, edge, out=passed).view(np.int8)
    return place


def _of_groups(groups: TieGroups, inner: AnyArray, side: Side) -> BinSums:
    """Sum over groups, in any library."""
    xp, bins = groups.xp, int(inner.shape[0]) + 1
    at = xp.astype(without_gradient(groups.confidence), inner.dtype)
    place = xp.searchsorted(inner, at, side=side)
    mass = groups.weight * groups.confidence
    count, weight, confidence, loss = (
        sum_by_index(place, x, bins) for x in (groups.count, groups.weight, mass, groups.loss)
    )
    return BinSums(xp.astype(count, groups.count.dtype), weight, confidence, loss)


def mass_edges(s: Scored, bins: int) -> AnyArray:
    """Return the inner edges of bins of about equal weight, as `equal_mass_bins` does.

    Without weights the values are sorted alone, and only the ties at the edges are looked at.
    """
    p = s.probability_or_confidence
    if s.weight is not None or not is_numpy(p) or s.precomputed_value_groups is not None:
        return equal_mass_bins(s.probability_groups, bins)[1]
    ordered = np.sort(p)
    share = s.n_rows / bins
    number = np.arange(1, bins)
    value = ordered[np.minimum((number * share).astype(np.int64), s.n_rows - 1)]
    start = np.searchsorted(ordered, value)
    end = np.searchsorted(ordered, value, side="right")
    # The ties there are above the edge if the middle of them is.
    above = (start + end) / (2 * share) + _ROUNDING >= number
    cut = np.unique(np.where(above, start, end))
    return ordered[cut[(cut > 0) & (cut < s.n_rows)] - 1].astype(np.float64)
