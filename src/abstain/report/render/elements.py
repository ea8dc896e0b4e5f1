"""Words and cells as HTML: all that a caller said is escaped here, or by the templates."""

import math
from collections.abc import Mapping
from html import escape
from typing import Final

from abstain.plots.words import visible
from abstain.report.document import Cell, Column, Label, Number, Range, Shot, Span, Text
from abstain.report.words import UNDEFINED, between, linked, spelled, spread

#: What stands where there is nothing.
_NOTHING: Final = "–"

#: The element of a piece of text and its class; the others are plain.
_ELEMENTS: Final = {
    "strong": ("strong", ""),
    "em": ("em", ""),
    "best": ("strong", "best"),
    "code": ("code", ""),
    "muted": ("span", "muted"),
    "small": ("small", ""),
    "undefined": ("span", "undefined"),
    "good": ("span", "said good"),
    "bad": ("span", "said bad"),
    "open": ("span", "said"),
}

_CLASSES: Final = {"number": "num", "name": "name", "words": "words"}


def _said(words: str) -> str:
    return escape(visible(words, keep="\n\t"))


def attributes(values: Mapping[str, str]) -> str:
    """Return attributes of an element, those without a value left out."""
    pairs = ((name, value) for name, value in values.items() if value)
    return "".join(f' {name}="{escape(visible(value))}"' for name, value in pairs)


def tagged(tags: Mapping[str, str]) -> str:
    """Return the attributes by which a choice finds a part."""
    return attributes({f"data-in-{name}": key for name, key in tags.items()})


# ---------------------------------------------------------------------------------- inline text
def inline(text: Text) -> str:
    """Return words."""
    if isinstance(text, str):
        return _said(text)
    if isinstance(text, tuple):
        return "".join(map(inline, text))
    shown, title = _said(text.text), "" if text.link else text.title
    if text.kind in _ELEMENTS or title:
        element, look = _ELEMENTS.get(text.kind, ("span", ""))
        about = attributes({"class": look, "title": title})
        shown = f"<{element}{about}>{shown}</{element}>"
    return _link(shown, text.link, text.title) if text.link else shown


def _link(shown: str, to: str, title: str) -> str:
    # No other scheme than this one gets into an address.
    known = to if to.startswith(("#", "https://")) else "#"
    away = {} if known.startswith("#") else {"rel": "noreferrer"}
    return f"<a{attributes({'href': known, **away, 'title': title})}>{shown}</a>"


def source(words: str) -> str:
    """Return where something is from, its addresses as links."""
    return inline(linked(words))


def label(name: Label | str) -> str:
    """Return the name of what is measured with its unit and where better is."""
    if isinstance(name, str):
        return _said(name)
    shown = _said(f"{name.text}{name.unit}")
    if name.link:
        shown = _link(shown, name.link, name.title)
    if name.better:
        about = attributes({"class": "arrow", "aria-label": f"{name.better} is better"})
        # A line break would part the arrow from what it is about.
        shown = f"{shown}&nbsp;<span{about}>{name.arrow}</span>"
    return f"{shown}<small>{_said(name.note)}</small>" if name.note else shown


def heading(name: Label | str) -> str:
    """Return the words of a label alone."""
    return name if isinstance(name, str) else name.text


# ----------------------------------------------------------------------------------------- cells
def entry(cell: Cell, column: Column, *, head: bool, stacked: bool) -> str:
    """Return a cell as an element; stacked ones carry the head of their column along."""
    looks, title = [_CLASSES.get(column.kind, "")], ""
    if isinstance(cell, Number):
        title = cell.note
        looks += [] if cell.shade is None else [f"r{cell.shade}"]
    elif isinstance(cell, Range):
        title = cell.title
    elif isinstance(cell, Span) and cell.kind in {"better", "alike"}:
        looks.append(cell.kind)
    known = {
        "scope": "row" if head else "",
        "class": " ".join(filter(None, looks)),
        "title": title,
        "data-label": heading(column.label) if stacked and not head else "",
    }
    element = "th" if head else "td"
    return f"<{element}{attributes(known)}>{content(cell)}</{element}>"


#: The mark of a value that is not significantly different from the best.
TIE_MARK: Final = "†"


def content(cell: Cell, tie_mark: str = TIE_MARK) -> str:
    """Return what stands in a cell."""
    if cell is None:
        return _NOTHING
    if isinstance(cell, Number):
        return _number(cell, tie_mark)
    if isinstance(cell, Range):
        return between(cell.low, cell.high, cell.form, scale=cell.scale) or _NOTHING
    if isinstance(cell, Shot):
        return f"<img{attributes({'src': cell.source, 'alt': cell.alt})}>"
    return label(cell) if isinstance(cell, Label) else inline(cell)


def _number(cell: Number, tie_mark: str) -> str:
    if math.isnan(cell.value) and not cell.said:
        return f'<span class="undefined" title="{escape(visible(cell.reason))}">{UNDEFINED}</span>'
    scales = {"one": cell.scale, "kilo": 1000} if cell.per_thousand else {"": cell.scale}
    # A count stays one; a number of NumPy is written as the number it is.
    value = cell.value if isinstance(cell.value, int) else float(cell.value)
    exact = "" if math.isnan(value) else repr(value)
    shown = ""
    for choice, scale in scales.items():
        looks = " ".join(filter(None, [choice, "best" if cell.stands == "best" else ""]))
        text = cell.said or spelled(cell.value, cell.form, scale=scale)
        shown += f'<data{attributes({"class": looks})} value="{exact}">{_said(text)}</data>'
    mark = f'<sup title="cannot be told from the best">{tie_mark}</sup>'
    tie = mark if cell.stands == "tie" else ""
    return f"{shown}{tie}{_beside(cell, scales)}"


def _beside(cell: Number, scales: Mapping[str, int]) -> str:
    """Return the small words below a number."""
    shown = ""
    spans = {c: between(cell.low, cell.high, cell.form, scale=s) for c, s in scales.items()}
    if all(spans.values()):
        said = (f"<span{attributes({'class': c})}>{span}</span>" for c, span in spans.items())
        shown += f'<small class="interval">{"".join(said)}</small>'
    if not math.isnan(cell.spread):
        shown += f'<small class="spread">± {spread(cell.spread)}</small>'
    return f"{shown}<small>{_said(cell.beside)}</small>" if cell.beside else shown
