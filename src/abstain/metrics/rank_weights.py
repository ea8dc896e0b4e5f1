"""The one kernel: an area metric is a mean of losses, each weighted by the rank of its sample.

``M = sum_g phi_g loss_g / W`` over tie groups g, where phi_g is the weight function of the metric
averaged over the ranks that the group occupies (the expectation over random tie-breaking) and W
is the weight of all samples. In the comments, a group occupies the positions above + 1 to
through, counted from the most confident.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TypeAlias, cast

import numpy as np

from abstain._foundation.array_functions import reverse_cumulative_sum
from abstain._foundation.arrays import inner, read_only
from abstain._foundation.augrc import augrc_from_rank_sum
from abstain._foundation.gradients import as_scalar, value_with_gradient
from abstain._foundation.scored import Scored
from abstain._foundation.special import (
    first_asymptotic,
    harmonic,
    harmonic_between,
    log_factorial,
    stirling_tail,
)
from abstain._foundation.tie_groups import GroupsWithLoss, TieGroups
from abstain.curves.quadrature import hyperbolic_weights, linear_weights
from abstain.typing import AnyArray, BoolArray, FloatArray, Scalar

RankWeight: TypeAlias = Callable[[TieGroups], FloatArray]


def rank_weighted_risk(groups: TieGroups, phi: RankWeight) -> Scalar:
    """Return the mean over all samples of phi(rank) x loss."""
    # Weights by rank read nothing that groups with some loss lack.
    xp, total = groups.xp, groups.total_weight
    with_loss = cast("TieGroups", groups.groups_with_loss) if phi in BY_PLACE else groups
    if phi is augrc_weight:
        doubled_ranks = xp.sum(
            with_loss.loss * (with_loss.weight_above + with_loss.cumulative_weight)
        )
        return as_scalar(augrc_from_rank_sum(total, xp.sum(with_loss.loss), doubled_ranks))
    return as_scalar(xp.sum(phi(with_loss) * with_loss.loss) / total)


def weighted_risk(s: Scored, phi: RankWeight) -> Scalar:
    """Return the same of samples, once for all numbers that are made of it."""
    return s.cached(_weighted_risk, phi)


def _weighted_risk(s: Scored, phi: RankWeight) -> Scalar:
    if phi is trapezoid_weight:
        return trapezoid_area(s.merged_groups, s.merged_groups.cumulative_loss)
    return rank_weighted_risk(s.merged_groups, phi)


def risk_in_blocks(blocks: Iterable[TieGroups], phi: RankWeight, total: float) -> float:
    """Return the same of groups that come in blocks, most confident first, of this weight in all.

    For weights by place, and for those of the trapezoid.
    """
    place, failed, risk, area = 0.0, 0.0, None, 0.0
    for groups in blocks:
        through = place + groups.cumulative_weight
        if phi is trapezoid_weight:
            risks = (failed + groups.cumulative_loss) / through
            before = np.append(risks[0] if risk is None else risk, risks[:-1])
            area += float(inner(groups.weight, risks + before)) / 2
            risk = risks[-1]
        else:
            here = GroupsWithLoss(
                groups.loss, groups.weight, through - groups.weight, through, total
            )
            area += float(inner(phi(cast("TieGroups", here)), groups.loss))
        place, failed = float(through[-1]), failed + float(groups.cumulative_loss[-1])
    return area / total


def trapezoid_area(groups: TieGroups, accepted: AnyArray) -> Scalar:
    """Return the area under the selective risk, of the loss mass accepted at each vertex.

    Flat from the first vertex to coverage 0. Over merged successes behind F failures the risk is
    F/k, summed over k.
    """
    return as_scalar(groups.xp.sum(trapezoids(groups, accepted))) / groups.total_weight


def trapezoids(groups: TieGroups, accepted: AnyArray) -> AnyArray:
    """Return the part of that area at each group, times all weight."""
    xp, through = groups.xp, groups.cumulative_weight
    risk = accepted / through
    before = xp.concat((risk[:1], risk[:-1]))
    area = groups.weight * (risk + before) / 2
    if groups.is_merged_without_unknown_ties is not None:
        here = np.flatnonzero(groups.is_merged_without_unknown_ties & (accepted > 0))
        steps = within_merged_groups(groups)
        # What is accepted never falls, so these are the last.
        beyond = accepted.take(here) * steps[steps.size - here.size :]
        area[here] = beyond + (before.take(here) - risk.take(here)) / 2
    return area


#: An excess of this part of the mean loss is rounding: one failure at the wrong end of millions of
#: samples makes more.
_ROUNDING = 1e-14


def excess_over(optimum: Scalar, value: Scalar, s: Scored) -> Scalar:
    """Return how far a value is above its optimum: 0 for a best order, whatever the rounding.

    Both are sums in different orders, so a best order may come out a hair to either side.
    """
    excess = value - optimum
    return (
        value_with_gradient(excess, excess * 0.0 + 0.0)
        if excess < _ROUNDING * s.merged_groups.risk
        else excess
    )


def remembered(phi: RankWeight) -> RankWeight:
    """Keep the weights on the groups they were computed for: several metrics share them."""

    @wraps(phi)
    def recall(groups: TieGroups) -> FloatArray:
        # As cached_property does: the record stays frozen, its cache is filled.
        cache: dict[RankWeight, FloatArray] = groups.__dict__.setdefault("_phi", {})
        if phi not in cache:
            cache[phi] = read_only(phi(groups))
        return cache[phi]

    return recall


def augrc_weight(groups: TieGroups) -> AnyArray:
    """(r - 1/2)/n: the trapezoid area under the generalized risk."""
    return (
        groups.total_weight - groups.cumulative_weight + groups.weight / 2
    ) / groups.total_weight


def sele_weight(groups: TieGroups) -> AnyArray:
    """r/n."""
    return (
        groups.total_weight - groups.cumulative_weight + (groups.weight + 1) / 2
    ) / groups.total_weight


def two_sele_weight(groups: TieGroups) -> AnyArray:
    """2 r/n."""
    return 2.0 * sele_weight(groups)


@remembered
def plugin_weight(groups: TieGroups) -> AnyArray:
    """H_n - H_{n-r}; a sample at position k from the top counts H_n - H_{k-1}."""
    a, b, m = groups.weight_above, groups.cumulative_weight, groups.weight
    # sum of H_{k-1} over k in (a, b] is b H_b - a H_a - m; written as differences, since the
    # terms themselves are too large for the last digits to survive.
    mean = harmonic(b) + a * harmonic_between(a, b) / m - 1.0
    return harmonic(groups.total_weight) - mean


@remembered
def log_weight(groups: TieGroups) -> AnyArray:
    """-ln(1 - r/(n + 1)); a sample at position k from the top counts ln(n + 1) - ln k."""
    return float(np.log(groups.total_weight + 1.0)) - _mean_log(groups)


@remembered
def within_merged_groups(groups: TieGroups) -> AnyArray:
    """Sum of 1/k over the ranks k of each merged group."""
    is_merged = groups.is_merged_without_unknown_ties
    here = np.zeros(0, np.int64) if is_merged is None else np.flatnonzero(is_merged)
    return harmonic_between(groups.weight_above.take(here), groups.cumulative_weight.take(here))


#: Weights that follow from where a group stands, whatever else there is.
BY_PLACE = frozenset({augrc_weight, sele_weight, two_sele_weight, plugin_weight, log_weight})


@remembered
def trapezoid_weight(groups: TieGroups) -> AnyArray:
    """Trapezoid under the selective risk, flat from the first vertex to coverage 0."""
    if groups.is_merged_without_unknown_ties is not None:
        return trapezoid_in_merged_groups(
            groups.cumulative_weight, groups.weight, groups.is_merged_without_unknown_ties
        )
    return _through_vertices(
        groups, lambda own: vertex_area(own) * (own.total_weight / own.cumulative_weight)
    )


def trapezoid_in_merged_groups(b: FloatArray, m: FloatArray, is_merged: BoolArray) -> FloatArray:
    """Sum the same over the vertices of each merged group, k = b - m + 1 to b.

    Takes `through`, `weight` and `is_merged` of groups, or of the last of them. A vertex counts 1/k
    times half the width of the segments on both sides of it: 1 inside a merged group. A sample
    counts with all vertices from its own on, so a group of m samples has a mean over them, in
    which vertex k counts (k - b + m)/m times.
    """
    a = b - m
    width = np.where(is_merged, 1.0, m)
    after = np.append(width[1:], 0.0)
    inner, mean = np.zeros_like(m), np.zeros_like(m)
    # All vertices of a merged group but the last.
    inner[is_merged] = harmonic_between(a[is_merged], b[is_merged]) - 1.0 / b[is_merged]
    mean[is_merged] = 1.0 - (1.0 + a[is_merged] * inner[is_merged]) / m[is_merged]
    # Flat to coverage 0: all of the first segment belongs to the first vertex.
    mean[:1] += np.where(a[:1] == 0, width[:1] / (2.0 * m[:1]), 0.0)
    last = (width + after) / (2.0 * b)
    whole = inner + last
    later = reverse_cumulative_sum(whole) - whole
    return np.asarray(later + mean + last)


@remembered
def vertex_area(groups: TieGroups) -> AnyArray:
    """Weights on the risks at the vertices: trapezoid area over all coverages, flat at first."""
    if groups.is_merged is not None:
        return _area_of_last(groups, flat=True)
    return linear_weights(groups.cumulative_weight / groups.total_weight, 0.0, 1.0, flat=True)


@remembered
def vertex_area_rising(groups: TieGroups) -> AnyArray:
    """Compute the same for a curve that rises from the origin."""
    if groups.is_merged is not None:
        return _area_of_last(groups, flat=False)
    return linear_weights(groups.cumulative_weight / groups.total_weight, 0.0, 1.0, flat=False)


def _area_of_last(groups: TieGroups, *, flat: bool) -> AnyArray:
    """Weights on the last vertex of each merged group, and on those of the other groups."""
    width = groups.last_vertex_weight
    area = (width + np.append(width[1:], 0.0)) / 2
    area[:1] += width[:1] / 2 if flat else 0.0
    return area / groups.total_weight


def partial_selective(low: float, high: float) -> Callable[[TieGroups], FloatArray]:
    """Weights on the loss mass accepted at each vertex: trapezoid under the selective risk."""

    def on_vertices(groups: TieGroups) -> AnyArray:
        area = linear_weights(groups.cumulative_weight / groups.total_weight, low, high, flat=True)
        return area * (groups.total_weight / groups.cumulative_weight)

    return on_vertices


def partial_hyperbolic(low: float, high: float) -> Callable[[TieGroups], FloatArray]:
    """Weights on the loss mass accepted at each vertex: exact area under the selective risk."""

    def on_vertices(groups: TieGroups) -> AnyArray:
        return hyperbolic_weights(groups.cumulative_weight / groups.total_weight, low, high)

    return on_vertices


def partial_generalized(low: float, high: float) -> Callable[[TieGroups], FloatArray]:
    """Weights on the loss mass accepted at each vertex: area under the generalized risk."""

    def on_vertices(groups: TieGroups) -> AnyArray:
        return linear_weights(groups.cumulative_weight / groups.total_weight, low, high, flat=False)

    return on_vertices


def own_threshold(groups: TieGroups) -> AnyArray:
    """Weights on the loss mass accepted at each vertex: each sample's own threshold once."""
    return groups.weight / groups.cumulative_weight


def rank_weight(on_vertices: Callable[[TieGroups], FloatArray]) -> RankWeight:
    """Turn weights on vertices into weights on samples: a sample counts at every vertex below."""
    return lambda groups: _through_vertices(groups, on_vertices)


def _through_vertices(
    groups: TieGroups, on_vertices: Callable[[TieGroups], FloatArray]
) -> AnyArray:
    return reverse_cumulative_sum(on_vertices(groups))


def _mean_log(groups: TieGroups) -> AnyArray:
    """Mean of ln k over the positions k of each group: ln of Gamma(b + 1)/Gamma(a + 1) over m."""
    xp, a, b, m = groups.xp, groups.weight_above, groups.cumulative_weight, groups.weight
    cut = first_asymptotic(a)
    near = (log_factorial(b[:cut]) - log_factorial(a[:cut])) / m[:cut]
    x, y, w = a[cut:], b[cut:], m[cut:]
    # Stirling for both, differenced by hand: (x + 1/2) ln(y/x) - m stays of the size of m.
    rest = (x + 0.5) * xp.log1p(w / x) - w + stirling_tail(y) - stirling_tail(x)
    return xp.concat((near, xp.log(y) + rest / w))
