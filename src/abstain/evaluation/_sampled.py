"""One metric of all methods on one data set: the values, and how they vary with the samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from abstain.errors import InputError
from abstain.evaluation.units import Unit, independent
from abstain.inference.draws import Draws
from abstain.inference.influence import covariance_of_shares, shares
from abstain.metrics import Metric
from abstain.metrics._influence_registry import failures_behind, influence_function
from abstain.metrics._resampled import replicates
from abstain.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Sampled:
    """One metric of all methods on one data set.

    Attributes
    ----------
    metric : Metric
        The metric.
    units : tuple of Unit
        The runs.
    values : ndarray of shape (runs, k)
        NaN where the metric is undefined.
    reasons : tuple of str
        Why, for each value that is NaN.
    replicates : ndarray of shape (runs, k, resamples) or None
        Of the bootstrap, where there was one.
    """

    metric: Metric
    units: tuple[Unit, ...]
    values: FloatArray
    reasons: tuple[str, ...] = ()
    replicates: FloatArray | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods."""
        return tuple(self.units[0].scored)

    @property
    def defined(self) -> bool:
        """Whether every value is a number."""
        return bool(np.isfinite(self.values).all())

    @property
    def mean(self) -> FloatArray:
        """The mean over the runs, shape (k,)."""
        return np.asarray(self.values.mean(axis=0))

    def failures(self, *methods: int) -> int | None:
        """Return the fewest failures that the metric rests on, for some methods or for all.

        In the run that has the fewest; None where the metric does not rest on failures.
        """
        names = [self.methods[i] for i in methods] or self.methods
        scored = [unit.scored[name] for unit in self.units for name in names]
        counts = [failures_behind(self.metric, s) for s in scored]
        return min((count for count in counts if count is not None), default=None)

    @cached_property
    def shares(self) -> FloatArray | None:
        """What each sample (or cluster) adds to the error of the means; None without influence."""
        function = influence_function(self.metric)
        if function is None or not self.defined:
            return None
        tables = [
            np.column_stack([function(s) for s in unit.scored.values()]) for unit in self.units
        ]
        weights = [next(iter(unit.scored.values())).weight for unit in self.units]
        if len(tables) == 1:
            return shares(tables[0], weights[0], self.units[0].cluster)
        # Every run counts the same, however many samples it has and whatever their weights are.
        each = [
            np.full(t.shape[0], 1 / t.shape[0]) if w is None else w / w.sum()
            for t, w in zip(tables, weights, strict=True)
        ]
        return shares(np.concatenate(tables), np.concatenate(each), independent(self.units))

    @cached_property
    def covariance(self) -> FloatArray | None:
        """The covariance (k, k) of the means: from influences, else from the replicates."""
        if self.shares is not None:
            return covariance_of_shares(self.shares)
        if self.replicates is None:
            return None
        return np.atleast_2d(np.cov(self.mean_replicates))

    @property
    def cluster(self) -> IntArray | None:
        """A code for each row of `influences` where these are clusters, for the warning."""
        if self.units[0].cluster is None:
            return None
        return np.arange(self.influences.shape[0])

    @cached_property
    def influences(self) -> FloatArray:
        """The influence of each unit on the means: its share times the number of units."""
        if self.shares is None:
            msg = f"{self.metric.name} has no influence function"
            raise InputError(msg)
        return np.asarray(self.shares * self.shares.shape[0])

    @property
    def mean_replicates(self) -> FloatArray:
        """The replicates of the means over the runs, shape (k, resamples)."""
        return np.asarray(self.drawn.mean(axis=0))

    @property
    def varies(self) -> bool:
        """Whether there are replicates that differ, unless all methods are equal in all."""
        if self.replicates is None:
            return False
        drawn = self.mean_replicates[:, np.isfinite(self.mean_replicates).all(axis=0)]
        least = 1e-12 * float(np.abs(drawn).max(initial=0.0))
        return bool((np.ptp(drawn, axis=1) > least).any() or np.ptp(drawn) <= least)

    @property
    def drawn(self) -> FloatArray:
        """The replicates, where there are some."""
        if self.replicates is None:
            msg = f"{self.metric.name} was not resampled"
            raise InputError(msg)
        return self.replicates


def same_samples(units: Sequence[Unit]) -> bool:
    """Tell whether all runs saw the same samples."""
    return all(units[0].same_samples(unit) for unit in units[1:])


def measured(metric: Metric, units: Sequence[Unit]) -> Sampled:
    """Compute the metric for every run and method."""
    found = [[metric.compute(s) for s in unit.scored.values()] for unit in units]
    values = np.array([[float(m.value) for m in row] for row in found])
    reasons = dict.fromkeys(m.reason for row in found for m in row if m.reason)
    return Sampled(metric, tuple(units), values, tuple(reasons))


def resampled(
    metrics: Sequence[Metric], units: Sequence[Unit], resamples: int, seed: int
) -> FloatArray:
    """Resample all methods, runs and metrics; shape (metrics, runs, k, resamples).

    Runs on the same samples share their draws; others are drawn apart.
    """
    k = len(units[0].scored)
    if same_samples(units):
        draws = Draws(units[0].n, resamples, rng=seed, cluster=units[0].cluster)
        sets = [s for unit in units for s in unit.scored.values()]
        out = replicates(sets, metrics, draws)
        return out.reshape(len(metrics), len(units), k, resamples)
    seeds = np.random.SeedSequence(seed).generate_state(len(units), np.uint64)
    parts = []
    for unit, own in zip(units, seeds, strict=True):
        draws = Draws(unit.n, resamples, rng=int(own) >> 1, cluster=unit.cluster)
        parts.append(replicates(list(unit.scored.values()), metrics, draws))
    return np.stack(parts, axis=1)
