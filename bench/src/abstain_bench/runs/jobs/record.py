"""`Job`, `Outcome` and `Receipt`, and the table of all jobs of a run.

A receipt contains hashes of the output files of a job, and is written after them.
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

#: Number of characters of a key in file names.
_KEY_LENGTH_IN_NAMES = 12

#: Suffix of the file with the progress of a running job.
PROGRESS_SUFFIX: Final = ".now"

#: Suffixes of the files of a job that are not outputs. These are the receipt, the log, the
#: checkpoint and the progress file.
_NON_OUTPUT_SUFFIXES = (".json", ".log", ".part", PROGRESS_SUFFIX)

#: Maximum number of starts of a job whose process dies.
_MAX_STARTS = 2


@dataclass(frozen=True)
class Job:
    """A unit of work that is fully specified by plain values.

    Attributes
    ----------
    name : str
        Name in messages and file names. The name consists of letters, digits, dots and hyphens.
    spec : mapping
        JSON values that determine the result, together with the needed jobs.
    needs : tuple of Job
        Jobs whose files this job reads. The keys of these jobs determine the key of this job.
    warm_up_file : str
        Name of a file with the state after a warm-up that several jobs share, or empty. The first
        of these jobs writes the file, which is deleted after the last job has used it. The file
        does not affect the results, so it is not included in the key.

    Examples
    --------
    >>> from abstain_bench.runs.jobs import Job
    >>> first, second = Job("a", {"rate": 0.1}), Job("a", {"rate": 0.2})
    >>> first.key == second.key, first.stem.startswith("a-")
    (False, True)
    """

    name: str
    spec: Mapping[str, Any]
    needs: "tuple[Job, ...]" = ()
    warm_up_file: str = ""

    @cached_property
    def key(self) -> str:
        """Hash of the specification and the keys of the needed jobs."""
        content = {"spec": self.spec, "needs": [job.key for job in self.needs]}
        text = json.dumps(content, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def stem(self) -> str:
        """Prefix of the file names of the job, which contains its name and key."""
        return f"{self.name}-{self.key[:_KEY_LENGTH_IN_NAMES]}"

    def path(self, folder: Path, suffix: str) -> Path:
        """Return the path of a file of the job, given its suffix."""
        return folder / f"{self.stem}{suffix}"


@dataclass(frozen=True)
class Outcome:
    """Status and results of a job.

    Attributes
    ----------
    job : Job
        The job.
    status : str
        "done", "kept" if the job was done before, "failed", or "left out" if a needed job failed.
        Callbacks also receive an outcome with the status "begun" when a job starts.
    seconds : float
        Duration of the job. For the status "kept", this is the duration that the receipt contains.
    error : str
        Reason of a failure in one line.
    facts : mapping
        Results in the receipt of the job.
    """

    job: Job
    status: str
    seconds: float = 0.0
    error: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether the job is finished and its files exist."""
        return self.status in {"done", "kept"}


#: Function that executes a job. It writes the files of the job to a folder atomically and returns
#: the facts of the job.
Work = Callable[[Job, Path], Mapping[str, Any]]
#: Function that executes a job and returns its outcome.
JobRunner = Callable[[Job], Outcome]
#: Callback that is called when a job starts and when it ends. Its arguments are the outcome, the
#: number of finished jobs, and the number of all jobs.
OnOutcome = Callable[[Outcome, int, int], None]


