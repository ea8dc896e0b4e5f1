"""Confidence intervals at a working point: of the coverage at a risk, and where ties make it jump.

The interval of the coverage at a risk holds all coverages at which the risk may be that one.

A coverage c is in the interval if some threshold could keep c and have that risk. Two things err
at a threshold: the share it keeps in the population, and the risk there. Their errors are
independent (the losses of the accepted say nothing about how many are accepted), so that a
threshold and a coverage are held against the data by the sum of two squares,

    (risk there, in standard errors of what was asked)^2 + (c, in standard errors of its share)^2,

and c is rejected where no threshold brings that below the square of the normal quantile. Where
risk and coverage are straight lines through the estimate, this is the interval of the influence
function. Unlike that it needs no slope, holds with tie groups of any size, and has a meaning at
the ends: 1 is in it unless the risk of all samples is clearly above the one given, 0 unless some
threshold is clearly below.

The risk at a coverage, as the risk at the best threshold that keeps it, jumps where a tie group
ends at that coverage. A study whose group ends within a standard error of it finds the one or the
other side by chance. What the rule finds is then no number with a standard error, but the vertex
that it would find in the population is one of a few, each so many standard errors of the coverage
(or of the risk that was asked for) away. Where all groups near the threshold are small the
influence function has the same result with a slope, and nothing is left open here.

The coverage at a risk has the same difficulty where nearly all samples (or none) may be accepted:
its error is one-sided there, and a difference of two such coverages has no slope either.

Where the risk hardly rises with the coverage, chance also picks the vertex of least risk, anywhere
from the coverage asked for on. The risk is the same at all of them; numbers that count what is
rejected are not, so for these every vertex is open whose risk cannot be told from the least. A
vertex that ends next to the coverage may keep it in one study and not in the next, so the least
risk is sought from all coverages on that the data cannot tell from the one asked for.
"""

from dataclasses import replace
from typing import NamedTuple

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
    """Return the interval of the coverage at a risk."""
    units = None if cluster is None else np.unique(cluster).size
    if units == 1:
        return no_interval(level, "one independent cluster shows no spread")
    s = rows_near_risk(s.influence_rows(cluster), risk, cluster)
    low, high = _coverage_bounds(s, risk, cluster, level)
    influence = influence_at_risk(s, max_risk=risk)
    error = influence_moments(
        influence, weight=s.weight, cluster=cluster, repeats=s.row_counts
    ).standard_error
    note = few_clusters_warning(units)
    if low == high:
        what = "every sample may be kept" if high == 1 else "nothing can be kept"
        note = "; ".join(filter(None, (note, f"{what}, beyond doubt at this level")))
    return Interval(
        float(low),
        float(high),
        level,
        "test of the risk at each coverage, inverted",
        error if error > 0 else float("nan"),
        note,
    )


class VertexPlausibility(NamedTuple):
    """How plausible each vertex is as the one of largest coverage that keeps a risk.

    From the one that accepts nothing on, arrays of shape (g + 1,).
    """

    #: The share accepted.
    coverage: FloatArray
    #: How many independent samples that share rests on.
    n_effective: FloatArray
    #: How far from the data it is that this is the vertex, in standard errors.
    distance: FloatArray
    #: The error of the coverage that this distance implies, in standard errors: 0 unless weights
    #: depend on the loss.
    coverage_shift: FloatArray
    #: Share of the variance of the coverage that the risk does not explain.
    unexplained_variance: FloatArray


def _coverage_bounds(s: Scored, risk: float, cluster: IntArray | None, level: float) -> FloatArray:
    """Return the ends of the interval of the largest coverage with a risk."""
    found = vertex_plausibility(s, risk, cluster)
    square = float(special.ndtri((1 + level) / 2)) ** 2
    near = found.coverage[found.distance <= 2]
    left = square - found.distance**2
    if has_large_tie_group(s.groups, near.min(), near.max()):
        left = np.where(
            found.distance > 0, remaining_squared_quantiles(level, found.distance), left
        )
    kept = left >= 0
    reach = np.sqrt(left[kept] * found.unexplained_variance[kept])
    shares, n, shift = found.coverage[kept], found.n_effective[kept], found.coverage_shift[kept]
    low, high = (_wilson_bound(shares, n, shift + end) for end in (reach, -reach))
    return np.array([low.min(), high.max()])


