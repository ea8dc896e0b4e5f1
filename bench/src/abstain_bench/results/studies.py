"""One metric of all methods on one study, and all studies in one `Comparison`.

The numbers are those of `abstain.compare`, by the same engine. What differs is that one study is in
memory at a time, and that some studies are the mean of others: FD-Shifts computes a metric for each
severity of a corruption and averages the five. They are of the same networks and the same pictures,
so the five numbers are not independent: what a picture adds to the error of the mean is the mean of
what it adds to that of each, and a resample has the same pictures in all.
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
    across_data,
    block_notes,
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

__all__ = ["Studied", "averaged", "compared", "comparison_of"]


@dataclass(frozen=True, eq=False)
class Studied:
    """One metric of all methods on one study, without the samples.

    `part` is what `abstain.compare` finds on one data set, whose `sampled` knows no samples any
    more; a `headline` counts where all studies are taken together.
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
    part = compare_data(units, [metric], plan)
    slim = replace(part, sampled=(_slimmed(part.sampled[0]),))
    return Studied(slim, data_set_notes(units, part), headline)


def _slimmed(sampled: MethodValues) -> MethodValues:
    """Forget the samples: what all studies say together needs the values and the shares."""
    nothing = Scored(np.zeros(1), np.zeros(1))
    units = tuple(
        replace(
            unit,
            scored=dict.fromkeys(unit.scored, nothing),
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

    Only headline studies count together: the others are about the same pictures once more. Of
    these, those in which all methods have values.
    """
    defined = [one.sampled for one in studied if one.headline and one.sampled.is_defined]
    first = defined[0].methods if defined else ()
    shared = [m for m in first if all(m in sampled.methods for sampled in defined)]
    blocks = Blocks(tuple(sampled.select(shared) for sampled in defined))
    together = across_data([blocks] if shared else [], plan)
    said = [finding for one in studied for finding in one.findings]
    return join_tables(
        [one.part for one in studied],
        together,
        plan,
        metrics=[metric],
        methods=methods,
        notes=[*said, *block_notes(together)],
    )


# ------------------------------------------------------------------- the mean over parts of a study
@dataclass(frozen=True, eq=False)
class _Mean(MethodValues):
    """One metric on the parts of one seed, or of all seeds: the units, whose mean counts."""

    parts: int = 1

    @property
    def seeds(self) -> list[tuple[ScoredRun, ...]]:
        """The units of each seed."""
        starts = range(0, len(self.runs), self.parts)
        return [self.runs[first : first + self.parts] for first in starts]

    def count_samples_and_failures(self, method: str, run: int | None = None) -> tuple[int, int]:
        """Return the fewest samples and failures over the seeds; those of the parts add up."""
        if run is not None:
            return super().count_samples_and_failures(method, run)
        sums = [
            np.sum([unit.count_samples_and_failures(method) for unit in own], axis=0)
            for own in self.seeds
        ]
        n, failures = np.min(sums, axis=0).tolist()
        return n, failures

    def fewest_failures(self, *methods: int) -> FailureCount | None:
        """Return the fewest failures over the seeds; those of the parts add up."""
        names = [self.methods[i] for i in methods] or self.methods
        found = [
            [min_failures(self.metric, [unit.scored[name]]) for unit in own]
            for own in self.seeds
            for name in names
        ]
        known = [[one for one in own if one is not None] for own in found]
        sums = [
            FailureCount(sum(one.n_failures for one in own), own[0].population)
            for own in known
            if own
        ]
        return min(sums, default=None)


def averaged(
    seeds: Sequence[Sequence[ScoredRun]], metric: Metric, plan: Plan, *, headline: bool
) -> Studied:
    """Compare the methods by the mean over the parts of a study.

    Of each seed there is one unit for each part, in the same order: the mean over the parts, and
    the mean of these over the seeds. Where the parts are not of the same pictures nothing is
    resampled: then only the influences know what they have in common.
    """
    drawn = _drawn(seeds, metric, plan)
    each = [_of_seed(own, metric) for own in seeds]
    whole = _of_all(each)
    if drawn is not None:
        whole = replace(whole, replicates=np.concatenate(drawn))
        each = [replace(own, replicates=r) for own, r in zip(each, drawn, strict=True)]
    part = DataSetComparison(
        data=whole.data,
        sampled=(whole,),
        estimates=tuple(_estimates(each, whole, plan)),
        pairs=tuple(pairs(whole, plan)),
        standings=tuple(standings(whole, plan)),
        stability=tuple(stabilities([whole], plan)),
        resamples=0 if drawn is None else plan.resamples,
    )
    said = data_set_notes(whole.runs, part)
    return Studied(replace(part, sampled=(_slimmed(_by_seed(each, whole)),)), said, headline)


def _estimates(each: Sequence[_Mean], whole: _Mean, plan: Plan) -> Iterator[Estimate]:
    """Return the mean over the parts of each seed, and over the seeds."""
    for own in each:
        for i in range(len(own.methods)):
            yield mean_estimate(own, i, plan, own.runs[0].run)
    if len(each) > 1:
        yield from (mean_estimate(whole, i, plan) for i in whole.evaluated_indices)


def _of_seed(units: Sequence[ScoredRun], metric: Metric) -> _Mean:
    found = compute_values(metric, units, RowWeights.from_runs(units))
    return _Mean(
        metric,
        found.runs,
        found.values,
        found.rows,
        found.reasons,
        found.shares,
        unreliable_reasons=found.unreliable_reasons,
        parts=len(units),
    )


def _of_all(each: Sequence[_Mean]) -> _Mean:
    """Return all units of all seeds, which are of the same pictures."""
    shares = [own.shares for own in each if own.shares is not None]
    return replace(
        each[0],
        runs=tuple(unit for own in each for unit in own.runs),
        values=np.concatenate([own.values for own in each]),
        reasons=tuple(dict.fromkeys(why for own in each for why in own.reasons)),
        shares=np.mean(shares, axis=0) if len(shares) == len(each) else None,
        unreliable_reasons=_joined_reasons(
            [own.unreliable_reasons for own in each if own.unreliable_reasons]
        ),
    )


def _joined_reasons(reasons: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return for each method the first reason of any seed."""
    by_method = zip(*reasons, strict=True)
    return tuple(next(filter(None, of_method), "") for of_method in by_method)


def _by_seed(each: Sequence[_Mean], whole: _Mean) -> MethodValues:
    """Return the means of the seeds as the values of runs."""
    drawn = [own.mean_replicates for own in each if own.replicates is not None]
    return MethodValues(
        whole.metric,
        tuple(own.runs[0] for own in each),
        np.array([own.mean for own in each]),
        whole.rows,
        whole.reasons,
        whole.shares,
        np.array(drawn) if drawn else None,
        unreliable_reasons=whole.unreliable_reasons,
    )


def _drawn(
    seeds: Sequence[Sequence[ScoredRun]], metric: Metric, plan: Plan
) -> list[FloatArray] | None:
    """Resample all parts with the same pictures, by seed (parts, k, resamples); None for none."""
    if not plan.resamples or len(seeds[0][0].scored) < 2:
        return None
    pictures = [np.unique(np.asarray(unit.group)) for unit in seeds[0]]
    if not all(np.array_equal(pictures[0], own) for own in pictures[1:]):
        return None
    # The draws depend on the seed and on the number of pictures only.
    by_part = [
        resample_values([metric], units, plan.resamples, plan.seed)[0]
        for units in zip(*seeds, strict=True)
    ]
    return list(np.stack(by_part, axis=1))
