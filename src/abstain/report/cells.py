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

    The kinds "good", "bad" and "open" mark passed, failed and inconclusive checks. The kind "best"
    prints the best value in bold, and the kind "second" underlines the second best value. The kind
    "undefined" marks a missing value, and the kind "small" selects a small font. The kinds "better"
    and "equal" color the cell of a map. The `link` is a URL or an anchor of the document with a
    leading ``#``.
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
    """Name of a quantity, such as "AUGRC × 1000 ↓", for a column header or a row.

    The `direction` states whether lower or higher values are better. Displayed values are
    multiplied by `scale`. The `short_text` replaces the name in a narrow column. The `note` is
    printed in a small font below the name. The number `line` selects the color of the quantity in
    figures.
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
        """Arrow that states whether higher or lower values are better, or an empty string."""
        return {"": "", "lower": "\u2193", "higher": "\u2191"}[self.direction]

    @property
    def suffix(self) -> str:
        """Unit and arrow, which follow the name."""
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
    `per_thousand` is true, readers of an HTML page can display the value times 1000.

    The mark "best" highlights the best value. The mark "tie" highlights a value that does not
    differ significantly from the best value. If `is_second` is true, tables for papers underline
    the number. The `shade` is the color of the cell, from 0 (strongest color) to 4.

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
    """A value and its interval, which are drawn as a point and a line.

    Text formats print `text`, which contains the formatted interval. The kinds "better" and "worse"
    color the point and the line. For a reference method, the numbers are NaN, and the cell contains
    only the line at 0.
    """

    value: float
    low: float
    high: float
    text: str
    kind: Literal["", "better", "worse"] = ""


@dataclass(frozen=True)
class Axis:
    """Axis of a table column with intervals.

    The texts `below` and `above` state the meaning of negative and positive values.
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
    ("words") or other text. If `is_row_header` is true, the column contains the row names. By
    default, the first column contains the row names.

    If `is_droppable` is true, a narrow terminal may omit the column. If `blank_repeats` is true, a
    terminal leaves a cell blank when the cell above has the same content.

    If `detail_level` is "column", short reports omit the column. If `detail_level` is "intervals",
    short reports omit the intervals of its numbers. HTML pages print `axis` as the header of a
    column with intervals.
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
    """Return a column of intervals, by which a table cannot be sorted."""
    return Column(label, "number", is_sortable=False)


@dataclass(frozen=True)
class Row:
    """A table row with one cell per column.

    Rows of kind "marked" are highlighted, and rows of kind "group" are indented. For each control
    of the page, `tags` contains the options for which the row is visible.
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

    The tuple `similar` contains remarks of the same kind that are not printed separately. If
    `is_about_reading` is true, the remark explains how a file was read.
    """

    level: Literal["warning", "note"]
    text: Text
    location: str = ""
    similar: "tuple[Remark, ...]" = ()
    is_about_reading: bool = False


@dataclass(frozen=True)
class GlossaryEntry:
    """A term with its definition, its source and its `name` in Python."""

    title: str
    meaning: Text
    name: str = ""
    range: str = ""
    source: str = ""


def define_terms(meanings: Mapping[str, Text], **values: object) -> tuple[GlossaryEntry, ...]:
    """Return the glossary entries of the given terms.

    The `values` are inserted into the definitions.
    """
    return tuple(
        GlossaryEntry(title, meaning.format(**values) if isinstance(meaning, str) else meaning)
        for title, meaning in meanings.items()
    )


def single_group(rows: Iterable[Sequence[Cell] | Row]) -> tuple[TableRows, ...]:
    """Return a single group of the given rows.

    A row is a `Row` or a sequence of cells.
    """
    return (TableRows(tuple(row if isinstance(row, Row) else Row(tuple(row)) for row in rows)),)


def plain_text(text: Text) -> str:
    """Return inline text as a string without styles."""
    if isinstance(text, tuple):
        return "".join(map(plain_text, text))
    return text.text if isinstance(text, Span) else text
