"""Lines on standard error about the jobs of a benchmark or a study."""

from collections.abc import Callable
from math import isfinite
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console

from abstain.cli.console import format_duration
from abstain.plots.words import visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from abstain_bench.runs.jobs import JobProgress, Outcome

#: Seconds between two looks at the jobs in progress: for lines of a bar.
_BAR: Final = 1.0
#: For lines that stay.
_LINES: Final = 30.0


def step_said(step: "JobProgress") -> str:
    """Say how far a job is, and how long the rest may take."""
    left = (
        f", about {format_duration(step.seconds_left)} left" if isfinite(step.seconds_left) else ""
    )
    return f"{step.description}{left}"


class JobLines:
    """Says on standard error that a job is over: a line each, above the bar if there is one.

    Of jobs that begin only the first has a line, so that something is seen before it is over. Used
    as a context it looks into the `folder` of the jobs how far those in progress are: a line of the
    bar each, or now and then a line where there is no terminal.
    """

    def __init__(
        self,
        progress: "Progress | None",
        *,
        found: "Callable[[Outcome], str] | None" = None,
        folder: Path | None = None,
    ) -> None:
        self.progress, self.folder = progress, folder
        self.running: dict[str, TaskID] = {}
        self.ended = Event()
        self.console = Console(stderr=True) if progress is None else progress.console
        self.task = None if progress is None else progress.add_task("Jobs", total=None)
        self.found = found
        self.begun = False

    def __enter__(self) -> Self:
        """Begin to look."""
        if self.folder is not None:
            Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.ended.set()

    def _watch(self) -> None:
        while not self.ended.wait(_LINES if self.progress is None else _BAR):
            self.look()

    def look(self) -> None:
        """Say how far the jobs in progress are."""
        from abstain_bench.runs.jobs import read_job_progress

        steps = [] if self.folder is None else read_job_progress(self.folder)
        if self.progress is None:
            for step in steps:
                said = visible(f"{step.name}: {step_said(step)}")
                self.console.print(said, markup=False, highlight=False, soft_wrap=True)
            return
        for step in steps:
            if step.name not in self.running:
                self.running[step.name] = self.progress.add_task("", total=step.total)
            said = visible(f"{step.name}: {step_said(step)}")
            self.progress.update(self.running[step.name], completed=step.done, description=said)
        for name in self.running.keys() - {step.name for step in steps}:
            self.progress.remove_task(self.running.pop(name))

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
