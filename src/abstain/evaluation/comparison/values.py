"""Compute the values and the sampling variation of one metric for all methods on one data set."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from abstain._foundation.scored import Scored
from abstain.errors import InputError
from abstain.evaluation.comparison.runs import ScoredRun, have_same_samples, independence_codes
from abstain.inference.draws import Draws
from abstain.inference.influence import (
    covariance_from_contributions,
    unit_contributions,
    unit_has_weight,
)
from abstain.inference.pairs import PairedNumbers, magnitude, pair_indices
from abstain.inference.small_samples import FailureCount, rounding_error
from abstain.metrics import Metric
from abstain.metrics.intervals import difference_range, fixed_threshold_influences, min_failures
from abstain.metrics.resampling import replicates
from abstain.metrics.small_samples import unbiased_influence
from abstain.typing import BoolArray, FloatArray, IntArray, Split


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Weights of the rows of all runs, and integer codes that are equal for dependent rows."""

    #: Weights, shape (rows,), or shape (rows, k) if the weights differ between methods.
    weight: FloatArray | None
    #: Code of the independent unit of each row, shape (rows,), or None if rows are independent.
    cluster: IntArray | None

    @classmethod
    def from_runs(cls, runs: Sequence[ScoredRun]) -> "RowWeights":
        """Concatenate the weights of the runs, scaled to the same total for each run."""
        if len(runs) == 1:
            return cls(runs[0].weight, runs[0].cluster)
        weights = []
        for run in runs:
            weight = np.ones(run.n) if run.weight is None else run.weight
            weights.append(weight / weight.sum(axis=0))
        if any(weight.ndim > 1 for weight in weights):
            n_methods = len(runs[0].scored)
            weights = [
                weight if weight.ndim > 1 else np.repeat(weight[:, None], n_methods, axis=1)
                for weight in weights
            ]
        return cls(np.concatenate(weights), independence_codes(runs))

    def select(self, columns: Sequence[int]) -> "RowWeights":
        """Return the weights of a subset of the methods."""
        if self.weight is None or self.weight.ndim == 1:
            return self
        return RowWeights(np.ascontiguousarray(self.weight[:, columns]), self.cluster)

    @cached_property
    def unit_has_weight(self) -> BoolArray | None:
        """Mask of the clusters or samples with positive weight for each method, shape (units, k).

        The mask is None if the weights are the same for all methods.
        """
        if self.weight is None or self.weight.ndim == 1:
            return None
        return unit_has_weight(self.weight, self.cluster)


