"""`run_benchmark` trains networks, selects settings and tests networks with resumable jobs."""

import hashlib
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from abstain._foundation import checks
from abstain._foundation.files import make_folder
from abstain.errors import InputError
from abstain_bench.data import Exposure
from abstain_bench.networks import MODELS
from abstain_bench.runs.jobs import Job, OnOutcome, Outcome, WorkerPool, run_jobs
from abstain_bench.runs.jobs.engine import check_devices_available, device_kind, parse_devices
from abstain_bench.runs.jobs.record import read_receipts, stored_outcome
from abstain_bench.runs.loaded_task import LoadedTask, load_task, select_exposures
from abstain_bench.runs.selection import select_best_settings
from abstain_bench.runs.specification import Config, Specification, to_plain
from abstain_bench.runs.specification.arms import reward_notes
from abstain_bench.runs.specification.config import check_config
from abstain_bench.runs.specification.jobs import stage_of
from abstain_bench.runs.store import (
    IMPORTED,
    JOBS,
    MANIFEST,
    ExposureFacts,
    Store,
    StoredRun,
    is_manifest_unreadable,
    move_damaged_manifest,
    write_manifest,
)
from abstain_bench.runs.tasks import TASKS
from abstain_bench.runs.work import Worker

#: Packages whose versions are recorded.
_PACKAGES = ("abstain", "numpy", "scipy", "scikit-learn", "torch")


def run_benchmark(
    config: Config,
    out: str | Path,
    *,
    device: str = "cpu",
    jobs: int = 1,
    engine: str = "processes",
    address: str = "",
    on_outcome: OnOutcome | None = None,
) -> tuple[Store, list[Outcome]]:
    """Train networks, select settings on validation data, and test the selected networks.

    The confidence scores of all methods are stored for every image.
    `abstain_bench.results.results_of` makes tables from them.

    Parameters
    ----------
    config : Config
        Configuration from `abstain_bench.runs.specification.default_config` or `read_config`.
    out : str or Path
        Folder for all files. If the function is called again with the same configuration and
        folder, it resumes the benchmark.
    device : str, default="cpu"
        Devices for torch, such as "cpu", "cuda" or "cuda:0,cuda:1".
    jobs : int, default=1
        Number of parallel jobs. Each job uses one process and one thread. If `jobs` is above 1, a
        script must call the function below ``if __name__ == "__main__":``.
    engine : {"processes", "dask"}, default="processes"
        Executor of the jobs.
    address : str, optional
        Address of a running dask scheduler. The workers of the cluster must have access to the
        folder `out`.
    on_outcome : callable, optional
        Callback that is called when a job starts, with the status "begun", and when it ends.

    Returns
    -------
    store : Store
        The contents of the folder.
    outcomes : list of Outcome
        The outcomes of the jobs. For each failed job, the folder contains a ``.log`` file; jobs
        that depend on it are skipped. If the function is called again with the same arguments, it
        repeats the failed jobs.

    Raises
    ------
    InputError
        If the device does not exist or if an argument is out of range.
    MissingInputError
        If files of the data set are missing.

    Notes
    -----
    For each method and metric, the setting with the best mean on the validation data over the seeds
    is selected. Only the selected settings are tested, so the test data cannot influence the
    selection. Logits are stored in float32, and scores are computed in float64.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config
    >>> from abstain_bench.runs.run import run_benchmark
    >>> store, _ = run_benchmark(default_config("glyphs", seeds=5), "runs")  # doctest: +SKIP
    """
    check_config(config)
    processes = checks.positive_int(jobs, "jobs")
    devices = parse_devices(device)
    if not address:
        # With a dask scheduler, only the workers need the devices.
        check_devices_available(devices)
    folder = Path(out)
    make_folder(folder / JOBS)
    # The jobs use the same arguments, so a process that also runs jobs loads the task once.
    task = load_task(config.task, _absolute_path(config.folder), config.data, config.variation)
    # Raise errors of the model before the first training.
    weights = _check_model(config, task)
    notes = _replace_damaged_manifest(folder, config.task) if is_manifest_unreadable(folder) else []
    exposures = select_exposures(task.task_images, config.corruptions, config.severities)
    keys = tuple(exposure.key for exposure in exposures)
    spec = Specification(config, keys, device_kind(devices), weights_digest=_hash_file(weights))
    if TASKS[config.task].needs_folder:
        files_digest = _hash_listing(config.folder, folder)
        spec = replace(spec, images_digest=task.digest(), files_digest=files_digest)
    benchmark = _RunningBenchmark(spec, folder, task, exposures, notes)
    run = partial(
        run_jobs,
        work=Worker(_absolute_path(config.folder), devices, weights=weights),
        folder=folder / JOBS,
        processes=processes,
        engine=engine,
        address=address,
        on_outcome=partial(benchmark.on_outcome, callback=on_outcome),
    )
    benchmark.add_outcomes([])
    # Both calls use the same processes, so that each process loads the task once.
    with WorkerPool(processes) as pool:
        benchmark.add_outcomes(run(spec.jobs_before_selection(), pool=pool))
        benchmark.add_outcomes(run(benchmark.test_jobs(), pool=pool))
    return Store.read(folder), benchmark.outcomes