def rows_near_risk(s: Scored, risk: float, cluster: IntArray | None) -> Scored:
    """Return rows in which every sample is apart at which the coverage may end.

    Within merged successes the risk falls, so none is nearer to it than its end.
    """
    groups = s.groups
    if groups.is_merged is None:
        return s
    kept = np.flatnonzero(vertex_plausibility(s, risk, cluster).distance < MAX_DISTANCE)
    ends = np.append(0.0, groups.cumulative_weight)
    return s.with_separate_ranks(int(ends[max(kept[0] - 1, 0)]), int(ends[kept[-1]]))


def vertex_plausibility(s: Scored, risk: float, cluster: IntArray | None) -> VertexPlausibility:
    """Hold each vertex against the data.

    A vertex has the largest coverage with the risk if its own is not above it, and those of all
    larger coverages are. Beyond the vertex found, the risk is taken to grow: what comes after a
    threshold that is clearly above the risk is no less far away.
    """
    groups, sums = s.groups, accepted_samples(s, cluster, risk)
    z = _risk_z_scores(sums, risk)
    found = vertex_at_risk(groups, risk) + 1
    above = np.append(0.0, np.maximum(z, 0.0))
    above[found + 1 :] = np.maximum.accumulate(above[found + 1 :])
    below = np.maximum.accumulate(np.maximum(-z, 0.0)[::-1])[::-1]
    below = np.append(below, 0.0)
    correlation = np.append(sums.correlation[:1], sums.correlation)
    coverage = np.append(0.0, groups.cumulative_weight / groups.total_weight)
    coverage[-1] = 1.0
    return VertexPlausibility(
        coverage,
        np.append(sums.n_for_coverage[:1], sums.n_for_coverage),
        np.hypot(above, below),
        correlation * (above - below),
        1 - correlation**2,
    )


#: Beyond so many standard errors of a count in the tens nothing depends on how many they are.
_FAR, _ENOUGH = 25.0, 50.0


def _risk_z_scores(sums: AcceptedSamples, risk: float) -> FloatArray:
    """Return how far the risk of the accepted of each threshold is above the one given.

    In standard errors: the signed root of the deviance of a binomial count of losses of the same
    size, half an event nearer (so that few events are as surprising as their tail). Where that is
    far beyond all that counts, the root of Pearson's chi-squared in its place, which needs no
    logarithm.
    """
    chance = event_probability(sums.loss, risk)
    expected = sums.n_for_risk * chance
    events = np.minimum(sums.n_for_risk * sums.risk / sums.loss, sums.n_for_risk)
    apart = events - expected
    apart = np.sign(apart) * np.maximum(np.abs(apart) - 0.5, 0.0)
    few = expected * (1 - chance)
    with np.errstate(divide="ignore", invalid="ignore"):
        out: FloatArray = apart / np.sqrt(few)
    near = np.flatnonzero((np.abs(out) < _FAR) | (few < _ENOUGH) | ~np.isfinite(out))
    out[near] = _signed_root_deviance(sums.n_for_risk[near], expected[near], apart[near])
    return out


def _signed_root_deviance(n: FloatArray, expected: FloatArray, apart: FloatArray) -> FloatArray:
    """Return the signed root of the deviance of a count so far from the one expected of n."""
    seen = expected + apart
    rest, rest_expected = n - seen, n - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = special.xlogy(seen, seen / expected) + special.xlogy(rest, rest / rest_expected)
    # No loss is expected of a risk of 0: half an event more than none is without limit.
    deviance = np.where(expected > 0, deviance, np.where(seen > 0, np.inf, 0.0))
    return np.asarray(np.sign(apart) * np.sqrt(2 * np.maximum(deviance, 0.0)))


def _wilson_bound(share: FloatArray, n: FloatArray, z: FloatArray) -> FloatArray:
    """Return the proportion that each share exceeds by `z` of its own standard errors (Wilson).

    What accepts nothing or everything does so in the population too.
    """
    square = z * z
    half = np.sqrt(square * share * (1 - share) / n + (square / (2 * n)) ** 2)
    end = (share + square / (2 * n) - np.sign(z) * half) / (1 + square / n)
    is_certain = (share <= 0) | (share >= 1)
    return np.clip(np.where(is_certain, share, end), 0.0, 1.0)


