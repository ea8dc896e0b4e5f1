"""Rank methods by AURC and AUGRC in several studies, and summarize the differences.

Each metric has a separate `Comparison`, because it may select different networks.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise, product
from typing import Any, Final

from abstain.evaluation import Comparison
from abstain.evaluation.comparison import PairedDifference, ScoredRun
from abstain.inference.ranking import Ties, ranks
from abstain.inference.resampled_ranks import kendall
from abstain.metrics.areas.augrc import AUGRC
from abstain.metrics.areas.aurc import AURC
from abstain.typing import Split
from abstain_bench.studies._display import Row, group_rows

#: Established metric, and metric that Traub et al. propose.
FIRST_METRIC: Final = AURC
SECOND_METRIC: Final = AUGRC
METRIC_NAMES: Final = (FIRST_METRIC.name, SECOND_METRIC.name)

#: Display names of the criteria that select settings.
SEPARATE_SELECTION: Final = "each by its own metric"
COMMON_SELECTION: Final = f"both by {SECOND_METRIC.title}"

#: Display names of the test of the literature, without and with an adjustment of p-values.
UNADJUSTED: Final = "Wilcoxon on bootstrap samples"
ADJUSTED: Final = "Wilcoxon on bootstrap samples, Holm"
#: Display name of the paired test.
PAIRED: Final = "paired, Holm"

#: Number of best methods whose changes are counted, as in the paper.
_N_TOP: Final = 3


def rank_areas(values: Sequence[float], ties: Ties) -> list[float]:
    """Rank areas in ascending order."""
    return [float(rank) for rank in ranks(values, lower_is_better=True, ties=ties)]


@dataclass(frozen=True, eq=False)
class RankedStudies:
    """Values and tests of methods in several studies, for both metrics.

    Attributes
    ----------
    selection : str
        Metric that selects the settings, or empty if methods have only one setting.
    comparisons : mapping from str to Comparison
        Comparisons by the name of the metric.
    load_runs : mapping from str to callable
        Functions by study that return the scored runs, for studies with available samples in which
        both metrics use the same networks.
    true_values : mapping from (str, str) to mapping from str to float
        True values of the methods by study and metric, if they are known.
    ties : {"mean", "min"}
        Rank of tied methods.
    """

    selection: str
    comparisons: Mapping[str, Comparison]
    load_runs: Mapping[str, Callable[[], Sequence[ScoredRun]]] = field(default_factory=dict)
    true_values: Mapping[tuple[str, str], Mapping[str, float]] = field(default_factory=dict)
    ties: Ties = "min"

    @cached_property
    def data(self) -> dict[str, Split]:
        """Splits by study name, for studies in which both metrics have values."""
        first, second = METRIC_NAMES
        return {
            study_name(split): split
            for split in self.comparisons[first].data
            if split in self.comparisons[second].data
            and self.values(first, split)
            and self.values(second, split)
        }

    def values(self, metric: str, data: Split) -> dict[str, float]:
        """Return the value of a metric for each method, without undefined values."""
        estimates = self.comparisons[metric].estimates_of(metric, data)
        return {
            estimate.method: estimate.value
            for estimate in estimates
            if not math.isnan(estimate.value)
        }

    def mean_ranks(self, metric: str, data: Split) -> dict[str, float]:
        """Return the mean rank over resamples by method, or an empty result without resamples."""
        standings = self.comparisons[metric].standings_of(
            metric, data, "bootstrap, rank then aggregate"
        )
        return {standing.method: standing.mean_rank for standing in standings}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row with the values and ranks of each method in each study."""
        for study, data in self.data.items():
            yield from self._study_rows(study, data)

    def _study_rows(self, study: str, data: Split) -> Iterator[dict[str, Any]]:
        """Yield a row for each method with defined values of both metrics in a study."""
        values = {metric: self.values(metric, data) for metric in METRIC_NAMES}
        first, second = METRIC_NAMES
        methods = [method for method in values[first] if method in values[second]]
        columns: dict[str, list[float]] = {}
        for metric in METRIC_NAMES:
            columns[metric] = [values[metric][method] for method in methods]
            columns[f"{metric}_rank"] = rank_areas(columns[metric], self.ties)
            mean_ranks = self.mean_ranks(metric, data)
            if all(method in mean_ranks for method in methods):
                method_ranks = [mean_ranks[method] for method in methods]
                columns[f"{metric}_mean_rank"] = method_ranks
                columns[f"{metric}_resampled_rank"] = rank_areas(method_ranks, self.ties)
            true_values = self.true_values.get((study, metric))
            if true_values:
                columns[f"{metric}_true"] = [true_values[method] for method in methods]
                columns[f"{metric}_true_rank"] = rank_areas(columns[f"{metric}_true"], self.ties)
        for i, method in enumerate(methods):
            yield {
                "selection": self.selection,
                "study": study,
                "method": method,
                **{name: column[i] for name, column in columns.items()},
                "change": columns[f"{second}_rank"][i] - columns[f"{first}_rank"][i],
            }

    # ----------------------------------------------------------------------------- summaries
    def changes(self) -> Iterator[dict[str, Any]]:
        """Yield a summary of rank changes for each study."""
        rows_by_study = group_rows(self.rows(), "study")
        for study, data in self.data.items():
            rows = rows_by_study.get(study, [])
            yield {
                "selection": self.selection,
                "study": study,
                **summarize_changes(rows),
                "significant_swaps": self._count_significant_swaps(study, rows),
                **self._tau_interval(data),
            }

    def _count_significant_swaps(self, study: str, rows: Sequence[Row]) -> int:
        """Count the swapped pairs with significant differences by both metrics."""
        significant = swapped_pairs(rows)
        for metric in METRIC_NAMES:
            significant_by_metric = {
                frozenset((pair.first, pair.second))
                for pair in self.tests(metric, study).get(PAIRED, ())
                if pair.better
            }
            significant = [pair for pair in significant if pair in significant_by_metric]
        return len(significant)

    def _tau_interval(self, data: Split) -> dict[str, float]:
        """Return the columns with the interval of Kendall's tau, or an empty result without one."""
        for comparison in self.comparisons.values():
            for agreement in comparison.agreements:
                metrics = {agreement.first, agreement.second}
                if agreement.data == data and metrics == set(METRIC_NAMES):
                    return {"tau_low": agreement.low, "tau_high": agreement.high}
        return {}

    # ---------------------------------------------------------------------------------- tests
    def tests(self, metric: str, study: str) -> dict[str, list[PairedDifference]]:
        """Return the paired differences in a study by test."""
        comparison = self.comparisons[metric]
        data = self.data[study]
        pairs_by_test = [
            comparison.pairs_of(metric, data, test) for test in comparison.tests_of(metric, data)
        ]
        # The test of the literature is the only test that is not valid.
        published = next((pairs for pairs in pairs_by_test if pairs and not pairs[0].valid), [])
        alpha = 1 - comparison.level
        unadjusted = [
            replace(
                pair,
                adjusted=pair.p_value,
                adjustment="none",
                better=pair.first if pair.p_value < alpha else "",
            )
            for pair in published
        ]
        paired = comparison.pairs_of(metric, data)
        tests = {UNADJUSTED: unadjusted, ADJUSTED: published, PAIRED: paired}
        return {test: pairs for test, pairs in tests.items() if pairs}

    def pair_rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each combination of method pair, study, metric and test."""
        for study, metric in product(self.data, METRIC_NAMES):
            tests = self.tests(metric, study)
            adjusted_pairs = {(pair.first, pair.second): pair for pair in tests.get(ADJUSTED, ())}
            for test in (UNADJUSTED, PAIRED):
                for pair in tests.get(test, ()):
                    is_published = test == UNADJUSTED
                    adjusted = adjusted_pairs[pair.first, pair.second] if is_published else pair
                    yield {
                        "study": study,
                        "metric": metric,
                        "test": test,
                        "first": pair.first,
                        "second": pair.second,
                        "p_value": pair.p_value,
                        "adjusted_p_value": adjusted.adjusted,
                        "better": pair.better,
                        "better_adjusted": adjusted.better,
                    }

    def neighbor_rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each pair of methods whose mean ranks are adjacent.

        The AUGRC paper (section 4.1, last paragraph) states that Wilcoxon's test on the same
        resamples may contradict these ranks.
        """
        for study, metric in product(self.data, METRIC_NAMES):
            mean_ranks = self.mean_ranks(metric, self.data[study])
            pairs = self.tests(metric, study).get(UNADJUSTED, ())
            better_by_pair = {frozenset((pair.first, pair.second)): pair.better for pair in pairs}
            methods = sorted(mean_ranks, key=lambda method: mean_ranks[method])
            for higher, lower in pairwise(methods):
                if mean_ranks[higher] == mean_ranks[lower]:
                    continue
                better = better_by_pair.get(frozenset((higher, lower)), "")
                yield {
                    "selection": self.selection,
                    "study": study,
                    "metric": metric,
                    "higher": higher,
                    "lower": lower,
                    "higher_mean_rank": mean_ranks[higher],
                    "lower_mean_rank": mean_ranks[lower],
                    "better": better,
                    "contradicts_rank": better == lower,
                }

    def test_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the number of significant pairs for each combination of study, metric and test."""
        for study, metric in product(self.data, METRIC_NAMES):
            for test, pairs in self.tests(metric, study).items():
                yield self._summarize_test(study, metric, test, pairs)

    def _summarize_test(
        self, study: str, metric: str, test: str, pairs: Sequence[PairedDifference]
    ) -> dict[str, Any]:
        """Count significant pairs and, if the true values are known, false positives."""
        better_and_worse = []
        for pair in pairs:
            if pair.better:
                worse = pair.second if pair.better == pair.first else pair.first
                better_and_worse.append((pair.better, worse))
        methods = {pair.first for pair in pairs} | {pair.second for pair in pairs}
        row: dict[str, Any] = {
            "selection": self.selection,
            "study": study,
            "metric": metric,
            "test": test,
            "pairs": len(methods) * (len(methods) - 1) // 2,
            "significant": len(better_and_worse),
        }
        true_values = self.true_values.get((study, metric))
        if true_values:
            row["false_positives"] = sum(
                not true_values[better] < true_values[worse] for better, worse in better_and_worse
            )
            row["truly_different"] = sum(
                true_values[first] != true_values[second]
                for first, second in combinations(methods, 2)
            )
        return row


def summarize_changes(rows: Sequence[Row]) -> dict[str, Any]:
    """Summarize how the ranks by AURC and AUGRC differ in one study."""
    first, second = METRIC_NAMES
    first_ranks = {row["method"]: row[f"{first}_rank"] for row in rows}
    second_ranks = {row["method"]: row[f"{second}_rank"] for row in rows}
    return {
        "methods": len(rows),
        "changed": sum(row["change"] != 0 for row in rows),
        "largest_change": int(max((abs(row["change"]) for row in rows), default=0)),
        "best_changes": _top_methods(first_ranks, 1) != _top_methods(second_ranks, 1),
        "top_3_changes": _top_methods(first_ranks, _N_TOP) != _top_methods(second_ranks, _N_TOP),
        "swaps": len(swapped_pairs(rows)),
        "tau": kendall(list(first_ranks.values()), list(second_ranks.values())),
    }


def _top_methods(method_ranks: Mapping[str, float], n_top: int) -> set[str]:
    return {method for method, rank in method_ranks.items() if rank <= n_top}


def swapped_pairs(rows: Sequence[Row]) -> list[frozenset[str]]:
    """Return the pairs of methods that AURC and AUGRC rank in opposite orders."""
    first_rank, second_rank = (f"{metric}_rank" for metric in METRIC_NAMES)
    pairs = []
    for row, other in combinations(rows, 2):
        first_difference = row[first_rank] - other[first_rank]
        second_difference = row[second_rank] - other[second_rank]
        if first_difference * second_difference < 0:
            pairs.append(frozenset((row["method"], other["method"])))
    return pairs


def study_name(data: Split) -> str:
    """Return the name of a study, or "data" for a single data set."""
    return ", ".join(value for _, value in data) or "data"
