"""What the tables for a terminal are built from."""

from typing import TYPE_CHECKING

from abstain.plots.visible import visible

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def empty_table(title: str = "", *, padding: int = 1) -> "Table":
    """Return a table with one line under its head and nothing around it."""
    from rich import box
    from rich.table import Table

    heading = text(title) if title else None
    return Table(
        box=box.SIMPLE_HEAD,
        title=heading,
        title_justify="left",
        padding=(0, padding),
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
    )


def text(words: str, style: str = "") -> "Text":
    """Wrap a string so that rich reads no markup in it, nor the terminal a command."""
    from rich.text import Text

    return Text(visible(words), style=style)
