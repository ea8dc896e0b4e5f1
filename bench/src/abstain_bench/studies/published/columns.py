"""Printed tables by column: numbers of the methods on one data set, which are ranked together."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from abstain.inference import ranking
from abstain.metrics import METRICS
from abstain_bench.published import Fact, table


class PrintedColumn(NamedTuple):
    """A column of a table: classifier, data set and study of its numbers."""

    classifier: str
    dataset: str
    study: str

    @property
    def title(self) -> str:
        """Title of the column."""
        return f"{self.dataset} {self.study} ({self.classifier})"


#: Numbers of the methods of each column, by the names in print.
Columns = Mapping[PrintedColumn, Mapping[str, float]]


def group_by_column(cells: Iterable[Fact]) -> Columns:
    """Group cells by column and method."""
    columns: dict[PrintedColumn, dict[str, float]] = defaultdict(dict)
    for cell in cells:
        column = PrintedColumn(cell["classifier"], cell["dataset"], cell["study"])
        columns[column][cell["printed"]] = cell["number"]
    return dict(columns)


def table_columns(name: str, block: str = "") -> Columns:
    """Return the columns of a table, or of one block of it."""
    return group_by_column(cell for cell in table(name) if cell["block"] == block)


def loss_sign(name: str) -> float:
    """Return the factor, 1 or -1, that makes lower numbers of a table better."""
    return 1.0 if METRICS[table(name)[0]["metric"]].lower_is_better else -1.0


def min_ranks(numbers: Mapping[str, float]) -> dict[str, int]:
    """Rank numbers of which lower is better; tied numbers have the lowest rank of the tie."""
    ranks = ranking.ranks(list(numbers.values()), lower_is_better=True, ties="min")
    return dict(zip(numbers, map(int, ranks), strict=True))


def max_ranks(numbers: Mapping[str, float]) -> dict[str, int]:
    """Rank numbers of which lower is better; tied numbers have the highest rank of the tie."""
    reversed_ranks = min_ranks({name: -number for name, number in numbers.items()})
    return {name: len(numbers) + 1 - rank for name, rank in reversed_ranks.items()}


def paired_columns(
    first: Columns, second: Columns
) -> Iterator[tuple[PrintedColumn, list[tuple[float, float]]]]:
    """Yield the columns of both tables with the pairs of numbers of the common methods."""
    for column, numbers in first.items():
        second_numbers = second.get(column, {})
        pairs = [
            (number, second_numbers[method])
            for method, number in numbers.items()
            if method in second_numbers
        ]
        if pairs:
            yield column, pairs


def count_reversals(pairs: Iterable[tuple[float, float]]) -> tuple[int, int]:
    """Count the pairs of methods with opposite orders, and the pairs without ties."""
    signs = [(b[0] - a[0]) * (b[1] - a[1]) for a, b in combinations(list(pairs), 2)]
    return sum(sign < 0 for sign in signs), sum(sign != 0 for sign in signs)
