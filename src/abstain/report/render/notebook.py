"""A document for the cell of a notebook: what a terminal is told, and one curve."""

import base64
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import singledispatch
from hashlib import sha256
from html import escape
from typing import Final

from abstain.plots.style import DARK, LIGHT
from abstain.plots.words import visible
from abstain.report import document as doc
from abstain.report.render.elements import content, inline, label
from abstain.report.render.html import figure_svg
from abstain.report.words import count

#: Rows of a table, remarks, and letters of a figure: a notebook is saved with all of its outputs.
_ROWS: Final = 30
_REMARKS: Final = 6
_FIGURE: Final = 40_000
_DOTS: Final = 50
#: The mark that the footer of a brief explains, in a terminal and here.
_TIE_MARK: Final = "≈"

#: Where a notebook says that it is dark: JupyterLab, VS Code, and pages made of notebooks.
_DARK: Final = (
    '[data-jp-theme-light="false"]',
    ".vscode-dark",
    '[theme="dark"]',
    '[data-theme="dark"]',
)
#: Ink is that of the notebook, whichever its theme, and the paper shows through.
_STYLE: Final = """\
.abstain-brief { --ink: currentColor; --raised: transparent;
 --muted: color-mix(in srgb, currentColor 65%, transparent);
 --grid: color-mix(in srgb, currentColor 18%, transparent);
 font: 13px/1.45 system-ui, sans-serif; max-width: 60rem; overflow-x: auto; }
.abstain-brief p { margin: .3em 0; }
.abstain-brief p.small, .abstain-brief small { color: var(--muted); font-size: 12px; }
.abstain-brief table { border-collapse: collapse; margin: .5em 0; color: inherit; }
.abstain-brief caption { caption-side: top; text-align: left; color: var(--muted); }
.abstain-brief th, .abstain-brief td { background: none; color: inherit; padding: .2em .7em;
 border-bottom: 1px solid var(--grid); text-align: left; vertical-align: top; }
.abstain-brief .num { text-align: right; font-variant-numeric: tabular-nums; }
.abstain-brief thead th { font-weight: 600; }
.abstain-brief tbody th { font-weight: 400; overflow-wrap: break-word; max-width: 22rem; }
.abstain-brief td small { display: block; }
.abstain-brief svg, .abstain-brief img { max-width: 30rem; width: 100%; height: auto; }
.abstain-brief img { background: #fff; }
.abstain-brief .best { font-weight: 700; }
"""


def notebook(document: doc.Document) -> str:
    """Return one element; it loads nothing, and has the colors of the notebook around it."""
    head = f"<p><strong>{inline(document.title)}</strong></p>"
    said = "".join(_blocks(document.summary()))
    return f'<div class="abstain-brief"><style>{_style()}</style>{head}{said}</div>'


def _style() -> str:
    def colors(of: Iterable[str]) -> str:
        return " ".join(f"--score-{i}: {color};" for i, color in enumerate(of))

    dark = ", ".join(f"{where} .abstain-brief" for where in _DARK)
    return f"{_STYLE}.abstain-brief {{ {colors(LIGHT)} }}\n{dark} {{ {colors(DARK)} }}\n"


# ---------------------------------------------------------------------------------------- blocks
def _blocks(several: Iterable[doc.Block]) -> Iterator[str]:
    for block in several:
        yield from _block(block)


@singledispatch
def _block(block: doc.Block) -> Iterator[str]:
    """Write a block; one that only a page can show is nothing."""
    del block
    yield from ()


@_block.register
def _prose(block: doc.Prose) -> Iterator[str]:
    strong = block.kind in {"strong", "alarm"}
    small = ' class="small"' if block.kind in {"about", "hint", "notes"} else ""
    said = inline(doc.Span(doc.joined(block.text), "strong") if strong else block.text)
    yield f"<p{small}>{said}</p>"


@_block.register
def _more(block: doc.More) -> Iterator[str]:
    yield f'<p class="small">{inline(f"{block.text}{block.python}")}</p>'


