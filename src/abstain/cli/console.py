"""Print results on standard output and the progress of a command on standard error.

Lines are as wide as the terminal, or 100 characters wide in a pipe or a file.
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
    terminal = Console()
    # `isatty` is required, because rich treats a pipe as a terminal if FORCE_COLOR is set.
    if terminal.file.isatty():
        return terminal
    # In a pipe or a file, rich uses 80 columns, but the tables require 100.
    return Console(width=100)


def interactive_stderr() -> Console | None:
    """Return a console for standard error, or None if it is not a terminal."""
    console = Console(stderr=True)
    is_interactive = console.is_terminal and console.file.isatty()
    return console if is_interactive else None


def plain_text(text: str) -> Text:
    """Convert a string to a text in which rich does not interpret markup."""
    return Text(escape_control_characters(text))


def print_text(text: str) -> None:
    """Print text on standard output without wrapping it."""
    console().print(plain_text(text), soft_wrap=True)


def print_written_files(paths: Sequence[Path]) -> None:
    """Print the paths of the files that were written, if there are any."""
    if paths:
        print_text("Wrote " + ", ".join(str(path) for path in paths))


@contextmanager
def show_status(activity: str) -> Iterator[Callable[[str], None]]:
    """Print the name of a task on standard error, and yield a function that prints its progress.

    If standard error is not a terminal, a line of progress is printed every few seconds.
    """
    terminal = interactive_stderr()
    if terminal is None:
        yield _ProgressLines(activity).print
        return
    with terminal.status(activity) as status:

        def show_progress(progress: str) -> None:
            status.update(escape_control_characters(f"{activity}: {progress}"))

        yield show_progress


class _ProgressLines:
    """Prints lines of progress on standard error, at most one every few seconds."""

    def __init__(self, activity: str) -> None:
        self._activity = activity
        self._console = Console(stderr=True)
        self._last_time = monotonic()

    def print(self, progress: str) -> None:
        """Print the progress, unless a line was printed in the last few seconds."""
        if monotonic() - self._last_time < _SECONDS_BETWEEN_LINES:
            return
        self._last_time = monotonic()
        text = escape_control_characters(f"{self._activity}: {progress}")
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def exit_on_interrupt(message: str) -> Iterator[None]:
    """Print a message after Ctrl-C, and exit with status 130."""
    try:
        yield
    except KeyboardInterrupt:
        Console(stderr=True).print(f"Interrupted: {message}", highlight=False, soft_wrap=True)
        raise SystemExit(130) from None


def progress_bar() -> "Progress | AbstractContextManager[None]":
    """Return a progress bar, or an empty context manager if there is no terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    terminal = interactive_stderr()
    if terminal is None:
        return nullcontext()
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=terminal,
        transient=True,
    )


def format_duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or tenths of an hour."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
