"""`run_benchmark`: train, choose, test; every job is kept and found again."""

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
from abstain_bench.runs.jobs.devices import check_devices_available, device_kind, parse_devices
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

__all__ = ["run_benchmark"]

#: Whose versions are written down.
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
    """Train networks, choose settings on validation data, and test what was chosen.

    Answers: what does every confidence score say of every image that these
    classifiers are exposed to? `abstain_bench.results.results_of` makes tables of it.

    Parameters
    ----------
    config : Config
        What to run; `abstain_bench.runs.specification.default_config` and `read_config` make one.
    out : str or Path
        The folder in which everything is kept. With the same configuration the run goes on from
        where it was stopped.
    device : str, default="cpu"
        Where torch computes: "cpu", "cuda", "cuda:0,cuda:1".
    jobs : int, default=1
        How many jobs run at a time, each a process with one thread. In a script the call must
        then stand below ``if __name__ == "__main__":``.
    engine : {"processes", "dask"}, default="processes"
        Who runs the jobs.
    address : str, optional
        Of a running dask scheduler whose workers see the same folder.
    on_outcome : callable, optional
        Told of each job when it begins (its status is "begun") and when it is over.

    Returns
    -------
    store : Store
        What the folder holds now.
    outcomes : list of Outcome
        How each job ended. A job that failed has a ``.log`` beside the others' files, and those
        that need it are left out; the same command tries again.

    Raises
    ------
    InputError
        The device does not exist, or an argument is out of its range.
    MissingInputError
        The files of the data set are not there.

    Notes
    -----
    A setting is chosen by the mean over the seeds of the metric on validation data, for each
    method and metric on its own. Only what some method chose is tested, so that no test data can
    have any part in the choice. What each network says is kept in float32 and scored in float64.

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
        # Of a running cluster only the workers need the device.
        check_devices_available(devices)
    folder = Path(out)
    make_folder(folder / JOBS)
    # Under the same name as the jobs of this process do, so that it is not loaded twice.
    task = load_task(config.task, _absolute_path(config.folder), config.data, config.variation)
    # What is missing is told before training.
    weights = _check_model(config, task)
    notes = _replace_damaged_manifest(folder, config.task) if is_manifest_unreadable(folder) else []
    exposures = select_exposures(task.task_images, config.corruptions, config.severities)
    keys = tuple(one.key for one in exposures)
    spec = Specification(config, keys, device_kind(devices), weights_digest=_hash_file(weights))
    if TASKS[config.task].needs_folder:
        spec = replace(
            spec, images_digest=task.digest(), files_digest=_hash_listing(config.folder, folder)
        )
    run = _RunningBenchmark(spec, folder, task, exposures, notes)
    do = partial(
        run_jobs,
        work=Worker(_absolute_path(config.folder), devices, weights=weights),
        folder=folder / JOBS,
        processes=processes,
        engine=engine,
        address=address,
        on_outcome=partial(run.on_outcome, more=on_outcome),
    )
    run.add_outcomes([])
    # What the processes have loaded to validate they need to test.
    with WorkerPool(processes) as pool:
        run.add_outcomes(do(spec.jobs_before_selection(), pool=pool))
        run.add_outcomes(do(run.test_jobs(), pool=pool))
    return Store.read(folder), run.outcomes


@dataclass
class _RunningBenchmark:
    """A benchmark in progress, and what of it is in its folder."""

    spec: Specification
    folder: Path
    task: LoadedTask
    exposures: tuple[Exposure, ...]
    notes: list[str]
    outcomes: list[Outcome] = field(default_factory=list)
    tested: dict[str, Outcome] = field(default_factory=dict)

    def on_outcome(self, outcome: Outcome, *counts: int, more: OnOutcome | None) -> None:
        """Let the manifest name a network as soon as it is tested: a kill may be the next thing."""
        if outcome.is_done and stage_of(outcome.job) == "test":
            self.tested[outcome.job.key] = outcome
            # One of an earlier run is in the manifest already.
            if outcome.status == "done":
                self._write()
        if more is not None:
            more(outcome, *counts)

    def stored_runs(self) -> list[StoredRun]:
        """Return the networks that were validated, with what is there of each."""
        over = self.tested | {one.job.key: one for one in self.outcomes if one.is_done}
        # What an earlier run left counts at once: this one may be killed before it comes to it.
        return self.spec.stored_runs(
            lambda job: over.get(job.key) or stored_outcome(job, self.folder / JOBS)
        )

    def test_jobs(self) -> list[Job]:
        """Return the jobs that test what was chosen, but for networks that were not validated."""
        kept = self.stored_runs()
        if not any(one.validation_values for one in kept):
            return []
        chosen = select_best_settings(kept, self.spec.config.metrics)
        lost = {outcome.job.key for outcome in self.outcomes if not outcome.is_done}
        never = {one.test.key for one in self.spec.networks if one.validate.key in lost}
        wanted = self.spec.test_jobs((one.arm, one.setting) for one in chosen)
        return [job for job in wanted if job.key not in never]

    def add_outcomes(self, outcomes: Iterable[Outcome]) -> None:
        """Add jobs that are over, and write the manifest."""
        self.outcomes += outcomes
        self._write()

    def _write(self) -> None:
        """Write the manifest: what came from elsewhere stays in it."""
        write_manifest(
            self.folder,
            config=to_plain(self.spec.config),
            facts=self._facts(),
            classes=self.task.task_images.train.classes,
            exposures=[exposure_facts(exposure) for exposure in self.exposures],
            stored_runs=[*self.stored_runs(), *_imported_runs(self.folder)],
        )

    def _facts(self) -> dict[str, Any]:
        return {
            "versions": dict(_versions()),
            "python": platform.python_version(),
            # What jobs depend on beside the configuration.
            "device": self.spec.device,
            "pictures": self.spec.images_digest,
            "files": self.spec.files_digest,
            "weights": self.spec.weights_digest,
            "precision": self.spec.config.precision,
            "dtype": "float32 logits, float64 scores",
            "train": self.task.task_images.train.n,
            "validation": self.task.task_images.validation.n,
            "seconds": round(sum(outcome.seconds for outcome in self.outcomes), 1),
            "failed": [o.job.name for o in self.outcomes if not o.is_done],
            "notes": [
                *self.task.task_images.notes,
                *reward_notes(self.spec.config.arms, len(self.task.task_images.train.classes)),
                *self.notes,
            ],
        }


def exposure_facts(exposure: Exposure) -> ExposureFacts:
    """Return what is known of an exposure without its images."""
    return ExposureFacts(*(getattr(exposure, each.name) for each in fields(ExposureFacts)))


def _absolute_path(folder: str) -> str:
    """Return where the files are for processes that began in another folder."""
    return str(Path(folder).expanduser().resolve()) if folder else ""


def _check_model(config: Config, task: LoadedTask) -> str:
    """Make a network, to be sure that it can be; return where its weights are."""
    path = _absolute_path(config.weights)
    given: dict[str, Any] = {"weights": path or None, "side": config.side}
    MODELS[config.model].make(task.shape, seed=config.seeds[0], **given)
    return path


def _hash_file(path: str) -> str:
    """Return a hash of a file; nothing where there is none."""
    if not path:
        return ""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash_listing(folder: str, out: Path) -> str:
    """Return a hash of the names and sizes of all files of a folder, but for those of the runs."""
    place, own = Path(_absolute_path(folder)), out.resolve()
    told = hashlib.sha256()
    for path in sorted(path for path in place.rglob("*") if path.is_file()):
        if not path.is_relative_to(own):
            # A name may be no text in any encoding.
            name = os.fsencode(path.relative_to(place))
            told.update(name + f" {path.stat().st_size}\n".encode())
    return told.hexdigest()


def _replace_damaged_manifest(folder: Path, task: str) -> list[str]:
    """Make room for a new manifest, which the receipts are enough for; say what they lack."""
    specs = [one.spec for one in read_receipts(folder / JOBS).values()]
    tasks = {str(spec["task"]) for spec in specs if "task" in spec}
    if tasks and task not in tasks:
        raise InputError(
            f"{str(folder / MANIFEST)!r} is damaged, and the jobs of its folder are of the task "
            f"{', '.join(map(repr, sorted(tasks)))}; choose another folder for {task!r}"
        )
    move_damaged_manifest(folder)
    note = f"{MANIFEST} was damaged, and was written anew from what the jobs left"
    if names := sorted(path.name for path in (folder / IMPORTED).glob("test-*.npz")):
        note += f"; what was imported must be imported again: {', '.join(names)}"
    return [note]


def _imported_runs(folder: Path) -> Iterable[StoredRun]:
    """Return the runs of the folder that no job made."""
    if not (folder / MANIFEST).is_file():
        return []
    before = Store.read(folder, with_added=False).stored_runs
    return [one for one in before if not one.validation_file.startswith(f"{JOBS}/")]


def _versions() -> Iterable[tuple[str, str]]:
    for name in _PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            # Run from a checkout that was never installed.
            yield name, "unknown"
