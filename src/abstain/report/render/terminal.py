"""Terminal renderer, which writes a short report that fits the width of the terminal."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from abstain.report import document as doc
from abstain.report.render.grid import FittedTable, inline
from abstain.report.render.renderer import Renderer

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
}


def terminal(document: doc.Document) -> "RenderableType":
    """Return the short report of a document as a renderable of the library rich."""
    from rich.console import Group

    return Group(*_Terminal().blocks(document.summary_blocks()))


class _Terminal(Renderer):
    def blocks(self, blocks: Iterable[doc.Block]) -> Iterator[Any]:
        """Yield blocks, with an empty line before and after each table."""
        previous: doc.Block | None = None
        for block in blocks:
            if previous and doc.Table in {type(previous), type(block)}:
                yield inline("")
            yield from super().blocks([block])
            previous = block

    def prose(self, block: doc.Prose) -> Iterator[Any]:
        yield inline(block.text, _STYLE_BY_KIND.get(block.kind, ""))

    def seealso(self, block: doc.SeeAlso) -> Iterator[Any]:
        yield inline(f"{block.text}{block.command_line}", "dim")

    def facts(self, block: doc.Facts) -> Iterator[Any]:
        facts = (f"{name}: {doc.plain_text(value)}" for name, value in block.entries)
        yield inline("; ".join(facts), "dim")

    def glossary(self, block: doc.Glossary) -> Iterator[Any]:
        for entry in block.entries:
            yield inline(f"{entry.title}: {doc.plain_text(entry.meaning)}")

    def code(self, block: doc.Code) -> Iterator[Any]:
        yield from map(inline, block.text.splitlines())

    def collapsible(self, block: doc.Collapsible) -> Iterator[Any]:
        yield from (inline(block.summary, "bold"), *self.blocks(block.blocks), inline(""))

    def findings(self, block: doc.Findings) -> Iterator[Any]:
        """Yield the first warnings and notes, or all of them if `is_complete` is true."""
        if block.is_complete:
            for group in block.remarks:
                for remark in (group, *group.similar):
                    yield _remark(replace(remark, similar=()))
            return
        yield from map(_remark, block.remarks[:_MAX_FINDINGS])
        n_remaining = len(block.remarks) - _MAX_FINDINGS
        if n_remaining > 0:
            notes = "1 more note is" if n_remaining == 1 else f"{n_remaining} more notes are"
            yield inline(f"{notes} in the report.", "dim")

    def table(self, table: doc.Table) -> Iterator[Any]:
        from rich.console import Group

        # The title may be wider than the table.
        if table.title:
            yield inline(table.title, "italic")
        alternative = Group(*self.blocks(table.alternative)) if table.alternative else None
        yield FittedTable(table.summary(), alternative)


def _remark(remark: doc.Remark) -> "Line":
    """Return a line with a warning or note, and with the number of similar notes."""
    is_warning = remark.level == "warning"
    line = inline("")
    line.append("Warning: " if is_warning else "Note: ", "bold yellow" if is_warning else "bold")
    line.append(inline(f"{remark.location}: " if remark.location else ""))
    line.append(inline(remark.text))
    if remark.similar:
        line.append(f" ({len(remark.similar)} similar)", style="dim")
    return line
