"""All methods on one data set: estimates, pairs, standings and bands."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from abstain.curves.bands import as_generalized, band_of
from abstain.evaluation._pairs import deciding, enough, pairs
from abstain.evaluation._plan import RESAMPLES, Plan
from abstain.evaluation._rows import Rows
from abstain.evaluation._sampled import Sampled, measured, resampled
from abstain.evaluation._standings import agreements, stabilities, standings
from abstain.evaluation.comparison import (
    Agreement,
    BandOf,
    Estimate,
    NonInferiority,
    PairedDifference,
    Stability,
    Standing,
)
from abstain.evaluation.uncertainty import NO_SPREAD, of_replicates
from abstain.evaluation.units import Unit
from abstain.inference.bootstrap_intervals import bca, told, vary
from abstain.inference.intervals import Interval, interval_from, no_interval, widened
from abstain.inference.multiplicity import adjust
from abstain.inference.non_inferiority import NonInferiority as Found
from abstain.inference.non_inferiority import non_inferiority, non_inferiority_from
from abstain.inference.small_samples import Expected, few_clusters
from abstain.metrics import Metric
from abstain.metrics._influence_registry import (
    expected_variance,
    influence_function,
    is_heavy,
    most_degrees,
    risk_asked,
)
from abstain.metrics.intervals import bounds_of, interval_of
from abstain.metrics.resampling import central
from abstain.typing import Split

#: The name of the mean over runs among the runs.
MEAN = "mean"


@dataclass(frozen=True, eq=False)
class DataPart:
    """What was found on one data set, and the numbers behind it."""

    data: Split
    sampled: tuple[Sampled, ...]
    estimates: tuple[Estimate, ...]
    pairs: tuple[PairedDifference, ...]
    standings: tuple[Standing, ...]
    agreements: tuple[Agreement, ...]
    stability: tuple[Stability, ...]
    bands: tuple[BandOf, ...]
    non_inferiority: tuple[NonInferiority, ...]
    resamples: int


def compare_data(units: Sequence[Unit], metrics: Sequence[Metric], plan: Plan) -> DataPart:
    """Compare the methods on the runs of one data set."""
    data = units[0].data
    rows = Rows.of(units)
    sampled = [measured(metric, units, rows) for metric in metrics]
    needed = enough(RESAMPLES, 4, len(units[0].scored), plan)
    resamples = plan.resamples or (needed if _needs_resamples(metrics, plan) else 0)
    if resamples:
        drawn = resampled(metrics, units, resamples, plan.seed)
        sampled = [replace(s, replicates=r) for s, r in zip(sampled, drawn, strict=True)]
    return DataPart(
        data=data,
        sampled=tuple(sampled),
        estimates=tuple(e for s in sampled for e in _estimates(s, data, plan)),
        pairs=tuple(p for s in sampled for p in pairs(s, data, plan)),
        standings=tuple(row for s in sampled for row in standings(s, data, plan)),
        agreements=tuple(agreements(sampled, data, plan)),
        stability=tuple(stabilities(sampled, data, plan)),
        bands=tuple(_bands(units[0], plan)) if plan.bands else (),
        non_inferiority=tuple(n for s in sampled for n in _non_inferiority(s, data, plan)),
        resamples=resamples,
    )


def _needs_resamples(metrics: Sequence[Metric], plan: Plan) -> bool:
    return plan.test == "bootstrap" or any(influence_function(m) is None for m in metrics)


# ------------------------------------------------------------------------------------ estimates
def _estimates(sampled: Sampled, data: Split, plan: Plan) -> Iterator[Estimate]:
    for r, unit in enumerate(sampled.units):
        for i, method in enumerate(sampled.methods):
            yield _estimate(sampled, (data, unit.run, method), _own(sampled, r, i, plan), (r, i))
    if len(sampled.units) > 1 and sampled.defined:
        for i, method in enumerate(sampled.methods):
            interval = _of_mean(sampled, i, plan)
            yield _estimate(sampled, (data, MEAN, method), interval, (None, i))


def _estimate(
    sampled: Sampled,
    where: tuple[Split, str, str],
    interval: Interval,
    place: tuple[int | None, int],
) -> Estimate:
    data, run, method = where
    r, i = place
    units = sampled.units if r is None else sampled.units[r : r + 1]
    counted = [unit.counted(method) for unit in units]
    return Estimate(
        metric=sampled.metric.name,
        data=data,
        run=run,
        method=method,
        value=float(sampled.mean[i] if r is None else sampled.values[r, i]),
        low=interval.low,
        high=interval.high,
        standard_error=interval.standard_error,
        level=interval.level,
        interval=interval.method,
        n=min(n for n, _ in counted),
        failures=min(failures for _, failures in counted),
        lower_is_better=sampled.metric.lower_is_better,
        note=interval.note,
    )


def _own(sampled: Sampled, r: int, i: int, plan: Plan) -> Interval:
    """Return the interval of one method in one run."""
    unit = sampled.units[r]
    s = unit.scored[sampled.methods[i]]
    if sampled.replicates is not None and deciding(sampled, plan) == "bootstrap":
        own = sampled.replicates[r, i]
        return of_replicates(sampled.metric, own, s, cluster=unit.cluster, level=plan.level)
    return interval_of(sampled.metric, s, level=plan.level, cluster=unit.cluster)


def _of_mean(sampled: Sampled, i: int, plan: Plan) -> Interval:
    """Return the interval of the mean over the runs of one method."""
    if sampled.replicates is not None and deciding(sampled, plan) == "bootstrap":
        return _resampled_mean(sampled, i, plan)
    own = [unit.scored[sampled.methods[i]] for unit in sampled.units]
    if risk_asked(sampled.metric.name) is not None:
        return _mean_of(
            [
                interval_of(sampled.metric, s, level=plan.level, cluster=unit.cluster)
                for s, unit in zip(own, sampled.units, strict=True)
            ]
        )
    influences, reaches = sampled.held_on(i)

    def around(value: float, level: float) -> Interval:
        return interval_from(
            value,
            influences[:, 0],
            level=level,
            bounds=bounds_of(sampled.metric, own[0]),
            failures=sampled.resting(i),
            heavy=is_heavy(sampled.metric),
            most_degrees=min(most_degrees(sampled.metric, s) for s in own),
            expected=_expected(sampled, i, influences.shape[0]),
            cluster=sampled.codes(influences),
        )

    mean = float(sampled.mean[i])
    found = around(mean, plan.level)
    return found if reaches is None else widened(found, mean, around, reaches[0])


def _mean_of(intervals: Sequence[Interval]) -> Interval:
    """Return the mean of the intervals of the runs: as wide as if they erred together."""
    ends = np.mean([(each.low, each.high) for each in intervals], axis=0)
    method = f"mean over {len(intervals)} runs of the ends of: {intervals[0].method}"
    notes = "; ".join(dict.fromkeys(each.note for each in intervals if each.note))
    return Interval(float(ends[0]), float(ends[1]), intervals[0].level, method, note=notes)


def _expected(sampled: Sampled, i: int, independent: int) -> Expected | None:
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
        for r, unit in enumerate(sampled.units)
    ]
    known = [model for model in models if model is not None]
    if len(known) < len(models):
        return None
    in_one = max(u.n if u.cluster is None else np.unique(u.cluster).size for u in sampled.units)
    variance = float(np.mean([model.variance for model in known]))
    return Expected(variance * min(in_one / independent, 1.0), known[0].degrees)


def _resampled_mean(sampled: Sampled, i: int, plan: Plan) -> Interval:
    drawn, level = sampled.mean_replicates[i], plan.level
    value = float(sampled.mean[i])
    if not vary(drawn, value):
        return no_interval(level, NO_SPREAD)
    if sampled.shares is None:
        found = central(sampled.metric, drawn, value, level=level)
    else:
        found = bca(drawn, value, sampled.shares[:, i], level=level)
    first = sampled.units[0].scored[sampled.methods[i]]
    return told(found, few_clusters(sampled.clusters(i)), bounds=bounds_of(sampled.metric, first))


# ------------------------------------------------------------------------------------ the rest
def _bands(unit: Unit, plan: Plan) -> Iterator[BandOf]:
    for method, s in unit.scored.items():
        band = band_of(s, "selective", level=plan.level, cluster=unit.cluster, rng=plan.seed)
        yield BandOf(unit.data, method, band, as_generalized(band))


def _non_inferiority(sampled: Sampled, data: Split, plan: Plan) -> Iterator[NonInferiority]:
    if plan.margin is None or plan.reference is None or not sampled.defined:
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
        yield NonInferiority(
            metric=sampled.metric.name,
            data=data,
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


def _no_worse(sampled: Sampled, i: int, j: int, plan: Plan) -> Found:
    """Test that one method is not worse than another by the margin."""
    lower, margin = sampled.metric.lower_is_better, plan.margin or 0.0
    values = float(sampled.mean[i]), float(sampled.mean[j])
    if sampled.shares is not None:
        influences = sampled.influences_on(i, j)
        rows = influences.shape[0]
        return non_inferiority_from(
            values,
            influences,
            margin=margin,
            lower_is_better=lower,
            level=plan.level,
            failures=sampled.resting(i, j),
            heavy=is_heavy(sampled.metric),
            expected=(_expected(sampled, i, rows), _expected(sampled, j, rows)),
            bounds=sampled.bounds,
            cluster=sampled.codes(influences),
        )
    drawn = sampled.mean_replicates
    apart = (drawn[i] - drawn[j])[np.isfinite(drawn[i] - drawn[j])]
    failures = sampled.failures(i, j)
    return non_inferiority(
        values[0] - values[1],
        float(apart.std(ddof=1)) if apart.size > 1 else float("nan"),
        margin=margin,
        lower_is_better=lower,
        degrees=float("inf") if failures is None else max(1.0, (failures - 1) / 2),
        level=plan.level,
    )
