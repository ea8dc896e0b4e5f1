"""Inline text, table cells, remarks and glossary entries of a document."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

#: Output formats of `abstain.report.render`.
Format = Literal["html", "terminal", "markdown", "latex", "notebook"]

FORMATS: Final[tuple[Format, ...]] = ("html", "terminal", "markdown", "latex", "notebook")

NAN: Final = math.nan


# --------------------------------------------------------------------------------- inline text
@dataclass(frozen=True)
class Span:
    """Inline text with a kind that determines its style.

    The kinds "good", "bad" and "open" mark the results of checks. The kind "best" marks the best
    value, and the kind "second" underlines the second best value. The kind "undefined" marks a
    missing value, and the kind "small" selects a small font. The kinds "better" and "equal" color
    the cell of a map. The `link` is a URL or an anchor of the document with a leading ``#``.
    """

    text: str
    kind: Literal[
        "plain",
        "strong",
        "em",
        "best",
        "second",
        "code",
        "muted",
        "small",
        "undefined",
        "good",
        "bad",
        "open",
        "better",
        "equal",
    ] = "plain"
    link: str = ""
    tooltip: str = ""


#: Inline text. Renderers escape all inline text, so strings of users are safe.
Text = str | Span | tuple[str | Span, ...]


@dataclass(frozen=True)
class Label:
    """Name of a quantity, such as "AUGRC × 1000 ↓", as a column header or in a row.

    The `direction` states whether lower or higher values are better. Displayed values are
    multiplied by `scale`. The `short_text` replaces the name in a narrow column. The `note` is
    printed in a small font below the name. The index `line` selects the line color of the quantity
    in figures.
    """

    text: str
    direction: Literal["", "lower", "higher"] = ""
    scale: int = 1
    short_text: str = ""
    note: str = ""
    link: str = ""
    tooltip: str = ""
    line: int | None = None

    @property
    def unit(self) -> str:
        """Suffix for values that are multiplied by 1000."""
        return " × 1000" if self.scale > 1 else ""

    @property
    def arrow(self) -> str:
        """Arrow in the direction of better values, or an empty string without a direction."""
        return {"": "", "lower": "\u2193", "higher": "\u2191"}[self.direction]

    @property
    def suffix(self) -> str:
        """Unit and arrow, to append to the name."""
        return f"{self.unit} {self.arrow}".rstrip()


# --------------------------------------------------------------------------------------- cells
#: Format of a number. The formats are defined in `abstain.report.formatting`.
NumberFormat = Literal[
    "number",
    "count",
    "p_value",
    "cases_of_100",
    "rank",
    "two_decimals",
    "three_decimals",
    "four_decimals",
    "six_digits",
    "signed",
    "percent",
]


@dataclass(frozen=True)
class Number:
    """A number in a table, with its interval and its display options.

    If the value is NaN, `reason` explains why the value is undefined. `low` and `high` are the
    bounds of the confidence interval. The displayed number is the value multiplied by `scale`. If
    `per_thousand` is true, the reader of a page can switch to values times 1000.

    The mark "best" highlights the best value. The mark "tie" highlights a value that does not
    differ significantly from the best value. If `is_second` is true, a table in a paper underlines
    the number. The `shade` colors the cell by rank, from 0 (strongest color) to 4.

    The `small_text` is printed in a small font below the number, and the `display_text` replaces
    the formatted number.
    """

    value: float
    low: float = NAN
    high: float = NAN
    standard_error: float = NAN
    number_format: NumberFormat = "number"
    scale: int = 1
    per_thousand: bool = False
    mark: Literal["", "best", "tie"] = ""
    is_second: bool = False
    shade: int | None = None
    small_text: str = ""
    tooltip: str = ""
    reason: str = ""
    display_text: str = ""

    def without_interval(self) -> "Number":
        """Return the number without its confidence interval."""
        return replace(self, low=NAN, high=NAN)


@dataclass(frozen=True)
class Range:
    """A confidence interval or range in a separate column."""

    low: float
    high: float
    number_format: NumberFormat = "number"
    scale: int = 1
    tooltip: str = ""


@dataclass(frozen=True)
class IntervalMark:
    """A value and its interval, drawn as a point and a line on the axis of its column.

    Text formats print the formatted interval `text` instead of a drawing. The kinds "better" and
    "worse" color the point and the line. The numbers of a reference method are NaN, because its
    cell shows only the line at 0.
    """

    value: float
    low: float
    high: float
    text: str
    kind: Literal["", "better", "worse"] = ""


@dataclass(frozen=True)
class Axis:
    """The range, the ticks and the tick labels of the axis of a column of `IntervalMark`.

    The texts `below` and `above` describe negative and positive values.
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    below: str = ""
    above: str = ""

    def fraction(self, value: float) -> float:
        """Return the position of a value, clipped to the axis, as a fraction of the axis length."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


@dataclass(frozen=True)
class Thumbnail:
    """A small image with a caption.

    The `source` is a ``data:`` URL, or an empty string for a missing image.
    """

    source: str
    alt: str
    title: str
    description: str = ""
    small_text: str = ""


#: Content of a table cell, where None is an empty cell.
Cell = Number | Range | IntervalMark | Label | Thumbnail | Text | None


# -------------------------------------------------------------------------------------- tables
@dataclass(frozen=True)
class Column:
    """A column of a table.

    The `kind` states whether the cells contain numbers, names of methods or data sets, long texts
    ("words") or other text. The column with `is_row_header` contains the row names. By default,
    this is the first column.

    A narrow terminal omits columns with `is_droppable`, starting from the right, and prints the
    names of the omitted columns. If `blank_repeats` is true, a terminal leaves a cell blank when
    the cell above has the same content.

    If `detail_level` is "column", a summary omits the column. If it is "intervals", a summary omits
    the intervals of the numbers. On a page, `axis` is the header of a column of `IntervalMark`.
    """

    label: Label | str
    kind: Literal["number", "name", "words", "text"] = "text"
    is_row_header: bool = False
    is_sortable: bool = True
    is_droppable: bool = False
    blank_repeats: bool = False
    detail_level: Literal["", "column", "intervals"] = ""
    axis: Axis | None = None


#: The column with the names of the compared methods.
METHOD_COLUMN = Column("Method", "name")


def number_column(label: str | Label) -> Column:
    """Return a column of numbers."""
    return Column(label, "number")


def interval_column(label: str) -> Column:
    """Return a column of intervals, which readers of a page cannot sort."""
    return Column(label, "number", is_sortable=False)


@dataclass(frozen=True)
class Row:
    """A table row with one cell per column.

    Renderers highlight a row of kind "marked" and indent a row of kind "group". The mapping `tags`
    contains the options that make the row visible, by the name of the control.
    """

    cells: tuple[Cell, ...]
    kind: Literal["", "marked", "group"] = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableRows:
    """Consecutive rows of a table, with an optional title."""

    rows: tuple[Row, ...]
    title: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


# ------------------------------------------------------------------- contents of other blocks
@dataclass(frozen=True)
class Remark:
    """A warning or a note with its location in the data.

    The tuple `similar` contains remarks of the same kind. If `is_about_reading` is true, the remark
    explains how a file was read.
    """

    level: Literal["warning", "note"]
    text: Text
    location: str = ""
    similar: "tuple[Remark, ...]" = ()
    is_about_reading: bool = False


@dataclass(frozen=True)
class GlossaryEntry:
    """A term with its meaning, its source and its `name` in the Python interface."""

    title: str
    meaning: Text
    name: str = ""
    range: str = ""
    source: str = ""


def define_terms(meanings: Mapping[str, Text], **values: object) -> tuple[GlossaryEntry, ...]:
    """Return the glossary entries of some terms.

    The `values` replace the placeholders of the meanings.
    """
    return tuple(
        GlossaryEntry(title, meaning.format(**values) if isinstance(meaning, str) else meaning)
        for title, meaning in meanings.items()
    )


def single_group(rows: Iterable[Sequence[Cell] | Row]) -> tuple[TableRows, ...]:
    """Return the rows of a table as a tuple with one group.

    A row is a `Row` or a sequence of cells.
    """
    return (TableRows(tuple(row if isinstance(row, Row) else Row(tuple(row)) for row in rows)),)


def plain_text(text: Text) -> str:
    """Return inline text as a string, without styles."""
    if isinstance(text, tuple):
        return "".join(map(plain_text, text))
    return text.text if isinstance(text, Span) else text
