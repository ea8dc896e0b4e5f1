"""Compare methods by a metric on each study and over all studies.

The comparison uses the functions of `abstain.compare`. In contrast to `abstain.compare`, only one
study is in memory at a time, and some studies are averages over parts. For example, FD-Shifts
averages a metric over the five severities of a corruption. All severities use the same networks and
images, so the five values are not independent. The influence of an image on the mean is the mean of
its influences on the five values. A resample contains the same images for all severities.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from abstain._foundation.scored import Scored
from abstain.evaluation import Comparison, Note
from abstain.evaluation.comparison import (
    Blocks,
    DataSetComparison,
    Estimate,
    MethodValues,
    Plan,
    RowWeights,
    ScoredRun,
    block_notes,
    compare_across_data_sets,
    compare_data,
    compute_values,
    data_set_notes,
    join_tables,
    mean_estimate,
    pairs,
    resample_values,
    stabilities,
    standings,
)
from abstain.inference.small_samples import FailureCount
from abstain.metrics import Metric
from abstain.metrics.intervals import min_failures
from abstain.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Studied:
    """Comparison of all methods by a metric on a study.

    `part` is a comparison of one data set from which the samples were removed. Only studies for
    which `headline` is True are used in the comparison over all studies.
    """

    part: DataSetComparison
    findings: tuple[Note, ...]
    headline: bool

    @property
    def sampled(self) -> MethodValues:
        """Values of the methods and their influences."""
        return self.part.sampled[0]


def compared(units: Sequence[ScoredRun], metric: Metric, plan: Plan, *, headline: bool) -> Studied:
    """Compare the methods on a study. `units` contains a scored run for each seed."""
    comparison = compare_data(units, [metric], plan)
    without_samples = replace(comparison, sampled=(_remove_samples(comparison.sampled[0]),))
    return Studied(without_samples, data_set_notes(units, comparison), headline)


def _remove_samples(sampled: MethodValues) -> MethodValues:
    """Remove the samples, which the comparison over all studies does not need."""
    placeholder = Scored(np.zeros(1), np.zeros(1))
    units = tuple(
        replace(
            unit,
            scored=dict.fromkeys(unit.scored, placeholder),
            labels=None,
            cluster=None,
            group=None,
        )
        for unit in sampled.runs
    )
    return replace(sampled, runs=units, rows=RowWeights(None, None))


def comparison_of(
    studied: Sequence[Studied], metric: Metric, methods: Sequence[str], plan: Plan
) -> Comparison:
    """Combine the comparisons by a metric on all studies.

    Tests over all studies use only headline studies, because the remaining studies contain the same
    images. Studies with undefined values are omitted from these tests.
    """
    defined = [
        result.sampled for result in studied if result.headline and result.sampled.is_defined
    ]
    first_methods = defined[0].methods if defined else ()
    shared_methods = [m for m in first_methods if all(m in sampled.methods for sampled in defined)]
    blocks = Blocks(tuple(sampled.select(shared_methods) for sampled in defined))
    across_studies = compare_across_data_sets([blocks] if shared_methods else [], plan)
    findings = [finding for result in studied for finding in result.findings]
    return join_tables(
        [result.part for result in studied],
        across_studies,
        plan,
        metrics=[metric],
        methods=methods,
        notes=[*findings, *block_notes(across_studies)],
    )


# ------------------------------------------------------------------- the mean over parts of a study
@dataclass(frozen=True, eq=False)
class _Mean(MethodValues):
    """Values of a metric on the parts of a study, for one seed or for all seeds.

    The value of a method is the mean over the parts.
    """

    parts: int = 1

    @property
    def seeds(self) -> list[tuple[ScoredRun, ...]]:
        """Scored runs on all parts for each seed."""
        starts = range(0, len(self.runs), self.parts)
        return [self.runs[start : start + self.parts] for start in starts]

    def count_samples_and_failures(self, method: str, run: int | None = None) -> tuple[int, int]:
        """Return the minimum numbers of samples and failures over the seeds.

        The numbers of each seed are sums over the parts.
        """
        if run is not None:
            return super().count_samples_and_failures(method, run)
        sums = [
            np.sum([unit.count_samples_and_failures(method) for unit in seed_runs], axis=0)
            for seed_runs in self.seeds
        ]
        n, failures = np.min(sums, axis=0).tolist()
        return n, failures

    def fewest_failures(self, *methods: int) -> FailureCount | None:
        """Return the minimum number of failures over the seeds and methods.

        The number of each seed is a sum over the parts.
        """
        names = [self.methods[i] for i in methods] or self.methods
        totals = []
        for seed_runs in self.seeds:
            for name in names:
                counts = [min_failures(self.metric, [unit.scored[name]]) for unit in seed_runs]
                defined = [count for count in counts if count is not None]
                if defined:
                    n_failures = sum(count.n_failures for count in defined)
                    totals.append(FailureCount(n_failures, defined[0].population))
        return min(totals, default=None)


def averaged(
    seeds: Sequence[Sequence[ScoredRun]], metric: Metric, plan: Plan, *, headline: bool
) -> Studied:
    """Compare the methods by the mean over the parts of a study.

    `seeds` contains for each seed a scored run on each part, in the same order. The estimates are
    means over the parts for each seed, and means over the parts and seeds. If the parts contain
    different images, there is no bootstrap, and the influences account for common images.
    """
    replicates = _resample_seeds(seeds, metric, plan)
    seed_means = [_average_seed(seed_runs, metric) for seed_runs in seeds]
    overall = _combine_seeds(seed_means)
    if replicates is not None:
        overall = replace(overall, replicates=np.concatenate(replicates))
        seed_means = [
            replace(seed_mean, replicates=r)
            for seed_mean, r in zip(seed_means, replicates, strict=True)
        ]
    comparison = DataSetComparison(
        data=overall.data,
        sampled=(overall,),
        estimates=tuple(_estimates(seed_means, overall, plan)),
        pairs=tuple(pairs(overall, plan)),
        standings=tuple(standings(overall, plan)),
        stability=tuple(stabilities([overall], plan)),
        resamples=0 if replicates is None else plan.resamples,
    )
    without_samples = _remove_samples(_seed_values(seed_means, overall))
    notes = data_set_notes(overall.runs, comparison)
    return Studied(replace(comparison, sampled=(without_samples,)), notes, headline)


def _estimates(seed_means: Sequence[_Mean], overall: _Mean, plan: Plan) -> Iterator[Estimate]:
    """Yield the estimates of each seed and, for several seeds, the means over the seeds."""
    for seed_mean in seed_means:
        for i in range(len(seed_mean.methods)):
            yield mean_estimate(seed_mean, i, plan, seed_mean.runs[0].run)
    if len(seed_means) > 1:
        yield from (mean_estimate(overall, i, plan) for i in overall.evaluated_indices)


def _average_seed(units: Sequence[ScoredRun], metric: Metric) -> _Mean:
    """Compute a metric on all parts of a study for one seed."""
    values_by_run = compute_values(metric, units, RowWeights.from_runs(units))
    return _Mean(
        metric,
        values_by_run.runs,
        values_by_run.values,
        values_by_run.rows,
        values_by_run.reasons,
        values_by_run.shares,
        unreliable_reasons=values_by_run.unreliable_reasons,
        parts=len(units),
    )


def _combine_seeds(seed_means: Sequence[_Mean]) -> _Mean:
    """Combine the values of all seeds, which use the same images."""
    shares = [mean.shares for mean in seed_means if mean.shares is not None]
    reasons = [mean.unreliable_reasons for mean in seed_means if mean.unreliable_reasons]
    # Each method has the first reason that is not empty in any seed.
    first_reasons = tuple(
        next(filter(None, method_reasons), "") for method_reasons in zip(*reasons, strict=True)
    )
    return replace(
        seed_means[0],
        runs=tuple(unit for mean in seed_means for unit in mean.runs),
        values=np.concatenate([mean.values for mean in seed_means]),
        reasons=tuple(dict.fromkeys(reason for mean in seed_means for reason in mean.reasons)),
        shares=np.mean(shares, axis=0) if len(shares) == len(seed_means) else None,
        unreliable_reasons=first_reasons,
    )


def _seed_values(seed_means: Sequence[_Mean], overall: _Mean) -> MethodValues:
    """Convert the means over the parts of each seed to values of one run for each seed."""
    replicates = [
        seed_mean.mean_replicates for seed_mean in seed_means if seed_mean.replicates is not None
    ]
    return MethodValues(
        overall.metric,
        tuple(seed_mean.runs[0] for seed_mean in seed_means),
        np.array([seed_mean.mean for seed_mean in seed_means]),
        overall.rows,
        overall.reasons,
        overall.shares,
        np.array(replicates) if replicates else None,
        unreliable_reasons=overall.unreliable_reasons,
    )


def _resample_seeds(
    seeds: Sequence[Sequence[ScoredRun]], metric: Metric, plan: Plan
) -> list[FloatArray] | None:
    """Resample the images of a study, with the same images in all parts.

    The list contains an array of shape (parts, methods, resamples) for each seed. The result is
    None if no bootstrap is requested, if there are fewer than two methods, or if the parts contain
    different images.
    """
    if not plan.resamples or len(seeds[0][0].scored) < 2:
        return None
    source_indices = [np.unique(np.asarray(unit.group)) for unit in seeds[0]]
    if not all(np.array_equal(source_indices[0], indices) for indices in source_indices[1:]):
        return None
    # Resamples depend only on the random seed and the number of images.
    by_part = [
        resample_values([metric], units, plan.resamples, plan.seed)[0]
        for units in zip(*seeds, strict=True)
    ]
    return list(np.stack(by_part, axis=1))
