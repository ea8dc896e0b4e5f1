"""Excess AURC, normalized AURC and AUSE, which compare the AURC with its optimum."""

from dataclasses import replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import (
    interpolate,
    lexicographic_order,
    prepend_zero,
    undo_cumulative_sum,
)
from abstain._foundation.arrays import as_scalar, inner, without_gradient
from abstain._foundation.scored import MetricValue, Scored, undefined, validate_samples
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
    mean_influence,
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


def ause(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the area under the sparsification error curve (AUSE).

    Answers: if the least confident samples are removed, how much larger is the mean loss of the
    remaining samples than for the best order, relative to the mean loss of all samples?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores; higher means more trusted. Only the order of the scores matters.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value of at least 0, without upper bound; **lower is better**. The value is 0 for a perfect
        order. The value is NaN, with an `UndefinedMetricWarning`, if all losses are 0.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.

    Notes
    -----
    The sparsification curve is the selective risk as a function of the removed share, divided by
    the risk of all samples. AUSE is therefore the excess trapezoid AURC divided by the mean loss.
    Tied samples share a point of the curve. The library torch-uncertainty (0.13) omits the area
    below coverage 1/n. Without ties, torch-uncertainty returns this value minus (f - m)/(n R),
    where f is the loss of the most confident sample, m the smallest loss and R the mean loss. The
    function sorts the samples twice.

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
        return undefined("all losses are 0, so the mean loss cannot be the unit")
    return MetricValue(compute_excess_aurc(s).value / risk)


def _ause_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the excess AURC divided by the mean loss."""
    if s.best_order.loss.size == 1:
        # All losses are equal, so the excess is 0 for every order.
        return np.zeros(s.n_rows)
    risk = s.groups.risk
    value = compute_excess_aurc(s).value / risk
    on_risk = influence_from_gradient(s, mean_loss_gradient(s.groups))
    return (excess_influence(s) - value * on_risk) / risk


def aurc_optimum(s: Scored, estimator: str = "trapezoid") -> Scalar:
    """Return the smallest value of an estimator of the AURC for these losses.

    The trapezoid AURC is minimized both over orders without ties and over orders with the tie
    groups of the score. Ties cannot decrease the optimum of the other estimators.
    """
    if estimator != "trapezoid":
        return rank_weighted_risk(s.best_order, ESTIMATORS[estimator])
    return s.cached(_trapezoid_optimum)


def _trapezoid_optimum(s: Scored) -> Scalar:
    if s.weight is None and s.xp is np and not s.is_binary:
        return _optimum_of_unweighted_samples(s)
    return min(_untied_optimum(s), _optimum_over_ties(s))


def _optimum_of_unweighted_samples(s: Scored) -> float:
    """Return the smallest trapezoid AURC of samples without weights."""
    loss_in_best_order = np.cumsum(np.sort(s.loss.astype(np.float64)))
    risk = loss_in_best_order / np.arange(1, s.n_rows + 1)
    untied_optimum = float((risk.sum() + (risk[0] - risk[-1]) / 2) / s.n_rows)
    has_ties = s.groups.loss.size < s.n_rows
    if not has_ties:
        return untied_optimum
    accepted_loss = loss_in_best_order.take(s.groups.cumulative_count - 1)
    return min(untied_optimum, float(trapezoid_area(s.groups, accepted_loss)))


def _optimum_over_ties(s: Scored) -> Scalar:
    """Return the smallest trapezoid AURC of these losses for the tie groups of the score."""
    if s.is_binary and s.has_unit_weights and s.xp is np:
        return _optimum_over_ties_of_binary_loss(s.merged_groups)
    accepted_loss = _loss_in_best_order(s.merged_groups, s.best_order)
    return trapezoid_area(s.merged_groups, accepted_loss)


def _optimum_over_ties_of_binary_loss(merged_groups: TieGroups) -> float:
    """Return the smallest trapezoid AURC for 0/1 loss and unit weights.

    In the best order, only the groups after all successes contain failures.
    """
    n_successes = int(merged_groups.total_weight - merged_groups.cumulative_loss[-1])
    groups = with_vertex_at(merged_groups, n_successes)
    first = int(np.searchsorted(groups.cumulative_weight, n_successes, side="right"))
    through = groups.cumulative_weight[first:]
    weight = groups.weight[first:]
    is_merged = np.zeros(weight.size, np.bool_)
    if groups.is_merged is not None:
        is_merged = groups.is_merged[first:]
    # The rank weight of a group depends only on later groups.
    phi = trapezoid_weight_with_merged_groups(through, weight, is_merged)
    n_failures = np.minimum(weight, through - n_successes)
    return inner(phi, n_failures) / groups.total_weight


def _untied_optimum(s: Scored) -> Scalar:
    """Return the trapezoid AURC of the best order with distinct confidences."""
    best_order = s.best_order
    if s.weight is None or not s.xp.any(s.weight % 1 != 0):
        # Without ties, the trapezoid equals the plug-in estimator + (smallest loss - R)/(2n). In
        # the plug-in estimator, integer weights are equivalent to repeated samples.
        min_loss = best_order.loss[0] / best_order.weight[0]
        difference = (min_loss - best_order.risk) / (2 * best_order.total_weight)
        return rank_weighted_risk(best_order, plugin_weight) + as_scalar(difference)
    order = _order_by_loss_and_weight(s, s.weight)
    groups = one_group_per_sample(s.loss[order], s.weight[order])
    return trapezoid_area(groups, groups.cumulative_loss)


def _order_by_loss_and_weight(s: Scored, weight: FloatArray) -> AnyArray:
    """Return the samples with positive weight in order of loss, then of decreasing weight."""
    if s.xp is not np:
        order = lexicographic_order(without_gradient(s.loss), -weight)
        return order[weight[order] > 0]
    by_loss = s.sorted_losses
    order = by_loss.order.copy()
    # The values are negative losses. The order of samples without loss does not change the area.
    needs_sorting = (by_loss.group_sizes > 1) & (by_loss.distinct_values < 0)
    positions = np.flatnonzero(np.repeat(needs_sorting, by_loss.group_sizes))
    if positions.size:
        rows = order[positions]
        sorted_rows = rows[lexicographic_order(s.loss[rows], -weight[rows])]
        order[positions] = sorted_rows
    return order


def _loss_in_best_order(groups: TieGroups, best_order: TieGroups) -> AnyArray:
    """Return the cumulative loss through each tie group if the losses are in the best order."""
    weight_through = prepend_zero(best_order.cumulative_weight)
    loss_through = prepend_zero(best_order.cumulative_loss)
    return interpolate(groups.cumulative_weight, weight_through, loss_through)


def e_aurc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    estimator: AurcEstimator = "trapezoid",
    optimum: str = "same",
    weight: AnyArray | None = None,
) -> float:
    """Compute the excess AURC, which is the AURC minus its optimum.

    Answers: how much of the AURC is due to the ranking, and not to the classifier?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `aurc`.
    estimator : {"trapezoid", "plugin", "log", "sele", "2sele"}, default="trapezoid"
        See `aurc`.
    optimum : {"same", "analytic"}, default="same"
        "same" is the smallest value of the same estimator for these losses, with distinct
        confidences or with the tie groups of the score. "analytic" is R + (1 - R) ln(1 - R), as in
        FD-Shifts. The analytic optimum belongs to another estimator, so the excess AURC can be
        negative.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1] for losses in [0, 1] and the optimum "same"; **lower is better**. The value
        is 0, up to rounding, for a perfect order.

    Raises
    ------
    ShapeError, DomainError, InputError
        See `aurc`. A DomainError is also raised if the optimum is "analytic" and a loss is not 0 or
        1.

    Notes
    -----
    The function sorts the confidences once and the losses once.

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
        s = s.without_gradient
        return cached_rank_weighted_risk(s, phi) - best_population_aurc(s.merged_groups.risk)
    return compute_excess_aurc(s, estimator).value


