"""How far a benchmark is, from the files of its folder; needs no torch, and no run to be over."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from abstain._foundation.input_files import last_line
from abstain.errors import FileFormatError, InputError
from abstain_bench.runs.costs import Cost, costs_of
from abstain_bench.runs.jobs import Job, JobProgress, Outcome, read_job_progress
from abstain_bench.runs.jobs.record import Receipt, read_receipts
from abstain_bench.runs.selection import Chosen, choose
from abstain_bench.runs.specification import Specification, from_run
from abstain_bench.runs.specification.jobs import stage_of
from abstain_bench.runs.store import JOBS, MANIFEST, Store
from abstain_bench.runs.tasks import TASKS

__all__ = ["ArmProgress", "Failure", "Progress", "progress_of", "specification_of"]


@dataclass(frozen=True)
class ArmProgress:
    """What is done of one arm.

    Attributes
    ----------
    arm : str
        Its name; "ensemble" for what the networks of all seeds make together.
    networks, trained, validated, tested : int
        How many there are to be, and how many of them are that far. Of ensembles, which nobody
        trains, `trained` says how many have all their networks validated.
    to_test : int
        How many are tested, as far as settings can be chosen now.
    """

    arm: str
    networks: int
    trained: int
    validated: int
    tested: int
    to_test: int


@dataclass(frozen=True)
class Failure:
    """A job that failed."""

    name: str
    log: Path
    error: str


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a benchmark is.

    Attributes
    ----------
    store : Store
        The folder.
    arms : tuple of ArmProgress
        In the order of the configuration, ensembles last.
    imported : mapping from str to int
        By arm, how many runs were imported.
    chosen : tuple of Chosen
        By metric and method, from the networks that are validated so far.
    failed : tuple of Failure
        Jobs that failed and were not done since.
    begun : tuple of str
        Trainings of which a part is kept.
    running : tuple of Step
        How far the jobs are that go on.
    seconds : float
        That all jobs that are done took.
    size : int
        Bytes of the folder.
    costs : tuple of Cost
        What each stage took, as far as it is done.
    """

    store: Store
    arms: tuple[ArmProgress, ...]
    imported: Mapping[str, int] = field(default_factory=dict)
    chosen: tuple[Chosen, ...] = ()
    failed: tuple[Failure, ...] = ()
    begun: tuple[str, ...] = ()
    running: tuple[JobProgress, ...] = ()
    seconds: float = 0.0
    size: int = 0
    costs: tuple[Cost, ...] = ()

    @property
    def validated(self) -> bool:
        """Whether every network is validated, so that choices are final."""
        return all(arm.validated == arm.networks for arm in self.arms)

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self.validated and all(arm.tested == arm.to_test for arm in self.arms)


def progress_of(folder: str | Path) -> Progress:
    """Say how far a benchmark is.

    Examples
    --------
    >>> from abstain_bench.runs.progress import progress_of
    >>> progress_of("runs").over  # doctest: +SKIP
    True
    """
    store = Store.read(folder)
    jobs = store.folder / JOBS
    receipts = read_receipts(jobs)
    spec = specification_of(store, receipts)
    ended = _Ended(receipts)
    # Runs that were imported are done.
    kept = [one for one in store.stored_runs if "imported" in one.run.facts]
    imported = Counter(one.run.arm for one in kept)
    kept += [] if spec is None else spec.stored_runs(ended)
    chosen = choose(kept, store.config["metrics"]) if kept else ()
    return Progress(
        store,
        () if spec is None else tuple(_arms(spec, ended, chosen)),
        dict(imported),
        chosen,
        tuple(_failures(jobs, receipts)),
        tuple(sorted(path.stem.rpartition("-")[0] for path in jobs.glob("*.part"))),
        tuple(read_job_progress(jobs)),
        sum(one.seconds for one in receipts.values()),
        _size(store.folder),
        costs_of(store.folder, receipts.values()),
    )


