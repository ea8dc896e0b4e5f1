"""Where the headline numbers may lie on new data, as a table for a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from abstain.report._terminal_parts import empty_table, split_columns, text
from abstain.report.pivot import Pivot
from abstain.report.words import arrow, interval_range, percent, short_title

if TYPE_CHECKING:
    from rich.table import Table

#: The metrics whose intervals are printed first, where they were computed.
_FIRST = ("accuracy", "augrc", "aurc")

#: So many fit beside the names.
_MOST = 3


def intervals_table(found: Pivot) -> "list[Table]":
    """Return the table, or nothing when no number has an interval."""
    with_interval = {r.metric for r in found.results.values() if r.interval}
    wanted = dict.fromkeys([*_FIRST, *found.headline, *found.metrics])
    names = [name for name in wanted if name in with_interval]
    return [_table(found, names[:_MOST])] if names else []


def _table(found: Pivot, names: Sequence[str]) -> "Table":
    columns = split_columns(found)
    level = next(r.level for r in found.results.values() if r.interval)
    table = empty_table(f"{percent(level)} intervals: where the numbers may lie on new data")
    for column in [*columns, "Score"]:
        table.add_column(text(column), overflow="fold")
    for name in names:
        sample = next(r for r in found.results.values() if r.metric == name)
        table.add_column(text(f"{short_title(name)} {arrow(sample)}"), justify="right")
    last = None
    for split, score in found.pairs():
        known = dict(split) if split != last else {}
        cells = [found.results.get((split, score, name)) for name in names]
        shown = [text(interval_range(r) or "-" if r is not None else "-") for r in cells]
        table.add_row(*(text(known.get(column, "")) for column in columns), text(score), *shown)
        last = split
    return table
