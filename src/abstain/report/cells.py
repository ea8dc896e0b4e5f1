"""What blocks are made of: text, the cells of tables with numbers as numbers, remarks, words."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

#: The formats, as `render` takes them.
Format = Literal["html", "terminal", "markdown", "latex", "notebook"]

FORMATS: Final[tuple[Format, ...]] = ("html", "terminal", "markdown", "latex", "notebook")

NAN: Final = math.nan


# --------------------------------------------------------------------------------- inline text
@dataclass(frozen=True)
class Span:
    """A piece of text with a meaning of its own.

    ``good``, ``bad`` and ``open`` are verdicts, ``best`` marks a winner, ``undefined`` something
    that is not there, ``small`` stands below what it belongs to, ``better`` and ``alike`` color
    the cell of a map. A `link` is an address or, with
    a leading ``#``, the anchor of another part; `title` is read when one points at it.
    """

    text: str
    kind: Literal[
        "plain",
        "strong",
        "em",
        "best",
        "code",
        "muted",
        "small",
        "undefined",
        "good",
        "bad",
        "open",
        "better",
        "alike",
    ] = "plain"
    link: str = ""
    title: str = ""


#: Words: the caller's and ours alike are escaped by the renderer.
Text = str | Span | tuple[str | Span, ...]


@dataclass(frozen=True)
class Label:
    """The name of what is measured: "AUGRC x 1000 (down)" over a column or before a row.

    `better` points to where better is; `scale` says that its values are times 1000; `short` is for
    a narrow column, `note` for small words below, `link` and `title` as in `Span`.
    """

    text: str
    better: Literal["", "lower", "higher"] = ""
    scale: int = 1
    short: str = ""
    note: str = ""
    link: str = ""
    title: str = ""

    @property
    def unit(self) -> str:
        """What follows the name of values that are times 1000."""
        return " × 1000" if self.scale > 1 else ""

    @property
    def arrow(self) -> str:
        """The arrow to where better is; empty where nothing is better."""
        return {"": "", "lower": "\u2193", "higher": "\u2191"}[self.better]

    @property
    def ending(self) -> str:
        """What follows the name in a line: unit and arrow."""
        return f"{self.unit} {self.arrow}".rstrip()


# --------------------------------------------------------------------------------------- cells
#: How a number is spelled; see `abstain.report.words.spelled`.
Form = Literal["number", "count", "p", "hundred", "rank", "two", "four", "six", "signed", "minus"]


@dataclass(frozen=True)
class Number:
    """A number with all that is known of it; NaN is undefined, and `reason` says why.

    `low` and `high` are its interval, `spread` a standard error, `beside` other small words.
    `scale` is what it is multiplied by when written (with the `Label` saying so); `per_thousand`
    lets the reader of a page choose. `stands` is "best" or "tie" (not told from the best), `shade`
    from 0 (strongest) to 4 colors it by rank, `note` is read when one points at it, `said` spells
    an odd one.
    """

    value: float
    low: float = NAN
    high: float = NAN
    spread: float = NAN
    form: Form = "number"
    scale: int = 1
    per_thousand: bool = False
    stands: Literal["", "best", "tie"] = ""
    shade: int | None = None
    beside: str = ""
    note: str = ""
    reason: str = ""
    said: str = ""


@dataclass(frozen=True)
class Range:
    """An interval in a column of its own."""

    low: float
    high: float
    form: Form = "number"
    scale: int = 1
    title: str = ""


@dataclass(frozen=True)
class Shot:
    """A small picture, or its place: `source` is a ``data:`` address or empty."""

    source: str
    alt: str
    label: str
    said: str = ""
    small: str = ""


#: What stands in a table; None where there is nothing.
Cell = Number | Range | Label | Shot | Text | None


# -------------------------------------------------------------------------------------- tables
@dataclass(frozen=True)
class Column:
    """A column of a table.

    `kind` says what it holds: numbers, names (of methods, data: folded, sticky), long `words`, or
    other `text`. `head` marks the one that names the rows (by default the first). A narrow
    terminal leaves columns with `drop` out from the right, and names them; `once` blanks what
    repeats the row above there. `detail` names what a summary leaves out: the column or the
    intervals of its numbers.
    """

    label: Label | str
    kind: Literal["number", "name", "words", "text"] = "text"
    head: bool = False
    sort: bool = True
    drop: bool = False
    once: bool = False
    detail: Literal["", "column", "intervals"] = ""


#: The column of what is compared.
METHOD = Column("Method", "name")


def numbers(label: str | Label) -> Column:
    """Return a column of numbers."""
    return Column(label, "number")


def ends(label: str) -> Column:
    """Return a column of intervals, by which nobody sorts."""
    return Column(label, "number", sort=False)


@dataclass(frozen=True)
class Row:
    """A row: a cell for each column, and `tags` for what a choice shows.

    A "marked" row stands out, a "group" is part of the row before.
    """

    cells: tuple[Cell, ...]
    kind: Literal["", "marked", "group"] = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """Rows that stand together, under a title or without."""

    rows: tuple[Row, ...]
    title: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


# ------------------------------------------------------------------------ of other blocks
@dataclass(frozen=True)
class Remark:
    """A warning or a note, where it holds, and others of its kind."""

    level: Literal["warning", "note"]
    text: Text
    place: str = ""
    more: "tuple[Remark, ...]" = ()


@dataclass(frozen=True)
class Entry:
    """A word, its meaning, and where it is from; `name` is how a program calls it."""

    title: str
    meaning: Text
    name: str = ""
    range: str = ""
    source: str = ""


def rows_of(rows: Iterable[Sequence[Cell] | Row]) -> tuple[Rows, ...]:
    """Return the one group of a table without groups, from rows or the cells of rows."""
    return (Rows(tuple(row if isinstance(row, Row) else Row(tuple(row)) for row in rows)),)


def joined(text: Text) -> str:
    """Return the words of a text without their looks."""
    if isinstance(text, tuple):
        return "".join(map(joined, text))
    return text.text if isinstance(text, Span) else text
