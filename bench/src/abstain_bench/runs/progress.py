"""Progress of a benchmark, read from the files of its folder without torch."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from abstain._foundation.input_files import last_line
from abstain.errors import FileFormatError, InputError
from abstain_bench.runs.costs import Cost, read_costs
from abstain_bench.runs.jobs import Job, JobProgress, Outcome, read_job_progress
from abstain_bench.runs.jobs.record import Receipt, read_receipts
from abstain_bench.runs.selection import SelectedSetting, select_best_settings
from abstain_bench.runs.specification import Specification, from_run
from abstain_bench.runs.specification.jobs import stage_of
from abstain_bench.runs.store import JOBS, MANIFEST, Store
from abstain_bench.runs.tasks import TASKS


@dataclass(frozen=True)
class ArmProgress:
    """Progress of one arm.

    Attributes
    ----------
    arm : str
        Name of the arm; "ensemble" for the ensembles.
    n_networks, n_trained, n_validated, n_tested : int
        Number of planned networks, and of those that are trained, validated and tested. For
        ensembles, `n_trained` counts those whose networks are all validated.
    n_to_test : int
        Number of networks that must be tested, according to the settings selected so far.
    """

    arm: str
    n_networks: int
    n_trained: int
    n_validated: int
    n_tested: int
    n_to_test: int


@dataclass(frozen=True)
class Failure:
    """A failed job, with its log and the last line of it."""

    name: str
    log: Path
    error: str


@dataclass(frozen=True, eq=False)
class Progress:
    """Progress of a benchmark.

    Attributes
    ----------
    store : Store
        The folder of runs.
    arms : tuple of ArmProgress
        Progress by arm in the order of the configuration, ensembles last.
    imported : mapping from str to int
        Number of imported runs by arm.
    selected : tuple of SelectedSetting
        Selected settings by metric and method, from the networks validated so far.
    failures : tuple of Failure
        Jobs that failed and were not done since.
    unfinished_trainings : tuple of str
        Trainings with a checkpoint.
    running_jobs : tuple of JobProgress
        Progress of the running jobs.
    seconds : float
        Total duration of the finished jobs.
    size : int
        Bytes of the folder.
    costs : tuple of Cost
        Duration of the parts of each stage, for the finished jobs.
    """

    store: Store
    arms: tuple[ArmProgress, ...]
    imported: Mapping[str, int] = field(default_factory=dict)
    selected: tuple[SelectedSetting, ...] = ()
    failures: tuple[Failure, ...] = ()
    unfinished_trainings: tuple[str, ...] = ()
    running_jobs: tuple[JobProgress, ...] = ()
    seconds: float = 0.0
    size: int = 0
    costs: tuple[Cost, ...] = ()

    @property
    def is_validated(self) -> bool:
        """Whether every network is validated, so that the selection is final."""
        return all(arm.n_validated == arm.n_networks for arm in self.arms)

    @property
    def is_finished(self) -> bool:
        """Whether no job remains."""
        return self.is_validated and all(arm.n_tested == arm.n_to_test for arm in self.arms)


def read_progress(folder: str | Path) -> Progress:
    """Read the progress of a benchmark from its folder.

    Examples
    --------
    >>> from abstain_bench.runs.progress import read_progress
    >>> read_progress("runs").over  # doctest: +SKIP
    True
    """
    store = Store.read(folder)
    jobs = store.folder / JOBS
    receipts = read_receipts(jobs)
    spec = specification_of(store, receipts)
    outcome_of = _OutcomeLookup(receipts)
    imported = [stored for stored in store.stored_runs if "imported" in stored.run.facts]
    runs = imported if spec is None else [*imported, *spec.stored_runs(outcome_of)]
    selected = select_best_settings(runs, store.config["metrics"]) if runs else ()
    return Progress(
        store,
        () if spec is None else tuple(_arm_progress(spec, outcome_of, selected)),
        dict(Counter(stored.run.arm for stored in imported)),
        selected,
        tuple(
            Failure(log.stem.rpartition("-")[0], log, last_line(log))
            for log in sorted(jobs.glob("*.log"))
            if log.stem not in receipts
        ),
        tuple(sorted(path.stem.rpartition("-")[0] for path in jobs.glob("*.part"))),
        tuple(read_job_progress(jobs)),
        sum(receipt.seconds for receipt in receipts.values()),
        _folder_size(store.folder),
        read_costs(store.folder, receipts.values()),
    )


def specification_of(
    store: Store, receipts: Mapping[str, Receipt] | None = None
) -> Specification | None:
    """Return the specification of the run of a folder; None if all its runs were imported.

    On the same machine, its jobs are equal to those of the run itself.

    Examples
    --------
    >>> from abstain_bench.runs.progress import specification_of
    >>> from abstain_bench.runs.store import Store
    >>> specification_of(Store.read("runs")).jobs_before_selection()  # doctest: +SKIP
    """
    if "arms" not in store.config:
        return None
    if receipts is None:
        receipts = read_receipts(store.folder / JOBS)
    try:
        spec = Specification(
            from_run(store.config),
            tuple(exposure.key for exposure in store.exposures),
            **{"variation": {}, **_job_inputs(store, receipts)},
        )
        # Planning the jobs finds the remaining errors.
        spec.jobs_before_selection()
    except (AttributeError, InputError, KeyError, TypeError) as error:
        reason = error if isinstance(error, InputError) else repr(error)
        raise FileFormatError(
            f"the configuration in {str(store.folder / MANIFEST)!r} is damaged: {reason}"
        ) from None
    return spec


def _job_inputs(store: Store, receipts: Mapping[str, Receipt]) -> dict[str, Any]:
    """Return the inputs of jobs besides the configuration, as fields of `Specification`."""
    task: str = store.config["task"]
    inputs: dict[str, Any] = {}
    # Manifests of earlier versions lack some of them; the newest job has them.
    for source in (store.facts, *(receipt.spec for receipt in receipts.values())):
        if source.get("task", task) != task:
            continue
        for key in source.keys() & _INPUT_FIELDS.keys():
            inputs.setdefault(_INPUT_FIELDS[key], source[key])
    return inputs if task not in TASKS else {**inputs, "variation": None}


#: Fields of `Specification` besides the configuration, by their names in manifests and jobs.
_INPUT_FIELDS: Final = {
    "device": "device",
    "pictures": "images_digest",
    "files": "files_digest",
    "weights": "weights_digest",
    "variation": "variation",
}


class _OutcomeLookup:
    """Looks up the outcomes of jobs in their receipts and in those of the jobs they need."""

    def __init__(self, receipts: Mapping[str, Receipt]) -> None:
        self.receipts = receipts
        self.cache: dict[str, Outcome | None] = {}

    def __call__(self, job: Job) -> Outcome | None:
        """Return the outcome of a job, None if it is not done."""
        if job.stem not in self.cache:
            self.cache[job.stem] = self._look_up(job)
        return self.cache[job.stem]

    def _look_up(self, job: Job) -> Outcome | None:
        receipt = self.receipts.get(job.stem)
        if receipt is None or receipt.key != job.key:
            return None
        # The receipt may have been changed. JSON turns tuples into lists.
        if receipt.spec != json.loads(json.dumps(job.spec)):
            return None
        # Trained networks do not need the files of the job that they started from.
        if stage_of(job) != "train" and None in map(self, job.needs):
            return None
        return Outcome(job, "kept", receipt.seconds, facts=receipt.facts)


def _arm_progress(
    spec: Specification, outcome_of: _OutcomeLookup, selected: Sequence[SelectedSetting]
) -> Iterator[ArmProgress]:
    test_jobs = spec.test_jobs((setting.arm, setting.setting) for setting in selected)
    test_keys = {job.key for job in test_jobs}
    # The runs of an ensemble for all seeds share their jobs.
    ensembles = {ensemble.validate.key: ensemble for ensemble in spec.ensembles}
    runs = [*spec.networks, *ensembles.values()]
    for arm in dict.fromkeys(planned.run.arm for planned in runs):
        runs_of_arm = [planned for planned in runs if planned.run.arm == arm]
        to_test = [planned for planned in runs_of_arm if planned.test.key in test_keys]
        yield ArmProgress(
            arm,
            len(runs_of_arm),
            sum(None not in map(outcome_of, planned.validate.needs) for planned in runs_of_arm),
            sum(outcome_of(planned.validate) is not None for planned in runs_of_arm),
            sum(outcome_of(planned.test) is not None for planned in to_test),
            len(to_test),
        )


def _folder_size(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        # A running benchmark may move its files.
        with suppress(OSError):
            size += path.stat().st_size if path.is_file() else 0
    return size
