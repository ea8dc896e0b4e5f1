"""Printed tables by column: what stands side by side there, and is ranked together."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from abstain.inference import ranking
from abstain.metrics import METRICS
from abstain_bench.published import Fact, table


class PrintedColumn(NamedTuple):
    """A column of a table: what its methods were tested on."""

    classifier: str
    dataset: str
    study: str

    @property
    def said(self) -> str:
        """The column in words."""
        return f"{self.dataset} {self.study} ({self.classifier})"


#: Of each column the numbers of its methods, by the names that the paper prints.
Columns = Mapping[PrintedColumn, Mapping[str, float]]


def columns_of(cells: Iterable[Fact]) -> Columns:
    """Arrange cells by column and method."""
    found: dict[PrintedColumn, dict[str, float]] = defaultdict(dict)
    for cell in cells:
        at = PrintedColumn(cell["classifier"], cell["dataset"], cell["study"])
        found[at][cell["printed"]] = cell["number"]
    return dict(found)


def columns_in(name: str, block: str = "") -> Columns:
    """Return the columns of a table, or of one part of it."""
    return columns_of(cell for cell in table(name) if cell["block"] == block)


def badness(name: str) -> float:
    """Tell how to turn the numbers of a table so that less is better: by 1 or by -1."""
    return 1.0 if METRICS[table(name)[0]["metric"]].lower_is_better else -1.0


def ranks(numbers: Mapping[str, float]) -> dict[str, int]:
    """Rank numbers of which less is better; what is tied has the best of its ranks."""
    places = ranking.ranks(list(numbers.values()), lower_is_better=True, ties="min")
    return dict(zip(numbers, map(int, places), strict=True))


def lowest_ranks(numbers: Mapping[str, float]) -> dict[str, int]:
    """Rank numbers of which less is better; what is tied has the worst of its ranks."""
    last = len(numbers) + 1
    return {name: last - rank for name, rank in ranks({n: -x for n, x in numbers.items()}).items()}


def shared(
    first: Columns, second: Columns
) -> Iterator[tuple[PrintedColumn, list[tuple[float, float]]]]:
    """Find the columns of both with the pairs of numbers of the methods of both."""
    for column, numbers in first.items():
        other = second.get(column, {})
        pairs = [(own, other[name]) for name, own in numbers.items() if name in other]
        if pairs:
            yield column, pairs


def reversals(pairs: Iterable[tuple[float, float]]) -> tuple[int, int]:
    """Count the pairs of methods in another order by the second numbers, and all that have one."""
    signs = [(b[0] - a[0]) * (b[1] - a[1]) for a, b in combinations(list(pairs), 2)]
    return sum(sign < 0 for sign in signs), sum(sign != 0 for sign in signs)
