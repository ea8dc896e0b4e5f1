"""Rank the methods on one data set and over several data sets, and test the differences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np

from abstain.evaluation.comparison.plan import Plan
from abstain.evaluation.comparison.record import ComparisonTables
from abstain.evaluation.comparison.summary import ReferenceTest, summary_rows
from abstain.evaluation.comparison.tables import (
    MEAN,
    AggregateRow,
    Agreement,
    Estimate,
    Improvement,
    MeanRanks,
    PairedDifference,
    Profile,
    Stability,
    Standing,
    SummaryRow,
    best_methods,
    sort_best_first,
)
from abstain.evaluation.comparison.values import MethodValues
from abstain.inference.aggregates import (
    interquartile_means,
    pairwise_improvements,
    performance_profiles,
)
from abstain.inference.influence import covariance_from_contributions
from abstain.inference.multiplicity import adjust, cliques, critical_difference
from abstain.inference.rank_tests import WilcoxonResult, friedman, wilcoxon
from abstain.inference.ranking import expected_ranks, rank_probabilities, ranks
from abstain.inference.resampled_ranks import (
    aggregate_then_rank,
    agreement,
    kendall,
    rank_probabilities_of_replicates,
    rank_summary,
    rank_then_aggregate,
    stability,
)
from abstain.metrics import Metric
from abstain.typing import FloatArray, IntArray

_NAN = float("nan")
_INFLUENCE, _BOOTSTRAP = "influence functions", "bootstrap"

#: Number of draws from the joint normal distribution of several metrics.
_DRAWS = 4000

#: Numbers whose relative difference is smaller than this number only differ by rounding.
_ROUNDING = 1e-12


def standings(method_values: MethodValues, plan: Plan) -> Iterator[Standing]:
    """Yield the rank of each method on one data set, by influence functions and by resamples."""
    lower_is_better = method_values.metric.lower_is_better
    mean = method_values.mean
    if (plan.skip_slow and method_values.has_values_only) or any(method_values.unreliable_reasons):
        yield from _standings_without_variation(method_values, plan)
    if not method_values.is_defined:
        return
    if method_values.shares is not None:
        covariance = covariance_from_contributions(method_values.shares)
        if np.isfinite(covariance).all():
            probabilities = rank_probabilities(
                mean, covariance, lower_is_better=lower_is_better, rng=plan.seed
            )
            mean_ranks = expected_ranks(mean, covariance, lower_is_better=lower_is_better)
            yield from _standings(method_values, plan, probabilities, mean_ranks, _INFLUENCE)
    if method_values.has_varying_replicates:
        probabilities = rank_probabilities_of_replicates(
            method_values.mean_replicates, lower_is_better=lower_is_better
        )
        mean_ranks = rank_summary(probabilities, level=plan.level).mean
        source = f"{_BOOTSTRAP}, rank then aggregate"
        yield from _standings(method_values, plan, probabilities, mean_ranks, source)


def _standings(
    method_values: MethodValues,
    plan: Plan,
    probabilities: FloatArray,
    mean_ranks: FloatArray,
    source: str,
) -> Iterator[Standing]:
    """Yield the rank of each method, computed from rank probabilities."""
    lower = method_values.metric.lower_is_better
    displayed_ranks = ranks(method_values.mean, lower_is_better=lower, ties=plan.ties)
    summary = rank_summary(probabilities, level=plan.level)
    for i, method in enumerate(method_values.methods):
        yield Standing(
            metric=method_values.metric.name,
            data=method_values.data,
            method=method,
            value=float(method_values.mean[i]),
            rank=float(displayed_ranks[i]),
            mean_rank=float(mean_ranks[i]),
            rank_low=float(summary.low[i]),
            rank_high=float(summary.high[i]),
            rank_probabilities=tuple(map(float, probabilities[i])),
            source=source,
        )


def _standings_without_variation(method_values: MethodValues, plan: Plan) -> Iterator[Standing]:
    """Yield ranks without probabilities, for metrics without influences and resamples."""
    indices = method_values.evaluated_indices
    if not indices:
        return
    metric, mean = method_values.metric, method_values.mean
    displayed_ranks = ranks(
        mean[indices], lower_is_better=metric.lower_is_better, ties=plan.ties
    ).tolist()
    for i, rank in zip(indices, displayed_ranks, strict=True):
        method, value = method_values.methods[i], float(mean[i])
        yield Standing(
            metric.name, method_values.data, method, value, rank, mean_rank=rank, source="values"
        )


def draw_values(values: Sequence[MethodValues], plan: Plan) -> list[FloatArray] | None:
    """Draw from the joint sampling distribution; one array (k, draws) for each metric.

    The draws are bootstrap replicates if all metrics have replicates. Otherwise, they are draws
    from a normal distribution. The result is None if a metric has neither replicates nor an
    influence function.
    """
    if all(v.has_varying_replicates for v in values):
        return [v.mean_replicates for v in values]
    tables = [v.shares for v in values]
    if any(table is None for table in tables):
        return None
    all_shares = np.hstack([table for table in tables if table is not None])
    covariance = covariance_from_contributions(all_shares)
    if not np.isfinite(covariance).all():
        return None
    mean = np.concatenate([v.mean for v in values])
    rng = np.random.default_rng(plan.seed)
    draws = rng.multivariate_normal(mean, covariance, _DRAWS, method="eigh", check_valid="ignore")
    # A method that is listed twice must tie in every draw, in spite of rounding errors.
    draws = draws[:, _first_equal_indices(mean, covariance)]
    draws_by_metric = draws.T.reshape(len(values), -1, _DRAWS)
    return list(draws_by_metric)


def _first_equal_indices(mean: FloatArray, covariance: FloatArray) -> IntArray:
    """Return, for each row, the index of the first row with the same values in all draws."""
    variance = np.diag(covariance)
    variance_sum = variance[:, None] + variance
    variance_of_difference = variance_sum - 2 * covariance
    has_no_variance = variance_of_difference <= _ROUNDING * variance_sum
    magnitude = np.abs(mean)
    tolerance = _ROUNDING * np.maximum(magnitude[:, None], magnitude)
    has_equal_mean = np.abs(mean[:, None] - mean) <= tolerance
    return np.asarray(np.argmax(has_no_variance & has_equal_mean, axis=1))


def agreements(values: Sequence[MethodValues], plan: Plan) -> Iterator[Agreement]:
    """Yield the agreement of each pair of metrics on one data set."""
    defined = [v for v in values if v.is_defined]
    if len(defined) < 2:
        return
    draws_by_metric = _draws_by_metric(defined, plan)
    for first, second in combinations(defined, 2):
        first_name, second_name = first.metric.name, second.metric.name
        same_direction = first.metric.lower_is_better == second.metric.lower_is_better
        tau = kendall(first.mean, second.mean if same_direction else -second.mean)
        low = high = _NAN
        if first_name in draws_by_metric and second_name in draws_by_metric:
            interval = agreement(
                draws_by_metric[first_name],
                draws_by_metric[second_name],
                same_direction=same_direction,
                level=plan.level,
            )
            low, high = interval.low, interval.high
        yield Agreement(first.data, first_name, second_name, tau, low, high)


def _draws_by_metric(values: Sequence[MethodValues], plan: Plan) -> dict[str, FloatArray]:
    """Return the draws by metric; metrics without intervals are omitted."""
    reliable = [v for v in values if not any(v.unreliable_reasons)]
    draws = draw_values(reliable, plan) if reliable else None
    if draws is None:
        return {}
    names = [v.metric.name for v in reliable]
    return dict(zip(names, draws, strict=True))


def stabilities(values: Sequence[MethodValues], plan: Plan) -> Iterator[Stability]:
    """Yield the agreement of the rankings of pairs of resamples."""
    for v in values:
        if v.has_varying_replicates and v.is_defined:
            interval = stability(v.mean_replicates, level=plan.level)
            yield Stability(v.metric.name, v.data, interval.mean, interval.low, interval.high)


# ------------------------------------------------------------------------- several data sets
@dataclass(frozen=True, eq=False)
class Blocks:
    """The values of one metric for each method and block (a data set or a run)."""

    sampled: tuple[MethodValues, ...]

    @property
    def metric(self) -> Metric:
        """The metric whose values are ranked."""
        return self.sampled[0].metric

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods, which are the same on every data set."""
        return self.sampled[0].methods

    @property
    def is_rankable(self) -> bool:
        """Whether all values are defined, for at least two methods and two blocks."""
        defined = all(values.is_defined for values in self.sampled)
        return defined and len(self.methods) > 1 and self.table.shape[0] > 1

    @property
    def kind(self) -> str:
        """Kind of the blocks: data sets or runs."""
        return "data sets" if len(self.sampled) > 1 else "runs"

    @property
    def table(self) -> FloatArray:
        """The values for each data set (means over its runs) or each run, shape (blocks, k)."""
        if len(self.sampled) > 1:
            return np.array([values.mean for values in self.sampled])
        return self.sampled[0].values

    @property
    def runs(self) -> FloatArray:
        """The values of all runs, shape (k, data sets, runs)."""
        return np.moveaxis(np.array([values.values for values in self.sampled]), 2, 0)


