"""Areas of rows on disk that do not fit in memory, added up block by block."""

from collections.abc import Sequence

import numpy as np

from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, UncountedError
from abstain.evaluation.intervals import IntervalOptions
from abstain.evaluation.records import NOT_REQUESTED, Result
from abstain.inference.intervals import no_interval
from abstain.metrics import METRICS, Metric
from abstain.streaming import SortedRuns, compute
from abstain.typing import Split

_NO_INTERVAL = "an interval needs all rows in memory"


def measure_areas(
    split: Split,
    score: str,
    state: SortedRuns,
    metrics: Sequence[Metric] | None,
    options: IntervalOptions,
) -> tuple[list[Result], dict[str, str]]:
    """Return the areas of one score on one part of the data, and why other metrics are skipped."""
    n_failures, n_tied = _count_failures_and_ties(state)
    reason = (
        f"needs all {state.n:,} rows in memory, for losses or weights that differ; more "
        f"{format_option('memory')}, or fewer rows, would do"
    )
    is_requested = options.kind != "none"
    interval = no_interval(options.level, _NO_INTERVAL) if is_requested else NOT_REQUESTED
    results: list[Result] = []
    skipped: dict[str, str] = {}
    for metric in METRICS.values() if metrics is None else metrics:
        try:
            value = compute(state, metric.name).value
        except (UncountedError, DomainError):
            skipped[metric.name] = reason
            continue
        result = Result(
            split=split,
            score=score,
            metric=metric,
            value=value,
            n=state.n,
            failures=n_failures,
            accepted=None,
            tied_share=n_tied / state.n,
            tie_low=np.nan,
            tie_high=np.nan,
            reason="",
            interval=interval,
        )
        results.append(result)
    return results, skipped


def _count_failures_and_ties(state: SortedRuns) -> tuple[int, int]:
    """Return how many samples have a loss above zero, and how many are tied."""
    n_failures = n_tied = 0
    for rows in state.blocks():
        n_failures += int(rows["times"][rows["loss"] > 0].sum())
        confidence = rows["confidence"]
        group_starts = np.flatnonzero(np.append(True, confidence[1:] != confidence[:-1]))
        group_sizes = np.add.reduceat(rows["times"], group_starts)
        n_tied += int(group_sizes[group_sizes > 1].sum())
    return n_failures, n_tied
