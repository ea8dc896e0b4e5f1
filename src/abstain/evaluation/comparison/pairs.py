"""Test the paired differences between all methods on one data set."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, permutations
from typing import Any, TypeAlias

import numpy as np

from abstain._foundation.scored import Scored
from abstain.errors import InputError
from abstain.evaluation.comparison.plan import TEST_NAMES, Plan
from abstain.evaluation.comparison.tables import PairedDifference
from abstain.evaluation.comparison.values import MethodValues
from abstain.inference.differences import (
    Differences,
    compare_pairs,
    warnings_by_pair,
)
from abstain.inference.multiplicity import adjust
from abstain.inference.paired import (
    REPLICATES_WARNING,
    bootstrap_differences,
    wilcoxon_on_replicates,
)
from abstain.inference.pairs import PairedNumbers
from abstain.inference.permutation import permutation_test, permutation_test_by_ranks
from abstain.inference.small_samples import few_clusters_warning
from abstain.metrics.rank_weights import augrc_weight
from abstain.typing import Array

#: Name of the test that published comparisons use.
ON_REPLICATES = "Wilcoxon on bootstrap replicates"

#: Note on each pair that is tested by the permutation test.
_NO_INTERVAL_NOTE = "the permutation test has no interval; see another test of this pair"


#: Columns of a pair that only influence functions and the bootstrap can compute.
_COLUMNS = (
    "p_value",
    "low",
    "high",
    "standard_error",
    "ratio",
    "ratio_low",
    "ratio_high",
    "superiority",
)

#: Result of one test of one pair, with the p-value, the note, and the available `_COLUMNS`.
_PairTest: TypeAlias = dict[str, Any]


def pairs(method_values: MethodValues, plan: Plan) -> Iterator[PairedDifference]:
    """Yield the difference of each pair of methods with every test; the decisive test is first."""
    if not method_values.is_defined:
        return
    tests: dict[str, Callable[[MethodValues, Plan], list[_PairTest]]] = {}
    if method_values.shares is not None:
        tests["influence"] = _test_by_influence
    if method_values.replicates is not None:
        tests["bootstrap"] = _test_by_bootstrap
    if plan.test == "permutation":
        tests["permutation"] = _test_by_permutation
    deciding_test = method_values.deciding_test(plan.test)
    for name in sorted(tests, key=lambda name: name != deciding_test):
        yield from _build_pairs(method_values, plan, TEST_NAMES[name], tests[name])
    has_replicates = method_values.replicates is not None
    if plan.published_test and has_replicates and not any(method_values.unreliable_reasons):
        yield from _test_on_replicates(method_values, plan)


def _build_pairs(
    method_values: MethodValues,
    plan: Plan,
    name: str,
    test: Callable[[MethodValues, Plan], list[_PairTest]],
) -> Iterator[PairedDifference]:
    """Yield the difference of each pair with its adjusted p-value by one test."""
    results = test(method_values, plan)
    p_values = [result["p_value"] for result in results]
    adjusted = adjust(p_values, method=plan.adjustment).tolist()
    metric, methods, mean = method_values.metric, method_values.methods, method_values.mean.tolist()
    index_pairs = _index_pairs(method_values)
    for (i, j), result, adjusted_p in zip(index_pairs, results, adjusted, strict=True):
        difference = mean[i] - mean[j]
        better = ""
        if adjusted_p < plan.alpha and difference != 0:
            better = methods[i] if (difference < 0) == metric.lower_is_better else methods[j]
        yield PairedDifference(
            metric=metric.name,
            data=method_values.data,
            first=methods[i],
            second=methods[j],
            difference=difference,
            adjusted=adjusted_p,
            adjustment=plan.adjustment,
            test=name,
            better=better,
            **result,
        )


def _index_pairs(method_values: MethodValues) -> Iterator[tuple[int, int]]:
    """Return the indices of the two methods of each pair."""
    return combinations(range(len(method_values.methods)), 2)


# ------------------------------------------------------------------------------------ influence
def differences_of(
    method_values: MethodValues,
    level: float,
    *,
    ratios: bool = True,
    paired_numbers: PairedNumbers | None = None,
) -> Differences:
    """Test the differences between the means of all pairs by influence functions.

    `paired_numbers` are the precomputed numbers of the pairs, by default those of all pairs.
    """
    measurement = method_values.metric.measurement
    failures = [method_values.fewest_failures(i) for i in range(len(method_values.methods))]
    n_units = method_values.n_units_per_pair
    has_clusters = method_values.runs[0].cluster is not None
    n_clusters = n_units.tolist() if has_clusters else [None] * n_units.size
    has_fixed_thresholds = method_values.shares_at_fixed_threshold is not None
    return compare_pairs(
        replace(paired_numbers or method_values.paired_numbers, level=level),
        lower_is_better=method_values.metric.lower_is_better,
        bounds=method_values.bounds,
        warnings=warnings_by_pair(
            failures, heavy_tailed=measurement.heavy_tailed, clusters=n_clusters
        ),
        max_shifts=method_values.jump_effects if has_fixed_thresholds else None,
        no_error_at_threshold=measurement.no_error_at_threshold,
        ratios=ratios,
    )


def interval_of_difference(
    method_values: MethodValues, first: str, second: str, level: float
) -> tuple[float, float]:
    """Return the interval of the difference of the means of two methods."""
    methods = method_values.methods
    i, j = sorted((methods.index(first), methods.index(second)))
    # Position of the pair in the order of `itertools.combinations`.
    n_pairs_before_i = i * len(methods) - i * (i + 1) // 2
    pair = n_pairs_before_i + j - i - 1
    selected = method_values.select([methods[i], methods[j]])
    pairs = method_values.paired_numbers.select(slice(pair, pair + 1))
    result = differences_of(selected, level, ratios=False, paired_numbers=pairs)
    low, high = float(result.low[0]), float(result.high[0])
    return (low, high) if methods[i] == first else (-high, -low)


def _test_by_influence(method_values: MethodValues, plan: Plan) -> list[_PairTest]:
    """Test all pairs by influence functions."""
    has_ratios = not plan.skip_slow or method_values.replicates is not None
    differences = differences_of(method_values, plan.level, ratios=has_ratios)
    columns = {name: getattr(differences, name).tolist() for name in _COLUMNS}
    results: list[_PairTest] = []
    for row, pair in enumerate(_index_pairs(method_values)):
        result: _PairTest = {name: column[row] for name, column in columns.items()}
        result["note"] = method_values.unreliable_reason(*pair) or differences.notes[row]
        results.append(result)
    return results


# ------------------------------------------------------------------------------------ resamples


def _test_by_bootstrap(method_values: MethodValues, plan: Plan) -> list[_PairTest]:
    """Test all pairs by the paired bootstrap."""
    differences = bootstrap_differences(
        method_values.mean_replicates,
        method_values.mean,
        lower_is_better=method_values.metric.lower_is_better,
        level=plan.level,
    )
    results: list[_PairTest] = []
    for difference, pair in zip(differences, _index_pairs(method_values), strict=True):
        tolerance = 1e-12 * float(np.abs(method_values.mean[list(pair)]).max())
        is_constant = difference.standard_error <= tolerance
        if is_constant and abs(difference.difference) > tolerance:
            result: _PairTest = dict.fromkeys(_COLUMNS, float("nan"))
            note = "the difference is the same in all resamples, so it has no standard error"
        else:
            result = {name: getattr(difference, name) for name in _COLUMNS}
            warnings = (difference.note, few_clusters_warning(method_values.n_clusters(*pair)))
            note = "; ".join(filter(None, warnings))
        result["note"] = method_values.unreliable_reason(*pair) or note
        results.append(result)
    return results


def _test_on_replicates(method_values: MethodValues, plan: Plan) -> Iterator[PairedDifference]:
    """Yield Wilcoxon's one-sided tests on the resamples in both directions of each pair."""
    methods, mean = method_values.methods, method_values.mean.tolist()
    p_values = wilcoxon_on_replicates(
        method_values.mean_replicates,
        lower_is_better=method_values.metric.lower_is_better,
        adjustment="none",
    )
    is_off_diagonal = ~np.eye(len(methods), dtype=np.bool_)
    adjusted = p_values.copy()
    adjusted[is_off_diagonal] = adjust(p_values[is_off_diagonal], method=plan.adjustment)
    for i, j in permutations(range(len(methods)), 2):
        yield PairedDifference(
            metric=method_values.metric.name,
            data=method_values.data,
            first=methods[i],
            second=methods[j],
            difference=mean[i] - mean[j],
            p_value=float(p_values[i, j]),
            adjusted=float(adjusted[i, j]),
            adjustment=plan.adjustment,
            test=ON_REPLICATES,
            better=methods[i] if adjusted[i, j] < plan.alpha else "",
            valid=False,
            note=REPLICATES_WARNING,
        )


