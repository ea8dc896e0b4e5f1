"""What happens to thresholds and values as corruptions grow, and why something is not drawn."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from abstain.benchmark.results import BenchmarkResults
from abstain.plots import chosen
from abstain.report.benchmark_figures import (
    corruption_order,
    places_of,
    shown_by_severity,
    with_threshold,
)
from abstain.report.benchmark_grid import Grid, baseline
from abstain.report.benchmark_tables import Keys, page_grid
from abstain.report.comparison_words import listed

_FOLDED: Final = (
    "Below: all types of corruption together, severity by severity. The column of corruptions in "
    "the main table is the mean over the severities, as in FD-Shifts; “pooled” takes the pictures "
    "of all severities together, which is another number."
)


def severity_tables(
    results: BenchmarkResults, grids: Mapping[str, Grid], keys: Keys
) -> list[dict[str, Any]]:
    """Return methods x severities by each metric, and all together; none of one severity alone."""
    corrupted = [study for study in results.studies if study.kind == "corruption"]
    studies = [study for study in corrupted if not study.headline]
    if len(studies) < 2 and len(corrupted) > len(studies):
        return []
    tables = [page_grid(grid.only(studies), keys, results.level) for grid in grids.values()]
    return [table for table in tables if table["studies"]]


def severities_said(results: BenchmarkResults, *, drawn: bool, tables: bool) -> str:
    """Say what the figure shows, or why there is none."""
    promise = _promise(results)
    folded = f" {_FOLDED}" if tables else ""
    if not drawn:
        return f"{_why_not(results, promise)}{folded}"
    names = shown_by_severity(results)
    return (
        f"A threshold was set on clean validation data {promise}. It does not know of corruptions. "
        "Above the dotted line failures are more than that; coverage is the share still accepted. "
        f"Drawn: {_listed(names)} (the best by rank under corruption, and the baseline "
        f"“{baseline(results)}”)."
        f"{_without(results, names)}{_single(results)}{folded}"
    )


def _promise(results: BenchmarkResults) -> str:
    """Say what was asked of thresholds."""
    row = next(iter(results.thresholds), None)
    if row is None or math.isnan(row.risk):
        return "to keep failures among the accepted pictures few"
    risk, delta = chosen.percent(row.risk), chosen.percent(row.delta)
    return (
        f"to keep failures at {risk} of the accepted pictures or less (the chance of more is at "
        f"most {delta})"
    )


def _why_not(results: BenchmarkResults, promise: str) -> str:
    if not results.thresholds:
        return "No threshold was set, so there is no figure of what one keeps."
    if not with_threshold(results):
        return (
            f"No method has a threshold that could promise on validation data {promise}. So "
            "nothing is drawn; a higher risk (`--risk`) may be attainable."
        )
    if len(places_of(results)) < 2:
        return "One severity is all that was looked at, so nothing grows."
    return "No threshold accepted anything under corruption, so nothing is drawn."


def _without(results: BenchmarkResults, names: Sequence[str]) -> str:
    """Name the methods that would be drawn if a threshold of theirs could promise the risk."""
    usable = with_threshold(results)
    order = corruption_order(results)
    ahead = order[: order.index(names[-1])] if names[-1] in order else order
    base = baseline(results)
    gone = [name for name in order if name not in usable and (name in ahead or name == base)]
    if not gone:
        return ""
    have = "has" if len(gone) == 1 else "have"
    return f" {_listed(gone)} {have} no such threshold."


def _single(results: BenchmarkResults) -> str:
    own = [study.severity for study in results.studies if study.severity]
    return f" Only severity {own[0]} was tested." if len(own) == 1 else ""


def _listed(names: Sequence[str]) -> str:
    """Write a few names in full, and more as the house does."""
    if len(names) > 5 or len(names) < 2:
        return listed(names)
    quoted = [f"“{name}”" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