def compute_excess_aurc(s: Scored, estimator: str = "trapezoid") -> MetricValue:
    """Compute the AURC minus its optimum, or 0 if the difference is a rounding error."""
    value = cached_rank_weighted_risk(s, ESTIMATORS[estimator])
    return MetricValue(excess_above_optimum(aurc_optimum(s, estimator), value, s))


def normalized_aurc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    estimator: AurcEstimator = "trapezoid",
    weight: AnyArray | None = None,
) -> float:
    """Compute the excess AURC divided by the excess AURC of a random score.

    Answers: where is this score on a scale from a perfect score (0) to a random score (1)?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `aurc`.
    estimator : {"trapezoid", "plugin", "log", "sele", "2sele"}, default="trapezoid"
        See `aurc`.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value of at least 0; **lower is better**. The value is 0 for a perfect order, 1 for a random
        order, and above 1 for an order that is worse than random. The value is NaN, with an
        `UndefinedMetricWarning`, if all losses are equal.

    Raises
    ------
    ShapeError, DomainError, InputError
        See `aurc`.

    Notes
    -----
    The values of classifiers with different accuracies are not comparable. At a fixed failure
    AUROC, a higher accuracy can increase or decrease the value. A constant score has the value 1.
    The function sorts the samples twice.

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
    s = validate_samples(confidence, loss, weight)
    return value_with_warning(compute_normalized_aurc(s, estimator), "normalized_aurc")


def compute_normalized_aurc(s: Scored, estimator: str = "trapezoid") -> MetricValue:
    """Compute the excess AURC of samples divided by the excess AURC of a random score."""
    if s.best_order.loss.shape[0] == 1:
        return undefined("all losses are equal, so no order is better than another")
    phi = ESTIMATORS[estimator]
    total_weight = np.array([s.merged_groups.total_weight])
    # A random order has the value of one tie group with all samples.
    all_samples = TieGroups(np.zeros(1), weight=total_weight, loss=total_weight)
    mean_weight = rank_weighted_risk(all_samples, phi)
    best = aurc_optimum(s, estimator)
    excess = excess_above_optimum(best, cached_rank_weighted_risk(s, phi), s)
    random_excess = s.merged_groups.risk * mean_weight - best
    if not random_excess > 0:
        return undefined("the losses are too small to distinguish the best order from a random one")
    return MetricValue(excess / random_excess)


def excess_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the excess AURC."""
    return trapezoid_influence(s) - _optimum_influence(s)


