"""What each method reaches on one data set: estimates, curves, being at most a margin worse."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from abstain._foundation.measurement import MetricValue
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


def estimates(sampled: MethodValues, plan: Plan) -> Iterator[Estimate]:
    """Return the estimates of every run and method, and the means over several runs."""
    bare = plan.skip_slow and sampled.has_values_only
    for r, i in product(range(len(sampled.runs)), range(len(sampled.methods))):
        interval = _none(sampled, plan) if bare else _own(sampled, r, i, plan)
        yield _estimate(sampled, i, interval, r)
    if len(sampled.runs) > 1 and (bare or sampled.is_defined):
        yield from (mean_estimate(sampled, i, plan) for i in sampled.evaluated_indices)


def mean_estimate(sampled: MethodValues, i: int, plan: Plan, run: str = MEAN) -> Estimate:
    """Return the mean over the runs of one method, without an interval where nothing tells it."""
    known = sampled.is_defined and not (plan.skip_slow and sampled.has_values_only)
    interval = _of_mean(sampled, i, plan) if known else _none(sampled, plan)
    return _estimate(sampled, i, interval, run)


def _none(sampled: MethodValues, plan: Plan) -> Interval:
    """Return the interval that values alone have: none, and why."""
    return no_interval(
        plan.level, "; ".join(sampled.reasons) or sampled.metric.reason_without_interval
    )


def _estimate(sampled: MethodValues, i: int, interval: Interval, run: int | str) -> Estimate:
    """Make the record of one run, by its place, or of the mean over all under a name."""
    r, name = (None, run) if isinstance(run, str) else (run, sampled.runs[run].run)
    n, failures = sampled.count_samples_and_failures(sampled.methods[i], r)
    return Estimate(
        metric=sampled.metric.name,
        data=sampled.data,
        run=name,
        method=sampled.methods[i],
        value=float(sampled.mean[i] if r is None else sampled.values[r, i]),
        low=interval.low,
        high=interval.high,
        standard_error=interval.standard_error,
        level=interval.level,
        interval=interval.method,
        n=n,
        failures=failures,
        lower_is_better=sampled.metric.lower_is_better,
        note=interval.note,
    )


def _own(sampled: MethodValues, r: int, i: int, plan: Plan) -> Interval:
    """Return the interval of one method in one run."""
    unit = sampled.runs[r]
    s = unit.scored[sampled.methods[i]]
    if sampled.replicates is not None and sampled.deciding_test(plan.test) == "bootstrap":
        own, value = sampled.replicates[r, i], float(sampled.values[r, i])
        return interval_of_replicates(
            sampled.metric,
            own,
            s,
            cluster=unit.cluster,
            level=plan.level,
            measured=MetricValue(value) if np.isfinite(value) else None,
        )
    return interval_of_metric(sampled.metric, s, level=plan.level, cluster=unit.cluster)


def _of_mean(sampled: MethodValues, i: int, plan: Plan) -> Interval:
    """Return the interval of the mean over the runs of one method."""
    if reason := sampled.unreliable_reason(i):
        return no_interval(plan.level, reason)
    if sampled.replicates is not None and sampled.deciding_test(plan.test) == "bootstrap":
        return _resampled_mean(sampled, i, plan)
    own = [unit.scored[sampled.methods[i]] for unit in sampled.runs]
    if sampled.metric.measurement.interval is not None:
        return _mean_of(
            [
                interval_of_metric(sampled.metric, s, level=plan.level, cluster=unit.cluster)
                for s, unit in zip(own, sampled.runs, strict=True)
            ]
        )
    influences, reaches = sampled.influences_at_fixed_threshold(i)

    around = partial(
        interval_from_influence,
        influence=influences[:, 0],
        bounds=value_bounds(sampled.metric, own[0]),
        failures=sampled.fewest_failures(i),
        heavy_tailed=sampled.metric.measurement.heavy_tailed,
        max_degrees=min(max_degrees_of_freedom(sampled.metric, s) for s in own),
        model_variance=_expected(sampled, i, influences.shape[0]),
        cluster=sampled.cluster_codes(influences),
    )
    mean = float(sampled.mean[i])
    found = around(mean, level=plan.level)
    return found if reaches is None else widen_over_thresholds(found, mean, around, reaches[0])


def _mean_of(intervals: Sequence[Interval]) -> Interval:
    """Return the mean of the intervals of the runs: as wide as if they erred together."""
    ends = np.mean([(each.low, each.high) for each in intervals], axis=0)
    method = f"mean over {len(intervals)} runs of the ends of: {intervals[0].method}"
    notes = "; ".join(dict.fromkeys(each.note for each in intervals if each.note))
    return Interval(float(ends[0]), float(ends[1]), intervals[0].level, method, note=notes)


def _expected(sampled: MethodValues, i: int, independent: int) -> ModelVariance | None:
    """Return the variance that a model expects of the mean over the runs of one method.

    That of one run where the runs share their samples, less where each has samples of its own.
    """
    models = [
        expected_variance(
            sampled.metric,
            unit.scored[sampled.methods[i]],
            float(sampled.values[r, i]),
            unit.cluster,
        )
        for r, unit in enumerate(sampled.runs)
    ]
    known = [model for model in models if model is not None]
    if len(known) < len(models):
        return None
    in_one = max(u.n if u.cluster is None else np.unique(u.cluster).size for u in sampled.runs)
    variance = float(np.mean([model.variance for model in known]))
    return ModelVariance(variance * min(in_one / independent, 1.0), known[0].degrees)


def _resampled_mean(sampled: MethodValues, i: int, plan: Plan) -> Interval:
    drawn, value = sampled.mean_replicates[i], float(sampled.mean[i])
    if not has_variation(drawn, value):
        return no_interval(plan.level, NO_SPREAD)
    if sampled.shares is None:
        found = percentile_interval(sampled.metric, drawn, value, level=plan.level)
    else:
        found = bca(drawn, value, sampled.shares[:, i], level=plan.level)
    first = sampled.runs[0].scored[sampled.methods[i]]
    return with_notes(
        found,
        few_clusters_warning(sampled.n_clusters(i)),
        bounds=value_bounds(sampled.metric, first),
    )


# ------------------------------------------------------------------------------------ the rest
def method_bands(unit: ScoredRun, plan: Plan) -> Iterator[MethodBand]:
    """Return the risk-coverage curves of the methods of one run, with their bands."""
    band = partial(
        compute_band, kind="selective", level=plan.level, cluster=unit.cluster, rng=plan.seed
    )
    for method, s in unit.scored.items():
        # A copy keeps the samples alone: what was made of them for other numbers is let go.
        yield MethodBand(unit.data, method, partial(band, replace(s)))


def non_inferiorities(sampled: MethodValues, plan: Plan) -> Iterator[NonInferiorityRow]:
    """Test each method against the reference; nothing without a margin."""
    if plan.margin is None or plan.reference is None or not sampled.is_defined:
        return
    reference = sampled.methods.index(plan.reference)
    others = [i for i in range(len(sampled.methods)) if i != reference]
    found = [
        (float(sampled.mean[i] - sampled.mean[reference]), _no_worse(sampled, i, reference, plan))
        for i in others
    ]
    p_values = adjust([n.p_value for _, n in found], method=plan.adjustment)
    sign = 1.0 if sampled.metric.lower_is_better else -1.0
    for i, (value, n), p in zip(others, found, p_values, strict=True):
        yield NonInferiorityRow(
            metric=sampled.metric.name,
            data=sampled.data,
            method=sampled.methods[i],
            reference=plan.reference,
            margin=plan.margin,
            worse_by=sign * value,
            bound=sign * n.bound,
            p_value=n.p_value,
            adjusted=float(p),
            non_inferior=bool(p < plan.alpha),
            note=n.note,
        )


def _no_worse(sampled: MethodValues, i: int, j: int, plan: Plan) -> NonInferiority:
    """Test that one method is not worse than another by the margin."""
    lower, margin = sampled.metric.lower_is_better, plan.margin or 0.0
    if reason := sampled.unreliable_reason(i, j):
        nan = float("nan")
        return NonInferiority(nan, nan, margin, non_inferior=False, level=plan.level, note=reason)
    values = float(sampled.mean[i]), float(sampled.mean[j])
    if sampled.shares is not None:
        influences = sampled.influences_of(i, j)
        rows = influences.shape[0]
        return non_inferiority_from_influences(
            values,
            influences,
            margin=margin,
            lower_is_better=lower,
            level=plan.level,
            failures=sampled.fewest_failures(i, j),
            heavy_tailed=sampled.metric.measurement.heavy_tailed,
            model_variances=(_expected(sampled, i, rows), _expected(sampled, j, rows)),
            bounds=sampled.bounds,
            cluster=sampled.cluster_codes(influences),
        )
    drawn = sampled.mean_replicates
    apart = (drawn[i] - drawn[j])[np.isfinite(drawn[i] - drawn[j])]
    failures = sampled.n_failures(i, j)
    return non_inferiority(
        values[0] - values[1],
        float(apart.std(ddof=1)) if apart.size > 1 else float("nan"),
        margin=margin,
        lower_is_better=lower,
        degrees=float("inf") if failures is None else max(1.0, (failures - 1) / 2),
        level=plan.level,
    )
