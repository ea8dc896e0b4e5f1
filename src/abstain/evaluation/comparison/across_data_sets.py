"""Tests, rankings and aggregates over several data sets or runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from abstain.evaluation.comparison.plan import Plan
from abstain.evaluation.comparison.standings import (
    AGGREGATE_FIRST,
    INFLUENCE,
    RANK_FIRST,
    aggregated_standings,
    draw_values,
)
from abstain.evaluation.comparison.tables import (
    AggregateRow,
    Agreement,
    Estimate,
    Improvement,
    MeanRanks,
    MethodBand,
    NonInferiorityRow,
    PairedDifference,
    Profile,
    Stability,
    Standing,
)
from abstain.evaluation.comparison.values import MethodValues
from abstain.inference.aggregates import (
    interquartile_means,
    pairwise_improvements,
    performance_profiles,
)
from abstain.inference.agreement import kendall
from abstain.inference.multiplicity import adjust, cliques, critical_difference
from abstain.inference.rank_tests import friedman, wilcoxon
from abstain.inference.resampled_ranks import aggregate_then_rank, rank_then_aggregate
from abstain.metrics import Metric
from abstain.typing import FloatArray, Split

_NAN = float("nan")


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonTables:
    """Rows of all tables, of one data set or of all data sets together."""

    estimates: tuple[Estimate, ...] = ()
    pairs: tuple[PairedDifference, ...] = ()
    standings: tuple[Standing, ...] = ()
    mean_ranks: tuple[MeanRanks, ...] = ()
    agreements: tuple[Agreement, ...] = ()
    stability: tuple[Stability, ...] = ()
    bands: tuple[MethodBand, ...] = ()
    non_inferiority: tuple[NonInferiorityRow, ...] = ()
    aggregates: tuple[AggregateRow, ...] = ()
    improvements: tuple[Improvement, ...] = ()
    profiles: tuple[Profile, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSetComparison(ComparisonTables):
    """The rows of one data set, and the values of each metric."""

    data: Split
    sampled: tuple[MethodValues, ...]
    resamples: int = 0


@dataclass(frozen=True, eq=False)
class Blocks:
    """One metric on all data sets. Each block, a data set or a run, ranks the methods once."""

    sampled: tuple[MethodValues, ...]

    @property
    def metric(self) -> Metric:
        """The metric."""
        return self.sampled[0].metric

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, the same on every data set."""
        return self.sampled[0].methods

    @property
    def is_rankable(self) -> bool:
        """Whether all values are defined and methods are ranked more than once."""
        defined = all(part.is_defined for part in self.sampled)
        return defined and len(self.methods) > 1 and self.table.shape[0] > 1

    @property
    def kind(self) -> str:
        """The kind of the blocks."""
        return "data sets" if len(self.sampled) > 1 else "runs"

    @property
    def table(self) -> FloatArray:
        """The values, shape (blocks, k): the mean over the runs of each data set, or the runs."""
        if len(self.sampled) > 1:
            return np.array([part.mean for part in self.sampled])
        return self.sampled[0].values

    @property
    def runs(self) -> FloatArray:
        """The values of all runs, shape (k, data sets, runs)."""
        return np.moveaxis(np.array([part.values for part in self.sampled]), 2, 0)


def across_data(found: Sequence[Blocks], plan: Plan) -> ComparisonTables:
    """Compute the tables over all data sets; empty for one run of one data set."""
    several = [blocks for blocks in found if blocks.is_rankable]
    return ComparisonTables(
        pairs=tuple(p for b in several for p in _pairs(b, plan)),
        standings=tuple(s for b in several for s in _standings(b, plan)),
        mean_ranks=tuple(_friedman(b, plan) for b in several),
        agreements=tuple(_agreements(several)),
        aggregates=tuple(a for b in several for a in _aggregates(b, plan)),
        improvements=tuple(i for b in several for i in _improvements(b, plan)),
        profiles=tuple(p for b in several for p in _profiles(b, plan)),
    )


def _pairs(blocks: Blocks, plan: Plan) -> Iterator[PairedDifference]:
    """Yield the pairs by Wilcoxon's test over the blocks, which are independent."""
    table = blocks.table
    two = list(combinations(range(len(blocks.methods)), 2))
    found = [wilcoxon(table[:, i], table[:, j]) for i, j in two]
    adjusted = adjust([w.p_value for w in found], method=plan.adjustment)
    sign = 1 if blocks.metric.lower_is_better else -1
    few = _few(blocks, plan, len(two))
    for (i, j), test, p in zip(two, found, adjusted, strict=True):
        gap = table[:, i] - table[:, j]
        first, second = blocks.methods[i], blocks.methods[j]
        wins = float(np.mean(sign * gap < 0) + np.mean(gap == 0) / 2)
        # What the test found is the side of the ranks; a single large gap may turn the mean.
        side = test.statistic - test.n_pairs * (test.n_pairs + 1) / 4
        turned = p < plan.alpha and side * gap.mean() < 0
        yield PairedDifference(
            metric=blocks.metric.name,
            data=None,
            first=first,
            second=second,
            difference=float(gap.mean()),
            standard_error=float(gap.std(ddof=1) / np.sqrt(gap.size)),
            p_value=test.p_value,
            adjusted=float(p),
            adjustment=plan.adjustment,
            test=f"Wilcoxon across {blocks.kind}",
            superiority=wins,
            better=(first if sign * side < 0 else second) if p < plan.alpha else "",
            note=_TURNED if turned else few,
        )


