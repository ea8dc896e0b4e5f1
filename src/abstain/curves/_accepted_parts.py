"""What is accepted at each coverage of a grid, and how the risks there vary together.

At coverage c the threshold moves with the data, so a sample changes the generalized risk by
``a (loss - m) - (GR(c) - m c)``: a is the part of it that is accepted (1 above the threshold, the
same fraction for the whole tie group at the threshold, 0 below) and m the mean loss of samples at
the threshold, those that make room for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups, split_merged_groups
from abstain.typing import FloatArray, IntArray

#: Shares of weight closer than this are equal: they are ratios of sums.
_ROUNDING = 1e-12
#: Entries of the table (samples, coverages) that are held at once.
_MEMORY = 4_000_000


@dataclass(frozen=True, eq=False)
class AcceptedParts:
    """The working points on a grid of coverages.

    Attributes
    ----------
    coverage : ndarray of shape (m,)
        The grid, ascending, in (0, 1].
    place : ndarray of shape (m,)
        The tie group at the threshold.
    part : ndarray of shape (m,)
        Which part of that group is accepted, in (0, 1].
    generalized : ndarray of shape (m,)
        The generalized risk.
    slope : ndarray of shape (m,)
        Mean loss of samples near the threshold.
    covariance : ndarray of shape (m, m)
        Of the generalized risks.
    effective : ndarray of shape (m,)
        How many independent equal samples the accepted ones are worth.
    """

    coverage: FloatArray
    place: IntArray
    part: FloatArray
    generalized: FloatArray
    slope: FloatArray
    covariance: FloatArray
    effective: FloatArray


def accepted(s: Scored, coverage: FloatArray, cluster: IntArray | None) -> AcceptedParts:
    """Compute what is accepted at each coverage; `cluster` holds codes from 0."""
    groups = _parted(s, coverage) if cluster is None else s.groups
    share = groups.cumulative_weight / groups.total_weight
    place = np.minimum(np.searchsorted(share, coverage - _ROUNDING), share.size - 1)
    inside = coverage * groups.total_weight - groups.weight_above[place]
    part = np.clip(inside / groups.weight[place], 0.0, 1.0)
    below = groups.cumulative_loss[place] - groups.loss[place]
    generalized = (below + part * groups.loss[place]) / groups.total_weight
    slope = _slope(groups, coverage, place)
    center = generalized - slope * coverage
    points = _Points(coverage, place, part, slope, center)
    if cluster is None:
        sums, effective = _independent(groups, _moments(s, groups), points)
    else:
        sums, effective = _clustered(s, points, cluster)
    units = _units(s, cluster)
    scale = units / (units - 1) if units > 1 else float("nan")
    return AcceptedParts(
        coverage, place, part, generalized, slope, sums * scale / groups.total_weight**2, effective
    )


def _parted(s: Scored, coverage: FloatArray) -> TieGroups:
    """Return the merged groups, split so that the samples at the thresholds are vertices.

    Over merged successes the curve does not bend.
    """
    at = np.floor(coverage * s.merged_groups.total_weight).astype(np.int64)
    near = np.concatenate((at - 1, at, at + 1)).clip(0, s.merged_groups.n_samples)
    return split_merged_groups(s.merged_groups, np.unique(near))


@dataclass(frozen=True, eq=False)
class _Points:
    coverage: FloatArray
    place: IntArray
    part: FloatArray
    slope: FloatArray
    center: FloatArray


def _units(s: Scored, cluster: IntArray | None) -> int:
    if s.has_unit_weights and cluster is None:
        return s.n_samples
    kept = np.ones(s.n_rows, dtype=np.bool_) if s.weight is None else s.weight > 0
    return int(kept.sum()) if cluster is None else int(np.unique(cluster[kept]).size)


def _slope(groups: TieGroups, coverage: FloatArray, place: IntArray) -> FloatArray:
    """Estimate the mean loss at the threshold from the samples around it.

    The window reaches n^(-1/5)/2 of all samples to either side, less near the ends so that the
    threshold stays in its middle, but at least to five samples. A larger tie group is its own
    window.
    """
    n = groups.n_samples
    half = np.minimum(0.5 * n**-0.2, np.minimum(coverage, 1 - coverage))
    half = np.maximum(half, min(0.5, 5.0 / n))
    low, high = np.maximum(0.0, coverage - half), np.minimum(1.0, coverage + half)
    x = np.concatenate(([0.0], groups.cumulative_weight / groups.total_weight))
    y = np.concatenate(([0.0], groups.cumulative_loss / groups.total_weight))
    slope = (np.interp(high, x, y) - np.interp(low, x, y)) / (high - low)
    own = groups.weight[place] / groups.total_weight >= high - low
    return np.where(own, groups.loss[place] / groups.weight[place], slope)


def _independent(
    groups: TieGroups, moments: tuple[FloatArray, FloatArray, FloatArray], at: _Points
) -> tuple[FloatArray, FloatArray]:
    """Sum the products of the influences over samples, from sums over tie groups alone."""
    none, one, two = moments
    m, part, place = at.slope, at.part, at.place

    def sums(x: FloatArray) -> FloatArray:
        return np.asarray(np.cumsum(x)[place] - x[place] + part * x[place])

    def products(zero: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        # sum of a (l - m_j)(l - m_k), when the sums belong to the pair of coverages.
        both = m[:, None] + m[None, :]
        return second - both * first + m[:, None] * m[None, :] * zero

    # What the smaller of two coverages accepts, both do.
    smaller = np.minimum.outer(np.arange(m.size), np.arange(m.size))
    a0, a1, a2 = sums(none), sums(one), sums(two)
    total = products(a0[smaller], a1[smaller], a2[smaller])
    # But of one and the same group at both thresholds each accepts its own part of every member.
    same = place[:, None] == place[None, :]
    excess = (np.minimum.outer(part, part) - np.multiply.outer(part, part)) * same
    g = np.broadcast_to(place, same.shape)
    total -= excess * products(none[g], one[g], two[g])
    tilt = np.multiply.outer(a1 - m * a0, at.center)
    total += np.multiply.outer(at.center, at.center) * none.sum() - tilt - tilt.T
    # Of a group accepted in part all members are known, each counts by its part.
    squares = a0 - (part - part**2) * none[place]
    return total, (at.coverage * groups.total_weight) ** 2 / squares


def _moments(s: Scored, groups: TieGroups) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum w^2, w^2 loss and w^2 loss^2 over the members of each tie group."""
    if s.has_unit_weights and s.is_binary:
        return groups.weight, groups.loss, groups.loss
    home = s.group_index
    kept = home >= 0
    loss = s.loss[kept].astype(np.float64)
    weight = np.ones(loss.size) if s.weight is None else s.weight[kept] ** 2
    size = groups.weight.size
    none, one, two = (
        np.bincount(home[kept], weight * loss**power, minlength=size).astype(np.float64)
        for power in range(3)
    )
    return none, one, two


