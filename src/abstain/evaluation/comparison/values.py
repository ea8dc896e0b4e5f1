"""One metric of all methods on one data set: the values, and how they vary with the samples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from abstain._foundation.scored import Scored
from abstain.errors import InputError
from abstain.evaluation.comparison.runs import ScoredRun, have_same_samples, independence_codes
from abstain.inference.differences import magnitude
from abstain.inference.draws import Draws
from abstain.inference.influence import (
    covariance_from_contributions,
    unit_contributions,
    unit_has_weight,
)
from abstain.inference.pairs import pair_indices
from abstain.inference.small_samples import FailureCount, rounding_error
from abstain.metrics import Metric
from abstain.metrics.intervals import difference_range, fixed_threshold_influences, min_failures
from abstain.metrics.resampling import replicates
from abstain.metrics.small_samples import unbiased_influence
from abstain.typing import BoolArray, FloatArray, IntArray, Split


@dataclass(frozen=True, eq=False)
class RowWeights:
    """What the rows of all runs count, and which of them are independent."""

    #: Shape (rows,) or (rows, k). One column a method where some run gives them different weights.
    weight: FloatArray | None
    #: Shape (rows,). Codes of what is independent; None where every row is.
    cluster: IntArray | None

    @classmethod
    def from_runs(cls, units: Sequence[ScoredRun]) -> "RowWeights":
        """Join the runs: each counts the same, whatever its samples and their weights are."""
        if len(units) == 1:
            return cls(units[0].weight, units[0].cluster)
        each = [
            np.full(unit.n, 1 / unit.n)
            if unit.weight is None
            else unit.weight / unit.weight.sum(axis=0)
            for unit in units
        ]
        if any(own.ndim > 1 for own in each):
            k = len(units[0].scored)
            each = [own if own.ndim > 1 else np.repeat(own[:, None], k, axis=1) for own in each]
        return cls(np.concatenate(each), independence_codes(units))

    @cached_property
    def unit_has_weight(self) -> BoolArray | None:
        """Whether each method rests on each unit, shape (units, k); None where all weigh alike."""
        if self.weight is None or self.weight.ndim == 1:
            return None
        return unit_has_weight(self.weight, self.cluster)


@dataclass(frozen=True, eq=False)
class MethodValues:
    """One metric of all methods on one data set."""

    metric: Metric
    runs: tuple[ScoredRun, ...]
    #: Shape (runs, k). NaN where the metric is undefined.
    values: FloatArray
    #: What the rows of all runs count, and which are independent.
    rows: RowWeights
    #: Why, for each value that is NaN.
    reasons: tuple[str, ...] = ()
    #: Shape (units, k). What each sample (or cluster) adds to the error of the means; None without
    #: influence.
    shares: FloatArray | None = None
    #: Shape (runs, k, resamples). Of the bootstrap, where there was one.
    replicates: FloatArray | None = None
    #: Shape (units, k). The shares with the thresholds held that jump between large tie groups;
    #: None where none do.
    shares_at_fixed_threshold: FloatArray | None = None
    #: Shape (k, 2, steps). How far such jumps may move the means (`abstain.inference.intervals`).
    jump_effects: FloatArray | None = None
    #: Why each method allows no interval and no test, "" where it does; empty where all do.
    unreliable_reasons: tuple[str, ...] = ()

    @property
    def data(self) -> Split:
        """The data set."""
        return self.runs[0].data

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods."""
        return tuple(self.runs[0].scored)

    def select(self, methods: Sequence[str]) -> "MethodValues":
        """Return some of the methods, in this order."""
        if list(self.methods) == list(methods):
            return self
        columns = [self.methods.index(name) for name in methods]
        shares, drawn, held, reaches = (
            self.shares,
            self.replicates,
            self.shares_at_fixed_threshold,
            self.jump_effects,
        )
        return replace(
            self,
            runs=tuple(
                replace(unit, scored={name: unit.scored[name] for name in methods})
                for unit in self.runs
            ),
            values=self.values[:, columns],
            shares=None if shares is None else shares[:, columns],
            replicates=None if drawn is None else np.ascontiguousarray(drawn[:, columns]),
            shares_at_fixed_threshold=None if held is None else held[:, columns],
            jump_effects=None if reaches is None else reaches[columns],
            unreliable_reasons=tuple(self.unreliable_reasons[i] for i in columns)
            if self.unreliable_reasons
            else (),
        )

    @property
    def is_defined(self) -> bool:
        """Whether every value is a number."""
        return bool(np.isfinite(self.values).all())

    @cached_property
    def mean(self) -> FloatArray:
        """The mean over the runs, shape (k,)."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def is_unreliable(self) -> BoolArray:
        """Whether each method allows no interval and no test, shape (k,)."""
        return np.array([bool(self.unreliable_reason(i)) for i in range(len(self.methods))])

    def unreliable_reason(self, *methods: int) -> str:
        """Return why one of these methods allows no interval and no test, or an empty string."""
        return (
            next(filter(None, (self.unreliable_reasons[i] for i in methods)), "")
            if self.unreliable_reasons
            else ""
        )

    @property
    def evaluated_indices(self) -> list[int]:
        """The methods whose values are all numbers, by their places."""
        return np.flatnonzero(np.isfinite(self.values).all(axis=0)).tolist()

    @property
    def has_values_only(self) -> bool:
        """Whether nothing but the values is known: no influences, and nothing was resampled."""
        return self.shares is None and self.replicates is None

    def deciding_test(self, test: str) -> str:
        """Return the test that decides: the bootstrap where the metric has no influence."""
        lacking = test == "influence" and self.is_defined and self.shares is None
        return "bootstrap" if lacking else test

    def count_samples_and_failures(self, method: str, run: int | None = None) -> tuple[int, int]:
        """Return how many samples a method is judged by, and how many fail.

        In one run, or the fewest over the runs.
        """
        each = [
            u.count_samples_and_failures(method)
            for u in (self.runs if run is None else [self.runs[run]])
        ]
        return min(n for n, _ in each), min(failures for _, failures in each)

    def fewest_failures(self, *methods: int) -> FailureCount | None:
        """Return the fewest failures that the metric rests on, for some methods or for all.

        In the run that has the fewest; None where the metric does not rest on failures.
        """
        names = [self.methods[i] for i in methods] or self.methods
        return min_failures(
            self.metric, [unit.scored[name] for unit in self.runs for name in names]
        )

    def n_failures(self, *methods: int) -> int | None:
        """Return the number of `resting`."""
        found = self.fewest_failures(*methods)
        return None if found is None else found.n_failures

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """The range that differences of two methods cannot leave."""
        return difference_range(
            self.metric, [s for unit in self.runs for s in unit.scored.values()]
        )

    @cached_property
    def covariance(self) -> FloatArray | None:
        """The covariance (k, k) of the means: from influences, else from the replicates."""
        if self.shares is not None:
            return covariance_from_contributions(self.shares)
        if self.replicates is None:
            return None
        return np.atleast_2d(np.cov(self.mean_replicates))

    def cluster_codes(self, influences: FloatArray) -> IntArray | None:
        """Return a code for each row of influences where these are clusters, for the warning."""
        if self.runs[0].cluster is None:
            return None
        return np.arange(influences.shape[0])

    def n_clusters(self, *methods: int) -> int | None:
        """Return the number of clusters that any of the methods rests on; None without them."""
        if self._n_clusters is None or self.rows.unit_has_weight is None:
            return self._n_clusters
        return int(np.count_nonzero(self.rows.unit_has_weight[:, methods].any(axis=1)))

    @cached_property
    def _n_clusters(self) -> int | None:
        cluster = self.runs[0].cluster
        return None if cluster is None else np.unique(cluster).size

    @cached_property
    def n_units_per_pair(self) -> IntArray:
        """The independent units that every two methods rest on, as `combinations` has them."""
        first, second = pair_indices(len(self.methods))
        counted = self.rows.unit_has_weight
        if counted is None:
            units = 0 if self.shares is None else self.shares.shape[0]
            return np.full(first.size, units)
        each = counted.sum(axis=0)
        both = counted.T.astype(np.float64) @ counted.astype(np.float64)
        return np.asarray(each[first] + each[second] - both[first, second].astype(np.int64))

    @cached_property
    def influences(self) -> FloatArray:
        """The influence of each unit on the means: its share times the number of units."""
        if self.shares is None:
            raise InputError(f"{self.metric.name} has no influence function")
        return np.asarray(self.shares * self.shares.shape[0])

    def influences_of(self, *methods: int) -> FloatArray:
        """Return the influence of each unit on the means of some methods.

        Without the units that none of them rests on.
        """
        if self.shares is None or self.rows.unit_has_weight is None:
            return np.asarray(self.influences[:, list(methods)])
        rows = self.rows.unit_has_weight[:, methods].any(axis=1)
        return np.asarray(self.shares[:, list(methods)][rows] * np.count_nonzero(rows))

    def influences_at_fixed_threshold(self, *methods: int) -> tuple[FloatArray, FloatArray | None]:
        """Return `influences_on` with the thresholds held that jump, and the reach of the means."""
        if self.shares_at_fixed_threshold is None or self.jump_effects is None:
            return self.influences_of(*methods), None
        return replace(self, shares=self.shares_at_fixed_threshold).influences_of(
            *methods
        ), self.jump_effects[list(methods)]

    @cached_property
    def mean_replicates(self) -> FloatArray:
        """The replicates of the means over the runs, shape (k, resamples); NaN where unreliable."""
        return np.where(self.is_unreliable[:, None], np.nan, self.existing_replicates.mean(axis=0))

    @cached_property
    def has_varying_replicates(self) -> bool:
        """Whether there are replicates that differ, unless all methods are equal in all."""
        if self.replicates is None:
            return False
        drawn = self.mean_replicates[:, np.isfinite(self.mean_replicates).all(axis=0)]
        least = 1e-12 * float(np.abs(drawn).max(initial=0.0))
        # Nothing is left where the metric is undefined in every resample.
        if not drawn.size:
            return False
        return bool((np.ptp(drawn, axis=1) > least).any() or np.ptp(drawn) <= least)

    @property
    def existing_replicates(self) -> FloatArray:
        """The replicates, where there are some."""
        if self.replicates is None:
            raise InputError(f"{self.metric.name} was not resampled")
        return self.replicates


def compute_values(metric: Metric, units: Sequence[ScoredRun], rows: RowWeights) -> MethodValues:
    """Compute the metric for every run and method, and its influences where it has some."""
    found = [[metric.compute(s) for s in unit.scored.values()] for unit in units]
    values = np.array([[float(m.value) for m in row] for row in found])
    reasons = dict.fromkeys(m.reason for row in found for m in row if m.reason)
    sampled = MethodValues(metric, tuple(units), values, rows, tuple(reasons))
    function = metric.measurement.influence
    if not sampled.is_defined:
        return sampled
    size = magnitude(tuple(values.ravel()), sampled.bounds)
    if function is None:
        for own in values:
            equalize_rounding(rounding_error(0, size), own)
        return sampled
    tables = []
    for unit, own in zip(units, values, strict=True):
        columns = [
            unbiased_influence(metric, s, function(s), unit.cluster) for s in unit.scored.values()
        ]
        table = np.column_stack(columns)
        tables.append(_without_rounding(table, own, unit, size))
    table = np.concatenate(tables) if len(tables) > 1 else tables[0]
    sampled = replace(sampled, shares=unit_contributions(table, rows.weight, rows.cluster))
    return _without_unreliable(_with_held(sampled, tables, size))


def _without_unreliable(sampled: MethodValues) -> MethodValues:
    """Replace the shares of methods that allow no interval by NaN, and add the reasons."""
    unreliable_reason = sampled.metric.measurement.unreliable_reason
    reasons = tuple(
        next(filter(None, (unreliable_reason(unit.scored[name]) for unit in sampled.runs)), "")
        for name in sampled.methods
    )
    if not any(reasons):
        return sampled
    marked = replace(sampled, unreliable_reasons=reasons)
    shares, held = (
        None if table is None else np.where(marked.is_unreliable, np.nan, table)
        for table in (sampled.shares, sampled.shares_at_fixed_threshold)
    )
    return replace(marked, shares=shares, shares_at_fixed_threshold=held)


def _without_rounding(
    table: FloatArray, values: FloatArray, unit: ScoredRun, size: float
) -> FloatArray:
    """Make values and influences that differ by rounding only equal, in place."""
    least = rounding_error(table.shape[0], size)
    table[:, np.abs(table).max(axis=0) <= least] = 0.0
    equalize_rounding(least, values, table, unit.weight)
    return table


def _with_held(sampled: MethodValues, tables: Sequence[FloatArray], size: float) -> MethodValues:
    """Add what is known where thresholds jump between large tie groups."""
    found = [
        fixed_threshold_influences(sampled.metric, list(unit.scored.values()), unit.cluster)
        for unit in sampled.runs
    ]
    if not any(found):
        return sampled
    held, reaches = list(tables), []
    for r, (unit, own) in enumerate(zip(sampled.runs, found, strict=True)):
        if own is not None:
            held[r] = _without_rounding(own[0], sampled.values[r].copy(), unit, size)
            reaches.append(own[1])
    table = np.concatenate(held) if len(held) > 1 else held[0]
    return replace(
        sampled,
        shares_at_fixed_threshold=unit_contributions(
            table, sampled.rows.weight, sampled.rows.cluster
        ),
        # The mean over the runs: those whose thresholds do not jump add nothing.
        jump_effects=np.sum(reaches, axis=0) / len(sampled.runs),
    )


def equalize_rounding(
    least: float,
    values: FloatArray,
    table: FloatArray | None = None,
    weight: FloatArray | None = None,
) -> None:
    """Make values of methods equal, in place, that differ by rounding only.

    Where there are influences these have to agree too, as their weights (n, k) scale them.
    Rounding is no difference, but a regular one: tests and ranks would find it.
    """
    scale = None if weight is None or weight.ndim == 1 else weight / weight.mean(axis=0)
    for i, j in combinations(range(len(values)), 2):
        near = np.abs(values[i] - values[j]) <= least
        if table is None:
            values[j] = np.where(near, values[i], values[j])
        elif near and _farthest(table, scale, i, j) <= least:
            values[j] = values[i]
            # Influences of other weights may differ though their shares do not.
            if scale is None or np.array_equal(scale[:, i], scale[:, j]):
                table[:, j] = table[:, i]


def _farthest(table: FloatArray, scale: FloatArray | None, i: int, j: int) -> float:
    """Return how far the influences on two numbers are apart at most."""
    if scale is None:
        return float(np.abs(table[:, i] - table[:, j]).max())
    return float(np.abs(table[:, i] * scale[:, i] - table[:, j] * scale[:, j]).max())


def resample_values(
    metrics: Sequence[Metric], units: Sequence[ScoredRun], resamples: int, seed: int
) -> FloatArray:
    """Resample all methods, runs and metrics; shape (metrics, runs, k, resamples).

    Runs on the same samples share their draws; others are drawn apart.
    """
    if resamples < 2:
        raise InputError(
            f"`bootstrap` must be at least 2 for intervals and tests; got {resamples}. "
            "The default draws enough"
        )
    k = len(units[0].scored)
    if have_same_samples(units):
        draws = Draws(units[0].n, resamples, rng=seed, cluster=units[0].cluster)
        sets = [s for unit in units for s in unit.scored.values()]
        out = _replicates(sets, metrics, draws).reshape(len(metrics), len(units), k, resamples)
    else:
        seeds = np.random.SeedSequence(seed).generate_state(len(units), np.uint64)
        parts = []
        for unit, own in zip(units, seeds, strict=True):
            draws = Draws(unit.n, resamples, rng=int(own) >> 1, cluster=unit.cluster)
            parts.append(_replicates(list(unit.scored.values()), metrics, draws))
        out = np.stack(parts, axis=1)
    for metric, own in zip(metrics, out, strict=True):
        bounds = difference_range(metric, [s for unit in units for s in unit.scored.values()])
        size = magnitude((float(np.abs(own[np.isfinite(own)]).max(initial=0.0)),), bounds)
        for run in own:
            equalize_rounding(rounding_error(0, size), run)
    return out


def _replicates(sets: Sequence[Scored], metrics: Sequence[Metric], draws: Draws) -> FloatArray:
    """Resample scores of the same samples, shape (metrics, sets, resamples)."""
    others = [metric for metric in metrics if metric.measurement.replicates is None]
    rest = iter(replicates(sets, others, draws)) if others else iter(())
    batched = [metric.measurement.replicates for metric in metrics]
    return np.stack([compute(sets, draws) if compute else next(rest) for compute in batched])
