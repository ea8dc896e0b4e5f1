"""Inline text and tables for a terminal. Tables fit the width of the terminal."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from abstain.plots.formatting import escape_control_characters
from abstain.report import document as doc
from abstain.report.formatting import (
    NARROW_WIDTH,
    format_interval,
    format_narrow_number,
    number_annotations,
    number_text,
)

if TYPE_CHECKING:
    from rich import table as rich_table
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text as Line

#: Width of a name column before names are wrapped, in characters.
_MAX_NAME_WIDTH: Final = 13

#: Layouts in the order of preference, as the separator before an interval and whether headers are
#: wrapped. In tables with long text, intervals are always on a new line.
_LAYOUTS_WITH_LONG_TEXT: Final = (("\n", False), ("\n", True))
_LAYOUTS: Final = ((" ", False), (" ", True), ("\n", True))

#: Maximum number of rows of a table whose excess columns are printed below the table. Longer tables
#: omit the excess columns.
_MAX_STACKED_ROWS: Final = 12

#: Maximum number of columns that identify a row.
_MAX_KEY_COLUMNS: Final = 3

_EMPTY_CELL, _UNDEFINED = "–", "undef."


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


def inline(text: doc.Text, style: str = "") -> "Line":
    """Return inline text in which markup and control characters of terminals have no effect."""
    from rich.text import Text as Line

    if isinstance(text, tuple):
        line = Line("", style=style)
        for part in text:
            line.append_text(inline(part))
        return line
    if isinstance(text, doc.Span):
        return Line(escape_control_characters(text.text), style=style or _SPANS.get(text.kind, ""))
    return Line(escape_control_characters(text), style=style)


def label(name: doc.Label | str, *, use_short_text: bool = False) -> str:
    """Return a label with its unit and the arrow in the direction of better values."""
    if isinstance(name, str):
        return name
    return f"{(name.short_text if use_short_text else '') or name.text}{name.suffix}"


class FittedTable:
    """A table that is fitted to the width of the terminal, without truncated numbers or names.

    In a wide terminal, intervals follow the numbers and headers have one line. In a narrow
    terminal, intervals are below the numbers and headers are wrapped.

    If the table is still too wide, its `alternative` is printed instead. If there is no
    alternative, columns with equal cells are printed once above the table, long names are wrapped,
    and droppable columns are omitted, starting from the right.

    Other columns that do not fit are printed in a second table, or omitted if the table has many
    rows. The names of omitted columns are printed below the table.
    """

    def __init__(self, table: doc.Table, alternative: "RenderableType | None" = None) -> None:
        self._table, self._instead = table, alternative

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator[Any]:
        """Yield the table, its alternative or a reduced table, depending on the width."""
        table, width = self._table, options.max_width
        columns = list(range(len(table.columns)))
        layout = _find_layout(table, columns, width)
        if layout is None and self._instead is not None:
            yield self._instead
        elif layout is None:
            yield from _reduced_table(table, columns, width)
        else:
            yield layout.to_rich_table(width)


def _reduced_table(table: doc.Table, columns: list[int], width: int) -> Iterator[Any]:
    """Yield the reduced table and the text with the omitted columns."""
    constant_columns = _constant_columns(table, columns)
    if constant_columns:
        descriptions = []
        for i in constant_columns:
            cell = _cell_line(table, i, table.rows[0], None, " ")
            descriptions.append(f"{_column_name(table, i)} {cell.plain}")
        yield inline(f"In all rows: {'; '.join(descriptions)}.", "dim")
    columns = [i for i in columns if i not in constant_columns]
    can_stack = len(table.rows) <= _MAX_STACKED_ROWS
    omitted: list[str] = []
    layout = _find_layout(table, columns, width, can_fold_names=True)
    while layout is None and len(columns) > 2:
        is_droppable = table.columns[columns[-1]].is_droppable
        if can_stack and not is_droppable:
            break
        omitted.insert(0, _column_name(table, columns.pop()))
        layout = _find_layout(table, columns, width, can_fold_names=True)
    if layout is None:
        yield from _stacked_tables(table, columns, width)
    else:
        yield layout.to_rich_table(width)
    if omitted:
        noun = "columns" if len(omitted) > 1 else "column"
        names = ", ".join(omitted)
        text = f"Omitted {len(omitted)} {noun}: {names}. Use a wider terminal or --out."
        yield inline(text, "dim")


def _stacked_tables(table: doc.Table, columns: Sequence[int], width: int) -> Iterator[Any]:
    """Yield several narrow tables that together contain all columns.

    Each table starts with the columns that identify a row.
    """
    key_columns = _key_columns(table, columns)
    remaining = [i for i in columns if i not in key_columns]
    while remaining:
        layout = None
        n_columns = len(remaining)
        while layout is None and n_columns > 0:
            selected = [*key_columns, *remaining[:n_columns]]
            layout = _find_layout(table, selected, width, can_fold_names=True)
            n_columns -= 1
        if layout is None:
            # The terminal is too narrow for any column next to the key columns.
            yield _Layout(table, tuple(columns), "\n", wraps_headers=True).to_rich_table(None)
            return
        yield layout.to_rich_table(width)
        remaining = [i for i in remaining if i not in layout.columns]
        if remaining:
            yield inline("")


def _constant_columns(table: doc.Table, columns: Sequence[int]) -> list[int]:
    """Return the columns whose cells are all equal, if at least two other columns remain."""
    rows = table.rows
    constant = [i for i in columns if all(row.cells[i] == rows[0].cells[i] for row in rows[1:])]
    return constant if len(rows) > 1 and len(columns) - len(constant) > 1 else []


def _key_columns(table: doc.Table, columns: Sequence[int]) -> list[int]:
    """Return the first columns that identify a row, or all columns before the numbers."""
    # A row of kind "group" belongs to the row above that is not of this kind.
    parent_names: list[str] = []
    for row in table.rows:
        belongs_to_previous = row.kind == "group" and parent_names
        name = parent_names[-1] if belongs_to_previous else str(row.cells[columns[0]])
        parent_names.append(name)
    for n_columns in range(1, min(_MAX_KEY_COLUMNS, len(columns) - 1) + 1):
        keys = {
            (name, *(str(row.cells[i]) for i in columns[:n_columns]))
            for name, row in zip(parent_names, table.rows, strict=True)
        }
        if len(keys) == len(table.rows):
            return list(columns[:n_columns])
    text_columns = list(takewhile(lambda i: table.columns[i].kind != "number", columns[:-1]))
    return text_columns or list(columns[:1])


def _column_name(table: doc.Table, i: int) -> str:
    """Return the name of a column for a sentence."""
    label = table.columns[i].label
    return label if isinstance(label, str) else label.text


# ------------------------------------------------------------------------------------- a layout
def _find_layout(
    table: doc.Table, columns: Sequence[int], width: int, *, can_fold_names: bool = False
) -> "_Layout | None":
    """Return the widest layout that fits, or None if no layout fits.

    Layouts with wrapped names are allowed only if `can_fold_names` is true.
    """
    has_long_text = any(table.columns[i].kind == "words" for i in columns)
    layout_options = _LAYOUTS_WITH_LONG_TEXT if has_long_text else _LAYOUTS
    candidates = [
        _Layout(table, tuple(columns), gap, wraps_headers=tight) for gap, tight in layout_options
    ]
    if can_fold_names:
        candidates.append(
            _Layout(table, tuple(columns), "\n", wraps_headers=True, folds_names=True)
        )
    return next((layout for layout in candidates if layout.min_width <= width), None)


@dataclass(frozen=True)
class _Layout:
    """A layout of a table with the selected columns.

    The `separator` precedes an interval. If `wraps_headers` is true, headers can have several
    lines. If `folds_names` is true, long names can have several lines.
    """

    table: doc.Table
    columns: tuple[int, ...]
    separator: str
    wraps_headers: bool
    folds_names: bool = False

    @cached_property
    def cells(self) -> "list[list[Line]]":
        """Lines of text of each cell, for each row."""
        rows = self.table.rows
        previous_rows = [None, *rows[:-1]]
        return [
            [_cell_line(self.table, i, row, previous, self.separator) for i in self.columns]
            for row, previous in zip(rows, previous_rows, strict=True)
        ]

    @cached_property
    def headers(self) -> "list[Line]":
        """Headers of the columns."""
        return [
            inline(label(self.table.columns[i].label, use_short_text=True)) for i in self.columns
        ]

    @property
    def _n_split_columns(self) -> int:
        """Number of columns at the left that identify a row."""
        columns = (self.table.columns[i] for i in self.columns)
        return sum(column.blank_repeats and column.kind == "name" for column in columns)

    @cached_property
    def widths(self) -> list[tuple[int, int]]:
        """Minimum and maximum width of each column, in characters."""
        return [self._column_width_range(position) for position in range(len(self.columns))]

    @property
    def min_width(self) -> int:
        """Minimum width of the table."""
        return sum(min_width for min_width, _ in self.widths) + self._total_padding

    @property
    def _total_padding(self) -> int:
        return (1 if self._n_split_columns else 2) * (len(self.columns) - 1)

    def _column_width_range(self, position: int) -> tuple[int, int]:
        """Return the minimum and the maximum width of a column, in characters."""
        from rich.cells import cell_len

        column, header = self.table.columns[self.columns[position]], self.headers[position].plain
        if column.kind == "number":
            # Droppable columns have a fixed width, and their headers are wrapped.
            width = NARROW_WIDTH if column.is_droppable else self._number_column_width(position)
            return width, width
        texts = [header, *(row[position].plain for row in self.cells)]
        max_width = max((cell_len(line) for text in texts for line in text.split("\n")), default=1)
        min_width = max((cell_len(word) for text in texts for word in text.split()), default=1)
        if column.kind == "name":
            name_width = _MAX_NAME_WIDTH
            if column.blank_repeats:
                name_width //= self._n_split_columns
            name_width = max(name_width, *map(cell_len, header.split()), 1)
            if self.folds_names:
                min_width = min(min_width, name_width)
            else:
                min_width = max(min_width, min(max_width, name_width))
        return max(min_width, 1), max(max_width, 1)

    def _number_column_width(self, position: int) -> int:
        """Return the smallest width of a number column in which no number is truncated."""
        i, header = self.columns[position], self.headers[position].plain
        lines = header.split() if self.wraps_headers else [header]
        for row, cells in zip(self.table.rows, self.cells, strict=False):
            text = cells[position].plain
            # Intervals can be wrapped, but numbers cannot.
            can_wrap = isinstance(row.cells[i], doc.Range) and self.separator == "\n"
            lines += text.split() if can_wrap else text.split("\n")
        return max(map(len, lines), default=1)

    def to_rich_table(self, width: int | None) -> "rich_table.Table":
        """Return the table with at most the given width, or None if it does not fit."""
        from rich import box
        from rich.table import Table as RichTable

        rich_table = RichTable(
            box=box.SIMPLE_HEAD,
            padding=(0, 0 if self._n_split_columns else 1),
            collapse_padding=True,
            pad_edge=False,
            show_edge=False,
        )
        widths = [None] * len(self.columns) if width is None else self._distribute_width(width)
        for i, header, column_width in zip(self.columns, self.headers, widths, strict=True):
            kind = self.table.columns[i].kind
            rich_table.add_column(
                header,
                justify="right" if kind == "number" else "left",
                style="dim" if kind == "words" else "",
                width=column_width,
                overflow="fold",
            )
        rows = self.table.rows
        group_starts = {id(group.rows[0]) for group in self.table.groups[1:] if group.rows}
        for row, cells in zip(rows, self.cells, strict=True):
            if id(row) in group_starts:
                rich_table.add_section()
            rich_table.add_row(*cells)
        return rich_table

    def _distribute_width(self, total_width: int) -> list[int]:
        """Return the column widths.

        If there is space, the columns whose cells have the most lines become wider.
        """
        widths = [min_width for min_width, _ in self.widths]
        max_widths = [max_width for _, max_width in self.widths]

        def priority(i: int) -> tuple[int, int]:
            n_lines = math.ceil(max_widths[i] / widths[i])
            missing_width = max_widths[i] - widths[i]
            return n_lines, -missing_width

        for _ in range(total_width - self.min_width):
            too_narrow = [i for i, max_width in enumerate(max_widths) if widths[i] < max_width]
            if not too_narrow:
                break
            widths[max(too_narrow, key=priority)] += 1
        return widths


# -------------------------------------------------------------------------------------- a cell
def _repeats_row(table: doc.Table, row: doc.Row, previous: doc.Row) -> bool:
    """Return whether a row equals the previous row in all columns with `blank_repeats`."""
    columns = [i for i, column in enumerate(table.columns) if column.blank_repeats]
    return all(row.cells[i] == previous.cells[i] for i in columns)


def _cell_line(
    table: doc.Table, i: int, row: doc.Row, previous: doc.Row | None, separator: str
) -> "Line":
    """Return the content of a cell as text, or empty text if the cell repeats the cell above."""
    column, cell = table.columns[i], row.cells[i]
    if column.blank_repeats and previous is not None and _repeats_row(table, row, previous):
        return inline("")
    if isinstance(cell, doc.Number):
        return _number_line(cell, separator)
    if cell is None:
        return inline(_EMPTY_CELL, "dim")
    if isinstance(cell, doc.Range):
        interval = format_interval(cell.low, cell.high, cell.number_format, scale=cell.scale)
        cell = interval or _EMPTY_CELL
    elif isinstance(cell, doc.IntervalMark):
        cell = cell.text or _EMPTY_CELL
    elif isinstance(cell, doc.Thumbnail):
        cell = cell.alt
    line = inline(label(cell) if isinstance(cell, doc.Label) else cell)
    if isinstance(cell, doc.Label) and cell.note:
        line.append(f" ({escape_control_characters(cell.note)})", style="dim")
    if row.kind == "group" and column.kind == "name":
        indented = inline("  ")
        indented.append_text(line)
        return indented
    return line


def _number_line(cell: doc.Number, separator: str) -> "Line":
    """Format a number with its annotations."""
    if math.isnan(cell.value) and not cell.display_text:
        return inline(_UNDEFINED, "dim")
    is_default_format = cell.number_format == "number" and cell.scale == 1
    if is_default_format and not cell.display_text:
        text = format_narrow_number(cell.value)
    else:
        text = number_text(cell)
    line = inline(text, "bold" if cell.mark == "best" else "")
    if cell.mark == "tie":
        line.append(" ≈")
    for annotation in number_annotations(cell):
        text = f"{separator}{escape_control_characters(annotation)}"
        line.append(text, style="dim not bold")
    return line
