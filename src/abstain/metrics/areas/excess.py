"""AURC less its optimum: excess AURC, normalized AURC and AUSE."""

from dataclasses import replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import (
    interpolate,
    lexicographic_order,
    prepend_zero,
    undo_cumulative_sum,
)
from abstain._foundation.arrays import inner
from abstain._foundation.gradients import as_scalar, without_gradient
from abstain._foundation.measurement import MetricValue, undefined
from abstain._foundation.scored import Scored, validate_samples
from abstain._foundation.special import harmonic_between
from abstain._foundation.tie_groups import TieGroups, one_group_per_sample, with_vertex_at
from abstain.inference.influence import Gradient, tail_sums, trapezoid_derivatives_of_groups
from abstain.metrics.areas.aurc import (
    ESTIMATORS,
    best_population_aurc,
    plugin_gradient,
    trapezoid_influence,
    worst_population_aurc,
)
from abstain.metrics.entry import DisplayOptions, Identity, Measurement, Metric, value_with_warning
from abstain.metrics.influences import (
    accepts_split_rows,
    cached_influence,
    curvature_within_merged_groups,
    influence_from_gradient,
    influence_on_best_order,
    mean_loss_gradient,
    sums_within_merged_groups,
)
from abstain.metrics.rank_weights import (
    cached_rank_weighted_risk,
    excess_above_optimum,
    plugin_weight,
    rank_weighted_risk,
    trapezoid_area,
    trapezoid_weight,
    trapezoid_weight_with_merged_groups,
    vertex_area_weights,
)
from abstain.typing import AnyArray, AurcEstimator, FloatArray, Scalar

_SOURCE = "Ilg et al. (2018), section 5, https://arxiv.org/abs/1802.07095"


