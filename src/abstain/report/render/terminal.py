"""The summary of a document for a terminal, in as many columns as there are."""

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

#: Findings printed before the rest is only counted.
_FINDINGS: Final = 8

_PROSE: Final = {
    "lead": "dim",
    "about": "dim",
    "hint": "dim",
    "notes": "dim",
    "strong": "bold",
    "alarm": "bold red",
}


def terminal(document: doc.Document) -> "RenderableType":
    """Return what a `rich.console.Console` prints."""
    return _printed(document.summary())


def _printed(several: Iterable[doc.Block]) -> "RenderableType":
    """Return blocks one after another."""
    from rich.console import Group

    return Group(*_blocks(several))


def _blocks(several: Iterable[doc.Block]) -> Iterator[Any]:
    """Yield blocks, with an empty line around each table."""
    previous: doc.Block | None = None
    for block in several:
        if previous and doc.Table in {type(previous), type(block)}:
            yield inline("")
        yield from _block(block)
        previous = block


@singledispatch
def _block(block: doc.Block) -> Iterator[Any]:
    """Print a block; one that only a page can show is nothing."""
    del block
    yield from ()


@_block.register
def _prose(block: doc.Prose) -> Iterator[Any]:
    yield inline(block.text, _PROSE.get(block.kind, ""))


@_block.register
def _more(block: doc.More) -> Iterator[Any]:
    yield inline(f"{block.text}{block.command_line}", "dim")


@_block.register
def _facts(block: doc.Facts) -> Iterator[Any]:
    yield inline("; ".join(f"{name}: {doc.joined(said)}" for name, said in block.entries), "dim")


@_block.register
def _glossary(block: doc.Glossary) -> Iterator[Any]:
    yield from (inline(f"{one.title}: {doc.joined(one.meaning)}") for one in block.entries)


@_block.register
def _code(block: doc.Code) -> Iterator[Any]:
    yield from map(inline, block.text.splitlines())


@_block.register
def _section(block: doc.Section | doc.Fold) -> Iterator[Any]:
    head = block.title if isinstance(block, doc.Section) else block.summary
    yield from (inline(head, "bold"), *_blocks(block.blocks), inline(""))


@_block.register
def _box(block: doc.Box) -> Iterator[Any]:
    yield from _blocks(block.blocks)


# -------------------------------------------------------------------------------------- findings
@_block.register
def _findings(block: doc.Findings) -> Iterator[Any]:
    if block.is_complete:
        each = [one for remark in block.remarks for one in (remark, *remark.more)]
        yield from (_remark(replace(one, more=())) for one in each)
        return
    yield from map(_remark, block.remarks[:_FINDINGS])
    if len(block.remarks) > _FINDINGS:
        rest = len(block.remarks) - _FINDINGS
        yield inline(f"... and {rest} more; the report lists them all.", "dim")


def _remark(remark: doc.Remark) -> "Line":
    warning = remark.level == "warning"
    line = inline("")
    line.append("Warning: " if warning else "Note: ", style="bold yellow" if warning else "bold")
    line.append(inline(f"{remark.place}: " if remark.place else ""))
    line.append(inline(remark.text))
    if remark.more:
        line.append(f" ({len(remark.more)} more like this.)", style="dim")
    return line


# ---------------------------------------------------------------------------------------- tables
@_block.register
def _titled(table: doc.Table) -> Iterator[Any]:
    """Yield a table under its title, which may be wider than it."""
    if table.title:
        yield inline(table.title, "italic")
    yield FittedTable(table.summary(), _printed(table.instead) if table.instead else None)
