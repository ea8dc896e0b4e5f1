"""Rank weights of area metrics, which are means of losses weighted by rank.

A metric is ``M = sum_g phi_g loss_g / W`` over the tie groups g. Here phi_g is the weight function
phi of the metric, averaged over the ranks in the group. This average is the expectation over random
tie-breaking. W is the weight of all samples.

In this module, r is the ascending rank of a sample, and the most confident sample has rank n.
Positions are counted from the most confident sample, so position k has rank n + 1 - k. A tie group
covers the positions a + 1 to b, where a is `groups.weight_above` and b is
`groups.cumulative_weight`. Its weight is m = b - a.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TypeAlias, cast

import numpy as np

from abstain._foundation.array_functions import reverse_cumulative_sum
from abstain._foundation.arrays import as_scalar, inner, read_only, value_with_gradient
from abstain._foundation.scored import Scored
from abstain._foundation.special import (
    first_asymptotic,
    harmonic,
    harmonic_between,
    log_factorial,
    stirling_tail,
)
from abstain._foundation.tie_groups import GroupsWithLoss, TieGroups, augrc_from_rank_sum
from abstain.curves.quadrature import hyperbolic_weights, linear_weights
from abstain.typing import AnyArray, BoolArray, FloatArray, Scalar

RankWeight: TypeAlias = Callable[[TieGroups], FloatArray]


def rank_weighted_risk(groups: TieGroups, phi: RankWeight) -> Scalar:
    """Return the mean of phi(rank) x loss over all samples."""
    xp = groups.xp
    with_loss = groups
    if phi in RANK_ONLY_WEIGHTS:
        # The weights do not depend on the groups without a loss, which contribute 0.
        with_loss = cast("TieGroups", groups.groups_with_loss)
    if phi is augrc_weight:
        doubled_position = with_loss.weight_above + with_loss.cumulative_weight
        doubled_rank_sum = xp.sum(with_loss.loss * doubled_position)
        total_loss = xp.sum(with_loss.loss)
        return as_scalar(augrc_from_rank_sum(groups.total_weight, total_loss, doubled_rank_sum))
    return as_scalar(xp.sum(phi(with_loss) * with_loss.loss) / groups.total_weight)


def cached_rank_weighted_risk(s: Scored, phi: RankWeight) -> Scalar:
    """Return the mean of phi(rank) x loss, computed once for all metrics of the samples."""
    return s.cached(_rank_weighted_risk, phi)


def _rank_weighted_risk(s: Scored, phi: RankWeight) -> Scalar:
    if phi is trapezoid_weight:
        return trapezoid_area(s.merged_groups, s.merged_groups.cumulative_loss)
    return rank_weighted_risk(s.merged_groups, phi)


def rank_weighted_risk_in_blocks(
    blocks: Iterable[TieGroups], phi: RankWeight, total: float
) -> float:
    """Return the mean of phi(rank) x loss over blocks of groups, most confident first.

    The function supports only weights in `RANK_ONLY_WEIGHTS` and the trapezoid weight. `total` is
    the weight of all blocks.
    """
    if phi is trapezoid_weight:
        return _trapezoid_area_in_blocks(blocks) / total
    weighted_loss = 0.0
    weight_before = 0.0
    for groups in blocks:
        through = weight_before + groups.cumulative_weight
        shifted_groups = GroupsWithLoss(
            groups.loss, groups.weight, through - groups.weight, through, total
        )
        rank_weight = phi(cast("TieGroups", shifted_groups))
        weighted_loss += float(inner(rank_weight, groups.loss))
        weight_before = float(through[-1])
    return weighted_loss / total


def _trapezoid_area_in_blocks(blocks: Iterable[TieGroups]) -> float:
    """Return the product of the trapezoid area under the selective risk and the total weight."""
    area = 0.0
    weight_before = 0.0
    loss_before = 0.0
    last_risk: float | None = None
    for groups in blocks:
        through = weight_before + groups.cumulative_weight
        risk = (loss_before + groups.cumulative_loss) / through
        # The curve is constant to the left of the first group.
        first_left_risk = risk[0] if last_risk is None else last_risk
        left_risk = np.append(first_left_risk, risk[:-1])
        area += float(inner(groups.weight, risk + left_risk)) / 2
        weight_before = float(through[-1])
        loss_before += float(groups.cumulative_loss[-1])
        last_risk = float(risk[-1])
    return area


def trapezoid_area(groups: TieGroups, accepted_loss: AnyArray) -> Scalar:
    """Return the trapezoid area under the selective risk over coverage.

    The curve is constant from the first group to coverage 0. `accepted_loss` is the cumulative
    weight x loss after each group.
    """
    return as_scalar(groups.xp.sum(trapezoid_areas(groups, accepted_loss))) / groups.total_weight


def trapezoid_areas(groups: TieGroups, accepted_loss: AnyArray) -> AnyArray:
    """Return the trapezoid area over each group, multiplied by the weight of all samples.

    After F failures, the risk at position k of a group of merged successes is F/k.
    """
    risk = accepted_loss / groups.cumulative_weight
    risk_before = groups.xp.concat((risk[:1], risk[:-1]))
    areas = groups.weight * (risk + risk_before) / 2
    if groups.is_merged_without_unknown_ties is None:
        return areas
    merged = np.flatnonzero(groups.is_merged_without_unknown_ties & (accepted_loss > 0))
    # The accepted loss is nondecreasing, so the merged groups after a failure are the last ones.
    all_harmonic_sums = harmonic_sums_of_merged_groups(groups)
    harmonic_sums = all_harmonic_sums[all_harmonic_sums.size - merged.size :]
    correction = (risk_before.take(merged) - risk.take(merged)) / 2
    areas[merged] = accepted_loss.take(merged) * harmonic_sums + correction
    return areas


#: Maximum rounding error of an excess, divided by the mean loss. A single failure that ranks above
#: a success has a larger excess, even among millions of samples.
_EXCESS_TOLERANCE = 1e-14


def excess_above_optimum(optimum: Scalar, value: Scalar, s: Scored) -> Scalar:
    """Return the value minus the optimum, or 0 if the difference is a rounding error."""
    excess = value - optimum
    if excess < _EXCESS_TOLERANCE * s.merged_groups.risk:
        # The value and the optimum are summed in different orders. The result is 0 but keeps the
        # gradient.
        zero: Scalar = value_with_gradient(excess, excess * 0.0 + 0.0)
        return zero
    return excess


def cached_on_groups(phi: RankWeight) -> RankWeight:
    """Cache the rank weights in the groups, because several metrics use the same weights."""

    @wraps(phi)
    def recall(groups: TieGroups) -> FloatArray:
        # The record is frozen, so the cache is stored in `__dict__`, as `cached_property` does.
        cache: dict[RankWeight, FloatArray] = groups.__dict__.setdefault("_phi", {})
        if phi not in cache:
            cache[phi] = read_only(phi(groups))
        return cache[phi]

    return recall


def augrc_weight(groups: TieGroups) -> AnyArray:
    """Return (r - 1/2)/n, the weight of the trapezoid area under the generalized risk."""
    mean_rank = groups.total_weight - groups.cumulative_weight + groups.weight / 2
    return mean_rank / groups.total_weight


def sele_weight(groups: TieGroups) -> AnyArray:
    """Return r/n, the weight of SELE."""
    mean_rank = groups.total_weight - groups.cumulative_weight + (groups.weight + 1) / 2
    return mean_rank / groups.total_weight


def two_sele_weight(groups: TieGroups) -> AnyArray:
    """Return 2 r/n, the weight of 2 x SELE."""
    return 2.0 * sele_weight(groups)


@cached_on_groups
def plugin_weight(groups: TieGroups) -> AnyArray:
    """Return the plug-in weight H_n - H_{n-r}, which is H_n - H_{k-1} at position k."""
    a, b, m = groups.weight_above, groups.cumulative_weight, groups.weight
    # The sum of H_{k-1} over k in (a, b] is b H_b - a H_a - m. Its mean over the group is computed
    # from the difference H_b - H_a, because b H_b - a H_a would lose digits by cancellation.
    mean_harmonic = harmonic(b) + a * harmonic_between(a, b) / m - 1.0
    return harmonic(groups.total_weight) - mean_harmonic


@cached_on_groups
def log_weight(groups: TieGroups) -> AnyArray:
    """Return the log weight -ln(1 - r/(n + 1)), which is ln(n + 1) - ln k at position k."""
    xp, a, b, m = groups.xp, groups.weight_above, groups.cumulative_weight, groups.weight
    # The mean of ln k over the positions k of a group is ln(b!/a!)/m.
    n_small = first_asymptotic(a)
    small = (log_factorial(b[:n_small]) - log_factorial(a[:n_small])) / m[:n_small]
    x, y, width = a[n_small:], b[n_small:], m[n_small:]
    # Stirling's series of both factorials are subtracted term by term. The term (x + 1/2) ln(y/x) -
    # m has the size of m, so no digits are lost by cancellation.
    remainder = (x + 0.5) * xp.log1p(width / x) - width + stirling_tail(y) - stirling_tail(x)
    mean_log_position = xp.concat((small, xp.log(y) + remainder / width))
    return float(np.log(groups.total_weight + 1.0)) - mean_log_position


@cached_on_groups
def harmonic_sums_of_merged_groups(groups: TieGroups) -> AnyArray:
    """Return the sum of 1/k over the positions k of each group of merged successes."""
    is_merged = groups.is_merged_without_unknown_ties
    merged = np.zeros(0, np.int64) if is_merged is None else np.flatnonzero(is_merged)
    return harmonic_between(groups.weight_above.take(merged), groups.cumulative_weight.take(merged))


#: Rank weights of a group that depend only on the positions of the group and not on other groups.
RANK_ONLY_WEIGHTS = frozenset(
    {augrc_weight, sele_weight, two_sele_weight, plugin_weight, log_weight}
)


@cached_on_groups
def trapezoid_weight(groups: TieGroups) -> AnyArray:
    """Return the rank weight of the trapezoid area under the selective risk."""
    if groups.is_merged_without_unknown_ties is not None:
        return trapezoid_weight_with_merged_groups(
            groups.cumulative_weight, groups.weight, groups.is_merged_without_unknown_ties
        )
    inverse_coverage = groups.total_weight / groups.cumulative_weight
    return reverse_cumulative_sum(vertex_area_weights(groups) * inverse_coverage)


def trapezoid_weight_with_merged_groups(
    through: FloatArray, weight: FloatArray, is_merged: BoolArray
) -> FloatArray:
    """Return the rank weight of the trapezoid area for groups, some of which are merged.

    The arrays describe all groups or only the least confident groups. `through` is the cumulative
    weight, each group included.
    """
    above = through - weight
    # A point of the curve at position k has the weight 1/k times half the width of its two
    # neighboring segments. Segments inside a merged group have width 1.
    width = np.where(is_merged, 1.0, weight)
    width_after = np.append(width[1:], 0.0)
    last_point = (width + width_after) / (2.0 * through)
    # A sample above a merged group contributes to all inner points of the group. A sample of the
    # group contributes only to its own and later points. On average over the m samples, the inner
    # point at position k counts (k - a)/m times.
    inner_points = np.zeros_like(weight)
    mean_inner_points = np.zeros_like(weight)
    a, b, m = above[is_merged], through[is_merged], weight[is_merged]
    inner_points[is_merged] = harmonic_between(a, b) - 1.0 / b
    mean_inner_points[is_merged] = 1.0 - (1.0 + a * inner_points[is_merged]) / m
    # The curve is constant to coverage 0, so the entire first segment belongs to the first point.
    first_half = np.where(above[:1] == 0, width[:1] / (2.0 * weight[:1]), 0.0)
    mean_inner_points[:1] += first_half
    all_points = inner_points + last_point
    later_points = reverse_cumulative_sum(all_points) - all_points
    return np.asarray(later_points + mean_inner_points + last_point)


@cached_on_groups
def vertex_area_weights(groups: TieGroups) -> AnyArray:
    """Return the weight of the risk at each point of the curve in its trapezoid area.

    From coverage 0 to the first point, the curve is constant. A merged group has one weight, which
    is for its last point.
    """
    return _vertex_area_weights(groups, is_flat_at_start=True)


@cached_on_groups
def vertex_area_weights_from_origin(groups: TieGroups) -> AnyArray:
    """Return the weights of `vertex_area_weights` for a curve with value 0 at coverage 0."""
    return _vertex_area_weights(groups, is_flat_at_start=False)


def _vertex_area_weights(groups: TieGroups, *, is_flat_at_start: bool) -> AnyArray:
    """Return the weights of a curve that is 0 at coverage 0 or constant before its first point."""
    if groups.is_merged is None:
        coverage = groups.cumulative_weight / groups.total_weight
        return linear_weights(coverage, 0.0, 1.0, is_flat_at_start=is_flat_at_start)
    width = groups.last_vertex_weight
    area = (width + np.append(width[1:], 0.0)) / 2
    if is_flat_at_start:
        area[0] += width[0] / 2
    return area / groups.total_weight


def partial_trapezoid_weights(low: float, high: float) -> Callable[[TieGroups], FloatArray]:
    """Return weights of the accepted loss for the trapezoid area under the selective risk.

    The returned function maps tie groups to one weight for each point of the curve. The area is
    between the coverages `low` and `high`.
    """

    def vertex_weights(groups: TieGroups) -> AnyArray:
        coverage = groups.cumulative_weight / groups.total_weight
        area_weights = linear_weights(coverage, low, high, is_flat_at_start=True)
        return area_weights * (groups.total_weight / groups.cumulative_weight)

    return vertex_weights


def partial_hyperbolic_weights(low: float, high: float) -> Callable[[TieGroups], FloatArray]:
    """Return weights of the accepted loss for the exact area under the selective risk."""

    def vertex_weights(groups: TieGroups) -> AnyArray:
        return hyperbolic_weights(groups.cumulative_weight / groups.total_weight, low, high)

    return vertex_weights


def partial_generalized_weights(low: float, high: float) -> Callable[[TieGroups], FloatArray]:
    """Return weights of the accepted loss for the area under the generalized risk."""

    def vertex_weights(groups: TieGroups) -> AnyArray:
        coverage = groups.cumulative_weight / groups.total_weight
        return linear_weights(coverage, low, high, is_flat_at_start=False)

    return vertex_weights


def sample_threshold_weights(groups: TieGroups) -> AnyArray:
    """Return weights of the accepted loss for the mean selective risk over all samples."""
    return groups.weight / groups.cumulative_weight


def rank_weight_from_vertices(vertex_weights: Callable[[TieGroups], FloatArray]) -> RankWeight:
    """Return the rank weight that corresponds to weights of the points of a curve.

    The rank weight of a sample is the sum of the weights of all points at which the sample is
    accepted.
    """

    def rank_weight(groups: TieGroups) -> AnyArray:
        return reverse_cumulative_sum(vertex_weights(groups))

    return rank_weight
