"""The records of jobs: what is to be done, how it ended, the receipts of it, and the table of all.

A receipt is written last and knows the other files of its job by their content.
"""

import hashlib
import json
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from abstain._foundation import records
from abstain._foundation.files import write_atomically
from abstain._foundation.input_files import input_sha256, read_json_object
from abstain.errors import AbstainError, InputError

#: Characters of a key in the names of files.
_SHOWN = 12

#: The ending of the file that says how far a job in progress is.
NOW: Final = ".now"

#: Files of a job that are no part of what it leaves: its receipt, its log, an unfinished state.
_NOT_KEPT = (".json", ".log", ".part", NOW)

#: How often a job is begun whose process dies.
_TRIES = 2


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
    start : str
        The name of a file with what this job and others begin with alike, or empty. Whoever comes
        first leaves it; it spares the others work and changes nothing that they find, so it is no
        part of a key. It is taken away with the last of them.

    Examples
    --------
    >>> from abstain_bench.runs.jobs import Job
    >>> one, two = Job("a", {"rate": 0.1}), Job("a", {"rate": 0.2})
    >>> one.key == two.key, one.stem.startswith("a-")
    (False, True)
    """

    name: str
    spec: Mapping[str, Any]
    needs: "tuple[Job, ...]" = ()
    start: str = ""

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
#: Does one job, and says how it ended.
Do = Callable[[Job], Outcome]
#: Called when a job begins and after it, with how many are over and there are.
OnOutcome = Callable[[Outcome, int, int], None]


@dataclass(frozen=True)
class Receipt:
    """What the file of a job that is done says: what it found, and what that depends on.

    Attributes
    ----------
    name, key : str
        Of the job.
    seconds : float
        How long it took.
    facts : mapping
        What it found.
    mark : str
        A hash of that; empty in receipts of versions that wrote none.
    files : mapping from str to str
        The hashes of the other files that it left, by their endings.
    spec, needs : mapping and tuple of str
        Of the job, and the keys of the jobs it needs.
    """

    name: str
    key: str
    seconds: records.NonNegative
    facts: dict[str, Any]
    mark: str
    files: dict[str, str]
    spec: dict[str, Any]
    needs: tuple[str, ...]

    def __post_init__(self) -> None:
        records.check(self, owner="a receipt")
        if self.mark not in {"", _mark_of(self.facts)}:
            raise InputError("`facts` of a receipt must be as the job left them; they were changed")

    @classmethod
    def read(cls, path: Path) -> "Receipt":
        """Read a receipt; an InputError where it is none, is being written, or was changed."""
        # Not every version wrote these two.
        found = {"mark": "", "needs": [], **read_json_object(path)}
        return records.from_fields(cls, found, "a receipt")


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
        needs = tuple(other.key for other in job.needs)
        files, mark = _files(job, folder), _mark_of(facts)
        left = Receipt(job.name, job.key, seconds, facts, mark, files, dict(job.spec), needs)
        text = json.dumps(asdict(left), allow_nan=False)
        write_atomically(job.place(folder, ".json"), text.encode())
    except Exception as error:  # noqa: BLE001  whatever it is, the other jobs go on
        write_atomically(log, traceback.format_exc().encode())
        text = str(error) if isinstance(error, AbstainError) else f"{type(error).__name__}: {error}"
        first = (text.splitlines() or [type(error).__name__])[0]
        return Outcome(job, "failed", perf_counter() - start, first)
    finally:
        job.place(folder, NOW).unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    return Outcome(job, "done", seconds, facts=facts)


def receipt(job: Job, folder: Path) -> Outcome | None:
    """Return how a job ended that was done before; None where there is no receipt of it."""
    # Of one that somebody changed, too: doing the job again is cheap and sure.
    with suppress(InputError, OSError):
        found = Receipt.read(job.place(folder, ".json"))
        if found.key == job.key and found.files == _files(job, folder):
            return Outcome(job, "kept", found.seconds, facts=found.facts)
    return None


def receipts_in(folder: Path) -> dict[str, Receipt]:
    """Return all receipts by the beginning of their files' names, the newest first.

    Whether files are there is looked at, not what is in them: a job of which some were deleted or
    cut is done again, and is not done until then.
    """
    found = []
    for path in folder.glob("*.json"):
        with suppress(InputError, OSError):
            one = Receipt.read(path)
            files = [path.with_suffix(ending) for ending in one.files]
            if all(file.is_file() and file.stat().st_size for file in files):
                found.append((path.stat().st_mtime, path.stem, one))
    return {stem: one for _, stem, one in sorted(found, key=lambda each: -each[0])}


def _mark_of(facts: Mapping[str, Any]) -> str:
    """Return a hash of what a job found."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _files(job: Job, folder: Path) -> dict[str, str]:
    """Return the hashes of the files that a job left, by their endings."""
    start = f"{job.stem}."
    found = {path.suffix: path for path in folder.iterdir() if path.name.startswith(start)}
    return {
        suffix: input_sha256(path)
        for suffix, path in sorted(found.items())
        if suffix not in _NOT_KEPT and path.is_file()
    }


