"""Print results on standard output and the progress of a command on standard error.

Lines are as wide as the terminal, or 100 columns in a pipe or a file.
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

#: Minimum number of seconds between two lines of progress without a terminal.
_SECONDS_BETWEEN_LINES: Final = 5.0


def console() -> Console:
    """Return the console of standard output."""
    out = Console()
    # In a pipe or a file, rich uses 80 columns, but the tables require 100. If FORCE_COLOR is set,
    # as in cells of notebooks, rich treats a pipe as a terminal.
    return out if out.file.isatty() else Console(width=100)


def interactive_stderr() -> Console | None:
    """Return the console of standard error if it is a terminal, in which lines can be replaced."""
    err = Console(stderr=True)
    return err if err.is_terminal and err.file.isatty() else None


def plain_text(text: str) -> Text:
    """Return text for rich. It is not interpreted as markup."""
    return Text(escape_control_characters(text))


def print_text(text: str) -> None:
    """Print text on standard output without wrapping it."""
    console().print(plain_text(text), soft_wrap=True)


def print_written_files(paths: Sequence[Path]) -> None:
    """Print the paths of written files, if there are any."""
    if paths:
        print_text("Wrote " + ", ".join(str(path) for path in paths))


@contextmanager
def show_status(activity: str) -> Iterator[Callable[[str], None]]:
    """Show an activity on standard error, and yield a function that shows its progress.

    Without a terminal, a line of progress is printed every few seconds.
    """
    if err := interactive_stderr():
        with err.status(activity) as status:
            yield lambda progress: status.update(
                escape_control_characters(f"{activity}: {progress}")
            )
        return
    err = Console(stderr=True)
    last_time = monotonic()

    def print_progress(progress: str) -> None:
        nonlocal last_time
        if monotonic() - last_time < _SECONDS_BETWEEN_LINES:
            return
        last_time = monotonic()
        text = escape_control_characters(f"{activity}: {progress}")
        err.print(text, markup=False, highlight=False, soft_wrap=True)

    yield print_progress


@contextmanager
def exit_on_interrupt(message: str) -> Iterator[None]:
    """Print a message after Ctrl-C, and exit with status 130."""
    try:
        yield
    except KeyboardInterrupt:
        Console(stderr=True).print(f"Interrupted: {message}", highlight=False, soft_wrap=True)
        raise SystemExit(130) from None


def progress_bar() -> "Progress | AbstractContextManager[None]":
    """Return a progress bar, or an empty context without a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    if (err := interactive_stderr()) is None:
        return nullcontext()
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    )


def format_duration(seconds: float) -> str:
    """Format a duration, rounded to seconds, minutes or tenths of an hour."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
