"""LaTeX renderer, for papers; the output has no preamble."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from typing import Final

from abstain.plots.formatting import escape_control_characters
from abstain.report import document as doc
from abstain.report.formatting import format_interval, number_annotations, number_text

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
_TIE_MARK: Final = r"\textsuperscript{\dag}"
_EMPTY_CELL: Final = "--"
_UNIT: Final = r" $\times 10^3$"
_MARKS: Final = {
    "strong": r"\textbf{{{}}}",
    "best": r"\textbf{{{}}}",
    "em": r"\emph{{{}}}",
    "code": r"\texttt{{{}}}",
    "small": r"{{\small {}}}",
}
_SECTIONS: Final = {2: "section", 3: "subsection", 4: "paragraph"}


#: Percentage of color of a cell, by shade.
_COLOR_PERCENT_BY_SHADE: Final = (45, 34, 24, 15, 8)


_ROLES: Final[frozenset[doc.Role]] = frozenset({"key", "detail", "static"})


def latex(document: doc.Document) -> str:
    """Return a document as LaTeX."""
    title = rf"\section*{{{escape(document.title)}}}"
    return "\n\n".join([_REQUIREMENTS, title, *_blocks(document.report_blocks(_ROLES))]) + "\n"


def latex_blocks(blocks: Iterable[doc.Block], *, header: str = _REQUIREMENTS) -> str:
    """Return blocks as LaTeX, after a comment with the required packages."""
    return "\n\n".join([header, *_blocks(blocks)]) + "\n"


def _blocks(blocks: Iterable[doc.Block]) -> Iterator[str]:
    for block in doc.select_blocks(blocks, _ROLES):
        yield from _block(block)


@singledispatch
def _block(block: doc.Block) -> Iterator[str]:
    """Yield the LaTeX of a block; nothing for interactive blocks."""
    del block
    yield from ()


@_block.register
def _prose(block: doc.Prose) -> Iterator[str]:
    text = inline(block.text)
    yield rf"{{\footnotesize {text}}}" if block.kind == "notes" else text


@_block.register
def _facts(block: doc.Facts) -> Iterator[str]:
    yield _items("itemize", (f" {escape(name)}: {inline(value)}" for name, value in block.entries))


@_block.register
def _findings(block: doc.Findings) -> Iterator[str]:
    yield _items("itemize", map(_remark, block.remarks))


@_block.register
def _glossary(block: doc.Glossary) -> Iterator[str]:
    yield _items(
        "description",
        (f"[{{{escape(e.title)}}}] {inline(e.meaning)} {escape(e.source)}" for e in block.entries),
    )


@_block.register
def _code(block: doc.Code) -> Iterator[str]:
    # Line by line, because the text could contain the end of a verbatim environment.
    lines = (
        escape_control_characters(line).translate(_CODE_ESCAPES) for line in block.text.splitlines()
    )
    body = " \\\\\n".join(lines)
    yield rf"{{\ttfamily\footnotesize\noindent {body}}}"


@_block.register
def _section(block: doc.Section | doc.Collapsible) -> Iterator[str]:
    level = block.level if isinstance(block, doc.Section) else 4
    title = block.title if isinstance(block, doc.Section) else block.summary
    contents = list(_blocks(block.blocks))
    yield from [rf"\sub{_SECTIONS[level]}*{{{inline(title)}}}", *contents] if contents else []


@_block.register
def _box(block: doc.Box) -> Iterator[str]:
    yield from _blocks(block.blocks)


def _items(environment: str, items: Iterable[str]) -> str:
    lines = [rf"\item{item.rstrip()}" for item in items]
    return "\n".join([rf"\begin{{{environment}}}", *lines, rf"\end{{{environment}}}"])


def _remark(remark: doc.Remark) -> str:
    location = f"{escape(remark.location)}: " if remark.location else ""
    n_similar = f" ({len(remark.similar)} similar)" if remark.similar else ""
    return rf" \textbf{{{remark.level.capitalize()}}}: {location}{inline(remark.text)}{n_similar}"


# ---------------------------------------------------------------------------------- inline text
def inline(text: doc.Text) -> str:
    """Return inline text with all special characters escaped."""
    if isinstance(text, tuple):
        return "".join(map(inline, text))
    if isinstance(text, str):
        return escape(text)
    return _MARKS.get(text.kind, "{}").format(escape(text.text))


def label(name: doc.Label | str) -> str:
    """Return a label with its unit and the arrow in the direction of better values."""
    if isinstance(name, str):
        return escape(name)
    arrow = f" {escape(name.arrow)}" if name.arrow else ""
    return f"{escape(name.text)}{_UNIT if name.unit else ''}{arrow}"


def escape(text: str) -> str:
    r"""Escape the special characters of LaTeX; line breaks become spaces.

    Examples
    --------
    >>> print(escape("50% of a_b"))
    50\% of a\_b
    """
    # A regular expression, because str.split() also splits at thin spaces.
    flat = escape_control_characters(re.sub(r"[ \t\r\n]+", " ", text))
    return "".join(_ESCAPES.get(c, c) for c in flat)


# ---------------------------------------------------------------------------------------- tables
@_block.register
def _table(table: doc.Table) -> Iterator[str]:
    columns = range(len(table.columns))
    width = len(columns)
    if table.caption:
        yield inline(table.caption)
    kinds = "".join("r" if table.columns[i].kind == "number" else "l" for i in columns)
    lines = [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", *_header_lines(table, columns)]
    if not any(group.title for group in table.groups):
        lines.append(r"\midrule")
    for group in table.groups:
        if group.title:
            title = rf"\emph{{{escape(group.title)}}}"
            lines += [r"\midrule", rf"\multicolumn{{{width}}}{{l}}{{{title}}} \\"]
        lines += [" & ".join(_cell_code(row, i) for i in columns) + r" \\" for row in group.rows]
    if table.footer:
        lines.append(rf"\multicolumn{{{width}}}{{l}}{{{escape(table.footer)}}} \\")
    yield "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _header_lines(table: doc.Table, columns: Sequence[int]) -> list[str]:
    """Return the header row, with a row of column groups above it if there are some."""
    heads = " & ".join(label(table.columns[i].label) for i in columns) + r" \\"
    if not table.column_groups:
        return [heads]
    spans = [
        rf"\multicolumn{{{size}}}{{c}}{{{label(title)}}}" for title, size in table.column_groups
    ]
    ends = list(itertools.accumulate((size for _, size in table.column_groups), initial=1))
    rules = "".join(rf"\cmidrule(lr){{{a + 1}-{b}}}" for a, b in itertools.pairwise(ends))
    above = ["", *spans, *[""] * (len(columns) - ends[-1])]
    return [" & ".join(above) + r" \\", rules, heads]


def _cell_code(row: doc.Row, i: int) -> str:
    code = cell_content(row.cells[i])
    return rf"\quad {code}" if row.kind == "group" and i == 0 else code


def cell_content(cell: doc.Cell) -> str:
    """Return the content of a table cell."""
    if cell is None:
        return _EMPTY_CELL
    if isinstance(cell, doc.Range):
        return (
            escape(format_interval(cell.low, cell.high, cell.number_format, scale=cell.scale))
            or _EMPTY_CELL
        )
    if isinstance(cell, doc.Thumbnail):
        return inline(cell.alt)
    if not isinstance(cell, doc.Number):
        return label(cell) if isinstance(cell, doc.Label) else inline(cell)
    text = escape(number_text(cell))
    code = rf"\textbf{{{text}}}" if cell.mark == "best" else text
    code += _TIE_MARK if cell.mark == "tie" else ""
    annotations = " ".join(
        rf"{{\scriptsize {escape(words)}}}" for words in number_annotations(cell)
    )
    shade = (
        "" if cell.shade is None else rf"\cellcolor{{blue!{_COLOR_PERCENT_BY_SHADE[cell.shade]}}}"
    )
    return f"{shade}{code} {annotations}".rstrip()