class JobTable:
    """Which jobs wait, run and are over.

    `earlier` is how the jobs of earlier rounds ended, and `total` how many there are in all rounds
    together; 0 for those known so far.
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        folder: Path,
        told: OnOutcome | None = None,
        *,
        earlier: Sequence[Outcome] = (),
        total: int = 0,
    ) -> None:
        self.folder, self.told = folder, told
        self.earlier = {outcome.job.stem: outcome for outcome in earlier}
        # By the names of their files: two jobs may be asked for the same, and both leave files.
        self.jobs = {job.stem: job for job in jobs}
        self.over: dict[str, Outcome] = {}
        self.begun: dict[str, int] = {}
        self.cut: set[str] = set()
        self.total = total or len(self.earlier) + len(self.jobs)
        self.needed = {**self._kept(), **self.earlier}
        seen = set(self.needed)
        for job in self.jobs.values():
            if any(other.stem not in seen for other in job.needs):
                raise InputError(f"the job {job.name!r} comes before one that it needs")
            seen.add(job.stem)
            if (kept := receipt(job, folder)) is not None:
                self.end(kept)
        self.waiting = [job for job in self.jobs.values() if job.stem not in self.over]

    def _kept(self) -> dict[str, Outcome]:
        """Return the jobs that are needed, not asked for, and done before, by their stems."""
        needed = {other.stem: other for job in self.jobs.values() for other in job.needs}
        return {
            stem: kept
            for stem, job in needed.items()
            if stem not in self.jobs
            and stem not in self.earlier
            and (kept := receipt(job, self.folder)) is not None
        }

    def next(self) -> Job | None:
        """Return a job that can begin, after setting those aside that never can.

        One that another is about to spare work comes after all others, but waits for nothing.
        """
        spared = None
        for job in list(self.waiting):
            needed = [self.over.get(o.stem, self.needed.get(o.stem)) for o in job.needs]
            lost = next((o for o in needed if o is not None and not o.there), None)
            if lost is not None:
                self.waiting.remove(job)
                self.end(Outcome(job, "left out", error=f"it needs {lost.job.name}, which failed"))
            elif None not in needed:
                if not self._spared_soon(job):
                    return job
                spared = spared or job
        return spared

    def _spared_soon(self, job: Job) -> bool:
        """Tell whether a job that runs is to leave what this one would begin with."""
        left = not job.start or (self.folder / job.start).is_file()
        return not left and any(one.start == job.start for one in self._running())

    def _running(self) -> list[Job]:
        idle = {job.stem for job in self.waiting} | set(self.over)
        return [job for stem, job in self.jobs.items() if stem not in idle]

    def begin(self, job: Job) -> None:
        """Take a job out of those that wait."""
        self.waiting.remove(job)
        self.begun[job.stem] = self.begun.get(job.stem, 0) + 1
        self._tell(Outcome(job, "begun"))

    def end(self, outcome: Outcome) -> None:
        """Write down how a job ended."""
        job = outcome.job
        self.over[job.stem] = outcome
        if job.start and all(
            one.stem in self.over for one in self.jobs.values() if one.start == job.start
        ):
            (self.folder / job.start).unlink(missing_ok=True)
        self._tell(outcome)

    def _tell(self, outcome: Outcome) -> None:
        if self.told is not None:
            self.told(outcome, len(self.earlier) + len(self.over), self.total)

    def died(self, job: Job, *, again: bool = True) -> None:
        """Put a job back whose process died, unless that happened too often."""
        # Of several it is not known which one died; a job may also have ended just before.
        if (kept := receipt(job, self.folder)) is not None:
            self.end(kept)
        elif again and self.begun[job.stem] < _TRIES:
            self.cut.add(job.stem)
            self.waiting.append(job)
        else:
            self.end(Outcome(job, "failed", error="its process was killed (out of memory?)"))

    def apart(self, job: Job, running: Iterable[Job]) -> bool:
        """Tell whether a job must not run beside these: one of them was cut short by a death.

        Its own process may have died, and would take the others along once more.
        """
        beside = [other.stem for other in running]
        return bool(beside) and not self.cut.isdisjoint([job.stem, *beside])

    def outcomes(self) -> list[Outcome]:
        """Return how each job ended, in the order given."""
        return [self.over[stem] for stem in self.jobs]
