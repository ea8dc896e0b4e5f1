"""Base classes of the renderers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from abstain.report import document as doc
from abstain.report.formatting import format_interval


class Renderer:
    """A renderer with a method for each type of block that it writes.

    The method has the name of the type in lower case, such as `table`, and yields the text of the
    block. Blocks of other types, such as the controls of a page, are omitted.
    """

    #: Roles of the blocks that are written.
    roles: ClassVar[frozenset[doc.Role]] = doc.SUMMARY

    def blocks(self, blocks: Iterable[doc.Block]) -> Iterator[Any]:
        """Yield the output of blocks."""
        for block in doc.select_blocks(blocks, self.roles):
            write = getattr(self, type(block).__name__.lower(), None)
            if write is not None:
                yield from write(block)

    def box(self, block: doc.Box) -> Iterator[Any]:
        """Yield the blocks of a box."""
        yield from self.blocks(block.blocks)


class TextRenderer(Renderer, ABC):
    """A renderer that writes a complete report as text, such as Markdown or LaTeX."""

    roles = frozenset({"key", "detail", "static"})
    empty_cell: ClassVar[str]
    #: Text before the first cell of a row of kind "group".
    indentation: ClassVar[str]

    @abstractmethod
    def escape(self, text: str) -> str:
        """Escape the special characters of the format."""

    @abstractmethod
    def span(self, span: doc.Span) -> str:
        """Format text with a style."""

    @abstractmethod
    def label(self, name: doc.Label | str) -> str:
        """Format a label with its unit and the arrow in the direction of better values."""

    @abstractmethod
    def heading(self, title: doc.Text, level: int) -> str:
        """Format the heading of a section."""

    @abstractmethod
    def items(self, items: Iterable[str]) -> str:
        """Format a list of items."""

    @abstractmethod
    def number(self, cell: doc.Number) -> str:
        """Format a number with its marks, and its interval or standard error."""

    def inline(self, text: doc.Text) -> str:
        """Format inline text, in which all special characters are escaped."""
        if isinstance(text, tuple):
            return "".join(map(self.inline, text))
        return self.escape(text) if isinstance(text, str) else self.span(text)

    def cell(self, cell: doc.Cell) -> str:
        """Format the content of a table cell."""
        if cell is None:
            return self.empty_cell
        if isinstance(cell, doc.Number):
            return self.number(cell)
        if isinstance(cell, doc.Range):
            interval = format_interval(cell.low, cell.high, cell.number_format, scale=cell.scale)
            return self.escape(interval) or self.empty_cell
        if isinstance(cell, doc.IntervalMark):
            return self.escape(cell.text) or self.empty_cell
        if isinstance(cell, doc.Thumbnail):
            return self.escape(cell.alt)
        return self.label(cell) if isinstance(cell, doc.Label) else self.inline(cell)

    def row(self, row: doc.Row) -> list[str]:
        """Format the cells of a row."""
        cells = [self.cell(cell) for cell in row.cells]
        if row.kind == "group":
            cells[0] = f"{self.indentation}{cells[0]}"
        return cells

    def section(self, block: doc.Section | doc.Collapsible) -> Iterator[str]:
        """Yield the heading and the contents of a section, or nothing for an empty section."""
        contents = list(self.blocks(block.blocks))
        if not contents:
            return
        if isinstance(block, doc.Section):
            yield self.heading(block.title, block.level)
        else:
            yield self.heading(block.summary, 2 if block.style == "end" else 4)
        yield from contents

    collapsible = section

    def facts(self, block: doc.Facts) -> Iterator[str]:
        """Yield the facts as a list."""
        yield self.items(f"{self.escape(name)}: {self.inline(x)}" for name, x in block.entries)

    def findings(self, block: doc.Findings) -> Iterator[str]:
        """Yield the warnings and notes as a list."""
        yield self.items(map(self._remark, block.remarks))

    def warnings(self, block: doc.Warnings) -> Iterator[str]:
        """Yield the warnings as a list."""
        yield self.items(map(self._remark, block.remarks))

    def keynumbers(self, block: doc.KeyNumbers) -> Iterator[str]:
        """Yield the key numbers as a list."""
        yield self.items(
            f"{self.escape(number.label)}: {self.inline(number.value)}"
            + (f" ({self.inline(number.detail)})" if number.detail else "")
            for number in block.numbers
        )

    def _remark(self, remark: doc.Remark) -> str:
        level = self.span(doc.Span(remark.level.capitalize(), "strong"))
        location = f"{self.escape(remark.location)}: " if remark.location else ""
        n_similar = self.escape(f" ({len(remark.similar)} similar)") if remark.similar else ""
        return f"{level}: {location}{self.inline(remark.text)}{n_similar}"
