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

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from abstain._foundation.imports import special
from abstain._foundation.scored import Scored
from abstain.inference.influence import spread_of
from abstain.inference.intervals import Interval, no_interval
from abstain.inference.reach import FARTHEST, squares_left
from abstain.inference.small_samples import few_clusters
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


def _coverage_ends(s: Scored, risk: float, cluster: IntArray | None, level: float) -> FloatArray:
    """Return the ends of the interval of the largest coverage with a risk."""
    found = plausible(s, risk, cluster)
    square = float(special.ndtri((1 + level) / 2)) ** 2
    near = found.coverage[found.away <= 2]
    left = square - found.away**2
    if jumps(s.groups, near.min(), near.max()):
        left = np.where(found.away > 0, squares_left(level, found.away), left)
    kept = left >= 0
    low, high = _wilson(found.coverage[kept], found.n[kept], left[kept])
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
    groups, sums = s.groups, _sums(s, cluster)
    z = _departure(sums, risk)
    found = at_risk(groups, risk) + 1
    above = np.append(0.0, np.maximum(z, 0.0))
    above[found + 1 :] = np.maximum.accumulate(above[found + 1 :])
    below = np.maximum.accumulate(np.maximum(-z, 0.0)[::-1])[::-1]
    away = np.hypot(above, np.append(below, 0.0))
    coverage = np.append(0.0, groups.through / groups.total)
    coverage[-1] = 1.0
    return Plausible(coverage, np.append(sums.n[:1], sums.n), away)


class _Sums(NamedTuple):
    """What the accepted of each threshold say, arrays of shape (g,)."""

    risk: FloatArray
    #: The size of a loss where there is one: its mean square over its mean.
    unit: FloatArray
    #: How many independent samples the risk rests on.
    accepted: FloatArray
    #: The same for the coverage.
    n: FloatArray


def _sums(s: Scored, cluster: IntArray | None) -> _Sums:
    groups = s.groups
    size, mass = groups.through, groups.loss_through
    risk, everyone = mass / size, np.full(size.size, groups.total)
    plain = s.counted and cluster is None
    if plain and s.binary:
        return _Sums(risk, np.ones(size.size), size, everyone)
    rows = _Rows.of(s, cluster)
    squares = rows.through(rows.weight * rows.loss**2)
    # As if two losses of the size usual among all had been seen: few say little.
    usual = squares[-1] / mass[-1] if mass[-1] > 0 else 1.0
    unit = (squares + 2 * usual * usual) / (mass + 2 * usual)
    if plain:
        return _Sums(risk, unit, size, everyone)
    share = size / groups.total
    alone = rows.through(rows.weight**2)
    square, ends = (alone, alone) if cluster is None else rows.squares_of_weight(alone)
    spread = square - 2 * share * ends + share**2 * square[-1]
    n = np.maximum(share * (1 - share) * groups.total**2 / np.maximum(spread, 1e-300), 1.0)
    accepted = size * size / alone
    if cluster is not None:
        apart, together = rows.squares_about(risk, alone, square)
        inflation = np.divide(together, apart, out=np.ones_like(apart), where=apart > 0)
        accepted /= np.maximum(inflation, 1.0)
    return _Sums(risk, unit, accepted, n)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The samples that count, with what the unit (cluster) of each has accepted before it."""

    home: IntArray
    weight: FloatArray
    loss: FloatArray
    weight_before: FloatArray
    loss_before: FloatArray
    weight_of_unit: FloatArray

    @classmethod
    def of(cls, s: Scored, cluster: IntArray | None) -> "_Rows":
        kept = s.home >= 0
        home, loss = s.home[kept], s.loss[kept].astype(np.float64)
        weight: FloatArray = np.ones(home.size) if s.weight is None else s.weight[kept]
        if cluster is None:
            return cls(home, weight, loss, np.zeros(home.size), np.zeros(home.size), weight)
        unit = cluster[kept]
        # By unit, and within it in the order of acceptance.
        order = np.argsort(unit * (int(home.max()) + 1) + home)
        before = [_before(x, unit, order) for x in (weight, weight * loss)]
        whole: FloatArray = np.bincount(unit, weights=weight).astype(np.float64)[unit]
        return cls(home, weight, loss, before[0], before[1], whole)

    def through(self, x: FloatArray) -> FloatArray:
        """Return the sum of what the accepted of each threshold have, shape (g,)."""
        out: FloatArray = np.cumsum(np.bincount(self.home, weights=x))
        return out

    def squares_of_weight(self, alone: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return, over the units, the squares of the weight accepted, and it times the whole.

        `alone` is the same over the samples.
        """
        # A square grows by the new square and twice the new times what was there.
        square = alone + 2 * self.through(self.weight * self.weight_before)
        return square, self.through(self.weight * self.weight_of_unit)

    def squares_about(
        self, risk: FloatArray, alone: FloatArray, square: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the squares of weight x (loss - risk) of the accepted: of samples, of units.

        From those of the weights, of samples and of units.
        """
        w, x = self.weight, self.weight * self.loss
        w0, x0 = self.weight_before, self.loss_before
        cross, own = self.through(w * x), self.through(x * x)
        apart = alone * risk**2 - 2 * risk * cross + own
        cross += self.through(w * x0 + x * w0)
        own += 2 * self.through(x * x0)
        return apart, square * risk**2 - 2 * risk * cross + own


def _before(x: FloatArray, unit: IntArray, order: IntArray) -> FloatArray:
    """Return the sum over the samples of the same unit that are accepted earlier."""
    ranked = x[order]
    running = np.cumsum(ranked) - ranked
    first = np.flatnonzero(np.diff(unit[order], prepend=-1))
    counts = np.diff(first, append=x.size)
    out = np.empty_like(x)
    out[order] = running - np.repeat(running[first], counts)
    return out


#: Beyond so many standard errors of a count in the tens nothing depends on how many they are.
_FAR, _ENOUGH = 25.0, 50.0


def _departure(sums: _Sums, risk: float) -> FloatArray:
    """Return how far the risk of the accepted of each threshold is above the one given.

    In standard errors: the signed root of the deviance of a binomial count of losses of the same
    size, half an event nearer (so that few events are as surprising as their tail). Where that is
    far beyond all that counts, the root of Pearson's chi-squared in its place, which needs no
    logarithm.
    """
    chance = np.minimum(risk / sums.unit, 1 - 1e-12)
    expected = sums.accepted * chance
    events = np.minimum(sums.accepted * sums.risk / sums.unit, sums.accepted)
    apart = events - expected
    apart = np.sign(apart) * np.maximum(np.abs(apart) - 0.5, 0.0)
    few = expected * (1 - chance)
    with np.errstate(divide="ignore", invalid="ignore"):
        out: FloatArray = apart / np.sqrt(few)
    near = np.flatnonzero((np.abs(out) < _FAR) | (few < _ENOUGH) | ~np.isfinite(out))
    out[near] = _signed_root(sums.accepted[near], expected[near], apart[near])
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


def _wilson(share: FloatArray, n: FloatArray, square: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the score interval of each share for the square of a normal quantile.

    What accepts nothing or everything does so in the population too.
    """
    half = np.sqrt(square * share * (1 - share) / n + (square / (2 * n)) ** 2)
    scale, center = 1 + square / n, share + square / (2 * n)
    sure = (share <= 0) | (share >= 1)
    low, high = (np.where(sure, share, end / scale) for end in (center - half, center + half))
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
