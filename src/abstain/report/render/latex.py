"""LaTeX renderer for papers.

The output has no preamble.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Final

from abstain.plots.formatting import escape_control_characters
from abstain.report import document as doc
from abstain.report.formatting import number_annotations, number_text
from abstain.report.render.renderer import TextRenderer

_ESCAPES: Final = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",  # \textquotedbl needs a font encoding that is not the default
    "\u2193": r"$\downarrow$",
    "\u2191": r"$\uparrow$",
    "\u202f": r"\,",
    "\u00a0": "~",
    "\u2212": "$-$",
    "\u00d7": r"$\times$",
    "\u00b1": r"$\pm$",
    "\u2192": r"$\rightarrow$",
    "\u2264": r"$\leq$",
    "\u2265": r"$\geq$",
    "\u221e": r"$\infty$",
    "\u2020": r"\textsuperscript{\dag}",
    "\u2013": "--",
    "\u25cf": r"$\bullet$",
    "\u2716": r"$\times$",
    "\u25cb": r"$\circ$",
}

#: Escapes for code, where spaces and straight quotes are preserved.
_CODE_ESCAPES: Final = str.maketrans({**_ESCAPES, " ": "~", '"': r"{\char34}"})

_REQUIREMENTS: Final = "% Needs \\usepackage{booktabs}"
_STYLES: Final = {
    "strong": r"\textbf{{{}}}",
    "best": r"\textbf{{{}}}",
    "second": r"\underline{{{}}}",
    "em": r"\emph{{{}}}",
    "code": r"\texttt{{{}}}",
    "small": r"{{\small {}}}",
}
_HEADINGS: Final = {2: "subsection", 3: "subsubsection", 4: "subparagraph"}

#: Percentage of color of a cell, by shade.
_COLOR_PERCENT_BY_SHADE: Final = (45, 34, 24, 15, 8)


def latex(document: doc.Document) -> str:
    """Return a document as LaTeX."""
    title = rf"\section*{{{escape(document.title)}}}"
    blocks = _Latex().blocks(document.report_blocks(_Latex.roles))
    return "\n\n".join([_REQUIREMENTS, title, *blocks]) + "\n"


def latex_blocks(blocks: Iterable[doc.Block], *, header: str = _REQUIREMENTS) -> str:
    """Return blocks as LaTeX, after a comment with the required packages."""
    return "\n\n".join([header, *_Latex().blocks(blocks)]) + "\n"


def latex_float(table: doc.Table, caption: str, label: str) -> str:
    """Return a table as a LaTeX float with a caption and a label."""
    (tabular,) = _Latex().blocks([table])
    lines = [
        _REQUIREMENTS,
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{tab:{label}}}",
        tabular,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def label(name: doc.Label | str) -> str:
    """Return a label with its unit and the arrow in the direction of better values."""
    if isinstance(name, str):
        return escape(name)
    unit = r" $\times 10^3$" if name.unit else ""
    arrow = f" {escape(name.arrow)}" if name.arrow else ""
    note = f" ({escape(name.note)})" if name.note else ""
    return f"{escape(name.text)}{unit}{arrow}{note}"


def escape(text: str) -> str:
    r"""Escape the special characters of LaTeX, and replace line breaks by spaces.

    Examples
    --------
    >>> print(escape("50% of a_b"))
    50\% of a\_b
    """
    # The function uses a regular expression, because str.split() also splits at thin spaces.
    flat = escape_control_characters(re.sub(r"[ \t\r\n]+", " ", text))
    return "".join(_ESCAPES.get(c, c) for c in flat)


class _Latex(TextRenderer):
    empty_cell = "--"
    indentation = r"\quad "

    def escape(self, text: str) -> str:
        return escape(text)

    def span(self, span: doc.Span) -> str:
        return _STYLES.get(span.kind, "{}").format(escape(span.text))

    def label(self, name: doc.Label | str) -> str:
        return label(name)

    def heading(self, title: doc.Text, level: int) -> str:
        return rf"\{_HEADINGS[level]}*{{{self.inline(title)}}}"

    def items(self, items: Iterable[str], environment: str = "itemize") -> str:
        lines = [rf"\item {item}".rstrip() for item in items]
        return "\n".join([rf"\begin{{{environment}}}", *lines, rf"\end{{{environment}}}"])

    def number(self, cell: doc.Number) -> str:
        """Format a number with its marks, its color, and its interval or standard error."""
        text = escape(number_text(cell))
        code = rf"\textbf{{{text}}}" if cell.mark == "best" else text
        if cell.is_second:
            code = rf"\underline{{{code}}}"
        if cell.mark == "tie":
            code += r"\textsuperscript{\dag}"
        if cell.shade is not None:
            code = rf"\cellcolor{{blue!{_COLOR_PERCENT_BY_SHADE[cell.shade]}}}{code}"
        annotations = [rf"{{\scriptsize {escape(text)}}}" for text in number_annotations(cell)]
        return " ".join([code, *annotations])

    def prose(self, block: doc.Prose) -> Iterator[str]:
        text = self.inline(block.text)
        yield rf"{{\footnotesize {text}}}" if block.kind == "notes" else text

    def glossary(self, block: doc.Glossary) -> Iterator[str]:
        items = [
            f"[{{{escape(e.title)}}}] {self.inline(e.meaning)} {escape(e.source)}"
            for e in block.entries
        ]
        yield self.items(items, "description")

    def code(self, block: doc.Code) -> Iterator[str]:
        # Each line is written separately, because the text could end a verbatim environment.
        lines = map(escape_control_characters, block.text.splitlines())
        body = " \\\\\n".join(line.translate(_CODE_ESCAPES) for line in lines)
        yield rf"{{\ttfamily\footnotesize\noindent {body}}}"

    def table(self, table: doc.Table) -> Iterator[str]:
        """Yield the caption, and the table as a ``tabular`` environment."""
        if table.caption:
            yield self.inline(table.caption)
        n_columns = len(table.columns)
        alignment = "".join("r" if column.kind == "number" else "l" for column in table.columns)
        lines = [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule"]
        lines += self._header_lines(table)
        if not any(group.title for group in table.groups):
            lines.append(r"\midrule")
        for group in table.groups:
            if group.title:
                title = rf"\emph{{{escape(group.title)}}}"
                lines.append(r"\midrule")
                lines.append(rf"\multicolumn{{{n_columns}}}{{l}}{{{title}}} \\")
            lines += [" & ".join(self.row(row)) + r" \\" for row in group.rows]
        if table.footer:
            lines.append(rf"\multicolumn{{{n_columns}}}{{l}}{{{escape(table.footer)}}} \\")
        lines += [r"\bottomrule", r"\end{tabular}"]
        yield "\n".join(lines)

    def _header_lines(self, table: doc.Table) -> list[str]:
        """Return the header row. If there are column groups, their row is above the header row."""
        headers = " & ".join(label(column.label) for column in table.columns) + r" \\"
        if not table.column_groups:
            return [headers]
        group_headers = [
            rf"\multicolumn{{{size}}}{{c}}{{{label(title)}}}" for title, size in table.column_groups
        ]
        ends = list(itertools.accumulate((size for _, size in table.column_groups), initial=1))
        rules = "".join(rf"\cmidrule(lr){{{a + 1}-{b}}}" for a, b in itertools.pairwise(ends))
        padding = [""] * (len(table.columns) - ends[-1])
        return [" & ".join(["", *group_headers, *padding]) + r" \\", rules, headers]
