"""One metric of all methods on one study.

The numbers are those of `abstain.compare`. What differs is that one study is in memory at a time,
and that what nobody reads of some thirty methods on some thirty studies is not computed: bands
and ratios of pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from abstain._foundation.scored import Scored
from abstain.evaluation import Finding
from abstain.evaluation._compare_across import Together
from abstain.evaluation._compare_data import MEAN, DataPart, _estimate, _estimates, compare_data
from abstain.evaluation._compare_findings import findings_of_comparison
from abstain.evaluation._pairs import _Family
from abstain.evaluation._plan import TEST_NAMES, Plan
from abstain.evaluation._rows import Rows
from abstain.evaluation._sampled import Sampled, measured
from abstain.evaluation._standings import standings
from abstain.evaluation.comparison import Estimate, PairedDifference, Standing
from abstain.evaluation.units import Unit
from abstain.inference.intervals import Interval, difference_from, no_interval
from abstain.inference.ranking import ranks
from abstain.metrics import Metric
from abstain.metrics._influence_registry import is_heavy, why_not

__all__ = ["BY_VALUE", "Studied", "by_value", "compared", "none_of", "pairs_of", "slimmed", "told"]

#: How a standing was found where nothing but the values is known.
BY_VALUE = "values"

#: Findings about one study that go into the comparison.
_TOLD = frozenset({"few_failures", "undefined", "own_weights", "clusters"})


@dataclass(frozen=True, eq=False)
class Studied:
    """One metric of all methods on one study, without the samples.

    Attributes
    ----------
    part : DataPart
        What `abstain.compare` finds on one data set; `sampled` knows no samples any more.
    findings : tuple of Finding
        About this study.
    headline : bool
        Whether it counts where all studies are taken together.
    """

    part: DataPart
    findings: tuple[Finding, ...]
    headline: bool

    @property
    def sampled(self) -> Sampled:
        """The values and how they vary with the samples."""
        return self.part.sampled[0]


def compared(units: Sequence[Unit], metric: Metric, plan: Plan, *, headline: bool) -> Studied:
    """Compare the methods on one study; the units are its runs."""
    if plan.resamples and len(units[0].scored) > 1:
        part = replace(compare_data(units, [metric], plan), bands=())
    else:
        part = _without_resamples(units, metric, plan)
    return told(units, part, plan, headline=headline)


def told(units: Sequence[Unit], part: DataPart, plan: Plan, *, headline: bool) -> Studied:
    """Say what is to be known of a study, and forget its samples."""
    said = findings_of_comparison(units, [part], Together(), plan)
    slim = replace(part, sampled=(slimmed(part.sampled[0]),))
    return Studied(slim, tuple(one for one in said if one.kind in _TOLD), headline)


def _without_resamples(units: Sequence[Unit], metric: Metric, plan: Plan) -> DataPart:
    data = units[0].data
    sampled = measured(metric, units, Rows.of(units))
    if sampled.shares is not None:
        estimates = tuple(_estimates(sampled, data, plan))
        found = tuple(standings(sampled, data, plan))
        pairs = tuple(pairs_of(sampled, plan))
    else:
        estimates, pairs = tuple(_bare(sampled, plan)), ()
        found = tuple(by_value(sampled))
    return DataPart(data, (sampled,), estimates, pairs, found, (), (), (), (), 0)


def pairs_of(sampled: Sampled, plan: Plan) -> Iterator[PairedDifference]:
    """Return all pairs by their influences, without the ratio."""
    family = _Family(sampled, sampled.units[0].data, plan)
    found = []
    for i, j in family.two():
        values, (influences, reaches) = family.values(i, j), sampled.held_on(i, j)
        # The difference of numbers that are moved alike is the same, and a ratio, which takes
        # nearly all of the time, does not exist where one of them is 0.
        moved = (values[0] - max(values), values[1] - max(values))
        own = difference_from(
            moved,
            influences,
            lower_is_better=sampled.metric.lower_is_better,
            level=plan.level,
            failures=sampled.resting(i, j),
            heavy=is_heavy(sampled.metric),
            bounds=sampled.bounds,
            cluster=sampled.codes(influences),
            reaches=reaches,
        )
        known = {name: getattr(own, name) for name in _OF_A_PAIR}
        found.append(family.pair(i, j, TEST_NAMES["influence"], **known))
    return family.adjusted(found)


_OF_A_PAIR = ("low", "high", "standard_error", "superiority", "p_value", "note")


def _bare(sampled: Sampled, plan: Plan) -> Iterator[Estimate]:
    """Return values without intervals: of each run, and the means over those that have one."""
    without, data = none_of(sampled, plan), sampled.units[0].data
    for r, unit in enumerate(sampled.units):
        for i, method in enumerate(sampled.methods):
            yield _estimate(sampled, (data, unit.run, method), without, (r, i))
    if len(sampled.units) > 1:
        for i, method in enumerate(sampled.methods):
            if np.isfinite(sampled.values[:, i]).all():
                yield _estimate(sampled, (data, MEAN, method), without, (None, i))


def none_of(sampled: Sampled, plan: Plan) -> Interval:
    """Return the interval that values without influences have: none, and why."""
    return no_interval(plan.level, "; ".join(sampled.reasons) or why_not(sampled.metric))


def by_value(sampled: Sampled) -> Iterator[Standing]:
    """Return ranks where it is not known how they vary."""
    known = [i for i, mean in enumerate(sampled.mean) if np.isfinite(mean)]
    if not known:
        return
    place = ranks(sampled.mean[known], lower_is_better=sampled.metric.lower_is_better)
    for i, rank in zip(known, place, strict=True):
        yield Standing(
            metric=sampled.metric.name,
            data=sampled.units[0].data,
            method=sampled.methods[i],
            value=float(sampled.mean[i]),
            rank=float(rank),
            mean_rank=float(rank),
            rank_low=float("nan"),
            rank_high=float("nan"),
            chances=(),
            source=BY_VALUE,
        )


def slimmed(sampled: Sampled) -> Sampled:
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
        for unit in sampled.units
    )
    return replace(sampled, units=units, rows=Rows(None, None))
