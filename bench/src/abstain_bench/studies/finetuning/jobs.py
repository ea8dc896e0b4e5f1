"""The jobs of the fine-tuning experiment.

``pretrain`` trains one seed with cross-entropy; all other jobs start from the network of their
seed. ``tune`` fine-tunes it with one setting and evaluates it on validation data. ``final``
fine-tunes it with the selected setting and stores the logits of the test data; ``before`` stores
those of the pretrained network.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abstain._foundation.files import write_atomically
from abstain.confidence.registry import BASELINE
from abstain.errors import MissingInputError
from abstain.evaluation import evaluate
from abstain.metrics.catalogue import CLASSIFIER_METRIC, DEFAULT_METRIC, POPULATION_AREA_METRIC
from abstain.predictions import Predictions
from abstain.training import Network, make
from abstain_bench.data import DATASETS, Images, Splits
from abstain_bench.runs.jobs import Job
from abstain_bench.runs.loaded_task import hash_images
from abstain_bench.runs.training import Preprocessing, Recipe, compute_logits
from abstain_bench.runs.training.loop import save_state
from abstain_bench.runs.training.variations import make_variation
from abstain_bench.runs.work import Trainer, load_classifier, make_network
from abstain_bench.studies.finetuning.experiment import (
    BEFORE,
    ComparedObjective,
    DataChoice,
    Experiment,
)
from abstain_bench.studies.finetuning.results import to_archive

#: Increase it if the result of a job changes for the same specification.
_VERSION = 1

#: Metrics of the validation data that are stored in addition to the selection metric.
_VALIDATION_METRICS = (CLASSIFIER_METRIC, POPULATION_AREA_METRIC, DEFAULT_METRIC)

#: Offset of the shuffling seed of fine-tuning, so that it differs from pretraining.
_FINETUNING_SEED_OFFSET = 1_000_003


@dataclass(frozen=True)
class FinetuningJobs:
    """The jobs of an experiment, and the order in which they can run."""

    experiment: Experiment
    #: Device of torch. It is part of the job specification, because results depend on it.
    device: str = "cpu"
    #: Hash of the images of a folder; empty for data sets from packages.
    images_digest: str = ""

    @cached_property
    def pretraining(self) -> dict[int, Job]:
        """The job that trains the network of each seed with cross-entropy."""
        data = asdict(self.experiment.data)
        # The content of the folder determines the results, not its path.
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
        """The job that validates each combination of objective, setting number and seed.

        There are none if each objective has one setting.
        """
        if not self.experiment.is_tuned:
            return {}
        return {
            (objective.name, number, seed): self._finetuning_job(
                f"tune-{objective.name}-{number + 1}",
                objective,
                number,
                seed,
                choose_by=self.experiment.choose_by,
            )
            for objective in self.experiment.objectives
            for number in range(len(objective.settings))
            for seed in self.experiment.tuning_seeds
        }

    def before_selection(self) -> list[Job]:
        """Return the jobs that must be done before settings can be selected."""
        return [*self.pretraining.values(), *self.tuning.values()]

    def after_selection(self, selected: Mapping[str, int]) -> dict[tuple[str, int], Job]:
        """Return the jobs that store test logits, by objective and seed."""
        jobs = {
            (BEFORE, seed): Job(f"before-seed{seed}", {"seed": seed}, (pretraining,))
            for seed, pretraining in self.pretraining.items()
        }
        for objective in self.experiment.objectives:
            if objective.name in selected:
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
    """Runs the jobs of the experiment."""

    def do(self, job: Job, place: Path) -> Mapping[str, Any]:
        """Run one job in a folder and return its results."""
        pretraining = job.needs[0] if job.needs else job
        spec = {"kind": "cross-entropy", "options": {}, **job.spec}
        data = self._load(pretraining.spec["data"])
        objective = make(spec["kind"], rng=spec["seed"], **spec["options"])
        network = _new_network(pretraining.spec, data, objective)
        for needed in job.needs:
            load_classifier(network, needed.path(place, ".pt"))
        losses = []
        # Jobs without a recipe evaluate the pretrained network.
        if "recipe" in spec:
            losses = self.train(
                job,
                place,
                network,
                objective,
                images=data.splits.train,
                preprocessing=data.preprocessing,
                recipe=Recipe(**spec["recipe"]),
                seed=spec["seed"] + (_FINETUNING_SEED_OFFSET if job.needs else 0),
            )
        if not job.needs:
            save_state(network.cpu().state_dict(), job.path(place, ".pt"))
            return {"losses": losses}
        network.to(self.device)
        if "choose_by" in spec:
            return _validate(spec["choose_by"], network, data)
        predictions = _predict(network, data, data.splits.test, data.choice.test_copies)
        write_atomically(job.path(place, ".npz"), to_archive([predictions]))
        return {"samples": int(predictions.n)}

    def check_inputs(self, experiment: Experiment) -> None:
        """Load the images and create a network, to raise errors before training."""
        spec = {"model": experiment.model, "seed": experiment.seeds[0]}
        data = self._load(asdict(experiment.data))
        _new_network(spec, data, make("cross-entropy", rng=0))

    def images_digest(self, experiment: Experiment) -> str:
        """Return a hash of the images of a folder, and "" for data sets from packages."""
        if not DATASETS[experiment.data.name].needs_folder:
            return ""
        splits = self._load(asdict(experiment.data)).splits
        images = (splits.train, splits.validation, splits.test)
        return hash_images(split for split in images if split is not None)

    def _load(self, data: Mapping[str, Any]) -> "_LoadedData":
        return _load_data(json.dumps({**data, "folder": self.folder}))


class _LoadedData(NamedTuple):
    """The images of an experiment, and their preprocessing for a network."""

    choice: DataChoice
    splits: Splits
    preprocessing: Preprocessing


@lru_cache(maxsize=1)
def _load_data(choice_json: str) -> _LoadedData:
    """Load the images of a `DataChoice`, given as JSON, once in each process."""
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
    """Return the metrics of a network on the validation images."""
    if data.splits.validation is None:
        raise MissingInputError("there is no validation data to select settings on")
    copies = data.choice.validation_copies
    predictions = _predict(network, data, data.splits.validation, copies)
    metrics = list(dict.fromkeys((choose_by, *_VALIDATION_METRICS)))
    evaluation = evaluate(predictions, scores=[BASELINE], metrics=metrics, interval="none")
    # JSON has no NaN.
    return {
        result.metric.name: None if math.isnan(result.value) else result.value
        for result in evaluation.results
    }


def _predict(network: Network, data: _LoadedData, images: Images, copies: int) -> Predictions:
    """Return the predictions of a network for images. Each copy of an image is a sample."""
    # Test and validation images have different variation seeds.
    seed = 2 * data.choice.seed + (images is data.splits.test)
    device = str(next(network.parameters()).device)
    pixels = data.preprocessing.prepare(images, seed=seed, copies=copies, device=device)
    rows = np.tile(images.source_indices, copies)
    # The id "17.2" is the third copy of the image in row 17.
    ids = [f"{row}.{i // images.n}" for i, row in enumerate(rows)] if copies > 1 else rows
    return Predictions(
        logits=compute_logits(network, pixels),
        labels=np.tile(images.labels, copies),
        ids=ids,
        group=rows,
    )
