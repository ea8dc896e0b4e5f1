"""Conversion of inline text and table cells to HTML with escaped strings."""

import math
import re
from collections.abc import Mapping
from html import escape
from typing import Final

from abstain.plots.formatting import escape_control_characters
from abstain.plots.style import LIGHT
from abstain.report.document import (
    Axis,
    Cell,
    Column,
    IntervalMark,
    Label,
    Number,
    Range,
    Span,
    Text,
    Thumbnail,
)
from abstain.report.formatting import (
    UNDEFINED,
    format_interval,
    format_standard_error,
    format_value,
    split_links,
)

#: Text that is printed in empty cells.
_EMPTY_CELL: Final = "–"

#: HTML element and CSS class by kind of span. Spans of other kinds are plain text.
_ELEMENTS: Final = {
    "strong": ("strong", ""),
    "em": ("em", ""),
    "best": ("strong", "best"),
    "second": ("u", ""),
    "code": ("code", ""),
    "muted": ("span", "muted"),
    "small": ("small", ""),
    "undefined": ("span", "undefined"),
    "good": ("span", "result good"),
    "bad": ("span", "result bad"),
    "open": ("span", "result"),
}

_CLASSES: Final = {"number": "num", "name": "name", "words": "words"}


#: A long word outside of tags, and a separator in it. A page may break the word after a separator.
_LONG_WORD: Final = re.compile(r"[\w./-]{16,}(?![^<]*>)")
_SEPARATOR: Final = re.compile(r"(?<=\w)([_./-])(?=\w)")


def _escape(text: str) -> str:
    return escape(escape_control_characters(text, allowed="\n\t"))


def format_attributes(values: Mapping[str, str]) -> str:
    """Format HTML attributes, without attributes that have an empty value."""
    pairs = ((name, value) for name, value in values.items() if value)
    return "".join(f' {name}="{escape(escape_control_characters(value))}"' for name, value in pairs)


def tag_attributes(tags: Mapping[str, str]) -> str:
    """Format the tags of a part of the page as HTML attributes.

    Menus and buttons use these attributes to show and hide the part.
    """
    return format_attributes({f"data-in-{name}": key for name, key in tags.items()})


# ---------------------------------------------------------------------------------- inline text
def inline(text: Text) -> str:
    """Return inline text as HTML."""
    if isinstance(text, str):
        return _escape(text)
    if isinstance(text, tuple):
        return "".join(map(inline, text))
    html, title = _escape(text.text), "" if text.link else text.tooltip
    if text.kind in _ELEMENTS or title:
        element, css_class = _ELEMENTS.get(text.kind, ("span", ""))
        attributes = format_attributes({"class": css_class, "title": title})
        html = f"<{element}{attributes}>{html}</{element}>"
    return _link(html, text.link, text.tooltip) if text.link else html


def _link(html: str, target: str, tooltip: str) -> str:
    # Only anchors and https URLs are allowed.
    href = target if target.startswith(("#", "https://")) else "#"
    rel = "" if href.startswith("#") else "noreferrer"
    return f"<a{format_attributes({'href': href, 'rel': rel, 'title': tooltip})}>{html}</a>"


def reference(source: str) -> str:
    """Return a bibliographic reference in which URLs are links."""
    return inline(split_links(source))


def label(name: Label | str) -> str:
    """Return a label with its unit and the arrow in the direction of better values."""
    if isinstance(name, str):
        return _escape(name)
    html = _escape(f"{name.text}{name.unit}")
    if name.link:
        html = _link(html, name.link, name.tooltip)
    if name.direction:
        attributes = format_attributes(
            {"class": "arrow", "aria-label": f"{name.direction} is better"}
        )
        # A non-breaking space keeps the arrow on the same line.
        html = f"{html}&nbsp;<span{attributes}>{name.arrow}</span>"
    if name.line is not None:
        css_class = f"swatch s{name.line % len(LIGHT)}"
        html = f"<span{format_attributes({'class': css_class})}></span>{html}"
    return f"{html}<small>{_escape(name.note)}</small>" if name.note else html


def label_text(name: Label | str) -> str:
    """Return the text of a label, without unit and arrow."""
    return name if isinstance(name, str) else name.text


# ----------------------------------------------------------------------------------------- cells
def breakable(text: Text) -> str:
    """Return the HTML of a text, whose long names may be broken after separators."""
    return _with_breaks(inline(text))


def _with_breaks(content: str) -> str:
    return _LONG_WORD.sub(lambda word: _SEPARATOR.sub(r"\1<wbr>", word[0]), content)


def table_cell(cell: Cell, column: Column, *, is_header: bool, is_stacked: bool) -> str:
    """Return a table cell as HTML.

    On narrow screens, the cell also contains the header of its column.
    """
    css_classes = [_CLASSES.get(column.kind, "")]
    tooltip = ""
    if isinstance(cell, Number):
        tooltip = cell.tooltip
        if cell.shade is not None:
            css_classes.append(f"r{cell.shade}")
    elif isinstance(cell, Range):
        tooltip = cell.tooltip
    elif isinstance(cell, Span) and cell.kind in {"better", "equal"}:
        css_classes.append(cell.kind)
    attributes = {
        "scope": "row" if is_header else "",
        "class": " ".join(filter(None, css_classes)),
        "title": tooltip,
        "data-label": label_text(column.label) if is_stacked and not is_header else "",
    }
    element = "th" if is_header else "td"
    content = cell_content(cell)
    if isinstance(cell, IntervalMark) and column.axis is not None:
        content = _interval_mark(cell, column.axis)
    if column.kind == "name":
        content = _with_breaks(content)
    return f"<{element}{format_attributes(attributes)}>{content}</{element}>"


