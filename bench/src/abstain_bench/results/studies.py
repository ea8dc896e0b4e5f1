"""One metric of all methods on one study, and all studies in one `Comparison`.

The engine is that of `abstain.compare`. Two things differ: only one study is in memory at a time,
and some studies are the mean of others. FD-Shifts computes a metric for each of the five severities
of a corruption and averages the values. All severities use the same networks and the same pictures,
so the five values are not independent. The influence of a picture on the mean is the mean of its
influences on the five values, and a resample contains the same pictures for all severities.
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
    """One metric of all methods on one study, without the samples.

    `part` is the result of `abstain.compare` for one data set, with the samples removed from its
    `sampled`. Only studies with `headline` set enter the comparison across all studies.
    """

    part: DataSetComparison
    findings: tuple[Note, ...]
    headline: bool

    @property
    def sampled(self) -> MethodValues:
        """The values and how they vary with the samples."""
        return self.part.sampled[0]


def compared(units: Sequence[ScoredRun], metric: Metric, plan: Plan, *, headline: bool) -> Studied:
    """Compare the methods on one study; the units are its runs."""
    comparison = compare_data(units, [metric], plan)
    without_samples = replace(comparison, sampled=(_remove_samples(comparison.sampled[0]),))
    return Studied(without_samples, data_set_notes(units, comparison), headline)


def _remove_samples(sampled: MethodValues) -> MethodValues:
    """Remove the samples: the comparison of all studies needs only values and shares."""
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
    """Return the comparison of all studies, in the order of the tables, by one metric.

    The comparison across studies uses only headline studies, since the others contain the same
    pictures again. It also leaves out studies in which a method has no value.
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
    """One metric on the parts of a study, for one seed or all seeds; its value is their mean."""

    parts: int = 1

    @property
    def seeds(self) -> list[tuple[ScoredRun, ...]]:
        """The units of each seed."""
        starts = range(0, len(self.runs), self.parts)
        return [self.runs[start : start + self.parts] for start in starts]

    def count_samples_and_failures(self, method: str, run: int | None = None) -> tuple[int, int]:
        """Return the fewest samples and failures over the seeds, each summed over the parts."""
        if run is not None:
            return super().count_samples_and_failures(method, run)
        sums = [
            np.sum([unit.count_samples_and_failures(method) for unit in seed_runs], axis=0)
            for seed_runs in self.seeds
        ]
        n, failures = np.min(sums, axis=0).tolist()
        return n, failures

    def fewest_failures(self, *methods: int) -> FailureCount | None:
        """Return the fewest failures over the seeds, each summed over the parts."""
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

    Every seed has one unit for each part, in the same order. The estimates are the mean over the
    parts of each seed, and the mean of these over the seeds. If the parts contain different
    pictures, nothing is resampled, and only the influences account for shared pictures.
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
    """Return the mean over the parts of each seed, and over the seeds."""
    for seed_mean in seed_means:
        for i in range(len(seed_mean.methods)):
            yield mean_estimate(seed_mean, i, plan, seed_mean.runs[0].run)
    if len(seed_means) > 1:
        yield from (mean_estimate(overall, i, plan) for i in overall.evaluated_indices)


def _average_seed(units: Sequence[ScoredRun], metric: Metric) -> _Mean:
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
    """Combine the units of all seeds, which contain the same images."""
    shares = [mean.shares for mean in seed_means if mean.shares is not None]
    reasons = [mean.unreliable_reasons for mean in seed_means if mean.unreliable_reasons]
    # The first reason of any seed, for each method.
    first_reasons = tuple(next(filter(None, r), "") for r in zip(*reasons, strict=True))
    return replace(
        seed_means[0],
        runs=tuple(unit for mean in seed_means for unit in mean.runs),
        values=np.concatenate([mean.values for mean in seed_means]),
        reasons=tuple(dict.fromkeys(reason for mean in seed_means for reason in mean.reasons)),
        shares=np.mean(shares, axis=0) if len(shares) == len(seed_means) else None,
        unreliable_reasons=first_reasons,
    )


def _seed_values(seed_means: Sequence[_Mean], overall: _Mean) -> MethodValues:
    """Return the means of the seeds as the values of runs."""
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
    """Resample the same pictures in all parts: (parts, k, resamples) for each seed, or None."""
    if not plan.resamples or len(seeds[0][0].scored) < 2:
        return None
    source_indices = [np.unique(np.asarray(unit.group)) for unit in seeds[0]]
    if not all(np.array_equal(source_indices[0], indices) for indices in source_indices[1:]):
        return None
    # The random draws depend only on the seed and on the number of pictures.
    by_part = [
        resample_values([metric], units, plan.resamples, plan.seed)[0]
        for units in zip(*seeds, strict=True)
    ]
    return list(np.stack(by_part, axis=1))