def compare_across_data_sets(blocks_by_metric: Sequence[Blocks], plan: Plan) -> ComparisonTables:
    """Return the tables over all data sets; they are empty for one run of one data set."""
    rankable = [blocks for blocks in blocks_by_metric if blocks.is_rankable]
    pairs_by_metric = [tuple(_wilcoxon_pairs(blocks, plan)) for blocks in rankable]
    return ComparisonTables(
        pairs=tuple(chain.from_iterable(pairs_by_metric)),
        summary=tuple(
            row
            for blocks, pairs in zip(rankable, pairs_by_metric, strict=True)
            for row in _summary(blocks, pairs, plan)
        ),
        standings=tuple(s for b in rankable for s in _standings_of_blocks(b, plan)),
        mean_ranks=tuple(_friedman(b, plan) for b in rankable),
        agreements=tuple(_agreements(rankable)),
        aggregates=tuple(a for b in rankable for a in _aggregates(b, plan)),
        improvements=tuple(i for b in rankable for i in _improvements(b, plan)),
        profiles=tuple(p for b in rankable for p in _profiles(b, plan)),
    )


def _wilcoxon_pairs(blocks: Blocks, plan: Plan) -> Iterator[PairedDifference]:
    """Yield the difference of each pair of methods with Wilcoxon's test over the blocks."""
    table = blocks.table
    index_pairs = list(combinations(range(len(blocks.methods)), 2))
    tests = [wilcoxon(table[:, i], table[:, j]) for i, j in index_pairs]
    adjusted = adjust([test.p_value for test in tests], method=plan.adjustment)
    sign = 1 if blocks.metric.lower_is_better else -1
    low_power_note = _note_low_power(blocks, plan, len(index_pairs))
    for (i, j), test, adjusted_p in zip(index_pairs, tests, adjusted, strict=True):
        first, second = blocks.methods[i], blocks.methods[j]
        differences = table[:, i] - table[:, j]
        win_rate = np.mean(sign * differences < 0)
        tie_rate = np.mean(differences == 0)
        rank_difference = _rank_difference(test)
        better, note = "", low_power_note
        if adjusted_p < plan.alpha:
            better = first if sign * rank_difference < 0 else second
            # The test compares ranks. A large difference in one block may reverse the mean.
            if rank_difference * differences.mean() < 0:
                note = _OPPOSITE_SIGNS
        yield PairedDifference(
            metric=blocks.metric.name,
            data=None,
            first=first,
            second=second,
            difference=float(differences.mean()),
            standard_error=float(differences.std(ddof=1) / np.sqrt(differences.size)),
            p_value=test.p_value,
            adjusted=float(adjusted_p),
            adjustment=plan.adjustment,
            test=f"Wilcoxon across {blocks.kind}",
            superiority=float(win_rate + tie_rate / 2),
            better=better,
            note=note,
        )


