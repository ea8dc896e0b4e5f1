"""Compute thresholds and risks at fixed coverages, and the covariance of the risks.

At a fixed coverage c, the influence of a sample on the generalized risk GR(c) is
``a (loss - m) - (GR(c) - m c)``, where

- a is the accepted fraction of the sample, which is 1 above the threshold, 0 below the threshold,
  and equal for all samples of the tie group at the threshold, and
- m is the mean loss of the samples at the threshold.
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
    """The working points at several coverages.

    Attributes
    ----------
    coverage : ndarray of shape (m,)
        Ascending coverages in (0, 1].
    group_index : ndarray of shape (m,)
        Index of the tie group at each threshold.
    accepted_fraction : ndarray of shape (m,)
        Accepted fraction of the tie group at each threshold, in (0, 1].
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
    """Compute the threshold and the risk at each coverage, and the covariance of the risks.

    `cluster` contains the integer code of the cluster of each sample, or is None if the samples are
    independent.
    """
    groups = _groups_split_at_thresholds(s, coverage) if cluster is None else s.groups
    thresholds = _thresholds_at_coverages(groups, coverage)
    if cluster is None:
        moments = _moments_by_group(s, groups)
        products, effective_size = _independent_products(groups, moments, thresholds)
    else:
        products, effective_size = _clustered_products(s, thresholds, cluster)
    n_independent = _n_independent(s, cluster)
    correction = n_independent / (n_independent - 1) if n_independent > 1 else float("nan")
    return WorkingPoints(
        coverage=coverage,
        group_index=thresholds.group_index,
        accepted_fraction=thresholds.accepted_fraction,
        generalized_risk=thresholds.generalized_risk,
        threshold_loss=thresholds.threshold_loss,
        covariance=products * correction / groups.total_weight**2,
        effective_size=effective_size,
    )


def _n_independent(s: Scored, cluster: IntArray | None) -> int:
    """Return the number of clusters, or of samples if there are no clusters."""
    if s.has_unit_weights and cluster is None:
        return s.n_samples
    has_weight = np.ones(s.n_rows, np.bool_) if s.weight is None else s.weight > 0
    if cluster is None:
        return int(has_weight.sum())
    return np.unique(cluster[has_weight]).size


def _groups_split_at_thresholds(s: Scored, coverage: FloatArray) -> TieGroups:
    """Split merged groups, so that samples adjacent to the thresholds have separate groups."""
    groups = s.merged_groups
    n_accepted = np.floor(coverage * groups.total_weight).astype(np.int64)
    ranks = np.concatenate((n_accepted - 1, n_accepted, n_accepted + 1))
    return split_merged_groups(groups, np.unique(ranks.clip(0, groups.n_samples)))


@dataclass(frozen=True, eq=False)
class _Thresholds:
    """Thresholds at fixed coverages, with fields of `WorkingPoints`."""

    coverage: FloatArray
    group_index: IntArray
    accepted_fraction: FloatArray
    generalized_risk: FloatArray
    threshold_loss: FloatArray

    @property
    def center(self) -> FloatArray:
        """Generalized risk minus `threshold_loss` times coverage, shape (m,)."""
        return self.generalized_risk - self.threshold_loss * self.coverage


def _thresholds_at_coverages(groups: TieGroups, coverage: FloatArray) -> _Thresholds:
    """Find the tie group of each threshold, and compute the generalized risk."""
    group_coverage = groups.cumulative_weight / groups.total_weight
    group_index = np.searchsorted(group_coverage, coverage - _ROUNDING)
    group_index = np.minimum(group_index, group_coverage.size - 1)
    accepted_weight = coverage * groups.total_weight - groups.weight_above[group_index]
    accepted_fraction = np.clip(accepted_weight / groups.weight[group_index], 0.0, 1.0)
    loss_at_threshold = groups.loss[group_index]
    loss_above = groups.cumulative_loss[group_index] - loss_at_threshold
    accepted_loss = loss_above + accepted_fraction * loss_at_threshold
    return _Thresholds(
        coverage=coverage,
        group_index=group_index,
        accepted_fraction=accepted_fraction,
        generalized_risk=accepted_loss / groups.total_weight,
        threshold_loss=_loss_near_threshold(groups, coverage, group_index),
    )


