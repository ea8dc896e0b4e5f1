"""Run the jobs of a study, which can be resumed, and compute its tables."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from abstain._foundation.files import make_folder, write_atomically
from abstain_bench.runs.jobs import Job, OnOutcome, run_jobs
from abstain_bench.runs.store import JOBS

#: A mapping from table names to rows. The rows contain only JSON values.
Tables = dict[str, list[dict[str, Any]]]

#: Version of the computation, which must be increased if a job returns a different result for the
#: same specification.
_VERSION: Final = 1

#: File name extension of the result of a job.
_EXTENSION: Final = ".rows"


@dataclass(frozen=True)
class StudyJobs:
    """Runs the jobs of a study and stores their results.

    Attributes
    ----------
    study : str
        Name of the study.
    spec : mapping
        JSON values that determine the results of all jobs, such as parameters, the seed and the
        digest of the data.
    out : Path or None
        Folder of the study, in which the results of jobs are stored. If None, a temporary folder is
        used.
    on_outcome : callable or None
        Function that is called at the beginning and at the end of each job.
    """

    study: str
    spec: Mapping[str, Any]
    out: Path | None = None
    on_outcome: OnOutcome | None = None

    def run(
        self, names: Sequence[str], compute: Callable[[str], Mapping[str, Any]]
    ) -> list[Tables]:
        """Return the tables of each job.

        `compute(name)` computes the tables of a job without a stored result. The results are stored
        after each job, so an interruption loses only the current job. If jobs fail, an error is
        raised after all other jobs are finished.
        """
        if self.out is None:
            with TemporaryDirectory() as temporary:
                return self._run_in(Path(temporary), names, compute)
        return self._run_in(self.out, names, compute)

    def _run_in(
        self, out: Path, names: Sequence[str], compute: Callable[[str], Mapping[str, Any]]
    ) -> list[Tables]:
        """Run the jobs in a folder, and return the tables that they computed."""
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
        # These names are part of the keys of stored jobs. Another name would repeat all jobs.
        identity = {"study": self.study, "piece": name, "version": _VERSION}
        return Job(f"{self.study}-{name}", {**self.spec, **identity})