def _rank_difference(test: WilcoxonResult) -> float:
    """Return the deviation of the positive rank sum from its expected value."""
    return test.statistic - test.n_pairs * (test.n_pairs + 1) / 4


def _summary(blocks: Blocks, pairs: Sequence[PairedDifference], plan: Plan) -> Iterator[SummaryRow]:
    """Yield the summary of each method over all blocks, sorted from the best mean."""
    ranked = sort_best_first(_mean_estimates(blocks, plan))
    reference = plan.reference or (best_methods(ranked) or [ranked[0].method])[0]
    values = dict(zip(blocks.methods, blocks.table.T, strict=True))

    def test_reference(pair: PairedDifference, method: str) -> ReferenceTest:
        is_lower = _rank_difference(wilcoxon(values[method], values[reference])) < 0
        is_better = is_lower == blocks.metric.lower_is_better
        return ReferenceTest(pair.p_value, bool(is_better), note=pair.note)

    for row in summary_rows(ranked, reference, pairs, test_reference, plan):
        yield replace(row, data=None)


def _mean_estimates(blocks: Blocks, plan: Plan) -> Iterator[Estimate]:
    """Yield the mean of each method over the blocks as an estimate without an interval."""
    table = blocks.table
    for method, value in zip(blocks.methods, table.mean(axis=0), strict=True):
        yield Estimate(
            metric=blocks.metric.name,
            data=(),
            run=MEAN,
            method=method,
            value=float(value),
            low=_NAN,
            high=_NAN,
            standard_error=_NAN,
            level=plan.level,
            interval="",
            n=table.shape[0],
            failures=0,
            lower_is_better=blocks.metric.lower_is_better,
        )


