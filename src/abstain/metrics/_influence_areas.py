"""Influence functions of the area metrics, from the groups of equal confidence.

Terms that are the same for all samples are left out throughout: `Gradient.influence` centers.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeAlias

import numpy as np
from scipy.special import digamma

from abstain._foundation.arrays import sealed
from abstain._foundation.ranks import TieGroups, group_ties
from abstain._foundation.scored import Scored
from abstain.curves.hull import hull_vertices, take
from abstain.curves.quadrature import hyperbolic_weights
from abstain.inference.influence import Gradient, of_cumulated, tail_sums, trapezoid_steps
from abstain.metrics.rank_weights import (
    augrc_weight,
    log_weight,
    plugin_weight,
    sele_weight,
    trapezoid_weight,
    vertex_area,
    vertex_area_rising,
)
from abstain.typing import Array, FloatArray

Influence: TypeAlias = Callable[[Scored], FloatArray]


def kept(influence: Influence) -> Influence:
    """Keep the influences on the scored samples: several metrics are made of them."""

    @wraps(influence)
    def recall(s: Scored) -> FloatArray:
        cache: dict[Influence, FloatArray] = s.__dict__.setdefault("_influences", {})
        if influence not in cache:
            cache[influence] = sealed(influence(s))
        return cache[influence]

    return recall


def on_groups(s: Scored, gradient: Gradient) -> FloatArray:
    """Return the influence of each sample on a number with this gradient."""
    return gradient.influence(s.groups, s.home, s.loss)


def oracle_influence(s: Scored, gradient: Gradient) -> FloatArray:
    """Return the same for a number of the best order of the losses."""
    return gradient.influence(s.oracle, s.oracle_home, s.loss)


def augrc_gradient(groups: TieGroups) -> Gradient:
    """AUGRC: a sample pushes those less confident down by one rank, half of its own group."""
    pushed = tail_sums(groups.loss) - groups.loss / 2
    return Gradient(-pushed / groups.total**2, augrc_weight(groups) / groups.total)


def sele_gradient(groups: TieGroups) -> Gradient:
    """SELE: the same, with its own weights."""
    return Gradient(augrc_gradient(groups).weight, sele_weight(groups) / groups.total)


def two_sele_gradient(groups: TieGroups) -> Gradient:
    """2 x SELE: twice that."""
    half = sele_gradient(groups)
    return Gradient(2.0 * half.weight, 2.0 * half.loss)


def plugin_gradient(groups: TieGroups) -> Gradient:
    """AURC, plug-in, as the finite difference that one more sample makes."""
    at = digamma(groups.through + 1.0)
    return _harmonic_gradient(groups, plugin_weight(groups), at, float(at[-1]))


def log_gradient(groups: TieGroups) -> Gradient:
    """AURC, log estimator: its derivative is the plug-in's with another first term."""
    at = digamma(groups.through + 1.0)
    return _harmonic_gradient(groups, log_weight(groups), at, float(np.log(groups.total + 1.0)))


def _harmonic_gradient(
    groups: TieGroups, phi: FloatArray, at: FloatArray, whole: float
) -> Gradient:
    mean_loss = groups.loss / groups.weight
    # H_b - H_a of each group: what its mean weight loses when one more is more confident.
    steps = np.diff(at, prepend=digamma(1.0))
    below = tail_sums(mean_loss * steps) - mean_loss * steps
    own = mean_loss * (whole - at - phi)
    return Gradient((own - below) / groups.total, phi / groups.total)


def trapezoid_gradient(groups: TieGroups) -> Gradient:
    """AURC, trapezoid: each vertex counts by its risk and by where it stands."""
    risk = groups.loss_through / groups.through
    area = vertex_area(groups)
    moved = trapezoid_steps(risk, flat=True) / groups.total - area * risk / groups.through
    return Gradient(tail_sums(moved), trapezoid_weight(groups) / groups.total)


def achievable_gradient(hull: TieGroups) -> Gradient:
    """Exact area below the hyperbolas through the vertices of the hull."""
    right, total = hull.through, hull.total
    left = np.concatenate(([0.0], right[:-1]))
    # The first segment starts at the origin, where the hyperbola is a constant.
    log_ratio = np.log(right / np.where(left > 0, left, right))
    slope = hull.loss / hull.weight
    intercept = hull.loss_through - slope * right
    end = left * slope / hull.weight * log_ratio + intercept / right
    start = -right * slope / hull.weight * log_ratio
    start[1:] -= intercept[1:] / left[1:]
    moved = end
    moved[:-1] += start[1:]
    weights = hyperbolic_weights(right / total, 0.0, 1.0) / total
    return of_cumulated(moved / total, weights)


