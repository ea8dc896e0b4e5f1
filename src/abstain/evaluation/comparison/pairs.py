"""Paired differences of all methods on one data set, by each test."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import Any

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
    BootstrapDifference,
    bootstrap_differences,
    wilcoxon_on_replicates,
)
from abstain.inference.pairs import PairedNumbers
from abstain.inference.permutation import permutation_test, permutation_test_by_ranks
from abstain.inference.small_samples import few_clusters_warning
from abstain.metrics import Metric
from abstain.metrics.rank_weights import augrc_weight
from abstain.typing import Array, FloatArray

#: The test of published comparisons.
ON_REPLICATES = "Wilcoxon on bootstrap replicates"

#: Note of the pairs of the permutation test.
_NO_INTERVAL_NOTE = "the permutation test has no interval; see another test of this pair"


#: Columns of a pair besides its p-value.
_INTERVAL_COLUMNS = (
    "low",
    "high",
    "standard_error",
    "ratio",
    "ratio_low",
    "ratio_high",
    "superiority",
)


@dataclass(frozen=True, eq=False, kw_only=True)
class _PairTests:
    """The results of one test for all pairs of methods, in the order of `combinations`."""

    p_values: Sequence[float]
    notes: Sequence[str]
    #: Other columns of the table of pairs, such as "low", if the test has them.
    columns: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Family:
    """The pairs of one metric on one data set, whose p-values are adjusted together."""

    sampled: MethodValues
    plan: Plan

    def index_pairs(self) -> Iterator[tuple[int, int]]:
        """Return the indices of each pair of methods."""
        return combinations(range(len(self.sampled.methods)), 2)

    def rows(self, test: str, results: _PairTests) -> Iterator[PairedDifference]:
        """Adjust the p-values for the number of pairs, and yield the rows of the table."""
        metric, methods = self.sampled.metric, self.sampled.methods
        mean = self.sampled.mean.tolist()
        adjusted = adjust(results.p_values, method=self.plan.adjustment).tolist()
        for row, (i, j) in enumerate(self.index_pairs()):
            difference = mean[i] - mean[j]
            leader = i if (difference < 0) == metric.lower_is_better else j
            is_significant = adjusted[row] < self.plan.alpha and difference != 0
            columns: dict[str, Any] = {name: c[row] for name, c in results.columns.items()}
            yield PairedDifference(
                metric=metric.name,
                data=self.sampled.data,
                first=methods[i],
                second=methods[j],
                difference=difference,
                p_value=results.p_values[row],
                adjusted=adjusted[row],
                adjustment=self.plan.adjustment,
                test=test,
                better=methods[leader] if is_significant else "",
                note=results.notes[row],
                **columns,
            )


def pairs(sampled: MethodValues, plan: Plan) -> Iterator[PairedDifference]:
    """Yield all pairs by every available test, beginning with the test that decides."""
    if not sampled.is_defined:
        return
    family = _Family(sampled, plan)
    tests: dict[str, Callable[[_Family], _PairTests]] = {}
    if sampled.shares is not None:
        tests["influence"] = _test_by_influence
    if sampled.replicates is not None:
        tests["bootstrap"] = _test_by_bootstrap
    if plan.test == "permutation":
        tests["permutation"] = _test_by_permutation
    deciding_test = sampled.deciding_test(plan.test)
    for test in sorted(tests, key=lambda test: test != deciding_test):
        yield from family.rows(TEST_NAMES[test], tests[test](family))
    can_test_replicates = sampled.replicates is not None and not any(sampled.unreliable_reasons)
    if plan.published_test and can_test_replicates:
        yield from _test_on_replicates(family)


# ------------------------------------------------------------------------------------ influence
def differences_of(sampled: MethodValues, plan: Plan) -> Differences:
    """Return the differences of the means of all pairs of methods, from influences."""
    measurement = sampled.metric.measurement
    has_fixed_thresholds = sampled.shares_at_fixed_threshold is not None
    shares = sampled.shares_at_fixed_threshold if has_fixed_thresholds else sampled.shares
    if shares is None:
        raise InputError(f"{sampled.metric.name} has no influence function")
    failures = [sampled.fewest_failures(i) for i in range(len(sampled.methods))]
    n_units = sampled.n_units_per_pair
    has_clusters = sampled.runs[0].cluster is not None
    n_clusters = n_units.tolist() if has_clusters else [None] * n_units.size
    pairs = PairedNumbers.all_pairs(
        sampled.mean,
        shares,
        bounds=sampled.bounds,
        failures=failures,
        level=plan.level,
        n_units=n_units.astype(np.float64),
    )
    return compare_pairs(
        pairs,
        lower_is_better=sampled.metric.lower_is_better,
        bounds=sampled.bounds,
        warnings=warnings_by_pair(
            failures, heavy_tailed=measurement.heavy_tailed, clusters=n_clusters
        ),
        max_shifts=sampled.jump_effects if has_fixed_thresholds else None,
        no_error_at_threshold=measurement.no_error_at_threshold,
        ratios=not plan.skip_slow or sampled.replicates is not None,
    )


def _test_by_influence(family: _Family) -> _PairTests:
    differences = differences_of(family.sampled, family.plan)
    return _PairTests(
        p_values=differences.p_value.tolist(),
        notes=_add_unreliable_reasons(family, differences.notes),
        columns={name: getattr(differences, name).tolist() for name in _INTERVAL_COLUMNS},
    )


def _add_unreliable_reasons(family: _Family, notes: Sequence[str]) -> list[str]:
    """Replace the note of a pair by the reason if a method of the pair allows no test."""
    reason = family.sampled.unreliable_reason
    return [reason(i, j) or note for (i, j), note in zip(family.index_pairs(), notes, strict=True)]


# ------------------------------------------------------------------------------------ resamples


def _test_by_bootstrap(family: _Family) -> _PairTests:
    sampled = family.sampled
    differences = bootstrap_differences(
        sampled.mean_replicates,
        sampled.mean,
        lower_is_better=sampled.metric.lower_is_better,
        level=family.plan.level,
    )
    nan = float("nan")
    p_values: list[float] = []
    notes: list[str] = []
    columns: dict[str, list[float]] = {name: [] for name in _INTERVAL_COLUMNS}
    for difference, (i, j) in zip(differences, family.index_pairs(), strict=True):
        varies = _varies(difference, sampled.mean[[i, j]])
        p_values.append(difference.p_value if varies else nan)
        for name, column in columns.items():
            column.append(getattr(difference, name) if varies else nan)
        if varies:
            warnings = (difference.note, few_clusters_warning(sampled.n_clusters(i, j)))
            notes.append("; ".join(filter(None, warnings)))
        else:
            notes.append("the difference is the same in all resamples, so it has no standard error")
    return _PairTests(
        p_values=p_values, notes=_add_unreliable_reasons(family, notes), columns=columns
    )


def _varies(difference: BootstrapDifference, values: FloatArray) -> bool:
    """Return False if a non-zero difference is the same in all resamples, up to rounding."""
    tolerance = 1e-12 * float(np.abs(values).max())
    return not (difference.standard_error <= tolerance < abs(difference.difference))


def _test_on_replicates(family: _Family) -> Iterator[PairedDifference]:
    """Run the test of published comparisons, one-sided in both directions of each pair."""
    sampled, plan = family.sampled, family.plan
    methods, mean = sampled.methods, sampled.mean.tolist()
    p_values = wilcoxon_on_replicates(
        sampled.mean_replicates,
        lower_is_better=sampled.metric.lower_is_better,
        adjustment="none",
    )
    is_off_diagonal = ~np.eye(len(methods), dtype=np.bool_)
    adjusted = p_values.copy()
    adjusted[is_off_diagonal] = adjust(p_values[is_off_diagonal], method=plan.adjustment)
    for i, j in permutations(range(len(methods)), 2):
        yield PairedDifference(
            metric=sampled.metric.name,
            data=sampled.data,
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
def _test_by_permutation(family: _Family) -> _PairTests:
    samples = _samples_for_permutation_test(family.sampled)
    metric = family.sampled.metric
    options: dict[str, Any] = {
        "n_permutations": family.plan.n_draws("permutation", len(samples)),
        "rng": family.plan.seed,
        "cluster": family.sampled.runs[0].cluster,
    }
    p_values = []
    for i, j in family.index_pairs():
        first = (samples[i].confidence, samples[i].loss)
        second = (samples[j].confidence, samples[j].loss)
        if metric.measurement.rank_weight is augrc_weight:
            # The weight of a rank is the rank, so no permutation has to be sorted.
            result = permutation_test_by_ranks(lambda rank: rank, first, second, **options)
        else:
            result = permutation_test(_metric_as_function(metric), first, second, **options)
        p_values.append(result.p_value)
    return _PairTests(p_values=p_values, notes=[_NO_INTERVAL_NOTE] * len(p_values))


def _samples_for_permutation_test(sampled: MethodValues) -> list[Scored]:
    """Return the samples of each method; raise InputError if the test does not apply."""
    samples = list(sampled.runs[0].scored.values())
    measurement = sampled.metric.measurement
    needs_only_losses = all(need.name.endswith("LOSS") for need in measurement.needs)
    has_weights = any(s.weight is not None for s in samples)
    if len(sampled.runs) > 1 or has_weights or not measurement.rank_based or not needs_only_losses:
        raise InputError(
            "test='permutation' swaps the ranks of two scores: it requires one run, no weights, "
            f"and a metric of ranks and losses; got {sampled.metric.name!r} over "
            f"{len(sampled.runs)} run(s). Use 'influence' or 'bootstrap'."
        )
    return samples


def _metric_as_function(metric: Metric) -> Callable[[Array, Array], float]:
    return lambda confidence, loss: float(metric.compute(Scored(confidence, loss)).value)
