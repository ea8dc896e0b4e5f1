"""Compute estimates, risk-coverage bands and non-inferiority tests on one data set."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from abstain._foundation.scored import MetricValue
from abstain.curves.bands import compute_band
from abstain.evaluation.comparison.plan import Plan
from abstain.evaluation.comparison.runs import ScoredRun
from abstain.evaluation.comparison.tables import MEAN, Estimate, MethodBand, NonInferiorityRow
from abstain.evaluation.comparison.values import MethodValues
from abstain.evaluation.intervals import NO_SPREAD, interval_of_replicates
from abstain.inference.bootstrap_intervals import bca, has_variation, with_notes
from abstain.inference.intervals import (
    Interval,
    interval_from_influence,
    no_interval,
    widen_over_thresholds,
)
from abstain.inference.multiplicity import adjust
from abstain.inference.non_inferiority import (
    NonInferiority,
    non_inferiority,
    non_inferiority_from_influences,
)
from abstain.inference.small_samples import ModelVariance, few_clusters_warning
from abstain.metrics.intervals import interval_of_metric, value_bounds
from abstain.metrics.resampling import percentile_interval
from abstain.metrics.small_samples import expected_variance, max_degrees_of_freedom


def estimates(method_values: MethodValues, plan: Plan) -> Iterator[Estimate]:
    """Yield the estimate of each method in each run, and its mean if there are several runs."""
    n_runs, n_methods = method_values.values.shape
    skip_intervals = plan.skip_slow and method_values.has_values_only
    for r, i in product(range(n_runs), range(n_methods)):
        if skip_intervals:
            interval = _missing_interval(method_values, plan)
        else:
            interval = _interval_of_run(method_values, r, i, plan)
        yield _build_estimate(method_values, i, interval, r)
    if n_runs > 1 and (skip_intervals or method_values.is_defined):
        for i in method_values.evaluated_indices:
            yield mean_estimate(method_values, i, plan)


def mean_estimate(method_values: MethodValues, i: int, plan: Plan, run: str = MEAN) -> Estimate:
    """Return the mean over the runs of one method, with an interval if it can be computed."""
    skip_interval = plan.skip_slow and method_values.has_values_only
    if method_values.is_defined and not skip_interval:
        interval = _interval_of_mean(method_values, i, plan)
    else:
        interval = _missing_interval(method_values, plan)
    return _build_estimate(method_values, i, interval, run)


def _missing_interval(method_values: MethodValues, plan: Plan) -> Interval:
    """Return an interval with NaN bounds and the reason why it cannot be computed."""
    reasons = "; ".join(method_values.reasons)
    return no_interval(plan.level, reasons or method_values.metric.reason_without_interval)


def _build_estimate(
    method_values: MethodValues, i: int, interval: Interval, run: int | str
) -> Estimate:
    """Return the estimate in one run, or the mean over all runs."""
    method = method_values.methods[i]
    if isinstance(run, str):
        run_index, run_name, value = None, run, method_values.mean[i]
    else:
        run_index, run_name = run, method_values.runs[run].run
        value = method_values.values[run, i]
    n, failures = method_values.count_samples_and_failures(method, run_index)
    return Estimate(
        metric=method_values.metric.name,
        data=method_values.data,
        run=run_name,
        method=method,
        value=float(value),
        low=interval.low,
        high=interval.high,
        standard_error=interval.standard_error,
        level=interval.level,
        interval=interval.method,
        n=n,
        failures=failures,
        lower_is_better=method_values.metric.lower_is_better,
        note=interval.note,
    )


def _interval_of_run(method_values: MethodValues, r: int, i: int, plan: Plan) -> Interval:
    """Return the interval of the method with index i in the run with index r."""
    run = method_values.runs[r]
    s = run.scored[method_values.methods[i]]
    if not _use_bootstrap(method_values, plan):
        return interval_of_metric(method_values.metric, s, level=plan.level, cluster=run.cluster)
    value = float(method_values.values[r, i])
    return interval_of_replicates(
        method_values.metric,
        method_values.existing_replicates[r, i],
        s,
        cluster=run.cluster,
        level=plan.level,
        measured=MetricValue(value) if np.isfinite(value) else None,
    )


def _use_bootstrap(method_values: MethodValues, plan: Plan) -> bool:
    has_replicates = method_values.replicates is not None
    return has_replicates and method_values.deciding_test(plan.test) == "bootstrap"


def _interval_of_mean(method_values: MethodValues, i: int, plan: Plan) -> Interval:
    """Return the interval of the mean over the runs of one method."""
    reason = method_values.unreliable_reason(i)
    if reason:
        return no_interval(plan.level, reason)
    if _use_bootstrap(method_values, plan):
        return _bootstrap_interval_of_mean(method_values, i, plan)
    if method_values.metric.measurement.interval is None:
        return _influence_interval_of_mean(method_values, i, plan)
    intervals = []
    for run in method_values.runs:
        s = run.scored[method_values.methods[i]]
        intervals.append(
            interval_of_metric(method_values.metric, s, level=plan.level, cluster=run.cluster)
        )
    return _mean_interval(intervals)


def _influence_interval_of_mean(method_values: MethodValues, i: int, plan: Plan) -> Interval:
    """Return the interval of the mean over the runs of one method by influence functions."""
    metric = method_values.metric
    samples = [run.scored[method_values.methods[i]] for run in method_values.runs]
    influences, jump_effects = method_values.influences_at_fixed_threshold(i)
    interval_around = partial(
        interval_from_influence,
        influence=influences[:, 0],
        bounds=value_bounds(metric, samples[0]),
        failures=method_values.fewest_failures(i),
        heavy_tailed=metric.measurement.heavy_tailed,
        max_degrees=min(max_degrees_of_freedom(metric, s) for s in samples),
        model_variance=_model_variance(method_values, i, influences.shape[0]),
        cluster=method_values.cluster_codes(influences),
    )
    mean = float(method_values.mean[i])
    interval = interval_around(mean, level=plan.level)
    if jump_effects is None:
        return interval
    return widen_over_thresholds(interval, mean, interval_around, jump_effects[0])


def _mean_interval(intervals: Sequence[Interval]) -> Interval:
    """Average the bounds over the runs, which is conservative unless errors correlate perfectly."""
    low, high = np.mean([(interval.low, interval.high) for interval in intervals], axis=0)
    method = f"mean over {len(intervals)} runs of the bounds of: {intervals[0].method}"
    notes = "; ".join(dict.fromkeys(interval.note for interval in intervals if interval.note))
    return Interval(float(low), float(high), intervals[0].level, method, note=notes)


def _model_variance(
    method_values: MethodValues, i: int, n_independent: int
) -> ModelVariance | None:
    """Return the model-based variance of the mean over the runs of one method.

    If the runs share their samples, the variance is that of one run. Otherwise, the variance is
    inversely proportional to the total number `n_independent` of independent samples or clusters.
    """
    models = []
    n_units_per_run = 0
    for r, run in enumerate(method_values.runs):
        s, value = run.scored[method_values.methods[i]], float(method_values.values[r, i])
        model = expected_variance(method_values.metric, s, value, run.cluster)
        if model is None:
            return None
        models.append(model)
        n_units = run.n if run.cluster is None else np.unique(run.cluster).size
        n_units_per_run = max(n_units_per_run, n_units)
    variance_of_run = float(np.mean([model.variance for model in models]))
    shrinkage = min(n_units_per_run / n_independent, 1.0)
    return ModelVariance(variance_of_run * shrinkage, models[0].degrees)


def _bootstrap_interval_of_mean(method_values: MethodValues, i: int, plan: Plan) -> Interval:
    """Return the bootstrap interval of the mean over the runs of one method."""
    replicates, value = method_values.mean_replicates[i], float(method_values.mean[i])
    metric = method_values.metric
    if not has_variation(replicates, value):
        return no_interval(plan.level, NO_SPREAD)
    if method_values.shares is None:
        interval = percentile_interval(metric, replicates, value, level=plan.level)
    else:
        interval = bca(replicates, value, method_values.shares[:, i], level=plan.level)
    samples_of_first_run = method_values.runs[0].scored[method_values.methods[i]]
    return with_notes(
        interval,
        few_clusters_warning(method_values.n_clusters(i)),
        bounds=value_bounds(metric, samples_of_first_run),
    )


# ------------------------------------------------------------------- bands and non-inferiority
def method_bands(run: ScoredRun, plan: Plan) -> Iterator[MethodBand]:
    """Yield the risk-coverage curves of the methods of one run, with their bands."""
    band_with_options = partial(
        compute_band, kind="selective", level=plan.level, cluster=run.cluster, rng=plan.seed
    )
    for method, s in run.scored.items():
        # The copy contains the samples, but not the cached inputs of other metrics.
        yield MethodBand(run.data, method, partial(band_with_options, replace(s)))


def non_inferiorities(method_values: MethodValues, plan: Plan) -> Iterator[NonInferiorityRow]:
    """Yield the non-inferiority test of each method, or nothing without a margin."""
    if plan.margin is None or plan.reference is None or not method_values.is_defined:
        return
    methods = method_values.methods
    reference = methods.index(plan.reference)
    indices = [i for i in range(len(methods)) if i != reference]
    tests = [_test_non_inferiority(method_values, i, reference, plan) for i in indices]
    p_values = adjust([test.p_value for test in tests], method=plan.adjustment)
    sign = 1.0 if method_values.metric.lower_is_better else -1.0
    for i, test, p in zip(indices, tests, p_values, strict=True):
        difference = float(method_values.mean[i] - method_values.mean[reference])
        yield NonInferiorityRow(
            metric=method_values.metric.name,
            data=method_values.data,
            method=methods[i],
            reference=plan.reference,
            margin=plan.margin,
            worse_by=sign * difference,
            bound=sign * test.bound,
            p_value=test.p_value,
            adjusted=float(p),
            non_inferior=bool(p < plan.alpha),
            note=test.note,
        )


def _test_non_inferiority(
    method_values: MethodValues, i: int, j: int, plan: Plan
) -> NonInferiority:
    """Test whether method i is worse than method j by at most the margin."""
    margin = plan.margin or 0.0
    reason = method_values.unreliable_reason(i, j)
    if reason:
        nan = float("nan")
        return NonInferiority(nan, nan, margin, non_inferior=False, level=plan.level, note=reason)
    if method_values.shares is None:
        return _non_inferiority_from_replicates(method_values, i, j, plan)
    influences = method_values.influences_of(i, j)
    n_units = influences.shape[0]
    return non_inferiority_from_influences(
        (float(method_values.mean[i]), float(method_values.mean[j])),
        influences,
        margin=margin,
        lower_is_better=method_values.metric.lower_is_better,
        level=plan.level,
        failures=method_values.fewest_failures(i, j),
        heavy_tailed=method_values.metric.measurement.heavy_tailed,
        model_variances=(
            _model_variance(method_values, i, n_units),
            _model_variance(method_values, j, n_units),
        ),
        bounds=method_values.bounds,
        cluster=method_values.cluster_codes(influences),
    )


def _non_inferiority_from_replicates(
    method_values: MethodValues, i: int, j: int, plan: Plan
) -> NonInferiority:
    """Return the non-inferiority test of method i, with a standard error from the resamples."""
    differences = method_values.mean_replicates[i] - method_values.mean_replicates[j]
    differences = differences[np.isfinite(differences)]
    standard_error = float(differences.std(ddof=1)) if differences.size > 1 else float("nan")
    n_failures = method_values.n_failures(i, j)
    degrees = float("inf") if n_failures is None else max(1.0, (n_failures - 1) / 2)
    return non_inferiority(
        float(method_values.mean[i]) - float(method_values.mean[j]),
        standard_error,
        margin=plan.margin or 0.0,
        lower_is_better=method_values.metric.lower_is_better,
        degrees=degrees,
        level=plan.level,
    )
