"""Bins of confidence: of equal width, or of about equal weight; tied samples share a bin."""

import numpy as np

from abstain._foundation.foreign import double, numbers_beside, without_gradient
from abstain._foundation.ranks import TieGroups
from abstain.typing import FloatArray, IntArray

# Two ways to the same share of the weight may round to either side of a bin's end.
_ROUNDING = 1e-12


def equal_width_bins(
    groups: TieGroups, bins: int, *, low: float = 0.0, high: float = 1.0
) -> tuple[IntArray, FloatArray]:
    """Return the bin of each group and the b + 1 edges; bins are (a, b], `low` in the first."""
    # k / bins, not linspace: a confidence of 3/15 must compare equal to the edge 3/15.
    edges = low + (high - low) * (np.arange(bins + 1) / bins)
    # In the precision of the confidences: a float32 0.6 lies on the edge 0.6, not above it.
    xp, at = groups.xp, without_gradient(groups.confidence)
    inner = xp.astype(numbers_beside(edges[1:-1], at), at.dtype)
    return xp.searchsorted(inner, at, side="left"), edges


def equal_mass_bins(groups: TieGroups, bins: int) -> tuple[IntArray, FloatArray]:
    """Return the bin of each group and the edges between bins; empty bins are closed up.

    A group lies as a whole in the bin that holds the middle of its weight. Each of the b - 1
    edges is the largest confidence of the bin below it.
    """
    middle = (groups.total - groups.through) + groups.weight / 2
    xp = groups.xp
    place = xp.floor(bins * middle / groups.total + _ROUNDING)
    # Groups come most confident first, so the first of each bin is its largest confidence.
    is_first = xp.concat((place[:1] == place[:1], place[1:] != place[:-1]))
    first = xp.nonzero(is_first)[0]
    inner = xp.flip(double(xp.take(without_gradient(groups.confidence), first[1:])))
    return first.shape[0] - xp.cumulative_sum(xp.astype(is_first, xp.int64)), inner
