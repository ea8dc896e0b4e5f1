"""A report as data: one tree of blocks for each subject, which every format can write.

A subject builds a `Document`. A renderer in `abstain.report.render` writes it as HTML, for a
terminal, as Markdown or as LaTeX and knows no subject: it selects blocks by their role and formats
numbers, intervals and undefined values.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import abstain as ab
from abstain.plots.drawable import Drawable
from abstain.report.cells import (
    FORMATS,
    METHOD,
    NAN,
    Cell,
    Column,
    Entry,
    Form,
    Format,
    Label,
    Number,
    Range,
    Remark,
    Row,
    Rows,
    Shot,
    Span,
    Text,
    ends,
    joined,
    numbers,
    rows_of,
)
from abstain.report.choices import Choice, Find, Jump, Option, Switch, line_option

if TYPE_CHECKING:
    from abstain.report.pictures import Pictures

__all__ = [
    "FORMATS",
    "METHOD",
    "NAN",
    "Cell",
    "Choice",
    "Column",
    "Entry",
    "Find",
    "Form",
    "Format",
    "Jump",
    "Label",
    "Number",
    "Option",
    "Range",
    "Remark",
    "Row",
    "Rows",
    "Shot",
    "Span",
    "Switch",
    "Text",
    "ends",
    "joined",
    "line_option",
    "numbers",
    "rows_of",
]


#: What a block is for: "key" numbers belong to every format; "summary" blocks are a short version
#: of the "detail" of a full report; "interactive" blocks need a reader who can choose or point,
#: "static" blocks replace them elsewhere. Without a role, a block has the one of its container.
Role = Literal["", "key", "summary", "detail", "interactive", "static"]

#: The roles in a short output, such as that of a terminal.
SUMMARY: Final[frozenset[Role]] = frozenset({"key", "summary"})


@dataclass(frozen=True)
class Block:
    """A part of a document."""

    role: Role = field(default="", kw_only=True)


@dataclass(frozen=True)
class Table(Block):
    """A table: its columns, and its rows in groups.

    A terminal prints the `title` above it, and a screen reader calls it so; a page and a paper
    print the `caption`. `anchor` is its place on a page. `look` is "grid" (many columns under
    `spans`: heads over the columns after the first, each with how many), "wide", "cards" or
    "leads" (stacked on a phone), "pairs", "ranks", "glance", "points", "study" or "map". `rest`
    are the words of a last row for what is left out. `instead` are the blocks with the same numbers
    for a reader without room for all columns.
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
    instead: "tuple[Block, ...]" = ()

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [row for group in self.groups for row in group.rows]

    def summary(self) -> "Table":
        """Return the table without what its columns declare as detail."""
        columns = self.columns
        kept = [i for i, column in enumerate(columns) if column.detail != "column"]

        def shorten(cell: Cell, column: Column) -> Cell:
            if column.detail == "intervals" and isinstance(cell, Number):
                return replace(cell, low=NAN, high=NAN)
            return cell

        groups = tuple(
            replace(
                group,
                rows=tuple(
                    replace(row, cells=tuple(shorten(row.cells[i], columns[i]) for i in kept))
                    for row in group.rows
                ),
            )
            for group in self.groups
        )
        return replace(self, columns=tuple(columns[i] for i in kept), groups=groups)


# -------------------------------------------------------------------------------- other blocks
@dataclass(frozen=True)
class Prose(Block):
    """A paragraph.

    "lead" opens a section, "about" and "hint" (of something to do with a pointer) stand under a
    figure, "notes" under a table, "source" says where something is from, "caution" is boxed, "back"
    leads back, "strong" is said first, "noscript" only to those without scripts.
    """

    text: Text
    kind: Literal[
        "plain",
        "lead",
        "about",
        "hint",
        "notes",
        "source",
        "caution",
        "back",
        "strong",
        "alarm",
        "noscript",
    ] = "plain"


@dataclass(frozen=True)
class More(Block):
    """Where the numbers are that a summary leaves out, for a command line and for Python."""

    text: str
    command_line: str
    python: str
    kind: Literal["about", "notes"] = "about"


@dataclass(frozen=True)
class Facts(Block):
    """Labels and what is known of them."""

    entries: tuple[tuple[str, Text], ...]


@dataclass(frozen=True)
class Findings(Block):
    """Warnings and notes; with `is_complete`, a summary of the first few kinds is not enough."""

    remarks: tuple[Remark, ...]
    is_complete: bool = False


@dataclass(frozen=True)
class Figure(Block):
    """A figure; it is drawn when a format asks for it.

    `key` has letters, digits and hyphens that no other figure of the page has; `title` are the
    first, strong words of its caption, `about` the rest.
    """

    key: str
    title: str
    display: Drawable
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
class Dial(Block):
    """A slider through the thresholds of the curves that the page holds, by its reader's browser.

    It shows the working point of a threshold, what is accepted and refused there, and its place on
    the charts. `of` are the heads of what is summed over samples, and of its mean; `groups` says
    that there are groups, of which it shows the same.
    """

    title: str
    about: str
    of: tuple[str, str]
    groups: bool = False


