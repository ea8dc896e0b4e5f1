"""Records of jobs: `Job`, `Outcome` and `Receipt`, and the table of all jobs of a run.

A receipt is written last and contains the hashes of the other files of its job.
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

#: Suffixes of files that are no output of a job: receipt, log, unfinished state, progress.
_NON_OUTPUT_SUFFIXES = (".json", ".log", ".part", PROGRESS_SUFFIX)

#: How often a job is started if its process dies.
_MAX_STARTS = 2


@dataclass(frozen=True)
class Job:
    """A unit of work, specified by plain values.

    Attributes
    ----------
    name : str
        Name for people and file names: letters, digits, dots and hyphens.
    spec : mapping
        Everything that the result depends on, as JSON values.
    needs : tuple of Job
        Jobs whose files this job reads. Their keys are part of its key.
    warm_up_file : str
        Name of a file with a warm-up that several jobs share, or empty. The first job writes it and
        the last one deletes it. It saves time and does not change the results, so it is not part of
        the key.

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
        """Hash of the specification and of the keys of the needed jobs."""
        content = {"spec": self.spec, "needs": [job.key for job in self.needs]}
        text = json.dumps(content, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def stem(self) -> str:
        """Common beginning of the names of its files."""
        return f"{self.name}-{self.key[:_KEY_LENGTH_IN_NAMES]}"

    def path(self, folder: Path, suffix: str) -> Path:
        """Return the path of its file with this suffix."""
        return folder / f"{self.stem}{suffix}"


@dataclass(frozen=True)
class Outcome:
    """How a job ended, or that it has started.

    Attributes
    ----------
    job : Job
        The job.
    status : str
        "done"; "kept" if it was done before; "failed"; or "left out" if a needed job failed.
        Callbacks also receive "begun" when a job starts.
    seconds : float
        Duration, also of a job that was done before.
    error : str
        Reason of a failure, in one line.
    facts : mapping
        Results from its receipt.
    """

    job: Job
    status: str
    seconds: float = 0.0
    error: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether the files of the job exist."""
        return self.status in {"done", "kept"}


#: Does a job in a folder: writes its files there atomically and returns its facts.
Work = Callable[[Job, Path], Mapping[str, Any]]
#: Does a job and returns its outcome.
JobRunner = Callable[[Job], Outcome]
#: Callback for each start and end of a job, with the number of finished jobs and of all jobs.
OnOutcome = Callable[[Outcome, int, int], None]


@dataclass(frozen=True)
class Receipt:
    """The receipt of a finished job: its results, and everything that they depend on.

    Attributes
    ----------
    name, key : str
        Name and key of the job.
    seconds : float
        Duration.
    facts : mapping
        Results.
    mark : str
        Hash of the facts; empty in receipts of earlier versions.
    files : mapping from str to str
        Hashes of the output files, by suffix.
    spec, needs : mapping and tuple of str
        Specification of the job, and the keys of the jobs it needs.
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
        """Read a receipt; raise InputError if it is invalid, incomplete or was changed."""
        # Earlier versions did not write these two fields.
        content = {"mark": "", "needs": [], **read_json_object(path)}
        return records.from_fields(cls, content, "a receipt")


def run_job(job: Job, work: Work, folder: Path) -> Outcome:
    """Do one job and write its receipt, or the log of its failure."""
    # A worker that died may have finished the job before.
    if (stored := stored_outcome(job, folder)) is not None:
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
    """Return the outcome of a job that was done before; None without a valid receipt."""
    # A changed receipt also gives None: the job is done again.
    with suppress(InputError, OSError):
        receipt = Receipt.read(job.path(folder, ".json"))
        if receipt.key == job.key and receipt.files == _hash_output_files(job, folder):
            return Outcome(job, "kept", receipt.seconds, facts=receipt.facts)
    return None


def read_receipts(folder: Path) -> dict[str, Receipt]:
    """Return the receipts of all finished jobs by the stem of their files, newest first.

    A job counts as finished if its files exist and are not empty; their content is not checked.
    """
    dated_receipts = []
    for path in folder.glob("*.json"):
        with suppress(InputError, OSError):
            receipt = Receipt.read(path)
            files = [path.with_suffix(suffix) for suffix in receipt.files]
            if all(file.is_file() and file.stat().st_size for file in files):
                dated_receipts.append((path.stat().st_mtime, path.stem, receipt))
    dated_receipts.sort(key=lambda dated: -dated[0])
    return {stem: receipt for _, stem, receipt in dated_receipts}


def _hash_facts(facts: Mapping[str, Any]) -> str:
    """Return a hash of the results of a job."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _hash_output_files(job: Job, folder: Path) -> dict[str, str]:
    """Return the hashes of the output files of a job, by suffix."""
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
    """The waiting, running and finished jobs of a run.

    Parameters
    ----------
    jobs : iterable of Job
        All jobs, each after those it needs.
    folder : Path
        Folder with the files of the jobs.
    on_outcome : callable, optional
        Callback for each start and end of a job.
    earlier : sequence of Outcome
        Outcomes of the jobs of earlier rounds.
    total : int
        Number of jobs of all rounds, for the callback; 0 for those of this and earlier rounds.
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
        self.folder, self.on_outcome = folder, on_outcome
        self.earlier = {outcome.job.stem: outcome for outcome in earlier}
        # By stem, because two jobs with equal keys but different names write different files.
        self.jobs = {job.stem: job for job in jobs}
        self.outcome_by_stem: dict[str, Outcome] = {}
        self.n_starts: dict[str, int] = {}
        self.interrupted: set[str] = set()
        self.total = total or len(self.earlier) + len(self.jobs)
        # Needed jobs that were done before and are not in the table.
        needs = {needed.stem: needed for job in self.jobs.values() for needed in job.needs}
        stored_needs = {
            stem: stored_outcome(needs[stem], folder)
            for stem in needs.keys() - self.jobs.keys() - self.earlier.keys()
        }
        stored = {stem: outcome for stem, outcome in stored_needs.items() if outcome is not None}
        self.earlier_outcomes = {**stored, **self.earlier}
        available = set(self.earlier_outcomes)
        for job in self.jobs.values():
            if any(needed.stem not in available for needed in job.needs):
                raise InputError(f"the job {job.name!r} comes before one that it needs")
            available.add(job.stem)
            if (outcome := stored_outcome(job, folder)) is not None:
                self.finish(outcome)
        self.waiting = [job for job in self.jobs.values() if job.stem not in self.outcome_by_stem]

    def next_job(self) -> Job | None:
        """Return a job that can start, or None; jobs whose needs failed are finished as left out.

        Jobs that can use a warm-up that a running job is about to write come last.
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
            elif None not in outcomes:
                if not self._is_warm_up_being_computed(job):
                    return job
                last_resort = last_resort or job
        return last_resort

    def _is_warm_up_being_computed(self, job: Job) -> bool:
        """Return whether a running job is about to write the warm-up that this job can use."""
        if not job.warm_up_file or (self.folder / job.warm_up_file).is_file():
            return False
        waiting = {waiting_job.stem for waiting_job in self.waiting}
        return any(
            other.warm_up_file == job.warm_up_file
            for stem, other in self.jobs.items()
            if stem not in waiting and stem not in self.outcome_by_stem
        )

    def start(self, job: Job) -> None:
        """Move a job from the waiting to the running jobs."""
        self.waiting.remove(job)
        self.n_starts[job.stem] = self.n_starts.get(job.stem, 0) + 1
        self._report(Outcome(job, "begun"))

    def finish(self, outcome: Outcome) -> None:
        """Record the outcome of a job; delete a shared warm-up after its last job."""
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
        """Put a job whose process died back into the queue, unless it was started too often."""
        # If several processes are affected, the one that died is unknown. The job may also have
        # finished just before.
        if (stored := stored_outcome(job, self.folder)) is not None:
            self.finish(stored)
        elif may_restart and self.n_starts[job.stem] < _MAX_STARTS:
            self.interrupted.add(job.stem)
            self.waiting.append(job)
        else:
            self.finish(Outcome(job, "failed", error="its process was killed (out of memory?)"))

    def must_run_alone(self, job: Job, running: Iterable[Job]) -> bool:
        """Return whether a job must wait for the running ones, because one was interrupted before.

        The process of an interrupted job may itself have died, and could interrupt the others.
        """
        running_stems = [other.stem for other in running]
        return bool(running_stems) and not self.interrupted.isdisjoint([job.stem, *running_stems])

    def outcomes(self) -> list[Outcome]:
        """Return the outcomes in the order of the jobs."""
        return [self.outcome_by_stem[stem] for stem in self.jobs]
