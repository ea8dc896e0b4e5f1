"""Notebook renderer: the summary of a document and one curve as an HTML element."""

import base64
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import singledispatch
from hashlib import sha256
from html import escape
from typing import Final

from abstain.plots.formatting import escape_control_characters
from abstain.plots.style import DARK, LIGHT
from abstain.report import document as doc
from abstain.report.formatting import format_count
from abstain.report.render.elements import cell_content, inline, label
from abstain.report.render.html import figure_svg

#: Limits on the size of the output, because notebooks are saved with their outputs.
_MAX_ROWS: Final = 30
_MAX_REMARKS: Final = 6
_MAX_SVG_LENGTH: Final = 40_000
_PNG_DPI: Final = 50
#: Mark of a value that is not significantly different from the best, as in a terminal.
_TIE_MARK: Final = "≈"

#: Selectors of dark themes: JupyterLab, VS Code, and HTML pages made from notebooks.
_DARK_SELECTORS: Final = (
    '[data-jp-theme-light="false"]',
    ".vscode-dark",
    '[theme="dark"]',
    '[data-theme="dark"]',
)
#: The text color is inherited from the notebook, and the background is transparent.
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
    """Return the summary as one HTML element in the colors of the notebook; it loads nothing."""
    title = f"<p><strong>{inline(document.title)}</strong></p>"
    body = "".join(_blocks(document.summary_blocks()))
    return f'<div class="abstain-brief"><style>{_style()}</style>{title}{body}</div>'


def _style() -> str:
    def color_variables(colors: Iterable[str]) -> str:
        return " ".join(f"--score-{i}: {color};" for i, color in enumerate(colors))

    light = f".abstain-brief {{ {color_variables(LIGHT)} }}"
    dark_selectors = ", ".join(f"{selector} .abstain-brief" for selector in _DARK_SELECTORS)
    dark = f"{dark_selectors} {{ {color_variables(DARK)} }}"
    return f"{_STYLE}{light}\n{dark}\n"


# ---------------------------------------------------------------------------------------- blocks
def _blocks(blocks: Iterable[doc.Block]) -> Iterator[str]:
    for block in blocks:
        yield from _block(block)


@singledispatch
def _block(block: doc.Block) -> Iterator[str]:
    """Yield the HTML of a block; nothing for interactive blocks."""
    del block
    yield from ()


@_block.register
def _prose(block: doc.Prose) -> Iterator[str]:
    is_strong = block.kind in {"strong", "alarm"}
    css_class = ' class="small"' if block.kind in {"about", "hint", "notes"} else ""
    text = inline(doc.Span(doc.plain_text(block.text), "strong") if is_strong else block.text)
    yield f"<p{css_class}>{text}</p>"


@_block.register
def _see_also(block: doc.SeeAlso) -> Iterator[str]:
    yield f'<p class="small">{inline(f"{block.text}{block.python}")}</p>'


@_block.register
def _facts(block: doc.Facts) -> Iterator[str]:
    text = "; ".join(f"{inline(name)}: {inline(fact)}" for name, fact in block.entries)
    yield f'<p class="small">{text}</p>'


@_block.register
def _figure(block: doc.Figure) -> Iterator[str]:
    """Yield a figure as SVG if it is small, otherwise as a PNG image."""
    # The ids in an SVG must be unique among all outputs of a notebook.
    content_hash = sha256(block.display.frame().write_csv().encode()).hexdigest()[:12]
    html = str(figure_svg(replace(block, key=f"{block.key}-{content_hash}")))
    if len(html) > _MAX_SVG_LENGTH:
        data = base64.b64encode(block.display.image(".png", dpi=_PNG_DPI)).decode()
        alt = escape(escape_control_characters(block.title))
        html = f'<img alt="{alt}" src="data:image/png;base64,{data}">'
    yield html
    if block.description:
        yield f'<p class="small">{inline(block.description)}</p>'


@_block.register
def _code(block: doc.Code) -> Iterator[str]:
    yield f"<pre>{inline(block.text)}</pre>"


@_block.register
def _section(block: doc.Section | doc.Collapsible) -> Iterator[str]:
    title = block.title if isinstance(block, doc.Section) else block.summary
    yield f"<p><strong>{inline(title)}</strong></p>"
    yield from _blocks(block.blocks)


@_block.register
def _box(block: doc.Box) -> Iterator[str]:
    yield from _blocks(block.blocks)


@_block.register
def _findings(block: doc.Findings) -> Iterator[str]:
    """Yield a collapsed list of the warnings and notes."""
    if not block.remarks:
        return
    warnings = sum(remark.level == "warning" for remark in block.remarks)
    numbers = ((warnings, "warning"), (len(block.remarks) - warnings, "note"))
    counts = " and ".join(f"{format_count(n)} {noun}{'s' * (n != 1)}" for n, noun in numbers if n)
    lines = "".join(f"<li>{_remark(remark)}</li>" for remark in block.remarks[:_MAX_REMARKS])
    n_remaining = len(block.remarks) - _MAX_REMARKS
    if n_remaining > 0:
        lines += f"<li>{format_count(n_remaining)} more in the report</li>"
    yield f"<details><summary>{counts}</summary><ul>{lines}</ul></details>"


def _remark(remark: doc.Remark) -> str:
    location = f"{inline(remark.location)}: " if remark.location else ""
    n_similar = f" ({format_count(len(remark.similar))} similar)" if remark.similar else ""
    return f"{remark.level.capitalize()}: {location}{inline(remark.text)}{n_similar}"


# ---------------------------------------------------------------------------------------- tables
@_block.register
def _table(table: doc.Table) -> Iterator[str]:
    table = table.summary()
    columns = range(len(table.columns))
    headers = "".join(
        f'<th scope="col"{_class_attribute(table.columns[i])}>{label(table.columns[i].label)}</th>'
        for i in columns
    )
    rows = "".join(_row(table, row, columns) for row in table.rows[:_MAX_ROWS])
    caption = f"<caption>{inline(table.title)}</caption>" if table.title else ""
    yield f"<table>{caption}<thead><tr>{headers}</tr></thead><tbody>{rows}</tbody></table>"
    if (n_remaining := len(table.rows) - _MAX_ROWS) > 0:
        hint = "more rows; .frame() returns all."
        yield f'<p class="small">{format_count(n_remaining)} {inline(hint)}</p>'


def _class_attribute(column: doc.Column) -> str:
    return ' class="num"' if column.kind == "number" else ""


def _row(table: doc.Table, row: doc.Row, columns: Iterable[int]) -> str:
    return f"<tr>{''.join(_cell_html(table.columns[i], row.cells[i], i) for i in columns)}</tr>"


def _cell_html(column: doc.Column, cell: doc.Cell, index: int) -> str:
    # The switch to values times 1000 exists only on pages.
    cell = replace(cell, per_thousand=False) if isinstance(cell, doc.Number) else cell
    element = 'th scope="row"' if index == 0 else "td"
    tag = element.split(maxsplit=1)[0]
    return f"<{element}{_class_attribute(column)}>{cell_content(cell, _TIE_MARK)}</{tag}>"