def achievable(s: Scored) -> FloatArray:
    """Achievable AURC, the vertices of the hull held where they are.

    Where a vertex stands matters only to second order: the hull is the best there is.
    """
    vertices = hull_vertices(s.groups)
    segment = np.append(np.searchsorted(vertices, np.arange(s.groups.loss.size)), -1)
    gradient = achievable_gradient(take(s.groups, vertices))
    return gradient.influence(take(s.groups, vertices), segment[s.home], s.loss)


def f1_auc(s: Scored) -> FloatArray:
    """F1-AUC: F1 = 2 P_j / (x_j + P) at each vertex, P_j of all P acceptable ones retained."""
    fine = s.loss <= 0.0
    groups = group_ties(s.confidence, fine, s.weight)
    divisor = groups.through + groups.loss_through[-1]
    f1 = 2 * groups.loss_through / divisor
    area = vertex_area_rising(groups)
    shrink = area * f1 / divisor
    through = trapezoid_steps(f1, flat=False) / groups.total - shrink
    found = of_cumulated(through, 2 * area / divisor)
    # One more acceptable sample makes them more everywhere, also where it is rejected.
    gradient = Gradient(found.weight, found.loss - shrink.sum())
    return gradient.influence(groups, s.home, fine)


def cwsa_area(s: Scored, *, plus: bool) -> FloatArray:
    """Areas under CWSA and CWSA+ against coverage; see `abstain.metrics._cwsa.area_of`."""
    groups = s.probability_groups
    below_one = 1.0 - groups.confidence.astype(np.float64)
    factor = 1.0 if plus else 2.0
    score = groups.weight - factor * groups.loss
    inverse = np.divide(1.0, below_one, out=np.zeros_like(below_one), where=below_one > 0)
    reached = np.cumsum(score) - np.cumsum(score * below_one) * inverse
    by = groups.through if plus else np.full_like(score, groups.total)
    value = reached / by
    area = vertex_area(groups) if plus else vertex_area_rising(groups)
    moved = trapezoid_steps(value, flat=plus) / groups.total
    if plus:
        moved = moved - area * value / by
    on_score = tail_sums(area / by) - below_one * tail_sums(area / by * inverse)
    gradient = Gradient(tail_sums(moved) + on_score, -factor * on_score)
    return gradient.influence(groups, s.probability_home, s.loss)


def roc_gradient(groups: TieGroups) -> Gradient:
    """AUROC of failures: DeLong's placements. A sample of loss l is l failure, 1 - l success."""
    failures = groups.loss
    successes = np.maximum(groups.weight - failures, 0.0)
    beaten = tail_sums(failures) - failures / 2
    ahead = np.cumsum(successes) - successes / 2
    pairs = successes.sum() * failures.sum()
    auroc = float(failures @ ahead) / pairs
    on_success = beaten / pairs - auroc / successes.sum()
    on_failure = ahead / pairs - auroc / failures.sum()
    return Gradient(on_success, on_failure - on_success)


def precision_gradient(found: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Average precision: derivatives with respect to both weights at each rank, first to last."""
    hits, taken = np.cumsum(found), np.cumsum(found + other)
    total = hits[-1]
    precision = hits / taken
    on_taken = -tail_sums(found * precision / taken) / total
    average = float(found @ precision) / total
    on_found = (precision + tail_sums(found / taken)) / total + on_taken - average / total
    return on_found, on_taken


def ap_success_gradient(groups: TieGroups) -> Gradient:
    """Average precision of the successes."""
    failures = groups.loss
    successes = np.maximum(groups.weight - failures, 0.0)
    success, failure = precision_gradient(successes, failures)
    return Gradient(success, failure - success)


def ap_error_gradient(groups: TieGroups) -> Gradient:
    """Average precision of the failures, least confident first."""
    failures = groups.loss[::-1]
    successes = np.maximum(groups.weight[::-1] - failures, 0.0)
    failure, success = (x[::-1] for x in precision_gradient(failures, successes))
    return Gradient(success, failure - success)


def of_loss(groups: TieGroups) -> Gradient:
    """Mean loss: the risk at full coverage."""
    return Gradient(np.zeros_like(groups.loss), np.full_like(groups.loss, 1 / groups.total))


def with_loss(s: Scored, gradient: Gradient, loss: Array) -> FloatArray:
    """Return influences of a number of other losses over the same groups."""
    return gradient.influence(s.groups, s.home, loss)
