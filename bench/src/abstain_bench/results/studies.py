"""Compare methods by one metric, in each study and over all studies.

The comparisons are computed by `abstain.compare`. To save memory, only one study is loaded at a
time; some studies are averages over several parts. For example, a metric may be averaged over the
five severities of a corruption, as in FD-Shifts. All severities share the same networks and images,
so the five values are dependent. The influence of an image on the mean is the mean of its five
influences, and each bootstrap resample contains the same images at all severities.
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
class StudyComparison:
    """Comparison of all methods by one metric in one study.

    Attributes
    ----------
    comparison : DataSetComparison
        The comparison, without the samples.
    findings : tuple of Note
        Notes on the comparison.
    headline : bool
        Whether the study is used in the comparison over all studies.
    """

    comparison: DataSetComparison
    findings: tuple[Note, ...]
    headline: bool

    @property
    def method_values(self) -> MethodValues:
        """Values of the methods and the influence of each sample on them."""
        return self.comparison.sampled[0]


def compare_study(
    scored_runs: Sequence[ScoredRun], metric: Metric, plan: Plan, *, headline: bool
) -> StudyComparison:
    """Compare the methods in one study, with one scored run per seed."""
    comparison = compare_data(scored_runs, [metric], plan)
    without_samples = replace(comparison, sampled=(_remove_samples(comparison.sampled[0]),))
    return StudyComparison(without_samples, data_set_notes(scored_runs, comparison), headline)


def _remove_samples(method_values: MethodValues) -> MethodValues:
    """Remove the samples, which are not needed for the comparison over all studies."""
    placeholder = Scored(np.zeros(1), np.zeros(1))
    runs_without_samples = []
    for run in method_values.runs:
        scored = dict.fromkeys(run.scored, placeholder)
        runs_without_samples.append(
            replace(run, scored=scored, labels=None, cluster=None, group=None)
        )
    return replace(method_values, runs=tuple(runs_without_samples), rows=RowWeights(None, None))


def combine_studies(
    study_comparisons: Sequence[StudyComparison],
    metric: Metric,
    methods: Sequence[str],
    plan: Plan,
) -> Comparison:
    """Combine the comparisons by one metric over all studies.

    Tests over all studies use only the headline studies with defined values, because other studies
    reuse the same images.
    """
    defined = [
        study.method_values
        for study in study_comparisons
        if study.headline and study.method_values.is_defined
    ]
    first_methods = defined[0].methods if defined else ()
    shared_methods = [
        method for method in first_methods if all(method in values.methods for values in defined)
    ]
    blocks = Blocks(tuple(values.select(shared_methods) for values in defined))
    across_studies = compare_across_data_sets([blocks] if shared_methods else [], plan)
    findings = [finding for study in study_comparisons for finding in study.findings]
    return join_tables(
        [study.comparison for study in study_comparisons],
        across_studies,
        plan,
        metrics=[metric],
        methods=methods,
        notes=[*findings, *block_notes(across_studies)],
    )


# ------------------------------------------------------------------- the mean over parts of a study
@dataclass(frozen=True, eq=False)
class _PartMeans(MethodValues):
    """Mean values of a metric over the parts of a study, for one seed or for all seeds."""

    parts: int = 1

    @property
    def runs_by_seed(self) -> list[tuple[ScoredRun, ...]]:
        """Scored runs of every part, grouped by seed."""
        starts = range(0, len(self.runs), self.parts)
        return [self.runs[start : start + self.parts] for start in starts]

    def count_samples_and_failures(self, method: str, run: int | None = None) -> tuple[int, int]:
        """Return the smallest numbers of samples and failures over seeds, summed over the parts."""
        if run is not None:
            return super().count_samples_and_failures(method, run)
        counts_by_seed = []
        for runs_of_seed in self.runs_by_seed:
            part_counts = [part.count_samples_and_failures(method) for part in runs_of_seed]
            counts_by_seed.append(np.sum(part_counts, axis=0))
        n_samples, n_failures = np.min(counts_by_seed, axis=0).tolist()
        return n_samples, n_failures

    def fewest_failures(self, *methods: int) -> FailureCount | None:
        """Return the smallest number of failures over seeds and methods, summed over the parts."""
        names = [self.methods[i] for i in methods] or self.methods
        totals = []
        for runs_of_seed in self.runs_by_seed:
            for name in names:
                counts = [min_failures(self.metric, [part.scored[name]]) for part in runs_of_seed]
                defined = [count for count in counts if count is not None]
                if defined:
                    n_failures = sum(count.n_failures for count in defined)
                    totals.append(FailureCount(n_failures, defined[0].population))
        return min(totals, default=None)


def compare_study_average(
    runs_by_seed: Sequence[Sequence[ScoredRun]], metric: Metric, plan: Plan, *, headline: bool
) -> StudyComparison:
    """Compare the methods by the mean of a metric over all parts of a study.

    `runs_by_seed` contains a scored run on each part for each seed. If the parts contain different
    images, no bootstrap is computed, and the influences account for shared images.
    """
    replicates = _resample_parts(runs_by_seed, metric, plan)
    seed_means = [_average_parts(runs_of_seed, metric) for runs_of_seed in runs_by_seed]
    overall = _combine_seeds(seed_means)
    if replicates is not None:
        overall = replace(overall, replicates=np.concatenate(replicates))
        seed_means = [
            replace(seed_mean, replicates=seed_replicates)
            for seed_mean, seed_replicates in zip(seed_means, replicates, strict=True)
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
    return StudyComparison(replace(comparison, sampled=(without_samples,)), notes, headline)


def _estimates(
    seed_means: Sequence[_PartMeans], overall: _PartMeans, plan: Plan
) -> Iterator[Estimate]:
    """Yield the estimates for each seed and, if there are several, their means."""
    for seed_mean in seed_means:
        for i in range(len(seed_mean.methods)):
            yield mean_estimate(seed_mean, i, plan, seed_mean.runs[0].run)
    if len(seed_means) > 1:
        for i in overall.evaluated_indices:
            yield mean_estimate(overall, i, plan)


def _average_parts(runs: Sequence[ScoredRun], metric: Metric) -> _PartMeans:
    """Compute a metric on every part of a study for one seed."""
    values_by_run = compute_values(metric, runs, RowWeights.from_runs(runs))
    return _PartMeans(
        metric,
        values_by_run.runs,
        values_by_run.values,
        values_by_run.rows,
        values_by_run.reasons,
        values_by_run.shares,
        unreliable_reasons=values_by_run.unreliable_reasons,
        parts=len(runs),
    )


def _combine_seeds(seed_means: Sequence[_PartMeans]) -> _PartMeans:
    """Combine the values of all seeds, which were evaluated on the same images."""
    shares = [mean.shares for mean in seed_means if mean.shares is not None]
    reasons = [mean.unreliable_reasons for mean in seed_means if mean.unreliable_reasons]
    # Each method has the first reason that is not empty in any seed.
    first_reasons = tuple(
        next(filter(None, reasons_of_method), "")
        for reasons_of_method in zip(*reasons, strict=True)
    )
    return replace(
        seed_means[0],
        runs=tuple(run for mean in seed_means for run in mean.runs),
        values=np.concatenate([mean.values for mean in seed_means]),
        reasons=tuple(dict.fromkeys(reason for mean in seed_means for reason in mean.reasons)),
        shares=np.mean(shares, axis=0) if len(shares) == len(seed_means) else None,
        unreliable_reasons=first_reasons,
    )


def _seed_values(seed_means: Sequence[_PartMeans], overall: _PartMeans) -> MethodValues:
    """Convert the mean over the parts to the value of a single run, for each seed."""
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


def _resample_parts(
    runs_by_seed: Sequence[Sequence[ScoredRun]], metric: Metric, plan: Plan
) -> list[FloatArray] | None:
    """Draw bootstrap resamples of a study that contain the same images in all parts.

    The result contains an array of shape (parts, methods, resamples) for each seed. The result is
    None if no bootstrap is requested, if there are fewer than two methods, or if the parts contain
    different images.
    """
    first_seed = runs_by_seed[0]
    if not plan.resamples or len(first_seed[0].scored) < 2:
        return None
    source_indices = [np.unique(np.asarray(part.group)) for part in first_seed]
    if not all(np.array_equal(source_indices[0], indices) for indices in source_indices[1:]):
        return None
    # Resamples depend only on the random seed and the number of images.
    replicates_by_part = [
        resample_values([metric], runs_of_part, plan.resamples, plan.seed)[0]
        for runs_of_part in zip(*runs_by_seed, strict=True)
    ]
    return list(np.stack(replicates_by_part, axis=1))
