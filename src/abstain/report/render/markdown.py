"""Markdown renderer, for issues, README files and notebooks."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from abstain.plots.formatting import escape_control_characters
from abstain.report import document as doc
from abstain.report.formatting import number_annotations, number_text, split_links
from abstain.report.render.renderer import TextRenderer

#: Characters with a special meaning anywhere in a line or in a table cell. An underscore between
#: letters or digits has no special meaning, and "&" is special only in an entity.
_SPECIAL: Final = re.compile(r"[\\`*{}\[\]|~$]|<(?=[\w/!?])|(?<![^\W_])_|_(?![^\W_])|&(?=[#\w])")

#: Characters with a special meaning at the beginning of a line.
_SPECIAL_AT_START: Final = re.compile(r"^(?:[>#]|[+-](?=\s))")

_MARKS: Final = {"strong": "**", "best": "**", "em": "*", "small": "", "undefined": "*"}


def markdown(document: doc.Document) -> str:
    """Return a document as Markdown."""
    title = f"# {escape(document.title)}"
    blocks = _Markdown().blocks(document.report_blocks(_Markdown.roles))
    return "\n\n".join([title, *blocks]) + "\n"


def markdown_blocks(blocks: Iterable[doc.Block]) -> str:
    """Return blocks as Markdown."""
    return "\n\n".join(_Markdown().blocks(blocks)) + "\n"


def escape(text: str) -> str:
    r"""Escape the special characters of Markdown, and replace line breaks by spaces.

    Examples
    --------
    >>> print(escape("a|b*c"))
    a\|b\*c
    """
    # The function uses a regular expression, because str.split() also splits at thin spaces.
    flat = escape_control_characters(re.sub(r"[ \t\r\n]+", " ", text))
    return _SPECIAL_AT_START.sub(r"\\\g<0>", _SPECIAL.sub(r"\\\g<0>", flat))


class _Markdown(TextRenderer):
    empty_cell = "–"
    indentation = "&nbsp;&nbsp;"

    def escape(self, text: str) -> str:
        return escape(text)

    def span(self, span: doc.Span) -> str:
        """Format text in bold or italics, as code, or as a link."""
        # Backticks and bars cannot be escaped inside code, where a bar would end the table cell.
        if span.kind == "code" and not {"`", "|"} & set(span.text):
            return f"`{escape_control_characters(span.text)}`"
        mark = _MARKS.get(span.kind, "")
        text = f"{mark}{escape(span.text)}{mark}"
        if span.kind == "second":
            # Markdown has no syntax for underlines, but GitHub permits this HTML element.
            text = f"<ins>{text}</ins>"
        return f"[{text}]({span.link})" if span.link.startswith("https://") else text

    def label(self, name: doc.Label | str) -> str:
        if isinstance(name, str):
            return escape(name)
        note = f" ({escape(name.note)})" if name.note else ""
        return f"{escape(name.text)}{name.suffix}{note}"

    def heading(self, title: doc.Text, level: int) -> str:
        return f"{'#' * level} {self.inline(title)}"

    def items(self, items: Iterable[str]) -> str:
        return "\n".join(f"- {item}".rstrip() for item in items)

    def number(self, cell: doc.Number) -> str:
        """Format a number with its marks, and its interval or standard error."""
        text = escape(number_text(cell))
        number = f"**{text}**" if cell.mark == "best" else text
        if cell.is_second:
            number = f"<ins>{number}</ins>"
        tie = "†" if cell.mark == "tie" else ""
        # The brackets of an interval are not escaped, because a link needs a URL after the
        # brackets.
        annotations = [
            f"[{escape(text[1:-1])}]"
            if text.startswith("[") and text.endswith("]")
            else escape(text)
            for text in number_annotations(cell)
        ]
        return " ".join([f"{number}{tie}", *annotations])

    def prose(self, block: doc.Prose) -> Iterator[str]:
        yield self.inline(block.text)

    def glossary(self, block: doc.Glossary) -> Iterator[str]:
        yield self.items(
            f"**{escape(entry.title)}**: {self.inline(entry.meaning)} "
            f"{self.inline(split_links(entry.source))}"
            for entry in block.entries
        )

    def code(self, block: doc.Code) -> Iterator[str]:
        # The fence is longer than any sequence of backticks in the code.
        max_backticks = max((len(run) for run in re.findall("`+", block.text)), default=0)
        fence = "`" * max(3, max_backticks + 1)
        body = escape_control_characters(block.text, allowed="\n\t")
        yield f"{fence}\n{body}\n{fence}"

    def table(self, table: doc.Table) -> Iterator[str]:
        """Yield the caption and the rows of the table, in which bars separate the cells."""
        if table.caption:
            yield self.inline(table.caption)
        headers = [self.label(column.label) for column in table.columns]
        group_titles = [title for title, size in table.column_groups for _ in range(size)]
        for i, title in enumerate(group_titles, start=1):
            headers[i] = f"{self.label(title)}, {headers[i]}"
        padding = [""] * (len(headers) - 1)
        rows = [headers, ["---:" if c.kind == "number" else "---" for c in table.columns]]
        for group in table.groups:
            if group.title:
                rows.append([f"*{escape(group.title)}*", *padding])
            rows += map(self.row, group.rows)
        if table.footer:
            rows.append([escape(table.footer), *padding])
        yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
