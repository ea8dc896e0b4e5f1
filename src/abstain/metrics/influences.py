"""What the influence functions of several families share.

Terms that are the same for all samples are left out throughout: `Gradient.influence` centers.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeAlias

import numpy as np

from abstain._foundation.arrays import sealed
from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Scored
from abstain._foundation.special import curvature_between
from abstain.inference.influence import Gradient
from abstain.metrics.entry import REQUIRED_ROWS, InfluenceFunction
from abstain.typing import FloatArray

#: A sum of a power of 1/k over k from a + 1 to b, from arrays of a and b that never fall.
PowerSum: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


def cached_influence(influence: InfluenceFunction) -> InfluenceFunction:
    """Keep the influences on the scored samples: several metrics are made of them."""

    @wraps(influence)
    def recall(s: Scored) -> FloatArray:
        cache: dict[InfluenceFunction, FloatArray] = s.__dict__.setdefault("_influences", {})
        if influence not in cache:
            cache[influence] = sealed(influence(s))
        return cache[influence]

    return recall


def accepts_group_rows(influence: InfluenceFunction) -> InfluenceFunction:
    """Mark an influence function that accepts `Scored.group_rows`: it reads no rows and classes."""
    return _mark_required_rows(influence, "group_rows")


def accepts_class_rows(influence: InfluenceFunction) -> InfluenceFunction:
    """Mark an influence function that accepts `Scored.class_rows`: it reads classes also."""
    return _mark_required_rows(influence, "class_rows")


def accepts_split_rows(influence: InfluenceFunction) -> InfluenceFunction:
    """Mark an influence function that accepts `Scored.split_rows`."""
    return _mark_required_rows(influence, "split_rows")


def accepts_merged_rows(influence: InfluenceFunction) -> InfluenceFunction:
    """Mark an influence function that accepts `Scored.merged_rows`."""
    return _mark_required_rows(influence, "merged_rows")


def _mark_required_rows(influence: InfluenceFunction, rows: str) -> InfluenceFunction:
    setattr(influence, REQUIRED_ROWS, rows)
    return influence


def influence_from_gradient(s: Scored, gradient: Gradient) -> FloatArray:
    """Return the influence of each sample on a number with this gradient."""
    return gradient.influence(s.groups, s.home, s.loss)


def make_influence_function(gradient: Callable[[TieGroups], Gradient]) -> InfluenceFunction:
    """Return the influence function of a number of tie groups from its derivatives."""
    return lambda s: influence_from_gradient(s, gradient(s.groups))


def curvature_within_merged_groups(
    groups: TieGroups, shift: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return what the vertices within each merged group add that lie on a hyperbola c/(k + shift).

    Per unit of c: for what comes before the group, and for the mean of its samples. All but the
    last vertex, which `steps_of_vertices` has; 0 for other groups.
    """
    whole, mean = np.zeros_like(groups.weight), np.zeros_like(groups.weight)
    if groups.is_merged is not None:
        here = groups.is_merged & (groups.count > 1)
        end, m = groups.through[here], groups.weight[here]
        whole[here], moment = curvature_between(end - m + shift, end + shift)
        mean[here] = moment / m
    return whole, mean


def sums_within_merged_groups(
    groups: TieGroups, between: PowerSum, shift: float = 0.0
) -> FloatArray:
    """Sum over the vertices of each merged group but its last, by k + shift; 0 for other groups.

    `between` sums over k from a + 1 to b, as `harmonic_between` does.
    """
    out = np.zeros_like(groups.weight)
    if groups.is_merged is not None:
        here = groups.is_merged & (groups.count > 1)
        last = groups.through[here] + shift - 1.0
        out[here] = between(last + 1.0 - groups.weight[here], last)
    return out


def influence_on_best_order(s: Scored, gradient: Gradient) -> FloatArray:
    """Return the same for a number of the best order of the losses."""
    return gradient.influence(s.best_order, s.best_order_home, s.loss)


def mean_loss_gradient(groups: TieGroups) -> Gradient:
    """Mean loss: the risk at full coverage."""
    return Gradient(np.zeros_like(groups.loss), np.full_like(groups.loss, 1 / groups.total))


def sample_weights(s: Scored) -> FloatArray:
    """Return the sample weights, ones without any."""
    return np.ones(s.n) if s.weight is None else s.weight


def mean_influence(s: Scored, values: FloatArray) -> FloatArray:
    """InfluenceFunction on the weighted mean of x."""
    out: FloatArray = values - np.average(values, weights=s.weight)
    out[sample_weights(s) == 0] = 0.0
    return out
