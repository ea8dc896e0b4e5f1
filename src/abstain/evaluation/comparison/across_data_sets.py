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
from abstain.inference.multiplicity import adjust, cliques, critical_difference
from abstain.inference.rank_tests import friedman, wilcoxon
from abstain.inference.resampled_ranks import aggregate_then_rank, kendall, rank_then_aggregate
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
        defined = all(values.is_defined for values in self.sampled)
        return defined and len(self.methods) > 1 and self.table.shape[0] > 1

    @property
    def kind(self) -> str:
        """The kind of the blocks."""
        return "data sets" if len(self.sampled) > 1 else "runs"

    @property
    def table(self) -> FloatArray:
        """The values, shape (blocks, k): the mean over the runs of each data set, or the runs."""
        if len(self.sampled) > 1:
            return np.array([values.mean for values in self.sampled])
        return self.sampled[0].values

    @property
    def runs(self) -> FloatArray:
        """The values of all runs, shape (k, data sets, runs)."""
        return np.moveaxis(np.array([values.values for values in self.sampled]), 2, 0)


def across_data(found: Sequence[Blocks], plan: Plan) -> ComparisonTables:
    """Compute the tables over all data sets; empty for one run of one data set."""
    rankable = [blocks for blocks in found if blocks.is_rankable]
    return ComparisonTables(
        pairs=tuple(p for b in rankable for p in _pairs(b, plan)),
        standings=tuple(s for b in rankable for s in _standings(b, plan)),
        mean_ranks=tuple(_friedman(b, plan) for b in rankable),
        agreements=tuple(_agreements(rankable)),
        aggregates=tuple(a for b in rankable for a in _aggregates(b, plan)),
        improvements=tuple(i for b in rankable for i in _improvements(b, plan)),
        profiles=tuple(p for b in rankable for p in _profiles(b, plan)),
    )


def _pairs(blocks: Blocks, plan: Plan) -> Iterator[PairedDifference]:
    """Yield the pairs by Wilcoxon's test over the blocks, which are independent."""
    table = blocks.table
    index_pairs = list(combinations(range(len(blocks.methods)), 2))
    tests = [wilcoxon(table[:, i], table[:, j]) for i, j in index_pairs]
    adjusted = adjust([w.p_value for w in tests], method=plan.adjustment)
    sign = 1 if blocks.metric.lower_is_better else -1
    low_power_note = _note_low_power(blocks, plan, len(index_pairs))
    for (i, j), test, p in zip(index_pairs, tests, adjusted, strict=True):
        differences = table[:, i] - table[:, j]
        first, second = blocks.methods[i], blocks.methods[j]
        wins = float(np.mean(sign * differences < 0) + np.mean(differences == 0) / 2)
        # The test compares ranks. One large difference may change the sign of the mean.
        rank_difference = test.statistic - test.n_pairs * (test.n_pairs + 1) / 4
        is_opposite = p < plan.alpha and rank_difference * differences.mean() < 0
        yield PairedDifference(
            metric=blocks.metric.name,
            data=None,
            first=first,
            second=second,
            difference=float(differences.mean()),
            standard_error=float(differences.std(ddof=1) / np.sqrt(differences.size)),
            p_value=test.p_value,
            adjusted=float(p),
            adjustment=plan.adjustment,
            test=f"Wilcoxon across {blocks.kind}",
            superiority=wins,
            better=(first if sign * rank_difference < 0 else second) if p < plan.alpha else "",
            note=_OPPOSITE_SIGNS if is_opposite else low_power_note,
        )


#: Note on a pair whose mean difference and rank difference have opposite signs.
_OPPOSITE_SIGNS = (
    "a few large differences turn the mean; the test goes by the ranks of the differences"
)


def _note_low_power(blocks: Blocks, plan: Plan, n_tests: int) -> str:
    """Return a note if no result can be significant: the smallest p-value is 2 / 2^n_blocks."""
    n_blocks = blocks.table.shape[0]
    is_adjusted = n_tests > 1 and plan.adjustment != "none"
    min_p_value = min(1.0, 2.0 ** (1 - n_blocks) * (n_tests if is_adjusted else 1))
    if min_p_value < plan.alpha:
        return ""
    label = f"p-value, adjusted for {n_tests} pairs," if is_adjusted else "p-value"
    return (
        f"with {n_blocks} {blocks.kind} this test finds nothing: its {label} is at least "
        f"{min_p_value:g}"
    )


