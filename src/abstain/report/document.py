"""A page as data: what a subject says, in blocks that every format knows how to write.

A subject builds a `Document`; a renderer in `abstain.report.render` writes it as HTML, for a
terminal, as Markdown or as LaTeX and knows no subject. So a number stands here as a number: how it
is spelled, what is bold, how an interval and an undefined value look is the renderer's alone.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import abstain as ab
from abstain.plots._drawable import Drawable

#: The formats, as `render` takes them.
Format = Literal["html", "terminal", "markdown", "latex"]

#: Formats that a block, a column or a section is meant for.
EVERYWHERE: Final[tuple[Format, ...]] = ("html", "terminal", "markdown", "latex")
PAGE: Final[tuple[Format, ...]] = ("html",)
SCREEN: Final[tuple[Format, ...]] = ("terminal",)
PAPER: Final[tuple[Format, ...]] = ("markdown", "latex")
#: What is read at leisure: a page or a paper, not a terminal.
READ: Final[tuple[Format, ...]] = (*PAGE, *PAPER)

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
class Interval:
    """An interval in a column of its own."""

    low: float
    high: float
    form: Form = "number"
    scale: int = 1
    title: str = ""


#: What stands in a table; None where there is nothing.
Cell = Number | Interval | Label | Text | None


# -------------------------------------------------------------------------------------- tables
@dataclass(frozen=True)
class Column:
    """A column of a table.

    `kind` says what it holds: numbers, names (of methods, data: folded, sticky), long `words`, or
    other `text`. `head` marks the one that names the rows (by default the first). A narrow
    terminal leaves columns with `drop` out from the right, and names them; `once` blanks what
    repeats the row above there; `only` names the formats that show it.
    """

    label: Label | str
    kind: Literal["number", "name", "words", "text"] = "text"
    head: bool = False
    sort: bool = True
    drop: bool = False
    once: bool = False
    only: tuple[Format, ...] = EVERYWHERE


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


@dataclass(frozen=True)
class Block:
    """What every block can say: which formats it is meant for."""

    only: tuple[Format, ...] = field(default=EVERYWHERE, kw_only=True)


@dataclass(frozen=True)
class Table(Block):
    """A table.

    Attributes
    ----------
    columns, groups
        The columns, and the rows in their groups.
    title : str
        What a terminal prints above it and a screen reader calls it.
    caption : Text
        What a page and a paper print above it.
    anchor : str
        Its place on a page.
    look : str
        "grid" (many columns under `spans`), "wide", "cards" or "leads" (stacked on a phone),
        "pairs", "ranks", "glance", "points", "study" or "map".
    sortable : bool
        Whether a reader of a page can sort it.
    spans : tuple of (Label or str, int)
        Over the columns after the first, with how many columns each has.
    rest : str
        Words of a last row for what is left out.
    most : int
        Rows that a terminal prints, 0 for all; `more` says where the others are.
    instead : tuple of Block
        What a terminal shows where the table does not fit.
    """

    columns: tuple[Column, ...]
    groups: tuple[Rows, ...]
    title: str = ""
    caption: Text = ""
    anchor: str = ""
    look: str = ""
    sortable: bool = False
    spans: tuple[tuple[Label | str, int], ...] = ()
    rest: str = ""
    most: int = 0
    more: str = ""
    instead: "tuple[Block, ...]" = ()

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [row for group in self.groups for row in group.rows]

    def shown(self, wanted: Format) -> list[int]:
        """Return the places of the columns that a format shows."""
        return [i for i, column in enumerate(self.columns) if wanted in column.only]


def rows_of(rows: Iterable[Sequence[Cell] | Row]) -> tuple[Rows, ...]:
    """Return the one group of a table without groups, from rows or the cells of rows."""
    return (Rows(tuple(row if isinstance(row, Row) else Row(tuple(row)) for row in rows)),)


# -------------------------------------------------------------------------------- other blocks
@dataclass(frozen=True)
class Prose(Block):
    """A paragraph.

    "lead" opens a section, "about" and "hint" (of something to do with a pointer) stand under a
    figure, "notes" under a table, "caution" is boxed, "back" leads back, "strong" is said first,
    "noscript" only to those without scripts.
    """

    text: Text
    kind: Literal[
        "plain", "lead", "about", "hint", "notes", "caution", "back", "strong", "alarm", "noscript"
    ] = "plain"


@dataclass(frozen=True)
class Facts(Block):
    """Labels and what is known of them."""

    entries: tuple[tuple[str, Text], ...]


@dataclass(frozen=True)
class Remark:
    """A warning or a note, where it holds, and others of its kind."""

    level: Literal["warning", "note"]
    text: Text
    place: str = ""
    more: "tuple[Remark, ...]" = ()


@dataclass(frozen=True)
class Findings(Block):
    """Warnings and notes; `whole` prints each on a terminal instead of the first few kinds."""

    remarks: tuple[Remark, ...]
    whole: bool = False


@dataclass(frozen=True)
class Figure(Block):
    """A figure that is drawn when a format asks for it.

    Attributes
    ----------
    key : str
        Letters, digits and hyphens that no other figure of the page has.
    title : str
        The first, strong words of its caption.
    draw : callable
        Returns what draws it.
    about : Text
        The rest of its caption.
    """

    key: str
    title: str
    draw: Callable[[], Drawable]
    about: Text = ""


@dataclass(frozen=True)
class Chart(Block):
    """A figure that the reader's browser draws, from the data of the page.

    `spec` returns its Vega-Lite specification; `x` and `y` are the fields of its axes.
    """

    key: str
    title: str
    about: str
    spec: Callable[[], Mapping[str, Any]]
    x: str
    y: str


@dataclass(frozen=True)
class Entry:
    """A word, its meaning, and where it is from; `name` is how a program calls it."""

    title: str
    meaning: Text
    name: str = ""
    range: str = ""
    source: str = ""


@dataclass(frozen=True)
class Glossary(Block):
    """Words and their meanings."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Code(Block):
    """Lines for a machine."""

    text: str


