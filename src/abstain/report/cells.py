"""Contents of blocks: inline text, table cells, remarks and glossary entries."""

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

    The kinds "good", "bad" and "open" are check results; "best" marks the best value, "second"
    underlines the second best, "undefined" marks a missing value, and "small" small print. "better"
    and "equal" color the cell of a map. `link` is a URL or, with a leading ``#``, an anchor of the
    document.
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


#: Inline text. The renderer escapes it, so strings of users are safe.
Text = str | Span | tuple[str | Span, ...]


@dataclass(frozen=True)
class Label:
    """Name of a quantity, such as "AUGRC × 1000 ↓", as a column header or in a row.

    `direction` says whether lower or higher values are better, `scale` is the factor by which the
    values are multiplied, `short_text` fits a narrow column, and `note` is small print below the
    name. `line` is the index of the color of its line in the figures.
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
        """Arrow in the direction of better values; empty without a direction."""
        return {"": "", "lower": "\u2193", "higher": "\u2191"}[self.direction]

    @property
    def suffix(self) -> str:
        """Unit and arrow, to append to the name."""
        return f"{self.unit} {self.arrow}".rstrip()


# --------------------------------------------------------------------------------------- cells
#: How a number is formatted; see `abstain.report.formatting.format_value`.
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

    A value of NaN is undefined, for the given `reason`. `low` and `high` are the bounds of its
    confidence interval. `scale` is the factor by which it is multiplied for display;
    with `per_thousand`, the reader of a page can switch to values times 1000. `mark` is "best" or
    "tie" (not significantly different from the best), and a table of a paper underlines the number
    with `is_second`. `shade` colors the cell by rank, from 0
    (strongest) to 4. `small_text` is small print below the number, and `display_text` replaces the
    formatted number.
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

    `text` is the formatted interval, which text formats print. "better" and "worse" color the mark.
    A reference has only the line at 0, so its numbers are NaN.
    """

    value: float
    low: float
    high: float
    text: str
    kind: Literal["", "better", "worse"] = ""


@dataclass(frozen=True)
class Axis:
    """The axis of a column of `IntervalMark`: its range, and its ticks with their labels.

    `below` and `above` describe the values on both sides of 0.
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    below: str = ""
    above: str = ""

    def fraction(self, value: float) -> float:
        """Return the position of a value as a fraction of the axis; values outside are clipped."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


@dataclass(frozen=True)
class Thumbnail:
    """A small image with a caption; `source` is a ``data:`` URL, or empty if there is no image."""

    source: str
    alt: str
    title: str
    description: str = ""
    small_text: str = ""


#: Content of a table cell; None for an empty cell.
Cell = Number | Range | IntervalMark | Label | Thumbnail | Text | None


# -------------------------------------------------------------------------------------- tables
@dataclass(frozen=True)
class Column:
    """A column of a table.

    `kind` is the type of its cells: numbers, names (of methods or data sets), long texts
    ("words"), or other text. The column with `is_row_header` names the rows (the first column by
    default). A narrow terminal omits columns with `is_droppable`, from the right, and lists their
    names. `blank_repeats` blanks cells that repeat the row above in a terminal. `detail_level` is
    what a summary omits: the "column", or the "intervals" of its numbers. On a page, `axis` is the
    header of a column of `IntervalMark`.
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
    """Return a column of intervals, which cannot be sorted."""
    return Column(label, "number", is_sortable=False)


@dataclass(frozen=True)
class Row:
    """A table row with one cell per column.

    A row of kind "marked" is highlighted, and a row of kind "group" is indented below the previous
    row. `tags` maps names of controls to the options with which the row is visible.
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
    """A warning or a note, the data that it is about, and similar remarks.

    A remark with `is_about_reading` explains how a file was read.
    """

    level: Literal["warning", "note"]
    text: Text
    location: str = ""
    similar: "tuple[Remark, ...]" = ()
    is_about_reading: bool = False


@dataclass(frozen=True)
class GlossaryEntry:
    """A term, its meaning and its source; `name` is its identifier in the program."""

    title: str
    meaning: Text
    name: str = ""
    range: str = ""
    source: str = ""


def define_terms(meanings: Mapping[str, Text], **values: object) -> tuple[GlossaryEntry, ...]:
    """Return glossary entries from meanings by title; `values` replace placeholders in strings."""
    return tuple(
        GlossaryEntry(title, meaning.format(**values) if isinstance(meaning, str) else meaning)
        for title, meaning in meanings.items()
    )


def single_group(rows: Iterable[Sequence[Cell] | Row]) -> tuple[TableRows, ...]:
    """Return rows, or sequences of cells, as the only row group of a table."""
    return (TableRows(tuple(row if isinstance(row, Row) else Row(tuple(row)) for row in rows)),)


def plain_text(text: Text) -> str:
    """Return inline text as a string, without styles."""
    if isinstance(text, tuple):
        return "".join(map(plain_text, text))
    return text.text if isinstance(text, Span) else text
