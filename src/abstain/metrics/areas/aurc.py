"""AURC in its five named estimators, the accuracy-rejection area and the achievable AURC."""

from dataclasses import replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain._foundation.measurement import MetricValue
from abstain._foundation.scored import Scored, validate_samples
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

    Answers: averaged over all coverages, how wrong are the samples that are accepted?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale, only the order matters.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    estimator : {"trapezoid", "plugin", "log", "sele", "2sele"}, default="trapezoid"
        With r the ascending rank of a sample (n for the most confident), the mean over samples
        of loss times: ``H_n - H_{n-r}`` ("plugin", the mean selective risk over all n
        coverages), ``-ln(1 - r/(n+1))`` ("log"), ``r/n`` ("sele", another population value:
        AUGRC + R/(2n)), ``2r/n`` ("2sele"). "trapezoid" joins the vertices of the curve by
        straight lines and extends it flat to coverage 0, as FD-Shifts does. Monte-Carlo weights
        need draws: `monte_carlo_aurc`.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1] for losses in [0, 1] (up to 1 + 1/n for "2sele"); **lower is better**; a
        fraction (the literature prints it x1000). A random order gives about the error rate R
        (half of it for "sele").

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
    All but "trapezoid" average the weight over a tie group (the expectation over random
    tie-breaking). "trapezoid" has a vertex only at distinct confidences. Without ties it is
    plugin + (loss of the most confident - R)/(2n). Cost: one sort.

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
    phi = _rank_weight_of_estimator(estimator)
    return cached_rank_weighted_risk(validate_samples(confidence, loss, weight), phi)


def _rank_weight_of_estimator(estimator: str) -> RankWeight:
    if estimator == "monte-carlo":
        raise InputError(
            "`estimator` 'monte-carlo' draws at random, so it has a function of its own: "
            "monte_carlo_aurc(confidence, loss, draws=1000, rng=0)"
        )
    return ESTIMATORS[checks.one_of(estimator, "estimator", tuple(ESTIMATORS))]


