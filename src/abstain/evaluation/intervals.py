"""Validate options of confidence intervals, and compute intervals from resampled values."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_seed
from abstain._foundation.scored import MetricValue, Scored
from abstain.errors import InputError
from abstain.inference.bootstrap_intervals import bca, has_variation, with_notes
from abstain.inference.influence import unit_contributions
from abstain.inference.intervals import Interval, check_level, no_interval
from abstain.inference.small_samples import few_clusters_warning
from abstain.metrics import Metric
from abstain.metrics.intervals import influence_of, interval_of_metric, value_bounds
from abstain.metrics.resampling import percentile_interval
from abstain.metrics.small_samples import interval_without_variation
from abstain.typing import FloatArray, IntArray, Rng

KINDS = ("analytic", "bootstrap", "none")

#: Reason why there is no bootstrap interval if all resamples give the same value.
NO_SPREAD = "every resample gives the same value, so its spread cannot be seen"


@dataclass(frozen=True)
class IntervalOptions:
    """Validated options of confidence intervals."""

    kind: str
    level: float
    resamples: int
    clustered: bool
    seed: int

    @classmethod
    def from_arguments(
        cls, interval: str, *, level: float, bootstrap: int, clustered: bool, rng: Rng
    ) -> "IntervalOptions":
        """Validate the arguments about intervals, and return them as options."""
        checks.one_of(interval, "interval", KINDS)
        resamples = checks.positive_int(bootstrap, "bootstrap")
        if interval == "bootstrap" and resamples < 2:
            raise InputError(
                f"`bootstrap` must be at least 2 for intervals; got {resamples}. Draw 1000 or more"
            )
        return cls(interval, check_level(level), resamples, clustered, as_seed(rng))


def interval_of_replicates(
    metric: Metric,
    replicates: FloatArray,
    s: Scored,
    *,
    cluster: IntArray | None,
    level: float,
    measured: MetricValue | None = None,
) -> Interval:
    """Return the BCa interval, or the percentile interval if there is no influence function."""
    measured = measured or metric.compute(s)
    reason = measured.reason or metric.measurement.unreliable_reason(s)
    if reason:
        return no_interval(level, reason)
    value = float(measured.value)
    if not has_variation(replicates, value):
        return _interval_without_variation(metric, s, cluster=cluster, level=level)
    influence = influence_of(metric, s)
    if influence is None:
        interval = percentile_interval(metric, replicates, value, level=level)
    else:
        contributions = unit_contributions(influence, s.weight, cluster)[:, 0]
        interval = bca(replicates, value, contributions, level=level)
    n_clusters = None if cluster is None else np.unique(cluster).size
    return with_notes(interval, few_clusters_warning(n_clusters), bounds=value_bounds(metric, s))


def _interval_without_variation(
    metric: Metric, s: Scored, *, cluster: IntArray | None, level: float
) -> Interval:
    """Return an exact interval if all replicates are equal and the metric has such an interval."""
    if metric.measurement.interval is not None:
        return interval_of_metric(metric, s, level=level, cluster=cluster)
    exact = interval_without_variation(metric, s, metric.compute(s), level=level, cluster=cluster)
    return exact or no_interval(level, NO_SPREAD)
