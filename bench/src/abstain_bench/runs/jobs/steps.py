"""How far the jobs in progress are: each leaves a word beside its files, at most once a second.

It is read by whoever waits, in the same process, in another, or on another machine.
"""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from abstain._foundation.input_files import read_json_object
from abstain.errors import InputError
from abstain_bench.runs.jobs.record import NOW, Job

__all__ = ["Step", "Steps", "steps_in"]

#: Seconds after which a word that nobody renewed is of a process that is gone.
_STALE: Final = 120.0


@dataclass(frozen=True)
class Step:
    """How far a job is.

    Attributes
    ----------
    name : str
        Of the job.
    unit : str
        What its steps are: "epoch", or "part" of the pictures.
    done : float
        How many of them are done, the share of one that goes on included.
    total : int
        How many there are.
    left : float
        Seconds that the rest takes at the speed so far; NaN where nothing is known of it.

    Examples
    --------
    >>> from abstain_bench.runs.jobs.steps import Step
    >>> Step("train-x", "epoch", 2.5, 12, 40.0).said
    'epoch 3 of 12'
    """

    name: str
    unit: str
    done: float
    total: int
    left: float

    @property
    def said(self) -> str:
        """The step that goes on, in words."""
        return f"{self.unit} {min(int(self.done) + 1, self.total)} of {self.total}"


class Steps:
    """Told by a job how far it is; writes that down, at most once in some seconds.

    Parameters
    ----------
    job : Job
        In progress.
    folder : Path
        Where its files are.
    unit : str
        What its steps are.
    total : int
        How many there are.
    every : float, default=1.0
        Seconds between two words.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain_bench.runs.jobs import Job
    >>> from abstain_bench.runs.jobs.steps import Steps, steps_in
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     told = Steps(Job("train-x", {}), Path(folder), "epoch", 12, every=0)
    ...     told(2.5)
    ...     [(one.name, one.said) for one in steps_in(Path(folder))]
    [('train-x', 'epoch 3 of 12')]
    """

    def __init__(
        self, job: Job, folder: Path, unit: str, total: int, *, every: float = 1.0
    ) -> None:
        self.name, self.path = job.name, job.place(folder, NOW)
        self.unit, self.total, self.every = unit, total, every
        self.whole = 0
        self._first: tuple[float, float] | None = None
        self._next = 0.0

    def __call__(self, done: float) -> None:
        """Say how many steps are done, with the share of the one that goes on."""
        now = time.monotonic()
        if self._first is None:
            # A training that goes on where it was stopped has not just done what was done before.
            self._first = (now, done)
        if now < self._next:
            return
        self._next = now + self.every
        since, begun = self._first
        speed = (done - begun) / (now - since) if now > since else 0.0
        left = (self.total - done) / speed if speed > 0 else None
        said = {
            "name": self.name,
            "unit": self.unit,
            "done": round(done, 3),
            "total": self.total,
            "left": left,
        }
        # It need not survive a crash, and no job fails for lack of it.
        with suppress(OSError):
            self.path.write_text(json.dumps(said), encoding="utf-8")

    def part(self, share: float) -> None:
        """Say how much of the step that goes on is done; with 1.0 it is the next one's turn."""
        self(self.whole + share)
        self.whole += share >= 1


def steps_in(folder: Path) -> list[Step]:
    """Return how far the jobs of a folder are that go on, by name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from abstain_bench.runs.jobs import steps_in
    >>> steps_in(Path("runs/jobs"))
    []
    """
    return sorted(_said(folder), key=lambda one: one.name)


def _said(folder: Path) -> Iterator[Step]:
    for path in folder.glob(f"*{NOW}"):
        # It may be gone, or half written.
        with suppress(InputError, OSError, KeyError, TypeError, ValueError):
            age = max(0.0, time.time() - path.stat().st_mtime)
            said = read_json_object(path)
            left = float("nan") if said["left"] is None else max(0.0, float(said["left"]) - age)
            done, total = float(said["done"]), int(said["total"])
            if age < _STALE:
                yield Step(str(said["name"]), str(said["unit"]), done, total, left)