def _interval_mark(cell: IntervalMark, axis: Axis) -> str:
    """Draw an interval as a line with a point at the value.

    The drawing also contains a line at 0.
    """
    zero = _percent(axis, 0.0)
    marks = f'<line class="zero" x1="{zero}" x2="{zero}" y1="0" y2="100%"/>'
    if not math.isnan(cell.low):
        low, high = _percent(axis, cell.low), _percent(axis, cell.high)
        marks += f'<line x1="{low}" x2="{high}" y1="50%" y2="50%"/>'
    if not math.isnan(cell.value):
        marks += f'<circle cx="{_percent(axis, cell.value)}" cy="50%" r="4"/>'
    label = {"role": "img", "aria-label": cell.text} if cell.text else {"aria-hidden": "true"}
    css_class = " ".join(filter(None, ("interval-mark", cell.kind)))
    return f"<svg{format_attributes({'class': css_class, **label})}>{marks}</svg>"


def axis_header(column: Column, axis: Axis) -> str:
    """Return the axis of a column of intervals, with ticks and with labels for both sides of 0."""
    labels = "".join(
        f'<text{format_attributes({"class": "" if tick else "origin"})} x="{_percent(axis, tick)}" '
        f'y="30">{_escape(text)}</text>'
        for tick, text in axis.ticks
    )
    zero = _percent(axis, 0.0)
    sides = (
        f'<text class="below" x="{zero}" dx="-8" y="13">\u2190 {_escape(axis.below)}</text>'
        f'<text class="above" x="{zero}" dx="8" y="13">{_escape(axis.above)} \u2192</text>'
    )
    name = f'<span class="skip">{_escape(label_text(column.label))}</span>'
    return f'{name}<svg class="interval-axis" aria-hidden="true">{sides}{labels}</svg>'


def _percent(axis: Axis, value: float) -> str:
    """Return the position of a value on an axis as a percentage of its width."""
    return f"{100 * axis.fraction(value):.1f}%"


#: The mark of a value that is not significantly different from the best.
TIE_MARK: Final = "†"


def cell_content(cell: Cell, tie_mark: str = TIE_MARK) -> str:
    """Return the content of a table cell."""
    if cell is None:
        return _EMPTY_CELL
    if isinstance(cell, Number):
        return _number_html(cell, tie_mark)
    if isinstance(cell, Range):
        return (
            format_interval(cell.low, cell.high, cell.number_format, scale=cell.scale)
            or _EMPTY_CELL
        )
    if isinstance(cell, IntervalMark):
        return ""
    if isinstance(cell, Thumbnail):
        return f"<img{format_attributes({'src': cell.source, 'alt': cell.alt})}>"
    return label(cell) if isinstance(cell, Label) else inline(cell)


def _number_html(cell: Number, tie_mark: str) -> str:
    """Return a formatted number as HTML, with its exact value in an attribute."""
    if math.isnan(cell.value) and not cell.display_text:
        attributes = format_attributes({"class": "undefined", "title": cell.reason})
        return f"<span{attributes}>{UNDEFINED}</span>"
    scales = {"one": cell.scale, "kilo": 1000} if cell.per_thousand else {"": cell.scale}
    # float() converts NumPy scalars, because the repr of a NumPy scalar contains the type.
    value = cell.value if isinstance(cell.value, int) else float(cell.value)
    exact = "" if math.isnan(value) else repr(value)
    html = ""
    for choice, scale in scales.items():
        looks = " ".join(filter(None, [choice, "best" if cell.mark == "best" else ""]))
        text = cell.display_text or format_value(cell.value, cell.number_format, scale=scale)
        html += f'<data{format_attributes({"class": looks})} value="{exact}">{_escape(text)}</data>'
    mark = f'<sup title="not significantly different from the best">{tie_mark}</sup>'
    tie = mark if cell.mark == "tie" else ""
    return f"{html}{tie}{_annotations_html(cell, scales)}"


def _annotations_html(cell: Number, scales: Mapping[str, int]) -> str:
    """Return the small text below a number, such as its interval, as HTML."""
    html = ""
    spans = {
        c: format_interval(cell.low, cell.high, cell.number_format, scale=s)
        for c, s in scales.items()
    }
    if all(spans.values()):
        intervals = (
            f"<span{format_attributes({'class': c})}>{span}</span>" if c else span
            for c, span in spans.items()
        )
        html += f'<small class="interval">{"".join(intervals)}</small>'
    if not math.isnan(cell.standard_error):
        html += f'<small class="spread">± {format_standard_error(cell.standard_error)}</small>'
    return f"{html}<small>{_escape(cell.small_text)}</small>" if cell.small_text else html
