"""Working points on a grid of coverages and the covariance of their generalized risks.

At a fixed coverage c, the threshold depends on the data. A sample therefore changes the generalized
risk GR(c) by ``a (loss - m) - (GR(c) - m c)``. Here a is the accepted fraction of the sample, which
is 1 above the threshold and 0 below the threshold. All samples of the tie group at the threshold
have the same fraction. The number m is the mean loss of the samples at the threshold, which the new
sample displaces.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups, split_merged_groups
from abstain.typing import FloatArray, IntArray

#: Tolerance for rounding errors of shares of the weight, which are ratios of sums.
_ROUNDING = 1e-12
#: Maximum number of entries of a table of samples and coverages in memory.
_MAX_TABLE_SIZE = 4_000_000


@dataclass(frozen=True, eq=False)
class WorkingPoints:
    """The working points on a grid of coverages.

    Attributes
    ----------
    coverage : ndarray of shape (m,)
        The grid, ascending, in (0, 1].
    group_index : ndarray of shape (m,)
        The tie group at the threshold.
    accepted_fraction : ndarray of shape (m,)
        Accepted fraction of this tie group, in (0, 1].
    generalized_risk : ndarray of shape (m,)
        The generalized risk.
    threshold_loss : ndarray of shape (m,)
        Mean loss of the samples near the threshold, which is the slope of the generalized risk.
    covariance : ndarray of shape (m, m)
        Covariance matrix of the generalized risks.
    effective_size : ndarray of shape (m,)
        Number of independent samples of equal weight that are equivalent to the accepted samples.
    """

    coverage: FloatArray
    group_index: IntArray
    accepted_fraction: FloatArray
    generalized_risk: FloatArray
    threshold_loss: FloatArray
    covariance: FloatArray
    effective_size: FloatArray


def working_points_on_grid(
    s: Scored, coverage: FloatArray, cluster: IntArray | None
) -> WorkingPoints:
    """Compute the working point at each coverage, where `cluster` contains codes from 0."""
    groups = _groups_split_at_thresholds(s, coverage) if cluster is None else s.groups
    group_coverage = groups.cumulative_weight / groups.total_weight
    group_index = np.searchsorted(group_coverage, coverage - _ROUNDING)
    group_index = np.minimum(group_index, group_coverage.size - 1)
    accepted_weight = coverage * groups.total_weight - groups.weight_above[group_index]
    accepted_fraction = np.clip(accepted_weight / groups.weight[group_index], 0.0, 1.0)
    loss_at_threshold = groups.loss[group_index]
    loss_above = groups.cumulative_loss[group_index] - loss_at_threshold
    accepted_loss = loss_above + accepted_fraction * loss_at_threshold
    generalized_risk = accepted_loss / groups.total_weight
    threshold_loss = _loss_near_threshold(groups, coverage, group_index)
    center = generalized_risk - threshold_loss * coverage
    thresholds = _Thresholds(coverage, group_index, accepted_fraction, threshold_loss, center)
    if cluster is None:
        moments = _moments_by_group(s, groups)
        products, effective_size = _independent_products(groups, moments, thresholds)
    else:
        products, effective_size = _clustered_products(s, thresholds, cluster)
    # The independent units are clusters, or samples with positive weight without clusters.
    if s.has_unit_weights and cluster is None:
        n_units = s.n_samples
    else:
        has_weight = np.ones(s.n_rows, np.bool_) if s.weight is None else s.weight > 0
        n_units = int(has_weight.sum()) if cluster is None else np.unique(cluster[has_weight]).size
    scale = n_units / (n_units - 1) if n_units > 1 else float("nan")
    return WorkingPoints(
        coverage,
        group_index,
        accepted_fraction,
        generalized_risk,
        threshold_loss,
        products * scale / groups.total_weight**2,
        effective_size,
    )


def _groups_split_at_thresholds(s: Scored, coverage: FloatArray) -> TieGroups:
    """Split the merged groups so that the samples at the thresholds are vertices.

    At other positions within a merged group, the generalized risk is linear.
    """
    groups = s.merged_groups
    n_accepted = np.floor(coverage * groups.total_weight).astype(np.int64)
    ranks = np.concatenate((n_accepted - 1, n_accepted, n_accepted + 1))
    return split_merged_groups(groups, np.unique(ranks.clip(0, groups.n_samples)))


@dataclass(frozen=True, eq=False)
class _Thresholds:
    """The thresholds of the working points, with the fields of `WorkingPoints`."""

    coverage: FloatArray
    group_index: IntArray
    accepted_fraction: FloatArray
    threshold_loss: FloatArray
    #: The term GR(c) - m c in the formula of the module.
    center: FloatArray


def _loss_near_threshold(
    groups: TieGroups, coverage: FloatArray, group_index: IntArray
) -> FloatArray:
    """Estimate the mean loss at the threshold from the samples around it.

    On each side of the threshold, the window contains the share n^(-1/5)/2 of all samples. Near the
    ends of the coverage, the window is smaller, so that the threshold remains in its center, but it
    contains at least five samples. If a tie group is larger than the window, the tie group replaces
    the window.
    """
    n = groups.n_samples
    half_width = np.minimum(0.5 * n**-0.2, np.minimum(coverage, 1 - coverage))
    half_width = np.maximum(half_width, min(0.5, 5.0 / n))
    low = np.maximum(0.0, coverage - half_width)
    high = np.minimum(1.0, coverage + half_width)
    x = np.concatenate(([0.0], groups.cumulative_weight / groups.total_weight))
    y = np.concatenate(([0.0], groups.cumulative_loss / groups.total_weight))
    slope = (np.interp(high, x, y) - np.interp(low, x, y)) / (high - low)
    is_large_group = groups.weight[group_index] / groups.total_weight >= high - low
    group_loss = groups.loss[group_index] / groups.weight[group_index]
    return np.where(is_large_group, group_loss, slope)


def _independent_products(
    groups: TieGroups, moments: tuple[FloatArray, FloatArray, FloatArray], at: _Thresholds
) -> tuple[FloatArray, FloatArray]:
    """Sum the products of influences at two coverages over independent samples.

    The function uses only sums over tie groups. It returns the sums, shape (m, m), and the
    effective sizes.
    """
    moment_0, moment_1, moment_2 = moments
    m, fraction, group_index = at.threshold_loss, at.accepted_fraction, at.group_index

    def sum_over_accepted(x: FloatArray) -> FloatArray:
        above = np.cumsum(x)[group_index] - x[group_index]
        return np.asarray(above + fraction * x[group_index])

    def products(zero: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        # This is the sum of (l - m_j)(l - m_k) for coverages j and k, computed from moments of the
        # loss l.
        m_sum = m[:, None] + m[None, :]
        return second - m_sum * first + m[:, None] * m[None, :] * zero

    # A sample that the smaller coverage accepts is accepted at both coverages.
    index = np.arange(m.size)
    smaller = np.minimum.outer(index, index)
    sum_0, sum_1, sum_2 = (sum_over_accepted(moment) for moment in moments)
    total = products(sum_0[smaller], sum_1[smaller], sum_2[smaller])
    # If both thresholds are in one tie group, each threshold accepts its own fraction of every
    # member.
    is_same_group = group_index[:, None] == group_index[None, :]
    excess = np.minimum.outer(fraction, fraction) - np.multiply.outer(fraction, fraction)
    group = np.broadcast_to(group_index, is_same_group.shape)
    group_products = products(moment_0[group], moment_1[group], moment_2[group])
    total -= excess * is_same_group * group_products
    cross_term = np.multiply.outer(sum_1 - m * sum_0, at.center)
    total += np.multiply.outer(at.center, at.center) * moment_0.sum() - cross_term - cross_term.T
    # The weight of a member of the group at the threshold is the square of its accepted fraction.
    squared_weights = sum_0 - (fraction - fraction**2) * moment_0[group_index]
    return total, (at.coverage * groups.total_weight) ** 2 / squared_weights


def _moments_by_group(s: Scored, groups: TieGroups) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the sums of w^2, w^2 loss and w^2 loss^2 over the members of each tie group."""
    if s.has_unit_weights and s.is_binary:
        return groups.weight, groups.loss, groups.loss
    has_weight = s.group_index >= 0
    group_index = s.group_index[has_weight]
    loss = s.loss[has_weight].astype(np.float64)
    squared_weight = np.ones(loss.size) if s.weight is None else s.weight[has_weight] ** 2

    def sum_by_group(x: FloatArray) -> FloatArray:
        sums = np.bincount(group_index, x, minlength=groups.weight.size)
        return sums.astype(np.float64)

    return (
        sum_by_group(squared_weight),
        sum_by_group(squared_weight * loss),
        sum_by_group(squared_weight * loss**2),
    )