@dataclass(frozen=True, eq=False)
class MethodValues:
    """The values of one metric for k methods on one data set.

    In this class, a unit is a cluster, or a single sample if there are no clusters.
    """

    metric: Metric
    runs: tuple[ScoredRun, ...]
    #: Values of the metric, shape (runs, k). An undefined value is NaN.
    values: FloatArray
    rows: RowWeights
    #: Reasons why values are NaN.
    reasons: tuple[str, ...] = ()
    #: Contribution of each unit to the error of the means over the runs, shape (units, k). It is
    #: None if the metric has no influence function.
    shares: FloatArray | None = None
    #: Bootstrap replicates, shape (runs, k, resamples), or None without resamples.
    replicates: FloatArray | None = None
    #: The same contributions as `shares` for thresholds that are fixed between large tie groups,
    #: shape (units, k). It is None if no threshold jumps between large tie groups.
    shares_at_fixed_threshold: FloatArray | None = None
    #: Changes of the means when thresholds jump between large tie groups, shape (k, 2, steps). See
    #: `abstain.inference.intervals`.
    jump_effects: FloatArray | None = None
    #: For each method, the reason why the method has no interval and no test, or an empty string.
    #: The tuple is empty if all methods have intervals and tests.
    unreliable_reasons: tuple[str, ...] = ()

    @property
    def data(self) -> Split:
        """Key of the data set, as (column, value) pairs."""
        return self.runs[0].data

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods."""
        return tuple(self.runs[0].scored)

    def select(self, methods: Sequence[str]) -> "MethodValues":
        """Return the values of a subset of the methods, in the order of the subset."""
        if list(self.methods) == list(methods):
            return self
        columns = [self.methods.index(name) for name in methods]

        def select_columns(table: FloatArray | None) -> FloatArray | None:
            return None if table is None else np.ascontiguousarray(table[:, columns])

        runs = []
        for run in self.runs:
            scored = {name: run.scored[name] for name in methods}
            runs.append(replace(run, scored=scored))
        effects, reasons = self.jump_effects, self.unreliable_reasons
        return replace(
            self,
            runs=tuple(runs),
            values=self.values[:, columns],
            rows=self.rows.select(columns),
            shares=select_columns(self.shares),
            replicates=select_columns(self.replicates),
            shares_at_fixed_threshold=select_columns(self.shares_at_fixed_threshold),
            jump_effects=None if effects is None else effects[columns],
            unreliable_reasons=tuple(reasons[i] for i in columns) if reasons else (),
        )

    @property
    def is_defined(self) -> bool:
        """Whether all values are finite."""
        return bool(np.isfinite(self.values).all())

    @cached_property
    def mean(self) -> FloatArray:
        """The mean of each method over the runs, shape (k,)."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def is_unreliable(self) -> BoolArray:
        """Mask of the methods that have no interval and no test, shape (k,)."""
        return np.array([bool(self.unreliable_reason(i)) for i in range(len(self.methods))])

    def unreliable_reason(self, *methods: int) -> str:
        """Return why any of these methods has no interval and no test, or an empty string."""
        if not self.unreliable_reasons:
            return ""
        return next(filter(None, (self.unreliable_reasons[i] for i in methods)), "")

    @property
    def evaluated_indices(self) -> list[int]:
        """Indices of the methods whose values are finite in all runs."""
        return np.flatnonzero(np.isfinite(self.values).all(axis=0)).tolist()

    @property
    def has_values_only(self) -> bool:
        """Whether there are neither influences nor replicates."""
        return self.shares is None and self.replicates is None

    def deciding_test(self, test: str) -> str:
        """Return the requested test, or "bootstrap" if a required influence function is missing."""
        has_no_influence = self.is_defined and self.shares is None
        return "bootstrap" if test == "influence" and has_no_influence else test

    def count_samples_and_failures(self, method: str, run: int | None = None) -> tuple[int, int]:
        """Return the numbers of samples and failures of a method in one run.

        If `run` is None, each number is the minimum over the runs.
        """
        runs = self.runs if run is None else [self.runs[run]]
        counts = [scored_run.count_samples_and_failures(method) for scored_run in runs]
        return min(n for n, _ in counts), min(n_failures for _, n_failures in counts)

    def fewest_failures(self, *methods: int) -> FailureCount | None:
        """Return the smallest failure count of any of these methods (default: all) in any run.

        The result is None if the metric does not depend on failures.
        """
        names = [self.methods[i] for i in methods] or self.methods
        samples = [run.scored[name] for run in self.runs for name in names]
        return min_failures(self.metric, samples)

    def n_failures(self, *methods: int) -> int | None:
        """Return the smallest number of failures of any of these methods in any run."""
        count = self.fewest_failures(*methods)
        return None if count is None else count.n_failures

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest possible difference between two methods."""
        return difference_range(self.metric, [s for run in self.runs for s in run.scored.values()])

    @cached_property
    def covariance(self) -> FloatArray | None:
        """Covariance matrix of the means over the runs, shape (k, k).

        The matrix is computed from influences if these exist, and otherwise from replicates.
        """
        if self.shares is not None:
            return covariance_from_contributions(self.shares)
        if self.replicates is None:
            return None
        return np.atleast_2d(np.cov(self.mean_replicates))

    def cluster_codes(self, influences: FloatArray) -> IntArray | None:
        """Return a code for each row of the influences if rows are clusters, and None otherwise."""
        if self.runs[0].cluster is None:
            return None
        return np.arange(influences.shape[0])

    def n_clusters(self, *methods: int) -> int | None:
        """Return the number of clusters with weight in any of these methods, if clusters exist."""
        if self._n_clusters is None or self.rows.unit_has_weight is None:
            return self._n_clusters
        return int(np.count_nonzero(self.rows.unit_has_weight[:, methods].any(axis=1)))

    @cached_property
    def _n_clusters(self) -> int | None:
        cluster = self.runs[0].cluster
        return None if cluster is None else np.unique(cluster).size

    @cached_property
    def n_units_per_pair(self) -> IntArray:
        """Number of units with positive weight for each pair of methods."""
        first, second = pair_indices(len(self.methods))
        has_weight = self.rows.unit_has_weight
        if has_weight is None:
            n_units = 0 if self.shares is None else self.shares.shape[0]
            return np.full(first.size, n_units)
        n_units_per_method = has_weight.sum(axis=0)
        n_shared = has_weight.T.astype(np.float64) @ has_weight.astype(np.float64)
        n_shared_per_pair = n_shared[first, second].astype(np.int64)
        return np.asarray(
            n_units_per_method[first] + n_units_per_method[second] - n_shared_per_pair
        )

    @cached_property
    def paired_numbers(self) -> PairedNumbers:
        """The differences of all pairs of methods, with the sums that tests by influences require.

        Callers set the level.
        """
        shares = (
            self.shares
            if self.shares_at_fixed_threshold is None
            else (self.shares_at_fixed_threshold)
        )
        if shares is None:
            raise InputError(f"{self.metric.name} has no influence function")
        return PairedNumbers.all_pairs(
            self.mean,
            shares,
            bounds=self.bounds,
            failures=[self.fewest_failures(i) for i in range(len(self.methods))],
            level=float("nan"),
            n_units=self.n_units_per_pair.astype(np.float64),
        )

    def influences_of(self, *methods: int) -> FloatArray:
        """Return the influence of each cluster or sample on the mean of each of these methods.

        Clusters and samples that have no weight for any of these methods are excluded.
        """
        if self.shares is None:
            raise InputError(f"{self.metric.name} has no influence function")
        shares = self.shares[:, list(methods)]
        has_weight = self.rows.unit_has_weight
        if has_weight is not None:
            shares = shares[has_weight[:, methods].any(axis=1)]
        return np.asarray(shares * shares.shape[0])

    def influences_at_fixed_threshold(self, *methods: int) -> tuple[FloatArray, FloatArray | None]:
        """Return the influences for fixed thresholds, and the effects of jumps of the thresholds.

        If no threshold jumps, return the influences and None.
        """
        if self.shares_at_fixed_threshold is None or self.jump_effects is None:
            return self.influences_of(*methods), None
        at_fixed_threshold = replace(self, shares=self.shares_at_fixed_threshold)
        return at_fixed_threshold.influences_of(*methods), self.jump_effects[list(methods)]

    @cached_property
    def mean_replicates(self) -> FloatArray:
        """Replicates of the means over the runs, shape (k, resamples).

        The replicates of methods without an interval are NaN.
        """
        return np.where(self.is_unreliable[:, None], np.nan, self.existing_replicates.mean(axis=0))

    @cached_property
    def has_varying_replicates(self) -> bool:
        """Whether the replicates vary, or all methods are equal in all replicates."""
        if self.replicates is None:
            return False
        is_finite = np.isfinite(self.mean_replicates).all(axis=0)
        finite_replicates = self.mean_replicates[:, is_finite]
        if not finite_replicates.size:
            return False
        tolerance = 1e-12 * float(np.abs(finite_replicates).max(initial=0.0))
        range_by_method = np.ptp(finite_replicates, axis=1)
        total_range = np.ptp(finite_replicates)
        return bool(range_by_method.max() > tolerance or total_range <= tolerance)

    @property
    def existing_replicates(self) -> FloatArray:
        """The replicates. InputError is raised if no resamples were drawn."""
        if self.replicates is None:
            raise InputError(f"{self.metric.name} was not resampled")
        return self.replicates


def compute_values(metric: Metric, runs: Sequence[ScoredRun], rows: RowWeights) -> MethodValues:
    """Return a metric for every run and method, with its influences if these exist."""
    method_values = _values_without_influences(metric, runs, rows)
    if not method_values.is_defined:
        return method_values
    values = method_values.values
    size = magnitude(tuple(values.ravel()), method_values.bounds)
    influence = metric.measurement.influence
    if influence is None:
        for values_of_run in values:
            equalize_rounding(rounding_error(0, size), values_of_run)
        return method_values
    tables = []
    for run, values_of_run in zip(runs, values, strict=True):
        columns = [
            unbiased_influence(metric, s, influence(s), run.cluster) for s in run.scored.values()
        ]
        influences = np.column_stack(columns)
        tables.append(_remove_rounding(influences, values_of_run, run, size))
    shares = unit_contributions(_concatenate(tables), rows.weight, rows.cluster)
    method_values = replace(method_values, shares=shares)
    method_values = _add_fixed_threshold_shares(method_values, tables, size)
    return _mark_unreliable(method_values)


def _values_without_influences(
    metric: Metric, runs: Sequence[ScoredRun], rows: RowWeights
) -> MethodValues:
    """Return a metric for every run and method, with the reasons why values are undefined."""
    values = np.empty((len(runs), len(runs[0].scored)))
    reasons = []
    for r, run in enumerate(runs):
        for i, s in enumerate(run.scored.values()):
            result = metric.compute(s)
            values[r, i] = float(result.value)
            if result.reason and result.reason not in reasons:
                reasons.append(result.reason)
    return MethodValues(metric, tuple(runs), values, rows, tuple(reasons))


def _mark_unreliable(method_values: MethodValues) -> MethodValues:
    """Record which methods have no interval, and replace their shares by NaN."""
    find_reason = method_values.metric.measurement.unreliable_reason
    reasons = []
    for name in method_values.methods:
        reasons_of_runs = (find_reason(run.scored[name]) for run in method_values.runs)
        reasons.append(next(filter(None, reasons_of_runs), ""))
    if not any(reasons):
        return method_values
    is_unreliable = np.array([bool(reason) for reason in reasons])

    def mask_unreliable(shares: FloatArray | None) -> FloatArray | None:
        return None if shares is None else np.where(is_unreliable, np.nan, shares)

    return replace(
        method_values,
        unreliable_reasons=tuple(reasons),
        shares=mask_unreliable(method_values.shares),
        shares_at_fixed_threshold=mask_unreliable(method_values.shares_at_fixed_threshold),
    )


def _remove_rounding(
    influences: FloatArray, values: FloatArray, run: ScoredRun, size: float
) -> FloatArray:
    """Replace values and influences that only differ by rounding errors by equal numbers."""
    tolerance = rounding_error(influences.shape[0], size)
    influences[:, np.abs(influences).max(axis=0) <= tolerance] = 0.0
    equalize_rounding(tolerance, values, influences, run.weight)
    return influences


def _concatenate(tables: Sequence[FloatArray]) -> FloatArray:
    """Return the concatenated rows of the runs, without a copy if there is one run."""
    return np.concatenate(tables) if len(tables) > 1 else tables[0]


def _add_fixed_threshold_shares(
    method_values: MethodValues, tables: Sequence[FloatArray], size: float
) -> MethodValues:
    """Add the influences for fixed thresholds and the effects of jumps, if thresholds jump."""
    runs = method_values.runs
    tables_at_fixed_threshold = list(tables)
    effects = []
    for r, run in enumerate(runs):
        samples = list(run.scored.values())
        result = fixed_threshold_influences(method_values.metric, samples, run.cluster)
        if result is None:
            continue
        influences, effects_of_run = result
        values = method_values.values[r].copy()
        tables_at_fixed_threshold[r] = _remove_rounding(influences, values, run, size)
        effects.append(effects_of_run)
    if not effects:
        return method_values
    rows = method_values.rows
    shares = unit_contributions(_concatenate(tables_at_fixed_threshold), rows.weight, rows.cluster)
    # The effects are means over all runs. A run whose thresholds do not jump has no effect.
    jump_effects = np.sum(effects, axis=0) / len(runs)
    return replace(method_values, shares_at_fixed_threshold=shares, jump_effects=jump_effects)


def equalize_rounding(
    tolerance: float,
    values: FloatArray,
    influences: FloatArray | None = None,
    weight: FloatArray | None = None,
) -> None:
    """Replace values of methods that only differ by rounding errors by equal numbers.

    If `influences` is passed, the weighted influences of the methods must also agree. Without this
    step, tests and ranks would treat rounding errors as differences.
    """
    scale: FloatArray | None = None
    if weight is not None and weight.ndim > 1:
        scale = weight / weight.mean(axis=0)
    for i, j in combinations(range(len(values)), 2):
        is_close = np.abs(values[i] - values[j]) <= tolerance
        if influences is None:
            values[j] = np.where(is_close, values[i], values[j])
            continue
        if not is_close:
            continue
        first, second = influences[:, i], influences[:, j]
        # If methods have different weights, influences may differ although the shares are equal.
        have_equal_weights = True
        if scale is not None:
            first, second = first * scale[:, i], second * scale[:, j]
            have_equal_weights = np.array_equal(scale[:, i], scale[:, j])
        if float(np.abs(first - second).max()) <= tolerance:
            values[j] = values[i]
            if have_equal_weights:
                influences[:, j] = influences[:, i]


def resample_values(
    metrics: Sequence[Metric], runs: Sequence[ScoredRun], n_resamples: int, seed: int
) -> FloatArray:
    """Return resampled values of all metrics, shape (metrics, runs, k, resamples).

    Runs with the same samples are resampled together. Other runs are resampled independently.
    """
    if n_resamples < 2:
        raise InputError(
            f"`bootstrap` must be at least 2 for intervals and tests; got {n_resamples}. "
            "The default is sufficient"
        )
    all_samples = [s for run in runs for s in run.scored.values()]
    if have_same_samples(runs):
        draws = Draws(runs[0].n, n_resamples, rng=seed, cluster=runs[0].cluster)
        shape = (len(metrics), len(runs), len(runs[0].scored), n_resamples)
        replicates_by_metric = _replicates(all_samples, metrics, draws).reshape(shape)
    else:
        replicates_by_metric = _resample_independently(metrics, runs, n_resamples, seed)
    for metric, table in zip(metrics, replicates_by_metric, strict=True):
        largest = float(np.abs(table[np.isfinite(table)]).max(initial=0.0))
        size = magnitude((largest,), difference_range(metric, all_samples))
        for table_of_run in table:
            equalize_rounding(rounding_error(0, size), table_of_run)
    return replicates_by_metric


def _resample_independently(
    metrics: Sequence[Metric], runs: Sequence[ScoredRun], n_resamples: int, seed: int
) -> FloatArray:
    """Return resampled values, shape (metrics, runs, k, resamples), with a seed for each run."""
    seeds = np.random.SeedSequence(seed).generate_state(len(runs), np.uint64)
    replicates_by_run = []
    for run, seed_of_run in zip(runs, seeds, strict=True):
        draws = Draws(run.n, n_resamples, rng=int(seed_of_run) >> 1, cluster=run.cluster)
        samples = list(run.scored.values())
        replicates_by_run.append(_replicates(samples, metrics, draws))
    return np.stack(replicates_by_run, axis=1)


def _replicates(samples: Sequence[Scored], metrics: Sequence[Metric], draws: Draws) -> FloatArray:
    """Return resampled metrics of several scores, shape (metrics, scores, resamples)."""
    tables: dict[str, FloatArray] = {}
    for metric in metrics:
        compute_replicates = metric.measurement.replicates
        if compute_replicates is not None:
            tables[metric.name] = compute_replicates(samples, draws)
    # All other metrics share one computation of the resamples.
    remaining = [metric for metric in metrics if metric.name not in tables]
    if remaining:
        for metric, table in zip(remaining, replicates(samples, remaining, draws), strict=True):
            tables[metric.name] = table
    return np.stack([tables[metric.name] for metric in metrics])
