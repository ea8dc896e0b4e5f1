"""Compare printed ranks with the ranks of the printed numbers, and ranks by two metrics."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from abstain.inference import kendall
from abstain_bench.published import table
from abstain_bench.studies._tables import unique_values
from abstain_bench.studies.published.columns import (
    Columns,
    PrintedColumn,
    count_reversals,
    group_by_column,
    loss_sign,
    max_ranks,
    min_ranks,
    paired_columns,
    table_columns,
)

#: Table with ranks by two metrics, and the table with the numbers of the second metric.
TWO_METRIC_RANKS, SECOND_METRIC_NUMBERS = "augrc_table_4", "augrc_table_3"

#: Ranks in the other paper by the first of the two metrics.
OTHER_PAPER_RANKS: Final = "fd_shifts_table_11"

_AUROC_RANKS: Final = "fd_shifts_table_13"

#: Tables of numbers, tables of their ranks, and the block of the latter.
_RANKED_TABLES: Final = (
    ("fd_shifts_table_1", OTHER_PAPER_RANKS, ""),
    ("fd_shifts_table_9", _AUROC_RANKS, "proposed"),
)


def ranks_by_selection() -> dict[str, tuple[Columns, Columns]]:
    """Return the ranks by the first and by the second metric for each selection criterion."""
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
    """Rank the printed numbers and compare them with the printed ranks of each column."""
    for numbers_table, ranks_table, part in _RANKED_TABLES:
        printed = table_columns(ranks_table, part)
        yield from _compare_ranks(numbers_table, ranks_table, part, printed)
    for part, (_, printed) in ranks_by_selection().items():
        yield from _compare_ranks(SECOND_METRIC_NUMBERS, TWO_METRIC_RANKS, part, printed)


def _compare_ranks(
    numbers_table: str, ranks_table: str, part: str, printed_columns: Columns
) -> Iterator[dict[str, Any]]:
    sign = loss_sign(numbers_table)
    for column, numbers in table_columns(numbers_table).items():
        printed = printed_columns.get(column, {})
        losses = {method: sign * number for method, number in numbers.items()}
        common = {method: loss for method, loss in losses.items() if method in printed}
        if not common:
            continue
        lowest, highest = min_ranks(common), max_ranks(common)
        # The printed ranks also count methods without numbers, so rank the common ones again.
        printed_among_common = min_ranks({method: printed[method] for method in common})
        n_reversed, n_pairs = count_reversals((common[m], printed[m]) for m in common)
        yield {
            **_column_fields(column, numbers_table, ranks_table, part),
            "printed": len(numbers),
            "equal_as_printed": _count_equal_as_printed(min_ranks(losses), printed),
            "unmatched": _unmatched_methods(numbers, printed),
            "ranks": len(common),
            "equal": sum(lowest[m] == printed_among_common[m] for m in common),
            "possible": sum(lowest[m] <= printed_among_common[m] <= highest[m] for m in common),
            "pairs": n_pairs,
            "reversed": n_reversed,
        }


def _count_equal_as_printed(ranks: Mapping[str, int], printed: Mapping[str, float]) -> int:
    """Count the ranks that equal the printed ones, over all methods of the column.

    If each table has one method that the other lacks, these two are compared with each other.
    """
    unmatched = _unmatched_methods(ranks, printed)
    renamed = {} if unmatched is None else dict([unmatched])
    return sum(printed.get(renamed.get(name, name)) == rank for name, rank in ranks.items())


def _unmatched_methods(first: Iterable[str], second: Iterable[str]) -> tuple[str, str] | None:
    """Return the only method that the second table lacks, and the only one the first lacks."""
    only_first, only_second = set(first) - set(second), set(second) - set(first)
    if len(only_first) == len(only_second) == 1:
        return (only_first.pop(), only_second.pop())
    return None


def compare_papers() -> Iterator[dict[str, Any]]:
    """Compare the ranks of the two papers by the metric that both use."""
    for part, (first, _) in ranks_by_selection().items():
        for column, pairs in paired_columns(first, table_columns(OTHER_PAPER_RANKS)):
            n_reversed, n_pairs = count_reversals(pairs)
            fields = _column_fields(column, TWO_METRIC_RANKS, OTHER_PAPER_RANKS, part)
            yield {**fields, "pairs": n_pairs, "reversed": n_reversed}


def invalid_rank_columns() -> list[tuple[str, str, PrintedColumn]]:
    """Return the columns that are not minimum ranks: a tie must skip the ranks after it."""
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
    """Compare the ranks by the two metrics on each data set and study."""
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
