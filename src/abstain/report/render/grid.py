"""A table for a terminal, laid out for as many columns as there are."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from abstain.plots.words import visible
from abstain.report import document as doc
from abstain.report.render.lines import NUMBER_WIDTH, inline, label, narrow
from abstain.report.words import behind, between, numeral

if TYPE_CHECKING:
    from rich import table as rich_table
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text as Line

#: Names get this many columns before they fold.
_NAME_WIDTH: Final = 13

#: What stands before an interval, and whether heads take several lines, in the order in which they
#: are tried: with long words in the table, beside which nothing else has room, and without.
_LONG_WAYS: Final = (("\n", False), ("\n", True))
_WAYS: Final = ((" ", False), (" ", True), ("\n", True))

#: Of so many rows what has no room stands below; of more it is left out.
_STACKED: Final = 12

#: So many of the first columns tell the rows apart, at most.
_TELLING: Final = 3

_NOTHING, _UNDEFINED = "–", "undef."


class FittedTable:
    """A table that fits: no number is ever cut, and no name or head emptied.

    Intervals stand behind the numbers and heads in one line where there is room, and else below
    them and in as many lines as they need. Where that is too wide, something else is shown
    `instead`, or: what all rows have in common is said once above them, long names go on in the
    next line, and columns that may be left out go from the right. What still has no room stands
    below, beside the names of the rows once more, or of many rows is left out too. Whatever is left
    out is named.
    """

    def __init__(self, table: doc.Table, instead: "RenderableType | None" = None) -> None:
        self._table, self._instead = table, instead

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator[Any]:
        table, room = self._table, options.max_width
        columns = list(range(len(table.columns)))
        made = _fitting(table, columns, room)
        if made is None and self._instead is not None:
            yield self._instead
        elif made is None:
            yield from _fitted(table, columns, room)
        else:
            yield made.drawn(room)


def _fitted(table: doc.Table, columns: list[int], room: int) -> Iterator[Any]:
    """Yield what a table says that has no room as it is."""
    if same := _same(table, columns):
        first = table.rows[0]
        said = (f"{_called(table, i)} {_cell(table, i, first, None, ' ').plain}" for i in same)
        yield inline(f"In every row: {'; '.join(said)}.", "dim")
    columns = [i for i in columns if i not in same]
    few = len(table.rows) <= _STACKED
    left: list[str] = []
    made = _fitting(table, columns, room, folded=True)
    while made is None and len(columns) > 2 and not (few and not table.columns[columns[-1]].drop):
        left.insert(0, _called(table, columns.pop()))
        made = _fitting(table, columns, room, folded=True)
    yield from _stacked(table, columns, room) if made is None else [made.drawn(room)]
    if left:
        many = f"{len(left)} column{'s' if len(left) > 1 else ''}"
        named = f"Too narrow to show {many}: {', '.join(left)}"
        yield inline(f"{named} (in a wider terminal, and in the files of --out).", "dim")


def _stacked(table: doc.Table, columns: Sequence[int], room: int) -> Iterator[Any]:
    """Yield as many columns as fit beside the names of the rows, and the others below."""
    lead = _telling(table, columns)
    rest = [i for i in columns if i not in lead]
    while rest:
        tried = (
            _fitting(table, [*lead, *rest[:n]], room, folded=True) for n in range(len(rest), 0, -1)
        )
        made = next(filter(None, tried), None)
        if made is None:
            # Not even one has room beside the names: nothing is whole in so few columns.
            yield _Layout(table, tuple(columns), "\n", tight=True).drawn(None)
            return
        yield made.drawn(room)
        rest = [i for i in rest if i not in made.columns]
        if rest:
            yield inline("")


def _same(table: doc.Table, columns: Sequence[int]) -> list[int]:
    """Return the columns that say one thing in all of several rows, unless that is all of them."""
    rows = table.rows
    found = [i for i in columns if all(row.cells[i] == rows[0].cells[i] for row in rows[1:])]
    return found if len(rows) > 1 and len(columns) - len(found) > 1 else []


def _telling(table: doc.Table, columns: Sequence[int]) -> list[int]:
    """Return the fewest first columns that tell the rows apart, or all before the numbers."""
    for many in range(1, min(_TELLING, len(columns) - 1) + 1):
        told = {tuple(str(row.cells[i]) for i in columns[:many]) for row in table.rows}
        if len(told) == len(table.rows):
            return list(columns[:many])
    words = list(takewhile(lambda i: table.columns[i].kind != "number", columns[:-1]))
    return words or list(columns[:1])


def _called(table: doc.Table, i: int) -> str:
    """Return what a column is called in a sentence."""
    named = table.columns[i].label
    return named if isinstance(named, str) else named.text


# ------------------------------------------------------------------------------------- a layout
def _fitting(
    table: doc.Table, columns: Sequence[int], room: int, *, folded: bool = False
) -> "_Layout | None":
    """Return the widest layout that fits; `folded` lets long names go on in the next line."""
    long = any(table.columns[i].kind == "words" for i in columns)
    ways = _LONG_WAYS if long else _WAYS
    tried = [_Layout(table, tuple(columns), gap, tight=tight) for gap, tight in ways]
    if folded:
        tried.append(_Layout(table, tuple(columns), "\n", tight=True, folded=True))
    return next((made for made in tried if made.least_room <= room), None)


@dataclass(frozen=True)
class _Layout:
    """Some columns of a table in one look.

    `gap` is what stands before an interval, a `tight` head takes as many lines as it needs, and
    `folded` names are broken.
    """

    table: doc.Table
    columns: tuple[int, ...]
    gap: str
    tight: bool
    folded: bool = False

    @cached_property
    def cells(self) -> "list[list[Line]]":
        """The cells of the rows that are shown, row by row."""
        rows = self.table.rows
        above = [None, *rows]
        return [
            [_cell(self.table, i, row, last, self.gap) for i in self.columns]
            for row, last in zip(rows, above, strict=False)
        ]

    @cached_property
    def heads(self) -> "list[Line]":
        """The heads of the columns."""
        return [inline(label(self.table.columns[i].label, short=True)) for i in self.columns]

    @property
    def _parts(self) -> int:
        """How many columns name the parts of the data."""
        each = (self.table.columns[i] for i in self.columns)
        return sum(column.once and column.kind == "name" for column in each)

    @cached_property
    def widths(self) -> list[tuple[int, int]]:
        """How wide each column must be and would be."""
        return [self._width(place) for place in range(len(self.columns))]

    @property
    def least_room(self) -> int:
        """How wide the whole must be."""
        return sum(least for least, _ in self.widths) + self._between

    @property
    def _between(self) -> int:
        return (1 if self._parts else 2) * (len(self.columns) - 1)

    def _width(self, place: int) -> tuple[int, int]:
        from rich.cells import cell_len

        column, head = self.table.columns[self.columns[place]], self.heads[place].plain
        if column.kind == "number":
            # What may be left out is as wide as a number, its head in as many lines as it needs.
            needed = NUMBER_WIDTH if column.drop else self._needed(place)
            return needed, needed
        said = [head, *(row[place].plain for row in self.cells)]
        lines = [cell_len(line) for words in said for line in words.split("\n")]
        words = [cell_len(word) for words in said for word in words.split()]
        longest, least = max(lines, default=1), max(words, default=1)
        if column.kind == "name":
            cap = _NAME_WIDTH // self._parts if column.once else _NAME_WIDTH
            cap = max(cap, *map(cell_len, head.split()), 1)
            least = min(least, cap) if self.folded else max(least, min(longest, cap))
        return max(least, 1), max(longest, 1)

    def _needed(self, place: int) -> int:
        """Return how wide a column of numbers must be that none is cut."""
        i, head = self.columns[place], self.heads[place].plain
        parts = head.split() if self.tight else [head]
        for row, cells in zip(self.table.rows, self.cells, strict=False):
            said = cells[place].plain
            # An interval may go on in the next line, a number may not.
            ends = isinstance(row.cells[i], doc.Range) and self.gap == "\n"
            parts += said.split() if ends else said.split("\n")
        return max(map(len, parts), default=1)

    def drawn(self, room: int | None) -> "rich_table.Table":
        """Return the table; without a room that it fits into, as well as it can be."""
        from rich import box
        from rich.table import Table as RichTable

        made = RichTable(
            box=box.SIMPLE_HEAD,
            padding=(0, 0 if self._parts else 1),
            collapse_padding=True,
            pad_edge=False,
            show_edge=False,
        )
        fixed = [None] * len(self.columns) if room is None else self._spread(room)
        for i, head, width in zip(self.columns, self.heads, fixed, strict=True):
            kind = self.table.columns[i].kind
            made.add_column(
                head,
                justify="right" if kind == "number" else "left",
                style="dim" if kind == "words" else "",
                width=width,
                overflow="fold",
            )
        rows = self.table.rows
        starts = {id(group.rows[0]) for group in self.table.groups[1:] if group.rows}
        for row, cells in zip(rows, self.cells, strict=True):
            if id(row) in starts:
                made.add_section()
            made.add_row(*cells)
        return made

    def _spread(self, room: int) -> list[int]:
        """Return the widths: what is left goes where a cell takes most lines, and nearly fewer."""
        found = [least for least, _ in self.widths]
        wanted = [most for _, most in self.widths]

        def pressing(i: int) -> tuple[int, int]:
            return math.ceil(wanted[i] / found[i]), found[i] - wanted[i]

        for _ in range(room - self.least_room):
            short = [i for i, most in enumerate(wanted) if found[i] < most]
            if not short:
                break
            found[max(short, key=pressing)] += 1
        return found


# -------------------------------------------------------------------------------------- a cell
def _repeats(table: doc.Table, row: doc.Row, last: doc.Row) -> bool:
    """Tell whether a row says again what those columns of the row above it say."""
    once = [i for i, column in enumerate(table.columns) if column.once]
    return all(row.cells[i] == last.cells[i] for i in once)


def _cell(table: doc.Table, i: int, row: doc.Row, last: doc.Row | None, gap: str) -> "Line":
    column, cell = table.columns[i], row.cells[i]
    if column.once and last is not None and _repeats(table, row, last):
        return inline("")
    if isinstance(cell, doc.Number):
        return _number(cell, gap)
    if isinstance(cell, doc.Range):
        return inline(between(cell.low, cell.high, cell.form, scale=cell.scale) or _NOTHING)
    if cell is None:
        return inline(_NOTHING, "dim")
    if isinstance(cell, doc.Shot):
        return inline(cell.alt)
    shown: Any = inline(label(cell)) if isinstance(cell, doc.Label) else inline(cell)
    return (
        inline("  ").append_text(shown) if row.kind == "group" and column.kind == "name" else shown
    )


def _number(cell: doc.Number, gap: str) -> "Line":
    """Write a number with its small words behind or below it."""
    if math.isnan(cell.value) and not cell.said:
        return inline(_UNDEFINED, "dim")
    plain = cell.form == "number" and cell.scale == 1
    text = narrow(cell.value) if plain and not cell.said else numeral(cell)
    shown = inline(text, "bold" if cell.stands == "best" else "")
    if cell.stands == "tie":
        shown.append(" ≈")
    for words in behind(cell):
        shown.append(f"{gap}{visible(words)}", style="dim not bold")
    return shown
