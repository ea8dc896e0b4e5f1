"""Progress of running jobs.

A running job updates its progress file at most once per second. Any process that can access the
folder can read the progress.
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

#: Number of seconds without an update after which the process of a job is considered dead.
_STALE: Final = 120.0


@dataclass(frozen=True)
class JobProgress:
    """Progress of a job.

    Attributes
    ----------
    name : str
        Name of the job.
    unit : str
        Unit of the steps, which is "epoch" or "part". A part of a job is a set of images.
    done : float
        Number of finished steps, plus the finished share of the current step.
    total : int
        Number of steps.
    seconds_left : float
        Estimated number of seconds until the job ends, at the mean speed so far, or NaN if the
        speed is unknown.

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
        """Text with the unit, the number of the current step, and the total number of steps."""
        return f"{self.unit} {min(int(self.done) + 1, self.total)} of {self.total}"


class ProgressWriter:
    """Writes the progress of a job to its progress file.

    Parameters
    ----------
    job : Job
        The job whose progress is written.
    folder : Path
        Folder with the files of the job.
    unit : str
        Unit of the steps.
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
        self.name = job.name
        self.path = job.path(folder, PROGRESS_SUFFIX)
        self.unit = unit
        self.total = total
        self.interval = interval
        self._n_finished_steps = 0
        self._first_update: tuple[float, float] | None = None
        self._next_time = 0.0

    def __call__(self, done: float) -> None:
        """Set the number of finished steps, including a fraction for the current step."""
        now = time.monotonic()
        if self._first_update is None:
            # A resumed training starts with finished steps, which are excluded from the speed.
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
        # The job must not fail because its progress file cannot be written.
        with suppress(OSError):
            self.path.write_text(json.dumps(content), encoding="utf-8")

    def add_share(self, share: float) -> None:
        """Set the finished fraction of the current step, which ends at 1."""
        self(self._n_finished_steps + share)
        if share >= 1:
            self._n_finished_steps += 1


def read_job_progress(folder: Path) -> list[JobProgress]:
    """Return the progress of all running jobs in a folder, sorted by name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from abstain_bench.runs.jobs import read_job_progress
    >>> read_job_progress(Path("runs/jobs"))
    []
    """
    progress = []
    for path in folder.glob(f"*{PROGRESS_SUFFIX}"):
        # The job may delete its file, or may just be writing it.
        with suppress(InputError, OSError, KeyError, TypeError, ValueError):
            age = max(0.0, time.time() - path.stat().st_mtime)
            content = read_json_object(path)
            seconds_left = float("nan")
            if content["left"] is not None:
                seconds_left = max(0.0, float(content["left"]) - age)
            job_progress = JobProgress(
                name=str(content["name"]),
                unit=str(content["unit"]),
                done=float(content["done"]),
                total=int(content["total"]),
                seconds_left=seconds_left,
            )
            if age < _STALE:
                progress.append(job_progress)
    return sorted(progress, key=lambda job: job.name)