def _normalized_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the normalized AURC."""
    optimum = aurc_optimum(s)
    random_excess = s.groups.risk - optimum
    value = max(0.0, rank_weighted_risk(s.groups, trapezoid_weight) - optimum) / random_excess
    on_optimum = _optimum_influence(s)
    on_risk = influence_from_gradient(s, mean_loss_gradient(s.groups))
    on_excess = trapezoid_influence(s) - on_optimum
    return (on_excess - value * (on_risk - on_optimum)) / random_excess


@cached_influence
def _optimum_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the optimum of the trapezoid AURC."""
    if s.groups.n_tied and aurc_optimum(s) >= _optimum_over_ties(s) * (1 - 1e-9):
        return _optimum_influence_over_ties(s)
    if s.weight is not None and np.any(s.weight % 1 != 0):
        # The plug-in estimator uses the total weight as number of samples, so the weights are
        # rescaled.
        s = replace(s, weight=s.weight * (np.count_nonzero(s.weight) / s.total_weight))
    on_plugin = influence_on_best_order(s, plugin_gradient(s.best_order))
    on_risk = influence_on_best_order(s, mean_loss_gradient(s.best_order))
    # Without ties, the trapezoid equals the plug-in estimator + (smallest loss - R)/(2n).
    return on_plugin - on_risk / (2 * s.total_weight)


def _optimum_influence_over_ties(s: Scored) -> FloatArray:
    """Return the influence of each sample on the optimum with the tie groups of the score."""
    groups = s.groups
    best_order = s.best_order
    # In the best order, the losses are assigned to the tie groups in ascending order.
    loss_in_best_order = undo_cumulative_sum(_loss_in_best_order(groups, best_order))
    best = replace(groups, loss=loss_in_best_order)
    sorted_loss = best_order.loss / best_order.weight
    # The next loss after a group is ambiguous if the group ends between two losses. The influences
    # with each of them are averaged.
    influences = []
    for factor in (1 - 1e-12, 1 + 1e-12):
        position = groups.cumulative_weight * factor
        index = np.searchsorted(best_order.cumulative_weight, position)
        next_loss = sorted_loss[np.minimum(index, sorted_loss.size - 1)]
        influences.append(_influence_with_next_loss(s, best, next_loss))
    return np.asarray(np.mean(influences, axis=0))


