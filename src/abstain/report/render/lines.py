"""Inline text, labels and numbers for a terminal."""

from typing import TYPE_CHECKING, Final

from abstain.plots.formatting import escape_control_characters
from abstain.report import document as doc
from abstain.report.formatting import format_number

if TYPE_CHECKING:
    from rich.text import Text as Line

#: Width of a number column that may be omitted, in characters.
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
    """Return inline text without interpreting markup or terminal control characters."""
    from rich.text import Text as Line

    if isinstance(text, tuple):
        line = Line("", style=style)
        for part in text:
            line.append_text(inline(part))
        return line
    if isinstance(text, doc.Span):
        return Line(escape_control_characters(text.text), style=style or _SPANS.get(text.kind, ""))
    return Line(escape_control_characters(text), style=style)


def label(name: doc.Label | str, *, use_short_text: bool = False) -> str:
    """Return a label with its unit and the arrow in the direction of better values."""
    if isinstance(name, str):
        return name
    return f"{(name.short_text if use_short_text else '') or name.text}{name.suffix}"


def format_narrow_number(value: float) -> str:
    """Format a number with at most as many characters as a narrow column has."""
    text = format_number(value)
    if len(text) < NUMBER_WIDTH:
        return text
    return f"{value:.5f}" if abs(value) >= 1e-3 else f"{value:.2e}"