def specification_of(
    store: Store, receipts: Mapping[str, Receipt] | None = None
) -> Specification | None:
    """Return what the run of a folder had to do, to hold what is done against.

    Its jobs are those that the run itself makes on the same machine; None where nothing was run,
    as everything was imported.

    Examples
    --------
    >>> from abstain_bench.runs.progress import specification_of
    >>> from abstain_bench.runs.store import Store
    >>> specification_of(Store.read("runs")).before_choice()  # doctest: +SKIP
    """
    if "arms" not in store.config:
        return None
    known = read_receipts(store.folder / JOBS) if receipts is None else receipts
    try:
        spec = Specification(
            from_run(store.config),
            tuple(exposure.key for exposure in store.exposures),
            **{"variation": {}, **_beside(store, known)},
        )
        # Jobs are made when they are first asked for, and not all that is wrong is seen before.
        spec.jobs_before_selection()
    except (AttributeError, InputError, KeyError, TypeError) as error:
        said = error if isinstance(error, InputError) else repr(error)
        raise FileFormatError(
            f"the configuration in {str(store.folder / MANIFEST)!r} is damaged: {said}"
        ) from None
    return spec


def _beside(store: Store, receipts: Mapping[str, Receipt]) -> dict[str, Any]:
    """Return what jobs depend on beside the configuration."""
    task: str = store.config["task"]
    inputs: dict[str, Any] = {}
    # The newest first: not every manifest says all of it.
    for one in (store.facts, *(receipt.spec for receipt in receipts.values())):
        if one.get("task", task) == task:
            inputs = {
                field: one[key] for key, field in _INPUT_FIELDS.items() if key in one
            } | inputs
    return inputs if task not in TASKS else {**inputs, "variation": None}


#: Fields of `Specification` besides the configuration, by their names in manifests and jobs.
_INPUT_FIELDS: Final = {
    "device": "device",
    "pictures": "images_digest",
    "files": "files_digest",
    "weights": "weights_digest",
    "variation": "variation",
}


class _Ended:
    """How each job ended that is done, by its receipt and by those of the jobs it needs."""

    def __init__(self, receipts: Mapping[str, Receipt]) -> None:
        self.receipts = receipts
        self.known: dict[str, Outcome | None] = {}

    def __call__(self, job: Job) -> Outcome | None:
        if job.stem not in self.known:
            self.known[job.stem] = self._looked_up(job)
        return self.known[job.stem]

    def _looked_up(self, job: Job) -> Outcome | None:
        found = self.receipts.get(job.stem)
        if found is None or found.key != job.key:
            return None
        # Somebody may have changed it; as it was read, a tuple is a list.
        if found.spec != json.loads(json.dumps(job.spec)):
            return None
        # What a training started from is in its own files.
        if stage_of(job) != "train" and None in map(self, job.needs):
            return None
        return Outcome(job, "kept", found.seconds, facts=found.facts)


def _arms(spec: Specification, ended: _Ended, chosen: Sequence[Chosen]) -> Iterator[ArmProgress]:
    wanted = {job.key for job in spec.test_jobs((one.arm, one.setting) for one in chosen)}
    # The networks of all seeds stand in each.
    all_of = [*spec.networks, *{one.validate.key: one for one in spec.ensembles}.values()]
    for arm in dict.fromkeys(one.run.arm for one in all_of):
        own = [one for one in all_of if one.run.arm == arm]
        to_test = [one for one in own if one.test.key in wanted]
        yield ArmProgress(
            arm,
            len(own),
            # An ensemble is as far as all its networks.
            sum(None not in map(ended, one.validate.needs) for one in own),
            sum(ended(one.validate) is not None for one in own),
            sum(ended(one.test) is not None for one in to_test),
            len(to_test),
        )


def _failures(jobs: Path, receipts: Mapping[str, Receipt]) -> Iterator[Failure]:
    for log in sorted(jobs.glob("*.log")):
        if log.stem not in receipts:
            yield Failure(log.stem.rpartition("-")[0], log, last_line(log))


def _size(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        # A run that goes on moves its files.
        with suppress(OSError):
            size += path.stat().st_size if path.is_file() else 0
    return size
