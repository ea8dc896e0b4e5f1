"""Numbers of a benchmark beside those that the papers print for the same task."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

from abstain._foundation.notes import Note
from abstain.evaluation.comparison import Comparison
from abstain.inference import kendall, ranking
from abstain_bench.published import Fact, table, tables
from abstain_bench.runs.methods import METHODS

#: The tables that have a number for each method and study.
_TABLES: Final = (
    "augrc_table_3",
    "fd_shifts_table_1",
    "fd_shifts_table_9",
    "fd_shifts_table_8",
    "fd_shifts_table_10",
)

#: Rotations of held-out classes, which the papers pool.
_ROTATED: Final = re.compile(r"-open-\d$")
_ROTATIONS: Final = "-open-1..5"
_PUBLISHED_ROTATIONS: Final = 5

#: Between the tasks of results that are of several rotations together.
_JOINED: Final = ", "


@dataclass(frozen=True)
class PublishedNumber:
    """A number of a benchmark, and what a paper prints for the same method and study.

    Attributes
    ----------
    metric, study, method : str
        What it is of.
    value, published : float
        The number here and the printed one, both plain fractions.
    ratio : float
        Here over published; NaN where that is 0.
    rank, published_rank : int
        Among the methods of this metric and study that both have; equal numbers share the best.
    common : int
        How many these are.
    classifier, backbone : str
        What the paper tested: "CNN" or "ViT", and the network, empty where this package lacks it.
    source : str
        The paper and its table.
    doubt : str
        What is doubtful of the printed number, or empty.
    """

    metric: str
    study: str
    method: str
    value: float
    published: float
    ratio: float
    rank: int
    published_rank: int
    common: int
    classifier: str
    backbone: str
    source: str
    doubt: str = ""


@dataclass(frozen=True)
class PublishedOrder:
    """How alike a benchmark and a paper rank the methods that both have.

    Attributes
    ----------
    metric, study : str
        What ranks.
    methods : int
        How many both have, at least two.
    tau : float
        Kendall's tau-b of the two orders, of which neither is a single tie.
    best, published_best : tuple of str
        The methods on the first rank here, and there.
    source : str
        The paper and its table.
    """

    metric: str
    study: str
    methods: int
    tau: float
    best: tuple[str, ...]
    published_best: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class PublishedColumns:
    """What the papers print for a task, of one kind of network.

    Attributes
    ----------
    task, model : str
        Of the benchmark.
    cells : mapping from (metric, study) to (method to cell)
        By the names of this package.
    """

    task: str
    model: str
    cells: Mapping[tuple[str, str], Mapping[str, Fact]]

    @classmethod
    def of(cls, task: str, model: str) -> "PublishedColumns":
        """Find the columns of a task: of the same network, or else of the same kind of it."""
        wanted = {_ROTATED.sub(_ROTATIONS, one) for one in task.split(_JOINED)}
        own = [c for name in _TABLES for c in table(name) if {c["task"]} == wanted and c["method"]]
        classifier = "ViT" if model.startswith("vit") else "CNN"
        found: dict[tuple[str, str], dict[str, Fact]] = {}
        for cell in own:
            if cell["classifier"] == classifier:
                found.setdefault((cell["metric"], cell["abstain_study"]), {})[cell["method"]] = cell
        for printed in found.values():
            for name, same in ((m.name, m.same_as) for m in METHODS.values() if m.same_as):
                # What a paper calls otherwise stands beside the method that it is.
                if name in printed:
                    printed.setdefault(same, printed[name])
        return cls(task, model, found)

    def beside(
        self, comparisons: Mapping[str, Comparison]
    ) -> Iterator[tuple[PublishedOrder | None, list[PublishedNumber]]]:
        """Put each printed column beside the numbers of the same metric and study."""
        for (metric, study), printed in self.cells.items():
            comparison = comparisons.get(metric)
            data = (("study", study),)
            if comparison is None or data not in comparison.data:
                continue
            estimates = comparison.estimates_of(metric, data)
            # A method that has no number here, or none there, has no rank among the common ones.
            own = {
                e.method: e.value for e in estimates if e.method in printed and not isnan(e.value)
            }
            if own:
                lower = estimates[0].lower_is_better
                there = {m: printed[m] for m in own}
                yield _column(metric, study, own, there, lower_is_better=lower)

    def findings(self, numbers: Sequence[PublishedNumber]) -> Iterator[Note]:
        """Say what to think of the comparison, or why there is none."""
        if not numbers:
            yield Note("nothing_published", self._nothing())
            return
        yield Note("published", self._caveat(numbers))
        turned = [one for one in self.task.split(_JOINED) if _ROTATED.search(one)]
        if 0 < len(turned) < _PUBLISHED_ROTATIONS:
            yield Note(
                "published",
                f"Published numbers of held-out classes are of {_PUBLISHED_ROTATIONS} rotations "
                f"together; these runs are of {len(turned)}.",
            )
        for doubt, own in _by_doubt(numbers).items():
            where = ", ".join(dict.fromkeys(number.study for number in own))
            yield Note("published", f"Published numbers of {where} are doubtful: {doubt}")

    def _nothing(self) -> str:
        if not self.task:
            return (
                "These runs do not say of which task they are, so no published number stands "
                "beside theirs."
            )
        if self.cells:
            return (
                f"The papers print numbers of the task {self.task!r}, but none of these methods, "
                "studies and metrics."
            )
        known = {cell["task"] for name in _TABLES for cell in table(name) if cell["task"]}
        return (
            f"No paper prints numbers of the task {self.task!r}, so nothing stands beside them. "
            f"There are some of {', '.join(sorted(known))}."
        )

    def _caveat(self, numbers: Iterable[PublishedNumber]) -> str:
        there = ", ".join(dict.fromkeys(n.backbone or n.classifier for n in numbers))
        here = f"{self.model} here" if self.model else "another may be here"
        same = self.model and there == self.model
        networks = (
            f"The network is {there} in both" if same else f"Networks are {there} there and {here}"
        )
        return (
            f"{networks}, trained otherwise, on other splits and other corruptions than those of "
            "the papers: compare orders and magnitudes, not digits."
        )


def _by_doubt(numbers: Iterable[PublishedNumber]) -> dict[str, list[PublishedNumber]]:
    found: dict[str, list[PublishedNumber]] = {}
    for number in numbers:
        if number.doubt:
            found.setdefault(number.doubt, []).append(number)
    return found


def _column(
    metric: str,
    study: str,
    own: Mapping[str, float],
    printed: Mapping[str, Fact],
    *,
    lower_is_better: bool,
) -> tuple[PublishedOrder | None, list[PublishedNumber]]:
    there = {method: float(cell["number"]) for method, cell in printed.items()}
    ranks, published = (_ranks(v, lower_is_better=lower_is_better) for v in (own, there))
    one = next(iter(printed.values()))
    source = next(
        t.source for t in tables().values() if (t.paper, t.number) == (one["paper"], one["table"])
    )
    numbers = [
        PublishedNumber(
            metric, study, method, value, there[method],
            value / there[method] if there[method] else float("nan"),
            ranks[method], published[method], len(own),
            printed[method]["classifier"], printed[method]["backbone"], source,
            printed[method]["doubt"],
        )
        for method, value in own.items()
    ]  # fmt: skip
    tau = kendall([*own.values()], [there[method] for method in own])
    if isnan(tau):
        return None, numbers
    best = tuple(tuple(m for m in r if r[m] == 1) for r in (ranks, published))
    return PublishedOrder(metric, study, len(own), tau, best[0], best[1], source), numbers


def _ranks(values: Mapping[str, float], *, lower_is_better: bool) -> dict[str, int]:
    """Rank as the papers do: equal numbers share the best of their ranks."""
    places = ranking.ranks(list(values.values()), lower_is_better=lower_is_better, ties="min")
    return dict(zip(values, map(int, places), strict=True))
