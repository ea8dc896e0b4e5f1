"""`RankedStudies`: methods in several studies by two metrics, and what changes between them.

The numbers are those of `Comparison`, one for each metric, since either may be of other networks.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise, product
from math import prod
from typing import Any, Final

from abstain.evaluation import Comparison
from abstain.evaluation.comparison import PairedDifference, ScoredRun
from abstain.inference.agreement import kendall
from abstain.inference.ranking import Ties, ranks
from abstain.metrics.areas.augrc import AUGRC
from abstain.metrics.areas.aurc import AURC
from abstain.typing import Split

#: What was ranked by, and what Traub et al. propose instead.
BEFORE: Final = AURC
AFTER: Final = AUGRC

#: The columns of the two.
TWO: Final = (BEFORE.name, AFTER.name)

#: How settings are chosen, as the tables say it.
OWN: Final = "each by its own metric"
SHARED: Final = f"both by {AFTER.title}"

#: The test of the literature, without and with an adjustment, and ours.
UNADJUSTED: Final = "Wilcoxon on bootstrap samples"
ADJUSTED: Final = "Wilcoxon on bootstrap samples, Holm"
PAIRED: Final = "paired, Holm"

#: So many methods at the top are looked at for changes, as the paper does.
_TOP: Final = 3


def places(values: Sequence[float], ties: Ties) -> list[float]:
    """Rank areas, of which the lowest is best."""
    return [float(rank) for rank in ranks(values, lower_is_better=True, ties=ties)]


@dataclass(frozen=True, eq=False)
class RankedStudies:
    """Methods in several studies by two metrics, with settings chosen in one way.

    Attributes
    ----------
    selection : str
        How settings are chosen; empty where there is one setting.
    by : mapping from str to Comparison
        By each metric.
    units : mapping from str to callable
        Of the studies whose samples can be looked at: makes their units, one a run, where all
        metrics are of the same networks.
    truth : mapping from (str, str) to mapping from str to float
        By study and metric the true value of each method, where it is known.
    ties : {"mean", "min"}
        Which rank equal methods have.
    """

    selection: str
    by: Mapping[str, Comparison]
    units: Mapping[str, Callable[[], Sequence[ScoredRun]]] = field(default_factory=dict)
    truth: Mapping[tuple[str, str], Mapping[str, float]] = field(default_factory=dict)
    ties: Ties = "min"

    @cached_property
    def data(self) -> dict[str, Split]:
        """The studies that both metrics rank, by name."""
        found = [[split for split in own.data if self.values(m, split)] for m, own in self._each]
        return {name_of(split): split for split in found[0] if split in found[1]}

    @property
    def _each(self) -> list[tuple[str, Comparison]]:
        return [(metric, self.by[metric]) for metric in TWO]

    def values(self, metric: str, data: Split) -> dict[str, float]:
        """Return the values of the methods that have one in a study."""
        found = {e.method: e.value for e in self.by[metric].estimates_of(metric, data)}
        return {method: value for method, value in found.items() if not math.isnan(value)}

    def resampled(self, metric: str, data: Split) -> dict[str, float]:
        """Return the mean rank of each method over the resamples; empty without any."""
        own = self.by[metric].standings_of(metric, data, "bootstrap, rank then aggregate")
        return {s.method: s.mean_rank for s in own}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return the tidy table: a row for each study and method."""
        for study, data in self.data.items():
            yield from self._of_study(study, data)

    def _of_study(self, study: str, data: Split) -> Iterator[dict[str, Any]]:
        values = [self.values(metric, data) for metric in TWO]
        methods = [method for method in values[0] if method in values[1]]
        table: dict[str, list[float]] = {}
        for metric, own in zip(TWO, values, strict=True):
            known = [own[method] for method in methods]
            table[metric] = known
            table[f"{metric}_rank"] = places(known, self.ties)
            over = self.resampled(metric, data)
            if all(method in over for method in methods):
                mean = [over[method] for method in methods]
                table |= {f"{metric}_mean_rank": mean}
                table |= {f"{metric}_resampled_rank": places(mean, self.ties)}
            if true := self.truth.get((study, metric)):
                table[f"{metric}_true"] = [true[method] for method in methods]
                table[f"{metric}_true_rank"] = places(table[f"{metric}_true"], self.ties)
        first, second = TWO
        for i, method in enumerate(methods):
            row = {name: column[i] for name, column in table.items()}
            change = row[f"{second}_rank"] - row[f"{first}_rank"]
            yield {"selection": self.selection, "study": study, "method": method, **row} | {
                "change": change
            }

    # ----------------------------------------------------------------------------- summaries
    def changes(self) -> Iterator[dict[str, Any]]:
        """Return what changes in each study."""
        rows = list(self.rows())
        for study, data in self.data.items():
            own = [row for row in rows if row["study"] == study]
            found = {"selection": self.selection, "study": study, **changed(own)}
            yield found | {"decided": self._decided(study, own)} | self._agreement(data)

    def _decided(self, study: str, rows: Sequence[Mapping[str, Any]]) -> int:
        """Count the pairs that change places of which both metrics are sure."""
        sure = [
            {
                frozenset((p.first, p.second)): p.better
                for p in self.tested(m, study).get(PAIRED, ())
            }
            for m in TWO
        ]
        return sum(all(own.get(pair) for own in sure) for pair in swaps_of(rows))

    def _agreement(self, data: Split) -> dict[str, float]:
        found = [
            a
            for own in self.by.values()
            for a in own.agreements
            if a.data == data and {a.first, a.second} == set(TWO)
        ]
        return {"tau_low": found[0].low, "tau_high": found[0].high} if found else {}

    # ---------------------------------------------------------------------------------- tests
    def tested(self, metric: str, study: str) -> dict[str, list[PairedDifference]]:
        """Return the pairs of a study by each test: the literature's in two forms, and ours."""
        comparison, data = self.by[metric], self.data[study]
        found = {t: comparison.pairs_of(metric, data, t) for t in comparison.tests_of(metric, data)}
        theirs = next((own for own in found.values() if own and not own[0].valid), [])
        alpha = 1 - comparison.level
        plain = [
            replace(
                pair,
                adjusted=pair.p_value,
                adjustment="none",
                better=pair.first if pair.p_value < alpha else "",
            )
            for pair in theirs
        ]
        ours = comparison.pairs_of(metric, data)
        tests = {UNADJUSTED: plain, ADJUSTED: theirs, PAIRED: ours}
        return {name: own for name, own in tests.items() if own}

    def pairs(self) -> Iterator[dict[str, Any]]:
        """Return every pair of methods in each study by either test, before it is counted."""
        for study, metric in product(self.data, TWO):
            found = self.tested(metric, study)
            adjusted = {(p.first, p.second): p for p in found.get(ADJUSTED, ())}
            for test, p in ((t, p) for t in (UNADJUSTED, PAIRED) for p in found.get(t, ())):
                after = adjusted[p.first, p.second] if test == UNADJUSTED else p
                yield {
                    "study": study,
                    "metric": metric,
                    "test": test,
                    "first": p.first,
                    "second": p.second,
                    "p_value": p.p_value,
                    "adjusted": after.adjusted,
                    "better": p.better,
                    "better_adjusted": after.better,
                }

    def neighbors(self) -> Iterator[dict[str, Any]]:
        """Return methods with adjacent mean ranks, and whether the test prefers the lower one.

        The situation of the last paragraph of section 4.1 of Traub et al.: a method with the worse
        mean rank over the resamples is significantly better by Wilcoxon's test on them.
        """
        for study, metric in product(self.data, TWO):
            mean_rank = self.resampled(metric, self.data[study])
            pairs = self.tested(metric, study).get(UNADJUSTED, ())
            better_of = {frozenset((pair.first, pair.second)): pair.better for pair in pairs}
            for higher, lower in pairwise(sorted(mean_rank, key=lambda m: mean_rank[m])):
                if mean_rank[higher] == mean_rank[lower]:
                    continue
                better = better_of.get(frozenset((higher, lower)), "")
                yield {
                    "selection": self.selection,
                    "study": study,
                    "metric": metric,
                    "higher": higher,
                    "lower": lower,
                    "higher_mean_rank": mean_rank[higher],
                    "lower_mean_rank": mean_rank[lower],
                    "better": better,
                    "contradicts_rank": better == lower,
                }

    def maps(self) -> Iterator[dict[str, Any]]:
        """Return how many pairs each test tells apart in each study."""
        for study in self.data:
            for metric in TWO:
                for test, own in self.tested(metric, study).items():
                    yield self._counted(study, metric, test, own)

    def _counted(
        self, study: str, metric: str, test: str, own: Sequence[PairedDifference]
    ) -> dict[str, Any]:
        better = [(p.better, p.second if p.better == p.first else p.first) for p in own if p.better]
        methods = {p.first for p in own} | {p.second for p in own}
        row: dict[str, Any] = {
            "selection": self.selection,
            "study": study,
            "metric": metric,
            "test": test,
            "pairs": len(methods) * (len(methods) - 1) // 2,
            "told_apart": len(better),
        }
        if true := self.truth.get((study, metric)):
            row["wrongly"] = sum(not true[one] < true[other] for one, other in better)
            row["really_apart"] = sum(true[i] != true[j] for i, j in combinations(methods, 2))
        return row