def _loss_near_threshold(
    groups: TieGroups, coverage: FloatArray, group_index: IntArray
) -> FloatArray:
    """Estimate the mean loss at each threshold from the samples near the threshold.

    On each side of the threshold, a share of n^(-1/5)/2 of all samples is used. Near coverage 0 and
    1, fewer samples are used, but at least five. If the tie group at the threshold has more
    samples, its mean loss is used.
    """
    n = groups.n_samples
    half_width = np.minimum(0.5 * n**-0.2, np.minimum(coverage, 1 - coverage))
    half_width = np.maximum(half_width, min(0.5, 5.0 / n))
    low = np.maximum(0.0, coverage - half_width)
    high = np.minimum(1.0, coverage + half_width)
    curve_coverage = np.concatenate(([0.0], groups.cumulative_weight / groups.total_weight))
    curve_risk = np.concatenate(([0.0], groups.cumulative_loss / groups.total_weight))
    risk_low = np.interp(low, curve_coverage, curve_risk)
    risk_high = np.interp(high, curve_coverage, curve_risk)
    # The slope of the generalized risk is the mean loss of the samples in the window.
    window_loss = (risk_high - risk_low) / (high - low)
    group_loss = groups.loss[group_index] / groups.weight[group_index]
    is_large_group = groups.weight[group_index] / groups.total_weight >= high - low
    return np.where(is_large_group, group_loss, window_loss)


def _independent_products(
    groups: TieGroups, moments: list[FloatArray], thresholds: _Thresholds
) -> tuple[FloatArray, FloatArray]:
    """Sum the products of influences at coverages j and k over samples, for all pairs (j, k).

    `moments` is the result of `_moments_by_group`. Returns the sums, shape (m, m), and the
    effective sample sizes, shape (m,).
    """
    fraction = thresholds.accepted_fraction
    center = thresholds.center
    squared_weight = _sum_over_accepted(moments[0], thresholds)
    squared_weight_loss = _sum_over_accepted(moments[1], thresholds)
    total = _products_of_accepted(moments, thresholds)
    accepted_influence = squared_weight_loss - thresholds.threshold_loss * squared_weight
    cross_term = np.multiply.outer(accepted_influence, center)
    total += np.multiply.outer(center, center) * moments[0].sum() - cross_term - cross_term.T
    # A sample of the group at the threshold counts with the square of its accepted fraction.
    excess_weight = (fraction - fraction**2) * moments[0][thresholds.group_index]
    accepted_weight = thresholds.coverage * groups.total_weight
    return total, accepted_weight**2 / (squared_weight - excess_weight)


def _products_of_accepted(moments: list[FloatArray], thresholds: _Thresholds) -> FloatArray:
    """Sum w^2 a_j (loss - m_j) a_k (loss - m_k) over the samples, for all coverages j and k.

    In this formula, a is the accepted fraction of the sample, and m is the mean loss at the
    threshold.
    """
    fraction = thresholds.accepted_fraction
    group_index = thresholds.group_index
    # A sample that is accepted at the smaller of two coverages is accepted at both coverages.
    coverage_index = np.arange(fraction.size)
    smaller_coverage = np.minimum.outer(coverage_index, coverage_index)
    accepted_sums = [_sum_over_accepted(moment, thresholds) for moment in moments]
    accepted_at_both = [accepted_sum[smaller_coverage] for accepted_sum in accepted_sums]
    total = _centered_products(accepted_at_both, thresholds.threshold_loss)
    # Two thresholds in one tie group accept different fractions of each of its samples.
    is_same_group = group_index[:, None] == group_index[None, :]
    group_at_both = np.broadcast_to(group_index, is_same_group.shape)
    group_moments = [moment[group_at_both] for moment in moments]
    group_products = _centered_products(group_moments, thresholds.threshold_loss)
    excess = np.minimum.outer(fraction, fraction) - np.multiply.outer(fraction, fraction)
    total -= excess * is_same_group * group_products
    return total


