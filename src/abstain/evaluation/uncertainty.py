"""One score on one part of the data, and the intervals of its results."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from abstain._foundation import checks
from abstain._foundation.measurement import Measured
from abstain._foundation.names import coded
from abstain._foundation.random import seed_of
from abstain._foundation.scored import Scored
from abstain.curves.risk_coverage import RiskCoverageCurve
from abstain.errors import InputError
from abstain.evaluation.notable import (
    by_class,
    curves_by,
    least_confident_successes,
    most_confident_failures,
    parts_by,
    samples_of,
)
from abstain.evaluation.records import ExtremeSample, Part, Result
from abstain.inference.bootstrap_intervals import bca, told, vary
from abstain.inference.draws import Draws
from abstain.inference.influence import shares
from abstain.inference.intervals import Interval, level_of, no_interval
from abstain.inference.small_samples import few_clusters
from abstain.metrics import Metric, Need
from abstain.metrics.intervals import bounds_of, influence_of, interval_of
from abstain.metrics.resampling import central
from abstain.metrics.resampling import replicates as replicates_of
from abstain.metrics.small_samples import extreme_interval
from abstain.predictions import Predictions
from abstain.typing import FloatArray, IntArray, Rng, Split

KINDS = ("analytic", "bootstrap", "none")

#: Where resampling changes nothing, it has nothing to say.
NO_SPREAD = "every resample gives the same value, so its spread cannot be seen"


@dataclass(frozen=True)
class Uncertainty:
    """How intervals are made: the checked options."""

    kind: str
    level: float
    resamples: int
    clustered: bool
    seed: int

    @classmethod
    def checked(
        cls, interval: str, *, level: float, bootstrap: int, clustered: bool, rng: Rng
    ) -> "Uncertainty":
        """Make it of what a caller gave, or refuse it."""
        checks.one_of(interval, "interval", KINDS)
        resamples = checks.positive_int(bootstrap, "bootstrap")
        if interval == "bootstrap" and resamples < 2:
            raise InputError(
                f"`bootstrap` must be at least 2 for intervals; got {resamples}. Draw 1000 or more"
            )
        return cls(interval, level_of(level), resamples, clustered, seed_of(rng))


@dataclass(frozen=True, eq=False)
class EvaluatedPart(ABC):
    """One score on one part of the data, and how its intervals are made."""

    split: Split
    score: str
    s: Scored
    how: Uncertainty

    @property
    def sure(self) -> Scored:
        """The samples by the probability of being right, for what reads its values."""
        return self.s

    def of(self, metric: Metric) -> Scored:
        """Return the samples as this metric takes them."""
        return self.sure if Need.UNIT_CONFIDENCE in metric.measurement.needs else self.s

    def missing(self, metric: Metric) -> str:
        """Return why a metric does not apply, or an empty string."""
        return metric.reason_not_applicable(self.of(metric))

    @property
    def bounds_ties(self) -> bool:
        """Whether numbers are told with their range over all orders of tied samples."""
        return True

    @property
    @abstractmethod
    def own(self) -> bool:
        """Whether the score is a column of the data."""

    @property
    @abstractmethod
    def unknown(self) -> int | None:
        """How many samples belong to no class that the model knows; None without labels."""

    @property
    def cluster(self) -> IntArray | None:
        """Codes of the samples that are not independent, where they are to be used."""
        return None

    @property
    def overconfident(self) -> tuple[ExtremeSample, ...]:
        """The most confident failures."""
        return ()

    @property
    def underconfident(self) -> tuple[ExtremeSample, ...]:
        """The least confident successes."""
        return ()

    @property
    def by_class(self) -> tuple[Part, ...]:
        """Which classes the AUGRC comes from."""
        return ()

    @property
    def by_group(self) -> tuple[Part, ...]:
        """Which groups it comes from."""
        return ()

    @property
    def of_groups(self) -> Mapping[str, RiskCoverageCurve]:
        """The curve of each group, of the largest where there are many."""
        return {}


@dataclass(frozen=True, eq=False)
class ScoredPart(EvaluatedPart):
    """One score on one part of the data that is in memory."""

    predictions: Predictions

    @property
    def own(self) -> bool:
        """Whether the score is a column of the data."""
        return self.score in (self.predictions.confidence or {})

    @property
    def unknown(self) -> int | None:
        """How many samples belong to no class that the model knows; None without labels."""
        if not self.predictions.has_labels:
            return None
        return int(np.count_nonzero(self.predictions.label_codes < 0))

    @cached_property
    def cluster(self) -> IntArray | None:
        """Codes of the samples that are not independent, where they are to be used."""
        return clusters_of(self.predictions) if self.how.clustered else None

    @property
    def overconfident(self) -> tuple[ExtremeSample, ...]:
        """The most confident failures."""
        return samples_of(self.predictions, self.s, most_confident_failures(self.s))

    @property
    def underconfident(self) -> tuple[ExtremeSample, ...]:
        """The least confident successes."""
        return samples_of(self.predictions, self.s, least_confident_successes(self.s))

    @property
    def by_class(self) -> tuple[Part, ...]:
        """Which classes the AUGRC comes from."""
        return by_class(self.s)

    @property
    def by_group(self) -> tuple[Part, ...]:
        """Which groups it comes from."""
        group = self.predictions.group
        return () if group is None else parts_by(self.s, group, str)

    @property
    def of_groups(self) -> Mapping[str, RiskCoverageCurve]:
        """The curve of each group, of the largest where there are many."""
        group = self.predictions.group
        return {} if group is None else curves_by(self.s, group)


def clusters_of(part: Predictions) -> IntArray:
    """Return the codes of the groups as clusters."""
    if part.group is None:
        raise InputError(
            "`clustered` needs a group for each sample (a patient, a site); there is none"
        )
    return coded(part.group, "group")[1]


def with_intervals(results: Sequence[Result], part: EvaluatedPart) -> list[Result]:
    """Return the results with their intervals."""
    how = part.how
    if how.kind == "none":
        return list(results)
    defined = [result for result in results if not result.reason]
    make = _analytic if how.kind == "analytic" else _resampled
    intervals = iter(make(defined, part))
    undefined = no_interval(how.level, "the value itself is undefined")
    return [
        replace(result, interval=undefined if result.reason else next(intervals))
        for result in results
    ]


def _analytic(results: Sequence[Result], part: EvaluatedPart) -> list[Interval]:
    return [
        interval_of(
            result.metric,
            part.of(result.metric),
            level=part.how.level,
            cluster=part.cluster,
            measured=Measured(result.value),
        )
        for result in results
    ]


def _resampled(results: Sequence[Result], part: EvaluatedPart) -> list[Interval]:
    metrics = [result.metric for result in results]
    draws = Draws(part.s.n, part.how.resamples, rng=part.how.seed, cluster=part.cluster)
    table = replicates_of([part.s], metrics, draws)[:, 0]
    return [
        of_replicates(
            metric,
            own,
            part.s,
            cluster=part.cluster,
            level=part.how.level,
            measured=Measured(result.value),
        )
        for metric, own, result in zip(metrics, table, results, strict=True)
    ]


def of_replicates(
    metric: Metric,
    replicates: FloatArray,
    s: Scored,
    *,
    cluster: IntArray | None,
    level: float,
    measured: Measured | None = None,
) -> Interval:
    """Return the BCa interval, or the central range for a metric without influence."""
    measured = measured or metric.compute(s)
    if measured.reason:
        return no_interval(level, measured.reason)
    if reason := metric.measurement.unreliable_reason(s):
        return no_interval(level, reason)
    value = float(measured.value)
    if not vary(replicates, value):
        # The exact forms, where there is one; of a coverage at a risk all are.
        if metric.measurement.interval is not None:
            return interval_of(metric, s, level=level, cluster=cluster)
        known = extreme_interval(metric, s, metric.compute(s), level=level, cluster=cluster)
        return known or no_interval(level, NO_SPREAD)
    influence = influence_of(metric, s)
    if influence is None:
        found = central(metric, replicates, value, level=level)
    else:
        found = bca(replicates, value, shares(influence, s.weight, cluster)[:, 0], level=level)
    units = None if cluster is None else np.unique(cluster).size
    return told(found, few_clusters(units), bounds=bounds_of(metric, s))
