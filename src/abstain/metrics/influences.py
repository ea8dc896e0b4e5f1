"""Helper functions for the influence functions of metrics."""

from collections.abc import Callable
from functools import wraps
from typing import TypeAlias

import numpy as np

from abstain._foundation.arrays import read_only
from abstain._foundation.scored import Scored
from abstain._foundation.special import hyperbola_curvature_between
from abstain._foundation.tie_groups import TieGroups
from abstain.inference.influence import Gradient
from abstain.metrics.entry import REQUIRED_ROWS, InfluenceFunction
from abstain.typing import FloatArray

#: Function of two arrays a and b, such as `harmonic_between`. The function returns the sum of a
#: power of 1/k over k = a + 1, ..., b.
PowerSum: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


def cached_influence(influence: InfluenceFunction) -> InfluenceFunction:
    """Decorate an influence function to cache its result, which several metrics share."""

    @wraps(influence)
    def recall(s: Scored) -> FloatArray:
        cache: dict[InfluenceFunction, FloatArray] = s.__dict__.setdefault("_influences", {})
        if influence not in cache:
            cache[influence] = read_only(influence(s))
        return cache[influence]

    return recall


def accepts_group_rows(influence: InfluenceFunction) -> InfluenceFunction:
    """Mark an influence function that accepts `Scored.group_rows` and requires no classes."""
    return _mark_required_rows(influence, "group_rows")


def accepts_class_rows(influence: InfluenceFunction) -> InfluenceFunction:
    """Mark an influence function that accepts `Scored.class_rows` and requires classes."""
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
    """Return the influence of each sample on the statistic with this gradient."""
    return gradient.influence(s.groups, s.group_index, s.loss)


def make_influence_function(gradient: Callable[[TieGroups], Gradient]) -> InfluenceFunction:
    """Return the influence function of a statistic whose gradient is a function of tie groups."""
    return lambda s: influence_from_gradient(s, gradient(s.groups))


def curvature_within_merged_groups(
    groups: TieGroups, shift: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return how one more sample changes the trapezoid area under 1/(k + shift) in merged groups.

    The first array is for a new sample above the group. The second array is the mean over all
    positions of a new sample within the group. Groups that are not merged have the value 0. The
    last point of each group is excluded, because `trapezoid_derivatives_of_groups` includes it.
    """
    above = np.zeros_like(groups.weight)
    within = np.zeros_like(groups.weight)
    if groups.is_merged is None:
        return above, within
    is_merged = groups.is_merged & (groups.count > 1)
    weight = groups.weight[is_merged]
    end = groups.cumulative_weight[is_merged]
    curvature, moment = hyperbola_curvature_between(end - weight + shift, end + shift)
    above[is_merged] = curvature
    within[is_merged] = moment / weight
    return above, within


def sums_within_merged_groups(
    groups: TieGroups, power_sum: PowerSum, shift: float = 0.0
) -> FloatArray:
    """Sum a power of 1/(k + shift) over all but the last position k of each merged group.

    Groups that are not merged have the value 0.
    """
    sums = np.zeros_like(groups.weight)
    if groups.is_merged is None:
        return sums
    is_merged = groups.is_merged & (groups.count > 1)
    last = groups.cumulative_weight[is_merged] + shift - 1.0
    sums[is_merged] = power_sum(last + 1.0 - groups.weight[is_merged], last)
    return sums


def influence_on_best_order(s: Scored, gradient: Gradient) -> FloatArray:
    """Return the influence of each sample on a statistic of the samples in their best order."""
    return gradient.influence(s.best_order, s.best_order_group_index, s.loss)


def mean_loss_gradient(groups: TieGroups) -> Gradient:
    """Return the gradient of the mean loss of all samples."""
    return Gradient(np.zeros_like(groups.loss), np.full_like(groups.loss, 1 / groups.total_weight))


def sample_weights(s: Scored) -> FloatArray:
    """Return the sample weights, or ones if the samples have no weights."""
    return np.ones(s.n_rows) if s.weight is None else s.weight


def mean_influence(s: Scored, values: FloatArray) -> FloatArray:
    """Return the influence of each sample on the weighted mean of `values`, shape (n,)."""
    deviation = values - np.average(values, weights=s.weight)
    return np.where(sample_weights(s) == 0, 0.0, deviation)