def plausible_thresholds_at_coverage(
    s: Scored, cluster: IntArray | None, *, quantity: Quantity, coverage: float
) -> PlausibleThresholds | None:
    """Return the thresholds that are left open at a coverage; None where nothing jumps."""
    groups = s.groups
    error = _coverage_standard_error(s, coverage, cluster)
    if quantity.values_at_all_vertices is not None:
        return _plausible_vertices_of_min_risk(quantity, coverage, s, error, cluster)
    if not has_large_tie_group(groups, coverage - 2 * error, coverage + 2 * error):
        return None
    # The far end of each step, to either side.
    far = np.append(DISTANCE_STEPS[1:], DISTANCE_STEPS[-1] + DISTANCE_STEPS[1])
    asked = np.clip(np.concatenate((coverage - far * error, coverage + far * error)), 0.0, 1.0)
    others = vertices_at_coverages(groups, asked)
    number, vertex = quantity.value_at_vertex, vertex_at_coverage(groups, coverage)
    known, place = np.unique(others, return_inverse=True)
    return _none_if_constant(
        PlausibleThresholds(
            s,
            vertex,
            others,
            np.tile(DISTANCE_STEPS, 2),
            np.array([number(groups, int(i)).value for i in known])[place],
            float(number(groups, vertex).value),
            quantity.influence_at_vertex,
        )
    )


def _plausible_vertices_of_min_risk(
    quantity: Quantity, share: float, s: Scored, error: float, cluster: IntArray | None
) -> PlausibleThresholds | None:
    """Return the vertices that keep the coverage and may be those of least risk."""
    away = _distance_to_min_risk(s, share, error, cluster)
    kept = np.flatnonzero(away < MAX_DISTANCE)
    if s.groups.is_merged is not None:
        # Before the vertex of least risk a merged sample may be nearer than its end.
        first = int(max(share - MAX_DISTANCE * error, 0.0) * s.groups.total_weight)
        s = s.with_separate_ranks(first, int(s.groups.cumulative_weight[kept[-1]]))
        away = _distance_to_min_risk(s, share, error, cluster)
        kept = np.flatnonzero(away < MAX_DISTANCE)
    groups = s.groups
    vertex = vertex_at_coverage(groups, share)
    value = float(quantity.value_at_vertex(groups, vertex).value)
    if quantity.values_at_all_vertices is None or not np.isfinite(value):
        return None
    return _none_if_constant(
        PlausibleThresholds(
            s,
            vertex,
            kept,
            away[kept],
            quantity.values_at_all_vertices(groups)[kept],
            value,
            quantity.influence_at_vertex,
        )
    )


def _distance_to_min_risk(
    s: Scored, share: float, error: float, cluster: IntArray | None
) -> FloatArray:
    """Return how far the data are from the risk being least at each vertex, in standard errors.

    A vertex that ends short of the coverage keeps it in another study; one that ends just beyond
    falls short in another, and the least risk is then that of a larger coverage.
    """
    groups, worth = s.groups, _n_effective_for_risk(s, cluster)
    short = np.maximum(share - groups.cumulative_weight / groups.total_weight, 0.0)
    away = np.where(short > 0, np.inf, 0.0) if error == 0 else short / error
    least = vertex_at_coverage(groups, share)
    away = np.hypot(away, _risk_excess_z_scores(s, least, worth))
    # The far end of each step.
    asked = np.minimum(share + (DISTANCE_STEPS + DISTANCE_STEPS[1]) * error, 1.0)
    first = np.searchsorted(groups.cumulative_weight, asked * groups.total_weight * (1 - ROUNDING))
    for vertex, step in zip(
        *np.unique(vertices_at_coverages(groups, asked), return_index=True), strict=True
    ):
        if vertex != least:
            beyond = np.hypot(DISTANCE_STEPS[step], _risk_excess_z_scores(s, int(vertex), worth))
            away[first[step] :] = np.minimum(away, beyond)[first[step] :]
    return away


def _risk_excess_z_scores(s: Scored, vertex: int, worth: float) -> FloatArray:
    """Return how far the risk at each vertex is above that at one, in standard errors.

    `worth` are the `_samples_worth` of all. Of two nested sets of equal risk the difference varies
    as the risk does in the larger, times what 1/m is more in the smaller. One more failure is
    added, so that none leaves some spread.
    """
    groups = s.groups
    risk = groups.cumulative_loss / groups.cumulative_weight
    larger = np.maximum(np.arange(risk.size), vertex)
    most = float(s.loss.max()) or 1.0
    counted = worth * groups.cumulative_weight / groups.total_weight
    mean = (risk * counted + most) / (counted + 1)
    variance = (mean * np.maximum(most - mean, 0.0))[larger]
    spread = variance * np.abs(1 / counted - 1 / counted[vertex])
    apart = np.maximum(risk - risk[vertex], 0.0)
    out: FloatArray = np.divide(apart, np.sqrt(spread), out=np.zeros_like(apart), where=apart > 0)
    return out


