"""What bins of confidence hold: one pass over the samples, without their order."""

from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from abstain._foundation.arrays import of_numpy
from abstain._foundation.foreign import double, without_gradient
from abstain._foundation.ranks import TieGroups, equal_mass_bins
from abstain._foundation.scored import Scored
from abstain._foundation.segments import sums_by
from abstain.typing import AnyArray, Array, FloatArray, IntArray

#: Samples that are put into bins at once, so that temporaries stay in the cache.
_BLOCK = 1 << 14

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


def bin_sums(s: Scored, inner: AnyArray, *, side: Side = "left") -> BinSums:
    """Sum over the b bins between b - 1 edges, each in the wider precision of it and the samples.

    A probability that is an edge lies below it with "left", so bins are (a, b]; above with "right".
    """
    if not of_numpy(s.shown) or s.groups_given is not None:
        return _of_groups(s.probability_groups, inner, side)
    blocks = [
        _of_samples(s, slice(start, start + _BLOCK), inner, side) for start in range(0, s.n, _BLOCK)
    ]
    # A block is summed by itself first, so rounding grows with the blocks only.
    return BinSums(*(sum(getattr(block, f.name) for block in blocks) for f in fields(BinSums)))


def _of_samples(s: Scored, rows: slice, inner: Array, side: Side) -> BinSums:
    p, loss, bins = s.shown[rows], s.loss[rows], inner.size + 1
    place = places_in(p, inner, side)
    if s.weight is None:
        count = np.bincount(place, minlength=bins)
        return BinSums(count, double(count), sums_by(place, p, bins), sums_by(place, loss, bins))
    weight = s.weight[rows]
    return BinSums(
        np.bincount(place[weight > 0], minlength=bins),
        sums_by(place, weight, bins),
        sums_by(place, p * weight, bins),
        sums_by(place, loss * weight, bins),
    )


def places_in(p: Array, inner: Array, side: Side) -> IntArray:
    """Return how many edges are below each value, with "right" also those at it."""
    if inner.size > _COMPARED:
        return np.searchsorted(inner, p, side=side)
    place = np.zeros(p.size, np.int8)
    for edge in inner:
        place += p > edge if side == "left" else p >= edge
    return place.astype(np.int64)


def _of_groups(groups: TieGroups, inner: AnyArray, side: Side) -> BinSums:
    """Sum over groups, in any library."""
    xp, bins = groups.xp, int(inner.shape[0]) + 1
    at = xp.astype(without_gradient(groups.confidence), inner.dtype)
    place = xp.searchsorted(inner, at, side=side)
    mass = groups.weight * groups.confidence
    count, weight, confidence, loss = (
        sums_by(place, x, bins) for x in (groups.count, groups.weight, mass, groups.loss)
    )
    return BinSums(xp.astype(count, groups.count.dtype), weight, confidence, loss)


def mass_edges(s: Scored, bins: int) -> AnyArray:
    """Return the inner edges of bins of about equal weight, as `equal_mass_bins` does.

    Without weights the values are sorted alone, and only the ties at the edges are looked at.
    """
    p = s.shown
    if s.weight is not None or not of_numpy(p) or s.groups_given is not None:
        return equal_mass_bins(s.probability_groups, bins)[1]
    ordered = np.sort(p)
    share = s.n / bins
    number = np.arange(1, bins)
    value = ordered[np.minimum((number * share).astype(np.int64), s.n - 1)]
    start = np.searchsorted(ordered, value)
    end = np.searchsorted(ordered, value, side="right")
    # The ties there are above the edge if the middle of them is.
    above = (start + end) / (2 * share) + _ROUNDING >= number
    cut = np.unique(np.where(above, start, end))
    return ordered[cut[(cut > 0) & (cut < s.n)] - 1].astype(np.float64)
