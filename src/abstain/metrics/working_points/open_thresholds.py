"""Working points among large tie groups: which thresholds the data leave open.

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

import numpy as np

from abstain._foundation.imports import special
from abstain._foundation.scored import Scored
from abstain.curves.risk_coverage import ROUNDING
from abstain.inference.influence import standard_error
from abstain.inference.intervals import Interval, interval_from
from abstain.inference.reach import FARTHEST, OPEN, STEPS, squares_left
from abstain.metrics.entry import OpenThresholds
from abstain.metrics.working_points.inversion import near_risk, plausible
from abstain.metrics.working_points.quantities import Quantity
from abstain.metrics.working_points.vertices import (
    at_coverage,
    at_coverages,
    at_risk,
    jumps,
    share_at_vertex,
)
from abstain.typing import FloatArray, IntArray


def open_at_coverage(
    s: Scored, cluster: IntArray | None, *, quantity: Quantity, share: float
) -> OpenThresholds | None:
    """Return the thresholds that are left open at a coverage; None where nothing jumps."""
    groups = s.groups
    error = _error_of_coverage(s, share, cluster)
    if quantity.everywhere is not None:
        return _of_least_risk(quantity, share, s, error, cluster)
    if not jumps(groups, share - 2 * error, share + 2 * error):
        return None
    # The far end of each step, to either side.
    far = np.append(STEPS[1:], STEPS[-1] + STEPS[1])
    asked = np.clip(np.concatenate((share - far * error, share + far * error)), 0.0, 1.0)
    others = at_coverages(groups, asked)
    number, vertex = quantity.at, at_coverage(groups, share)
    known, place = np.unique(others, return_inverse=True)
    return _unless_all_equal(
        OpenThresholds(
            s,
            vertex,
            others,
            np.tile(STEPS, 2),
            np.array([number(groups, int(i)).value for i in known])[place],
            float(number(groups, vertex).value),
            quantity.at_vertex,
        )
    )


def _of_least_risk(
    quantity: Quantity, share: float, s: Scored, error: float, cluster: IntArray | None
) -> OpenThresholds | None:
    """Return the vertices that keep the coverage and may be those of least risk."""
    away = _away_from_least(s, share, error, cluster)
    kept = np.flatnonzero(away < FARTHEST)
    if s.groups.stretch is not None:
        # Before the vertex of least risk a sample within a stretch may be nearer than its end.
        first = int(max(share - FARTHEST * error, 0.0) * s.groups.total)
        s = s.apart(first, int(s.groups.through[kept[-1]]))
        away = _away_from_least(s, share, error, cluster)
        kept = np.flatnonzero(away < FARTHEST)
    groups = s.groups
    vertex = at_coverage(groups, share)
    value = float(quantity.at(groups, vertex).value)
    if quantity.everywhere is None or not np.isfinite(value):
        return None
    return _unless_all_equal(
        OpenThresholds(
            s,
            vertex,
            kept,
            away[kept],
            quantity.everywhere(groups)[kept],
            value,
            quantity.at_vertex,
        )
    )


def _away_from_least(s: Scored, share: float, error: float, cluster: IntArray | None) -> FloatArray:
    """Return how far the data are from the risk being least at each vertex, in standard errors.

    A vertex that ends short of the coverage keeps it in another study; one that ends just beyond
    falls short in another, and the least risk is then that of a larger coverage.
    """
    groups, worth = s.groups, _samples_worth(s, cluster)
    short = np.maximum(share - groups.through / groups.total, 0.0)
    away = np.where(short > 0, np.inf, 0.0) if error == 0 else short / error
    least = at_coverage(groups, share)
    away = np.hypot(away, _beyond_least(s, least, worth))
    # The far end of each step.
    asked = np.minimum(share + (STEPS + STEPS[1]) * error, 1.0)
    first = np.searchsorted(groups.through, asked * groups.total * (1 - ROUNDING))
    for vertex, step in zip(
        *np.unique(at_coverages(groups, asked), return_index=True), strict=True
    ):
        if vertex != least:
            beyond = np.hypot(STEPS[step], _beyond_least(s, int(vertex), worth))
            away[first[step] :] = np.minimum(away, beyond)[first[step] :]
    return away


def _beyond_least(s: Scored, vertex: int, worth: float) -> FloatArray:
    """Return how far the risk at each vertex is above that at one, in standard errors.

    `worth` are the `_samples_worth` of all. Of two nested sets of equal risk the difference varies
    as the risk does in the larger, times what 1/m is more in the smaller. One more failure is
    added, so that none leaves some spread.
    """
    groups = s.groups
    risk = groups.loss_through / groups.through
    larger = np.maximum(np.arange(risk.size), vertex)
    most = float(s.loss.max()) or 1.0
    counted = worth * groups.through / groups.total
    mean = (risk * counted + most) / (counted + 1)
    variance = (mean * np.maximum(most - mean, 0.0))[larger]
    spread = variance * np.abs(1 / counted - 1 / counted[vertex])
    apart = np.maximum(risk - risk[vertex], 0.0)
    out: FloatArray = np.divide(apart, np.sqrt(spread), out=np.zeros_like(apart), where=apart > 0)
    return out


def _samples_worth(s: Scored, cluster: IntArray | None) -> float:
    """Return how many independent samples of equal weight would know the risk as well."""
    if s.counted and cluster is None:
        return float(s.groups.n)
    residual = s.loss - s.groups.risk
    error = standard_error(residual, weight=s.weight, cluster=cluster)
    bare = float(np.sqrt(np.average(residual**2, weights=s.weight)))
    return (bare / error) ** 2 if 0 < error < np.inf and bare > 0 else float(s.n)


def _error_of_coverage(s: Scored, share: float, cluster: IntArray | None) -> float:
    """Return the standard error of a coverage near the one asked for."""
    bare = share * (1 - share)
    if s.counted and cluster is None:
        return float(np.sqrt(bare / s.groups.n))
    # A group that holds all that is asked for may be far larger: what counts is near its end.
    coverage = s.groups.through / s.groups.total
    near = int(np.abs(coverage[:-1] - share).argmin()) if coverage.size > 1 else 0
    spread = coverage[near] * (1 - coverage[near])
    if spread <= 0:
        return 0.0
    error = standard_error(share_at_vertex(s, near), weight=s.weight, cluster=cluster)
    return float(error * np.sqrt(bare / spread)) if np.isfinite(error) else 0.0


def open_at_risk(s: Scored, cluster: IntArray | None, *, risk: float) -> OpenThresholds | None:
    """Return the same for the coverage at a risk."""
    s = near_risk(s, risk, cluster)
    found = plausible(s, risk, cluster)
    near = found.coverage[found.away <= 2]
    nearest = found.coverage[found.away <= 1]
    # At either end the coverage stops moving, so that no slope describes it next to an end.
    is_next_to_end = nearest.min() == 0 or nearest.max() == 1
    if not is_next_to_end and not jumps(s.groups, near.min(), near.max()):
        return None
    vertex = at_risk(s.groups, risk)
    kept = np.flatnonzero(found.away < FARTHEST)
    return _unless_all_equal(
        OpenThresholds(
            s,
            vertex,
            kept - 1,
            found.away[kept],
            found.coverage[kept],
            float(found.coverage[vertex + 1]),
            share_at_vertex,
        )
    )


def _unless_all_equal(found: OpenThresholds) -> OpenThresholds | None:
    return found if found.reach.any() else None


def over_thresholds(
    found: Interval,
    left_open: OpenThresholds,
    *,
    bounds: tuple[float, float],
    cluster: IntArray | None = None,
) -> Interval:
    """Widen an interval by those at the other thresholds that are left open.

    Each of these is of the level that its distance leaves.
    """
    left = squares_left(found.level, left_open.away)
    kept = (left > 0) & (left_open.others != left_open.vertex) & np.isfinite(left_open.values)
    if np.isnan(found.low) or not kept.any():
        return found
    rows = left_open.rows
    others, values = left_open.others[kept], left_open.values[kept]
    reach = np.sqrt(left[kept])
    # A rough half width picks the two that count.
    half = reach * np.sqrt(np.abs(values) / rows.groups.count_through[others])
    ends = found.low, found.high
    for pick in (int(np.argmin(values - half)), int(np.argmax(values + half))):
        own = interval_from(
            float(values[pick]),
            left_open.influence(rows, int(others[pick])),
            level=float(2 * special.ndtr(reach[pick]) - 1),
            bounds=bounds,
            weight=rows.weight,
            cluster=cluster,
            times=rows.times,
        )
        ends = (
            float(np.fmin.reduce([ends[0], own.low, values[pick]])),
            float(np.fmax.reduce([ends[1], own.high, values[pick]])),
        )
    if ends == (found.low, found.high):
        return found
    notes = "; ".join(filter(None, (OPEN, found.note)))
    return replace(found, low=ends[0], high=ends[1], note=notes)
