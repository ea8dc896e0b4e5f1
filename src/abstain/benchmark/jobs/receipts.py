"""Doing one job, and its receipt: written last, it knows the other files by their content."""

import hashlib
import json
import traceback
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from abstain._foundation.files import write_atomically
from abstain._foundation.reading import digest, fields
from abstain.benchmark.jobs.record import Job, Outcome, Work
from abstain.errors import AbstainError, InputError

#: Files of a job that are no part of what it leaves: its receipt, its log, an unfinished state.
_NOT_KEPT = (".json", ".log", ".part")


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
        said |= {"mark": mark_of(facts), "files": _files(job, folder), "spec": job.spec}
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
        if found["key"] != job.key or found["files"] != _files(job, folder) or not intact(found):
            return None
        return Outcome(job, "kept", float(found["seconds"]), facts=dict(found["facts"]))
    except (InputError, KeyError, TypeError, ValueError, OSError):
        # Changed by somebody; doing the job again is cheap and sure.
        return None


def mark_of(facts: Mapping[str, Any]) -> str:
    """Return a hash of what a job found."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def intact(found: Mapping[str, Any]) -> bool:
    """Tell whether nobody has changed what a receipt says that a job found."""
    # Not every version wrote the mark.
    return "mark" not in found or found["mark"] == mark_of(found["facts"])


def _files(job: Job, folder: Path) -> dict[str, str]:
    """Return the hashes of the files that a job left, by their endings."""
    start = f"{job.stem}."
    found = {path.suffix: path for path in folder.iterdir() if path.name.startswith(start)}
    return {
        suffix: digest(path)
        for suffix, path in sorted(found.items())
        if suffix not in _NOT_KEPT and path.is_file()
    }
