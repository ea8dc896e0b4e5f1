"""Notebook renderer, which writes a short report with one figure as HTML."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

from abstain.plots.style import DARK, LIGHT
from abstain.report import document as doc
from abstain.report.formatting import format_count
from abstain.report.render.elements import cell_content, format_attributes, inline, label
from abstain.report.render.html import figure_svg, score_variables
from abstain.report.render.renderer import Renderer

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
.abstain-brief .best, .abstain-brief .bad { font-weight: 700; }
"""


def notebook(document: doc.Document) -> str:
    """Return the short report as one HTML element, in the colors of the notebook."""
    title = f"<p><strong>{inline(document.title)}</strong></p>"
    body = "".join(_Notebook().blocks(document.summary_blocks()))
    light = f".abstain-brief {{ {score_variables(LIGHT)} }}"
    dark_selectors = ", ".join(f"{selector} .abstain-brief" for selector in _DARK_SELECTORS)
    dark = f"{dark_selectors} {{ {score_variables(DARK)} }}"
    style = f"<style>{_STYLE}{light}\n{dark}\n</style>"
    return f'<div class="abstain-brief">{style}{title}{body}</div>'


class _Notebook(Renderer):
    def prose(self, block: doc.Prose) -> Iterator[str]:
        css_class = ' class="small"' if block.kind in {"about", "hint", "notes"} else ""
        yield f"<p{css_class}>{inline(block.text)}</p>"

    def seealso(self, block: doc.SeeAlso) -> Iterator[str]:
        yield f'<p class="small">{inline(f"{block.text}{block.python}")}</p>'

    def facts(self, block: doc.Facts) -> Iterator[str]:
        text = "; ".join(f"{inline(name)}: {inline(fact)}" for name, fact in block.entries)
        yield f'<p class="small">{text}</p>'

    def figure(self, block: doc.Figure) -> Iterator[str]:
        """Yield the figure as SVG if it is small, or otherwise as a PNG image."""
        # The ids in an SVG must be unique among all outputs of a notebook.
        content_hash = sha256(block.display.frame().write_csv().encode()).hexdigest()[:12]
        html = str(figure_svg(replace(block, key=f"{block.key}-{content_hash}")))
        if len(html) > _MAX_SVG_LENGTH:
            data = base64.b64encode(block.display.image(".png", dpi=_PNG_DPI)).decode()
            attributes = {"alt": block.title, "src": f"data:image/png;base64,{data}"}
            html = f"<img{format_attributes(attributes)}>"
        yield html
        if block.description:
            yield f'<p class="small">{inline(block.description)}</p>'

    def code(self, block: doc.Code) -> Iterator[str]:
        yield f"<pre>{inline(block.text)}</pre>"

    def collapsible(self, block: doc.Collapsible) -> Iterator[str]:
        yield f"<p><strong>{inline(block.summary)}</strong></p>"
        yield from self.blocks(block.blocks)

    def findings(self, block: doc.Findings) -> Iterator[str]:
        """Yield a collapsed list of the warnings and notes."""
        n_warnings = sum(remark.level == "warning" for remark in block.remarks)
        numbers = ((n_warnings, "warning"), (len(block.remarks) - n_warnings, "note"))
        counts = [f"{format_count(n)} {noun}{'s' * (n != 1)}" for n, noun in numbers if n]
        items = list(map(_remark, block.remarks[:_MAX_REMARKS]))
        n_remaining = len(block.remarks) - _MAX_REMARKS
        if n_remaining > 0:
            items.append(f"{format_count(n_remaining)} more in the report")
        lines = "".join(f"<li>{item}</li>" for item in items)
        yield f"<details><summary>{' and '.join(counts)}</summary><ul>{lines}</ul></details>"

    def table(self, table: doc.Table) -> Iterator[str]:
        """Yield the first rows of a table, and the number of omitted rows."""
        table = table.summary()
        classes = [' class="num"' if column.kind == "number" else "" for column in table.columns]
        headers = ""
        for column, css_class in zip(table.columns, classes, strict=True):
            headers += f'<th scope="col"{css_class}>{label(column.label)}</th>'
        rows = "".join(_row(row, classes) for row in table.rows[:_MAX_ROWS])
        caption = f"<caption>{inline(table.title)}</caption>" if table.title else ""
        yield f"<table>{caption}<thead><tr>{headers}</tr></thead><tbody>{rows}</tbody></table>"
        n_remaining = len(table.rows) - _MAX_ROWS
        if n_remaining > 0:
            text = f"{format_count(n_remaining)} more rows; .frame() returns all."
            yield f'<p class="small">{text}</p>'


def _remark(remark: doc.Remark) -> str:
    location = f"{inline(remark.location)}: " if remark.location else ""
    n_similar = f" ({format_count(len(remark.similar))} similar)" if remark.similar else ""
    return f"{remark.level.capitalize()}: {location}{inline(remark.text)}{n_similar}"


def _row(row: doc.Row, classes: Sequence[str]) -> str:
    """Return a table row as HTML, with the first cell as the row header."""
    html = ""
    for i, (cell, css_class) in enumerate(zip(row.cells, classes, strict=True)):
        displayed: doc.Cell = cell
        if isinstance(cell, doc.Number):
            # The switch to values times 1000 exists only on pages.
            displayed = replace(cell, per_thousand=False)
        elif isinstance(cell, doc.IntervalMark) and cell.text:
            displayed = cell.text
        content = cell_content(displayed, _TIE_MARK)
        if i == 0:
            html += f'<th scope="row"{css_class}>{content}</th>'
        else:
            html += f"<td{css_class}>{content}</td>"
    return f"<tr>{html}</tr>"