def ause(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the area under the sparsification error (AUSE).

    Answers: as the least confident samples are taken away, how far is the mean loss of the rest
    above what the best order would leave, in units of the mean loss of all?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale, only the order matters.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        At least 0, no upper bound; **lower is better**; 0 for a perfect order. NaN, with an
        `UndefinedMetricWarning`, when nothing is lost.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.

    Notes
    -----
    The sparsification curve is the selective risk against the share taken away, divided by the risk
    of all, so this is exactly the excess AURC (trapezoid, flat below the first vertex) over the
    mean loss; samples of equal confidence share a vertex. torch-uncertainty (0.13) leaves out the
    part below a coverage of 1/n, and without ties prints this less (f - m)/(n R): f the loss of the
    most confident sample, m the least loss, R the mean loss. Cost: two sorts.

    References
    ----------
    .. [1] Ilg et al. (2018), Uncertainty estimates and multi-hypotheses networks for optical flow,
       section 5, https://arxiv.org/abs/1802.07095

    Examples
    --------
    >>> from abstain.metrics import ause
    >>> round(ause([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 6)
    0.25
    """
    return value_with_warning(_compute_ause(validate_samples(confidence, loss, weight)), "ause")


def _compute_ause(s: Scored) -> MetricValue:
    risk = s.merged_groups.risk
    if not bool(risk > 0):
        return undefined("nothing is lost, so there is no unit to measure in")
    return MetricValue(compute_excess_aurc(s).value / risk)


def _ause_influence(s: Scored) -> FloatArray:
    """Excess AURC over the risk, by the rule for quotients."""
    if s.best_order.loss.size == 1:
        # No order of equal losses has an excess; rounding has no range here to be small beside.
        return np.zeros(s.n_rows)
    risk = s.groups.risk
    value = compute_excess_aurc(s).value / risk
    return (
        excess_influence(s) - value * influence_from_gradient(s, mean_loss_gradient(s.groups))
    ) / risk


_AUSE = Metric(
    Identity(
        name="ause",
        title="AUSE",
        family="area",
        lower_is_better=True,
        meaning="Averaged over the removed share, the mean loss of the others is {value} times "
        "the mean loss of all samples above that of the best order.",
        source=_SOURCE,
        convention="selective risk over the risk of all, trapezoid",
        function="ause(confidence, loss)",
    ),
    Measurement(
        compute=_compute_ause,
        high=float("inf"),
        duplication="limit",
        influence=accepts_split_rows(_ause_influence),
        heavy_tailed=True,
    ),
)


def aurc_optimum(s: Scored, estimator: str = "trapezoid") -> Scalar:
    """Return the least value of an estimator for these losses.

    The best order of the losses, once over distinct scores and once over the score's own ties;
    the smaller counts. Only the trapezoid can be smaller on ties: where failures are tied, its
    straight line runs below the curve that untied failures have.
    """
    if estimator != "trapezoid":
        return rank_weighted_risk(s.best_order, ESTIMATORS[estimator])
    return s.cached(_trapezoid_optimum)


def _trapezoid_optimum(s: Scored) -> Scalar:
    if s.weight is None and s.xp is np and not s.is_binary:
        return _optimum_of_unweighted_samples(s)
    return min(_untied_optimum(s), _optimum_over_ties(s))


def _optimum_over_ties(s: Scored) -> Scalar:
    """Return the least value over the score's own ties."""
    if s.is_binary and s.has_unit_weights and s.xp is np:
        right = int(s.merged_groups.total_weight - s.merged_groups.cumulative_loss[-1])
        return _area_with_failures_last(with_vertex_at(s.merged_groups, right), right)
    best = _loss_in_best_order(s.merged_groups, s.best_order)
    return trapezoid_area(s.merged_groups, best)


def _optimum_of_unweighted_samples(s: Scored) -> float:
    """Return the optimum where each sample counts as one: the least losses, one after the other."""
    through = np.cumsum(np.sort(s.loss.astype(np.float64)))
    risk = through / np.arange(1, s.n_rows + 1)
    distinct = float((risk.sum() + (risk[0] - risk[-1]) / 2) / s.n_rows)
    if s.groups.loss.size == s.n_rows:
        return distinct
    best = through.take(s.groups.cumulative_count - 1)
    return min(distinct, float(trapezoid_area(s.groups, best)))


def _area_with_failures_last(groups: TieGroups, n_successes: int) -> float:
    """Return the trapezoid area with the failures after all that is right."""
    # Weights follow from what comes later, and nothing is wrong before.
    wrong = slice(int(np.searchsorted(groups.cumulative_weight, n_successes, side="right")), None)
    through, weight = groups.cumulative_weight[wrong], groups.weight[wrong]
    is_merged = (
        np.zeros(weight.size, np.bool_) if groups.is_merged is None else groups.is_merged[wrong]
    )
    phi = trapezoid_weight_with_merged_groups(through, weight, is_merged)
    return inner(phi, np.minimum(weight, through - n_successes)) / groups.total_weight


def _untied_optimum(s: Scored) -> Scalar:
    if s.weight is None or not s.xp.any(s.weight % 1 != 0):
        # Without ties the trapezoid is the plug-in estimator plus a boundary term; used here
        # since it needs no vertex for each sample, so that integer weights equal repetition.
        least = s.best_order.loss[0] / s.best_order.weight[0]
        boundary = (least - s.best_order.risk) / (2 * s.best_order.total_weight)
        return rank_weighted_risk(s.best_order, plugin_weight) + as_scalar(boundary)
    # Other weights are one vertex each, in the order of the losses, heaviest first among equals.
    order = _order_by_loss_and_weight(s, s.weight)
    groups = one_group_per_sample(s.loss[order], s.weight[order])
    return trapezoid_area(groups, groups.cumulative_loss)


def _order_by_loss_and_weight(s: Scored, weight: FloatArray) -> AnyArray:
    """Return the samples that have weight by their loss, of equal ones the heaviest first."""
    if s.xp is not np:
        every = lexicographic_order(without_gradient(s.loss), -weight)
        return every[weight[every] > 0]
    runs = s.sorted_losses
    order = runs.order.copy()
    # Among samples without loss any order is the best.
    places = np.flatnonzero(
        np.repeat((runs.group_sizes > 1) & (runs.distinct_values < 0), runs.group_sizes)
    )
    if places.size:
        rows = order[places]
        order[places] = rows[lexicographic_order(s.loss[rows], -weight[rows])]
    return order


def _loss_in_best_order(groups: TieGroups, best_order: TieGroups) -> AnyArray:
    """Return the loss mass down to each group when losses are handed out in the best order."""
    through, loss_through = (
        prepend_zero(best_order.cumulative_weight),
        prepend_zero(best_order.cumulative_loss),
    )
    return interpolate(groups.cumulative_weight, through, loss_through)


def e_aurc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    estimator: AurcEstimator = "trapezoid",
    optimum: str = "same",
    weight: AnyArray | None = None,
) -> float:
    """Compute the excess AURC: the AURC minus its optimum.

    Answers: how much of the AURC is the ranking's fault, not the classifier's?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `aurc`.
    estimator : {"trapezoid", "plugin", "log", "sele", "2sele"}, default="trapezoid"
        As in `aurc`.
    optimum : {"same", "analytic"}, default="same"
        "same": the least value of the same estimator for these losses, over distinct scores or
        over the score's own ties. "analytic": R + (1 - R) ln(1 - R), as FD-Shifts subtracts; it
        belongs to another estimator, so the result can be negative.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1] for losses in [0, 1] with "same"; **lower is better**; 0, up
        to rounding, for a perfect order.

    Raises
    ------
    ShapeError, DomainError, InputError
        As in `aurc`; "analytic" needs a 0/1 loss.

    Notes
    -----
    Cost: one sort of the confidences, one of the losses.

    References
    ----------
    .. [1] Geifman et al. (2019), https://arxiv.org/abs/1805.08206

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.e_aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 6)
    0.125
    >>> ab.e_aurc([0.9, 0.8, 0.7, 0.6], [0, 0, 1, 1])
    0.0
    """
    phi = ESTIMATORS[checks.one_of(estimator, "estimator", tuple(ESTIMATORS))]
    s = validate_samples(confidence, loss, weight)
    if checks.one_of(optimum, "optimum", ("same", "analytic")) == "analytic":
        checks.binary_loss(s.loss, required_by="the analytic optimum")
        return cached_rank_weighted_risk(s.without_gradient, phi) - best_population_aurc(
            s.without_gradient.merged_groups.risk
        )
    return compute_excess_aurc(s, estimator).value


def compute_excess_aurc(s: Scored, estimator: str = "trapezoid") -> MetricValue:
    """AURC minus its optimum, for the catalogue; rounding never makes it negative."""
    return MetricValue(_excess(s, estimator, aurc_optimum(s, estimator)))


def _excess(s: Scored, estimator: str, best: Scalar) -> Scalar:
    return excess_above_optimum(best, cached_rank_weighted_risk(s, ESTIMATORS[estimator]), s)


def normalized_aurc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    estimator: AurcEstimator = "trapezoid",
    weight: AnyArray | None = None,
) -> float:
    """Compute the normalized AURC: the excess AURC over that of a random score.

    Answers: on the way from a perfect score (0) to a random one (1), where does this score stand?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `aurc`.
    estimator : {"trapezoid", "plugin", "log", "sele", "2sele"}, default="trapezoid"
        As in `aurc`.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        0 for a perfect order, 1 for a random one, above 1 for worse than random; **lower is
        better**. NaN, with an `UndefinedMetricWarning`, when all losses are equal.

    Raises
    ------
    ShapeError, DomainError, InputError
        As in `aurc`.

    Notes
    -----
    Not comparable between classifiers of different accuracy: at one failure AUROC the accuracy
    moves it, in either direction. A score that is the same for all samples gives 1. Cost: two
    sorts.

    References
    ----------
    .. [1] Cattelan and Silva (2024), How to fix a broken confidence estimator, eq. 5,
       https://arxiv.org/abs/2305.15508

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.normalized_aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], estimator="plugin"), 6)
    0.428571
    """
    checks.one_of(estimator, "estimator", tuple(ESTIMATORS))
    return value_with_warning(
        compute_normalized_aurc(validate_samples(confidence, loss, weight), estimator),
        "normalized_aurc",
    )


def compute_normalized_aurc(s: Scored, estimator: str = "trapezoid") -> MetricValue:
    """Excess AURC over the excess of a random score, for the catalogue."""
    if s.best_order.loss.shape[0] == 1:
        return undefined("all losses are equal, so no order is better than another")
    best = aurc_optimum(s, estimator)
    random = s.merged_groups.risk * _mean_rank_weight(s.merged_groups.total_weight, estimator)
    return MetricValue(_excess(s, estimator, best) / (random - best))


def _mean_rank_weight(total: float, estimator: str) -> float:
    """Return what a random order expects per unit of risk: the mean of phi over the ranks."""
    # One number decides it, so the host computes it.
    everything = TieGroups(np.zeros(1), np.array([total]), np.array([total]))
    return rank_weighted_risk(everything, ESTIMATORS[estimator])


def excess_influence(s: Scored) -> FloatArray:
    """AURC less its optimum."""
    return trapezoid_influence(s) - _optimum_influence(s)


def _normalized_influence(s: Scored) -> FloatArray:
    """Excess AURC over that of a random order, by the rule for quotients."""
    best = aurc_optimum(s)
    room = s.groups.risk - best
    value = max(0.0, rank_weighted_risk(s.groups, trapezoid_weight) - best) / room
    lowest, random = _optimum_influence(s), influence_from_gradient(s, mean_loss_gradient(s.groups))
    return (trapezoid_influence(s) - lowest - value * (random - lowest)) / room


@cached_influence
def _optimum_influence(s: Scored) -> FloatArray:
    """Optimum of the trapezoid AURC: over distinct scores, or over the score's own ties."""
    if s.groups.n_tied and aurc_optimum(s) >= _optimum_over_ties(s) * (1 - 1e-9):
        return _optimum_influence_over_ties(s)
    if s.weight is not None and np.any(s.weight % 1 != 0):
        # The plug-in estimator takes the total weight for the number of samples.
        s = replace(s, weight=s.weight * (np.count_nonzero(s.weight) / s.total_weight))
    best = influence_on_best_order(s, plugin_gradient(s.best_order))
    # Without ties the trapezoid is the plug-in estimator, (least loss - R)/(2n) apart.
    return best - influence_on_best_order(s, mean_loss_gradient(s.best_order)) / (
        2 * s.total_weight
    )


def _optimum_influence_over_ties(s: Scored) -> FloatArray:
    """Influence when the losses, least first, are handed out over the tie groups.

    Each vertex then accepts the loss mass O(x) of the x least losses. One more sample of loss l
    below the loss q that is next in line there pushes some of q out: O changes by l - q. Where a
    vertex stands between two losses, the mean of both directions counts.
    """
    groups, best_order = s.groups, s.best_order
    best = replace(groups, loss=undo_cumulative_sum(_loss_in_best_order(groups, best_order)))
    each = best_order.loss / best_order.weight
    sides = (groups.cumulative_weight * (1 - 1e-12), groups.cumulative_weight * (1 + 1e-12))
    places = [
        np.searchsorted(best_order.cumulative_weight, side).clip(max=each.size - 1)
        for side in sides
    ]
    return np.asarray(
        np.mean([_influence_with_next_loss(s, best, each[place]) for place in places], axis=0)
    )


def _influence_with_next_loss(s: Scored, best: TieGroups, next_loss: FloatArray) -> FloatArray:
    """Return it where each vertex has this loss next in line; a merged group has one within it."""
    area, own = vertex_area_weights(best), best.loss / best.weight
    on_mass, inside = (
        area / best.cumulative_weight,
        sums_within_merged_groups(best, harmonic_between) / best.total_weight,
    )
    steps = trapezoid_derivatives_of_groups(
        best, lambda x, loss: loss / x, is_flat_before_first=True
    )
    moved = steps / best.total_weight + on_mass * (
        next_loss - best.cumulative_loss / best.cumulative_weight
    )
    before, mean = curvature_within_merged_groups(best)
    beyond = (best.cumulative_loss - own * best.cumulative_weight) / best.total_weight
    place = tail_sums(moved + beyond * before) + beyond * (mean - before)
    loss = s.loss.astype(np.float64)
    pushed = _displaced_loss(loss, next_loss, on_mass) + _displaced_loss(loss, own, inside)
    pushed -= float(np.average(pushed, weights=s.weight))
    if s.weight is not None:
        pushed[s.weight == 0] = 0.0
    gradient = Gradient(place, np.zeros_like(area))
    out: FloatArray = (
        gradient.influence(best, s.group_index, np.zeros(s.n_rows)) + best.total_weight * pushed
    )
    return out


def _displaced_loss(loss: FloatArray, next_loss: FloatArray, on_mass: FloatArray) -> FloatArray:
    """Sum over the vertices of on_mass x min(loss - next_loss, 0); next_loss never falls."""
    beyond = np.searchsorted(next_loss, loss, side="right")
    weights = np.append(tail_sums(on_mass), 0.0)
    weighted = np.append(tail_sums(on_mass * next_loss), 0.0)
    out: FloatArray = loss * weights[beyond] - weighted[beyond]
    return out


def _max_excess(r: float) -> float:
    """Worst less best AURC; it grows up to 1/2."""
    half = min(r, 0.5)
    return worst_population_aurc(half) - best_population_aurc(half)


ENTRIES = (
    Metric(
        Identity(
            name="e_aurc",
            title="E-AURC",
            family="area",
            lower_is_better=True,
            meaning="A perfect score would lower the AURC of this classifier by {value}.",
            source="Geifman et al. (2019), https://arxiv.org/abs/1805.08206",
            convention="trapezoid, optimum of the same estimator",
            function="e_aurc(confidence, loss)",
            violated_requirements=("R2", "R3", "R5"),
        ),
        Measurement(
            compute=compute_excess_aurc,
            duplication="limit",
            influence=accepts_split_rows(excess_influence),
            heavy_tailed=True,
            extremes=(lambda _: 0.0, _max_excess),
        ),
        DisplayOptions(per_thousand=True, headline=4),
    ),
    Metric(
        Identity(
            name="normalized_aurc",
            title="normalized AURC",
            family="area",
            lower_is_better=True,
            meaning="Between a perfect score (0) and a random one (1), this one stands at {value}.",
            source="Cattelan and Silva (2024), https://arxiv.org/abs/2305.15508",
            convention="trapezoid",
            function="normalized_aurc(confidence, loss)",
            violated_requirements=("R2", "R3"),
        ),
        Measurement(
            compute=compute_normalized_aurc,
            high=float("inf"),
            duplication="limit",
            influence=accepts_split_rows(_normalized_influence),
            heavy_tailed=True,
            is_two_sample=True,
        ),
    ),
    _AUSE,
)
