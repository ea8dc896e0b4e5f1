"""What is said of rows on disk that do not fit in memory: areas, added up block by block."""

from collections.abc import Iterator, Sequence

import numpy as np

from abstain._foundation.option_words import option
from abstain.errors import DomainError, UncountedError
from abstain.evaluation.records import NOT_REQUESTED, Result
from abstain.evaluation.uncertainty import Uncertainty
from abstain.inference.intervals import no_interval
from abstain.metrics import METRICS, Metric
from abstain.streaming import SortedRuns, compute
from abstain.typing import Split

#: Stands beside numbers that have no interval.
_NO_INTERVAL = "an interval needs all rows in memory"


class RankAreas:
    """The areas of one score on one part of the data, and why other metrics are not computed."""

    def __init__(self, split: Split, name: str, state: SortedRuns, how: Uncertainty) -> None:
        self.split, self.name, self.state, self.how = split, name, state, how
        self.skipped: dict[str, str] = {}

    def results(self, metrics: Sequence[Metric] | None) -> Iterator[Result]:
        """Yield the numbers that can be had."""
        failures, tied = self._seen()
        beyond = (
            f"needs all {self.state.n:,} rows in memory, for losses or weights that differ; more "
            f"{option('memory')}, or fewer rows, would do"
        )
        is_requested = self.how.kind != "none"
        interval = no_interval(self.how.level, _NO_INTERVAL) if is_requested else NOT_REQUESTED
        for metric in METRICS.values() if metrics is None else metrics:
            try:
                value = compute(self.state, metric.name).value
            except (UncountedError, DomainError):
                self.skipped[metric.name] = beyond
                continue
            yield Result(
                split=self.split,
                score=self.name,
                metric=metric,
                value=value,
                n=self.state.n,
                failures=failures,
                accepted=None,
                tied_share=tied / self.state.n,
                tie_low=np.nan,
                tie_high=np.nan,
                reason="",
                interval=interval,
            )

    def _seen(self) -> tuple[int, int]:
        """Return how many samples have a loss above zero, and how many are tied."""
        failures = tied = 0
        for rows in self.state.blocks():
            failures += int(rows["times"][rows["loss"] > 0].sum())
            value = rows["confidence"]
            first = np.flatnonzero(np.append(True, value[1:] != value[:-1]))
            count = np.add.reduceat(rows["times"], first)
            tied += int(count[count > 1].sum())
        return failures, tied