def _n_effective_for_risk(s: Scored, cluster: IntArray | None) -> float:
    """Return how many independent samples of equal weight would know the risk as well."""
    if s.has_unit_weights and cluster is None:
        return float(s.groups.n_samples)
    residual = s.loss - s.groups.risk
    error = standard_error(residual, weight=s.weight, cluster=cluster)
    bare = float(np.sqrt(np.average(residual**2, weights=s.weight)))
    return (bare / error) ** 2 if 0 < error < np.inf and bare > 0 else float(s.n_rows)


def _coverage_standard_error(s: Scored, share: float, cluster: IntArray | None) -> float:
    """Return the standard error of a coverage near the one asked for."""
    bare = share * (1 - share)
    if s.has_unit_weights and cluster is None:
        return float(np.sqrt(bare / s.groups.n_samples))
    # A group that holds all that is asked for may be far larger: what counts is near its end.
    coverage = s.groups.cumulative_weight / s.groups.total_weight
    near = int(np.abs(coverage[:-1] - share).argmin()) if coverage.size > 1 else 0
    spread = coverage[near] * (1 - coverage[near])
    if spread <= 0:
        return 0.0
    error = standard_error(coverage_influence(s, near), weight=s.weight, cluster=cluster)
    return float(error * np.sqrt(bare / spread)) if np.isfinite(error) else 0.0


def plausible_thresholds_at_risk(
    s: Scored, cluster: IntArray | None, *, risk: float
) -> PlausibleThresholds | None:
    """Return the same for the coverage at a risk."""
    s = rows_near_risk(s, risk, cluster)
    found = vertex_plausibility(s, risk, cluster)
    near = found.coverage[found.distance <= 2]
    nearest = found.coverage[found.distance <= 1]
    # At either end the coverage stops moving, so that no slope describes it next to an end.
    is_next_to_end = nearest.min() == 0 or nearest.max() == 1
    if not is_next_to_end and not has_large_tie_group(s.groups, near.min(), near.max()):
        return None
    vertex = vertex_at_risk(s.groups, risk)
    kept = np.flatnonzero(found.distance < MAX_DISTANCE)
    return _none_if_constant(
        PlausibleThresholds(
            s,
            vertex,
            kept - 1,
            found.distance[kept],
            found.coverage[kept],
            float(found.coverage[vertex + 1]),
            coverage_influence,
        )
    )


def _none_if_constant(found: PlausibleThresholds) -> PlausibleThresholds | None:
    return found if found.reach.any() else None


def widen_over_thresholds(
    found: Interval,
    left_open: PlausibleThresholds,
    *,
    bounds: tuple[float, float],
    cluster: IntArray | None = None,
) -> Interval:
    """Widen an interval by those at the other thresholds that are left open.

    Each of these is of the level that its distance leaves.
    """
    left = remaining_squared_quantiles(found.level, left_open.distances)
    kept = (left > 0) & (left_open.alternatives != left_open.vertex) & np.isfinite(left_open.values)
    if np.isnan(found.low) or not kept.any():
        return found
    rows = left_open.rows
    others, values = left_open.alternatives[kept], left_open.values[kept]
    reach = np.sqrt(left[kept])
    # A rough half width picks the two that count.
    half = reach * np.sqrt(np.abs(values) / rows.groups.cumulative_count[others])
    ends = found.low, found.high
    for pick in (int(np.argmin(values - half)), int(np.argmax(values + half))):
        own = interval_from_influence(
            float(values[pick]),
            left_open.influence_at_vertex(rows, int(others[pick])),
            level=float(2 * special.ndtr(reach[pick]) - 1),
            bounds=bounds,
            weight=rows.weight,
            cluster=cluster,
            repeats=rows.row_counts,
        )
        ends = (
            float(np.fmin.reduce([ends[0], own.low, values[pick]])),
            float(np.fmax.reduce([ends[1], own.high, values[pick]])),
        )
    if ends == (found.low, found.high):
        return found
    notes = "; ".join(filter(None, (AMBIGUOUS_THRESHOLD_NOTE, found.note)))
    return replace(found, low=ends[0], high=ends[1], note=notes)
