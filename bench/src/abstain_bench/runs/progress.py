"""Read the progress of a benchmark from the files in its folder; torch is not required."""

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
        Name of the arm, or "ensemble" for the ensembles.
    n_networks, n_trained, n_validated, n_tested : int
        Numbers of planned, trained, validated and tested networks. An ensemble is counted as
        trained if all its networks are validated.
    n_to_test : int
        Number of networks to test, which have a setting that is selected so far.
    """

    arm: str
    n_networks: int
    n_trained: int
    n_validated: int
    n_tested: int
    n_to_test: int


@dataclass(frozen=True)
class Failure:
    """A failed job with the path and the last line of its log."""

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
        Progress of each arm in the order of the configuration. The ensembles are last.
    imported : mapping from str to int
        Number of imported runs by arm.
    selected : tuple of SelectedSetting
        Selected setting for each metric and method, from the networks that are validated so far.
    failures : tuple of Failure
        Jobs that failed and have not succeeded since.
    unfinished_trainings : tuple of str
        Names of the training jobs with a checkpoint.
    running_jobs : tuple of JobProgress
        Progress of the running jobs.
    seconds : float
        Total duration of the finished jobs.
    size : int
        Size of the folder in bytes.
    costs : tuple of Cost
        Durations of the parts of each stage over the finished jobs.
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
        """Whether all networks are validated, so that the selected settings are final."""
        return all(arm.n_validated == arm.n_networks for arm in self.arms)

    @property
    def is_finished(self) -> bool:
        """Whether no job remains."""
        return self.is_validated and all(arm.n_tested == arm.n_to_test for arm in self.arms)


def read_progress(folder: str | Path) -> Progress:
    """Read the progress of a benchmark from the files in its folder.

    Examples
    --------
    >>> from abstain_bench.runs.progress import read_progress
    >>> read_progress("runs").is_finished  # doctest: +SKIP
    True
    """
    store = Store.read(folder)
    jobs = store.folder / JOBS
    receipts = read_receipts(jobs)
    spec = specification_of(store, receipts)
    outcome_of = _OutcomeLookup(receipts)
    imported = [stored for stored in store.stored_runs if "imported" in stored.run.facts]
    imported_by_arm = Counter(stored.run.arm for stored in imported)
    runs = list(imported)
    if spec is not None:
        runs += spec.stored_runs(outcome_of)
    selected = select_best_settings(runs, store.config["metrics"]) if runs else ()
    failures = [
        Failure(_job_name(log), log, last_line(log))
        for log in sorted(jobs.glob("*.log"))
        if log.stem not in receipts
    ]
    return Progress(
        store=store,
        arms=() if spec is None else tuple(_arm_progress(spec, outcome_of, selected)),
        imported=dict(imported_by_arm),
        selected=selected,
        failures=tuple(failures),
        unfinished_trainings=tuple(sorted(map(_job_name, jobs.glob("*.part")))),
        running_jobs=tuple(read_job_progress(jobs)),
        seconds=sum(receipt.seconds for receipt in receipts.values()),
        size=_folder_size(store.folder),
        costs=read_costs(store.folder, receipts.values()),
    )


def _job_name(path: Path) -> str:
    """Return the name of a job, given the path of one of its files."""
    name, _, _ = path.stem.rpartition("-")
    return name


def specification_of(
    store: Store, receipts: Mapping[str, Receipt] | None = None
) -> Specification | None:
    """Return the specification of a benchmark, or None if all its runs were imported.

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
        # Planning the jobs raises an error if a value in the configuration is invalid.
        spec.jobs_before_selection()
    except (AttributeError, InputError, KeyError, TypeError) as error:
        reason = error if isinstance(error, InputError) else repr(error)
        raise FileFormatError(
            f"the configuration in {str(store.folder / MANIFEST)!r} is damaged: {reason}"
        ) from None
    return spec


def _job_inputs(store: Store, receipts: Mapping[str, Receipt]) -> dict[str, Any]:
    """Return the fields of `Specification` other than the configuration."""
    task: str = store.config["task"]
    inputs: dict[str, Any] = {}
    # A manifest of an earlier version lacks some fields, which the receipts contain.
    for source in (store.facts, *(receipt.spec for receipt in receipts.values())):
        if source.get("task", task) != task:
            continue
        for key in source.keys() & _INPUT_FIELDS.keys():
            inputs.setdefault(_INPUT_FIELDS[key], source[key])
    if task in TASKS:
        # The variation of the task is used.
        inputs["variation"] = None
    return inputs


#: Fields of `Specification` that are not part of the configuration, by their names in manifests and
#: jobs.
_INPUT_FIELDS: Final = {
    "device": "device",
    "pictures": "images_digest",
    "files": "files_digest",
    "weights": "weights_digest",
    "variation": "variation",
}


class _OutcomeLookup:
    """Looks up the outcomes of jobs in their receipts."""

    def __init__(self, receipts: Mapping[str, Receipt]) -> None:
        self.receipts = receipts
        self.cache: dict[str, Outcome | None] = {}

    def __call__(self, job: Job) -> Outcome | None:
        """Return the outcome of a job, or None if the job is not finished."""
        if job.stem not in self.cache:
            self.cache[job.stem] = self._look_up(job)
        return self.cache[job.stem]

    def _look_up(self, job: Job) -> Outcome | None:
        """Return the outcome of a job if its receipt and those of required jobs are valid."""
        receipt = self.receipts.get(job.stem)
        if receipt is None or receipt.key != job.key:
            return None
        # A user may have changed the receipt. The conversion to JSON turns tuples into lists.
        if receipt.spec != json.loads(json.dumps(job.spec)):
            return None
        # A trained network does not need the files of the job that it started from.
        needs_files = stage_of(job) != "train"
        if needs_files and any(self(needed) is None for needed in job.needs):
            return None
        return Outcome(job, "kept", receipt.seconds, facts=receipt.facts)


def _arm_progress(
    spec: Specification, outcome_of: _OutcomeLookup, selected: Sequence[SelectedSetting]
) -> Iterator[ArmProgress]:
    """Yield the progress of each arm."""
    test_jobs = spec.test_jobs((setting.arm, setting.setting) for setting in selected)
    test_keys = {job.key for job in test_jobs}
    # The runs of an ensemble, one for each seed, share their jobs and count once.
    ensembles = {ensemble.validate.key: ensemble for ensemble in spec.ensembles}
    all_runs = [*spec.networks, *ensembles.values()]

    def is_done(job: Job) -> bool:
        return outcome_of(job) is not None

    for arm in dict.fromkeys(planned.run.arm for planned in all_runs):
        runs = [planned for planned in all_runs if planned.run.arm == arm]
        runs_to_test = [planned for planned in runs if planned.test.key in test_keys]
        yield ArmProgress(
            arm=arm,
            n_networks=len(runs),
            n_trained=sum(all(map(is_done, planned.validate.needs)) for planned in runs),
            n_validated=sum(is_done(planned.validate) for planned in runs),
            n_tested=sum(is_done(planned.test) for planned in runs_to_test),
            n_to_test=len(runs_to_test),
        )


def _folder_size(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        # A running benchmark may move or delete a file.
        with suppress(OSError):
            size += path.stat().st_size if path.is_file() else 0
    return size