def _sum_over_accepted(x: FloatArray, thresholds: _Thresholds) -> FloatArray:
    """Sum `x`, which has one value per tie group, over the samples that each threshold accepts."""
    at_threshold = x[thresholds.group_index]
    above = np.cumsum(x)[thresholds.group_index] - at_threshold
    return np.asarray(above + thresholds.accepted_fraction * at_threshold)


def _centered_products(moments: list[FloatArray], threshold_loss: FloatArray) -> FloatArray:
    """Return the sums of w^2 (loss - m_j) (loss - m_k) for all coverages j and k.

    `moments` contains the sums of w^2, w^2 loss and w^2 loss^2. `threshold_loss` is m.
    """
    squared_weight, squared_weight_loss, squared_weight_squared_loss = moments
    m_j = threshold_loss[:, None]
    m_k = threshold_loss[None, :]
    linear_term = (m_j + m_k) * squared_weight_loss
    return squared_weight_squared_loss - linear_term + m_j * m_k * squared_weight


def _moments_by_group(s: Scored, groups: TieGroups) -> list[FloatArray]:
    """Return the sums of w^2, w^2 loss and w^2 loss^2 in each tie group."""
    if s.has_unit_weights and s.is_binary:
        return [groups.weight, groups.loss, groups.loss]
    has_weight = s.group_index >= 0
    group_index = s.group_index[has_weight]
    loss = s.loss[has_weight].astype(np.float64)
    squared_weight = np.ones(loss.size) if s.weight is None else s.weight[has_weight] ** 2

    def sum_by_group(x: FloatArray) -> FloatArray:
        sums = np.bincount(group_index, x, minlength=groups.weight.size)
        return sums.astype(np.float64)

    return [
        sum_by_group(squared_weight),
        sum_by_group(squared_weight * loss),
        sum_by_group(squared_weight * loss**2),
    ]


def _clustered_products(
    s: Scored, thresholds: _Thresholds, cluster: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Sum the products of influences at coverages j and k over clusters, for all pairs (j, k).

    The influence of a cluster is the sum of the influences of its samples. Returns the sums, shape
    (m, m), and the effective sample sizes, shape (m,).
    """
    groups = s.groups
    weight = np.ones(s.n_rows) if s.weight is None else s.weight
    accepted_weight = thresholds.coverage * groups.total_weight
    n_coverages = accepted_weight.size
    total = np.zeros((n_coverages, n_coverages))
    squared_weights = np.zeros(n_coverages)
    block_size = max(1, _MAX_TABLE_SIZE // n_coverages)
    for index, starts in _blocks_of_clusters(cluster, s.group_index, block_size):
        group = s.group_index[index]
        sample_weight = weight[index, None]
        weight_above = groups.weight_above[group, None]
        fraction = (accepted_weight - weight_above) / groups.weight[group, None]
        fraction = np.clip(fraction, 0.0, 1.0)
        centered_loss = s.loss[index, None].astype(np.float64) - thresholds.threshold_loss
        influence = (fraction * centered_loss - thresholds.center) * sample_weight
        cluster_influence = np.add.reduceat(influence, starts, axis=0)
        total += cluster_influence.T @ cluster_influence
        cluster_weight = np.add.reduceat(fraction * sample_weight, starts, axis=0)
        squared_weights += (cluster_weight**2).sum(axis=0)
    return total, accepted_weight**2 / squared_weights


def _blocks_of_clusters(
    cluster: IntArray, group_index: IntArray, block_size: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield blocks of complete clusters with about `block_size` samples.

    Each block is a pair: the sample indices, and the position of the first sample of each cluster.
    Samples of weight 0 (group index -1) are omitted.
    """
    has_weight = np.flatnonzero(group_index >= 0)
    order = has_weight[np.argsort(cluster[has_weight], kind="stable")]
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    block_of_cluster = starts // block_size
    for block in np.unique(block_of_cluster):
        block_starts = starts[block_of_cluster == block]
        later_starts = starts[block_of_cluster > block]
        end = later_starts[0] if later_starts.size else order.size
        yield order[block_starts[0] : end], block_starts - block_starts[0]
