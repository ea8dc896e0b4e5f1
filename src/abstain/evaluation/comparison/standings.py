"""Ranks of methods and agreement of metrics, from influences or from resamples."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from abstain.evaluation.comparison.plan import Plan
from abstain.evaluation.comparison.tables import Agreement, Stability, Standing
from abstain.evaluation.comparison.values import MethodValues
from abstain.inference.influence import covariance_from_contributions
from abstain.inference.ranking import expected_ranks, rank_probabilities, ranks
from abstain.inference.resampled_ranks import (
    AggregatedRanking,
    agreement,
    kendall,
    rank_probabilities_of_replicates,
    rank_summary,
    stability,
)
from abstain.metrics import Metric
from abstain.typing import FloatArray, IntArray

INFLUENCE = "influence functions"
RANK_FIRST = "bootstrap, rank then aggregate"
AGGREGATE_FIRST = "bootstrap, aggregate then rank"
#: Where nothing but the values is known.
_VALUES = "values"

#: Draws from the joint normal law of several metrics.
_DRAWS = 4000

#: Differences below this share of the numbers are rounding.
_ROUNDING = 1e-12


def standings(sampled: MethodValues, plan: Plan) -> Iterator[Standing]:
    """Yield the rank of each method on one data set, from influences and from resamples."""
    lower = sampled.metric.lower_is_better
    if (plan.skip_slow and sampled.has_values_only) or any(sampled.unreliable_reasons):
        yield from _by_value(sampled, plan)
    if not sampled.is_defined:
        return
    if sampled.shares is not None:
        covariance = covariance_from_contributions(sampled.shares)
        if np.isfinite(covariance).all():
            chances = rank_probabilities(
                sampled.mean, covariance, lower_is_better=lower, rng=plan.seed
            )
            expected = expected_ranks(sampled.mean, covariance, lower_is_better=lower)
            yield from _rows(sampled, plan, chances, expected, INFLUENCE)
    if sampled.has_varying_replicates:
        chances = rank_probabilities_of_replicates(sampled.mean_replicates, lower_is_better=lower)
        summary = rank_summary(chances, level=plan.level)
        # One data set: there is nothing to aggregate over but the resamples.
        yield from _rows(sampled, plan, chances, summary.mean, RANK_FIRST)


def _rows(
    sampled: MethodValues, plan: Plan, chances: FloatArray, mean: FloatArray, source: str
) -> Iterator[Standing]:
    lower = sampled.metric.lower_is_better
    place = ranks(sampled.mean, lower_is_better=lower, ties=plan.ties)
    summary = rank_summary(chances, level=plan.level)
    for i, method in enumerate(sampled.methods):
        yield Standing(
            metric=sampled.metric.name,
            data=sampled.data,
            method=method,
            value=float(sampled.mean[i]),
            rank=float(place[i]),
            mean_rank=float(mean[i]),
            rank_low=float(summary.low[i]),
            rank_high=float(summary.high[i]),
            rank_probabilities=tuple(map(float, chances[i])),
            source=source,
        )


def _by_value(sampled: MethodValues, plan: Plan) -> Iterator[Standing]:
    """Yield ranks without their variation."""
    known = sampled.evaluated_indices
    if not known:
        return
    lower = sampled.metric.lower_is_better
    place = ranks(sampled.mean[known], lower_is_better=lower, ties=plan.ties)
    for i, rank in zip(known, place.tolist(), strict=True):
        about = sampled.metric.name, sampled.data, sampled.methods[i], float(sampled.mean[i])
        yield Standing(*about, rank, mean_rank=rank, source=_VALUES)


def aggregated_standings(
    metric: Metric, methods: Sequence[str], ranking: AggregatedRanking, source: str
) -> Iterator[Standing]:
    """Yield the rank of each method over all data sets together."""
    for i, method in enumerate(methods):
        yield Standing(
            metric=metric.name,
            data=None,
            method=method,
            value=float("nan"),
            rank=float(ranking.ranks[i]),
            mean_rank=float(ranking.mean_ranks[i]),
            rank_low=float(ranking.low[i]),
            rank_high=float(ranking.high[i]),
            rank_probabilities=tuple(map(float, ranking.rank_probabilities[i])),
            source=source,
        )


def draw_values(parts: Sequence[MethodValues], plan: Plan) -> list[FloatArray] | None:
    """Return what could have come out instead of each metric, (k, draws), the same draws for all.

    The resamples where there are some; else draws from the joint normal law of all metrics.
    """
    if all(part.has_varying_replicates for part in parts):
        return [part.mean_replicates for part in parts]
    tables = [part.shares for part in parts]
    if any(table is None for table in tables):
        return None
    together = np.hstack([table for table in tables if table is not None])
    covariance = covariance_from_contributions(together)
    if not np.isfinite(covariance).all():
        return None
    mean = np.concatenate([part.mean for part in parts])
    rng = np.random.default_rng(plan.seed)
    draws = rng.multivariate_normal(mean, covariance, _DRAWS, method="eigh", check_valid="ignore")
    # The same method twice must tie in every draw, not up to the rounding of the root.
    return list(draws[:, _first_alike(mean, covariance)].T.reshape(len(parts), -1, _DRAWS))


def _first_alike(mean: FloatArray, covariance: FloatArray) -> IntArray:
    """Return for each number the first that is one and the same: equal, and in every draw."""
    variance, size = np.diag(covariance), np.abs(mean)
    both = variance[:, None] + variance[None, :]
    same = both - 2 * covariance <= _ROUNDING * both
    same &= np.abs(mean[:, None] - mean) <= _ROUNDING * np.maximum(size[:, None], size)
    return np.asarray(np.argmax(same, axis=1))


def agreements(parts: Sequence[MethodValues], plan: Plan) -> Iterator[Agreement]:
    """Yield the agreement of each pair of metrics on one data set."""
    defined = [part for part in parts if part.is_defined]
    if len(defined) < 2:
        return
    reliable = [part for part in defined if not any(part.unreliable_reasons)]
    draws = draw_values(reliable, plan) if reliable else None
    replicates = dict(zip((part.metric.name for part in reliable), draws or (), strict=False))
    for first, second in combinations(defined, 2):
        same = first.metric.lower_is_better == second.metric.lower_is_better
        tau = kendall(first.mean, second.mean if same else -second.mean)
        low = high = float("nan")
        pair = [replicates.get(part.metric.name) for part in (first, second)]
        if pair[0] is not None and pair[1] is not None:
            over = agreement(*pair, same_direction=same, level=plan.level)
            low, high = over.low, over.high
        yield Agreement(first.data, first.metric.name, second.metric.name, tau, low, high)


def stabilities(parts: Sequence[MethodValues], plan: Plan) -> Iterator[Stability]:
    """Yield the agreement of the rankings of pairs of resamples."""
    for part in parts:
        if part.has_varying_replicates and part.is_defined:
            over = stability(part.mean_replicates, level=plan.level)
            yield Stability(part.metric.name, part.data, over.mean, over.low, over.high)
