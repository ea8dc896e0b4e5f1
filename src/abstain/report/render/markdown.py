"""Markdown renderer, for issues, README files and notebooks."""

import re
from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import Final

from abstain.plots.formatting import escape_control_characters
from abstain.report import document as doc
from abstain.report.formatting import format_interval, number_annotations, number_text, split_links

# Characters with a special meaning in Markdown, also inside table cells.
_SPECIAL: Final = "\\`*_{}[]<>()#+!|~$&"

_EMPTY_CELL: Final = "–"
_MARKS: Final = {"strong": "**", "best": "**", "em": "*", "small": "", "undefined": "*"}


_ROLES: Final[frozenset[doc.Role]] = frozenset({"key", "detail", "static"})


def markdown(document: doc.Document) -> str:
    """Return a document as Markdown."""
    return (
        "\n\n".join([f"# {escape(document.title)}", *_blocks(document.report_blocks(_ROLES))])
        + "\n"
    )


def markdown_blocks(blocks: Iterable[doc.Block]) -> str:
    """Return blocks as Markdown."""
    return "\n\n".join(_blocks(blocks)) + "\n"


def _blocks(blocks: Iterable[doc.Block]) -> Iterator[str]:
    for block in doc.select_blocks(blocks, _ROLES):
        yield from _block(block)


@singledispatch
def _block(block: doc.Block) -> Iterator[str]:
    """Yield the Markdown of a block; nothing for interactive blocks."""
    del block
    yield from ()


@_block.register
def _prose(block: doc.Prose) -> Iterator[str]:
    yield inline(block.text)


@_block.register
def _facts(block: doc.Facts) -> Iterator[str]:
    yield "\n".join(f"- {escape(name)}: {inline(value)}" for name, value in block.entries)


@_block.register
def _findings(block: doc.Findings) -> Iterator[str]:
    yield "\n".join(map(_remark, block.remarks))


@_block.register
def _glossary(block: doc.Glossary) -> Iterator[str]:
    lines = (
        f"- **{escape(entry.title)}**: {inline(entry.meaning)} {inline(split_links(entry.source))}"
        for entry in block.entries
    )
    yield "\n".join(line.rstrip() for line in lines)


@_block.register
def _code(block: doc.Code) -> Iterator[str]:
    # The fence is longer than any sequence of backticks in the code.
    max_backticks = max((len(run) for run in re.findall("`+", block.text)), default=0)
    fence = "`" * max(3, max_backticks + 1)
    body = escape_control_characters(block.text, allowed="\n\t")
    yield f"{fence}\n{body}\n{fence}"


@_block.register
def _section(block: doc.Section | doc.Collapsible) -> Iterator[str]:
    level = block.level if isinstance(block, doc.Section) else 4
    title = block.title if isinstance(block, doc.Section) else block.summary
    contents = list(_blocks(block.blocks))
    yield from [f"{'#' * level} {inline(title)}", *contents] if contents else []


@_block.register
def _box(block: doc.Box) -> Iterator[str]:
    yield from _blocks(block.blocks)


def _remark(remark: doc.Remark) -> str:
    location = f"{escape(remark.location)}: " if remark.location else ""
    n_similar = f" ({len(remark.similar)} similar)" if remark.similar else ""
    text = inline(remark.text)
    return f"- **{remark.level.capitalize()}**: {location}{text}{escape(n_similar)}"


# ---------------------------------------------------------------------------------- inline text
def inline(text: doc.Text) -> str:
    """Return inline text with all special characters escaped."""
    if isinstance(text, tuple):
        return "".join(map(inline, text))
    if isinstance(text, str):
        return escape(text)
    # Backticks and bars cannot be escaped inside code; a bar would end the table cell.
    if text.kind == "code" and not {"`", "|"} & set(text.text):
        return f"`{escape_control_characters(text.text)}`"
    mark = _MARKS.get(text.kind, "")
    text_with_mark = f"{mark}{escape(text.text)}{mark}"
    return (
        f"[{text_with_mark}]({text.link})" if text.link.startswith("https://") else text_with_mark
    )


def label(name: doc.Label | str) -> str:
    """Return a label with its unit and the arrow in the direction of better values."""
    if isinstance(name, str):
        return escape(name)
    return f"{escape(name.text)}{name.suffix}"


def escape(text: str) -> str:
    r"""Escape the special characters of Markdown; line breaks become spaces.

    Examples
    --------
    >>> print(escape("a|b*c"))
    a\|b\*c
    """
    # A regular expression, because str.split() also splits at thin spaces.
    flat = escape_control_characters(re.sub(r"[ \t\r\n]+", " ", text))
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in flat)


# ---------------------------------------------------------------------------------------- tables
@_block.register
def _table(table: doc.Table) -> Iterator[str]:
    if table.caption:
        yield inline(table.caption)
    columns = range(len(table.columns))
    group_prefixes = [
        "",
        *(f"{label(title)}, " for title, size in table.column_groups for _ in range(size)),
    ]
    group_prefixes += [""] * (len(table.columns) - len(group_prefixes))
    lines = [
        _row(f"{group_prefixes[i]}{label(table.columns[i].label)}" for i in columns),
        _row("---:" if table.columns[i].kind == "number" else "---" for i in columns),
    ]
    for group in table.groups:
        if group.title:
            lines.append(_row([f"*{escape(group.title)}*", *[""] * (len(columns) - 1)]))
        lines += [_row(_cell_text(row, i) for i in columns) for row in group.rows]
    if table.footer:
        lines.append(_row([escape(table.footer), *[""] * (len(columns) - 1)]))
    yield "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell_text(row: doc.Row, i: int) -> str:
    text = cell_content(row.cells[i])
    return f"&nbsp;&nbsp;{text}" if row.kind == "group" and i == 0 else text


def cell_content(cell: doc.Cell) -> str:
    """Return the content of a table cell."""
    if cell is None:
        return _EMPTY_CELL
    if isinstance(cell, doc.Range):
        return (
            format_interval(cell.low, cell.high, cell.number_format, scale=cell.scale)
            or _EMPTY_CELL
        )
    if isinstance(cell, doc.Thumbnail):
        return inline(cell.alt)
    if not isinstance(cell, doc.Number):
        return label(cell) if isinstance(cell, doc.Label) else inline(cell)
    text = escape(number_text(cell))
    number = f"**{text}**" if cell.mark == "best" else text
    tie = "†" if cell.mark == "tie" else ""
    return " ".join([f"{number}{tie}", *map(_escape_annotation, number_annotations(cell))])


def _escape_annotation(text: str) -> str:
    # The brackets of an interval are not escaped: no URL follows, so they are not a link.
    is_interval = text.startswith("[") and text.endswith("]")
    return f"[{escape(text[1:-1])}]" if is_interval else escape(text)
