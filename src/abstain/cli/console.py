"""Where commands print: as wide as the terminal, 100 columns where there is none.

Results go to standard output, and what is going on to standard error.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from abstain.plots.formatting import escape_control_characters

if TYPE_CHECKING:
    from rich.progress import Progress

#: For lines about a work of seconds.
_OFTEN: Final = 5.0


def console() -> Console:
    """Return the console of standard output."""
    out = Console()
    # Rich falls back to 80 columns in a pipe or a file; the tables are laid out for 100. Asked for
    # colors there by FORCE_COLOR, as cells of notebooks are, it takes either for a terminal.
    return out if out.file.isatty() else Console(width=100)


def moving() -> Console | None:
    """Return the console of standard error where what was printed can be written over."""
    err = Console(stderr=True)
    return err if err.is_terminal and err.file.isatty() else None


def line(words: str) -> Text:
    """Return words as they are: rich reads markup in a plain string."""
    return Text(escape_control_characters(words))


def say(words: str) -> None:
    """Print words on standard output, however long they are."""
    console().print(line(words), soft_wrap=True)


def leave_word(left: Sequence[Path]) -> None:
    """Say which files were left behind, if any."""
    if left:
        say("Left " + ", ".join(str(path) for path in left))


@contextmanager
def working(words: str) -> Iterator[Callable[[str], None]]:
    """Say on the terminal what goes on, until it is done.

    Whoever works may say how far it is: behind these words, or where there is no terminal in a line
    now and then.
    """
    if err := moving():
        with err.status(words) as shown:
            yield lambda more: shown.update(escape_control_characters(f"{words}: {more}"))
        return
    err, since = Console(stderr=True), [monotonic()]

    def told(more: str) -> None:
        if monotonic() - since[0] >= _OFTEN:
            since[0] = monotonic()
            err.print(
                escape_control_characters(f"{words}: {more}"),
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    yield told


@contextmanager
def interruptible(said: str) -> Iterator[None]:
    """Say what is left after Ctrl-C, and end with its exit status."""
    try:
        yield
    except KeyboardInterrupt:
        Console(stderr=True).print(f"Interrupted: {said}", highlight=False, soft_wrap=True)
        raise SystemExit(130) from None


def progress() -> "Progress | AbstractContextManager[None]":
    """Return a bar where there is a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    if (err := moving()) is None:
        return nullcontext()
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    )


def time_said(seconds: float) -> str:
    """Write how long something takes, roughly."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
