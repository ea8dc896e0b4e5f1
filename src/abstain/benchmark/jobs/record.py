"""The records of jobs: what is to be done, and how it ended."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

#: Characters of a key in the names of files.
_SHOWN = 12


@dataclass(frozen=True)
class Job:
    """Something to do, said in plain values.

    Attributes
    ----------
    name : str
        For people and for the names of files: letters, digits, dots and hyphens.
    spec : mapping
        Everything that the outcome depends on, as JSON values.
    needs : tuple of Job
        Jobs whose files this one reads; their keys are part of its own.

    Examples
    --------
    >>> from abstain.benchmark.jobs import Job
    >>> one, two = Job("a", {"rate": 0.1}), Job("a", {"rate": 0.2})
    >>> one.key == two.key, one.stem.startswith("a-")
    (False, True)
    """

    name: str
    spec: Mapping[str, Any]
    needs: "tuple[Job, ...]" = ()

    @cached_property
    def key(self) -> str:
        """Hash of the specification and of the jobs it needs."""
        said = {"spec": self.spec, "needs": [job.key for job in self.needs]}
        text = json.dumps(said, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def stem(self) -> str:
        """The beginning of the names of its files."""
        return f"{self.name}-{self.key[:_SHOWN]}"

    def place(self, folder: Path, suffix: str) -> Path:
        """Return where its file of this suffix is."""
        return folder / f"{self.stem}{suffix}"


@dataclass(frozen=True)
class Outcome:
    """How a job ended, or that it begins.

    Attributes
    ----------
    job : Job
        Which.
    status : str
        "done", "kept" (it was done before), "failed", or "left out" (a job it needs failed).
        Whoever is told of outcomes is told "begun" before.
    seconds : float
        How long it took, also when it was done before.
    error : str
        Why it failed or was left out, in one line.
    facts : mapping
        What it found, from its receipt.
    """

    job: Job
    status: str
    seconds: float = 0.0
    error: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def there(self) -> bool:
        """Whether its files are there."""
        return self.status in {"done", "kept"}


#: Does a job in a folder, writes its files there atomically, and returns what it found.
Work = Callable[[Job, Path], Mapping[str, Any]]
#: Called when a job begins and after it, with how many are over and there are.
OnOutcome = Callable[[Outcome, int, int], None]
