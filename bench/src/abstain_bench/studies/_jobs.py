"""Compute the tables of a study in resumable jobs."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from abstain._foundation.files import make_folder, write_atomically
from abstain_bench.runs.jobs import Job, OnOutcome, run_jobs
from abstain_bench.runs.store import JOBS

#: Tables by name. The rows contain JSON values only.
Tables = dict[str, list[dict[str, Any]]]

#: Increase it if the result of a job changes for the same specification.
_VERSION: Final = 1

#: File name extension of the result of a job.
_EXTENSION: Final = ".rows"


@dataclass(frozen=True)
class StudyJobs:
    """The jobs of one run of a study.

    Attributes
    ----------
    study : str
        Name of the study.
    spec : mapping
        JSON values that determine the results of all jobs: parameters, seed, digest of the data.
    out : Path or None
        Folder of the study, in which results are stored for the next run; None to store nothing.
    on_outcome : callable or None
        Called when a job begins and when it ends.
    """

    study: str
    spec: Mapping[str, Any]
    out: Path | None = None
    on_outcome: OnOutcome | None = None

    def run(
        self, names: Sequence[str], compute: Callable[[str], Mapping[str, Any]]
    ) -> list[Tables]:
        """Return the tables of each job: stored ones, or else the result of `compute(name)`.

        Each result is written as soon as it is available, so an interrupted run loses only the job
        in progress. Stored and new results are read from files in the same way. If a job raises an
        error, the error is raised after the other jobs.
        """
        if self.out is None:
            with TemporaryDirectory() as temporary:
                return self._run_in(Path(temporary), names, compute)
        return self._run_in(self.out, names, compute)

    def _run_in(
        self, out: Path, names: Sequence[str], compute: Callable[[str], Mapping[str, Any]]
    ) -> list[Tables]:
        jobs = [self._job(name) for name in names]
        name_by_stem = {job.stem: name for job, name in zip(jobs, names, strict=True)}
        errors: list[Exception] = []

        def work(job: Job, folder: Path) -> dict[str, Any]:
            try:
                text = json.dumps(compute(name_by_stem[job.stem]))
            except Exception as error:
                errors.append(error)
                raise
            write_atomically(job.path(folder, _EXTENSION), text.encode())
            return {}

        folder = out / JOBS
        make_folder(folder)
        run_jobs(jobs, work, folder, on_outcome=self.on_outcome)
        if errors:
            raise errors[0]
        return [json.loads(job.path(folder, _EXTENSION).read_bytes()) for job in jobs]

    def _job(self, name: str) -> Job:
        # The names of these keys are part of the key of stored jobs.
        identity = {"study": self.study, "piece": name, "version": _VERSION}
        return Job(f"{self.study}-{name}", {**self.spec, **identity})