@dataclass
class _RunningBenchmark:
    """A running benchmark, which keeps the manifest of its folder up to date."""

    spec: Specification
    folder: Path
    task: LoadedTask
    exposures: tuple[Exposure, ...]
    notes: list[str]
    outcomes: list[Outcome] = field(default_factory=list)
    tested: dict[str, Outcome] = field(default_factory=dict)

    def on_outcome(self, outcome: Outcome, *counts: int, callback: OnOutcome | None) -> None:
        """Add a tested network to the manifest immediately, and call the callback."""
        if outcome.is_done and stage_of(outcome.job) == "test":
            self.tested[outcome.job.key] = outcome
            # The manifest already contains the networks that an earlier call tested.
            if outcome.status == "done":
                self._write_manifest()
        if callback is not None:
            callback(outcome, *counts)

    def stored_runs(self) -> list[StoredRun]:
        """Return the validated networks of this and earlier calls, with their file names."""
        done = dict(self.tested)
        for outcome in self.outcomes:
            if outcome.is_done:
                done[outcome.job.key] = outcome

        def outcome_of(job: Job) -> Outcome | None:
            return done.get(job.key) or stored_outcome(job, self.folder / JOBS)

        return self.spec.stored_runs(outcome_of)

    def test_jobs(self) -> list[Job]:
        """Return the test jobs of the selected settings, without networks whose jobs failed."""
        runs = self.stored_runs()
        if not any(stored.validation_values for stored in runs):
            return []
        selected = select_best_settings(runs, self.spec.config.metrics)
        failed = {outcome.job.key for outcome in self.outcomes if not outcome.is_done}
        untestable = {
            network.test.key for network in self.spec.networks if network.validate.key in failed
        }
        jobs = self.spec.test_jobs((setting.arm, setting.setting) for setting in selected)
        return [job for job in jobs if job.key not in untestable]

    def add_outcomes(self, outcomes: Iterable[Outcome]) -> None:
        """Record the outcomes of jobs, and update the manifest."""
        self.outcomes += outcomes
        self._write_manifest()

    def _write_manifest(self) -> None:
        """Write the manifest, which lists the trained and imported runs."""
        write_manifest(
            self.folder,
            config=to_plain(self.spec.config),
            facts=self._facts(),
            classes=self.task.task_images.train.classes,
            exposures=[_exposure_facts(exposure) for exposure in self.exposures],
            stored_runs=[*self.stored_runs(), *_imported_runs(self.folder)],
        )

    def _facts(self) -> dict[str, Any]:
        return {
            "versions": {name: _installed_version(name) for name in _PACKAGES},
            "python": platform.python_version(),
            # Inputs of jobs that are not part of the configuration.
            "device": self.spec.device,
            "pictures": self.spec.images_digest,
            "files": self.spec.files_digest,
            "weights": self.spec.weights_digest,
            "precision": self.spec.config.precision,
            "dtype": "float32 logits, float64 scores",
            "train": self.task.task_images.train.n,
            "validation": self.task.task_images.validation.n,
            "seconds": round(sum(outcome.seconds for outcome in self.outcomes), 1),
            "failed": [outcome.job.name for outcome in self.outcomes if not outcome.is_done],
            "notes": [
                *self.task.task_images.notes,
                *reward_notes(self.spec.config.arms, len(self.task.task_images.train.classes)),
                *self.notes,
            ],
        }


def _exposure_facts(exposure: Exposure) -> ExposureFacts:
    """Return all fields of an exposure except its images."""
    return ExposureFacts(*(getattr(exposure, f.name) for f in fields(ExposureFacts)))


def _absolute_path(folder: str) -> str:
    """Return an absolute path, which is valid in any working directory."""
    return str(Path(folder).expanduser().resolve()) if folder else ""


def _check_model(config: Config, task: LoadedTask) -> str:
    """Check that the network can be created, and return the path of its initial weights."""
    path = _absolute_path(config.weights)
    options: dict[str, Any] = {"weights": path or None, "side": config.side}
    MODELS[config.model].make(task.shape, seed=config.seeds[0], **options)
    return path


def _hash_file(path: str) -> str:
    """Return the SHA-256 hash of a file, or an empty string for an empty path."""
    if not path:
        return ""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash_listing(folder: str, out: Path) -> str:
    """Return a hash of the names and sizes of all files in a folder, except files in `out`."""
    root = Path(_absolute_path(folder))
    excluded = out.resolve()
    digest = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        if not path.is_relative_to(excluded):
            # A file name consists of bytes, which may not be valid text.
            name = os.fsencode(path.relative_to(root))
            digest.update(name + f" {path.stat().st_size}\n".encode())
    return digest.hexdigest()


def _replace_damaged_manifest(folder: Path, task: str) -> list[str]:
    """Rename a damaged manifest so that it is recreated from the receipts, and return a note."""
    specs = [receipt.spec for receipt in read_receipts(folder / JOBS).values()]
    tasks = {str(spec["task"]) for spec in specs if "task" in spec}
    if tasks and task not in tasks:
        raise InputError(
            f"{str(folder / MANIFEST)!r} is damaged, and the jobs in its folder have the task "
            f"{', '.join(map(repr, sorted(tasks)))}; choose another folder for {task!r}"
        )
    move_damaged_manifest(folder)
    note = f"{MANIFEST} was damaged, and was written again from the receipts of the jobs"
    imported_files = sorted(path.name for path in (folder / IMPORTED).glob("test-*.npz"))
    if imported_files:
        note += f"; imported runs must be imported again: {', '.join(imported_files)}"
    return [note]


def _imported_runs(folder: Path) -> Iterable[StoredRun]:
    """Return the imported runs in a folder."""
    if not (folder / MANIFEST).is_file():
        return []
    stored_runs = Store.read(folder, with_added=False).stored_runs
    return [run for run in stored_runs if not run.validation_file.startswith(f"{JOBS}/")]


def _installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        # The code runs from a checkout that is not installed.
        return "unknown"
