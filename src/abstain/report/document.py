"""Documents: a report as a tree of blocks, independent of the output format.

A subject builds a `Document` from a result. A renderer in `abstain.report.render` writes any
document as HTML, terminal text, Markdown or LaTeX. It selects blocks by their role and formats
numbers, intervals and undefined values.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal

import abstain as ab
from abstain.plots.drawable import Drawable
from abstain.plots.style import css_variable, dash_pattern
from abstain.report.cells import (
    FORMATS,
    METHOD_COLUMN,
    NAN,
    Axis,
    Cell,
    Column,
    Format,
    GlossaryEntry,
    IntervalMark,
    Label,
    Number,
    NumberFormat,
    Range,
    Remark,
    Row,
    Span,
    TableRows,
    Text,
    Thumbnail,
    define_terms,
    interval_column,
    number_column,
    plain_text,
    single_group,
)

if TYPE_CHECKING:
    from abstain.report.images import SampleImages

__all__ = [
    "FORMATS",
    "METHOD_COLUMN",
    "NAN",
    "Axis",
    "Cell",
    "Column",
    "Format",
    "GlossaryEntry",
    "IntervalMark",
    "Label",
    "Number",
    "NumberFormat",
    "Range",
    "Remark",
    "Row",
    "Span",
    "TableRows",
    "Text",
    "Thumbnail",
    "define_terms",
    "interval_column",
    "number_column",
    "plain_text",
    "single_group",
]

#: Role of a block. All formats contain the "key" blocks. Short outputs contain the "summary" blocks
#: and full reports the "detail" blocks. "interactive" blocks are for web pages only, and "static"
#: blocks replace them in other formats. A block without a role has the role of its container.
Role = Literal["", "key", "summary", "detail", "interactive", "static"]

#: Roles of the blocks in a short output, such as that of a terminal.
SUMMARY: Final[frozenset[Role]] = frozenset({"key", "summary"})


@dataclass(frozen=True)
class Block:
    """A part of a document."""

    role: Role = field(default="", kw_only=True)


@dataclass(frozen=True)
class Table(Block):
    """A table with row groups.

    The `title` is printed in a terminal and read by screen readers; pages and papers print the
    `caption`. `anchor` is the id of the table on a page. `layout` selects a style: "grid" (many
    columns), "wide", "cards" or "leads" (stacked on a narrow screen), "forest" (one line per row,
    with a column of intervals), "pairs", "ranks", "glance", "points", "samples", "study" or "map".
    `column_groups` are the headers above the columns after the first, each with its number of
    columns. `footer` is the text of a last row. `alternative` are blocks with the same numbers for
    a terminal that is too narrow.
    """

    columns: tuple[Column, ...]
    groups: tuple[TableRows, ...]
    title: str = ""
    caption: Text = ""
    anchor: str = ""
    layout: str = ""
    is_sortable: bool = False
    column_groups: tuple[tuple[Label | str, int], ...] = ()
    footer: str = ""
    alternative: "tuple[Block, ...]" = ()

    @property
    def rows(self) -> list[Row]:
        """Rows of all groups."""
        return [row for group in self.groups for row in group.rows]

    def summary(self) -> "Table":
        """Return the table without the columns and intervals that are details."""
        indices = [i for i, c in enumerate(self.columns) if c.detail_level != "column"]

        def summarize(row: Row) -> Row:
            cells = []
            for i in indices:
                cell = row.cells[i]
                if isinstance(cell, Number) and self.columns[i].detail_level == "intervals":
                    cell = cell.without_interval()
                cells.append(cell)
            return replace(row, cells=tuple(cells))

        columns = tuple(self.columns[i] for i in indices)
        groups = (replace(group, rows=tuple(map(summarize, group.rows))) for group in self.groups)
        return replace(self, columns=columns, groups=tuple(groups))


# -------------------------------------------------------------------------------- other blocks
@dataclass(frozen=True)
class Prose(Block):
    """A paragraph.

    "answer" is the answer of a report. "lead" introduces a section, "about" and "hint"
    explain a figure and its controls, "notes" explain a table, "source" is a reference, "caution"
    is a boxed warning, "back" contains a link back, and "noscript" is visible only without
    JavaScript.
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
        "answer",
        "noscript",
    ] = "plain"


