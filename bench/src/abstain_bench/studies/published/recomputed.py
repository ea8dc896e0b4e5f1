"""Recompute published ranks and numbers from other published numbers."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import combinations
from typing import Any, Final, NamedTuple

from abstain.inference import kendall, ranking
from abstain.metrics import METRICS
from abstain_bench.published import Fact, table
from abstain_bench.studies._area_estimators import augrc_from_factors
from abstain_bench.studies._display import unique_values


class PrintedColumn(NamedTuple):
    """Classifier, data set and study that identify a table column."""

    classifier: str
    dataset: str
    study: str

    @property
    def title(self) -> str:
        """Display title of the column."""
        return f"{self.dataset} {self.study} ({self.classifier})"


#: Mapping from columns to numbers by the printed name of the method.
Columns = Mapping[PrintedColumn, Mapping[str, float]]


def group_by_column(cells: Iterable[Fact]) -> Columns:
    """Group numbers by column and method."""
    columns: dict[PrintedColumn, dict[str, float]] = defaultdict(dict)
    for cell in cells:
        column = PrintedColumn(cell["classifier"], cell["dataset"], cell["study"])
        columns[column][cell["printed"]] = cell["number"]
    return dict(columns)


def table_columns(name: str, block: str = "") -> Columns:
    """Return the columns in one block of a table.

    If the name is empty, cells that are not in a block are selected.
    """
    return group_by_column(cell for cell in table(name) if cell["block"] == block)


def loss_sign(name: str) -> float:
    """Return the sign of the metric in a table, which is -1 if higher values are better."""
    return 1.0 if METRICS[table(name)[0]["metric"]].lower_is_better else -1.0


def min_ranks(numbers: Mapping[str, float]) -> dict[str, int]:
    """Rank numbers in ascending order. Tied methods share the lowest of their ranks."""
    ranks = ranking.ranks(list(numbers.values()), lower_is_better=True, ties="min")
    return dict(zip(numbers, map(int, ranks), strict=True))


def max_ranks(numbers: Mapping[str, float]) -> dict[str, int]:
    """Rank numbers in ascending order. Tied methods share the highest of their ranks."""
    reversed_ranks = min_ranks({name: -number for name, number in numbers.items()})
    return {name: len(numbers) + 1 - rank for name, rank in reversed_ranks.items()}


def paired_columns(
    first: Columns, second: Columns
) -> Iterator[tuple[PrintedColumn, list[tuple[float, float]]]]:
    """Yield each column that two tables share, with the numbers of each common method."""
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
    """Count the pairs of methods that two metrics rank in opposite orders.

    Returns
    -------
    n_reversed, n_untied : int
        Number of such pairs, and number of pairs without ties.
    """
    products = [
        (second[0] - first[0]) * (second[1] - first[1])
        for first, second in combinations(list(pairs), 2)
    ]
    n_reversed = sum(product < 0 for product in products)
    n_untied = sum(product != 0 for product in products)
    return n_reversed, n_untied


#: Table with ranks by two metrics.
TWO_METRIC_RANKS = "augrc_table_4"
#: Table with the numbers of the second metric.
SECOND_METRIC_NUMBERS = "augrc_table_3"

#: Table of the other paper with ranks by the first metric.
OTHER_PAPER_RANKS: Final = "fd_shifts_table_11"

_AUROC_RANKS: Final = "fd_shifts_table_13"

#: Tuples of a table of numbers, the table of their ranks, and the block of the table of ranks.
_RANKED_TABLES: Final = (
    ("fd_shifts_table_1", OTHER_PAPER_RANKS, ""),
    ("fd_shifts_table_9", _AUROC_RANKS, "proposed"),
)


def ranks_by_selection() -> dict[str, tuple[Columns, Columns]]:
    """Return the ranks by AURC and AUGRC for each metric that selects the hyperparameters."""
    cells = table(TWO_METRIC_RANKS)
    first_metric, second_metric = unique_values(cells, "metric")
    ranks = {}
    for block in unique_values(cells, "block"):
        block_cells = [cell for cell in cells if cell["block"] == block]
        ranks[block] = (
            group_by_column(cell for cell in block_cells if cell["metric"] == first_metric),
            group_by_column(cell for cell in block_cells if cell["metric"] == second_metric),
        )
    return ranks


# --------------------------------------------------------------------------------- recomputed
def recompute_ranks() -> Iterator[dict[str, Any]]:
    """Compute the ranks of each column, and compare them with the published ranks."""
    for numbers_table, ranks_table, part in _RANKED_TABLES:
        printed = table_columns(ranks_table, part)
        yield from _compare_ranks(numbers_table, ranks_table, part, printed)
    for part, (_, printed) in ranks_by_selection().items():
        yield from _compare_ranks(SECOND_METRIC_NUMBERS, TWO_METRIC_RANKS, part, printed)


def _compare_ranks(
    numbers_table: str, ranks_table: str, part: str, printed_columns: Columns
) -> Iterator[dict[str, Any]]:
    """Yield a row that compares the ranks of each column of a table."""
    sign = loss_sign(numbers_table)
    for column, numbers in table_columns(numbers_table).items():
        printed = printed_columns.get(column, {})
        losses = {method: sign * number for method, number in numbers.items()}
        common = {method: loss for method, loss in losses.items() if method in printed}
        if not common:
            continue
        lowest = min_ranks(common)
        highest = max_ranks(common)
        # Printed ranks include methods without numbers, so the common methods are ranked again.
        printed_among_common = min_ranks({method: printed[method] for method in common})
        n_reversed, n_pairs = count_reversals((common[name], printed[name]) for name in common)
        n_equal = sum(lowest[name] == printed_among_common[name] for name in common)
        n_possible = sum(
            lowest[name] <= printed_among_common[name] <= highest[name] for name in common
        )
        yield {
            **_column_fields(column, numbers_table, ranks_table, part),
            "printed": len(numbers),
            "equal_as_printed": _count_equal_as_printed(min_ranks(losses), printed),
            "unmatched": _unmatched_methods(numbers, printed),
            "ranks": len(common),
            "equal": n_equal,
            "possible": n_possible,
            "pairs": n_pairs,
            "reversed": n_reversed,
        }


def _count_equal_as_printed(ranks: Mapping[str, int], printed: Mapping[str, float]) -> int:
    """Count the methods of a column whose computed rank equals the published rank.

    If each table has one method that the other lacks, these two methods are compared with each
    other.
    """
    printed_name = {name: name for name in ranks}
    unmatched = _unmatched_methods(ranks, printed)
    if unmatched is not None:
        name, other_name = unmatched
        printed_name[name] = other_name
    return sum(printed.get(printed_name[name]) == rank for name, rank in ranks.items())


def _unmatched_methods(first: Iterable[str], second: Iterable[str]) -> tuple[str, str] | None:
    """Return the two methods that are each missing in one table, if there is one for each table."""
    only_first = set(first) - set(second)
    only_second = set(second) - set(first)
    if len(only_first) == len(only_second) == 1:
        return (only_first.pop(), only_second.pop())
    return None


def compare_papers() -> Iterator[dict[str, Any]]:
    """Compare the published ranks of two papers for the same metric."""
    for part, (first, _) in ranks_by_selection().items():
        for column, pairs in paired_columns(first, table_columns(OTHER_PAPER_RANKS)):
            n_reversed, n_pairs = count_reversals(pairs)
            fields = _column_fields(column, TWO_METRIC_RANKS, OTHER_PAPER_RANKS, part)
            yield {**fields, "pairs": n_pairs, "reversed": n_reversed}


def invalid_rank_columns() -> list[tuple[str, str, PrintedColumn]]:
    """Return the columns whose published ranks cannot be the ranks of any set of numbers."""
    rank_tables = [(OTHER_PAPER_RANKS, "", table_columns(OTHER_PAPER_RANKS))]
    blocks = unique_values(table(_AUROC_RANKS), "block")
    rank_tables += [(_AUROC_RANKS, block, table_columns(_AUROC_RANKS, block)) for block in blocks]
    for part, columns_by_metric in ranks_by_selection().items():
        rank_tables += [(TWO_METRIC_RANKS, part, columns) for columns in columns_by_metric]
    return [
        (name, part, column)
        for name, part, columns in rank_tables
        for column, printed in columns.items()
        if min_ranks(printed) != printed
    ]


# ------------------------------------------------------------------------------- two metrics
def compare_metrics() -> Iterator[dict[str, Any]]:
    """Compare the ranks by AURC and AUGRC for each data set and study."""
    for part, (first, second) in ranks_by_selection().items():
        for column, pairs in paired_columns(first, second):
            n_reversed, n_pairs = count_reversals(pairs)
            first_ranks, second_ranks = zip(*pairs, strict=True)
            yield {
                **_column_fields(column, TWO_METRIC_RANKS, TWO_METRIC_RANKS, part),
                "tau": kendall(list(first_ranks), list(second_ranks)),
                "pairs": n_pairs,
                "reversed": n_reversed,
                "best_by_AURC": _best_methods(first[column]),
                "best_by_AUGRC": _best_methods(second[column]),
            }


def _best_methods(ranks: Mapping[str, float]) -> str:
    best_rank = min(ranks.values())
    return ", ".join(name for name, rank in ranks.items() if rank == best_rank)


def _column_fields(column: PrintedColumn, first: str, second: str, part: str) -> dict[str, Any]:
    return {"table": first, "against": second, "part": part, **column._asdict()}


#: Table with the accuracy of the methods.
ACCURACY_TABLE = "fd_shifts_table_8"
#: Table with the failure AUROC of the methods.
AUROC_TABLE = "fd_shifts_table_9"

#: Name of the new-class images in the table "settings" for each kind of new classes.
_IMAGE_TITLES: Final = {
    "c10": "CIFAR-10",
    "c100": "CIFAR-100",
    "svhn": "SVHN",
    "ti": "TinyImagenet (32x32 resized)",
}

#: Tables that repeat numbers of the large tables, and the compared blocks of these tables.
_REPEATING_TABLES: Final = (("fd_shifts_table_2", ("64bit", "")), ("fd_shifts_table_15", ("",)))
_LARGE_TABLES: Final = ("fd_shifts_table_1", ACCURACY_TABLE, AUROC_TABLE)

#: Text in the names of methods with results of other authors.
_OTHER_AUTHORS: Final = "et al."


def recompute_areas() -> Iterator[dict[str, Any]]:
    """Compute AUGRCs of one paper from accuracies and AUROCs of the other paper."""
    accuracy = table_columns(ACCURACY_TABLE)
    auroc = table_columns(AUROC_TABLE)
    for column, printed in table_columns(SECOND_METRIC_NUMBERS).items():
        for method, number in printed.items():
            if method not in auroc.get(column, {}):
                continue
            augrc = augrc_from_factors(accuracy[column][method], auroc[column][method])
            computed = float(augrc)
            yield {
                **_cell_fields(column, SECOND_METRIC_NUMBERS, AUROC_TABLE, method),
                "printed": number,
                "computed": computed,
                "relative_difference": computed / number - 1,
            }


def recompute_accuracies() -> Iterator[dict[str, Any]]:
    """Compute the accuracy with new classes from the accuracy without shift and image counts.

    Studies of new classes contain all images of new classes and the correctly predicted images of
    known classes.
    """
    n_tested = _counts_by_dataset("fd_shifts_table_3", "n_iid_test")
    n_new_images = _counts_by_dataset("settings", "images when it serves as new classes")
    columns = table_columns(ACCURACY_TABLE)
    for column, printed in columns.items():
        images = _IMAGE_TITLES.get(column.study.rpartition(":")[2])
        if images is None or column.dataset not in n_tested:
            continue
        iid_accuracy = columns.get(column._replace(study="iid"), {})
        for method, number in printed.items():
            n_correct = iid_accuracy[method] * n_tested[column.dataset]
            computed = n_correct / (n_correct + n_new_images[images])
            yield {
                **_cell_fields(column, ACCURACY_TABLE, "fd_shifts_table_3", method),
                "printed": number,
                "computed": computed,
                "difference": computed - number,
            }


def compare_repeated_numbers() -> Iterator[dict[str, Any]]:
    """Compare numbers that two tables have in common."""
    large_cells = {_cell_key(cell): cell for name in _LARGE_TABLES for cell in table(name)}
    for name, blocks in _REPEATING_TABLES:
        for cell in table(name):
            large = large_cells.get(_cell_key(cell))
            if large is None or cell["block"] not in blocks or _OTHER_AUTHORS in cell["printed"]:
                continue
            difference = abs(Decimal(cell["value"]) - Decimal(large["value"]))
            n_units = difference / _unit(cell, large)
            column = PrintedColumn(cell["classifier"], cell["dataset"], cell["study"])
            yield {
                **_cell_fields(column, name, f"fd_shifts_table_{large['table']}", cell["printed"]),
                "metric": cell["metric"],
                "printed": cell["number"],
                "other_printed": large["number"],
                # Rounded values of the same number differ by at most one unit of the last digit.
                "same": n_units <= 1,
            }


def _unit(*cells: Fact) -> Decimal:
    """Return one unit of the last digit of the number with the fewest decimals."""
    exponents = [Decimal(cell["value"]).as_tuple().exponent for cell in cells]
    return Decimal(10) ** max(exponent for exponent in exponents if isinstance(exponent, int))


def _cell_key(cell: Fact) -> tuple[str, ...]:
    """Return the values that identify the same number in different tables."""
    return tuple(cell[key] for key in ("classifier", "dataset", "study", "method", "metric"))


def _counts_by_dataset(name: str, setting: str) -> dict[str, float]:
    """Return the number of a setting for each data set."""
    return {cell["dataset"]: cell["number"] for cell in table(name) if cell["setting"] == setting}


def _cell_fields(column: PrintedColumn, first: str, second: str, method: str) -> dict[str, Any]:
    return {"table": first, "against": second, **column._asdict(), "method": method}