#: Goes with a pair whose mean difference and ranks point in opposite directions.
_TURNED = "a few large differences turn the mean; the test goes by the ranks of the differences"


def _few(blocks: Blocks, plan: Plan, tests: int) -> str:
    """Say when the test cannot find anything: when all signs agree, p is still 2 / 2^blocks."""
    count = blocks.table.shape[0]
    many = tests > 1 and plan.adjustment != "none"
    least = min(1.0, 2.0 ** (1 - count) * (tests if many else 1))
    if least < plan.alpha:
        return ""
    which = f"p-value, adjusted for {tests} pairs," if many else "p-value"
    return f"with {count} {blocks.kind} this test finds nothing: its {which} is at least {least:g}"


def _standings(blocks: Blocks, plan: Plan) -> Iterator[Standing]:
    lower = blocks.metric.lower_is_better
    if len(blocks.sampled) == 1:
        # Runs of one data set are averaged on it already; there is nothing more to rank.
        return
    replicates = [draw_values([part], plan) for part in blocks.sampled]
    if any(own is None for own in replicates):
        return
    stacked = _independent([own[0] for own in replicates if own is not None], plan)
    resampled = all(part.has_varying_replicates for part in blocks.sampled)
    by_rank = rank_then_aggregate(stacked, lower_is_better=lower, level=plan.level, ties=plan.ties)
    source = RANK_FIRST if resampled else f"{INFLUENCE}, rank then aggregate"
    yield from aggregated_standings(blocks.metric, blocks.methods, by_rank, source)
    by_mean = aggregate_then_rank(stacked, lower_is_better=lower, level=plan.level, ties=plan.ties)
    source = AGGREGATE_FIRST if resampled else f"{INFLUENCE}, aggregate then rank"
    yield from aggregated_standings(blocks.metric, blocks.methods, by_mean, source)


def _independent(replicates: Sequence[FloatArray], plan: Plan) -> FloatArray:
    """Stack the draws of the data sets, shuffled: one seed made them, but they do not pair."""
    rng = np.random.default_rng(plan.seed)
    return np.stack([own[:, rng.permutation(own.shape[1])] for own in replicates])


def _friedman(blocks: Blocks, plan: Plan) -> MeanRanks:
    found = friedman(blocks.table, lower_is_better=blocks.metric.lower_is_better)
    k = len(blocks.methods)
    distance = critical_difference(k, found.n_blocks, alpha=plan.alpha)
    order = np.argsort(found.mean_ranks, kind="stable")
    groups = cliques(found.mean_ranks, distance)
    return MeanRanks(
        metric=blocks.metric.name,
        blocks=found.n_blocks,
        methods=tuple(blocks.methods[i] for i in order),
        mean_ranks=tuple(float(found.mean_ranks[i]) for i in order),
        statistic=found.statistic,
        p_value=found.p_value,
        critical_difference=distance,
        cliques=tuple(tuple(blocks.methods[i] for i in group) for group in groups),
        level=plan.level,
        note=found.note,
    )


def _agreements(several: Sequence[Blocks]) -> Iterator[Agreement]:
    """Yield the agreement of each pair of metrics on the mean ranks."""
    for one, two in combinations(several, 2):
        ranks = [
            friedman(b.table, lower_is_better=b.metric.lower_is_better).mean_ranks
            for b in (one, two)
        ]
        yield Agreement(None, one.metric.name, two.metric.name, kendall(*ranks), _NAN, _NAN)


def _aggregates(blocks: Blocks, plan: Plan) -> Iterator[AggregateRow]:
    runs = blocks.runs
    every = interquartile_means(runs, level=plan.level, rng=plan.seed)
    for method, found in zip(blocks.methods, every, strict=True):
        yield AggregateRow(
            metric=blocks.metric.name,
            method=method,
            interquartile_mean=found.value,
            low=found.low,
            high=found.high,
            scores=runs[0].size,
            note=found.note,
        )


def _improvements(blocks: Blocks, plan: Plan) -> Iterator[Improvement]:
    lower = blocks.metric.lower_is_better
    all_found = pairwise_improvements(
        blocks.runs, lower_is_better=lower, level=plan.level, rng=plan.seed
    )
    for names, found in zip(combinations(blocks.methods, 2), all_found, strict=True):
        yield Improvement(
            blocks.metric.name, *names, found.value, found.low, found.high, found.note
        )


def _profiles(blocks: Blocks, plan: Plan) -> Iterator[Profile]:
    runs = blocks.runs
    every = performance_profiles(
        runs,
        np.linspace(runs.min(), runs.max(), 101),
        lower_is_better=blocks.metric.lower_is_better,
        level=plan.level,
        rng=plan.seed,
    )
    for method, found in zip(blocks.methods, every, strict=True):
        columns = (found.threshold, found.share, found.low, found.high)
        yield Profile(blocks.metric.name, method, *(tuple(map(float, c)) for c in columns))
