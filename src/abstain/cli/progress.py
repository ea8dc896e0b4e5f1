"""Jobs on standard error: a line for each that is over, above a bar where there is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from abstain.plots.visible import visible

if TYPE_CHECKING:
    from abstain.benchmark.jobs import Outcome


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
    err = Console(stderr=True)
    if not err.is_terminal:
        return nullcontext()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    )


class JobLines:
    """Says on standard error that a job is over: a line each, above the bar if there is one.

    Of jobs that begin only the first has a line, so that something is seen before it is over.
    """

    def __init__(
        self, progress: Progress | None, *, found: "Callable[[Outcome], str] | None" = None
    ) -> None:
        self.progress = progress
        self.console = Console(stderr=True) if progress is None else progress.console
        self.task = None if progress is None else progress.add_task("Jobs", total=None)
        self.found = found
        self.begun = False

    def __call__(self, outcome: "Outcome", over: int, total: int) -> None:
        """Write one line, or none; and what was found, where something is to be told."""
        if outcome.status == "begun":
            if self.begun:
                return
            self.begun = True
        said = f"{over}/{total} {outcome.job.name}: {outcome.status}"
        said += f" in {outcome.seconds:.1f} s" if outcome.status == "done" else ""
        said += f": {outcome.error}" if outcome.error else ""
        if self.found is not None and (more := self.found(outcome)):
            said += f"; {more}"
        self.console.print(visible(said), markup=False, highlight=False, soft_wrap=True)
        if self.progress is not None and self.task is not None:
            self.progress.update(self.task, completed=over, total=total)