def _influence_with_next_loss(s: Scored, best: TieGroups, next_loss: FloatArray) -> FloatArray:
    """Return the influence on the optimum if `next_loss` is the smallest loss after each group.

    A new sample with a smaller loss replaces a part of the next loss among the accepted losses.
    """
    area_weights = vertex_area_weights(best)
    on_accepted_loss = area_weights / best.cumulative_weight
    # Effect of one more sample on the positions of later points of the curve.
    risk = best.cumulative_loss / best.cumulative_weight
    on_position = trapezoid_derivatives_of_groups(
        best, lambda x, loss: loss / x, is_flat_before_first=True
    )
    derivative_at_point = on_position / best.total_weight + on_accepted_loss * (next_loss - risk)
    # Within a merged group, the risk at position k is group_loss + constant/k.
    group_loss = best.loss / best.weight
    constant = (best.cumulative_loss - group_loss * best.cumulative_weight) / best.total_weight
    above, within = curvature_within_merged_groups(best)
    on_weight = tail_sums(derivative_at_point + constant * above)
    on_weight = on_weight + constant * (within - above)
    gradient = Gradient(on_weight, np.zeros_like(area_weights))
    influence_of_position = gradient.influence(best, s.group_index, np.zeros(s.n_rows))
    # Effect of the loss of the new sample on the accepted losses. All samples of a merged group
    # have the same loss, which is also the next loss within the group.
    loss = s.loss.astype(np.float64)
    on_loss_within = sums_within_merged_groups(best, harmonic_between) / best.total_weight
    on_loss = _displaced_loss(loss, next_loss, on_accepted_loss)
    on_loss += _displaced_loss(loss, group_loss, on_loss_within)
    return np.asarray(influence_of_position + best.total_weight * mean_influence(s, on_loss))


def _displaced_loss(
    loss: FloatArray, next_loss: FloatArray, on_accepted_loss: FloatArray
) -> FloatArray:
    """Return the sum over groups of on_accepted_loss x min(loss - next_loss, 0) for each loss.

    `next_loss` must be nondecreasing.
    """
    first = np.searchsorted(next_loss, loss, side="right")
    weight_sums = np.append(tail_sums(on_accepted_loss), 0.0)
    loss_sums = np.append(tail_sums(on_accepted_loss * next_loss), 0.0)
    return np.asarray(loss * weight_sums[first] - loss_sums[first])


def _max_excess(error_rate: float) -> float:
    """Return the largest excess AURC over all error rates up to the given rate."""
    # The excess of the worst order increases with the error rate only up to 1/2.
    worst_rate = min(error_rate, 0.5)
    return worst_population_aurc(worst_rate) - best_population_aurc(worst_rate)


ENTRIES = (
    Metric(
        Identity(
            name="e_aurc",
            title="E-AURC",
            family="area",
            lower_is_better=True,
            meaning="A perfect score would reduce the AURC of this classifier by {value}.",
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
            meaning="On the scale from a perfect score (0) to a random score (1), this score has "
            "{value}.",
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
    Metric(
        Identity(
            name="ause",
            title="AUSE",
            family="area",
            lower_is_better=True,
            meaning="Averaged over the removed share, the mean loss of the others is {value} times "
            "the mean loss of all samples above that of the best order.",
            source="Ilg et al. (2018), section 5, https://arxiv.org/abs/1802.07095",
            convention="selective risk divided by the risk of all samples, trapezoid",
            function="ause(confidence, loss)",
        ),
        Measurement(
            compute=_compute_ause,
            high=float("inf"),
            duplication="limit",
            influence=accepts_split_rows(_ause_influence),
            heavy_tailed=True,
        ),
    ),
)