def changed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Say of the ranks of all methods in one study what changes between the metrics."""
    before, after = ([row[f"{metric}_rank"] for row in rows] for metric in TWO)
    return {
        "methods": len(rows),
        "changed": sum(row["change"] != 0 for row in rows),
        "largest_change": int(max((abs(row["change"]) for row in rows), default=0)),
        "best_changes": _at(rows, before, 1) != _at(rows, after, 1),
        "top_3_changes": _at(rows, before, _TOP) != _at(rows, after, _TOP),
        "swaps": len(swaps_of(rows)),
        "tau": kendall(before, after),
    }


def swaps_of(rows: Sequence[Mapping[str, Any]]) -> list[frozenset[str]]:
    """Return the pairs of methods that one metric orders in one way and the other turns."""
    return [
        frozenset((a["method"], b["method"]))
        for a, b in combinations(rows, 2)
        if prod(a[f"{metric}_rank"] - b[f"{metric}_rank"] for metric in TWO) < 0
    ]


def name_of(data: Split) -> str:
    """Return the name of a study; a data set alone is called so."""
    return ", ".join(value for _, value in data) or "data"


def _at(rows: Sequence[Mapping[str, Any]], place: Sequence[float], top: int) -> set[str]:
    """Return the methods of the first ranks."""
    return {row["method"] for row, rank in zip(rows, place, strict=True) if rank <= top}
