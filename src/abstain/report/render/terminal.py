"""Terminal renderer: the summary of a document, fitted to the width of the terminal."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Final

from abstain.report import document as doc
from abstain.report.render.grid import FittedTable
from abstain.report.render.lines import inline

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text as Line

#: Maximum number of findings that are printed.
_MAX_FINDINGS: Final = 8

_STYLE_BY_KIND: Final = {
    "lead": "dim",
    "about": "dim",
    "hint": "dim",
    "notes": "dim",
    "strong": "bold",
    "alarm": "bold red",
}


def terminal(document: doc.Document) -> "RenderableType":
    """Return the summary of a document as a Rich renderable."""
    return _group_blocks(document.summary_blocks())


def _group_blocks(blocks: Iterable[doc.Block]) -> "RenderableType":
    """Return blocks as one Rich renderable."""
    from rich.console import Group

    return Group(*_blocks(blocks))


def _blocks(blocks: Iterable[doc.Block]) -> Iterator[Any]:
    """Yield blocks, with an empty line around each table."""
    previous: doc.Block | None = None
    for block in blocks:
        if previous and doc.Table in {type(previous), type(block)}:
            yield inline("")
        yield from _block(block)
        previous = block


@singledispatch
def _block(block: doc.Block) -> Iterator[Any]:
    """Yield the renderables of a block; nothing for interactive blocks."""
    del block
    yield from ()


@_block.register
def _prose(block: doc.Prose) -> Iterator[Any]:
    yield inline(block.text, _STYLE_BY_KIND.get(block.kind, ""))


@_block.register
def _see_also(block: doc.SeeAlso) -> Iterator[Any]:
    yield inline(f"{block.text}{block.command_line}", "dim")


@_block.register
def _facts(block: doc.Facts) -> Iterator[Any]:
    yield inline(
        "; ".join(f"{name}: {doc.plain_text(value)}" for name, value in block.entries), "dim"
    )


@_block.register
def _glossary(block: doc.Glossary) -> Iterator[Any]:
    for entry in block.entries:
        yield inline(f"{entry.title}: {doc.plain_text(entry.meaning)}")


@_block.register
def _code(block: doc.Code) -> Iterator[Any]:
    yield from map(inline, block.text.splitlines())


@_block.register
def _section(block: doc.Section | doc.Collapsible) -> Iterator[Any]:
    title = block.title if isinstance(block, doc.Section) else block.summary
    yield from (inline(title, "bold"), *_blocks(block.blocks), inline(""))


@_block.register
def _box(block: doc.Box) -> Iterator[Any]:
    yield from _blocks(block.blocks)


# -------------------------------------------------------------------------------------- findings
@_block.register
def _findings(block: doc.Findings) -> Iterator[Any]:
    if block.is_complete:
        for group in block.remarks:
            for remark in (group, *group.similar):
                yield _remark(replace(remark, similar=()))
        return
    yield from map(_remark, block.remarks[:_MAX_FINDINGS])
    if len(block.remarks) > _MAX_FINDINGS:
        n_remaining = len(block.remarks) - _MAX_FINDINGS
        yield inline(f"{n_remaining} more notes are in the report.", "dim")


def _remark(remark: doc.Remark) -> "Line":
    warning = remark.level == "warning"
    line = inline("")
    line.append("Warning: " if warning else "Note: ", style="bold yellow" if warning else "bold")
    line.append(inline(f"{remark.location}: " if remark.location else ""))
    line.append(inline(remark.text))
    if remark.similar:
        line.append(f" ({len(remark.similar)} similar)", style="dim")
    return line


# ---------------------------------------------------------------------------------------- tables
@_block.register
def _table(table: doc.Table) -> Iterator[Any]:
    """Yield a table below its title, which may be wider than the table."""
    if table.title:
        yield inline(table.title, "italic")
    yield FittedTable(
        table.summary(), _group_blocks(table.alternative) if table.alternative else None
    )
