"""A document for a terminal: what it says in brief, in as many columns as there are."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Final, Literal

from abstain.plots.words import visible
from abstain.report import document as doc
from abstain.report.words import behind, between, count, number, numeral

if TYPE_CHECKING:
    from rich import table as rich_table
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text as Line

#: Findings printed before the rest is only counted.
_FINDINGS: Final = 8

#: Names get this many columns before they fold; a number that may be left out gets the second.
_NAME_WIDTH, _NUMBER_WIDTH = 13, 8

#: A width at which a table is measured as it wants to be.
_ANY: Final = 1000

#: How numbers and their heads stand: in one line, heads in several, or all in several.
_Look = Literal["wide", "tight", "folded"]

#: What stands before an interval, and the look, in the order in which they are tried: with long
#: words in the table, and without.
_LONG_WAYS: Final[tuple[tuple[str, _Look], ...]] = (("\n", "wide"), ("\n", "tight"))
_WAYS: Final[tuple[tuple[str, _Look], ...]] = ((" ", "wide"), (" ", "tight"), ("\n", "tight"))

_NOTHING, _UNDEFINED = "–", "undef."
_PROSE: Final = {
    "lead": "dim",
    "about": "dim",
    "hint": "dim",
    "notes": "dim",
    "strong": "bold",
    "alarm": "bold red",
}
_SPANS: Final = {
    "strong": "bold",
    "best": "bold",
    "em": "italic",
    "muted": "dim",
    "small": "dim",
    "undefined": "dim",
    "good": "green",
    "bad": "bold red",
}


def terminal(document: doc.Document) -> "RenderableType":
    """Return what a `rich.console.Console` prints."""
    return printed(document.brief())


def printed(several: Iterable[doc.Block]) -> "RenderableType":
    """Return blocks one after another."""
    from rich.console import Group

    return Group(*_blocks(several))


def _blocks(several: Iterable[doc.Block]) -> Iterator[Any]:
    for block in doc.shown_in(several, "terminal"):
        yield from _block(block)


@singledispatch
def _block(block: doc.Block) -> Iterator[Any]:
    """Print a block; one that only a page can show is nothing."""
    del block
    yield from ()


@_block.register
def _prose(block: doc.Prose) -> Iterator[Any]:
    yield inline(block.text, _PROSE.get(block.kind, ""))


@_block.register
def _facts(block: doc.Facts) -> Iterator[Any]:
    yield inline("; ".join(f"{name}: {doc.joined(said)}" for name, said in block.entries), "dim")


@_block.register
def _glossary(block: doc.Glossary) -> Iterator[Any]:
    yield from (inline(f"{one.title}: {doc.joined(one.meaning)}") for one in block.entries)


@_block.register
def _code(block: doc.Code) -> Iterator[Any]:
    yield from map(inline, block.text.splitlines())


@_block.register
def _section(block: doc.Section | doc.Fold) -> Iterator[Any]:
    head = block.title if isinstance(block, doc.Section) else block.summary
    yield from (inline(head, "bold"), *_blocks(block.blocks), inline(""))


@_block.register
def _box(block: doc.Box) -> Iterator[Any]:
    yield from _blocks(block.blocks)


# ---------------------------------------------------------------------------------- inline text
def inline(text: doc.Text, style: str = "") -> "Line":
    """Return words so that no markup is read in them, nor a command by the terminal."""
    from rich.text import Text as Line

    if isinstance(text, tuple):
        line = Line("", style=style)
        for part in text:
            line.append_text(inline(part))
        return line
    if isinstance(text, doc.Span):
        return Line(visible(text.text), style=style or _SPANS.get(text.kind, ""))
    return Line(visible(text), style=style)


def label(name: doc.Label | str, *, short: bool = False) -> str:
    """Return the name of what is measured with its unit and where better is."""
    if isinstance(name, str):
        return name
    return f"{(name.short if short else '') or name.text}{name.ending}"


def narrow(value: float) -> str:
    """Write a number as everywhere, with fewer digits where it would not fit its column."""
    written = number(value)
    if len(written) < _NUMBER_WIDTH:
        return written
    return f"{value:.5f}" if abs(value) >= 1e-3 else f"{value:.2e}"


# -------------------------------------------------------------------------------------- findings
@_block.register
def _findings(block: doc.Findings) -> Iterator[Any]:
    if block.whole:
        each = [one for remark in block.remarks for one in (remark, *remark.more)]
        yield from (_remark(replace(one, more=())) for one in each)
        return
    yield from map(_remark, block.remarks[:_FINDINGS])
    if len(block.remarks) > _FINDINGS:
        rest = len(block.remarks) - _FINDINGS
        yield inline(f"... and {rest} more; the report lists them all.", "dim")


def _remark(remark: doc.Remark) -> "Line":
    warning = remark.level == "warning"
    line = inline("")
    line.append("Warning: " if warning else "Note: ", style="bold yellow" if warning else "bold")
    line.append(inline(f"{remark.place}: " if remark.place else ""))
    line.append(inline(remark.text))
    if remark.more:
        line.append(f" ({len(remark.more)} more like this.)", style="dim")
    return line


# ---------------------------------------------------------------------------------------- tables
@_block.register
def _titled(table: doc.Table) -> Iterator[Any]:
    """Yield a table between its title and what it leaves out, which may be wider than it."""
    if table.title:
        yield inline(table.title, "italic")
    yield _Fitted(table)
    left = max(len(table.rows) - table.most, 0) if table.most else 0
    if left:
        yield inline(f"{count(left)} {table.more}", "dim")


class _Fitted:
    """A table that fits: no number is ever cut, and no name emptied.

    Intervals stand behind the numbers and heads in one line where there is room, and else below
    them and in as many lines as they need; then columns that may be left out go from the right,
    and are named, or something else is shown instead; at last numbers go on in the next line.
    """

    def __init__(self, table: doc.Table) -> None:
        self._table = table

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator[Any]:
        from rich.measure import Measurement

        def fitting(gap: str, look: _Look) -> "rich_table.Table | None":
            # Each is measured once: every cell of it is.
            made = _drawn(self._table, columns, gap=gap, look=look)
            needs = Measurement.get(console, options.update(width=_ANY), made).minimum
            return made if needs <= options.max_width else None

        columns = self._table.shown("terminal")
        left: list[str] = []
        # Beside long words, what stands behind a number leaves them too little room.
        long = any(self._table.columns[i].kind == "words" for i in columns)
        ways = _LONG_WAYS if long else _WAYS
        made = next(filter(None, (fitting(*way) for way in ways)), None)
        if made is None and self._table.instead:
            yield from _blocks(self._table.instead)
            return
        while made is None and self._table.columns[columns[-1]].drop and len(columns) > 2:
            dropped = self._table.columns[columns.pop()].label
            left.insert(0, dropped if isinstance(dropped, str) else dropped.text)
            made = fitting("\n", "tight")
        yield made or _drawn(self._table, columns, gap="\n", look="folded")
        if left:
            yield inline(f"Too narrow to show: {', '.join(left)}.", "dim")


def _drawn(
    table: doc.Table, columns: Sequence[int], *, gap: str, look: _Look = "wide"
) -> "rich_table.Table":
    from rich import box
    from rich.table import Table as RichTable

    parts = sum(table.columns[i].once and table.columns[i].kind == "name" for i in columns)
    made = RichTable(
        box=box.SIMPLE_HEAD,
        padding=(0, 0 if parts else 1),
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
    )
    for i in columns:
        if table.columns[i].kind == "number":
            _add_numbers(made, table, i, gap, look)
        else:
            _add_words(made, table, i, parts)
    rows = table.rows[: table.most or None]
    starts = {id(group.rows[0]): group.title for group in table.groups[1:] if group.rows}
    last: doc.Row | None = None
    for row in rows:
        if id(row) in starts:
            made.add_section()
        made.add_row(*(_cell(table, i, row, last, gap) for i in columns))
        last = row
    return made


def _add_numbers(made: "rich_table.Table", table: doc.Table, i: int, gap: str, look: _Look) -> None:
    column = table.columns[i]
    head = inline(label(column.label, short=True))
    # What may be left out is as wide as a number, its head in as many lines as it needs.
    width = _NUMBER_WIDTH if column.drop else _needed(table, i, head.plain, gap, look)
    made.add_column(head, justify="right", width=width, overflow="fold")


def _needed(table: doc.Table, i: int, head: str, gap: str, look: _Look) -> int | None:
    """Return how wide a column of numbers must be that none is cut."""
    if look == "folded":
        return None
    parts = [head] if look == "wide" else head.split()
    for row in table.rows[: table.most or None]:
        said = _cell(table, i, row, None, gap).plain
        # An interval may go on in the next line, a number may not.
        ends = isinstance(row.cells[i], doc.Range) and gap == "\n"
        parts += said.split() if ends else said.split("\n")
    return max(map(len, parts), default=1)


def _add_words(made: "rich_table.Table", table: doc.Table, i: int, parts: int) -> None:
    column = table.columns[i]
    head = inline(label(column.label, short=True))
    style = "dim" if column.kind == "words" else ""
    least = None
    if column.kind == "name":
        longest = max((len(visible(joined_cell(row.cells[i]))) for row in table.rows), default=1)
        least = min(longest, _NAME_WIDTH // parts if column.once else _NAME_WIDTH)
    made.add_column(head, overflow="fold", style=style, min_width=least)


def joined_cell(cell: doc.Cell) -> str:
    """Return the words of a cell; nothing of a number."""
    if cell is None or isinstance(cell, doc.Number | doc.Range):
        return ""
    return label(cell) if isinstance(cell, doc.Label) else doc.joined(cell)


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
