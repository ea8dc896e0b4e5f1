"""Confidence intervals at working points whose thresholds are selected from the data.

**Coverage at a risk.** The interval contains all coverages at which the risk may equal the
requested risk. The estimates of the coverage and of the risk of a threshold have errors. These
errors are independent, because the losses of the accepted samples carry no information about their
number. A pair of a threshold and a coverage c is therefore compared with the data by a sum of two
squares,

    (risk at the threshold, in standard errors from the requested risk)^2
    + (c, in standard errors from the coverage of the threshold)^2,

and the interval excludes c if this sum exceeds the squared normal quantile for every threshold. If
risk and coverage are linear near the estimate, the interval equals the interval of the influence
function. In contrast to the influence function, the method needs no slope and is valid for tie
groups of any size. The interval contains 1 unless the risk of all samples is significantly above
the requested risk. The interval contains 0 unless the risk at some threshold is significantly below
the requested risk.

**Risk at a coverage.** The metric is the risk at the best threshold with at least the coverage. The
metric jumps if a large tie group ends near the coverage, because a new sample may select the vertex
on the other side of the group. The metric then has no standard error. Instead, the vertex in the
population is one of a few plausible vertices. The distance of each vertex from the data is measured
in standard errors of the coverage or of the requested risk. If all groups near the threshold are
small, the influence function with a slope yields the same result. In this case, no plausible
vertices are needed.

The coverage at a risk has the same problem if the threshold may accept nearly all samples or no
sample. The error of the coverage is then one-sided, and the difference of two coverages has no
slope.

If the risk hardly increases with the coverage, the vertex of minimum risk is random. The risks of
the possible vertices are almost equal, but metrics of the rejected samples differ. For these
metrics, a vertex is plausible if its risk is not significantly above the minimum. A vertex that
ends near the requested coverage may reach this coverage in one sample but not in another sample.
The minimum is therefore computed for all coverages that are not significantly different from the
requested coverage.
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
        certainty = "every sample" if high == 1 else "no sample"
        certainty = f"{certainty} can be accepted with certainty at this level"
        note = "; ".join(filter(None, (note, certainty)))
    return Interval(
        float(low),
        float(high),
        level,
        "test of the risk at each coverage, inverted",
        error if error > 0 else float("nan"),
        note,
    )


class VertexPlausibility(NamedTuple):
    """Plausibility of each vertex as the vertex of largest coverage with a risk.

    The arrays have the shape (g + 1,). The first entry is the vertex that accepts no sample.
    """

    #: Coverage of the vertex.
    coverage: FloatArray
    #: Effective number of samples for a test of the coverage.
    n_effective: FloatArray
    #: Distance from the data in standard errors, if the vertex is the vertex in the population.
    distance: FloatArray
    #: Error of the coverage that this distance implies, in standard errors. The error is 0 unless
    #: weights depend on the loss.
    coverage_shift: FloatArray
    #: Share of the variance of the coverage that the risk does not explain.
    unexplained_variance: FloatArray


def _coverage_bounds(s: Scored, risk: float, cluster: IntArray | None, level: float) -> FloatArray:
    """Return the bounds of the interval of the largest coverage with a risk."""
    vertices = vertex_plausibility(s, risk, cluster)
    near = vertices.coverage[vertices.distance <= 2]
    # The part of the squared quantile that the risk does not use remains for the error of the
    # coverage.
    remaining = float(special.ndtri((1 + level) / 2)) ** 2 - vertices.distance**2
    if has_large_tie_group(s.groups, near.min(), near.max()):
        remaining_of_jump = remaining_squared_quantiles(level, vertices.distance)
        remaining = np.where(vertices.distance > 0, remaining_of_jump, remaining)
    mask = remaining >= 0
    coverage, n_effective = vertices.coverage[mask], vertices.n_effective[mask]
    shift = vertices.coverage_shift[mask]
    half_width = np.sqrt(remaining[mask] * vertices.unexplained_variance[mask])
    low = _wilson_bound(coverage, n_effective, shift + half_width)
    high = _wilson_bound(coverage, n_effective, shift - half_width)
    return np.array([low.min(), high.max()])


def rows_near_risk(s: Scored, risk: float, cluster: IntArray | None) -> Scored:
    """Return rows in which each sample near the plausible vertices is a separate row.

    The risk decreases within merged successes, so only the last vertex of a merged group can be
    selected.
    """
    groups = s.groups
    if groups.is_merged is None:
        return s
    distance = vertex_plausibility(s, risk, cluster).distance
    plausible = np.flatnonzero(distance < MAX_DISTANCE)
    ends = np.append(0.0, groups.cumulative_weight)
    return s.with_separate_ranks(int(ends[max(plausible[0] - 1, 0)]), int(ends[plausible[-1]]))


def vertex_plausibility(s: Scored, risk: float, cluster: IntArray | None) -> VertexPlausibility:
    """Compare each vertex with the data as the vertex of largest coverage with a risk.

    In the population, the risk of this vertex is at most the requested risk, and the risks of all
    larger coverages are above the requested risk. The function assumes that the risk increases
    after the selected vertex. The distance of a later vertex is therefore at least the distance of
    an earlier vertex after the selected one.
    """
    groups = s.groups
    sums = accepted_samples(s, cluster, risk)
    z_scores = _risk_z_scores(sums, risk)
    selected = vertex_at_risk(groups, risk) + 1
    too_high = np.append(0.0, np.maximum(z_scores, 0.0))
    too_high[selected + 1 :] = np.maximum.accumulate(too_high[selected + 1 :])
    # This array contains the largest deficit among the vertices of larger coverage.
    too_low_later = np.maximum.accumulate(np.maximum(-z_scores, 0.0)[::-1])[::-1]
    too_low_later = np.append(too_low_later, 0.0)
    correlation = np.append(sums.correlation[:1], sums.correlation)
    coverage = np.append(0.0, groups.cumulative_weight / groups.total_weight)
    coverage[-1] = 1.0
    return VertexPlausibility(
        coverage=coverage,
        n_effective=np.append(sums.n_for_coverage[:1], sums.n_for_coverage),
        distance=_euclidean_norm(too_high, too_low_later),
        coverage_shift=correlation * (too_high - too_low_later),
        unexplained_variance=1 - correlation**2,
    )


#: Minimum z-score and minimum variance of the count for which Pearson's chi-squared replaces the
#: deviance. All vertices at these distances are implausible, so the difference does not matter.
_LARGE_Z_SCORE, _LARGE_VARIANCE = 25.0, 50.0


def _risk_z_scores(sums: AcceptedSamples, risk: float) -> FloatArray:
    """Return the excess of the risk at each threshold over a risk in standard errors.

    The excess is the signed root of the deviance of a binomial count of losses of equal size. A
    continuity correction reduces the difference of counts by half an event. For very large
    distances, the function uses the root of Pearson's chi-squared, which needs no logarithm.
    """
    probability = event_probability(sums.loss, risk)
    expected = sums.n_for_risk * probability
    events = np.minimum(sums.n_for_risk * sums.risk / sums.loss, sums.n_for_risk)
    excess = events - expected
    excess = np.sign(excess) * np.maximum(np.abs(excess) - 0.5, 0.0)
    variance = expected * (1 - probability)
    with np.errstate(divide="ignore", invalid="ignore"):
        z_scores: FloatArray = excess / np.sqrt(variance)
    needs_deviance = (
        (np.abs(z_scores) < _LARGE_Z_SCORE) | (variance < _LARGE_VARIANCE) | ~np.isfinite(z_scores)
    )
    rows = np.flatnonzero(needs_deviance)
    z_scores[rows] = _signed_root_deviance(sums.n_for_risk[rows], expected[rows], excess[rows])
    return z_scores


def _signed_root_deviance(n: FloatArray, expected: FloatArray, excess: FloatArray) -> FloatArray:
    """Return the signed root of the binomial deviance of a count with this excess."""
    count = expected + excess
    complement, expected_complement = n - count, n - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = special.xlogy(count, count / expected)
        deviance = deviance + special.xlogy(complement, complement / expected_complement)
    # For a risk of 0, no event is expected, so the distance of any event is infinite.
    deviance = np.where(expected > 0, deviance, np.where(count > 0, np.inf, 0.0))
    return np.asarray(np.sign(excess) * np.sqrt(2 * np.maximum(deviance, 0.0)))


def _wilson_bound(coverage: FloatArray, n: FloatArray, z: FloatArray) -> FloatArray:
    """Return the Wilson bound, the proportion that is `z` standard errors from each coverage.

    If a threshold accepts no sample or all samples, the function assumes the same in the
    population.
    """
    square = z * z
    half_width = np.sqrt(square * coverage * (1 - coverage) / n + (square / (2 * n)) ** 2)
    bound = (coverage + square / (2 * n) - np.sign(z) * half_width) / (1 + square / n)
    is_certain = (coverage <= 0) | (coverage >= 1)
    return np.clip(np.where(is_certain, coverage, bound), 0.0, 1.0)


def plausible_thresholds_at_coverage(
    s: Scored, cluster: IntArray | None, *, quantity: Quantity, coverage: float
) -> PlausibleThresholds | None:
    """Return the plausible thresholds at a coverage, or None if the threshold cannot jump."""
    groups = s.groups
    error = _coverage_standard_error(s, coverage, cluster)
    if quantity.values_at_all_vertices is not None:
        return _plausible_vertices_of_min_risk(quantity, coverage, s, error, cluster)
    if not has_large_tie_group(groups, coverage - 2 * error, coverage + 2 * error):
        return None
    # The offsets are the far ends of the steps, which extend to both sides of the coverage.
    offsets = np.append(DISTANCE_STEPS[1:], DISTANCE_STEPS[-1] + DISTANCE_STEPS[1]) * error
    coverages = np.clip(np.concatenate((coverage - offsets, coverage + offsets)), 0.0, 1.0)
    alternatives = vertices_at_coverages(groups, coverages)
    distinct, inverse = np.unique(alternatives, return_inverse=True)
    distinct_values = [quantity.value_at_vertex(groups, int(i)).value for i in distinct]
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


def _plausible_vertices_of_min_risk(
    quantity: Quantity, coverage: float, s: Scored, error: float, cluster: IntArray | None
) -> PlausibleThresholds | None:
    """Return the plausible vertices of minimum risk with at least the coverage."""
    distance = _distance_to_min_risk(s, coverage, error, cluster)
    plausible = np.flatnonzero(distance < MAX_DISTANCE)
    if s.groups.is_merged is not None:
        # A vertex within a merged group can be plausible if it is before the vertex of minimum
        # risk.
        min_coverage = max(coverage - MAX_DISTANCE * error, 0.0)
        first_rank = int(min_coverage * s.groups.total_weight)
        s = s.with_separate_ranks(first_rank, int(s.groups.cumulative_weight[plausible[-1]]))
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
    """Return the distance of each vertex from the vertex of minimum risk in standard errors.

    A vertex slightly below the requested coverage may reach the coverage in another sample. A
    vertex slightly above the coverage may miss it in another sample, and the minimum is then over
    larger coverages.
    """
    groups = s.groups
    risk_moments = _RiskMoments.of(s, _n_effective_for_risk(s, cluster))
    shortfall = np.maximum(coverage - groups.cumulative_weight / groups.total_weight, 0.0)
    coverage_distance = np.where(shortfall > 0, np.inf, 0.0) if error == 0 else shortfall / error
    selected = vertex_at_coverage(groups, coverage)
    # The coverage distance decreases with the coverage, so the implausible vertices come first.
    n_implausible = int(np.count_nonzero(coverage_distance >= MAX_DISTANCE))
    distance = np.full_like(coverage_distance, np.inf)
    distance[n_implausible:] = _euclidean_norm(
        coverage_distance[n_implausible:], risk_moments.excess_z_scores(selected, n_implausible)
    )
    # The larger coverages are at the far end of each step.
    coverages = np.minimum(coverage + (DISTANCE_STEPS + DISTANCE_STEPS[1]) * error, 1.0)
    required_weight = coverages * groups.total_weight * (1 - ROUNDING)
    first_vertices = np.searchsorted(groups.cumulative_weight, required_weight)
    vertices, steps = np.unique(vertices_at_coverages(groups, coverages), return_index=True)
    for vertex, step in zip(vertices, steps, strict=True):
        if vertex != selected:
            first = first_vertices[step]
            excess = risk_moments.excess_z_scores(int(vertex), first)
            alternative = _euclidean_norm(DISTANCE_STEPS[step], excess)
            np.minimum(distance[first:], alternative, out=distance[first:])
    return distance


def _euclidean_norm(x: FloatArray | float, y: FloatArray) -> FloatArray:
    """Return the root of x^2 + y^2. It is four times faster than `np.hypot`."""
    return np.asarray(np.sqrt(x * x + y * y))


@dataclass(frozen=True, eq=False)
class _RiskMoments:
    """Risk of the accepted samples at each vertex, and moments for its standard error."""

    risk: FloatArray
    #: Variance of the loss. A pseudo-count of one failure makes it positive even without failures.
    loss_variance: FloatArray
    inverse_n_accepted: FloatArray

    @classmethod
    def of(cls, s: Scored, n_effective: float) -> Self:
        """Compute the moments at all vertices."""
        groups = s.groups
        risk = groups.cumulative_loss / groups.cumulative_weight
        max_loss = float(s.loss.max()) or 1.0
        n_accepted = n_effective * groups.cumulative_weight / groups.total_weight
        mean = (risk * n_accepted + max_loss) / (n_accepted + 1)
        return cls(risk, mean * np.maximum(max_loss - mean, 0.0), 1 / n_accepted)

    def excess_z_scores(self, vertex: int, first: int = 0) -> FloatArray:
        """Return the excess of risks over the risk at `vertex`, in standard errors.

        The result contains the vertices from `first` on. Consider the risks of two nested sets with
        m and m' > m samples. The variance of their difference is the variance of the loss in the
        larger set times 1/m - 1/m'.
        """
        variance = self.loss_variance[first:].copy()
        variance[: max(vertex - first, 0)] = self.loss_variance[vertex]
        inverse_n = self.inverse_n_accepted
        variance *= np.abs(inverse_n[first:] - inverse_n[vertex])
        excess = np.maximum(self.risk[first:] - self.risk[vertex], 0.0)
        zeros = np.zeros_like(excess)
        return np.asarray(np.divide(excess, np.sqrt(variance), out=zeros, where=excess > 0))


def _n_effective_for_risk(s: Scored, cluster: IntArray | None) -> float:
    """Return the number of independent unweighted samples that estimate the risk equally well."""
    if s.has_unit_weights and cluster is None:
        return float(s.groups.n_samples)
    residual = s.loss - s.groups.risk
    error = standard_error(residual, weight=s.weight, cluster=cluster)
    deviation = float(np.sqrt(np.average(residual**2, weights=s.weight)))
    if not 0 < error < np.inf or deviation == 0:
        return float(s.n_rows)
    return (deviation / error) ** 2


def _coverage_standard_error(s: Scored, coverage: float, cluster: IntArray | None) -> float:
    """Return the standard error of the coverage of a threshold near the requested coverage."""
    variance = coverage * (1 - coverage)
    if s.has_unit_weights and cluster is None:
        return float(np.sqrt(variance / s.groups.n_samples))
    # The nearest vertex is used, because the coverage of the vertex that reaches the requested
    # coverage may be much larger.
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
    vertices = vertex_plausibility(s, risk, cluster)
    near = vertices.coverage[vertices.distance <= 2]
    nearest = vertices.coverage[vertices.distance <= 1]
    # Next to the bounds 0 and 1, the coverage has no slope.
    is_next_to_bound = nearest.min() == 0 or nearest.max() == 1
    if not is_next_to_bound and not has_large_tie_group(s.groups, near.min(), near.max()):
        return None
    vertex = vertex_at_risk(s.groups, risk)
    plausible = np.flatnonzero(vertices.distance < MAX_DISTANCE)
    return _none_if_constant(
        PlausibleThresholds(
            rows=s,
            vertex=vertex,
            # Entry 0 of `vertices` is the vertex -1.
            alternatives=plausible - 1,
            distances=vertices.distance[plausible],
            values=vertices.coverage[plausible],
            value=float(vertices.coverage[vertex + 1]),
            influence_at_vertex=coverage_influence,
        )
    )


def _none_if_constant(thresholds: PlausibleThresholds) -> PlausibleThresholds | None:
    return thresholds if thresholds.reach.any() else None


def widen_over_thresholds(
    interval: Interval,
    thresholds: PlausibleThresholds,
    *,
    bounds: tuple[float, float],
    cluster: IntArray | None = None,
) -> Interval:
    """Extend an interval by the intervals at other plausible thresholds.

    The confidence level of an interval decreases with the distance of its threshold.
    """
    squares = remaining_squared_quantiles(interval.level, thresholds.distances)
    is_other = thresholds.alternatives != thresholds.vertex
    mask = (squares > 0) & is_other & np.isfinite(thresholds.values)
    if np.isnan(interval.low) or not mask.any():
        return interval
    rows = thresholds.rows
    vertices, values = thresholds.alternatives[mask], thresholds.values[mask]
    quantiles = np.sqrt(squares[mask])
    # An approximate half width selects the two thresholds that determine the bounds.
    half_width = quantiles * np.sqrt(np.abs(values) / rows.groups.cumulative_count[vertices])
    low, high = interval.low, interval.high
    for i in (int(np.argmin(values - half_width)), int(np.argmax(values + half_width))):
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
    if (low, high) == (interval.low, interval.high):
        return interval
    note = "; ".join(filter(None, (AMBIGUOUS_THRESHOLD_NOTE, interval.note)))
    return replace(interval, low=low, high=high, note=note)
