"""One metric of all methods on a study that is the mean of others: the severities of corruption.

FD-Shifts computes a metric for each severity and averages the five. They are of the same networks
and the same pictures, so the five numbers are not independent: what a picture adds to the error of
the mean is the mean of what it adds to that of each, and a resample has the same pictures in all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from abstain.benchmark.results.comparing import (
    Studied,
    by_value,
    none_of,
    pairs_of,
    slimmed,
    told,
)
from abstain.evaluation._compare_data import MEAN, DataPart, _estimate, _of_mean
from abstain.evaluation._pairs import pairs
from abstain.evaluation._plan import Plan
from abstain.evaluation._rows import Rows
from abstain.evaluation._sampled import Sampled, measured, resampled
from abstain.evaluation._standings import stabilities, standings
from abstain.evaluation.comparison import Estimate, PairedDifference, Standing
from abstain.evaluation.units import Unit
from abstain.inference.small_samples import Failures
from abstain.metrics import Metric
from abstain.metrics.intervals import fewest_failures
from abstain.typing import FloatArray

__all__ = ["averaged"]


@dataclass(frozen=True, eq=False)
class _Mean(Sampled):
    """One metric on the parts of one seed, or of all seeds: the units, whose mean counts."""

    parts: int = 1

    def resting(self, *methods: int) -> Failures | None:
        """Return the fewest failures over the seeds; those of the parts add up."""
        names = [self.methods[i] for i in methods] or self.methods
        found = [
            [fewest_failures(self.metric, [unit.scored[name]]) for unit in own]
            for own in self.seeds
            for name in names
        ]
        known = [[one for one in own if one is not None] for own in found]
        sums = [Failures(sum(one.number for one in own), own[0].among) for own in known if own]
        return min(sums, default=None)

    @property
    def seeds(self) -> list[tuple[Unit, ...]]:
        """The units of each seed."""
        return [
            self.units[first : first + self.parts]
            for first in range(0, len(self.units), self.parts)
        ]


def averaged(
    seeds: Sequence[Sequence[Unit]], metric: Metric, plan: Plan, *, headline: bool
) -> Studied:
    """Compare the methods by the mean over the parts of a study.

    Parameters
    ----------
    seeds : sequence of sequence of Unit
        Of each seed one unit for each part, in the same order.
    metric : Metric
        By what.
    plan : Plan
        As for other studies.
    headline : bool
        Whether it counts where all studies are taken together.

    Returns
    -------
    Studied
        Of each seed the mean over the parts, and the mean of these over the seeds.

    Notes
    -----
    Where the parts are not of the same pictures nothing is resampled: then only the influences
    know what they have in common.
    """
    drawn = _drawn(seeds, metric, plan)
    each = [_of_seed(own, metric) for own in seeds]
    whole = _of_all(each)
    if drawn is not None:
        whole = replace(whole, replicates=np.concatenate(drawn))
        each = [replace(own, replicates=r) for own, r in zip(each, drawn, strict=True)]
    data = whole.units[0].data
    part = DataPart(
        data=data,
        sampled=(whole,),
        estimates=tuple(_estimates(each, whole, plan)),
        pairs=tuple(_pairs(whole, plan)),
        standings=tuple(_standings(whole, plan)),
        agreements=(),
        stability=tuple(stabilities([whole], data, plan)),
        bands=(),
        non_inferiority=(),
        resamples=0 if drawn is None else plan.resamples,
    )
    found = told(whole.units, part, plan, headline=headline)
    return replace(found, part=replace(found.part, sampled=(slimmed(_by_seed(each, whole)),)))


def _of_seed(units: Sequence[Unit], metric: Metric) -> _Mean:
    found = measured(metric, units, Rows.of(units))
    return _Mean(
        metric, found.units, found.values, found.rows, found.reasons, found.shares, parts=len(units)
    )


def _of_all(each: Sequence[_Mean]) -> _Mean:
    """Return all units of all seeds, which are of the same pictures."""
    shares = [own.shares for own in each if own.shares is not None]
    return replace(
        each[0],
        units=tuple(unit for own in each for unit in own.units),
        values=np.concatenate([own.values for own in each]),
        reasons=tuple(dict.fromkeys(why for own in each for why in own.reasons)),
        shares=np.mean(shares, axis=0) if len(shares) == len(each) else None,
    )


def _by_seed(each: Sequence[_Mean], whole: _Mean) -> Sampled:
    """Return the means of the seeds as the values of runs."""
    drawn = [own.mean_replicates for own in each if own.replicates is not None]
    return Sampled(
        whole.metric,
        tuple(own.units[0] for own in each),
        np.array([own.mean for own in each]),
        whole.rows,
        whole.reasons,
        whole.shares,
        np.array(drawn) if drawn else None,
    )


def _drawn(seeds: Sequence[Sequence[Unit]], metric: Metric, plan: Plan) -> list[FloatArray] | None:
    """Resample all parts with the same pictures, by seed (parts, k, resamples); None for none."""
    if not plan.resamples or len(seeds[0][0].scored) < 2:
        return None
    pictures = [np.unique(np.asarray(unit.group)) for unit in seeds[0]]
    if not all(np.array_equal(pictures[0], own) for own in pictures[1:]):
        return None
    # The draws depend on the seed and on the number of pictures only.
    by_part = [
        resampled([metric], units, plan.resamples, plan.seed)[0]
        for units in zip(*seeds, strict=True)
    ]
    return list(np.stack(by_part, axis=1))


def _estimates(each: Sequence[_Mean], whole: _Mean, plan: Plan) -> Iterator[Estimate]:
    """Return the mean over the parts of each seed, and over the seeds."""
    for own in each:
        for i, method in enumerate(own.methods):
            yield _estimated(own, (own.units[0].run, method), i, plan)
    if len(each) > 1:
        for i, method in enumerate(whole.methods):
            if np.isfinite(whole.values[:, i]).all():
                yield _estimated(whole, (MEAN, method), i, plan)


def _estimated(own: _Mean, where: tuple[str, str], i: int, plan: Plan) -> Estimate:
    known = own.defined and (own.shares is not None or own.replicates is not None)
    interval = _of_mean(own, i, plan) if known else none_of(own, plan)
    found = _estimate(own, (own.units[0].data, *where), interval, (None, i))
    # All pictures count, and not those of the smallest part.
    sums = [
        [sum(pair) for pair in zip(*(unit.counted(where[1]) for unit in units), strict=True)]
        for units in own.seeds
    ]
    return replace(found, n=min(n for n, _ in sums), failures=min(failed for _, failed in sums))


def _pairs(whole: _Mean, plan: Plan) -> Iterator[PairedDifference]:
    if whole.replicates is not None:
        return pairs(whole, whole.units[0].data, plan)
    return iter(()) if whole.shares is None else pairs_of(whole, plan)


def _standings(whole: _Mean, plan: Plan) -> Iterator[Standing]:
    if whole.shares is None and whole.replicates is None:
        return by_value(whole)
    return standings(whole, whole.units[0].data, plan)