@dataclass(frozen=True)
class SeeAlso(Block):
    """A pointer to numbers that a summary omits, for the command line and for Python."""

    text: str
    command_line: str
    python: str
    kind: Literal["about", "notes"] = "about"


@dataclass(frozen=True)
class Facts(Block):
    """Pairs of a label and a value."""

    entries: tuple[tuple[str, Text], ...]


@dataclass(frozen=True)
class Findings(Block):
    """Warnings and notes; with `is_complete`, a terminal prints all of them."""

    remarks: tuple[Remark, ...]
    is_complete: bool = False


@dataclass(frozen=True)
class Warnings(Block):
    """Warnings that change the interpretation of the answer, one line each until it is opened."""

    remarks: tuple[Remark, ...]


@dataclass(frozen=True)
class KeyNumber:
    """A number of the first screen: label, formatted value, and small print (count, interval)."""

    label: str
    value: Text
    detail: Text = ""


@dataclass(frozen=True)
class KeyNumbers(Block):
    """The four to six most important numbers of a report, in one row."""

    numbers: tuple[KeyNumber, ...]


@dataclass(frozen=True)
class Figure(Block):
    """A static figure, drawn when a renderer needs it.

    `key` is a unique identifier of letters, digits and hyphens. The caption consists of `title` in
    bold and `description`.
    """

    key: str
    title: str
    display: Drawable
    description: Text = ""


@dataclass(frozen=True)
class ChartLine:
    """A line of a `LineChart`: points from left to right, and some of them with a dot.

    `index` determines its color and dashes, and its class ``method-INDEX`` on a page.
    """

    index: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    dots: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class LineChart(Block):
    """A static chart of lines over the x axis from 0 to 100%, drawn by the page renderer only.

    The y axis reaches from 0 to `y_max`; `is_percent` prints percentages. `marked_x` is a vertical
    reference line, and `has_diagonal` draws the line of equal coordinates.
    """

    key: str
    title: str
    lines: tuple[ChartLine, ...]
    x_title: str
    y_max: float
    description: Text = ""
    is_percent: bool = True
    marked_x: float | None = None
    has_diagonal: bool = False


@dataclass(frozen=True)
class Chart(Block):
    """An interactive chart, drawn by the browser from the data of the page.

    `build_spec` returns its Vega-Lite specification; `x_field` and `y_field` are the fields on its
    axes.
    """

    key: str
    title: str
    description: str
    build_spec: Callable[[], Mapping[str, Any]]
    x_field: str
    y_field: str


@dataclass(frozen=True)
class ThresholdSlider(Block):
    """A slider over the thresholds of the curves of a page.

    It shows the working point at a threshold, the numbers of accepted and rejected samples, and the
    position on the charts. `loss_labels` are the headers for the total and the mean loss. If
    `has_groups`, it also shows the numbers of each group.
    """

    title: str
    description: str
    loss_labels: tuple[str, str]
    has_groups: bool = False


@dataclass(frozen=True)
class Glossary(Block):
    """Terms and their meanings."""

    entries: tuple[GlossaryEntry, ...]


@dataclass(frozen=True)
class Code(Block):
    """Source code or JSON."""

    text: str


@dataclass(frozen=True)
class Thumbnails(Block):
    """Small images under a title, in one "strip" or with room for descriptions."""

    title: str
    images: tuple[Thumbnail, ...]
    layout: Literal["", "strip"] = ""


@dataclass(frozen=True)
class Links(Block):
    """Links within the page: pairs of an anchor without ``#`` and a text."""

    links: tuple[tuple[str, str], ...]


# ------------------------------------------------------------------------------ interaction
@dataclass(frozen=True)
class Option:
    """An option of a `Choice`; `color` and `dash` are the style of its line in the figures."""

    key: str
    label: str
    color: str = ""
    dash: str = ""
    is_selected: bool = True


def line_option(index: int, name: str, *, is_selected: bool = True) -> Option:
    """Return the option for a score or a method, with the line style of the figures."""
    pattern = " ".join(map(str, dash_pattern(index)))
    return Option(str(index), name, css_variable(index), pattern, is_selected=is_selected)


