"""`JobTable`: which jobs wait, run and are over."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from abstain.benchmark.jobs.record import Job, OnOutcome, Outcome, receipt
from abstain.errors import InputError

#: How often a job is begun whose process dies.
_TRIES = 2


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
        self.total = total or len(self.earlier) + len(self.jobs)
        self.needed = {**self._kept(), **self.earlier}
        seen = set(self.needed)
        for job in self.jobs.values():
            if any(other.stem not in seen for other in job.needs):
                msg = f"the job {job.name!r} comes before one that it needs"
                raise InputError(msg)
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
        """Return a job that can begin, after setting those aside that never can."""
        for job in list(self.waiting):
            needed = [self.over.get(o.stem, self.needed.get(o.stem)) for o in job.needs]
            lost = next((o for o in needed if o is not None and not o.there), None)
            if lost is not None:
                self.waiting.remove(job)
                self.end(Outcome(job, "left out", error=f"it needs {lost.job.name}, which failed"))
            elif None not in needed:
                return job
        return None

    def begin(self, job: Job) -> None:
        """Take a job out of those that wait."""
        self.waiting.remove(job)
        self.begun[job.stem] = self.begun.get(job.stem, 0) + 1
        self._tell(Outcome(job, "begun"))

    def end(self, outcome: Outcome) -> None:
        """Write down how a job ended."""
        self.over[outcome.job.stem] = outcome
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
            self.waiting.append(job)
        else:
            self.end(Outcome(job, "failed", error="its process was killed (out of memory?)"))

    def outcomes(self) -> list[Outcome]:
        """Return how each job ended, in the order given."""
        return [self.over[stem] for stem in self.jobs]
