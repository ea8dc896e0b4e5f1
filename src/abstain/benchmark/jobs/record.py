"""The records of jobs: what is to be done, how it ended, and the receipts that are kept of it.

A receipt is written last and knows the other files of its job by their content.
"""

import hashlib
import json
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

from abstain._foundation.files import write_atomically
from abstain._foundation.reading import digest, fields
from abstain.errors import AbstainError, InputError

#: Characters of a key in the names of files.
_SHOWN = 12

#: Files of a job that are no part of what it leaves: its receipt, its log, an unfinished state.
_NOT_KEPT = (".json", ".log", ".part")

#: What the file of a job that is done says.
Receipt: TypeAlias = Mapping[str, Any]


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


def done(job: Job, work: Work, folder: Path) -> Outcome:
    """Do one job; leave its receipt, or the log of its failure."""
    # A worker may have finished it and died before it could say so.
    if (kept := receipt(job, folder)) is not None:
        return kept
    start = perf_counter()
    log = job.place(folder, ".log")
    try:
        facts = dict(work(job, folder))
        seconds = perf_counter() - start
        said = {"name": job.name, "key": job.key, "seconds": seconds, "facts": facts}
        said |= {"mark": _mark_of(facts), "files": _files(job, folder), "spec": job.spec}
        said["needs"] = [other.key for other in job.needs]
        write_atomically(job.place(folder, ".json"), json.dumps(said, allow_nan=False).encode())
    except Exception as error:  # noqa: BLE001  whatever it is, the other jobs go on
        write_atomically(log, traceback.format_exc().encode())
        text = str(error) if isinstance(error, AbstainError) else f"{type(error).__name__}: {error}"
        first = (text.splitlines() or [type(error).__name__])[0]
        return Outcome(job, "failed", perf_counter() - start, first)
    log.unlink(missing_ok=True)
    return Outcome(job, "done", seconds, facts=facts)


def receipt(job: Job, folder: Path) -> Outcome | None:
    """Return how a job ended that was done before; None where there is no receipt of it."""
    path = job.place(folder, ".json")
    if not path.is_file():
        return None
    try:
        found = fields(path)
        if found["key"] != job.key or found["files"] != _files(job, folder) or not _intact(found):
            return None
        return Outcome(job, "kept", float(found["seconds"]), facts=dict(found["facts"]))
    except (InputError, KeyError, TypeError, ValueError, OSError):
        # Changed by somebody; doing the job again is cheap and sure.
        return None


def receipts_in(folder: Path) -> dict[str, Receipt]:
    """Return all receipts by the beginning of their files' names, the newest first.

    Whether files are there is looked at, not what is in them. What is no receipt is no job that
    is done: it is being written, or somebody changed it.
    """
    found = []
    for path in folder.glob("*.json"):
        try:
            said = _checked(path)
            if said is not None:
                found.append((path.stat().st_mtime, path.stem, said))
        except (InputError, OSError, ValueError, KeyError, TypeError):
            continue
    return {stem: said for _, stem, said in sorted(found, key=lambda one: -one[0])}


def _checked(path: Path) -> Receipt | None:
    """Return a receipt whose files are there."""
    said = fields(path)
    kinds = {"name": str, "key": str, "spec": dict, "facts": dict, "files": dict}
    right = all(isinstance(said[name], kind) for name, kind in kinds.items())
    # What was deleted or cut is done again, and is not there until then.
    there = right and all(_is_there(path.with_suffix(ending)) for ending in said["files"])
    return {**said, "seconds": float(said["seconds"])} if there and _intact(said) else None


def _is_there(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _mark_of(facts: Mapping[str, Any]) -> str:
    """Return a hash of what a job found."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _intact(found: Mapping[str, Any]) -> bool:
    """Tell whether nobody has changed what a receipt says that a job found."""
    # Not every version wrote the mark.
    return "mark" not in found or found["mark"] == _mark_of(found["facts"])


def _files(job: Job, folder: Path) -> dict[str, str]:
    """Return the hashes of the files that a job left, by their endings."""
    start = f"{job.stem}."
    found = {path.suffix: path for path in folder.iterdir() if path.name.startswith(start)}
    return {
        suffix: digest(path)
        for suffix, path in sorted(found.items())
        if suffix not in _NOT_KEPT and path.is_file()
    }
