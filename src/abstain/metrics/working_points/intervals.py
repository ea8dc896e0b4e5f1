"""Confidence intervals at working points whose thresholds are selected from the data.

A threshold is the confidence of a tie group, and a vertex is the index of this group.

**Coverage at a risk.** The errors of the coverage and of the risk of a threshold are independent. A
pair of a threshold and a coverage c is therefore compared with the data by a sum of two squares,

    (risk at the threshold, in standard errors from the requested risk)^2
    + (c, in standard errors from the coverage of the threshold)^2.

The interval excludes a coverage c if this sum of squares exceeds the squared normal quantile for
every threshold. The method requires no estimate of a slope and is valid for tie groups of any size.

**Risk at a coverage.** If a large tie group ends near the coverage, a new sample may select the
threshold on the other side of the group. The risk then jumps and has no standard error. Instead of
a standard error, the method uses a set of thresholds that are plausible in the population. Their
distances from the data are measured in standard errors of the coverage or of the requested risk. If
all groups near the threshold are small, the influence function yields the same result.

**Metrics of the rejected samples.** If the risk hardly increases with the coverage, the threshold
of minimum risk is random. The risks of the possible thresholds are almost equal, but metrics of the
rejected samples differ. For these metrics, a threshold is plausible if its risk is not
significantly above the minimum.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain._foundation.scored import Scored
from abstain.curves.risk_coverage import ROUNDING
from abstain.inference.influence import (
    AMBIGUOUS_THRESHOLD_NOTE,
    DISTANCE_STEPS,
    MAX_DISTANCE,
    influence_moments,
    remaining_squared_quantiles,
    standard_error,
)
from abstain.inference.intervals import Interval, interval_from_influence, no_interval
from abstain.inference.small_samples import few_clusters_warning
from abstain.metrics.entry import PlausibleThresholds
from abstain.metrics.small_samples import (
    AcceptedSamples,
    accepted_samples,
    event_probability,
)
from abstain.metrics.working_points.quantities import (
    Quantity,
    coverage_influence,
    has_large_tie_group,
    influence_at_risk,
    vertex_at_coverage,
    vertex_at_risk,
    vertices_at_coverages,
)
from abstain.typing import FloatArray, IntArray


def coverage_at_risk_interval(
    s: Scored, level: float, cluster: IntArray | None, *, risk: float
) -> Interval:
    """Return the confidence interval of the coverage at a risk."""
    n_clusters = None if cluster is None else np.unique(cluster).size
    if n_clusters == 1:
        return no_interval(level, "one independent cluster shows no spread")
    s = rows_near_risk(s.influence_rows(cluster), risk, cluster)
    low, high = _coverage_bounds(s, risk, cluster, level)
    influence = influence_at_risk(s, max_risk=risk)
    error = influence_moments(
        influence, weight=s.weight, cluster=cluster, repeats=s.row_counts
    ).standard_error
    note = few_clusters_warning(n_clusters)
    if low == high:
        accepted = "every sample" if high == 1 else "no sample"
        certainty = f"{accepted} can be accepted with certainty at this level"
        note = f"{note}; {certainty}" if note else certainty
    return Interval(
        float(low),
        float(high),
        level,
        "test of the risk at each coverage, inverted",
        error if error > 0 else float("nan"),
        note,
    )


class VertexPlausibility(NamedTuple):
    """Plausibility of each threshold as the threshold with the largest coverage at a risk.

    The arrays have the shape (g + 1,). Entry 0 is the vertex -1, which accepts no sample.
    """

    #: Coverage of the threshold.
    coverage: FloatArray
    #: Effective number of samples for a test of the coverage.
    n_effective: FloatArray
    #: Distance of the threshold from the data in standard errors.
    distance: FloatArray
    #: Error of the coverage that this distance implies, in standard errors. The error is 0 unless
    #: weights depend on the loss.
    coverage_shift: FloatArray
    #: Share of the variance of the coverage that the risk does not explain.
    unexplained_variance: FloatArray


def _coverage_bounds(s: Scored, risk: float, cluster: IntArray | None, level: float) -> FloatArray:
    """Return the bounds of the interval of the largest coverage at a risk."""
    thresholds = vertex_plausibility(s, risk, cluster)
    near = thresholds.coverage[thresholds.distance <= 2]
    # The part of the squared quantile that the risk does not use remains for the error of the
    # coverage.
    squared_quantile = float(special.ndtri((1 + level) / 2)) ** 2
    remaining = squared_quantile - thresholds.distance**2
    if has_large_tie_group(s.groups, near.min(), near.max()):
        remaining_of_jump = remaining_squared_quantiles(level, thresholds.distance)
        remaining = np.where(thresholds.distance > 0, remaining_of_jump, remaining)
    is_plausible = remaining >= 0
    coverage = thresholds.coverage[is_plausible]
    n_effective = thresholds.n_effective[is_plausible]
    shift = thresholds.coverage_shift[is_plausible]
    unexplained_variance = thresholds.unexplained_variance[is_plausible]
    half_width = np.sqrt(remaining[is_plausible] * unexplained_variance)
    low = _wilson_bound(coverage, n_effective, shift + half_width)
    high = _wilson_bound(coverage, n_effective, shift - half_width)
    return np.array([low.min(), high.max()])


def rows_near_risk(s: Scored, risk: float, cluster: IntArray | None) -> Scored:
    """Return rows that contain each sample near the plausible thresholds as a separate row."""
    groups = s.groups
    if groups.is_merged is None:
        return s
    distance = vertex_plausibility(s, risk, cluster).distance
    plausible = np.flatnonzero(distance < MAX_DISTANCE)
    # The risk decreases within a group of merged successes, so the threshold is never within it.
    accepted_weight = np.append(0.0, groups.cumulative_weight)
    first_rank = int(accepted_weight[max(plausible[0] - 1, 0)])
    last_rank = int(accepted_weight[plausible[-1]])
    return s.with_separate_ranks(first_rank, last_rank)


def vertex_plausibility(s: Scored, risk: float, cluster: IntArray | None) -> VertexPlausibility:
    """Test each threshold as the threshold with the largest coverage at a risk.

    In the population, the risk at this threshold is at most the requested risk, and the risks at
    all larger coverages are above the requested risk.
    """
    groups = s.groups
    accepted = accepted_samples(s, cluster, risk)
    z_scores = _risk_z_scores(accepted, risk)
    # The risk is assumed to increase after the selected threshold.
    selected = vertex_at_risk(groups, risk) + 1
    risk_excess = np.append(0.0, np.maximum(z_scores, 0.0))
    risk_excess[selected + 1 :] = np.maximum.accumulate(risk_excess[selected + 1 :])
    # Entry i is the largest deficit among the thresholds of larger coverage.
    risk_deficit = np.maximum(-z_scores, 0.0)
    later_deficit = np.maximum.accumulate(risk_deficit[::-1])[::-1]
    later_deficit = np.append(later_deficit, 0.0)
    correlation = np.append(accepted.correlation[:1], accepted.correlation)
    coverage = np.append(0.0, groups.cumulative_weight / groups.total_weight)
    coverage[-1] = 1.0
    return VertexPlausibility(
        coverage=coverage,
        n_effective=np.append(accepted.n_for_coverage[:1], accepted.n_for_coverage),
        distance=_euclidean_norm(risk_excess, later_deficit),
        coverage_shift=correlation * (risk_excess - later_deficit),
        unexplained_variance=1 - correlation**2,
    )


#: Minimum z-score and minimum variance of the count for which Pearson's chi-squared replaces the
#: deviance. Thresholds at these distances are implausible, so the difference does not matter.
_LARGE_Z_SCORE, _LARGE_VARIANCE = 25.0, 50.0


def _risk_z_scores(accepted: AcceptedSamples, risk: float) -> FloatArray:
    """Return the excess of the risk at each threshold over the requested risk, in standard errors.

    The excess is the signed square root of the deviance of a binomial count of failures.
    """
    n = accepted.n_for_risk
    probability = event_probability(accepted.loss, risk)
    expected_failures = n * probability
    n_failures = np.minimum(n * accepted.risk / accepted.loss, n)
    excess = n_failures - expected_failures
    # The continuity correction is half a failure.
    excess = np.sign(excess) * np.maximum(np.abs(excess) - 0.5, 0.0)
    # The root of Pearson's chi-squared, which needs no logarithm, suffices for large distances.
    variance = expected_failures * (1 - probability)
    with np.errstate(divide="ignore", invalid="ignore"):
        z_scores: FloatArray = excess / np.sqrt(variance)
    is_far = (np.abs(z_scores) >= _LARGE_Z_SCORE) & (variance >= _LARGE_VARIANCE)
    near = np.flatnonzero(~is_far | ~np.isfinite(z_scores))
    z_scores[near] = _signed_root_deviance(n[near], expected_failures[near], excess[near])
    return z_scores


def _signed_root_deviance(n: FloatArray, expected: FloatArray, excess: FloatArray) -> FloatArray:
    """Return the signed square root of the binomial deviance of a count with this excess."""
    count = expected + excess
    complement = n - count
    expected_complement = n - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = special.xlogy(count, count / expected)
        deviance = deviance + special.xlogy(complement, complement / expected_complement)
    # For a risk of 0, no failure is expected, so the distance of any failure is infinite.
    deviance = np.where(expected > 0, deviance, np.where(count > 0, np.inf, 0.0))
    return np.asarray(np.sign(excess) * np.sqrt(2 * np.maximum(deviance, 0.0)))


def _wilson_bound(coverage: FloatArray, n: FloatArray, z: FloatArray) -> FloatArray:
    """Return the Wilson bound of each coverage, at a distance of `z` standard errors."""
    square = z * z
    half_width = np.sqrt(square * coverage * (1 - coverage) / n + (square / (2 * n)) ** 2)
    bound = (coverage + square / (2 * n) - np.sign(z) * half_width) / (1 + square / n)
    # A threshold that accepts no sample or all samples is assumed to do so in the population.
    is_certain = (coverage <= 0) | (coverage >= 1)
    return np.clip(np.where(is_certain, coverage, bound), 0.0, 1.0)


def plausible_thresholds_at_coverage(
    s: Scored, cluster: IntArray | None, *, quantity: Quantity, coverage: float
) -> PlausibleThresholds | None:
    """Return the plausible thresholds at a coverage, or None if the threshold cannot jump."""
    groups = s.groups
    error = _coverage_standard_error(s, coverage, cluster)
    if quantity.values_at_all_vertices is not None:
        return _plausible_thresholds_of_min_risk(quantity, coverage, s, error, cluster)
    if not has_large_tie_group(groups, coverage - 2 * error, coverage + 2 * error):
        return None
    # The coverages are at the far ends of the steps, on both sides of the requested coverage.
    offsets = np.append(DISTANCE_STEPS[1:], DISTANCE_STEPS[-1] + DISTANCE_STEPS[1]) * error
    coverages = np.clip(np.concatenate((coverage - offsets, coverage + offsets)), 0.0, 1.0)
    alternatives = vertices_at_coverages(groups, coverages)
    distinct_vertices, inverse = np.unique(alternatives, return_inverse=True)
    distinct_values = [quantity.value_at_vertex(groups, int(i)).value for i in distinct_vertices]
    vertex = vertex_at_coverage(groups, coverage)
    return _none_if_constant(
        PlausibleThresholds(
            rows=s,
            vertex=vertex,
            alternatives=alternatives,
            distances=np.tile(DISTANCE_STEPS, 2),
            values=np.array(distinct_values)[inverse],
            value=float(quantity.value_at_vertex(groups, vertex).value),
            influence_at_vertex=quantity.influence_at_vertex,
        )
    )


def _plausible_thresholds_of_min_risk(
    quantity: Quantity, coverage: float, s: Scored, error: float, cluster: IntArray | None
) -> PlausibleThresholds | None:
    """Return the plausible thresholds of minimum risk among those with at least the coverage."""
    distance = _distance_to_min_risk(s, coverage, error, cluster)
    plausible = np.flatnonzero(distance < MAX_DISTANCE)
    if s.groups.is_merged is not None:
        # A threshold within a merged group can be plausible if it is above the threshold of minimum
        # risk.
        min_coverage = max(coverage - MAX_DISTANCE * error, 0.0)
        first_rank = int(min_coverage * s.groups.total_weight)
        last_rank = int(s.groups.cumulative_weight[plausible[-1]])
        s = s.with_separate_ranks(first_rank, last_rank)
        distance = _distance_to_min_risk(s, coverage, error, cluster)
        plausible = np.flatnonzero(distance < MAX_DISTANCE)
    groups = s.groups
    vertex = vertex_at_coverage(groups, coverage)
    value = float(quantity.value_at_vertex(groups, vertex).value)
    if quantity.values_at_all_vertices is None or not np.isfinite(value):
        return None
    return _none_if_constant(
        PlausibleThresholds(
            rows=s,
            vertex=vertex,
            alternatives=plausible,
            distances=distance[plausible],
            values=quantity.values_at_all_vertices(groups)[plausible],
            value=value,
            influence_at_vertex=quantity.influence_at_vertex,
        )
    )


def _distance_to_min_risk(
    s: Scored, coverage: float, error: float, cluster: IntArray | None
) -> FloatArray:
    """Return the distance of each threshold from the threshold of minimum risk in standard errors.

    `error` is the standard error of the coverage.
    """
    groups = s.groups
    risk_moments = _RiskMoments.of(s, _n_effective_for_risk(s, cluster))
    # A threshold slightly below the requested coverage may reach the coverage in other data.
    shortfall = np.maximum(coverage - groups.cumulative_weight / groups.total_weight, 0.0)
    coverage_distance = np.where(shortfall > 0, np.inf, 0.0) if error == 0 else shortfall / error
    # The shortfall decreases with the coverage, so the implausible thresholds come first.
    n_implausible = int(np.count_nonzero(coverage_distance >= MAX_DISTANCE))
    selected = vertex_at_coverage(groups, coverage)
    excess = risk_moments.excess_z_scores(selected, n_implausible)
    distance = np.full_like(coverage_distance, np.inf)
    distance[n_implausible:] = _euclidean_norm(coverage_distance[n_implausible:], excess)
    # A threshold slightly above the requested coverage may miss the coverage in other data. The
    # minimum is then over larger coverages, which are at the far end of each step.
    coverages = np.minimum(coverage + (DISTANCE_STEPS + DISTANCE_STEPS[1]) * error, 1.0)
    required_weight = coverages * groups.total_weight * (1 - ROUNDING)
    first_vertices = np.searchsorted(groups.cumulative_weight, required_weight)
    vertices, steps = np.unique(vertices_at_coverages(groups, coverages), return_index=True)
    for vertex, step in zip(vertices, steps, strict=True):
        if vertex == selected:
            continue
        first = first_vertices[step]
        excess = risk_moments.excess_z_scores(int(vertex), first)
        alternative = _euclidean_norm(DISTANCE_STEPS[step], excess)
        np.minimum(distance[first:], alternative, out=distance[first:])
    return distance


def _euclidean_norm(x: FloatArray | float, y: FloatArray) -> FloatArray:
    """Return the square root of x^2 + y^2 faster than `np.hypot`."""
    return np.asarray(np.sqrt(x * x + y * y))


@dataclass(frozen=True, eq=False)
class _RiskMoments:
    """Risk of the accepted samples at each threshold, and moments for its standard error."""

    risk: FloatArray
    #: Variance of the loss, which is positive even without failures.
    loss_variance: FloatArray
    inverse_n_accepted: FloatArray

    @classmethod
    def of(cls, s: Scored, n_effective: float) -> Self:
        """Compute the risk and the moments at all thresholds."""
        groups = s.groups
        risk = groups.cumulative_loss / groups.cumulative_weight
        max_loss = float(s.loss.max()) or 1.0
        n_accepted = n_effective * groups.cumulative_weight / groups.total_weight
        # One failure is added to the accepted samples, so that the variance is positive.
        mean = (risk * n_accepted + max_loss) / (n_accepted + 1)
        return cls(
            risk=risk,
            loss_variance=mean * np.maximum(max_loss - mean, 0.0),
            inverse_n_accepted=1 / n_accepted,
        )

    def excess_z_scores(self, vertex: int, first: int = 0) -> FloatArray:
        """Return the excess of risks over the risk at `vertex`, in standard errors.

        The result contains the vertices from `first` on.
        """
        # The samples accepted at two thresholds are nested sets of m and m' > m samples. The
        # variance of the difference of their risks is the loss variance in the larger set times
        # 1/m - 1/m'.
        variance = self.loss_variance[first:].copy()
        variance[: max(vertex - first, 0)] = self.loss_variance[vertex]
        inverse_n = self.inverse_n_accepted
        variance *= np.abs(inverse_n[first:] - inverse_n[vertex])
        excess = np.maximum(self.risk[first:] - self.risk[vertex], 0.0)
        z_scores = np.zeros_like(excess)
        return np.asarray(np.divide(excess, np.sqrt(variance), out=z_scores, where=excess > 0))


def _n_effective_for_risk(s: Scored, cluster: IntArray | None) -> float:
    """Return the number of independent unweighted samples that estimate the risk equally well."""
    if s.has_unit_weights and cluster is None:
        return float(s.groups.n_samples)
    residual = s.loss - s.groups.risk
    error = standard_error(residual, weight=s.weight, cluster=cluster)
    standard_deviation = float(np.sqrt(np.average(residual**2, weights=s.weight)))
    if not 0 < error < np.inf or standard_deviation == 0:
        return float(s.n_rows)
    return (standard_deviation / error) ** 2


def _coverage_standard_error(s: Scored, coverage: float, cluster: IntArray | None) -> float:
    """Return the standard error of the coverage of a threshold near the requested coverage."""
    variance = coverage * (1 - coverage)
    if s.has_unit_weights and cluster is None:
        return float(np.sqrt(variance / s.groups.n_samples))
    # The error at the threshold of nearest coverage is rescaled to the requested coverage.
    coverages = s.groups.cumulative_weight / s.groups.total_weight
    nearest = int(np.abs(coverages[:-1] - coverage).argmin()) if coverages.size > 1 else 0
    variance_at_nearest = coverages[nearest] * (1 - coverages[nearest])
    if variance_at_nearest <= 0:
        return 0.0
    error = standard_error(coverage_influence(s, nearest), weight=s.weight, cluster=cluster)
    if not np.isfinite(error):
        return 0.0
    return float(error * np.sqrt(variance / variance_at_nearest))


def plausible_thresholds_at_risk(
    s: Scored, cluster: IntArray | None, *, risk: float
) -> PlausibleThresholds | None:
    """Return the plausible thresholds at a risk, or None if the threshold cannot jump."""
    s = rows_near_risk(s, risk, cluster)
    thresholds = vertex_plausibility(s, risk, cluster)
    near = thresholds.coverage[thresholds.distance <= 2]
    nearest = thresholds.coverage[thresholds.distance <= 1]
    # Next to the bounds 0 and 1, the coverage has no slope.
    is_next_to_bound = nearest.min() == 0 or nearest.max() == 1
    if not is_next_to_bound and not has_large_tie_group(s.groups, near.min(), near.max()):
        return None
    vertex = vertex_at_risk(s.groups, risk)
    plausible = np.flatnonzero(thresholds.distance < MAX_DISTANCE)
    return _none_if_constant(
        PlausibleThresholds(
            rows=s,
            vertex=vertex,
            # Entry 0 of `thresholds` is the vertex -1.
            alternatives=plausible - 1,
            distances=thresholds.distance[plausible],
            values=thresholds.coverage[plausible],
            value=float(thresholds.coverage[vertex + 1]),
            influence_at_vertex=coverage_influence,
        )
    )


def _none_if_constant(thresholds: PlausibleThresholds) -> PlausibleThresholds | None:
    """Return None if all plausible thresholds have the same value."""
    return thresholds if thresholds.reach.any() else None


def widen_over_thresholds(
    interval: Interval,
    thresholds: PlausibleThresholds,
    *,
    bounds: tuple[float, float],
    cluster: IntArray | None = None,
) -> Interval:
    """Extend an interval to cover the intervals at other plausible thresholds.

    The confidence level of an interval decreases with the distance of its threshold from the data.
    """
    squared_quantiles = remaining_squared_quantiles(interval.level, thresholds.distances)
    is_other = thresholds.alternatives != thresholds.vertex
    mask = (squared_quantiles > 0) & is_other & np.isfinite(thresholds.values)
    if np.isnan(interval.low) or not mask.any():
        return interval
    rows = thresholds.rows
    vertices = thresholds.alternatives[mask]
    values = thresholds.values[mask]
    quantiles = np.sqrt(squared_quantiles[mask])
    # An approximate half width selects the two thresholds that determine the bounds.
    n_accepted = rows.groups.cumulative_count[vertices]
    half_width = quantiles * np.sqrt(np.abs(values) / n_accepted)
    lowest = int(np.argmin(values - half_width))
    highest = int(np.argmax(values + half_width))
    low, high = interval.low, interval.high
    for i in (lowest, highest):
        alternative = interval_from_influence(
            float(values[i]),
            thresholds.influence_at_vertex(rows, int(vertices[i])),
            level=float(2 * special.ndtr(quantiles[i]) - 1),
            bounds=bounds,
            weight=rows.weight,
            cluster=cluster,
            repeats=rows.row_counts,
        )
        low = float(np.fmin.reduce([low, alternative.low, values[i]]))
        high = float(np.fmax.reduce([high, alternative.high, values[i]]))
    if low == interval.low and high == interval.high:
        return interval
    notes = [note for note in (AMBIGUOUS_THRESHOLD_NOTE, interval.note) if note]
    return replace(interval, low=low, high=high, note="; ".join(notes))