@dataclass(frozen=True)
class Choice:
    """A control that selects which tagged parts of a page are visible.

    A part with the tag ``{name: key}`` is visible if the option `key` is selected. A tag can
    contain several keys, separated by spaces, and the option "" shows all parts. If `is_multiple`,
    each option is a button that shows and hides its parts, including the parts of figures with the
    class ``name-key``; otherwise the control is a menu, and `selected` is its initial option.
    """

    name: str
    label: str
    options: tuple[Option, ...]
    is_multiple: bool = False
    selected: str = ""


@dataclass(frozen=True)
class Switch:
    """A checkbox that sets the class `name` on the page."""

    name: str
    label: str
    is_on: bool = False


@dataclass(frozen=True)
class SearchField:
    """A field that searches the rows of the table at `anchor` and shows the number of matches.

    `row_noun` is the plural noun for its rows, such as "numbers".
    """

    anchor: str
    row_noun: str


@dataclass(frozen=True)
class JumpMenu:
    """A menu of links to anchors: groups of a title and pairs of anchor and text."""

    label: str
    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@dataclass(frozen=True)
class Controls(Block):
    """Controls of a page; with `is_sticky` they remain visible when the page scrolls."""

    items: tuple[Choice | Switch | SearchField | JumpMenu, ...]
    label: str = ""
    is_sticky: bool = False


# ---------------------------------------------------------------------------------- containers
@dataclass(frozen=True)
class Box(Block):
    """Blocks in one container, or blocks that are visible for some options.

    Blocks are side by side in the layouts "pair", "side" and "overview", which is for the key table
    and the key figure.
    """

    blocks: tuple[Block, ...]
    layout: Literal["", "overview", "pair", "side", "stack", "figures"] = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Collapsible(Block):
    """Blocks that are collapsed below a summary."""

    summary: Text
    blocks: tuple[Block, ...]
    is_open: bool = False
    anchor: str = ""
    style: Literal["", "part", "caution", "scripted", "end"] = ""


@dataclass(frozen=True)
class Section(Block):
    """A titled section of a document; `anchor` is its id on a page.

    `nav_title` is its name in the table of contents: the title by default, and None to omit it.
    `level` is the level of its heading, from 2 to 4. `subtitle` is small print after the title. The
    style "part" has a line above the section.
    """

    anchor: str
    title: str
    blocks: tuple[Block, ...]
    nav_title: str | None = ""
    level: int = 2
    subtitle: str = ""
    style: Literal["", "part"] = ""


@dataclass(frozen=True)
class DeferredBlocks(Block):
    """Blocks of one role that are built only for formats with this role."""

    build: Callable[[], Iterable[Block]]


