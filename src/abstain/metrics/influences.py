"""What the influence functions of several families share.

Terms that are the same for all samples are left out throughout: `Gradient.influence` centers.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeAlias

import numpy as np

from abstain._foundation.arrays import read_only
from abstain._foundation.scored import Scored
from abstain._foundation.special import hyperbola_curvature_between
from abstain._foundation.tie_groups import TieGroups
from abstain.inference.influence import Gradient
from abstain.metrics.entry import READS, Influence
from abstain.typing import FloatArray

#: A sum of a power of 1/k over k from a + 1 to b, from arrays of a and b that never fall.
Between: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


def kept(influence: Influence) -> Influence:
    """Keep the influences on the scored samples: several metrics are made of them."""

    @wraps(influence)
    def recall(s: Scored) -> FloatArray:
        cache: dict[Influence, FloatArray] = s.__dict__.setdefault("_influences", {})
        if influence not in cache:
            cache[influence] = read_only(influence(s))
        return cache[influence]

    return recall


def on_group_rows(influence: Influence) -> Influence:
    """Mark an influence function that accepts `Scored.group_rows`: it reads no rows and classes."""
    return _with_rows(influence, "group_rows")


def on_class_rows(influence: Influence) -> Influence:
    """Mark an influence function that accepts `Scored.class_rows`: it reads classes also."""
    return _with_rows(influence, "class_rows")


def on_split_rows(influence: Influence) -> Influence:
    """Mark an influence function that accepts `Scored.split_rows`."""
    return _with_rows(influence, "split_rows")


def on_merged_rows(influence: Influence) -> Influence:
    """Mark an influence function that accepts `Scored.merged_rows`."""
    return _with_rows(influence, "merged_rows")


def _with_rows(influence: Influence, rows: str) -> Influence:
    setattr(influence, READS, rows)
    return influence


def on_groups(s: Scored, gradient: Gradient) -> FloatArray:
    """Return the influence of each sample on a number with this gradient."""
    return gradient.influence(s.groups, s.group_index, s.loss)


def of_gradient(gradient: Callable[[TieGroups], Gradient]) -> Influence:
    """Return the influence function of a number of tie groups from its derivatives."""
    return lambda s: on_groups(s, gradient(s.groups))


def bend_within(groups: TieGroups, shift: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return what the vertices within each merged group add that lie on a hyperbola c/(k + shift).

    Per unit of c: for what comes before the group, and for the mean of its samples. All but the
    last vertex, which `steps_of_vertices` has; 0 for other groups.
    """
    whole, mean = np.zeros_like(groups.weight), np.zeros_like(groups.weight)
    if groups.is_merged is not None:
        here = groups.is_merged & (groups.count > 1)
        end, m = groups.cumulative_weight[here], groups.weight[here]
        whole[here], moment = hyperbola_curvature_between(end - m + shift, end + shift)
        mean[here] = moment / m
    return whole, mean


def sums_within(groups: TieGroups, between: Between, shift: float = 0.0) -> FloatArray:
    """Sum over the vertices of each merged group but its last, by k + shift; 0 for other groups.

    `between` sums over k from a + 1 to b, as `harmonic_between` does.
    """
    out = np.zeros_like(groups.weight)
    if groups.is_merged is not None:
        here = groups.is_merged & (groups.count > 1)
        last = groups.cumulative_weight[here] + shift - 1.0
        out[here] = between(last + 1.0 - groups.weight[here], last)
    return out


def on_best_order(s: Scored, gradient: Gradient) -> FloatArray:
    """Return the same for a number of the best order of the losses."""
    return gradient.influence(s.best_order, s.best_order_group_index, s.loss)


def of_loss(groups: TieGroups) -> Gradient:
    """Mean loss: the risk at full coverage."""
    return Gradient(np.zeros_like(groups.loss), np.full_like(groups.loss, 1 / groups.total_weight))


def weights_of(s: Scored) -> FloatArray:
    """Return the sample weights, ones without any."""
    return np.ones(s.n_rows) if s.weight is None else s.weight


def of_mean(s: Scored, x: FloatArray) -> FloatArray:
    """Influence on the weighted mean of x."""
    out: FloatArray = x - np.average(x, weights=s.weight)
    out[weights_of(s) == 0] = 0.0
    return out