def area_under_accuracy_rejection(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the area under the accuracy-rejection curve.

    Answers: averaged over all rejection rates, how accurate are the samples that are accepted?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        As in `aurc`; losses in [0, 1].

    Returns
    -------
    float
        In [0, 1]; **higher is better**: 1 - AURC (trapezoid).

    Raises
    ------
    ShapeError, DomainError
        As in `aurc`; also if a loss is above 1.

    Notes
    -----
    Ties share a vertex. Cost: one sort.

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
    """AURC, plug-in, as the finite difference that one more sample makes."""
    at = special.digamma(groups.cumulative_weight + 1.0)
    return _harmonic_gradient(groups, plugin_weight(groups), at, float(at[-1]))


def _log_gradient(groups: TieGroups) -> Gradient:
    """AURC, log estimator: its derivative is the plug-in's with another first term."""
    at = special.digamma(groups.cumulative_weight + 1.0)
    return _harmonic_gradient(
        groups, log_weight(groups), at, float(np.log(groups.total_weight + 1.0))
    )


def _harmonic_gradient(
    groups: TieGroups, phi: FloatArray, at: FloatArray, whole: float
) -> Gradient:
    mean_loss = groups.loss / groups.weight
    # H_b - H_a of each group: what its mean weight loses when one more is more confident.
    steps = np.diff(at, prepend=special.digamma(1.0))
    below = tail_sums(mean_loss * steps) - mean_loss * steps
    own = mean_loss * (whole - at - phi)
    return Gradient((own - below) / groups.total_weight, phi / groups.total_weight)


def _sele_gradient(groups: TieGroups) -> Gradient:
    """SELE: the same, with its own weights."""
    return Gradient(augrc_gradient(groups).weight, sele_weight(groups) / groups.total_weight)


def _two_sele_gradient(groups: TieGroups) -> Gradient:
    """2 x SELE: twice that."""
    half = _sele_gradient(groups)
    return Gradient(2.0 * half.weight, 2.0 * half.loss)


def _trapezoid_gradient(groups: TieGroups) -> Gradient:
    """AURC, trapezoid: each vertex counts by its risk and by where it stands."""
    risk = groups.cumulative_loss / groups.cumulative_weight
    area = vertex_area_weights(groups)
    steps = trapezoid_derivatives_of_groups(
        groups, lambda x, loss: loss / x, is_flat_before_first=True
    )
    moved = steps / groups.total_weight - area * risk / groups.cumulative_weight
    fails = groups.cumulative_loss / groups.total_weight
    before, mean = curvature_within_merged_groups(groups)
    place = tail_sums(moved + fails * before) + fails * (mean - before)
    return Gradient(place, trapezoid_weight(groups) / groups.total_weight)


@accepts_split_rows
@cached_influence
def trapezoid_influence(s: Scored) -> FloatArray:
    """AURC, trapezoid."""
    return influence_from_gradient(s, _trapezoid_gradient(s.groups))


def _trapezoid_limits(blocks: NonemptyBins) -> Limits:
    """Return limits of the trapezoid AURC.

    Within a bin the risk lies between that of all loss last and that of all loss first. Lines
    between vertices stay below the concave envelope of the one and above the convex envelope
    of the other, whichever vertices there are.
    """
    a, b = blocks.above, blocks.through
    risk_a = risk_at_position(blocks.loss_above, a, blocks.max_loss)
    risk_b = blocks.loss_through / b
    # The curve is flat from its first vertex to coverage 0.
    start = np.where(a > 0, risk_a, risk_b)
    exact = (start + risk_b) / 2 * blocks.weight
    low = np.where(blocks.has_several_confidences, _min_area_within_bins(blocks, risk_b), exact)
    high = np.where(blocks.has_several_confidences, _max_area_within_bins(blocks, risk_b), exact)
    return float(low.sum()) / blocks.total, float(high.sum()) / blocks.total


def _max_area_within_bins(blocks: NonemptyBins, risk_b: FloatArray) -> FloatArray:
    """All loss first: L - K/x with K = L a - F_a, concave, to its end; then a line."""
    a, wrong = blocks.above, blocks.min_failure_weight
    end = a + wrong
    spare = np.maximum(blocks.max_loss * a - blocks.loss_above, 0.0)
    rising = blocks.max_loss * wrong - spare * _log_ratio(a, wrong)
    peak = risk_at_position(blocks.loss_through, end, blocks.max_loss)
    return np.maximum(rising, 0.0) + (peak + risk_b) / 2 * (blocks.weight - wrong)


def _min_area_within_bins(blocks: NonemptyBins, risk_b: FloatArray) -> FloatArray:
    """All loss last: F_a/x, convex, to where it begins; then a line."""
    right = blocks.weight - blocks.min_failure_weight
    turn = risk_at_position(blocks.loss_above, blocks.above + right, blocks.max_loss)
    falling = blocks.loss_above * _log_ratio(blocks.above, right)
    return falling + (turn + risk_b) / 2 * blocks.min_failure_weight


def _accuracy_limits(blocks: NonemptyBins) -> Limits:
    low, high = _trapezoid_limits(blocks)
    return 1 - high, 1 - low


def _log_ratio(a: FloatArray, step: FloatArray) -> FloatArray:
    """Log of (a + step)/a; 0 at a = 0, where what it multiplies is 0."""
    return np.log1p(np.divide(step, a, out=np.zeros_like(a), where=a > 0))


def _sele_of_resamples(a: ResampledAreas) -> FloatArray:
    return a.by_name["augrc"] + divide_or_nan(a.risk, 2.0 * a.total)


def worst_population_aurc(error_rate: float) -> float:
    """Return the AURC of the worst order of an error rate."""
    return float(error_rate - error_rate * np.log(error_rate)) if error_rate > 0 else 0.0


def best_population_aurc(error_rate: float) -> float:
    """Return R + (1 - R) ln(1 - R): the population AURC of a perfect score for 0/1 loss."""
    return error_rate + float((1.0 - error_rate) * np.log1p(-error_rate)) if error_rate < 1 else 1.0


_ZHOU = "Zhou et al. (2025), {}, https://arxiv.org/abs/2410.15361"
_FRANC = "Franc et al. (2023), https://jmlr.org/papers/v24/21-0048.html"
_FROM_AURC = frozenset({"aurc"})


def _aurc_measurement(estimator: str, influence: InfluenceFunction) -> Measurement:
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
    """Return the identity of an estimator of the AURC of the population."""
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
        "AUGRC plus half the error rate over n, {value}: a lower bound of the AURC.",
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
        "Twice SELE, {value}: above the AURC unless the most confident samples fail.",
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
        meaning="Averaged over all rejection rates, {value} of the accepted samples are right.",
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

    Answers: what would the AURC be if only the working points worth choosing were used?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        As in `aurc`.

    Returns
    -------
    float
        In [0, 1] for losses in [0, 1]; **lower is better**; never above the exact area of the
        curve itself.

    Raises
    ------
    ShapeError, DomainError
        As in `aurc`.

    Notes
    -----
    The vertices are those of the convex hull in ROC space; between them the selective risk is
    the hyperbola of a mixture of the two thresholds. Ties share a vertex. Cost: one sort.

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
    """Area under the hull with hyperbolic segments, for the catalogue."""
    hull = merge_groups(s.merged_groups, hull_vertices(s.merged_groups))
    return MetricValue(
        rank_weighted_risk(hull, rank_weight_from_vertices(partial_hyperbolic_weights(0.0, 1.0)))
    )


def _achievable_gradient(hull: TieGroups) -> Gradient:
    """Exact area below the hyperbolas through the vertices of the hull."""
    right, total = hull.cumulative_weight, hull.total_weight
    left = np.concatenate(([0.0], right[:-1]))
    # The first segment starts at the origin, where the hyperbola is a constant.
    log_ratio = np.log(right / np.where(left > 0, left, right))
    slope = hull.loss / hull.weight
    intercept = hull.cumulative_loss - slope * right
    end = left * slope / hull.weight * log_ratio + intercept / right
    start = -right * slope / hull.weight * log_ratio
    start[1:] -= intercept[1:] / left[1:]
    moved = end
    moved[:-1] += start[1:]
    weights = hyperbolic_weights(right / total, 0.0, 1.0) / total
    return gradient_from_cumulative(moved / total, weights)


def _achievable_influence(s: Scored) -> FloatArray:
    """Achievable AURC, the vertices of the hull held where they are.

    Where a vertex stands matters only to second order: the hull is the best there is.
    """
    vertices = hull_vertices(s.groups)
    segment = np.append(np.searchsorted(vertices, np.arange(s.groups.loss.size)), -1)
    gradient = _achievable_gradient(merge_groups(s.groups, vertices))
    return gradient.influence(merge_groups(s.groups, vertices), segment[s.group_index], s.loss)


ACHIEVABLE = Metric(
    Identity(
        name="achievable_aurc",
        title="achievable AURC",
        family="area",
        lower_is_better=True,
        meaning="With the best working points only, the area under the risk curve is {value}.",
        source="code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts",
        convention="hull, hyperbolic segments",
        function="achievable_aurc(confidence, loss)",
    ),
    Measurement(
        compute=compute_achievable_aurc,
        influence=accepts_merged_rows(_achievable_influence),
        heavy_tailed=True,
        caution="the hull is chosen on these data, which flatters it",
        extremes=(best_population_aurc, lambda r: r),
    ),
    DisplayOptions(per_thousand=True),
)