@dataclass(frozen=True)
class Glossary(Block):
    """Words and their meanings."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Code(Block):
    """Lines for a machine."""

    text: str


@dataclass(frozen=True)
class Shots(Block):
    """Small pictures under a title, as one "strip" or with room for words."""

    title: str
    shots: tuple[Shot, ...]
    look: Literal["", "strip"] = ""


@dataclass(frozen=True)
class Links(Block):
    """Places to go to: anchors without ``#``, and their words."""

    places: tuple[tuple[str, str], ...]


# ------------------------------------------------------------------------------ what is chosen
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
    """A titled part of a document, `anchor` its place on a page.

    `nav` is how the contents name it, by default as its title; None leaves it out of them.
    `level` is 2, 3 for a part of a section, or 4; `small` are words behind the title; the look
    "part" has a line above it.
    """

    anchor: str
    title: str
    blocks: tuple[Block, ...]
    nav: str | None = ""
    level: int = 2
    small: str = ""
    look: Literal["", "part"] = ""


@dataclass(frozen=True)
class BlocksOfRole(Block):
    """Blocks of one role, which are built only for the formats that show this role."""

    build: Callable[[], Iterable[Block]]


@dataclass(frozen=True)
class Document:
    """The report of one subject.

    `blocks` returns the tree of blocks, from which every format selects by role. `eyebrow` is the
    kind of document, `verdict` the answer for someone who never read a paper, `facts` the data and
    options (an empty one is left out), `findings` the warnings and notes, `data` what the charts
    plot. With `alarm` the first sentence of the verdict is bad news; with `is_complete` every
    finding belongs to the summary. `longest` is the number of letters of the longest name that
    tables give a line. `elsewhere` maps the anchors of other pages to the addresses of these.
    """

    title: str
    eyebrow: str
    blocks: Callable[[], Iterable[Block]]
    verdict: tuple[Text, ...] = ()
    facts: tuple[tuple[str, Text], ...] = ()
    findings: tuple[Remark, ...] = ()
    data: Callable[[], object] | None = None
    alarm: bool = False
    is_complete: bool = False
    longest: int = 0
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", tuple(fact for fact in self.facts if fact[1]))

    def report(self, roles: Collection[Role]) -> Iterator[Block]:
        """Yield the blocks of a full report under its title, without a page's head."""
        yield from map(Prose, self.verdict)
        if self.facts:
            yield Facts(self.facts)
        if self.findings:
            known = (Findings(self.findings),)
            yield Section("findings", "Before you trust the numbers", known)
        yield from select(self.blocks(), roles)

    def summary(self) -> list[Block]:
        """Return the blocks of a short output: key numbers, findings, notes, figures."""
        blocks = list(_summary(self.blocks(), "detail"))
        figures = [block for block in blocks if isinstance(block, Figure)]
        notes = [
            block
            for block in blocks
            if isinstance(block, Facts)
            or (isinstance(block, Prose | More) and block.kind == "notes")
        ]
        last = {id(block) for block in (*notes, *figures)}
        numbers = [block for block in blocks if id(block) not in last]
        findings = [Findings(self.findings, self.is_complete)] if self.findings else []
        return [*numbers, *findings, *notes, *figures]


@dataclass(frozen=True)
class Origin:
    """What the caller says beside the numbers: a title, their source, notes, a command.

    `full` leaves nothing out on a terminal; a page of a benchmark shows `pictures`, and compares
    it with those `beside` it.
    """

    title: str = ""
    source: str = ""
    notes: Sequence[str] = ()
    command: str = ""
    full: bool = False
    pictures: "Pictures | None" = None
    beside: Sequence[Any] = ()


def answer(sentences: Iterable[str], *, alarm: bool = False) -> Iterator[Prose]:
    """Yield the sentences that answer the question of a report for its summary."""
    for i, sentence in enumerate(filter(None, sentences)):
        kind: Literal["alarm", "strong", "plain"] = "alarm" if alarm else "strong"
        yield Prose(sentence, "plain" if i else kind, role="summary")


def select(blocks: Iterable[Block], roles: Collection[Role]) -> Iterator[Block]:
    """Yield the blocks with one of the roles, or without any, also those of parts."""
    for block in blocks:
        if not block.role or block.role in roles:
            yield from select(block.build(), roles) if isinstance(block, BlocksOfRole) else (block,)


def _summary(blocks: Iterable[Block], inherited: Role) -> Iterator[Block]:
    for block in blocks:
        role = block.role or inherited
        if isinstance(block, BlocksOfRole) and role in SUMMARY:
            yield from _summary(block.build(), role)
        elif isinstance(block, Section | Box):
            yield from _summary(block.blocks, role)
        elif role in SUMMARY:
            yield block


def reproduce(command: str, *, cite: str = "") -> Section:
    """Return the last section: by what the numbers were computed, and how to cite them."""
    said = f"These numbers were computed by abstain {ab.__version__}."
    return Section(
        "reproduce",
        "Cite and reproduce" if cite else "Reproduce",
        (Prose(f"{said} {cite}".rstrip()), *([Code(command)] if command else [])),
        nav="Reproduce",
    )
