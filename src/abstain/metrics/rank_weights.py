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

from abstain._foundation.arrays import inner, sealed
from abstain._foundation.augrc import augrc_from_rank_sum
from abstain._foundation.foreign import scalar, value_from
from abstain._foundation.ranks import GroupsWithLoss, TieGroups
from abstain._foundation.scored import Scored
from abstain._foundation.segments import still_to_come
from abstain._foundation.special import (
    first_of_series,
    harmonic,
    harmonic_between,
    log_factorial,
    stirling_tail,
)
from abstain.curves.quadrature import hyperbolic_weights, linear_weights
from abstain.typing import AnyArray, BoolArray, FloatArray, Scalar

RankWeight: TypeAlias = Callable[[TieGroups], FloatArray]


def rank_weighted_risk(groups: TieGroups, phi: RankWeight) -> Scalar:
    """Return the mean over all samples of phi(rank) x loss."""
    # Weights by rank read nothing that groups with some loss lack.
    xp, total = groups.xp, groups.total
    with_loss = cast("TieGroups", groups.with_loss) if phi in RANK_ONLY_WEIGHTS else groups
    if phi is augrc_weight:
        doubled_ranks = xp.sum(with_loss.loss * (with_loss.above + with_loss.through))
        return scalar(augrc_from_rank_sum(total, xp.sum(with_loss.loss), doubled_ranks))
    return scalar(xp.sum(phi(with_loss) * with_loss.loss) / total)


def cached_rank_weighted_risk(s: Scored, phi: RankWeight) -> Scalar:
    """Return the same of samples, once for all numbers that are made of it."""
    return s.once(_rank_weighted_risk, phi)


def _rank_weighted_risk(s: Scored, phi: RankWeight) -> Scalar:
    if phi is trapezoid_weight:
        return trapezoid_area(s.merged_groups, s.merged_groups.loss_through)
    return rank_weighted_risk(s.merged_groups, phi)


def rank_weighted_risk_in_blocks(
    blocks: Iterable[TieGroups], phi: RankWeight, total: float
) -> float:
    """Return the same of groups that come in blocks, most confident first, of this weight in all.

    For weights by place, and for those of the trapezoid.
    """
    place, failed, risk, area = 0.0, 0.0, None, 0.0
    for groups in blocks:
        through = place + groups.through
        if phi is trapezoid_weight:
            risks = (failed + groups.loss_through) / through
            before = np.append(risks[0] if risk is None else risk, risks[:-1])
            area += float(inner(groups.weight, risks + before)) / 2
            risk = risks[-1]
        else:
            here = GroupsWithLoss(
                groups.loss, groups.weight, through - groups.weight, through, total
            )
            area += float(inner(phi(cast("TieGroups", here)), groups.loss))
        place, failed = float(through[-1]), failed + float(groups.loss_through[-1])
    return area / total


def trapezoid_area(groups: TieGroups, accepted_loss: AnyArray) -> Scalar:
    """Return the area under the selective risk, of the loss mass accepted at each vertex.

    Flat from the first vertex to coverage 0. Over merged successes behind F failures the risk is
    F/k, summed over k.
    """
    return scalar(groups.xp.sum(trapezoid_areas(groups, accepted_loss))) / groups.total


def trapezoid_areas(groups: TieGroups, accepted_loss: AnyArray) -> AnyArray:
    """Return the part of that area at each group, times all weight."""
    xp, through = groups.xp, groups.through
    risk = accepted_loss / through
    before = xp.concat((risk[:1], risk[:-1]))
    area = groups.weight * (risk + before) / 2
    if groups.has_vertices_within is not None:
        here = np.flatnonzero(groups.has_vertices_within & (accepted_loss > 0))
        steps = harmonic_sums_of_merged_groups(groups)
        # What is accepted never falls, so these are the last.
        beyond = accepted_loss.take(here) * steps[steps.size - here.size :]
        area[here] = beyond + (before.take(here) - risk.take(here)) / 2
    return area


#: An excess of this part of the mean loss is rounding: one failure at the wrong end of millions of
#: samples makes more.
_ROUNDING = 1e-14


def excess_above_optimum(optimum: Scalar, value: Scalar, s: Scored) -> Scalar:
    """Return how far a value is above its optimum: 0 for a best order, whatever the rounding.

    Both are sums in different orders, so a best order may come out a hair to either side.
    """
    excess = value - optimum
    return (
        value_from(excess, excess * 0.0 + 0.0)
        if excess < _ROUNDING * s.merged_groups.risk
        else excess
    )


def cached_on_groups(phi: RankWeight) -> RankWeight:
    """Keep the weights on the groups they were computed for: several metrics share them."""

    @wraps(phi)
    def recall(groups: TieGroups) -> FloatArray:
        # As cached_property does: the record stays frozen, its cache is filled.
        cache: dict[RankWeight, FloatArray] = groups.__dict__.setdefault("_phi", {})
        if phi not in cache:
            cache[phi] = sealed(phi(groups))
        return cache[phi]

    return recall


def augrc_weight(groups: TieGroups) -> AnyArray:
    """(r - 1/2)/n: the trapezoid area under the generalized risk."""
    return (groups.total - groups.through + groups.weight / 2) / groups.total


def sele_weight(groups: TieGroups) -> AnyArray:
    """r/n."""
    return (groups.total - groups.through + (groups.weight + 1) / 2) / groups.total


def two_sele_weight(groups: TieGroups) -> AnyArray:
    """2 r/n."""
    return 2.0 * sele_weight(groups)