# ------------------------------------------------------------------------------------ permutation
def _test_by_permutation(method_values: MethodValues, plan: Plan) -> list[_PairTest]:
    """Test all pairs by random exchanges of their two scores."""
    _check_permutation_is_supported(method_values)
    metric, run = method_values.metric, method_values.runs[0]
    samples = list(run.scored.values())
    options: dict[str, Any] = {
        "n_permutations": plan.n_draws("permutation", len(samples)),
        "rng": plan.seed,
        "cluster": run.cluster,
    }

    def compute_metric(confidence: Array, loss: Array) -> float:
        return float(metric.compute(Scored(confidence, loss)).value)

    results: list[_PairTest] = []
    for s, other in combinations(samples, 2):
        first, second = (s.confidence, s.loss), (other.confidence, other.loss)
        if metric.measurement.rank_weight is augrc_weight:
            # The AUGRC weights each sample by its rank, so permutations need no further sort.
            result = permutation_test_by_ranks(lambda rank: rank, first, second, **options)
        else:
            result = permutation_test(compute_metric, first, second, **options)
        results.append({"p_value": result.p_value, "note": _NO_INTERVAL_NOTE})
    return results


def _check_permutation_is_supported(method_values: MethodValues) -> None:
    """Raise InputError if the metric does not permit a permutation test."""
    metric, runs = method_values.metric, method_values.runs
    needs_only_losses = all(need.name.endswith("LOSS") for need in metric.measurement.needs)
    has_weights = any(s.weight is not None for s in runs[0].scored.values())
    is_supported = metric.measurement.rank_based and needs_only_losses and not has_weights
    if len(runs) > 1 or not is_supported:
        raise InputError(
            "test='permutation' swaps the ranks of two scores: it requires one run, no weights, "
            f"and a metric of ranks and losses; got {metric.name!r} over {len(runs)} run(s). "
            "Use 'influence' or 'bootstrap'."
        )
