"""Progress of running jobs: each job updates a small file, at most once per second.

Any process that sees the folder can read it.
"""

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from abstain._foundation.input_files import read_json_object
from abstain.errors import InputError
from abstain_bench.runs.jobs.record import PROGRESS_SUFFIX, Job

#: Seconds without an update after which the process of a progress file counts as dead.
_STALE: Final = 120.0


@dataclass(frozen=True)
class JobProgress:
    """Progress of a job.

    Attributes
    ----------
    name : str
        Name of the job.
    unit : str
        Unit of its steps: "epoch", or "part" of the images.
    done : float
        Number of finished steps, with the finished share of the current one.
    total : int
        Number of steps.
    seconds_left : float
        Estimated seconds until the end at the present speed; NaN if unknown.
        Seconds that the rest takes at the speed so far; NaN where nothing is known of it.

    Examples
    --------
    >>> from abstain_bench.runs.jobs.progress import JobProgress
    >>> JobProgress("train-x", "epoch", 2.5, 12, 40.0).description
    'epoch 3 of 12'
    """

    name: str
    unit: str
    done: float
    total: int
    seconds_left: float

    @property
    def description(self) -> str:
        """The current step as text."""
        return f"{self.unit} {min(int(self.done) + 1, self.total)} of {self.total}"


class ProgressWriter:
    """Writes the progress of a job to its progress file.

    Parameters
    ----------
    job : Job
        The running job.
    folder : Path
        Folder with its files.
    unit : str
        Unit of its steps.
    total : int
        Number of steps.
    interval : float, default=1.0
        Minimum number of seconds between two updates.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain_bench.runs.jobs import Job
    >>> from abstain_bench.runs.jobs.progress import ProgressWriter, read_job_progress
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = ProgressWriter(Job("train-x", {}), Path(folder), "epoch", 12, interval=0)
    ...     writer(2.5)
    ...     [(job.name, job.description) for job in read_job_progress(Path(folder))]
    [('train-x', 'epoch 3 of 12')]
    """

    def __init__(
        self, job: Job, folder: Path, unit: str, total: int, *, interval: float = 1.0
    ) -> None:
        self.name, self.path = job.name, job.path(folder, PROGRESS_SUFFIX)
        self.unit, self.total, self.interval = unit, total, interval
        self._n_finished_steps = 0
        self._first_update: tuple[float, float] | None = None
        self._next_time = 0.0

    def __call__(self, done: float) -> None:
        """Update the number of finished steps, including the share of the current one."""
        now = time.monotonic()
        if self._first_update is None:
            # A resumed training starts with finished steps, which must not count for the speed.
            self._first_update = (now, done)
        if now < self._next_time:
            return
        self._next_time = now + self.interval
        first_time, first_done = self._first_update
        speed = (done - first_done) / (now - first_time) if now > first_time else 0.0
        content = {
            "name": self.name,
            "unit": self.unit,
            "done": round(done, 3),
            "total": self.total,
            "left": (self.total - done) / speed if speed > 0 else None,
        }
        # A missing or damaged progress file must not make the job fail.
        with suppress(OSError):
            self.path.write_text(json.dumps(content), encoding="utf-8")

    def add_share(self, share: float) -> None:
        """Update the finished share of the current step; 1.0 starts the next step."""
        self(self._n_finished_steps + share)
        self._n_finished_steps += share >= 1


def read_job_progress(folder: Path) -> list[JobProgress]:
    """Return the progress of the running jobs of a folder, ordered by name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from abstain_bench.runs.jobs import read_job_progress
    >>> read_job_progress(Path("runs/jobs"))
    []
    """
    progress = []
    for path in folder.glob(f"*{PROGRESS_SUFFIX}"):
        # The file may be deleted or incomplete.
        with suppress(InputError, OSError, KeyError, TypeError, ValueError):
            age = max(0.0, time.time() - path.stat().st_mtime)
            content = read_json_object(path)
            seconds_left = float("nan")
            if content["left"] is not None:
                seconds_left = max(0.0, float(content["left"]) - age)
            done, total = float(content["done"]), int(content["total"])
            if age < _STALE:
                name, unit = str(content["name"]), str(content["unit"])
                progress.append(JobProgress(name, unit, done, total, seconds_left))
    return sorted(progress, key=lambda job: job.name)
