"""What printed ranks say: whether they are those of the printed numbers, and how they change."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from abstain.inference import kendall
from abstain_bench.published import table
from abstain_bench.studies.published.columns import (
    Columns,
    PrintedColumn,
    badness,
    columns_in,
    columns_of,
    lowest_ranks,
    ranks,
    reversals,
    shared,
)

#: Where ranks by two metrics stand side by side, and the table with the numbers of the second.
TWICE_RANKED, OF_SECOND = "augrc_table_4", "augrc_table_3"

#: Ranks of the other paper by the first of the two metrics.
ELSEWHERE: Final = "fd_shifts_table_11"

#: Tables of numbers, those of their ranks, and the part of these.
_RANKED: Final = (
    ("fd_shifts_table_1", "fd_shifts_table_11", ""),
    ("fd_shifts_table_9", "fd_shifts_table_13", "proposed"),
)


def parts() -> dict[str, tuple[Columns, Columns]]:
    """Return each part of the table of two ranks: its columns by either metric."""
    cells = table(TWICE_RANKED)
    first, second = dict.fromkeys(cell["metric"] for cell in cells)
    return {
        block: (
            columns_of(c for c in cells if c["block"] == block and c["metric"] == first),
            columns_of(c for c in cells if c["block"] == block and c["metric"] == second),
        )
        for block in dict.fromkeys(cell["block"] for cell in cells)
    }


# --------------------------------------------------------------------------------- recomputed
def recomputed() -> Iterator[dict[str, Any]]:
    """Rank the printed numbers and compare with the printed ranks, column by column."""
    for numbers, printed, part in _RANKED:
        yield from _recomputed(numbers, printed, part, columns_in(printed, part))
    for part, (_, second) in parts().items():
        yield from _recomputed(OF_SECOND, TWICE_RANKED, part, second)


def _recomputed(numbers: str, printed: str, part: str, ranked: Columns) -> Iterator[dict[str, Any]]:
    sign = badness(numbers)
    for column, own in columns_in(numbers).items():
        told = ranked.get(column, {})
        common = {name: sign * own[name] for name in own if name in told}
        if not common:
            continue
        best, worst = ranks(common), lowest_ranks(common)
        # Among the methods of both tables: where one has more, the printed ranks count those too.
        among = ranks({name: told[name] for name in common})
        whole = ranks({name: sign * value for name, value in own.items()})
        turned, pairs = reversals((common[name], told[name]) for name in common)
        yield {
            **_about(column, numbers, printed, part),
            "printed": len(own),
            "equal_as_printed": _equal_as_printed(whole, told),
            "unmatched": _unmatched(own, told),
            "ranks": len(common),
            "equal": sum(best[name] == among[name] for name in common),
            "possible": sum(best[name] <= among[name] <= worst[name] for name in common),
            "pairs": pairs,
            "reversed": turned,
        }


def _equal_as_printed(ranked: Mapping[str, int], printed: Mapping[str, float]) -> int:
    """Count the ranks that equal the printed ones, over all methods of the column.

    A method that only one table has takes the rank of the method that only the other has, if there
    is one of each.
    """
    unmatched = _unmatched(ranked, printed)
    renamed = {} if unmatched is None else dict([unmatched])
    return sum(printed.get(renamed.get(name, name)) == rank for name, rank in ranked.items())


def _unmatched(first: Iterable[str], second: Iterable[str]) -> tuple[str, str] | None:
    """Return the one method that only the first table has, and the one of the second alone."""
    lonely, other = set(first) - set(second), set(second) - set(first)
    return (lonely.pop(), other.pop()) if len(lonely) == len(other) == 1 else None


def elsewhere() -> Iterator[dict[str, Any]]:
    """Compare the ranks of the two papers by the metric that both have."""
    for part, (first, _) in parts().items():
        for column, pairs in shared(first, columns_in(ELSEWHERE)):
            turned, count = reversals(pairs)
            about = _about(column, TWICE_RANKED, ELSEWHERE, part)
            yield {**about, "pairs": count, "reversed": turned}


def invalid() -> list[tuple[str, str, PrintedColumn]]:
    """Find the columns of ranks that no numbers have: a tie must leave out the ranks behind it."""
    every = [(ELSEWHERE, "", columns_in(ELSEWHERE))]
    every += [(_RANKED[1][1], part, columns_in(_RANKED[1][1], part)) for part in _blocks()]
    every += [(TWICE_RANKED, part, columns) for part, both in parts().items() for columns in both]
    return [
        (name, part, column)
        for name, part, columns in every
        for column, printed in columns.items()
        if ranks(printed) != printed
    ]


def _blocks() -> list[str]:
    return list(dict.fromkeys(cell["block"] for cell in table(_RANKED[1][1])))


# ------------------------------------------------------------------------------- two metrics
def changes() -> Iterator[dict[str, Any]]:
    """Compare the ranks by the two metrics on each data set and study, in each part."""
    for part, (first, second) in parts().items():
        for column, pairs in shared(first, second):
            turned, count = reversals(pairs)
            yield {
                **_about(column, TWICE_RANKED, TWICE_RANKED, part),
                "tau": kendall(*map(list, zip(*pairs, strict=True))),
                "pairs": count,
                "reversed": turned,
                "best_by_AURC": _best(first[column]),
                "best_by_AUGRC": _best(second[column]),
            }


def _best(printed: Mapping[str, float]) -> str:
    least = min(printed.values())
    return ", ".join(name for name, rank in printed.items() if rank == least)


def _about(column: PrintedColumn, first: str, second: str, part: str) -> dict[str, Any]:
    return {"table": first, "against": second, "part": part, **column._asdict()}
