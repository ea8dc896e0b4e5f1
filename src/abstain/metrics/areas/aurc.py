"""Estimators of the AURC, the area under the accuracy-rejection curve, and the achievable AURC."""

from dataclasses import replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain._foundation.scored import MetricValue, Scored, validate_samples
from abstain._foundation.tie_groups import TieGroups
from abstain.curves.quadrature import hyperbolic_weights
from abstain.curves.risk_coverage import hull_vertices, merge_groups
from abstain.errors import InputError
from abstain.inference.influence import (
    Gradient,
    gradient_from_cumulative,
    tail_sums,
    trapezoid_derivatives_of_groups,
)
from abstain.inference.resampled_areas import ResampledAreas
from abstain.metrics.areas.augrc import (
    AUGRC_EXTREMES,
    FROM_AUGRC,
    augrc_gradient,
    divide_or_nan,
    rank_weighted_measurement,
)
from abstain.metrics.binned import BinnedLimits, Limits, NonemptyBins, risk_at_position
from abstain.metrics.entry import (
    DisplayOptions,
    Identity,
    InfluenceFunction,
    Measurement,
    Metric,
    Need,
    ResampledFormula,
)
from abstain.metrics.influences import (
    accepts_merged_rows,
    accepts_split_rows,
    cached_influence,
    curvature_within_merged_groups,
    influence_from_gradient,
    make_influence_function,
)
from abstain.metrics.rank_weights import (
    RankWeight,
    cached_rank_weighted_risk,
    log_weight,
    partial_hyperbolic_weights,
    plugin_weight,
    rank_weight_from_vertices,
    rank_weighted_risk,
    sele_weight,
    trapezoid_weight,
    two_sele_weight,
    vertex_area_weights,
)
from abstain.typing import AnyArray, AurcEstimator, FloatArray

ESTIMATORS: dict[str, RankWeight] = {
    "trapezoid": trapezoid_weight,
    "plugin": plugin_weight,
    "log": log_weight,
    "sele": sele_weight,
    "2sele": two_sele_weight,
}


def aurc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    estimator: AurcEstimator = "trapezoid",
    weight: AnyArray | None = None,
) -> float:
    r"""Compute the area under the selective risk-coverage curve (AURC).

    Answers: averaged over all coverages, how large is the mean loss of the accepted samples?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores; higher means more trusted. Only the order of the scores matters.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    estimator : {"trapezoid", "plugin", "log", "sele", "2sele"}, default="trapezoid"
        "trapezoid" connects the points of the curve by straight lines and extends the curve as a
        constant to coverage 0, as FD-Shifts does. The other estimators are means of weight x loss.
        The weight of the sample with ascending rank r is ``H_n - H_{n-r}`` for "plugin", ``-ln(1 -
        r/(n+1))`` for "log", ``r/n`` for "sele" and ``2r/n`` for "2sele". "plugin" is the mean
        selective risk over all n coverages. "sele" equals AUGRC + R/(2n), where R is the error
        rate, and estimates a different population value. For Monte Carlo weights, use
        `monte_carlo_aurc`.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1] for losses in [0, 1], or up to 1 + 1/n for "2sele"; **lower is better**. The
        literature prints the value x1000. For a random order, the value is about the error rate R,
        or R/2 for "sele".

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.
    InputError
        If `estimator` is not one of the five names.

    Notes
    -----
    The estimator "trapezoid" uses one point of the curve at each distinct confidence. All other
    estimators average the weight over tied samples, which yields the expectation over random
    tie-breaking. Without ties, "trapezoid" equals plugin + (loss of the most confident sample -
    R)/(2n). The function sorts the samples once.

    References
    ----------
    .. [1] Geifman et al. (2019), Bias-reduced uncertainty estimation for deep neural
       classifiers, https://arxiv.org/abs/1805.08206
    .. [2] Zhou et al. (2025), A novel characterization of the population area under the risk
       coverage curve, eq. 12-13 and 18, https://arxiv.org/abs/2410.15361
    .. [3] Franc et al. (2023), Optimal strategies for reject option classifiers (SELE),
       https://jmlr.org/papers/v24/21-0048.html

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 6)
    0.270833
    >>> round(ab.aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], estimator="plugin"), 6)
    0.333333
    """
    if str(estimator) == "monte-carlo":
        raise InputError(
            "`estimator` must not be 'monte-carlo', which needs random draws; call "
            "monte_carlo_aurc(confidence, loss, draws=1000, rng=0)"
        )
    phi = ESTIMATORS[checks.one_of(estimator, "estimator", tuple(ESTIMATORS))]
    return cached_rank_weighted_risk(validate_samples(confidence, loss, weight), phi)


