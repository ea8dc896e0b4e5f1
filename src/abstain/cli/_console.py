"""Where commands print: as wide as the terminal, 100 columns where there is none."""

from rich.console import Console


def console() -> Console:
    """Return the console of standard output."""
    out = Console()
    # Rich falls back to 80 columns in a pipe or a file; the tables are laid out for 100.
    return out if out.is_terminal else Console(width=100)
