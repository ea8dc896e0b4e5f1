"""Intervals of the results of one score: by influence functions or by resampling."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.names import coded
from abstain._foundation.random import generator
from abstain._foundation.scored import Scored
from abstain.errors import InputError
from abstain.evaluation.records import Result
from abstain.inference.bootstrap_intervals import bca, percentile
from abstain.inference.draws import Draws
from abstain.inference.influence import shares
from abstain.inference.intervals import Interval
from abstain.metrics import Metric, metric_named
from abstain.metrics._influence_registry import influence_of
from abstain.metrics._resampled import replicates as replicates_of
from abstain.metrics.intervals import interval_of
from abstain.predictions import Predictions
from abstain.typing import FloatArray, IntArray, Rng

KINDS = ("analytic", "bootstrap", "none")


@dataclass(frozen=True)
class Uncertainty:
    """How intervals are made: the checked options."""

    kind: str
    level: float
    resamples: int
    clustered: bool
    seed: int


def uncertainty(
    kind: str,
    *,
    level: float = 0.95,
    bootstrap: int = 1000,
    clustered: bool = False,
    rng: Rng = 0,
) -> Uncertainty:
    """Check the options."""
    checks.one_of(kind, "interval", KINDS)
    seed = int(rng) if isinstance(rng, int) else int(generator(rng).integers(2**63))
    generator(seed)
    return Uncertainty(
        kind,
        checks.fraction(level, "level", low=0.5, high=0.9999),
        checks.positive_int(bootstrap, "bootstrap"),
        clustered,
        seed,
    )


def clusters_of(part: Predictions) -> IntArray:
    """Return the codes of the groups as clusters."""
    if part.group is None:
        msg = "`clustered` needs a group for each sample (a patient, a site); there is none"
        raise InputError(msg)
    return coded(part.group, "group")[1]


def with_intervals(
    results: Sequence[Result], s: Scored, part: Predictions, how: Uncertainty
) -> list[Result]:
    """Return the results with their intervals."""
    if how.kind == "none":
        return list(results)
    cluster = clusters_of(part) if how.clustered else None
    metrics = [metric_named(result.metric) for result in results]
    defined = [i for i, result in enumerate(results) if not result.reason]
    make = _analytic if how.kind == "analytic" else _resampled
    found = make([metrics[i] for i in defined], s, cluster, how)
    intervals = dict(zip(defined, found, strict=True))
    return [_told(result, intervals.get(i), how) for i, result in enumerate(results)]


def _told(result: Result, interval: Interval | None, how: Uncertainty) -> Result:
    if interval is None:
        return replace(result, level=how.level, interval_note="the value itself is undefined")
    return replace(
        result,
        low=interval.low,
        high=interval.high,
        standard_error=interval.standard_error,
        level=interval.level,
        interval="" if np.isnan(interval.low) else interval.method,
        interval_note=interval.note,
    )


def _analytic(
    metrics: Sequence[Metric], s: Scored, cluster: IntArray | None, how: Uncertainty
) -> list[Interval]:
    return [interval_of(metric, s, level=how.level, cluster=cluster) for metric in metrics]


def _resampled(
    metrics: Sequence[Metric], s: Scored, cluster: IntArray | None, how: Uncertainty
) -> list[Interval]:
    draws = Draws(s.n, how.resamples, rng=how.seed, cluster=cluster)
    table = replicates_of([s], metrics, draws)[:, 0]
    return [
        of_replicates(metric, own, s, cluster=cluster, level=how.level)
        for metric, own in zip(metrics, table, strict=True)
    ]


def of_replicates(
    metric: Metric,
    replicates: FloatArray,
    s: Scored,
    *,
    cluster: IntArray | None,
    level: float,
) -> Interval:
    """Return the BCa interval, or the percentile interval of a metric without influence."""
    influence = influence_of(metric, s)
    if influence is None:
        return percentile(replicates, level=level)
    parts = shares(influence, s.weight, cluster)[:, 0]
    return bca(replicates, float(metric.compute(s).value), parts, level=level)
