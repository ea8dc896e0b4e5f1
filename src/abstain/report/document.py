"""A page as data: what a subject says, in blocks that every format knows how to write.

A subject builds a `Document`; a renderer in `abstain.report.render` writes it as HTML, for a
terminal, as Markdown or as LaTeX and knows no subject. So a number stands here as a number: how it
is spelled, what is bold, how an interval and an undefined value look is the renderer's alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import abstain as ab
from abstain.plots.drawable import Drawable
from abstain.report.cells import (
    EVERYWHERE,
    METHOD,
    NAN,
    NOTEBOOK,
    PAGE,
    PAPER,
    READ,
    SCREEN,
    TERMINAL,
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
    "EVERYWHERE",
    "METHOD",
    "NAN",
    "NOTEBOOK",
    "PAGE",
    "PAPER",
    "READ",
    "SCREEN",
    "TERMINAL",
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


@dataclass(frozen=True)
class Block:
    """What every block can say: which formats it is meant for."""

    only: tuple[Format, ...] = field(default=EVERYWHERE, kw_only=True)


@dataclass(frozen=True)
class Table(Block):
    """A table: its columns, and its rows in groups.

    A terminal prints the `title` above it, and a screen reader calls it so; a page and a paper
    print the `caption`. `anchor` is its place on a page. `look` is "grid" (many columns under
    `spans`: heads over the columns after the first, each with how many), "wide", "cards" or
    "leads" (stacked on a phone), "pairs", "ranks", "glance", "points", "study" or "map". `rest`
    are the words of a last row for what is left out. A terminal prints at most `most` rows (0:
    all) and says by `more` where the others are; where the table does not fit it shows what is
    `instead`.
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
class Facts(Block):
    """Labels and what is known of them."""

    entries: tuple[tuple[str, Text], ...]


@dataclass(frozen=True)
class Findings(Block):
    """Warnings and notes; `whole` prints each on a terminal instead of the first few kinds."""

    remarks: tuple[Remark, ...]
    whole: bool = False


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
class Document:
    """All that is said of one subject.

    `sections` returns the blocks of a page or a paper, `brief` those of a terminal or a notebook.
    `eyebrow` says what kind of document it is, `verdict` what was found, for someone who never read
    a paper, `facts` what was done on what (an empty one is left out), `findings` what to know
    before trusting the numbers; `data` what its charts draw. With `alarm` the first sentence of
    the verdict is bad news; `longest` are the letters of the longest name that tables give a line.
    `elsewhere` are the anchors that other pages have, with the addresses of these.
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
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", tuple(fact for fact in self.facts if fact[1]))

    def whole(self) -> Iterator[Block]:
        """Yield all blocks under the title of a paper."""
        yield from map(Prose, self.verdict)
        if self.facts:
            yield Facts(self.facts)
        if self.findings:
            known = (Findings(self.findings),)
            yield Section("findings", "Before you trust the numbers", known)
        yield from self.sections()


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


def by_reader(terminal: str, notebook: str, kind: Literal["about", "notes"]) -> tuple[Prose, Prose]:
    """Return what is said at a command line, and what in a notebook, which has no options."""
    return Prose(terminal, kind, only=TERMINAL), Prose(notebook, kind, only=NOTEBOOK)


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
