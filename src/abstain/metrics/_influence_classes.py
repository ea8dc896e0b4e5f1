"""Influence functions of means over samples and over classes, and of CWSA at a threshold."""

from collections.abc import Callable

import numpy as np

from abstain._foundation.ranks import reached
from abstain._foundation.scored import ClassView, Scored
from abstain.inference.influence import Gradient, tail_sums, trapezoid_steps
from abstain.metrics._influence_areas import (
    augrc_gradient,
    with_loss,
)
from abstain.metrics._views import log_likelihood, probabilities_of, rows_of, view_of
from abstain.metrics.rank_weights import augrc_weight, vertex_area
from abstain.typing import BoolArray, FloatArray, IntArray


def weights(s: Scored) -> FloatArray:
    """Return the sample weights, ones without any."""
    return np.ones(s.n) if s.weight is None else s.weight


def of_mean(s: Scored, x: FloatArray) -> FloatArray:
    """Influence on the weighted mean of x."""
    out: FloatArray = x - np.average(x, weights=s.weight)
    out[weights(s) == 0] = 0.0
    return out


def accuracy(s: Scored) -> FloatArray:
    """Share of right predictions."""
    return of_mean(s, _right(view_of(s)))


def _right(view: ClassView) -> FloatArray:
    right = (view.prediction == view.labels) & (view.labels >= 0)
    return np.asarray(right, dtype=np.float64)


def balanced_accuracy(s: Scored) -> FloatArray:
    """Mean over the classes of their accuracy."""
    view, w = view_of(s), weights(s)
    known = (view.labels >= 0) & (w > 0)
    truth, right, w = view.labels[known], _right(view)[known], w[known]
    total = np.bincount(truth, weights=w)
    recall = np.bincount(truth, weights=w * right) / np.where(total > 0, total, 1.0)
    out = np.zeros(s.n)
    out[known] = (right - recall[truth]) * (s.total / np.count_nonzero(total)) / total[truth]
    return out


def nll(s: Scored) -> FloatArray:
    """Mean negative log-likelihood."""
    view, kept = view_of(s), weights(s) > 0
    each = np.zeros(s.n)
    each[kept] = -log_likelihood(rows_of(view, kept))
    return of_mean(s, each)


def brier(s: Scored) -> FloatArray:
    """Mean squared distance of the probabilities from the truth."""
    view = view_of(s)
    truth = view.labels[:, None] == np.arange(probabilities_of(view).shape[1])
    return of_mean(s, np.square(probabilities_of(view) - truth).sum(axis=1))


def cwsa(s: Scored, threshold: float, *, plus: bool) -> FloatArray:
    """CWSA (over all samples) or CWSA+ (over the accepted) at a threshold, linear ramp."""
    groups = s.probability_groups
    inside = (s.probability_home < int(reached(groups, threshold))) & (weights(s) > 0)
    p = np.zeros(s.n) if s.probability is None else s.probability.astype(np.float64)
    worth = inside * np.maximum(p - threshold, 0.0) / (1.0 - threshold)
    if not plus:
        return of_mean(s, worth * (1.0 - 2.0 * s.loss))
    accepted = float(weights(s)[inside].sum())
    each = worth * (1.0 - s.loss)
    mean = float((weights(s) * each).sum()) / accepted
    out: FloatArray = inside * (each - mean) * (s.total / accepted)
    return out


def augrc_ba(s: Scored) -> FloatArray:
    """AUGRC with every class given the same weight W/(K W_k), which the sample changes too."""
    place, present = _places(s)
    w = weights(s)
    mass = np.bincount(place, weights=w, minlength=present)
    balanced = s.loss * (s.total / (present * mass))[place]
    in_groups = np.bincount(s.home[w > 0], (w * balanced)[w > 0], s.groups.loss.size)
    group_loss = in_groups.astype(np.float64)
    groups = type(s.groups)(s.groups.confidence, s.groups.weight, group_loss, s.groups.count)
    at_fixed = with_loss(s, augrc_gradient(groups), balanced)
    phi = np.append(augrc_weight(groups), 0.0)[s.home]
    of_class = np.bincount(place, weights=w * phi * balanced, minlength=present) / s.total
    # `at_fixed` is centered on the groups of the true losses: both steps are centered at once.
    return of_mean(s, at_fixed - (of_class * s.total / mass)[place])


def _places(s: Scored) -> tuple[IntArray, int]:
    """Return the place of each sample's class among those present, and how many those are."""
    labels, kept = view_of(s).labels, weights(s) > 0
    present = np.unique(labels[kept])
    return np.searchsorted(present, labels).clip(max=present.size - 1), int(present.size)


def aurc_ba(s: Scored) -> FloatArray:
    """AURC of the mean class-wise selective risk."""
    groups, kept = s.groups, weights(s) > 0
    place, present = _places(s)
    area = vertex_area(groups)
    to_come = np.append(tail_sums(area), 0.0)
    out = np.zeros(s.n)
    rises = np.zeros(groups.loss.size)
    place_of, loss = s.home, s.loss.astype(np.float64)
    for rows in _by_class(place, kept, present):
        # The groups of this class, in the same order.
        start, mine = np.unique(place_of[rows], return_inverse=True)
        weight = np.ones(rows.size) if s.weight is None else s.weight[rows]
        through = np.cumsum(np.bincount(mine, weights=weight))
        risk = np.cumsum(np.bincount(mine, weights=weight * loss[rows])) / through
        here = (to_come[start] - np.append(to_come[start[1:]], 0.0)) / through
        gradient = Gradient(-tail_sums(here * risk), tail_sums(here))
        out[rows] = s.total * (gradient.weight[mine] + gradient.loss[mine] * loss[rows])
        rises[start] += np.diff(risk, prepend=0.0)
    value = np.cumsum(rises)
    moved = tail_sums(trapezoid_steps(value, flat=True)) / groups.total
    by_place = Gradient(moved, np.zeros_like(area)).influence(groups, s.home, s.loss)
    return of_mean(s, (out + by_place) / present)


def _by_class(place: IntArray, kept: BoolArray, present: int) -> list[IntArray]:
    """Return the rows of each class."""
    # Small integers are sorted by counting them.
    small = place.astype(np.int16) if present < 1 << 15 else place
    order = np.argsort(small, kind="stable")
    order = order[kept[order]]
    ends = np.searchsorted(place[order], np.arange(1, present))
    return np.split(order, ends)


MEANS: dict[str, Callable[[Scored], FloatArray]] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "nll": nll,
    "brier": brier,
    "aurc_ba": aurc_ba,
    "augrc_ba": augrc_ba,
}