@dataclass(frozen=True)
class Document:
    """The report of one subject.

    The first screen contains the title with the `context` (type of document, data, model), the
    `answer`, warnings, `key_numbers` and the `overview`, which is the key table beside the key
    figure. The first part of the answer is emphasized; with `is_alarm`, as an alarm. `blocks`
    returns the details, from which each format selects by role. The end of the report contains the
    notes, the `facts` about data and settings (empty ones are omitted) with the notes on reading
    files, and the `command` with advice on citation.

    `chart_data` returns the data of the charts. If `is_complete`, a terminal prints all findings.
    `name_width` is the maximum number of characters in the name columns of tables. `page_by_anchor`
    maps anchors on other pages to the addresses of these pages.
    """

    title: str
    context: tuple[str, ...]
    blocks: Callable[[], Iterable[Block]]
    answer: tuple[Text, ...] = ()
    key_numbers: tuple[KeyNumber, ...] = ()
    overview: Callable[[], Iterable[Block]] = tuple
    facts: tuple[tuple[str, Text], ...] = ()
    findings: tuple[Remark, ...] = ()
    command: str = ""
    citation_advice: str = ""
    chart_data: Callable[[], object] | None = None
    is_alarm: bool = False
    is_complete: bool = False
    name_width: int = 0
    page_by_anchor: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", tuple(fact for fact in self.facts if fact[1]))

    def first_screen(self, roles: Collection[Role]) -> Iterator[Block]:
        """Yield the blocks of the first screen below the title."""
        if self.answer:
            first, *others = self.answer
            emphasized = Span(plain_text(first), "bad" if self.is_alarm else "strong")
            parts = [(" ", *(text if isinstance(text, tuple) else (text,))) for text in others]
            yield Prose((emphasized, *chain.from_iterable(parts)), "answer")
        if warnings := tuple(r for r in self.findings if r.level == "warning"):
            yield Warnings(warnings)
        if self.key_numbers:
            yield KeyNumbers(self.key_numbers)
        yield from select_blocks(self.overview(), roles)

    def end_matter(self) -> Iterator[Block]:
        """Yield the notes, the data and settings, and how to reproduce the report."""
        notes = tuple(r for r in self.findings if r.level == "note" and not r.is_about_reading)
        if notes:
            yield Section("notes", "Notes", (Findings(notes),))
        reading = tuple(r for r in self.findings if r.level == "note" and r.is_about_reading)
        title = "How the files were read" if reading else "Data and settings"
        blocks = (
            *([Facts(self.facts)] if self.facts else []),
            *([Findings(reading)] if reading else []),
        )
        if blocks:
            yield Collapsible(title, blocks, anchor="data", style="end")
        text = f"These numbers were computed with abstain {ab.__version__}. {self.citation_advice}"
        code = [Code(self.command)] if self.command else []
        title = "Cite and reproduce" if self.citation_advice else "Reproduce"
        yield Collapsible(title, (Prose(text.rstrip()), *code), anchor="reproduce", style="end")

    def report_blocks(self, roles: Collection[Role]) -> Iterator[Block]:
        """Yield the blocks of a full report below the title."""
        yield from self.first_screen(roles)
        yield from select_blocks(self.blocks(), roles)
        yield from self.end_matter()

    def summary_blocks(self) -> list[Block]:
        """Return the blocks of a short output: answer, key numbers, findings, notes, figures."""
        answer = [*self.first_screen(SUMMARY)]
        blocks = list(_summary((*self.overview(), *self.blocks()), "detail"))
        figures = [block for block in blocks if isinstance(block, Figure)]
        notes = [
            block
            for block in blocks
            if isinstance(block, Facts)
            or (isinstance(block, Prose | SeeAlso) and block.kind == "notes")
        ]
        trailing_ids = {id(block) for block in (*notes, *figures)}
        numbers = [block for block in blocks if id(block) not in trailing_ids]
        findings = [Findings(self.findings, self.is_complete)] if self.findings else []
        return [*answer[: bool(self.answer)], *numbers, *findings, *notes, *figures]


@dataclass(frozen=True)
class ReportOptions:
    """Options of a report: title, source of the data, notes, and command to reproduce it.

    If `full`, a terminal prints all tables and findings. A report of an evaluation or a benchmark
    can contain `images`, and a benchmark is compared with the results of `other_models`.
    """

    title: str = ""
    source: str = ""
    notes: Sequence[str] = ()
    command: str = ""
    full: bool = False
    images: "SampleImages | None" = None
    other_models: Sequence[Any] = ()


def select_blocks(blocks: Iterable[Block], roles: Collection[Role]) -> Iterator[Block]:
    """Yield the blocks with one of the roles or without a role; build deferred blocks."""
    for block in blocks:
        if block.role and block.role not in roles:
            continue
        if isinstance(block, DeferredBlocks):
            yield from select_blocks(block.build(), roles)
        else:
            yield block


def _summary(blocks: Iterable[Block], inherited: Role) -> Iterator[Block]:
    for block in blocks:
        role = block.role or inherited
        if isinstance(block, DeferredBlocks) and role in SUMMARY:
            yield from _summary(block.build(), role)
        elif isinstance(block, Section | Box):
            yield from _summary(block.blocks, role)
        elif role in SUMMARY:
            yield block


def glossary_section(entries: Iterable[GlossaryEntry], *further_blocks: Block) -> Section:
    """Return the section with the terms of a report."""
    return Section("glossary", "Glossary", (Glossary(tuple(entries)), *further_blocks))


def figures_section(title: str, figures: Iterable[Figure], *, nav_title: str = "") -> list[Section]:
    """Return the section with the figures of a report; nothing without figures."""
    box = Box(tuple(figures), "figures")
    return [Section("figures", title, (box,), nav_title=nav_title)] if box.blocks else []