@dataclass(frozen=True)
class Shot:
    """A small picture, or its place: `source` is a ``data:`` address or empty."""

    source: str
    alt: str
    label: str
    said: str = ""
    small: str = ""


@dataclass(frozen=True)
class Shots(Block):
    """Small pictures under a title."""

    title: str
    shots: tuple[Shot, ...]


@dataclass(frozen=True)
class Links(Block):
    """Places to go to: anchors without ``#``, and their words."""

    places: tuple[tuple[str, str], ...]


# ------------------------------------------------------------------------------ what is chosen
@dataclass(frozen=True)
class Option:
    """One of a choice; `color` and `dash` draw its line beside it."""

    key: str
    label: str
    color: str = ""
    dash: str = ""
    on: bool = True


@dataclass(frozen=True)
class Choice:
    """What a page shows of its tagged parts.

    A part tagged ``{name: key}`` is seen where the key is chosen; several keys are parted by
    blanks, and the option "" shows all. ``some`` makes buttons that hide and show each option,
    also the parts of figures of class ``name-key``.
    """

    name: str
    label: str
    options: tuple[Option, ...]
    some: bool = False
    chosen: str = ""


@dataclass(frozen=True)
class Switch:
    """A box to tick: sets the class `name` on the page."""

    name: str
    label: str
    on: bool = False


@dataclass(frozen=True)
class Find:
    """A field to search the rows of the table at `anchor`; says how many `what` are shown."""

    anchor: str
    what: str


@dataclass(frozen=True)
class Jump:
    """Places to go to, in groups with titles."""

    label: str
    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@dataclass(frozen=True)
class Controls(Block):
    """What a page lets its reader choose; `sticky` stays in view."""

    items: tuple[Choice | Switch | Find | Jump, ...]
    label: str = ""
    sticky: bool = False


# ---------------------------------------------------------------------------------- containers
@dataclass(frozen=True)
class Box(Block):
    """Blocks that stand together: side by side ("pair", "side"), or shown by a choice."""

    blocks: tuple[Block, ...]
    look: Literal["", "pair", "side", "stack", "figures"] = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Fold(Block):
    """Blocks that are folded away under a summary."""

    summary: Text
    blocks: tuple[Block, ...]
    open: bool = False
    anchor: str = ""
    look: Literal["", "part", "caution", "scripted"] = ""


@dataclass(frozen=True)
class Section(Block):
    """A titled part of a document.

    Attributes
    ----------
    anchor, title : str
        Its place on a page, and its head.
    blocks : tuple of Block
        What it holds.
    nav : str
        How the contents name it; by default as its title. None leaves it out of them.
    level : int
        2, 3 for a part of a section, or 4.
    small : str
        Small words behind the title.
    look : str
        "part" for a part with a line above it.
    """

    anchor: str
    title: str
    blocks: tuple[Block, ...]
    nav: str | None = ""
    level: int = 2
    small: str = ""
    look: Literal["", "part"] = ""


@dataclass(frozen=True)
class Document:
    """All that is said of one subject.

    Attributes
    ----------
    title, eyebrow : str
        The heading, and what kind of document it is.
    sections : callable
        Returns the blocks of a page or a paper, mostly sections.
    brief : callable
        Returns the blocks of a terminal.
    verdict : tuple of Text
        A few sentences for someone who never read a paper on the subject.
    facts : tuple of (str, Text)
        What was done, on what.
    findings : tuple of Remark
        What to know before trusting the numbers.
    data : callable or None
        Returns what its charts draw.
    alarm : bool
        Whether the first sentence of the verdict is bad news.
    longest : int
        Letters of the longest name that tables give a line.
    """

    title: str
    eyebrow: str
    sections: Callable[[], Iterable[Block]]
    brief: Callable[[], Iterable[Block]]
    verdict: tuple[Text, ...] = ()
    facts: tuple[tuple[str, Text], ...] = ()
    findings: tuple[Remark, ...] = ()
    data: Callable[[], object] | None = None
    alarm: bool = False
    longest: int = 0


@dataclass(frozen=True)
class Origin:
    """Where the numbers come from, as told by the caller: a title, a source, notes, a command."""

    title: str = ""
    source: str = ""
    notes: Sequence[str] = ()
    command: str = ""


def joined(text: Text) -> str:
    """Return the words of a text without their looks."""
    if isinstance(text, tuple):
        return "".join(map(joined, text))
    return text.text if isinstance(text, Span) else text


def shown_in(blocks: Iterable[Block], wanted: Format) -> list[Block]:
    """Return the blocks that are meant for a format."""
    return [block for block in blocks if wanted in block.only]


def reproduce(command: str, *, cite: str = "") -> Section:
    """Return the last section: by what the numbers were computed, and how to cite them."""
    said = f"These numbers were computed by abstain {ab.__version__}."
    return Section(
        "reproduce",
        "Cite and reproduce" if cite else "Reproduce",
        (Prose(f"{said} {cite}".rstrip()), *([Code(command)] if command else [])),
        nav="Reproduce",
    )
