"""All methods on one data set: what was found, and the numbers behind it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from abstain.evaluation.comparison.estimates import bands, estimates, non_inferiorities
from abstain.evaluation.comparison.pairs import pairs
from abstain.evaluation.comparison.plan import Plan
from abstain.evaluation.comparison.rows import (
    Agreement,
    BandOf,
    Estimate,
    NonInferiority,
    PairedDifference,
    Stability,
    Standing,
)
from abstain.evaluation.comparison.sampled import Rows, Sampled, measured, resampled
from abstain.evaluation.comparison.standings import agreements, stabilities, standings
from abstain.evaluation.comparison.units import Unit
from abstain.metrics import Metric
from abstain.typing import Split


@dataclass(frozen=True, eq=False)
class DataPart:
    """What was found on one data set, and the numbers behind it: one `Sampled` a metric."""

    data: Split
    sampled: tuple[Sampled, ...]
    estimates: tuple[Estimate, ...]
    pairs: tuple[PairedDifference, ...]
    standings: tuple[Standing, ...]
    agreements: tuple[Agreement, ...] = ()
    stability: tuple[Stability, ...] = ()
    bands: tuple[BandOf, ...] = ()
    non_inferiority: tuple[NonInferiority, ...] = ()
    resamples: int = 0


def compare_data(units: Sequence[Unit], metrics: Sequence[Metric], plan: Plan) -> DataPart:
    """Compare the methods on the runs of one data set."""
    rows = Rows.of(units)
    sampled = [measured(metric, units, rows) for metric in metrics]
    lacking = any(metric.influence is None for metric in metrics)
    resamples = plan.resamples_of(len(units[0].scored), needed=lacking)
    if resamples:
        drawn = resampled(metrics, units, resamples, plan.seed)
        sampled = [replace(s, replicates=r) for s, r in zip(sampled, drawn, strict=True)]
    return DataPart(
        data=units[0].data,
        sampled=tuple(sampled),
        estimates=tuple(e for s in sampled for e in estimates(s, plan)),
        pairs=tuple(p for s in sampled for p in pairs(s, plan)),
        standings=tuple(row for s in sampled for row in standings(s, plan)),
        agreements=tuple(agreements(sampled, plan)),
        stability=tuple(stabilities(sampled, plan)),
        bands=tuple(bands(units[0], plan)) if plan.bands else (),
        non_inferiority=tuple(n for s in sampled for n in non_inferiorities(s, plan)),
        resamples=resamples,
    )