def area_under_accuracy_rejection(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the area under the accuracy-rejection curve.

    Answers: averaged over all rejection rates, how accurate are the accepted samples?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        As in `aurc`, with losses in [0, 1].

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The value equals 1 minus the trapezoid estimate of
        the AURC.

    Raises
    ------
    ShapeError, DomainError
        See `aurc`. A DomainError is also raised if a loss is above 1.

    Notes
    -----
    Samples with equal confidence share a point of the curve. The function sorts the samples once.

    References
    ----------
    .. [1] Nadeem et al. (2009), Accuracy-rejection curves for comparing classification systems
       with a reject option, https://proceedings.mlr.press/v8/nadeem10a.html

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.area_under_accuracy_rejection([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 6)
    0.729167
    """
    s = validate_samples(confidence, loss, weight)
    checks.unit_interval(s.loss, "loss")
    return 1.0 - cached_rank_weighted_risk(s, trapezoid_weight)


def plugin_gradient(groups: TieGroups) -> Gradient:
    """Return the gradient of the plug-in AURC with respect to weights and losses of groups."""
    harmonic_of_n = float(special.digamma(groups.total_weight + 1.0))
    return _harmonic_gradient(groups, plugin_weight(groups), harmonic_of_n)


def _log_gradient(groups: TieGroups) -> Gradient:
    """Return the gradient of the log estimator with respect to weights and losses of groups."""
    log_of_n = float(np.log(groups.total_weight + 1.0))
    return _harmonic_gradient(groups, log_weight(groups), log_of_n)


def _harmonic_gradient(groups: TieGroups, phi: FloatArray, first_term: float) -> Gradient:
    """Return the gradient of the plug-in estimator or the log estimator.

    The rank weight `phi` starts with `first_term`, which is H_n or ln(n + 1).
    """
    mean_loss = groups.loss / groups.weight
    # One more sample of higher confidence lowers the mean weight of a group by (H_b - H_a)/m.
    harmonic = special.digamma(groups.cumulative_weight + 1.0)
    harmonic_steps = np.diff(harmonic, prepend=special.digamma(1.0))
    on_lower_groups = tail_sums(mean_loss * harmonic_steps) - mean_loss * harmonic_steps
    on_same_group = mean_loss * (first_term - harmonic - phi)
    on_weight = (on_same_group - on_lower_groups) / groups.total_weight
    return Gradient(on_weight, phi / groups.total_weight)


def _sele_gradient(groups: TieGroups) -> Gradient:
    """Return the gradient of SELE with respect to the weights and losses of groups."""
    return Gradient(augrc_gradient(groups).weight, sele_weight(groups) / groups.total_weight)


def _two_sele_gradient(groups: TieGroups) -> Gradient:
    """Return the gradient of 2 x SELE with respect to the weights and losses of groups."""
    sele = _sele_gradient(groups)
    return Gradient(2.0 * sele.weight, 2.0 * sele.loss)


def _trapezoid_gradient(groups: TieGroups) -> Gradient:
    """Return the gradient of the trapezoid AURC with respect to weights and losses of groups."""
    area_weights = vertex_area_weights(groups)
    on_accepted_loss = area_weights / groups.cumulative_weight
    # One more sample in a group moves all later points to larger coverages and lowers their risks.
    risk = groups.cumulative_loss / groups.cumulative_weight
    on_position = trapezoid_derivatives_of_groups(
        groups, lambda x, loss: loss / x, is_flat_before_first=True
    )
    derivative_at_point = on_position / groups.total_weight - on_accepted_loss * risk
    # Within a group of merged successes, the risk at position k is (accepted loss)/k.
    loss_share = groups.cumulative_loss / groups.total_weight
    above, within = curvature_within_merged_groups(groups)
    on_weight = tail_sums(derivative_at_point + loss_share * above)
    on_weight = on_weight + loss_share * (within - above)
    return Gradient(on_weight, trapezoid_weight(groups) / groups.total_weight)


@accepts_split_rows
@cached_influence
def trapezoid_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the trapezoid AURC."""
    return influence_from_gradient(s, _trapezoid_gradient(s.groups))


def _trapezoid_limits(bins: NonemptyBins) -> Limits:
    """Return the limits of the trapezoid AURC for binned samples.

    Within a bin, the area is largest if the failures are the first samples, and smallest if the
    failures are the last samples.
    """
    risk_above = risk_at_position(bins.loss_above, bins.above, bins.max_loss)
    risk_through = bins.loss_through / bins.through
    # The curve is constant from its first point to coverage 0.
    left_risk = np.where(bins.above > 0, risk_above, risk_through)
    exact_area = (left_risk + risk_through) / 2 * bins.weight
    # Straight lines between points of the curve lie between the convex envelope of the lowest curve
    # and the concave envelope of the highest curve.
    is_exact = ~bins.has_several_confidences
    low = np.where(is_exact, exact_area, _min_area_within_bins(bins, risk_through))
    high = np.where(is_exact, exact_area, _max_area_within_bins(bins, risk_through))
    return float(low.sum()) / bins.total, float(high.sum()) / bins.total


def _max_area_within_bins(bins: NonemptyBins, risk_through: FloatArray) -> FloatArray:
    """Return the area over each bin if the failures are the first samples of the bin."""
    failure_weight = bins.min_failure_weight
    success_weight = bins.weight - failure_weight
    # Over the losses, the risk at position x is L - (L a - F_a)/x, where L is the maximum loss and
    # F_a the loss above the bin. Over the successes, the envelope is a straight line.
    constant = np.maximum(bins.max_loss * bins.above - bins.loss_above, 0.0)
    log_ratio = _log_ratio(bins.above, failure_weight)
    area_of_losses = np.maximum(bins.max_loss * failure_weight - constant * log_ratio, 0.0)
    max_risk = risk_at_position(bins.loss_through, bins.above + failure_weight, bins.max_loss)
    return area_of_losses + (max_risk + risk_through) / 2 * success_weight


def _min_area_within_bins(bins: NonemptyBins, risk_through: FloatArray) -> FloatArray:
    """Return the area over each bin if the failures are the last samples of the bin."""
    failure_weight = bins.min_failure_weight
    success_weight = bins.weight - failure_weight
    # Over the successes, the risk at position x is F_a/x, where F_a is the loss above the bin. Over
    # the losses, the envelope is a straight line.
    area_of_successes = bins.loss_above * _log_ratio(bins.above, success_weight)
    min_risk = risk_at_position(bins.loss_above, bins.above + success_weight, bins.max_loss)
    return area_of_successes + (min_risk + risk_through) / 2 * failure_weight


def _accuracy_limits(bins: NonemptyBins) -> Limits:
    low, high = _trapezoid_limits(bins)
    return 1 - high, 1 - low


def _log_ratio(a: FloatArray, step: FloatArray) -> FloatArray:
    """Return ln((a + step)/a) where a > 0, and 0 elsewhere."""
    relative_step = np.divide(step, a, out=np.zeros_like(a), where=a > 0)
    return np.log1p(relative_step)


def _sele_of_resamples(a: ResampledAreas) -> FloatArray:
    return a.by_name["augrc"] + divide_or_nan(a.risk, 2.0 * a.total)


def worst_population_aurc(error_rate: float) -> float:
    """Return R - R ln R, the population AURC of the worst score for 0/1 loss."""
    if error_rate <= 0:
        return 0.0
    return float(error_rate - error_rate * np.log(error_rate))


def best_population_aurc(error_rate: float) -> float:
    """Return R + (1 - R) ln(1 - R), the population AURC of a perfect score for 0/1 loss."""
    if error_rate >= 1:
        return 1.0
    return error_rate + float((1.0 - error_rate) * np.log1p(-error_rate))


_ZHOU = "Zhou et al. (2025), {}, https://arxiv.org/abs/2410.15361"
_FRANC = "Franc et al. (2023), https://jmlr.org/papers/v24/21-0048.html"
_FROM_AURC = frozenset({"aurc"})


def _aurc_measurement(estimator: str, influence: InfluenceFunction) -> Measurement:
    """Return the measurement of an estimator of the AURC for the catalogue of metrics."""
    return replace(
        rank_weighted_measurement(ESTIMATORS[estimator], influence),
        duplication="limit",
        heavy_tailed=True,
        extremes=(best_population_aurc, worst_population_aurc),
    )


AURC = Metric(
    Identity(
        name="aurc",
        title="AURC",
        family="area",
        lower_is_better=True,
        meaning="Averaged over all coverages, {value} of the accepted samples are wrong.",
        source="Geifman et al. (2019), as Jaeger et al. (2023), eq. 31, "
        "https://arxiv.org/abs/2211.15259",
        convention="trapezoid",
        function="aurc(confidence, loss)",
        violated_requirements=("R2", "R3"),
    ),
    replace(
        _aurc_measurement("trapezoid", trapezoid_influence),
        averages_ties=False,
        resampled=ResampledFormula(_FROM_AURC, lambda a: a.by_name["aurc"]),
        binned=BinnedLimits(_trapezoid_limits),
    ),
    DisplayOptions(per_thousand=True, headline=3),
)


def _estimator_identity(estimator: str, name: str, title: str, source: str) -> Identity:
    """Return the names and source of an estimator of the AURC for the catalogue of metrics."""
    return replace(
        AURC.identity,
        name=name,
        title=title,
        source=source,
        convention=estimator,
        function=f"aurc(confidence, loss, estimator={estimator!r})",
        requirements_from="aurc",
    )


PLUG_IN = Metric(
    _estimator_identity("plugin", "aurc_plugin", "AURC, plug-in", _ZHOU.format("eq. 12-13")),
    replace(
        _aurc_measurement("plugin", accepts_merged_rows(make_influence_function(plugin_gradient))),
        resampled=ResampledFormula(
            frozenset({"aurc_plugin"}),
            lambda a: a.by_name["aurc_plugin"],
            lambda s: s.weight is None,
        ),
    ),
    DisplayOptions(per_thousand=True),
)


def _sele_entry(
    estimator: str, name: str, title: str, meaning: str, measurement: Measurement
) -> Metric:
    """Return the catalogue entry of SELE or 2 x SELE."""
    identity = replace(
        _estimator_identity(estimator, name, title, _FRANC),
        meaning=meaning,
        violated_requirements=None,
        requirements_from="",
    )
    return Metric(identity, replace(measurement, duplication="limit"))


ENTRIES = (
    AURC,
    PLUG_IN,
    Metric(
        _estimator_identity("log", "aurc_log", "AURC, log estimator", _ZHOU.format("eq. 18")),
        _aurc_measurement("log", accepts_merged_rows(make_influence_function(_log_gradient))),
        DisplayOptions(per_thousand=True),
    ),
    _sele_entry(
        "sele",
        "sele",
        "SELE",
        "AUGRC + R/(2n), with error rate R, is {value}: a lower bound of the AURC.",
        replace(
            rank_weighted_measurement(
                sele_weight, accepts_merged_rows(make_influence_function(_sele_gradient))
            ),
            extremes=AUGRC_EXTREMES,
            resampled=ResampledFormula(FROM_AUGRC, _sele_of_resamples),
        ),
    ),
    _sele_entry(
        "2sele",
        "two_sele",
        "2 x SELE",
        "Twice SELE is {value}: above the AURC unless the most confident samples fail.",
        replace(
            rank_weighted_measurement(
                two_sele_weight, accepts_merged_rows(make_influence_function(_two_sele_gradient))
            ),
            high=2.0,
            extremes=(lambda r: r * r, lambda r: 2 * r - r * r),
            resampled=ResampledFormula(FROM_AUGRC, lambda a: 2.0 * _sele_of_resamples(a)),
        ),
    ),
)

AUARC = Metric(
    Identity(
        name="auarc",
        title="area under the accuracy-rejection curve",
        family="area",
        lower_is_better=False,
        meaning="Averaged over all rejection rates, {value} of the accepted samples are correct.",
        source="Nadeem et al. (2009), https://proceedings.mlr.press/v8/nadeem10a.html",
        convention="trapezoid",
        function="area_under_accuracy_rejection(confidence, loss)",
        violated_requirements=("R2", "R3"),
    ),
    Measurement(
        compute=lambda s: MetricValue(1.0 - cached_rank_weighted_risk(s, trapezoid_weight)),
        needs=frozenset({Need.UNIT_LOSS}),
        duplication="limit",
        influence=accepts_split_rows(lambda s: -trapezoid_influence(s)),
        heavy_tailed=True,
        extremes=(lambda r: 1 - worst_population_aurc(r), lambda r: 1 - best_population_aurc(r)),
        resampled=ResampledFormula(_FROM_AURC, lambda a: 1.0 - a.by_name["aurc"]),
        binned=BinnedLimits(_accuracy_limits, rounding_scale=1.0),
    ),
)


def achievable_aurc(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the area under the achievable risk-coverage curve.

    Answers: what is the AURC if only working points on the ROC convex hull are used?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        See `aurc`.

    Returns
    -------
    float
        Value in [0, 1] for losses in [0, 1]; **lower is better**. The value is at most the exact
        area under the selective risk-coverage curve.

    Raises
    ------
    ShapeError, DomainError
        See `aurc`.

    Notes
    -----
    The curve passes through the thresholds at the vertices of the convex hull in ROC space. Between
    two vertices, the selective risk is a hyperbola, which is the risk of a random mixture of the
    two thresholds. The function sorts the samples once.

    References
    ----------
    .. [1] The code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.achievable_aurc([0.9, 0.8, 0.7, 0.6], [1, 0, 0, 1]), 6)
    0.356159
    """
    return compute_achievable_aurc(validate_samples(confidence, loss, weight)).value


def compute_achievable_aurc(s: Scored) -> MetricValue:
    """Compute the area under the hyperbolas between the vertices of the ROC convex hull."""
    groups = s.merged_groups
    hull = merge_groups(groups, hull_vertices(groups))
    phi = rank_weight_from_vertices(partial_hyperbolic_weights(0.0, 1.0))
    return MetricValue(rank_weighted_risk(hull, phi))


def _achievable_gradient(hull: TieGroups) -> Gradient:
    """Return the gradient of the area under the hyperbolas between the vertices of the hull.

    `hull` contains one tie group for each segment of the hull.
    """
    total = hull.total_weight
    right = hull.cumulative_weight
    left = np.concatenate(([0.0], right[:-1]))
    # On a segment, the accepted loss at position x is slope x + intercept. The risk is therefore
    # slope + intercept/x, and it is constant on the first segment.
    slope = hull.loss / hull.weight
    intercept = hull.cumulative_loss - slope * right
    log_ratio = np.log(right / np.where(left > 0, left, right))
    on_right_end = left * slope / hull.weight * log_ratio + intercept / right
    on_left_end = -right * slope / hull.weight * log_ratio
    on_left_end[1:] -= intercept[1:] / left[1:]
    # Each vertex is the right end of one segment and the left end of the next.
    on_position = on_right_end
    on_position[:-1] += on_left_end[1:]
    on_loss = hyperbolic_weights(right / total, 0.0, 1.0) / total
    return gradient_from_cumulative(on_position / total, on_loss)


def _achievable_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the achievable AURC.

    The function treats the vertices of the hull as fixed, because the effect of a change of the
    vertices is of second order.
    """
    vertices = hull_vertices(s.groups)
    hull = merge_groups(s.groups, vertices)
    n_groups = s.groups.loss.size
    segment_of_group = np.searchsorted(vertices, np.arange(n_groups))
    # Samples of weight 0 have the group index -1, which selects this additional last entry.
    segment_of_group = np.append(segment_of_group, -1)
    segment_index = segment_of_group[s.group_index]
    return _achievable_gradient(hull).influence(hull, segment_index, s.loss)


ACHIEVABLE = Metric(
    Identity(
        name="achievable_aurc",
        title="achievable AURC",
        family="area",
        lower_is_better=True,
        meaning="With working points on the ROC convex hull only, the AURC is {value}.",
        source="code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts",
        convention="hull, hyperbolic segments",
        function="achievable_aurc(confidence, loss)",
    ),
    Measurement(
        compute=compute_achievable_aurc,
        influence=accepts_merged_rows(_achievable_influence),
        heavy_tailed=True,
        caution="the hull is selected on the same data, so the value is optimistic",
        extremes=(best_population_aurc, lambda r: r),
    ),
    DisplayOptions(per_thousand=True),
)