def _clustered_products(
    s: Scored, at: _Thresholds, cluster: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Sum the products of influences at two coverages over clusters.

    The influences are first summed within each cluster. The function returns the sums, shape (m,
    m), and the effective sizes.
    """
    groups = s.groups
    weight = np.ones(s.n_rows) if s.weight is None else s.weight
    accepted_weight = at.coverage * groups.total_weight
    n_coverages = accepted_weight.size
    total = np.zeros((n_coverages, n_coverages))
    squared_weights = np.zeros(n_coverages)
    n_rows = max(1, _MAX_TABLE_SIZE // n_coverages)
    for rows, starts in _blocks_of_clusters(cluster, s.group_index, n_rows):
        group, w = s.group_index[rows], weight[rows, None]
        weight_above, group_weight = groups.weight_above[group], groups.weight[group]
        fraction = (accepted_weight[None, :] - weight_above[:, None]) / group_weight[:, None]
        fraction = np.clip(fraction, 0.0, 1.0)
        centered_loss = s.loss[rows].astype(np.float64)[:, None] - at.threshold_loss
        influence = (fraction * centered_loss - at.center) * w
        cluster_influence = np.add.reduceat(influence, starts, axis=0)
        total += cluster_influence.T @ cluster_influence
        cluster_weight = np.add.reduceat(fraction * w, starts, axis=0)
        squared_weights += (cluster_weight**2).sum(axis=0)
    return total, accepted_weight**2 / squared_weights


def _blocks_of_clusters(
    cluster: IntArray, group_index: IntArray, n_rows: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield rows of complete clusters and the start of each cluster, about `n_rows` at a time.

    The blocks do not contain rows of weight 0, whose group index is -1.
    """
    has_weight = np.flatnonzero(group_index >= 0)
    order = has_weight[np.argsort(cluster[has_weight], kind="stable")]
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    block = starts // n_rows
    for number in np.unique(block):
        block_starts = starts[block == number]
        later_starts = starts[block > number]
        end = later_starts[0] if later_starts.size else order.size
        yield order[block_starts[0] : end], block_starts - block_starts[0]
