"""Where commands print: as wide as the terminal, 100 columns where there is none."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from abstain.plots.visible import visible


def console() -> Console:
    """Return the console of standard output."""
    out = Console()
    # Rich falls back to 80 columns in a pipe or a file; the tables are laid out for 100.
    return out if out.is_terminal else Console(width=100)


def leave_word(left: Sequence[Path]) -> None:
    """Say which files were left behind, if any."""
    if left:
        # A Text, as rich reads markup in a plain string.
        files = Text(visible("Left " + ", ".join(str(path) for path in left)))
        console().print(files, soft_wrap=True)


@contextmanager
def working(words: str) -> Iterator[None]:
    """Say on the terminal what goes on, until it is done; pipes and files get nothing."""
    err = Console(stderr=True)
    if not err.is_terminal:
        yield
        return
    with err.status(words):
        yield
