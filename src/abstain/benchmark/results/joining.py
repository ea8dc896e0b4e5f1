"""From what was found on each study to one `Comparison` of all."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from abstain.benchmark.results.comparing import Studied
from abstain.evaluation import Comparison, Finding
from abstain.evaluation._compare_across import (
    Together,
    _aggregates,
    _Blocks,
    _friedman,
    _improvements,
    _pairs,
    _profiles,
    _standings,
)
from abstain.evaluation._plan import TEST_NAMES, Plan
from abstain.evaluation._sampled import Sampled
from abstain.metrics import Metric

__all__ = ["joined"]


def joined(
    studied: Sequence[Studied], metric: Metric, methods: Sequence[str], plan: Plan
) -> Comparison:
    """Return the comparison of all studies by one metric.

    Parameters
    ----------
    studied : sequence of Studied
        In the order of the tables. Only headline studies count together: the others are about
        the same pictures once more.
    metric : Metric
        By what.
    methods : sequence of str
        In the order of the tables.
    plan : Plan
        As for each study.
    """
    parts = [one.part for one in studied]
    all_together = _together([one.sampled for one in studied if one.headline], metric, plan)
    runs = dict.fromkeys(unit.run for one in studied for unit in one.sampled.units)
    return Comparison(
        metrics=(metric.name,),
        methods=tuple(methods),
        data=tuple(part.data for part in parts),
        runs=tuple(runs),
        level=plan.level,
        estimates=tuple(e for part in parts for e in part.estimates),
        pairs=(*(p for part in parts for p in part.pairs), *all_together.pairs),
        standings=(*(s for part in parts for s in part.standings), *all_together.standings),
        across=all_together.across,
        agreements=(),
        stability=tuple(s for part in parts for s in part.stability),
        bands=(),
        findings=tuple(_findings(studied, all_together)),
        test=TEST_NAMES[plan.test],
        bootstrap=max((part.resamples for part in parts), default=0),
        seed=plan.seed,
        aggregates=all_together.aggregates,
        improvements=all_together.improvements,
        profiles=all_together.profiles,
    )


def _together(headline: Sequence[Sampled], metric: Metric, plan: Plan) -> Together:
    """Take the studies together in which all methods have values."""
    defined = [sampled for sampled in headline if sampled.defined]
    if not defined:
        return Together()
    names = [m for m in defined[0].methods if all(m in sampled.methods for sampled in defined)]
    blocks = _Blocks(metric, tuple(names), tuple(_of(sampled, names) for sampled in defined))
    if len(names) < 2 or blocks.table.shape[0] < 2:
        return Together()
    return Together(
        pairs=tuple(_pairs(blocks, plan)),
        standings=tuple(_standings(blocks, plan)),
        across=(_friedman(blocks, plan),),
        aggregates=tuple(_aggregates(blocks, plan)),
        improvements=tuple(_improvements(blocks, plan)),
        profiles=tuple(_profiles(blocks, plan)),
    )


def _of(sampled: Sampled, names: Sequence[str]) -> Sampled:
    """Return some of the methods."""
    if list(sampled.methods) == list(names):
        return sampled
    columns = [sampled.methods.index(name) for name in names]
    units = tuple(
        replace(unit, scored={name: unit.scored[name] for name in names}) for unit in sampled.units
    )
    shares, drawn = sampled.shares, sampled.replicates
    return replace(
        sampled,
        units=units,
        values=sampled.values[:, columns],
        shares=None if shares is None else shares[:, columns],
        replicates=None if drawn is None else np.ascontiguousarray(drawn[:, columns]),
    )


def _findings(studied: Sequence[Studied], all_together: Together) -> Iterator[Finding]:
    noted = [(pair.test, pair.note) for pair in all_together.pairs if pair.note]
    noted += [("Friedman's test", one.note) for one in all_together.across if one.note]
    said = [
        *(finding for one in studied for finding in one.findings),
        *(Finding("few_blocks", "note", (), "", f"{test}: {note}.") for test, note in noted),
    ]
    yield from sorted(dict.fromkeys(said), key=lambda finding: finding.level != "warning")
