"""`Pieces`: what a study computes in pieces, each kept in its folder and found again."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from abstain._foundation.files import make_folder, write_atomically
from abstain_bench.runs.jobs import Job, OnOutcome, run_jobs
from abstain_bench.runs.store import JOBS

#: Tables by name, of rows as JSON has them.
Tables = dict[str, list[dict[str, Any]]]

#: Raised where a piece changes for the same specification.
_VERSION: Final = 1

#: The ending of the file of a piece.
_ROWS: Final = ".rows"


@dataclass(frozen=True)
class Pieces:
    """The pieces of one run of a study.

    Attributes
    ----------
    study : str
        The name of the study.
    spec : mapping
        All that every piece depends on, as JSON values: parameters, the seed, a digest of data.
    out : Path or None
        The folder of the study, where pieces are kept for the next run; None keeps none.
    on_outcome : callable or None
        Told of each piece when it begins and when it is there.
    """

    study: str
    spec: Mapping[str, Any]
    out: Path | None = None
    on_outcome: OnOutcome | None = None

    def of(self, names: Sequence[str], make: Callable[[str], Mapping[str, Any]]) -> list[Tables]:
        """Return the tables of pieces by their names: those kept, and the others as made now.

        A piece is written whole or not at all as soon as it is there, so that a run that is
        stopped loses the one in progress. What is kept and what is new are read from a file alike.
        An error of a piece is raised when the others are done.
        """
        if self.out is None:
            with TemporaryDirectory() as passing:
                return self._of(names, make, Path(passing))
        return self._of(names, make, self.out)

    def _of(
        self, names: Sequence[str], make: Callable[[str], Mapping[str, Any]], place: Path
    ) -> list[Tables]:
        failed: list[Exception] = []
        asked = {self._job(name).stem: name for name in names}

        def work(job: Job, folder: Path) -> dict[str, Any]:
            try:
                text = json.dumps(make(asked[job.stem]))
            except Exception as error:
                failed.append(error)
                raise
            write_atomically(job.path(folder, _ROWS), text.encode())
            return {}

        folder = place / JOBS
        make_folder(folder)
        jobs = [self._job(name) for name in names]
        run_jobs(jobs, work, folder, on_outcome=self.on_outcome)
        if failed:
            raise failed[0]
        return [json.loads(job.path(folder, _ROWS).read_bytes()) for job in jobs]

    def _job(self, name: str) -> Job:
        own = {"study": self.study, "piece": name, "version": _VERSION}
        return Job(f"{self.study}-{name}", {**self.spec, **own})