def _clustered(s: Scored, at: _Points, cluster: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sum the products over clusters, of the influences summed within each."""
    groups = s.groups
    home = s.group_index
    weight = np.ones(s.n_rows) if s.weight is None else s.weight
    above = at.coverage * groups.total_weight
    total = np.zeros((above.size, above.size))
    squares = np.zeros(above.size)
    for rows, starts in _whole_clusters(cluster, home, max(1, _MEMORY // above.size)):
        g, w = home[rows], weight[rows]
        reached = (above[None, :] - groups.weight_above[g][:, None]) / groups.weight[g][:, None]
        taken = np.clip(reached, 0.0, 1.0)
        shift = s.loss[rows].astype(np.float64)[:, None] - at.slope
        parts = np.add.reduceat((taken * shift - at.center) * w[:, None], starts, axis=0)
        total += parts.T @ parts
        squares += (np.add.reduceat(taken * w[:, None], starts, axis=0) ** 2).sum(axis=0)
    return total, above**2 / squares


def _whole_clusters(
    cluster: IntArray, home: IntArray, rows_at_once: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the samples with weight, some whole clusters at a time, and where each one starts."""
    kept = np.flatnonzero(home >= 0)
    order = kept[np.argsort(cluster[kept], kind="stable")]
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    block = starts // rows_at_once
    for number in np.unique(block):
        mine = starts[block == number]
        later = starts[block > number]
        end = later[0] if later.size else order.size
        yield order[mine[0] : end], mine - mine[0]