@_block.register
def _facts(block: doc.Facts) -> Iterator[str]:
    said = "; ".join(f"{inline(name)}: {inline(fact)}" for name, fact in block.entries)
    yield f'<p class="small">{said}</p>'


@_block.register
def _figure(block: doc.Figure) -> Iterator[str]:
    """Write the lines of a figure where they are few, else its picture."""
    # What a figure calls its parts must be its own among all outputs of a notebook.
    drawn = sha256(block.display.frame().write_csv().encode()).hexdigest()[:12]
    shown = str(figure_svg(replace(block, key=f"{block.key}-{drawn}")))
    if len(shown) > _FIGURE:
        data = base64.b64encode(block.display.image(".png", dpi=_DOTS)).decode()
        alt = escape(visible(block.title))
        shown = f'<img alt="{alt}" src="data:image/png;base64,{data}">'
    yield shown
    if block.about:
        yield f'<p class="small">{inline(block.about)}</p>'


@_block.register
def _code(block: doc.Code) -> Iterator[str]:
    yield f"<pre>{inline(block.text)}</pre>"


@_block.register
def _section(block: doc.Section | doc.Fold) -> Iterator[str]:
    head = block.title if isinstance(block, doc.Section) else block.summary
    yield f"<p><strong>{inline(head)}</strong></p>"
    yield from _blocks(block.blocks)


@_block.register
def _box(block: doc.Box) -> Iterator[str]:
    yield from _blocks(block.blocks)


@_block.register
def _findings(block: doc.Findings) -> Iterator[str]:
    """Fold the findings under their number: the table is what was asked for."""
    if not block.remarks:
        return
    warnings = sum(remark.level == "warning" for remark in block.remarks)
    numbers = ((warnings, "warning"), (len(block.remarks) - warnings, "note"))
    said = " and ".join(f"{count(n)} {what}{'s' * (n != 1)}" for n, what in numbers if n)
    lines = "".join(f"<li>{_remark(remark)}</li>" for remark in block.remarks[:_REMARKS])
    left = len(block.remarks) - _REMARKS
    lines += f"<li>... and {count(left)} more, in the report</li>" if left > 0 else ""
    yield f"<details><summary>{said}</summary><ul>{lines}</ul></details>"


def _remark(remark: doc.Remark) -> str:
    place = f"{inline(remark.place)}: " if remark.place else ""
    more = f" ({count(len(remark.more))} more like this.)" if remark.more else ""
    return f"{remark.level.capitalize()}: {place}{inline(remark.text)}{more}"


# ---------------------------------------------------------------------------------------- tables
@_block.register
def _table(table: doc.Table) -> Iterator[str]:
    table = table.summary()
    columns = range(len(table.columns))
    heads = "".join(
        f'<th scope="col"{_look(table.columns[i])}>{label(table.columns[i].label)}</th>'
        for i in columns
    )
    rows = "".join(_row(table, row, columns) for row in table.rows[:_ROWS])
    caption = f"<caption>{inline(table.title)}</caption>" if table.title else ""
    yield f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    if (left := len(table.rows) - _ROWS) > 0:
        rest = "more rows; .frame() has all."
        yield f'<p class="small">{count(left)} {inline(rest)}</p>'


def _look(column: doc.Column) -> str:
    return ' class="num"' if column.kind == "number" else ""


def _row(table: doc.Table, row: doc.Row, columns: Iterable[int]) -> str:
    return f"<tr>{''.join(_cell(table.columns[i], row.cells[i], i) for i in columns)}</tr>"


def _cell(column: doc.Column, cell: doc.Cell, place: int) -> str:
    # What a page lets its reader choose is shown in one way.
    cell = replace(cell, per_thousand=False) if isinstance(cell, doc.Number) else cell
    element = 'th scope="row"' if place == 0 else "td"
    return f"<{element}{_look(column)}>{content(cell, _TIE_MARK)}</{element.split(maxsplit=1)[0]}>"