#: Note on a pair whose mean difference and rank difference have opposite signs.
_OPPOSITE_SIGNS = (
    "a few large differences turn the mean; the test goes by the ranks of the differences"
)


def _note_low_power(blocks: Blocks, plan: Plan, n_tests: int) -> str:
    """Return a note if no p-value can be significant, because the smallest is 2 / 2^n_blocks."""
    n_blocks = blocks.table.shape[0]
    min_p_value = 2.0 ** (1 - n_blocks)
    label = "p-value"
    if n_tests > 1 and plan.adjustment != "none":
        min_p_value *= n_tests
        label = f"p-value, adjusted for {n_tests} pairs,"
    min_p_value = min(1.0, min_p_value)
    if min_p_value < plan.alpha:
        return ""
    return (
        f"with {n_blocks} {blocks.kind}, no difference can be significant, because the {label} is "
        f"at least {min_p_value:g}"
    )


def _standings_of_blocks(blocks: Blocks, plan: Plan) -> Iterator[Standing]:
    """Yield ranks over several data sets, as the mean of ranks and as the rank of means."""
    if len(blocks.sampled) == 1:
        return
    # All data sets use the same seed, so the draws are shuffled to make data sets independent.
    rng = np.random.default_rng(plan.seed)
    draws_by_data: list[FloatArray] = []
    for values in blocks.sampled:
        draws = draw_values([values], plan)
        if draws is None:
            return
        order = rng.permutation(draws[0].shape[1])
        draws_by_data.append(draws[0][:, order])
    are_resamples = all(values.has_varying_replicates for values in blocks.sampled)
    source = _BOOTSTRAP if are_resamples else _INFLUENCE
    aggregations = {
        "rank then aggregate": rank_then_aggregate,
        "aggregate then rank": aggregate_then_rank,
    }
    for name, aggregate in aggregations.items():
        ranking = aggregate(
            np.stack(draws_by_data),
            lower_is_better=blocks.metric.lower_is_better,
            level=plan.level,
            ties=plan.ties,
        )
        for i, method in enumerate(blocks.methods):
            yield Standing(
                metric=blocks.metric.name,
                data=None,
                method=method,
                value=_NAN,
                rank=float(ranking.ranks[i]),
                mean_rank=float(ranking.mean_ranks[i]),
                rank_low=float(ranking.low[i]),
                rank_high=float(ranking.high[i]),
                rank_probabilities=tuple(map(float, ranking.rank_probabilities[i])),
                source=f"{source}, {name}",
            )


def _friedman(blocks: Blocks, plan: Plan) -> MeanRanks:
    """Return the mean ranks with Friedman's test and Nemenyi's critical difference."""
    result = friedman(blocks.table, lower_is_better=blocks.metric.lower_is_better)
    distance = critical_difference(len(blocks.methods), result.n_blocks, alpha=plan.alpha)
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
    """Yield the agreement of each pair of metrics about the mean ranks of the methods."""
    mean_ranks = {}
    for blocks in rankable:
        test = friedman(blocks.table, lower_is_better=blocks.metric.lower_is_better)
        mean_ranks[blocks.metric.name] = test.mean_ranks
    for first, second in combinations(mean_ranks, 2):
        tau = kendall(mean_ranks[first], mean_ranks[second])
        yield Agreement(None, first, second, tau, _NAN, _NAN)


def _aggregates(blocks: Blocks, plan: Plan) -> Iterator[AggregateRow]:
    """Yield the interquartile mean of each method over all runs and data sets."""
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
    """Yield the probability of improvement for each pair of methods."""
    lower = blocks.metric.lower_is_better
    results = pairwise_improvements(
        blocks.runs, lower_is_better=lower, level=plan.level, rng=plan.seed
    )
    for names, result in zip(combinations(blocks.methods, 2), results, strict=True):
        yield Improvement(
            blocks.metric.name, *names, result.value, result.low, result.high, result.note
        )


def _profiles(blocks: Blocks, plan: Plan) -> Iterator[Profile]:
    """Yield the performance profile of each method over all runs and data sets."""
    runs = blocks.runs
    profiles = performance_profiles(
        runs,
        np.linspace(runs.min(), runs.max(), 101),
        lower_is_better=blocks.metric.lower_is_better,
        level=plan.level,
        rng=plan.seed,
    )
    for method, profile in zip(blocks.methods, profiles, strict=True):
        yield Profile(
            metric=blocks.metric.name,
            method=method,
            threshold=tuple(map(float, profile.threshold)),
            share=tuple(map(float, profile.share)),
            low=tuple(map(float, profile.low)),
            high=tuple(map(float, profile.high)),
        )