@dataclass(frozen=True)
class Receipt:
    """Receipt of a finished job, which contains its results, its specification and file hashes.

    Attributes
    ----------
    name, key : str
        Name and key of the job.
    seconds : float
        Duration of the job.
    facts : mapping
        Results of the job.
    mark : str
        Hash of the facts. The hash is empty in receipts of older versions.
    files : mapping from str to str
        Hash of each output file by the suffix of the file.
    spec, needs : mapping and tuple of str
        Specification of the job, and keys of the jobs that it needs.
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
        if self.mark not in {"", _hash_facts(self.facts)}:
            raise InputError("`facts` of the receipt were changed after the job wrote them")

    @classmethod
    def read(cls, path: Path) -> "Receipt":
        """Read a receipt from a file.

        Raises InputError if the receipt is invalid or incomplete, or if its results were changed.
        """
        # Earlier versions did not write these two fields.
        content = {"mark": "", "needs": [], **read_json_object(path)}
        return records.from_fields(cls, content, "a receipt")


def run_job(job: Job, work: Work, folder: Path) -> Outcome:
    """Execute a job, and write its receipt, or a log file if the job fails."""
    # A worker may have finished the job before it died.
    stored = stored_outcome(job, folder)
    if stored is not None:
        return stored
    start = perf_counter()
    log = job.path(folder, ".log")
    try:
        facts = dict(work(job, folder))
        seconds = perf_counter() - start
        receipt = Receipt(
            job.name,
            job.key,
            seconds,
            facts,
            mark=_hash_facts(facts),
            files=_hash_output_files(job, folder),
            spec=dict(job.spec),
            needs=tuple(needed.key for needed in job.needs),
        )
        text = json.dumps(asdict(receipt), allow_nan=False)
        write_atomically(job.path(folder, ".json"), text.encode())
    except Exception as error:  # noqa: BLE001  the other jobs continue after any failure
        write_atomically(log, traceback.format_exc().encode())
        text = str(error) if isinstance(error, AbstainError) else f"{type(error).__name__}: {error}"
        first_line = (text.splitlines() or [type(error).__name__])[0]
        return Outcome(job, "failed", perf_counter() - start, first_line)
    finally:
        job.path(folder, PROGRESS_SUFFIX).unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    return Outcome(job, "done", seconds, facts=facts)


def stored_outcome(job: Job, folder: Path) -> Outcome | None:
    """Return the outcome of a job that was completed by an earlier call.

    The result is None if the receipt is missing, or if the receipt or an output file was changed.
    """
    with suppress(InputError, OSError):
        receipt = Receipt.read(job.path(folder, ".json"))
        if receipt.key == job.key and receipt.files == _hash_output_files(job, folder):
            return Outcome(job, "kept", receipt.seconds, facts=receipt.facts)
    return None


def read_receipts(folder: Path) -> dict[str, Receipt]:
    """Return the receipts of finished jobs by the prefix of their files, newest first.

    A job is finished if all files that its receipt lists exist and are not empty.
    """
    receipts: dict[str, Receipt] = {}
    modification_times: dict[str, float] = {}
    for path in folder.glob("*.json"):
        with suppress(InputError, OSError):
            receipt = Receipt.read(path)
            output_files = [path.with_suffix(suffix) for suffix in receipt.files]
            if all(file.is_file() and file.stat().st_size for file in output_files):
                modification_times[path.stem] = path.stat().st_mtime
                receipts[path.stem] = receipt
    newest_first = sorted(receipts, key=lambda stem: modification_times[stem], reverse=True)
    return {stem: receipts[stem] for stem in newest_first}


def _hash_facts(facts: Mapping[str, Any]) -> str:
    """Return a hash of the results of a job."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _hash_output_files(job: Job, folder: Path) -> dict[str, str]:
    """Return the hash of each output file of a job by file suffix."""
    prefix = f"{job.stem}."
    path_by_suffix = {
        path.suffix: path for path in folder.iterdir() if path.name.startswith(prefix)
    }
    return {
        suffix: input_sha256(path)
        for suffix, path in sorted(path_by_suffix.items())
        if suffix not in _NON_OUTPUT_SUFFIXES and path.is_file()
    }


