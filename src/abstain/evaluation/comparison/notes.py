"""Write notes about the reliability of a comparison."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from abstain._foundation.notes import Note
from abstain.evaluation.comparison.plan import TEST_NAMES, Plan
from abstain.evaluation.comparison.record import ComparisonTables, DataSetComparison
from abstain.evaluation.comparison.runs import ScoredRun, have_same_samples, independence_codes
from abstain.evaluation.comparison.values import MethodValues
from abstain.evaluation.notes import direction_warning
from abstain.evaluation.records import warnings_first
from abstain.inference.paired import REPLICATES_WARNING
from abstain.inference.small_samples import MIN_CLUSTERS, MIN_FAILURES, MIN_FAILURES_HEAVY_TAILED
from abstain.metrics import Metric

#: A note about more methods than this states the number of methods instead of the names.
_NAMED = 5


def comparison_notes(
    runs: Sequence[ScoredRun],
    comparisons: Sequence[DataSetComparison],
    across: ComparisonTables,
    plan: Plan,
) -> tuple[Note, ...]:
    """Return all notes about a comparison, warnings first."""
    values = [v for comparison in comparisons for v in comparison.sampled]
    return warnings_first(
        [
            *_wrong_directions(runs),
            *_few_failures(values),
            *_undefined_values(values),
            *_missing_intervals(values),
            *_few_draws(comparisons, plan),
            *_deciding_tests(comparisons[0].sampled, plan),
            *_matched_samples(runs),
            *_weights_of_methods(runs),
            *_clusters(runs),
            *_several_runs(comparisons),
            *block_notes(across),
        ]
    )


def data_set_notes(runs: Sequence[ScoredRun], comparison: DataSetComparison) -> tuple[Note, ...]:
    """Return the notes about one data set."""
    return warnings_first(
        [
            *_few_failures(comparison.sampled),
            *_undefined_values(comparison.sampled),
            *_missing_intervals(comparison.sampled),
            *_weights_of_methods(runs),
            *_clusters(runs),
        ]
    )


def block_notes(across: ComparisonTables) -> Iterator[Note]:
    """Yield the notes about tests over all data sets or runs."""
    notes = [(pair.test, pair.note) for pair in across.pairs]
    notes += [("Friedman's test", mean_ranks.note) for mean_ranks in across.mean_ranks]
    for test, note in notes:
        if note:
            yield Note("few_blocks", f"{test}: {note}.")


def _capitalized_title(metric: Metric) -> str:
    return metric.title[:1].upper() + metric.title[1:]


def _wrong_directions(runs: Sequence[ScoredRun]) -> Iterator[Note]:
    """Yield a warning for each method whose failures have higher confidences than successes."""
    reported = set()
    for run in runs:
        for method, s in run.scored.items():
            if (run.data, method) in reported:
                continue
            warning = direction_warning(s, is_column=method in run.column_methods)
            if warning:
                reported.add((run.data, method))
                yield Note.warning("direction", warning, run.data, method)


def _few_failures(values: Sequence[MethodValues]) -> Iterator[Note]:
    """Yield a warning for each metric that is estimated from too few failures."""
    for v in values:
        is_heavy_tailed = v.metric.measurement.heavy_tailed
        n_required = MIN_FAILURES_HEAVY_TAILED if is_heavy_tailed else MIN_FAILURES
        n_failures = v.n_failures()
        if n_failures is not None and n_failures < n_required:
            plural = "" if n_failures == 1 else "s"
            message = (
                f"{_capitalized_title(v.metric)} is estimated from {n_failures:,} failure{plural}; "
                f"its intervals and tests are reliable with about {n_required} or more."
            )
            yield Note.warning("few_failures", message, v.data)


def _undefined_values(values: Sequence[MethodValues]) -> Iterator[Note]:
    """Yield a warning for each metric that is undefined for at least one method."""
    for v in values:
        if not v.is_defined:
            reason = "; ".join(v.reasons) or "it is infinite"
            message = (
                f"{_capitalized_title(v.metric)} is undefined for some method here, so nothing is "
                f"compared by it: {reason}."
            )
            yield Note.warning("undefined", message, v.data)


def _missing_intervals(values: Sequence[MethodValues]) -> Iterator[Note]:
    """Yield a warning for each metric that has no interval for some methods."""
    for v in values:
        reasons = dict(zip(v.methods, v.unreliable_reasons, strict=False))
        methods = [method for method, reason in reasons.items() if reason]
        if methods:
            names = ", ".join(methods) if len(methods) <= _NAMED else f"{len(methods)} methods"
            message = (
                f"{_capitalized_title(v.metric)} has no interval and no p-value for {names}: "
                f"{reasons[methods[0]]}."
            )
            yield Note.warning("no_interval", message, v.data)


def _few_draws(comparisons: Sequence[DataSetComparison], plan: Plan) -> Iterator[Note]:
    """Yield a warning if too few resamples are drawn for any p-value to be significant."""
    n_methods = len(comparisons[0].sampled[0].methods)
    n_tests = plan.n_deciding_tests(n_methods)
    n_resamples = math.ceil(4 * n_tests / plan.alpha / 100) * 100
    remedies = {
        "bootstrap": f"Draw at least {n_resamples:,} resamples.",
        "permutation": "Compare fewer methods, or decide by another test.",
    }
    for comparison in comparisons:
        # A permutation test counts both tails together. The bootstrap counts each tail separately.
        min_p_values = {
            "bootstrap": 2 * n_tests / (comparison.resamples + 1),
            "permutation": n_tests / (plan.n_draws("permutation", n_methods) + 1),
        }
        tests = (v.deciding_test(plan.test) for v in comparison.sampled if v.is_defined)
        for test in dict.fromkeys(tests):
            if min_p_values.get(test, 0.0) >= plan.alpha:
                message = (
                    f"No pair can be found different by the {TEST_NAMES[test]} here: with so few "
                    f"draws no adjusted p-value is below {min(1.0, min_p_values[test]):.2g}. "
                    f"{remedies[test]}"
                )
                yield Note.warning("few_draws", message, comparison.data)


def _deciding_tests(values: Sequence[MethodValues], plan: Plan) -> Iterator[Note]:
    """Yield notes about a test that is replaced or whose results are not used."""
    for v in values:
        if v.deciding_test(plan.test) != plan.test:
            message = f"{v.metric.reason_without_interval}; so the paired bootstrap decides."
            yield Note("no_influence", message[:1].upper() + message[1:])
    if plan.published_test:
        message = f"“Wilcoxon on bootstrap replicates” decides nothing here: {REPLICATES_WARNING}"
        yield Note("replicates", message)


def _matched_samples(runs: Sequence[ScoredRun]) -> Iterator[Note]:
    """Yield a note that states how the samples of the methods were matched."""
    criteria = {run.matched_by for run in runs}
    if "order" in criteria:
        message = (
            "The samples of the methods were matched by their order, since they have no names in "
            "common. Name them (id) where the order may differ."
        )
        yield Note("matched", message)
    elif "name" in criteria:
        yield Note("matched", "The samples were matched by name.")


def _weights_of_methods(runs: Sequence[ScoredRun]) -> Iterator[Note]:
    """Yield a note for each data set on which methods have different weights."""
    for data in dict.fromkeys(run.data for run in runs):
        runs_of_data = [run for run in runs if run.data == data]
        if not any(run.has_weights_by_method for run in runs_of_data):
            continue
        counts = []
        for run in runs_of_data:
            counts += [run.count_samples_and_failures(method)[0] for method in run.scored]
        n_samples = max(run.n for run in runs_of_data)
        message = (
            f"Each method is judged by its own samples, {min(counts):,} to {max(counts):,} of "
            f"{n_samples:,}: what it is better at may be another set of samples."
        )
        yield Note("per_method_weights", message, data)


def _clusters(runs: Sequence[ScoredRun]) -> Iterator[Note]:
    """Yield a note with the number of clusters, which is a warning if the number is small."""
    counts = [run.min_clusters for run in runs]
    n_clusters = min((count for count in counts if count is not None), default=None)
    if n_clusters is None:
        return
    message = f"Independent of each other are the {n_clusters:,} groups, not the samples."
    if n_clusters >= MIN_CLUSTERS:
        yield Note("clusters", message)
        return
    few = f"Below {MIN_CLUSTERS} groups intervals are too short and tests too sure."
    yield Note.warning("clusters", f"{message} {few}")


def _several_runs(comparisons: Sequence[DataSetComparison]) -> Iterator[Note]:
    """Yield notes about how several runs are combined, and about shared samples."""
    runs_by_data = [comparison.sampled[0].runs for comparison in comparisons]
    n_runs = len({run.run for runs in runs_by_data for run in runs})
    if n_runs == 1:
        return
    if all(map(have_same_samples, runs_by_data)):
        samples = "on the same samples, so their means are compared sample by sample"
    else:
        samples = (
            "on different samples, so each run counts as samples of its own, but for samples of "
            "the same name or cluster"
        )
    message = (
        f"The {n_runs} runs are {samples}. Intervals speak of these trained models on new samples, "
        "not of training again; the tests across runs speak of that."
    )
    yield Note("runs", message)
    for comparison, runs in zip(comparisons, runs_by_data, strict=True):
        if comparison.resamples and _share_some_samples(runs):
            message = (
                "Some samples or clusters are in several runs, but not in all. Influence functions "
                "count them once; the bootstrap takes the runs for independent and is too sure."
            )
            yield Note.warning("overlap", message, comparison.data)


def _share_some_samples(runs: Sequence[ScoredRun]) -> bool:
    """Return whether runs with different samples have some samples or clusters in common."""
    codes = independence_codes(runs)
    if codes is None or have_same_samples(runs):
        return False
    n_units = [run.n if run.cluster is None else np.unique(run.cluster).size for run in runs]
    return np.unique(codes).size < sum(n_units)
