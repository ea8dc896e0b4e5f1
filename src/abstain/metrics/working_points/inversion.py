"""The interval of the coverage at a risk: all coverages at which the risk may be the one given.

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
"""

from typing import NamedTuple

import numpy as np

from abstain._foundation.imports import special
from abstain._foundation.scored import Scored
from abstain.inference.influence import spread_of
from abstain.inference.intervals import Interval, no_interval
from abstain.inference.reach import FARTHEST, squares_left
from abstain.inference.small_samples import few_clusters
from abstain.metrics.working_points.effective_samples import (
    AcceptedSamples,
    accepted_samples,
    event_probability,
)
from abstain.metrics.working_points.quantities import influence_at_risk
from abstain.metrics.working_points.vertices import at_risk, jumps
from abstain.typing import FloatArray, IntArray


def inverted_interval(
    s: Scored, level: float, cluster: IntArray | None, *, risk: float
) -> Interval:
    """Return the interval of the coverage at a risk."""
    units = None if cluster is None else np.unique(cluster).size
    if units == 1:
        return no_interval(level, "one independent cluster shows no spread")
    s = near_risk(s.rows(cluster), risk, cluster)
    low, high = _coverage_ends(s, risk, cluster, level)
    influence = influence_at_risk(s, risk=risk)
    error = spread_of(influence, weight=s.weight, cluster=cluster, times=s.times).error
    note = few_clusters(units)
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


class Plausible(NamedTuple):
    """How plausible each vertex is as the one of largest coverage that keeps a risk.

    From the one that accepts nothing on, arrays of shape (g + 1,).
    """

    #: The share accepted.
    coverage: FloatArray
    #: How many independent samples that share rests on.
    n: FloatArray
    #: How far from the data it is that this is the vertex, in standard errors.
    away: FloatArray
    #: The error of the coverage that this distance implies, in standard errors: 0 unless weights
    #: depend on the loss.
    shift: FloatArray
    #: Share of the variance of the coverage that the risk does not explain.
    unexplained: FloatArray


def _coverage_ends(s: Scored, risk: float, cluster: IntArray | None, level: float) -> FloatArray:
    """Return the ends of the interval of the largest coverage with a risk."""
    found = plausible(s, risk, cluster)
    square = float(special.ndtri((1 + level) / 2)) ** 2
    near = found.coverage[found.away <= 2]
    left = square - found.away**2
    if jumps(s.groups, near.min(), near.max()):
        left = np.where(found.away > 0, squares_left(level, found.away), left)
    kept = left >= 0
    reach = np.sqrt(left[kept] * found.unexplained[kept])
    shares, n, shift = found.coverage[kept], found.n[kept], found.shift[kept]
    low, high = (_score_end(shares, n, shift + end) for end in (reach, -reach))
    return np.array([low.min(), high.max()])


def near_risk(s: Scored, risk: float, cluster: IntArray | None) -> Scored:
    """Return rows in which every sample is apart at which the coverage may end.

    Within a stretch of successes the risk falls, so none is nearer to it than its end.
    """
    groups = s.groups
    if groups.stretch is None:
        return s
    kept = np.flatnonzero(plausible(s, risk, cluster).away < FARTHEST)
    ends = np.append(0.0, groups.through)
    return s.apart(int(ends[max(kept[0] - 1, 0)]), int(ends[kept[-1]]))


def plausible(s: Scored, risk: float, cluster: IntArray | None) -> Plausible:
    """Hold each vertex against the data.

    A vertex has the largest coverage with the risk if its own is not above it, and those of all
    larger coverages are. Beyond the vertex found, the risk is taken to grow: what comes after a
    threshold that is clearly above the risk is no less far away.
    """
    groups, sums = s.groups, accepted_samples(s, cluster, risk)
    z = _departure(sums, risk)
    found = at_risk(groups, risk) + 1
    above = np.append(0.0, np.maximum(z, 0.0))
    above[found + 1 :] = np.maximum.accumulate(above[found + 1 :])
    below = np.maximum.accumulate(np.maximum(-z, 0.0)[::-1])[::-1]
    below = np.append(below, 0.0)
    correlation = np.append(sums.correlation[:1], sums.correlation)
    coverage = np.append(0.0, groups.through / groups.total)
    coverage[-1] = 1.0
    return Plausible(
        coverage,
        np.append(sums.n_for_coverage[:1], sums.n_for_coverage),
        np.hypot(above, below),
        correlation * (above - below),
        1 - correlation**2,
    )


#: Beyond so many standard errors of a count in the tens nothing depends on how many they are.
_FAR, _ENOUGH = 25.0, 50.0


def _departure(sums: AcceptedSamples, risk: float) -> FloatArray:
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
    out[near] = _signed_root(sums.n_for_risk[near], expected[near], apart[near])
    return out


def _signed_root(n: FloatArray, expected: FloatArray, apart: FloatArray) -> FloatArray:
    """Return the signed root of the deviance of a count so far from the one expected of n."""
    seen = expected + apart
    rest, rest_expected = n - seen, n - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = special.xlogy(seen, seen / expected) + special.xlogy(rest, rest / rest_expected)
    # No loss is expected of a risk of 0: half an event more than none is without limit.
    deviance = np.where(expected > 0, deviance, np.where(seen > 0, np.inf, 0.0))
    return np.asarray(np.sign(apart) * np.sqrt(2 * np.maximum(deviance, 0.0)))


def _score_end(share: FloatArray, n: FloatArray, z: FloatArray) -> FloatArray:
    """Return the proportion that each share exceeds by `z` of its own standard errors (Wilson).

    What accepts nothing or everything does so in the population too.
    """
    square = z * z
    half = np.sqrt(square * share * (1 - share) / n + (square / (2 * n)) ** 2)
    end = (share + square / (2 * n) - np.sign(z) * half) / (1 + square / n)
    is_certain = (share <= 0) | (share >= 1)
    return np.clip(np.where(is_certain, share, end), 0.0, 1.0)
