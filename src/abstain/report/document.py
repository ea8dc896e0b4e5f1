"""Documents, which are trees of blocks such as tables, figures and paragraphs.

A function of `abstain.report.subjects` builds a `Document` from a result. A renderer in
`abstain.report.render` writes the document as HTML, terminal text, Markdown or LaTeX. The renderer
selects the blocks for the output format, and formats numbers, intervals and undefined values.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import abstain as ab
from abstain.plots.drawable import Drawable
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
from abstain.report.controls import Choice, JumpMenu, Option, SearchField, Switch, line_option

if TYPE_CHECKING:
    from abstain.report.images import SampleImages

__all__ = [
    "FORMATS",
    "METHOD_COLUMN",
    "NAN",
    "Axis",
    "Cell",
    "Choice",
    "Column",
    "Format",
    "GlossaryEntry",
    "IntervalMark",
    "JumpMenu",
    "Label",
    "Number",
    "NumberFormat",
    "Option",
    "Range",
    "Remark",
    "Row",
    "SearchField",
    "Span",
    "Switch",
    "TableRows",
    "Text",
    "Thumbnail",
    "define_terms",
    "interval_column",
    "line_option",
    "number_column",
    "plain_text",
    "single_group",
]

#: Role of a block. Outputs in all formats contain the "key" blocks. Short outputs contain the
#: "summary" blocks and full reports the "detail" blocks. The "interactive" blocks are for web pages
#: only. The "static" blocks replace the "interactive" blocks in other formats. A block without a
#: role has the role of its container.
Role = Literal["", "key", "summary", "detail", "interactive", "static"]

#: Roles of the blocks in a short output, such as the output in a terminal.
SUMMARY: Final[frozenset[Role]] = frozenset({"key", "summary"})


@dataclass(frozen=True)
class Block:
    """A part of a document."""

    role: Role = field(default="", kw_only=True)


@dataclass(frozen=True)
class Table(Block):
    """A table with one or more groups of rows.

    The `title` is printed in terminals and read by screen readers. Pages and papers print the
    `caption`. The `anchor` is the id of the table on an HTML page. The `footer` is the text of an
    additional last row.

    The `layout` selects one of the styles "grid" (many columns), "wide", "cards" or "leads"
    (stacked on a narrow screen), "forest" (one line per row, with a column of intervals), "pairs",
    "ranks", "glance", "points", "samples", "study" or "map".

    The `column_groups` are headers that span several columns, and the numbers of these columns. The
    first column has no such header. If the terminal is too narrow for the table, `alternative` is
    printed instead. It contains the same numbers.
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
        """Rows of the table, from all groups."""
        return [row for group in self.groups for row in group.rows]

    def summary(self) -> "Table":
        """Return the table for a short report, without details."""
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
    """A paragraph of text.

    The `kind` selects a style. An "answer" is the main sentence of a report, and a "lead"
    introduces a section. The kinds "about" and "hint" explain a figure and its controls, and
    "notes" explain a table. A "source" is a bibliographic reference, a "caution" is a boxed
    warning, and "back" is a link to the previous page. The kind "noscript" is visible only without
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
    """A sentence that states where to find numbers that a short report omits."""

    text: str
    command_line: str
    python: str
    kind: Literal["about", "notes"] = "about"


@dataclass(frozen=True)
class Facts(Block):
    """A list of properties, which are pairs of a label and a value."""

    entries: tuple[tuple[str, Text], ...]


@dataclass(frozen=True)
class Findings(Block):
    """A list of warnings and notes.

    If `is_complete` is true, terminals print the complete list.
    """

    remarks: tuple[Remark, ...]
    is_complete: bool = False


@dataclass(frozen=True)
class Warnings(Block):
    """Warnings that change the interpretation of the main result.

    HTML pages show the first line of each warning, and the complete warning after a click.
    """

    remarks: tuple[Remark, ...]


@dataclass(frozen=True)
class KeyNumber:
    """An important number, with a label and a small text such as its interval."""

    label: str
    value: Text
    detail: Text = ""


@dataclass(frozen=True)
class KeyNumbers(Block):
    """The four to six most important numbers of a report, in one row."""

    numbers: tuple[KeyNumber, ...]


@dataclass(frozen=True)
class Figure(Block):
    """A static figure, which is drawn when the document is rendered.

    The `key` is a unique identifier of letters, digits and hyphens. The caption consists of `title`
    in bold and `description`.
    """

    key: str
    title: str
    display: Drawable
    description: Text = ""


@dataclass(frozen=True)
class ChartLine:
    """A line of a `LineChart`, with points from left to right.

    The line has dots at the points `dots`. The `index` determines its color, its dash pattern and
    its CSS class ``method-INDEX``.
    """

    index: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    dots: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class LineChart(Block):
    """A static line chart with an x axis from 0 to 100%, for HTML pages only.

    The y axis ranges from 0 to `y_max`. If `is_percent` is true, the tick labels of the y axis are
    percentages. The chart contains a vertical reference line at `marked_x`. If `has_diagonal` is
    true, the chart contains the diagonal y = x.
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
    """An interactive chart, which the browser draws from the data of the page.

    The function `build_spec` returns the Vega-Lite specification of the chart. The axes show the
    fields `x_field` and `y_field`.
    """

    key: str
    title: str
    description: str
    build_spec: Callable[[], Mapping[str, Any]]
    x_field: str
    y_field: str


