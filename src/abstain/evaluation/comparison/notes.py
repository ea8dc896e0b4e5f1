"""Notes about a comparison."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from abstain._foundation.notes import Note
from abstain.evaluation.comparison.across_data_sets import ComparisonTables, DataSetComparison
from abstain.evaluation.comparison.plan import TEST_NAMES, Plan
from abstain.evaluation.comparison.runs import ScoredRun, have_same_samples, independence_codes
from abstain.evaluation.notes import direction_warning
from abstain.evaluation.records import warnings_first
from abstain.inference.paired import REPLICATES_WARNING
from abstain.inference.small_samples import MIN_CLUSTERS, MIN_FAILURES, MIN_FAILURES_HEAVY_TAILED
from abstain.metrics import Metric
from abstain.typing import IntArray

#: Of more methods than this a finding gives the number instead of the names.
_NAMED = 5


def comparison_notes(
    units: Sequence[ScoredRun],
    parts: Sequence[DataSetComparison],
    together: ComparisonTables,
    plan: Plan,
) -> tuple[Note, ...]:
    """Return all notes about a comparison, warnings first."""
    return warnings_first(
        [
            *_directions(units),
            *_few_failures(parts),
            *_undefined(parts),
            *_unreliable(parts),
            *_few_draws(parts, plan),
            *_resampled(parts, plan),
            *_matched(units),
            *_per_method_weights(units),
            *_clusters(units),
            *_runs(units, parts),
            *block_notes(together),
        ]
    )


def data_set_notes(units: Sequence[ScoredRun], part: DataSetComparison) -> tuple[Note, ...]:
    """Return the notes about one data set."""
    return warnings_first(
        [
            *_few_failures([part]),
            *_undefined([part]),
            *_unreliable([part]),
            *_per_method_weights(units),
            *_clusters(units),
        ]
    )


def block_notes(together: ComparisonTables) -> Iterator[Note]:
    """Yield the notes about tests over all data sets or runs."""
    noted = [(pair.test, pair.note) for pair in together.pairs]
    noted += [("Friedman's test", across.note) for across in together.mean_ranks]
    for test, note in noted:
        if note:
            yield Note("few_blocks", f"{test}: {note}.")


def _named(metric: Metric) -> str:
    """Write a metric at the start of a sentence."""
    return metric.title[:1].upper() + metric.title[1:]


def _directions(units: Sequence[ScoredRun]) -> Iterator[Note]:
    told = set()
    for unit in units:
        for name, s in unit.scored.items():
            if (unit.data, name) not in told and (
                said := direction_warning(s, is_column=name in unit.column_methods)
            ):
                told.add((unit.data, name))
                yield Note.warning("direction", said, unit.data, name)


def _few_failures(parts: Sequence[DataSetComparison]) -> Iterator[Note]:
    for part in parts:
        for sampled in part.sampled:
            failures = sampled.n_failures()
            needed = (
                MIN_FAILURES_HEAVY_TAILED
                if sampled.metric.measurement.heavy_tailed
                else MIN_FAILURES
            )
            if failures is not None and failures < needed:
                counted = "1 failure" if failures == 1 else f"{failures:,} failures"
                message = (
                    f"{_named(sampled.metric)} is estimated from {counted}; its intervals and "
                    f"tests are reliable with about {needed} or more."
                )
                yield Note.warning("few_failures", message, part.data)


def _undefined(parts: Sequence[DataSetComparison]) -> Iterator[Note]:
    for part in parts:
        for sampled in part.sampled:
            if not sampled.is_defined:
                why = "; ".join(sampled.reasons) or "it is infinite"
                message = (
                    f"{_named(sampled.metric)} is undefined for some method here, so nothing is "
                    f"compared by it: {why}."
                )
                yield Note.warning("undefined", message, part.data)


def _unreliable(parts: Sequence[DataSetComparison]) -> Iterator[Note]:
    for part in parts:
        for sampled in part.sampled:
            rejected = [
                name
                for name, why in zip(sampled.methods, sampled.unreliable_reasons, strict=False)
                if why
            ]
            if rejected:
                names = (
                    ", ".join(rejected) if len(rejected) <= _NAMED else f"{len(rejected)} methods"
                )
                message = (
                    f"{_named(sampled.metric)} has no interval and no p-value for {names}: "
                    f"{next(filter(None, sampled.unreliable_reasons))}."
                )
                yield Note.warning("no_interval", message, part.data)


def _few_draws(parts: Sequence[DataSetComparison], plan: Plan) -> Iterator[Note]:
    """Warn if no p-value can be significant with so few draws, however large the difference."""
    methods = len(parts[0].sampled[0].methods)
    tests = plan.n_tests(methods)
    for part in parts:
        # A swap test counts both sides at once, a bootstrap each by itself.
        least = {
            "bootstrap": 2 * tests / (part.resamples + 1),
            "permutation": tests / (plan.n_draws("permutation", methods) + 1),
        }
        for test in dict.fromkeys(s.deciding_test(plan.test) for s in part.sampled if s.is_defined):
            if least.get(test, 0.0) >= plan.alpha:
                message = (
                    f"No pair can be found different by the {TEST_NAMES[test]} here: with so few "
                    f"draws no adjusted p-value is below {min(1.0, least[test]):.2g}. "
                    f"{_remedy(test, tests, plan)}"
                )
                yield Note.warning("few_draws", message, part.data)


def _remedy(test: str, tests: int, plan: Plan) -> str:
    if test == "permutation":
        return "Compare fewer methods, or decide by another test."
    needed = math.ceil(4 * tests / plan.alpha / 100) * 100
    return f"Draw at least {needed:,} resamples."


def _resampled(parts: Sequence[DataSetComparison], plan: Plan) -> Iterator[Note]:
    for sampled in parts[0].sampled:
        if sampled.deciding_test(plan.test) != plan.test:
            message = f"{sampled.metric.reason_without_interval}; so the paired bootstrap decides."
            yield Note("no_influence", message[:1].upper() + message[1:])
    if plan.published_test:
        message = f"“Wilcoxon on bootstrap replicates” decides nothing here: {REPLICATES_WARNING}"
        yield Note("replicates", message)


def _matched(units: Sequence[ScoredRun]) -> Iterator[Note]:
    if any(unit.matched_by == "order" for unit in units):
        message = (
            "The samples of the methods were matched by their order, since they have no names in "
            "common. Name them (id) where the order may differ."
        )
        yield Note("matched", message)
    elif any(unit.matched_by == "name" for unit in units):
        yield Note("matched", "The samples were matched by name.")


def _per_method_weights(units: Sequence[ScoredRun]) -> Iterator[Note]:
    for data in dict.fromkeys(unit.data for unit in units):
        own = [unit for unit in units if unit.data == data]
        if all(unit.weight is None or unit.weight.ndim == 1 for unit in own):
            continue
        n = [unit.count_samples_and_failures(method)[0] for unit in own for method in unit.scored]
        message = (
            f"Each method is judged by its own samples, {min(n):,} to {max(n):,} of "
            f"{max(unit.n for unit in own):,}: what it is better at may be another set of samples."
        )
        yield Note("per_method_weights", message, data)


def _clusters(units: Sequence[ScoredRun]) -> Iterator[Note]:
    counts = [_fewest_clusters(unit, unit.cluster) for unit in units if unit.cluster is not None]
    if not counts:
        return
    message = f"Independent of each other are the {min(counts):,} groups, not the samples."
    if min(counts) >= MIN_CLUSTERS:
        yield Note("clusters", message)
        return
    few = f"Below {MIN_CLUSTERS} groups intervals are too short and tests too sure."
    yield Note.warning("clusters", f"{message} {few}")


def _fewest_clusters(unit: ScoredRun, cluster: IntArray) -> int:
    """Return the number of clusters, of the method with the fewest."""
    if unit.weight is None or unit.weight.ndim == 1:
        return int(np.unique(cluster).size)
    return min(np.unique(cluster[own > 0]).size for own in unit.weight.T)


def _runs(units: Sequence[ScoredRun], parts: Sequence[DataSetComparison]) -> Iterator[Note]:
    runs = len({unit.run for unit in units})
    if runs == 1:
        return
    shared = all(have_same_samples(part.sampled[0].runs) for part in parts)
    how = (
        "on the same samples, so their means are compared sample by sample"
        if shared
        else "on different samples, so each run counts as samples of its own, but for samples of "
        "the same name or cluster"
    )
    message = (
        f"The {runs} runs are {how}. Intervals speak of these trained models on new samples, not "
        "of training again; the tests across runs speak of that."
    )
    yield Note("runs", message)
    for part in parts:
        if part.resamples and _overlap(part.sampled[0].runs):
            message = (
                "Some samples or clusters are in several runs, but not in all. Influence functions "
                "count them once; the bootstrap takes the runs for independent and is too sure."
            )
            yield Note.warning("overlap", message, part.data)


def _overlap(units: Sequence[ScoredRun]) -> bool:
    """Return whether runs on different samples share some samples or clusters."""
    codes = independence_codes(units)
    if codes is None or have_same_samples(units):
        return False
    apart = [unit.n if unit.cluster is None else np.unique(unit.cluster).size for unit in units]
    return np.unique(codes).size < sum(apart)
