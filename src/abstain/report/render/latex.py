"""A document in LaTeX, for a paper: pieces without a preamble."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from typing import Final

from abstain.plots.words import visible
from abstain.report import document as doc
from abstain.report.words import behind, between, numeral

_SPECIAL: Final = {
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

#: Code keeps its blanks and its straight quotes.
_LITERAL: Final = str.maketrans({**_SPECIAL, " ": "~", '"': r"{\char34}"})

_NEEDS: Final = "% Needs \\usepackage{booktabs}"
_TIE: Final = r"\textsuperscript{\dag}"
_NOTHING: Final = "--"
_UNIT: Final = r" $\times 10^3$"
_MARKS: Final = {
    "strong": r"\textbf{{{}}}",
    "best": r"\textbf{{{}}}",
    "em": r"\emph{{{}}}",
    "code": r"\texttt{{{}}}",
    "small": r"{{\small {}}}",
}
_SECTIONS: Final = {2: "section", 3: "subsection", 4: "paragraph"}


#: How strong the color of a cell is, in percent, by its shade.
_STRENGTH: Final = (45, 34, 24, 15, 8)


_ROLES: Final[frozenset[doc.Role]] = frozenset({"key", "detail", "static"})


def latex(document: doc.Document) -> str:
    """Return the whole document."""
    title = rf"\section*{{{escape(document.title)}}}"
    return "\n\n".join([_NEEDS, title, *_blocks(document.report(_ROLES))]) + "\n"


def written(several: Iterable[doc.Block], *, head: str = _NEEDS) -> str:
    """Return blocks one after another, under a comment that says what they need."""
    return "\n\n".join([head, *_blocks(several)]) + "\n"


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
    said = inline(block.text)
    yield rf"{{\footnotesize {said}}}" if block.kind == "notes" else said


@_block.register
def _facts(block: doc.Facts) -> Iterator[str]:
    yield _items("itemize", (f" {escape(name)}: {inline(said)}" for name, said in block.entries))


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
    # Line by line: an environment of its own could be ended by what stands in it.
    lines = (visible(line).translate(_LITERAL) for line in block.text.splitlines())
    body = " \\\\\n".join(lines)
    yield rf"{{\ttfamily\footnotesize\noindent {body}}}"


@_block.register
def _section(block: doc.Section | doc.Fold) -> Iterator[str]:
    level = block.level if isinstance(block, doc.Section) else 4
    head = block.title if isinstance(block, doc.Section) else block.summary
    within = list(_blocks(block.blocks))
    yield from [rf"\sub{_SECTIONS[level]}*{{{inline(head)}}}", *within] if within else []


@_block.register
def _box(block: doc.Box) -> Iterator[str]:
    yield from _blocks(block.blocks)


def _items(environment: str, items: Iterable[str]) -> str:
    lines = [rf"\item{item.rstrip()}" for item in items]
    return "\n".join([rf"\begin{{{environment}}}", *lines, rf"\end{{{environment}}}"])


def _remark(remark: doc.Remark) -> str:
    place = f"{escape(remark.place)}: " if remark.place else ""
    more = f" ({len(remark.more)} more like this.)" if remark.more else ""
    return rf" \textbf{{{remark.level.capitalize()}}}: {place}{inline(remark.text)}{more}"


# ---------------------------------------------------------------------------------- inline text
def inline(text: doc.Text) -> str:
    """Return words, everything of them escaped."""
    if isinstance(text, tuple):
        return "".join(map(inline, text))
    if isinstance(text, str):
        return escape(text)
    return _MARKS.get(text.kind, "{}").format(escape(text.text))


def label(name: doc.Label | str) -> str:
    """Return the name of what is measured with its unit and where better is."""
    if isinstance(name, str):
        return escape(name)
    arrow = f" {escape(name.arrow)}" if name.arrow else ""
    return f"{escape(name.text)}{_UNIT if name.unit else ''}{arrow}"


def escape(words: str) -> str:
    r"""Escape what LaTeX would read as a command; a line break becomes a space.

    Examples
    --------
    >>> print(escape("50 % of a_b"))
    50 \% of a\_b
    """
    # split() would take the thin space between thousands for a break.
    flat = visible(re.sub(r"[ \t\r\n]+", " ", words))
    return "".join(_SPECIAL.get(c, c) for c in flat)


# ---------------------------------------------------------------------------------------- tables
@_block.register
def _table(table: doc.Table) -> Iterator[str]:
    columns = range(len(table.columns))
    width = len(columns)
    if table.caption:
        yield inline(table.caption)
    kinds = "".join("r" if table.columns[i].kind == "number" else "l" for i in columns)
    lines = [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", *_heads(table, columns)]
    if not any(group.title for group in table.groups):
        lines.append(r"\midrule")
    for group in table.groups:
        if group.title:
            title = rf"\emph{{{escape(group.title)}}}"
            lines += [r"\midrule", rf"\multicolumn{{{width}}}{{l}}{{{title}}} \\"]
        lines += [" & ".join(_cell(row, i) for i in columns) + r" \\" for row in group.rows]
    if table.rest:
        lines.append(rf"\multicolumn{{{width}}}{{l}}{{{escape(table.rest)}}} \\")
    yield "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _heads(table: doc.Table, columns: Sequence[int]) -> list[str]:
    """Return one row of heads, or a second above it where columns belong together."""
    heads = " & ".join(label(table.columns[i].label) for i in columns) + r" \\"
    if not table.spans:
        return [heads]
    spans = [rf"\multicolumn{{{size}}}{{c}}{{{label(title)}}}" for title, size in table.spans]
    ends = list(itertools.accumulate((size for _, size in table.spans), initial=1))
    rules = "".join(rf"\cmidrule(lr){{{a + 1}-{b}}}" for a, b in itertools.pairwise(ends))
    above = ["", *spans, *[""] * (len(columns) - ends[-1])]
    return [" & ".join(above) + r" \\", rules, heads]


def _cell(row: doc.Row, i: int) -> str:
    shown = content(row.cells[i])
    return rf"\quad {shown}" if row.kind == "group" and i == 0 else shown


def content(cell: doc.Cell) -> str:
    """Return what stands in a cell."""
    if cell is None:
        return _NOTHING
    if isinstance(cell, doc.Range):
        return escape(between(cell.low, cell.high, cell.form, scale=cell.scale)) or _NOTHING
    if isinstance(cell, doc.Shot):
        return inline(cell.alt)
    if not isinstance(cell, doc.Number):
        return label(cell) if isinstance(cell, doc.Label) else inline(cell)
    text = escape(numeral(cell))
    marked = rf"\textbf{{{text}}}" if cell.stands == "best" else text
    marked += _TIE if cell.stands == "tie" else ""
    small = " ".join(rf"{{\scriptsize {escape(words)}}}" for words in behind(cell))
    shade = "" if cell.shade is None else rf"\cellcolor{{blue!{_STRENGTH[cell.shade]}}}"
    return f"{shade}{marked} {small}".rstrip()
