"""A document in Markdown, for an issue, a README or a notebook."""

import re
from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import Final

from abstain.plots.words import visible
from abstain.report import document as doc
from abstain.report.words import behind, between, linked, numeral

# Characters that start something in Markdown, also inside a table cell.
_SPECIAL: Final = "\\`*_{}[]<>()#+!|~$&"

_NOTHING: Final = "–"
_MARKS: Final = {"strong": "**", "best": "**", "em": "*", "small": "", "undefined": "*"}


_ROLES: Final[frozenset[doc.Role]] = frozenset({"key", "detail", "static"})


def markdown(document: doc.Document) -> str:
    """Return the whole document."""
    return "\n\n".join([f"# {escape(document.title)}", *_blocks(document.report(_ROLES))]) + "\n"


def written(several: Iterable[doc.Block]) -> str:
    """Return blocks one after another."""
    return "\n\n".join(_blocks(several)) + "\n"


def _blocks(several: Iterable[doc.Block]) -> Iterator[str]:
    for block in doc.select(several, _ROLES):
        yield from _block(block)


@singledispatch
def _block(block: doc.Block) -> Iterator[str]:
    """Write a block; one that only a page can show is nothing."""
    del block
    yield from ()


@_block.register
def _prose(block: doc.Prose) -> Iterator[str]:
    yield inline(block.text)


@_block.register
def _facts(block: doc.Facts) -> Iterator[str]:
    yield "\n".join(f"- {escape(name)}: {inline(said)}" for name, said in block.entries)


@_block.register
def _findings(block: doc.Findings) -> Iterator[str]:
    yield "\n".join(map(_remark, block.remarks))


@_block.register
def _glossary(block: doc.Glossary) -> Iterator[str]:
    lines = (
        f"- **{escape(one.title)}**: {inline(one.meaning)} {inline(linked(one.source))}"
        for one in block.entries
    )
    yield "\n".join(line.rstrip() for line in lines)


@_block.register
def _code(block: doc.Code) -> Iterator[str]:
    # Fenced by more backticks than it has in a row.
    longest = max((len(run) for run in re.findall("`+", block.text)), default=0)
    fence = "`" * max(3, longest + 1)
    body = visible(block.text, keep="\n\t")
    yield f"{fence}\n{body}\n{fence}"


@_block.register
def _section(block: doc.Section | doc.Fold) -> Iterator[str]:
    level = block.level if isinstance(block, doc.Section) else 4
    head = block.title if isinstance(block, doc.Section) else block.summary
    within = list(_blocks(block.blocks))
    yield from [f"{'#' * level} {inline(head)}", *within] if within else []


@_block.register
def _box(block: doc.Box) -> Iterator[str]:
    yield from _blocks(block.blocks)


def _remark(remark: doc.Remark) -> str:
    place = f"{escape(remark.place)}: " if remark.place else ""
    more = f" ({len(remark.more)} more like this.)" if remark.more else ""
    said = inline(remark.text)
    return f"- **{remark.level.capitalize()}**: {place}{said}{escape(more)}"


# ---------------------------------------------------------------------------------- inline text
def inline(text: doc.Text) -> str:
    """Return words, everything of them escaped."""
    if isinstance(text, tuple):
        return "".join(map(inline, text))
    if isinstance(text, str):
        return escape(text)
    # Neither can be escaped inside code; a bar would end the cell that it stands in.
    if text.kind == "code" and not {"`", "|"} & set(text.text):
        return f"`{visible(text.text)}`"
    mark = _MARKS.get(text.kind, "")
    shown = f"{mark}{escape(text.text)}{mark}"
    return f"[{shown}]({text.link})" if text.link.startswith("https://") else shown


def label(name: doc.Label | str) -> str:
    """Return the name of what is measured with its unit and where better is."""
    if isinstance(name, str):
        return escape(name)
    return f"{escape(name.text)}{name.ending}"


def escape(words: str) -> str:
    r"""Escape what Markdown would read as markup; a line break becomes a space.

    Examples
    --------
    >>> print(escape("a|b*c"))
    a\|b\*c
    """
    # split() would take the thin space between thousands for a break.
    flat = visible(re.sub(r"[ \t\r\n]+", " ", words))
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in flat)


# ---------------------------------------------------------------------------------------- tables
@_block.register
def _table(table: doc.Table) -> Iterator[str]:
    if table.caption:
        yield inline(table.caption)
    columns = range(len(table.columns))
    over = ["", *(f"{label(title)}, " for title, size in table.spans for _ in range(size))]
    over += [""] * (len(table.columns) - len(over))
    lines = [
        _row(f"{over[i]}{label(table.columns[i].label)}" for i in columns),
        _row("---:" if table.columns[i].kind == "number" else "---" for i in columns),
    ]
    for group in table.groups:
        if group.title:
            lines.append(_row([f"*{escape(group.title)}*", *[""] * (len(columns) - 1)]))
        lines += [_row(_cell(row, i) for i in columns) for row in group.rows]
    if table.rest:
        lines.append(_row([escape(table.rest), *[""] * (len(columns) - 1)]))
    yield "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(row: doc.Row, i: int) -> str:
    shown = content(row.cells[i])
    return f"&nbsp;&nbsp;{shown}" if row.kind == "group" and i == 0 else shown


def content(cell: doc.Cell) -> str:
    """Return what stands in a cell."""
    if cell is None:
        return _NOTHING
    if isinstance(cell, doc.Range):
        return between(cell.low, cell.high, cell.form, scale=cell.scale) or _NOTHING
    if isinstance(cell, doc.Shot):
        return inline(cell.alt)
    if not isinstance(cell, doc.Number):
        return label(cell) if isinstance(cell, doc.Label) else inline(cell)
    text = escape(numeral(cell))
    marked = f"**{text}**" if cell.stands == "best" else text
    tie = "†" if cell.stands == "tie" else ""
    return " ".join([f"{marked}{tie}", *map(_small, behind(cell))])


def _small(words: str) -> str:
    # An interval keeps its brackets: nothing follows that would make them a link.
    interval = words.startswith("[") and words.endswith("]")
    return f"[{escape(words[1:-1])}]" if interval else escape(words)
