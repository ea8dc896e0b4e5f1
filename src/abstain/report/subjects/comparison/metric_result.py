"""Results of a comparison for one metric on one data set."""

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
    SummaryRow,
    best_methods,
    compute_relations_to_best,
    pairs_with_best,
    sort_best_first,
)
from abstain.plots.formatting import metric_title
from abstain.report.document import Label, Number
from abstain.tables import split_name
from abstain.typing import Split


@dataclass(frozen=True, eq=False)
class MetricResult:
    """Results for one metric on one data set. If `data` is None, they cover all data sets."""

    comparison: Comparison
    metric: str
    data: Split | None

    @cached_property
    def estimates(self) -> list[Estimate]:
        """Estimates in the order of the methods."""
        if self.data is None:
            return []
        return self.comparison.estimates_of(self.metric, self.data)

    @cached_property
    def ranked(self) -> list[Estimate]:
        """Estimates sorted by value, starting with the best."""
        return sort_best_first(self.estimates)

    @cached_property
    def best_methods(self) -> list[str]:
        """Methods with the best value. The list is empty if all values are equal or undefined."""
        return best_methods(self.estimates)

    @cached_property
    def pairs(self) -> list[PairedDifference]:
        """Pairs of methods, compared by the main test."""
        return self.comparison.pairs_of(self.metric, self.data)

    @cached_property
    def comparison_with_best(self) -> dict[str, RelationToBest]:
        """Relation of each method to the best method, according to the test of this pair."""
        return compute_relations_to_best(self.estimates, self.pairs)

    @cached_property
    def numbers(self) -> dict[str, Number]:
        """Estimates as table cells, which mark the best and the not significantly worse methods."""
        marks: dict[RelationToBest, Literal["best", "tie"]] = {
            "best": "best",
            "not told apart": "tie",
        }
        numbers = {}
        for estimate in self.estimates:
            relation = self.comparison_with_best[estimate.method]
            numbers[estimate.method] = Number(
                estimate.value,
                estimate.low,
                estimate.high,
                mark=marks.get(relation, ""),
                tooltip=estimate.note,
            )
        return numbers

    def methods_with(self, relation: RelationToBest) -> list[str]:
        """Return the methods with the given relation to the best method, such as "worse"."""
        relations = self.comparison_with_best.items()
        return [method for method, method_relation in relations if method_relation == relation]

    @cached_property
    def pair_with_best(self) -> dict[str, PairedDifference]:
        """Comparison of each method with the best method. It is empty if no method is best."""
        return pairs_with_best(self.pairs, self.best_methods[0]) if self.best_methods else {}

    @property
    def is_best_significant(self) -> bool:
        """Whether one method is significantly better than all others."""
        relations = list(self.comparison_with_best.values())
        return relations.count("best") == 1 and set(relations) == {"best", "worse"}

    @property
    def leader(self) -> str:
        """Best method, or the first method by rank or in the input if no method is best."""
        if self.best_methods:
            return self.best_methods[0]
        if self.standings:
            return self.standings[0].method
        across = self.comparison.mean_ranks_of(self.metric) if self.data is None else None
        return across.methods[0] if across else self.comparison.methods[0]

    @cached_property
    def summary(self) -> list[SummaryRow]:
        """Summary of each method, starting with the best method."""
        return self.comparison.summary_of(self.metric, self.data)

    @cached_property
    def standings(self) -> list[Standing]:
        """Ranks of the methods, starting with the best method."""
        return self.comparison.standings_of(self.metric, self.data)

    @cached_property
    def non_inferiority_rows(self) -> list[NonInferiorityRow]:
        """Non-inferiority tests against the reference method."""
        key = (self.metric, self.data)
        return [n for n in self.comparison.non_inferiority if (n.metric, n.data) == key]

    @property
    def title(self) -> str:
        """Title of the metric."""
        return metric_title(self.metric)

    @property
    def label_with_direction(self) -> Label:
        """Title of the metric, with the direction of better values."""
        # Over several data sets, there is no estimate.
        estimates = [e for e in self.comparison.estimates if e.metric == self.metric]
        lower_is_better = not estimates or estimates[0].lower_is_better
        return Label(self.title, direction="lower" if lower_is_better else "higher")

    @property
    def title_with_arrow(self) -> str:
        """Title of the metric with an arrow in the direction of better values."""
        return f"{self.title}{self.label_with_direction.suffix}"

    @property
    def data_name(self) -> str:
        """Name of the data set, or an empty string for a single data set."""
        if self.data is None:
            return f"all {self.comparison.block_kind}"
        return split_name(self.data) if self.data else ""

    @property
    def label(self) -> str:
        """Title of the metric and name of the data set."""
        return f"{self.title}, {self.data_name}" if self.data_name else self.title


def main_result(comparison: Comparison) -> MetricResult:
    """Return the result of the first metric, preferably over all data sets."""
    metric = comparison.metrics[0]
    has_summary = len(comparison.data) > 1 and bool(comparison.summary_of(metric, None))
    return MetricResult(comparison, metric, None if has_summary else comparison.data[0])


def metric_results(
    comparison: Comparison,
    metrics: Sequence[str] | None = None,
    data: Sequence[Split] | None = None,
) -> Iterator[MetricResult]:
    """Yield the results for some metrics and data sets. By default, yield all results."""
    for metric in comparison.metrics if metrics is None else metrics:
        for split in comparison.data if data is None else data:
            yield MetricResult(comparison, metric, split)
