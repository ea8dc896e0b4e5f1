"""The jobs of the fine-tuning experiment: which there are, and how each is done.

``pretrain`` trains one seed with cross-entropy; all others start from the network of their seed.
``tune`` fine-tunes it with one setting and looks at validation data only. ``final`` fine-tunes it
with the chosen setting and keeps the logits of the test data; ``before`` keeps those of the model
that was not fine-tuned.
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
from abstain.metrics.catalogue import OF_CLASSIFIER, OF_POPULATION, PRIMARY
from abstain.predictions import Predictions
from abstain.training import Network, make
from abstain_bench.data import DATASETS, Images, Splits
from abstain_bench.runs.jobs import Job
from abstain_bench.runs.loaded_task import hash_images
from abstain_bench.runs.training import Preprocessing, Recipe, compute_logits
from abstain_bench.runs.training.loop import save_state
from abstain_bench.runs.training.variations import make_variation
from abstain_bench.runs.work import Trainer, load_classifier, make_network
from abstain_bench.studies.finetuning.experiment import BEFORE, Contender, DataChoice, Experiment
from abstain_bench.studies.finetuning.results import archive

#: Raised where the outcome of a job changes for the same specification.
_VERSION = 1

#: What is learned of validation data; the first is only told.
_VALIDATED = (OF_CLASSIFIER, OF_POPULATION, PRIMARY)

#: The pictures are shuffled otherwise when fine-tuning than when pretraining.
_FINETUNED = 1_000_003


@dataclass(frozen=True)
class FinetuningSpecification:
    """What the experiment has to do."""

    experiment: Experiment
    #: Where torch computes: its arithmetic is part of the outcome.
    device: str = "cpu"
    #: A hash of the pictures of a folder; empty for those that come with packages.
    pictures: str = ""

    @cached_property
    def starts(self) -> dict[int, Job]:
        """By seed, the job that trains its model with cross-entropy."""
        data = asdict(self.experiment.data)
        # Where the files lie changes nothing; what is in them, known by `pictures`, does.
        data.pop("folder")
        spec = {
            "version": _VERSION,
            "data": data,
            "model": self.experiment.model,
            "recipe": self.experiment.pretrain.to_dict(),
            "device": self.device,
        }
        spec |= {"pictures": self.pictures} if self.pictures else {}
        return {
            seed: Job(f"pretrain-seed{seed}", {**spec, "seed": seed})
            for seed in self.experiment.seeds
        }

    @cached_property
    def tunings(self) -> dict[tuple[str, int, int], Job]:
        """By objective, number of the setting and seed, the job that tries it on validation data.

        None where there is nothing to choose.
        """
        return {
            (contender.name, number, seed): self._finetuning(
                f"tune-{contender.name}-{number + 1}",
                (contender, number, seed),
                {"choose_by": self.experiment.choose_by},
            )
            for contender in self.experiment.contenders
            for number in range(len(contender.settings))
            for seed in self.experiment.tuning_seeds
            if self.experiment.tuned
        }

    def before_choice(self) -> list[Job]:
        """Return the jobs that have to be done before settings can be chosen."""
        return [*self.starts.values(), *self.tunings.values()]

    def after_choice(self, chosen: Mapping[str, int]) -> dict[tuple[str, int], Job]:
        """Return the jobs that keep test logits, by objective and seed."""
        seeds = self.experiment.seeds
        jobs = {
            (BEFORE, seed): Job(f"before-seed{seed}", {"seed": seed}, (self.starts[seed],))
            for seed in seeds
        }
        return jobs | {
            (own.name, seed): self._finetuning(f"final-{own.name}", (own, chosen[own.name], seed))
            for own in self.experiment.contenders
            if own.name in chosen
            for seed in seeds
        }

    @property
    def count(self) -> int:
        """How many jobs there are, the tests of all objectives among them."""
        tests = len(self.experiment.seeds) * (len(self.experiment.contenders) + 1)
        return len(self.before_choice()) + tests

    def _finetuning(
        self,
        name: str,
        which: tuple[Contender, int, int],
        more: Mapping[str, Any] | None = None,
    ) -> Job:
        contender, number, seed = which
        setting = contender.settings[number]
        spec = {
            "kind": contender.kind,
            "options": dict(setting.options),
            "recipe": setting.recipe.to_dict(),
            "seed": seed,
            **(more or {}),
        }
        return Job(f"{name}-seed{seed}", spec, (self.starts[seed],))


class FinetuningWorker(Trainer):
    """Does the jobs of the experiment."""

    def do(self, job: Job, place: Path) -> Mapping[str, Any]:
        """Do one job."""
        first, spec = _first(job), {"kind": "cross-entropy", "options": {}, **job.spec}
        parts = self._parts(first.spec["data"])
        objective = make(spec["kind"], rng=spec["seed"], **spec["options"])
        network = _fresh(first.spec, parts, objective)
        for start in job.needs:
            load_classifier(network, start.path(place, ".pt"))
        losses = []
        # The model before fine-tuning is only tested.
        if "recipe" in spec:
            losses = self.train(
                job,
                place,
                network,
                objective,
                images=parts.splits.train,
                preprocessing=parts.inputs,
                recipe=Recipe(**spec["recipe"]),
                seed=spec["seed"] + (_FINETUNED if job.needs else 0),
            )
        if not job.needs:
            save_state(network.cpu().state_dict(), job.path(place, ".pt"))
            return {"losses": losses}
        network.to(self.device)
        if "choose_by" in spec:
            return _validated(spec["choose_by"], network, parts)
        found = _predicted(network, parts, parts.splits.test, parts.data.test_copies)
        write_atomically(job.path(place, ".npz"), archive([found]))
        return {"samples": int(found.n)}

    def look(self, experiment: Experiment) -> None:
        """Load the pictures and make a model, so that what is missing is told before training."""
        spec = {"model": experiment.model, "seed": experiment.seeds[0]}
        _fresh(spec, self._parts(asdict(experiment.data)), make("cross-entropy", rng=0))

    def pictures(self, experiment: Experiment) -> str:
        """Return a hash of the pictures of a folder; none for those that come with packages."""
        if not DATASETS[experiment.data.name].needs_folder:
            return ""
        splits = self._parts(asdict(experiment.data)).splits
        parts = (splits.train, splits.validation, splits.test)
        return hash_images(part for part in parts if part is not None)

    def _parts(self, data: Mapping[str, Any]) -> "_Parts":
        return _loaded(json.dumps({**data, "folder": self.folder}))


class _Parts(NamedTuple):
    """The pictures of an experiment, and how a network sees them."""

    data: DataChoice
    splits: Splits
    inputs: Preprocessing


@lru_cache(maxsize=1)
def _loaded(said: str) -> _Parts:
    """Load the pictures once a process, from the text of a `DataChoice`."""
    data = DataChoice(**json.loads(said))
    splits = DATASETS[data.name].splits(
        folder=data.folder or None,
        train=data.train,
        validation=data.validation,
        test=data.test,
        records=data.records,
        rng=data.seed,
    )
    variation = make_variation(dict(data.variation))
    return _Parts(data, splits, Preprocessing.from_training_images(splits.train, variation))


def _first(job: Job) -> Job:
    """Return the pretraining that a job starts from; itself, where it is one."""
    return job.needs[0] if job.needs else job


def _fresh(spec: Mapping[str, Any], parts: _Parts, objective: Any) -> Network:
    train = parts.splits.train
    return make_network(spec["model"], train.shape, train.count, objective, seed=spec["seed"])


def _validated(choose_by: str, network: Network, parts: _Parts) -> Mapping[str, Any]:
    if parts.splits.validation is None:
        raise MissingInputError("there is no validation data to choose settings on")
    found = _predicted(network, parts, parts.splits.validation, parts.data.validation_copies)
    wanted = dict.fromkeys((choose_by, *_VALIDATED))
    told = evaluate(found, scores=[BASELINE], metrics=list(wanted), interval="none")
    # JSON has no NaN.
    return {r.metric.name: None if math.isnan(r.value) else r.value for r in told.results}


def _predicted(network: Network, parts: _Parts, images: Images, copies: int) -> Predictions:
    """Return what a model says of pictures, each copy of which is a sample of its own."""
    # Test and validation pictures are varied by seeds of their own.
    seed = 2 * parts.data.seed + (images is parts.splits.test)
    where = str(next(network.parameters()).device)
    pictures = parts.inputs.prepare(images, seed=seed, copies=copies, device=where)
    rows = np.tile(images.places, copies)
    # "17.2" is the third copy of the picture in row 17.
    names = [f"{row}.{i // images.n}" for i, row in enumerate(rows)] if copies > 1 else rows
    return Predictions(
        logits=compute_logits(network, pictures),
        labels=np.tile(images.labels, copies),
        ids=names,
        group=rows,
    )
