"""Lines and tables that the commands print."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from abstain.plots.formatting import escape_control_characters


def print_line(console: Console, text: str) -> None:
    """Print a text without interpreting markup; only the terminal wraps it."""
    escaped = escape_control_characters(text)
    console.print(escaped, markup=False, highlight=False, soft_wrap=True)


def plain_table(
    text_columns: Sequence[str], number_columns: Sequence[str], *, title: str = ""
) -> Table:
    """Return a table without lines; texts are left-aligned and numbers right-aligned."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    if title:
        table.title, table.title_justify, table.title_style = title, "left", "bold"
    for name in text_columns:
        table.add_column(name, no_wrap=True)
    for name in number_columns:
        table.add_column(name, justify="right")
    return table