@cached_on_groups
def plugin_weight(groups: TieGroups) -> AnyArray:
    """H_n - H_{n-r}; a sample at position k from the top counts H_n - H_{k-1}."""
    a, b, m = groups.above, groups.through, groups.weight
    # sum of H_{k-1} over k in (a, b] is b H_b - a H_a - m; written as differences, since the
    # terms themselves are too large for the last digits to survive.
    mean = harmonic(b) + a * harmonic_between(a, b) / m - 1.0
    return harmonic(groups.total) - mean


@cached_on_groups
def log_weight(groups: TieGroups) -> AnyArray:
    """-ln(1 - r/(n + 1)); a sample at position k from the top counts ln(n + 1) - ln k."""
    return float(np.log(groups.total + 1.0)) - _mean_log_position(groups)


@cached_on_groups
def harmonic_sums_of_merged_groups(groups: TieGroups) -> AnyArray:
    """Sum of 1/k over the ranks k of each merged group."""
    is_merged = groups.has_vertices_within
    here = np.zeros(0, np.int64) if is_merged is None else np.flatnonzero(is_merged)
    return harmonic_between(groups.above.take(here), groups.through.take(here))


#: Weights that follow from where a group stands, whatever else there is.
RANK_ONLY_WEIGHTS = frozenset(
    {augrc_weight, sele_weight, two_sele_weight, plugin_weight, log_weight}
)


@cached_on_groups
def trapezoid_weight(groups: TieGroups) -> AnyArray:
    """Trapezoid under the selective risk, flat from the first vertex to coverage 0."""
    if groups.has_vertices_within is not None:
        return trapezoid_weight_with_merged_groups(
            groups.through, groups.weight, groups.has_vertices_within
        )
    return _through_vertices(
        groups, lambda own: vertex_area_weights(own) * (own.total / own.through)
    )


def trapezoid_weight_with_merged_groups(
    b: FloatArray, m: FloatArray, is_merged: BoolArray
) -> FloatArray:
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
    later = still_to_come(whole) - whole
    return np.asarray(later + mean + last)


@cached_on_groups
def vertex_area_weights(groups: TieGroups) -> AnyArray:
    """Weights on the risks at the vertices: trapezoid area over all coverages, flat at first."""
    if groups.is_merged is not None:
        return _area_of_last(groups, flat=True)
    return linear_weights(groups.through / groups.total, 0.0, 1.0, flat=True)


@cached_on_groups
def vertex_area_weights_from_origin(groups: TieGroups) -> AnyArray:
    """Compute the same for a curve that rises from the origin."""
    if groups.is_merged is not None:
        return _area_of_last(groups, flat=False)
    return linear_weights(groups.through / groups.total, 0.0, 1.0, flat=False)


def _area_of_last(groups: TieGroups, *, flat: bool) -> AnyArray:
    """Weights on the last vertex of each merged group, and on those of the other groups."""
    width = groups.width
    area = (width + np.append(width[1:], 0.0)) / 2
    area[:1] += width[:1] / 2 if flat else 0.0
    return area / groups.total


def partial_trapezoid_weights(low: float, high: float) -> Callable[[TieGroups], FloatArray]:
    """Weights on the loss mass accepted at each vertex: trapezoid under the selective risk."""

    def on_vertices(groups: TieGroups) -> AnyArray:
        area = linear_weights(groups.through / groups.total, low, high, flat=True)
        return area * (groups.total / groups.through)

    return on_vertices


def partial_hyperbolic_weights(low: float, high: float) -> Callable[[TieGroups], FloatArray]:
    """Weights on the loss mass accepted at each vertex: exact area under the selective risk."""

    def on_vertices(groups: TieGroups) -> AnyArray:
        return hyperbolic_weights(groups.through / groups.total, low, high)

    return on_vertices


def partial_generalized_weights(low: float, high: float) -> Callable[[TieGroups], FloatArray]:
    """Weights on the loss mass accepted at each vertex: area under the generalized risk."""

    def on_vertices(groups: TieGroups) -> AnyArray:
        return linear_weights(groups.through / groups.total, low, high, flat=False)

    return on_vertices


def sample_threshold_weights(groups: TieGroups) -> AnyArray:
    """Weights on the loss mass accepted at each vertex: each sample's own threshold once."""
    return groups.weight / groups.through


def rank_weight_from_vertices(vertex_weights: Callable[[TieGroups], FloatArray]) -> RankWeight:
    """Turn weights on vertices into weights on samples: a sample counts at every vertex below."""
    return lambda groups: _through_vertices(groups, vertex_weights)


def _through_vertices(
    groups: TieGroups, on_vertices: Callable[[TieGroups], FloatArray]
) -> AnyArray:
    return still_to_come(on_vertices(groups))


def _mean_log_position(groups: TieGroups) -> AnyArray:
    """Mean of ln k over the positions k of each group: ln of Gamma(b + 1)/Gamma(a + 1) over m."""
    xp, a, b, m = groups.xp, groups.above, groups.through, groups.weight
    cut = first_of_series(a)
    near = (log_factorial(b[:cut]) - log_factorial(a[:cut])) / m[:cut]
    x, y, w = a[cut:], b[cut:], m[cut:]
    # Stirling for both, differenced by hand: (x + 1/2) ln(y/x) - m stays of the size of m.
    rest = (x + 0.5) * xp.log1p(w / x) - w + stirling_tail(y) - stirling_tail(x)
    return xp.concat((near, xp.log(y) + rest / w))
