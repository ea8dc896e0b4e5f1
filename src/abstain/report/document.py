"""Documents, which are trees of blocks such as tables, figures and paragraphs.

A function of `abstain.report.subjects` builds a `Document` from a result. A renderer in
`abstain.report.render` writes the document as HTML, terminal text, Markdown or LaTeX. The renderer
selects blocks by their role and formats numbers, intervals and undefined values.
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
    """A table with one or several groups of rows.

    A terminal prints the `title`, and screen readers read it. Pages and papers print the `caption`.
    The `anchor` is the id of the table on a page. The `footer` is the text of an additional last
    row.

    The `layout` selects one of the styles "grid" (many columns), "wide", "cards" or "leads"
    (stacked on a narrow screen), "forest" (one line per row, with a column of intervals), "pairs",
    "ranks", "glance", "points", "samples", "study" or "map".

    The `column_groups` are headers that span columns after the first, with the number of columns of
    each header. If the terminal is too narrow for the table, it prints the blocks of `alternative`,
    which contain the same numbers.
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
        """Rows of all groups of the table."""
        return [row for group in self.groups for row in group.rows]

    def summary(self) -> "Table":
        """Return the table without columns and intervals that are details."""
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
    "notes" explain a table. A "source" is a reference, a "caution" is a boxed warning, and "back"
    is a link to the previous page. The kind "noscript" is visible only without JavaScript.
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
    """A reference to numbers that a summary omits.

    The text for the command line differs from the text for Python.
    """

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
    """A list of warnings and notes.

    If `is_complete` is true, a terminal prints all of them.
    """

    remarks: tuple[Remark, ...]
    is_complete: bool = False


@dataclass(frozen=True)
class Warnings(Block):
    """Warnings that change the interpretation of the answer.

    A page shows one line of each warning until the reader opens it.
    """

    remarks: tuple[Remark, ...]


@dataclass(frozen=True)
class KeyNumber:
    """A number of the first screen, with its label and a small text such as its interval."""

    label: str
    value: Text
    detail: Text = ""


@dataclass(frozen=True)
class KeyNumbers(Block):
    """The four to six most important numbers of a report, in one row."""

    numbers: tuple[KeyNumber, ...]


@dataclass(frozen=True)
class Figure(Block):
    """A static figure that a renderer draws when it writes the block.

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

    The line has a dot at each point of `dots`. The `index` determines its color and dashes, and its
    class ``method-INDEX`` on a page.
    """

    index: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    dots: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class LineChart(Block):
    """A static chart of lines over an x axis from 0 to 100%, for pages only.

    The y axis ranges from 0 to `y_max`. If `is_percent` is true, its tick labels are percentages.
    The chart contains a vertical reference line at `marked_x`. If `has_diagonal` is true, it
    contains the diagonal on which both coordinates are equal.
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
    """An interactive chart that the browser draws from the data of the page.

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
    """A slider over the thresholds of the risk-coverage curves of a page.

    For the selected threshold, the slider shows the numbers of accepted and rejected samples and
    marks the point on the charts. The `loss_labels` are the headers of the total and the mean loss.
    If `has_groups` is true, the slider also shows the numbers of each group.
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

    The layout "strip" places the images in one row; the default layout leaves space for
    descriptions.
    """

    title: str
    images: tuple[Thumbnail, ...]
    layout: Literal["", "strip"] = ""


@dataclass(frozen=True)
class Links(Block):
    """Links within the page, as pairs of an anchor without ``#`` and a text."""

    links: tuple[tuple[str, str], ...]


# ------------------------------------------------------------------------------ interaction
@dataclass(frozen=True)
class Controls(Block):
    """Controls of a page, such as menus and buttons.

    If `is_sticky` is true, they remain visible when the reader scrolls.
    """

    items: tuple[Choice | Switch | SearchField | JumpMenu, ...]
    label: str = ""
    is_sticky: bool = False


# ---------------------------------------------------------------------------------- containers
@dataclass(frozen=True)
class Box(Block):
    """A container of blocks, which may be visible for some options of a `Choice` only.

    The layouts "pair", "side" and "overview" place blocks side by side. The layout "overview" is
    for the key table and the key figure.
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
    """A titled section of a document.

    The `anchor` is the id of the section on a page. The `nav_title` is the entry in the table of
    contents. By default, it is the title, and None omits the section from the table of contents.

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
    """Blocks that a function builds only if the output format uses their role."""

    build: Callable[[], Iterable[Block]]


@dataclass(frozen=True)
class Document:
    """The report of one result.

    The first screen contains the title, the `context` (type of document, data, model), the
    `answer`, warnings, `key_numbers` and the `overview`. The overview consists of the key table and
    the key figure. Renderers emphasize the first part of the answer. If `is_alarm` is true, this
    part has the style of an alarm.

    The function `blocks` returns the details, from which each renderer selects blocks by role.

    The end of the report contains notes, the `facts` about data and settings, and the `command`
    with advice on citation. Empty facts are omitted.

    The function `chart_data` returns the data of the charts. If `is_complete` is true, a terminal
    prints all findings. The `name_width` is the maximum number of characters in the name columns of
    tables. The mapping `page_by_anchor` contains the address of another page for each anchor on
    that page.
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
            yield self._answer_block()
        warnings = tuple(remark for remark in self.findings if remark.level == "warning")
        if warnings:
            yield Warnings(warnings)
        if self.key_numbers:
            yield KeyNumbers(self.key_numbers)
        yield from select_blocks(self.overview(), roles)

    def _answer_block(self) -> Prose:
        """Return the paragraph of the answer, with its first part emphasized."""
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
        """Yield the blocks of a full report below the title."""
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
    """Yield the blocks that have no role or one of the given roles.

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
    """Return whether a block belongs to the notes below the numbers of a short output."""
    if isinstance(block, Prose | SeeAlso):
        return block.kind == "notes"
    return isinstance(block, Facts)


def _summary(blocks: Iterable[Block], inherited: Role) -> Iterator[Block]:
    """Yield the innermost blocks that belong to a summary.

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
    """Return a list with the section of the figures, or an empty list without figures."""
    box = Box(tuple(figures), "figures")
    return [Section("figures", title, (box,), nav_title=nav_title)] if box.blocks else []
