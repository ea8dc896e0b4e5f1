"""One metric on one data set of a comparison: what was found there, looked up once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from abstain.evaluation.comparison import (
    Comparison,
    Estimate,
    NonInferiorityRow,
    PairedDifference,
    RelationToBest,
    Standing,
    best_methods,
    compute_relations_to_best,
    pairs_with_best,
    sort_best_first,
)
from abstain.plots.words import metric_title
from abstain.report.document import Label, Number
from abstain.tables import split_name
from abstain.typing import Split


@dataclass(frozen=True, eq=False)
class Place:
    """One metric on one data set, or on all of them together (None)."""

    comparison: Comparison
    metric: str
    data: Split | None

    @cached_property
    def estimates(self) -> list[Estimate]:
        """The estimates, in the order of the methods."""
        if self.data is None:
            return []
        return self.comparison.estimates_of(self.metric, self.data)

    @cached_property
    def ranked(self) -> list[Estimate]:
        """The estimates, the best first."""
        return sort_best_first(self.estimates)

    @cached_property
    def best(self) -> list[str]:
        """The methods that none betters; none where all are equal or undefined."""
        return best_methods(self.estimates)

    @cached_property
    def pairs(self) -> list[PairedDifference]:
        """The pairs by the test that decides."""
        return self.comparison.pairs_of(self.metric, self.data)

    @cached_property
    def footing(self) -> dict[str, RelationToBest]:
        """How each method stands to the best."""
        return compute_relations_to_best(self.estimates, self.pairs)

    @cached_property
    def numbers(self) -> dict[str, Number]:
        """The estimates as cells of a table, with how they stand to the best."""
        marks: dict[RelationToBest, Literal["best", "tie"]] = {
            "best": "best",
            "not told apart": "tie",
        }
        return {
            e.method: Number(
                e.value, e.low, e.high, stands=marks.get(self.footing[e.method], ""), note=e.note
            )
            for e in self.estimates
        }

    def those(self, footing: RelationToBest) -> list[str]:
        """Return the methods that stand so to the best."""
        return [method for method, found in self.footing.items() if found == footing]

    @cached_property
    def leads(self) -> dict[str, PairedDifference]:
        """The pair of each method and the best one, where there are such."""
        return pairs_with_best(self.pairs, self.best[0]) if self.best else {}

    @property
    def leader(self) -> str:
        """The best method, or else the first by rank, in the order given where there is none."""
        ranked = [*self.best, *(s.method for s in self.standings)]
        across = self.comparison.mean_ranks_of(self.metric) if self.data is None else None
        return next(iter([*ranked, *(across.methods if across else ()), *self.comparison.methods]))

    @cached_property
    def standings(self) -> list[Standing]:
        """The ranks, the best first."""
        return self.comparison.standings_of(self.metric, self.data)

    @cached_property
    def margins(self) -> list[NonInferiorityRow]:
        """The methods that were held against the reference."""
        own = (self.metric, self.data)
        return [n for n in self.comparison.non_inferiority if (n.metric, n.data) == own]

    @property
    def title(self) -> str:
        """The metric as people read it."""
        return metric_title(self.metric)

    @property
    def name(self) -> Label:
        """The metric, and where better is."""
        lower = not self.estimates or self.estimates[0].lower_is_better
        return Label(self.title, better="lower" if lower else "higher")

    @property
    def head(self) -> str:
        """The metric with an arrow to where better is."""
        return f"{self.title}{self.name.ending}"

    @property
    def where(self) -> str:
        """The data set in words; empty for the only one."""
        if self.data is None:
            return f"all {self.comparison.block_kind}"
        return split_name(self.data) if self.data else ""

    @property
    def label(self) -> str:
        """Metric and data set."""
        return f"{self.title}, {self.where}" if self.where else self.title


def places_of(
    comparison: Comparison,
    metrics: Sequence[str] | None = None,
    data: Sequence[Split] | None = None,
) -> Iterator[Place]:
    """Yield the places of some metrics on some data sets, by default of all on all."""
    for metric in comparison.metrics if metrics is None else metrics:
        for split in comparison.data if data is None else data:
            yield Place(comparison, metric, split)