class JobTable:
    """State of a set of jobs: waiting, running and finished.

    Parameters
    ----------
    jobs : iterable of Job
        All jobs. Each job must come after the jobs that it depends on.
    folder : Path
        Folder with the files of the jobs.
    on_outcome : callable, optional
        Callback that is called when a job starts and when it ends.
    earlier : sequence of Outcome
        Outcomes of the jobs in earlier calls of `run_jobs`.
    total : int
        Number of all jobs for the callback. The value 0 stands for the jobs of this call and of
        earlier calls.
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        folder: Path,
        on_outcome: OnOutcome | None = None,
        *,
        earlier: Sequence[Outcome] = (),
        total: int = 0,
    ) -> None:
        self.folder = folder
        self.on_outcome = on_outcome
        self.earlier = {outcome.job.stem: outcome for outcome in earlier}
        # Jobs are identified by stems, because two jobs with one key may have different names.
        self.jobs = {job.stem: job for job in jobs}
        self.outcome_by_stem: dict[str, Outcome] = {}
        self.n_starts: dict[str, int] = {}
        self.interrupted: set[str] = set()
        self.total = total or len(self.earlier) + len(self.jobs)
        self.earlier_outcomes = {**self._read_outside_needs(), **self.earlier}
        available = set(self.earlier_outcomes)
        for job in self.jobs.values():
            if any(needed.stem not in available for needed in job.needs):
                raise InputError(f"the job {job.name!r} comes before one that it needs")
            available.add(job.stem)
            stored = stored_outcome(job, folder)
            if stored is not None:
                self.finish(stored)
        self.waiting = [job for job in self.jobs.values() if job.stem not in self.outcome_by_stem]

    def _read_outside_needs(self) -> dict[str, Outcome]:
        """Return the stored outcomes of required jobs that are not in the table."""
        outcomes = {}
        for job in self.jobs.values():
            for needed in job.needs:
                if needed.stem in self.jobs or needed.stem in self.earlier:
                    continue
                stored = stored_outcome(needed, self.folder)
                if stored is not None:
                    outcomes[needed.stem] = stored
        return outcomes

    def next_job(self) -> Job | None:
        """Return a job that can start now, or None if there is none.

        If a required job failed, the job gets the status "left out". If a running job is writing
        the warm-up that a job needs, the job is returned only if no other job can start.
        """
        last_resort = None
        for job in list(self.waiting):
            outcomes = [
                self.outcome_by_stem.get(needed.stem, self.earlier_outcomes.get(needed.stem))
                for needed in job.needs
            ]
            failed = next((o for o in outcomes if o is not None and not o.is_done), None)
            if failed is not None:
                self.waiting.remove(job)
                error = f"it needs {failed.job.name}, which failed"
                self.finish(Outcome(job, "left out", error=error))
                continue
            if None in outcomes:
                continue
            if not self._is_warm_up_being_computed(job):
                return job
            if last_resort is None:
                last_resort = job
        return last_resort

    def _is_warm_up_being_computed(self, job: Job) -> bool:
        """Return whether a running job is writing the warm-up that a job can use."""
        if not job.warm_up_file or (self.folder / job.warm_up_file).is_file():
            return False
        waiting = {waiting_job.stem for waiting_job in self.waiting}
        return any(
            other.warm_up_file == job.warm_up_file
            for stem, other in self.jobs.items()
            if stem not in waiting and stem not in self.outcome_by_stem
        )

    def start(self, job: Job) -> None:
        """Mark a waiting job as running."""
        self.waiting.remove(job)
        self.n_starts[job.stem] = self.n_starts.get(job.stem, 0) + 1
        self._report(Outcome(job, "begun"))

    def finish(self, outcome: Outcome) -> None:
        """Record the outcome of a job, and delete its warm-up file if no further job uses it."""
        job = outcome.job
        self.outcome_by_stem[job.stem] = outcome
        if job.warm_up_file:
            users = [o.stem for o in self.jobs.values() if o.warm_up_file == job.warm_up_file]
            if all(stem in self.outcome_by_stem for stem in users):
                (self.folder / job.warm_up_file).unlink(missing_ok=True)
        self._report(outcome)

    def _report(self, outcome: Outcome) -> None:
        if self.on_outcome is not None:
            n_finished = len(self.earlier) + len(self.outcome_by_stem)
            self.on_outcome(outcome, n_finished, self.total)

    def handle_process_death(self, job: Job, *, may_restart: bool = True) -> None:
        """Mark a job as waiting after its process died.

        The job fails if it was started too many times, or if `may_restart` is False.
        """
        # The death of any process interrupts all jobs, and a job may have finished just before.
        stored = stored_outcome(job, self.folder)
        if stored is not None:
            self.finish(stored)
        elif may_restart and self.n_starts[job.stem] < _MAX_STARTS:
            self.interrupted.add(job.stem)
            self.waiting.append(job)
        else:
            self.finish(Outcome(job, "failed", error="its process was killed (out of memory?)"))

    def must_run_alone(self, job: Job, running: Iterable[Job]) -> bool:
        """Return whether a job must wait until no other job is running.

        A job that was running when a process died is repeated alone, because it may have caused the
        failure.
        """
        running_stems = [other.stem for other in running]
        return bool(running_stems) and not self.interrupted.isdisjoint([job.stem, *running_stems])

    def outcomes(self) -> list[Outcome]:
        """Return the outcomes of all jobs, in the order of the jobs."""
        return [self.outcome_by_stem[stem] for stem in self.jobs]