def _standings(blocks: Blocks, plan: Plan) -> Iterator[Standing]:
    lower = blocks.metric.lower_is_better
    if len(blocks.sampled) == 1:
        # The standings of one data set already average over its runs.
        return
    replicates = [draw_values([values], plan) for values in blocks.sampled]
    if any(values is None for values in replicates):
        return
    stacked = _stack_shuffled([values[0] for values in replicates if values is not None], plan)
    resampled = all(values.has_varying_replicates for values in blocks.sampled)
    by_rank = rank_then_aggregate(stacked, lower_is_better=lower, level=plan.level, ties=plan.ties)
    source = RANK_FIRST if resampled else f"{INFLUENCE}, rank then aggregate"
    yield from aggregated_standings(blocks.metric, blocks.methods, by_rank, source)
    by_mean = aggregate_then_rank(stacked, lower_is_better=lower, level=plan.level, ties=plan.ties)
    source = AGGREGATE_FIRST if resampled else f"{INFLUENCE}, aggregate then rank"
    yield from aggregated_standings(blocks.metric, blocks.methods, by_mean, source)


def _stack_shuffled(replicates: Sequence[FloatArray], plan: Plan) -> FloatArray:
    """Stack the replicates of the data sets, shuffled because all use the same seed."""
    rng = np.random.default_rng(plan.seed)
    return np.stack([values[:, rng.permutation(values.shape[1])] for values in replicates])


def _friedman(blocks: Blocks, plan: Plan) -> MeanRanks:
    result = friedman(blocks.table, lower_is_better=blocks.metric.lower_is_better)
    k = len(blocks.methods)
    distance = critical_difference(k, result.n_blocks, alpha=plan.alpha)
    order = np.argsort(result.mean_ranks, kind="stable")
    groups = cliques(result.mean_ranks, distance)
    return MeanRanks(
        metric=blocks.metric.name,
        blocks=result.n_blocks,
        methods=tuple(blocks.methods[i] for i in order),
        mean_ranks=tuple(float(result.mean_ranks[i]) for i in order),
        statistic=result.statistic,
        p_value=result.p_value,
        critical_difference=distance,
        cliques=tuple(tuple(blocks.methods[i] for i in group) for group in groups),
        level=plan.level,
        note=result.note,
    )


def _agreements(rankable: Sequence[Blocks]) -> Iterator[Agreement]:
    """Yield the agreement of each pair of metrics on the mean ranks."""
    for first, second in combinations(rankable, 2):
        ranks = [
            friedman(b.table, lower_is_better=b.metric.lower_is_better).mean_ranks
            for b in (first, second)
        ]
        yield Agreement(None, first.metric.name, second.metric.name, kendall(*ranks), _NAN, _NAN)


def _aggregates(blocks: Blocks, plan: Plan) -> Iterator[AggregateRow]:
    runs = blocks.runs
    results = interquartile_means(runs, level=plan.level, rng=plan.seed)
    for method, result in zip(blocks.methods, results, strict=True):
        yield AggregateRow(
            metric=blocks.metric.name,
            method=method,
            interquartile_mean=result.value,
            low=result.low,
            high=result.high,
            scores=runs[0].size,
            note=result.note,
        )


def _improvements(blocks: Blocks, plan: Plan) -> Iterator[Improvement]:
    lower = blocks.metric.lower_is_better
    results = pairwise_improvements(
        blocks.runs, lower_is_better=lower, level=plan.level, rng=plan.seed
    )
    for names, result in zip(combinations(blocks.methods, 2), results, strict=True):
        yield Improvement(
            blocks.metric.name, *names, result.value, result.low, result.high, result.note
        )


def _profiles(blocks: Blocks, plan: Plan) -> Iterator[Profile]:
    runs = blocks.runs
    profiles = performance_profiles(
        runs,
        np.linspace(runs.min(), runs.max(), 101),
        lower_is_better=blocks.metric.lower_is_better,
        level=plan.level,
        rng=plan.seed,
    )
    for method, profile in zip(blocks.methods, profiles, strict=True):
        columns = (profile.threshold, profile.share, profile.low, profile.high)
        yield Profile(blocks.metric.name, method, *(tuple(map(float, c)) for c in columns))