@dataclass(frozen=True)
class ThresholdSlider(Block):
    """A slider that selects a threshold on the risk-coverage curves of a page.

    The page then displays the numbers of accepted and rejected samples, and marks the threshold on
    the charts. The `loss_labels` are the labels of the total loss and of the mean loss. If
    `has_groups` is true, the page also displays the numbers of each group.
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
    """Small images under a title.

    The layout "strip" places the images in one row without space for descriptions.
    """

    title: str
    images: tuple[Thumbnail, ...]
    layout: Literal["", "strip"] = ""


@dataclass(frozen=True)
class Links(Block):
    """Links within the page, each with an anchor (without ``#``) and a text."""

    links: tuple[tuple[str, str], ...]


# ------------------------------------------------------------------------------ interaction
@dataclass(frozen=True)
class Controls(Block):
    """Controls of a page, such as menus and buttons.

    If `is_sticky` is true, the controls remain visible during scrolling.
    """

    items: tuple[Choice | Switch | SearchField | JumpMenu, ...]
    label: str = ""
    is_sticky: bool = False


# ---------------------------------------------------------------------------------- containers
@dataclass(frozen=True)
class Box(Block):
    """A container of blocks, which can be visible for some options of a menu only.

    The layouts "pair", "side" and "overview" place blocks side by side.
    """

    blocks: tuple[Block, ...]
    layout: Literal["", "overview", "pair", "side", "stack", "figures"] = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Collapsible(Block):
    """Collapsed blocks, of which only the summary is visible at first."""

    summary: Text
    blocks: tuple[Block, ...]
    is_open: bool = False
    anchor: str = ""
    style: Literal["", "part", "caution", "scripted", "end"] = ""


@dataclass(frozen=True)
class Section(Block):
    """A titled section of a document.

    The `anchor` is the id of the section on an HTML page. The `nav_title` is the entry in the table
    of contents. The default is the title. If `nav_title` is None, the table of contents omits the
    section.

    The `level` of the heading is from 2 to 4. The `subtitle` is printed in a small font after the
    title. The style "part" draws a line above the section.
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
    """Blocks that are built only if the output format requires them."""

    build: Callable[[], Iterable[Block]]


@dataclass(frozen=True)
class Document:
    """The report of one result.

    The first screen contains the title, the `context` (type of document, data, model), the
    `answer`, warnings, `key_numbers` and the `overview`. The overview consists of the key table and
    the key figure. The first part of the answer is emphasized. If `is_alarm` is true, the first
    part has the style of a warning.

    The function `blocks` returns the details, from which each renderer selects some blocks.

    The report ends with the notes, the `facts` about data and settings, and the `command` that
    reproduces it. Empty facts are omitted.

    The function `chart_data` returns the data of the charts. If `is_complete` is true, terminals
    print all notes. The `name_width` is the maximum number of characters of names in tables. If the
    report has several pages, `page_by_anchor` maps each anchor to the address of its page.
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
        """Yield the blocks between the title and the details of a report."""
        if self.answer:
            yield self._answer_block()
        warnings = tuple(remark for remark in self.findings if remark.level == "warning")
        if warnings:
            yield Warnings(warnings)
        if self.key_numbers:
            yield KeyNumbers(self.key_numbers)
        yield from select_blocks(self.overview(), roles)

    def _answer_block(self) -> Prose:
        """Return the paragraph with the main result, whose first part is emphasized."""
        first_part = plain_text(self.answer[0])
        spans: list[str | Span] = [Span(first_part, "bad" if self.is_alarm else "strong")]
        for text in self.answer[1:]:
            spans.append(" ")
            spans += text if isinstance(text, tuple) else (text,)
        return Prose(tuple(spans), "answer")

    def end_matter(self) -> Iterator[Block]:
        """Yield the notes, the data, the settings and the command that reproduces the report."""
        all_notes = [remark for remark in self.findings if remark.level == "note"]
        notes = tuple(note for note in all_notes if not note.is_about_reading)
        if notes:
            yield Section("notes", "Notes", (Findings(notes),))
        reading_notes = tuple(note for note in all_notes if note.is_about_reading)
        data_blocks: list[Block] = []
        if self.facts:
            data_blocks.append(Facts(self.facts))
        if reading_notes:
            data_blocks.append(Findings(reading_notes))
        if data_blocks:
            title = "How the files were read" if reading_notes else "Data and settings"
            yield Collapsible(title, tuple(data_blocks), anchor="data", style="end")
        text = f"These numbers were computed with abstain {ab.__version__}. {self.citation_advice}"
        blocks: list[Block] = [Prose(text.rstrip())]
        if self.command:
            blocks.append(Code(self.command))
        title = "Cite and reproduce" if self.citation_advice else "Reproduce"
        yield Collapsible(title, tuple(blocks), anchor="reproduce", style="end")

    def report_blocks(self, roles: Collection[Role]) -> Iterator[Block]:
        """Yield the blocks of a full report, without the title."""
        yield from self.first_screen(roles)
        yield from select_blocks(self.blocks(), roles)
        yield from self.end_matter()

    def summary_blocks(self) -> list[Block]:
        """Return the blocks of a short output, such as the output in a terminal."""
        numbers: list[Block] = []
        notes: list[Block] = []
        figures: list[Block] = []
        for block in _summary((*self.overview(), *self.blocks()), "detail"):
            if isinstance(block, Figure):
                figures.append(block)
            elif _is_note(block):
                notes.append(block)
            else:
                numbers.append(block)
        answer = [self._answer_block()] if self.answer else []
        findings = [Findings(self.findings, self.is_complete)] if self.findings else []
        return [*answer, *numbers, *findings, *notes, *figures]


@dataclass(frozen=True)
class ReportOptions:
    """Options of a report, such as the title, the source of the data, and the notes.

    If `full` is true, a terminal prints all tables and findings. The `images` of samples are for
    reports of evaluations and benchmarks. The results of `other_models` are compared with those of
    a benchmark. `input_hashes` contains the SHA-256 hashes of the input files by name.
    """

    title: str = ""
    source: str = ""
    notes: Sequence[str] = ()
    command: str = ""
    full: bool = False
    images: "SampleImages | None" = None
    other_models: Sequence[Any] = ()
    input_hashes: Mapping[str, str] = field(default_factory=dict)


def select_blocks(blocks: Iterable[Block], roles: Collection[Role]) -> Iterator[Block]:
    """Yield the blocks with one of the given roles or without a role.

    Deferred blocks are built.
    """
    for block in blocks:
        if block.role and block.role not in roles:
            continue
        if isinstance(block, DeferredBlocks):
            yield from select_blocks(block.build(), roles)
        else:
            yield block


def _is_note(block: Block) -> bool:
    """Return whether a block is printed below the tables of a short report."""
    if isinstance(block, Prose | SeeAlso):
        return block.kind == "notes"
    return isinstance(block, Facts)


def _summary(blocks: Iterable[Block], inherited: Role) -> Iterator[Block]:
    """Yield the blocks of a short report, without their containers.

    A block without a role has the role `inherited` of its container. Deferred blocks are built.
    """
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
    """Return a list with a section of the figures, or an empty list if there are no figures."""
    box = Box(tuple(figures), "figures")
    return [Section("figures", title, (box,), nav_title=nav_title)] if box.blocks else []
