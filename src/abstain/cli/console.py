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


def line(words: str) -> Text:
    """Return words as they are: rich reads markup in a plain string."""
    return Text(visible(words))


def say(words: str) -> None:
    """Print words on standard output, however long they are."""
    console().print(line(words), soft_wrap=True)


def leave_word(left: Sequence[Path]) -> None:
    """Say which files were left behind, if any."""
    if left:
        say("Left " + ", ".join(str(path) for path in left))


@contextmanager
def working(words: str) -> Iterator[None]:
    """Say on the terminal what goes on, until it is done; pipes and files get nothing."""
    err = Console(stderr=True)
    if not err.is_terminal:
        yield
        return
    with err.status(words):
        yield
