"""Print lines, tables and the progress of jobs in a terminal."""

from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console
from rich.table import Table

from abstain.cli.console import format_duration
from abstain.plots.formatting import escape_control_characters

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from abstain_bench.runs.jobs import JobProgress, Outcome


def print_line(console: Console, text: str) -> None:
    """Print text literally, without interpreting markup or wrapping lines."""
    escaped = escape_control_characters(text)
    console.print(escaped, markup=False, highlight=False, soft_wrap=True)


def plain_table(
    text_columns: Sequence[str], number_columns: Sequence[str], *, title: str = ""
) -> Table:
    """Create a table without lines.

    Text columns are left-aligned, and number columns are right-aligned.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    if title:
        table.title, table.title_justify, table.title_style = title, "left", "bold"
    for name in text_columns:
        table.add_column(name, no_wrap=True)
    for name in number_columns:
        table.add_column(name, justify="right")
    return table


#: Seconds between updates of the progress bar.
_BAR_INTERVAL: Final = 1.0
#: Seconds between progress lines if there is no progress bar.
_LINE_INTERVAL: Final = 30.0


def progress_text(step: "JobProgress") -> str:
    """Return a text with the progress of a job and the remaining time."""
    if not isfinite(step.seconds_left):
        return step.description
    return f"{step.description}, about {format_duration(step.seconds_left)} left"


class JobLines:
    """Print one line to standard error when the first job starts and when any job ends.

    If the object is used as a context manager, it also displays the progress of running jobs, which
    it reads from `folder`.
    """

    def __init__(
        self,
        progress: "Progress | None",
        *,
        describe_result: "Callable[[Outcome], str] | None" = None,
        folder: Path | None = None,
    ) -> None:
        self.progress = progress
        self.folder = folder
        self.running: dict[str, TaskID] = {}
        self.stop_event = Event()
        self.console = Console(stderr=True) if progress is None else progress.console
        self.task = None if progress is None else progress.add_task("Jobs", total=None)
        self.describe_result = describe_result
        self.has_first_line = False

    def __enter__(self) -> Self:
        """Start a thread that displays the progress of running jobs."""
        if self.folder is not None:
            Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread."""
        self.stop_event.set()

    def _watch(self) -> None:
        interval = _LINE_INTERVAL if self.progress is None else _BAR_INTERVAL
        while not self.stop_event.wait(interval):
            self.update()

    def update(self) -> None:
        """Display the progress of the running jobs."""
        from abstain_bench.runs.jobs import read_job_progress

        steps = [] if self.folder is None else read_job_progress(self.folder)
        if self.progress is not None:
            self._update_bars(self.progress, steps)
            return
        for step in steps:
            print_line(self.console, f"{step.name}: {progress_text(step)}")

    def _update_bars(self, progress: "Progress", steps: "Sequence[JobProgress]") -> None:
        """Display a progress bar for each running job, and remove the bars of ended jobs."""
        for step in steps:
            if step.name not in self.running:
                self.running[step.name] = progress.add_task("", total=step.total)
            text = escape_control_characters(f"{step.name}: {progress_text(step)}")
            progress.update(self.running[step.name], completed=step.done, description=text)
        for name in self.running.keys() - {step.name for step in steps}:
            progress.remove_task(self.running.pop(name))

    def __call__(self, outcome: "Outcome", n_finished: int, n_jobs: int) -> None:
        """Print the outcome of a job and update the progress bar."""
        if outcome.status == "begun":
            if self.has_first_line:
                return
            self.has_first_line = True
        print_line(self.console, f"{n_finished}/{n_jobs} {self._outcome_text(outcome)}")
        if self.progress is not None and self.task is not None:
            self.progress.update(self.task, completed=n_finished, total=n_jobs)

    def _outcome_text(self, outcome: "Outcome") -> str:
        """Return the name, status and duration of a job, and its error and result if available."""
        text = f"{outcome.job.name}: {outcome.status}"
        if outcome.status == "done":
            text += f" in {outcome.seconds:.1f} s"
        if outcome.error:
            text += f": {outcome.error}"
        result = self.describe_result(outcome) if self.describe_result is not None else ""
        return f"{text}; {result}" if result else text
