"""Words and numbers of a terminal, each in a line."""

from typing import TYPE_CHECKING, Final

from abstain.plots.words import visible
from abstain.report import document as doc
from abstain.report.words import number

if TYPE_CHECKING:
    from rich.text import Text as Line

#: A number that may be left out gets this many columns.
NUMBER_WIDTH: Final = 8

_SPANS: Final = {
    "strong": "bold",
    "best": "bold",
    "em": "italic",
    "muted": "dim",
    "small": "dim",
    "undefined": "dim",
    "good": "green",
    "bad": "bold red",
}


def inline(text: doc.Text, style: str = "") -> "Line":
    """Return words so that no markup is read in them, nor a command by the terminal."""
    from rich.text import Text as Line

    if isinstance(text, tuple):
        line = Line("", style=style)
        for part in text:
            line.append_text(inline(part))
        return line
    if isinstance(text, doc.Span):
        return Line(visible(text.text), style=style or _SPANS.get(text.kind, ""))
    return Line(visible(text), style=style)


def label(name: doc.Label | str, *, short: bool = False) -> str:
    """Return the name of what is measured with its unit and where better is."""
    if isinstance(name, str):
        return name
    return f"{(name.short if short else '') or name.text}{name.ending}"


def narrow(value: float) -> str:
    """Write a number as everywhere, with fewer digits where it would not fit its column."""
    written = number(value)
    if len(written) < NUMBER_WIDTH:
        return written
    return f"{value:.5f}" if abs(value) >= 1e-3 else f"{value:.2e}"
