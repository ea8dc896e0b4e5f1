"""The jobs of the fine-tuning experiment: which there are, and how each is done.

``pretrain`` trains one seed with cross-entropy. ``tune`` fine-tunes it with one setting and looks
at validation data only. ``final`` fine-tunes it with the chosen setting and keeps the logits of
the test data; ``before`` keeps those of the model that was not fine-tuned.
"""

import hashlib
import io
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abstain._foundation.files import write_atomically
from abstain.benchmark._library import one_thread
from abstain.benchmark.data import DATASETS, Images, Splits
from abstain.benchmark.jobs import Job
from abstain.benchmark.models import MODELS
from abstain.benchmark.training import Inputs, Machine, Recipe, Saving, logits_of, train
from abstain.benchmark.training.inputs import variation_of
from abstain.benchmark.training.loop import load_state, save_state
from abstain.errors import MissingInputError
from abstain.evaluation import evaluate
from abstain.predictions import Predictions
from abstain.studies.finetuning_config import Contender, DataChoice, Experiment
from abstain.studies.finetuning_results import plain
from abstain.training import Network, Objective, make

#: Raised where the outcome of a job changes for the same specification.
_VERSION = 1

#: What is learned of validation data; the first is only told.
_VALIDATED = ("accuracy", "aurc_plugin", "augrc")

#: The pictures are shuffled otherwise when fine-tuning than when pretraining.
_FINETUNED = 1_000_003


def pretraining(experiment: Experiment, seed: int, device: str, pictures: str = "") -> Job:
    """Return the job that trains the model of one seed with cross-entropy."""
    data = asdict(experiment.data)
    # Where the files lie changes nothing; what is in them, known by `pictures`, does.
    data.pop("folder")
    spec = {
        "version": _VERSION,
        "data": data,
        "model": experiment.model,
        "recipe": asdict(experiment.pretrain),
        "seed": seed,
        "device": device,
    }
    if pictures:
        spec["pictures"] = pictures
    return Job(f"pretrain-seed{seed}", spec)


def tuning(first: Job, contender: Contender, number: int, experiment: Experiment) -> Job:
    """Return the job that tries one setting on validation data."""
    spec = {"choose_by": experiment.choose_by}
    return _finetuning(f"tune-{contender.name}-{number + 1}", first, contender, number, spec)


def final(first: Job, contender: Contender, number: int) -> Job:
    """Return the job that fine-tunes with the chosen setting and keeps the test logits."""
    return _finetuning(f"final-{contender.name}", first, contender, number, {})


def before(first: Job) -> Job:
    """Return the job that keeps the test logits of the pretrained model."""
    return Job(f"before-seed{first.spec['seed']}", {"seed": first.spec["seed"]}, (first,))


def _finetuning(
    name: str, first: Job, contender: Contender, number: int, more: Mapping[str, Any]
) -> Job:
    setting = contender.settings[number]
    seed = first.spec["seed"]
    spec = {
        "kind": contender.kind,
        "options": dict(setting.options),
        "recipe": asdict(setting.recipe),
        "seed": seed,
        **more,
    }
    return Job(f"{name}-seed{seed}", spec, (first,))


@dataclass(frozen=True)
class Worker:
    """Does jobs; it travels to other processes.

    Attributes
    ----------
    folder : str
        Where the files of the data set are.
    save_every : float
        Seconds between two savings of a training in progress.
    """

    folder: str = ""
    save_every: float = 30.0

    def __call__(self, job: Job, place: Path) -> Mapping[str, Any]:
        """Do one job."""
        with one_thread():
            return self._done(job, place)

    def _done(self, job: Job, place: Path) -> Mapping[str, Any]:
        kind = job.name.partition("-")[0]
        if kind == "pretrain":
            return self._pretrain(job, place)
        network = self._network(job.needs[0], place)
        if kind != "before":
            self._finetune(job, network, place)
        if kind == "tune":
            return self._validated(job, network)
        return self._tested(job, network, place)

    def look(self, experiment: Experiment) -> None:
        """Load the pictures and make a model, so that what is missing is told before training."""
        job = pretraining(experiment, experiment.seeds[0], "cpu")
        _fresh(job.spec, self._parts(job), make("cross-entropy", rng=0))

    def pictures(self, experiment: Experiment) -> str:
        """Return a hash of the pictures of a folder; none for those that come with packages."""
        if not DATASETS[experiment.data.name].needs_folder:
            return ""
        splits = self._parts(pretraining(experiment, experiment.seeds[0], "cpu")).splits
        told = hashlib.sha256()
        for part in (splits.train, splits.validation, splits.test):
            if part is not None:
                told.update(part.pixels.tobytes())
                told.update(part.labels.tobytes())
        return told.hexdigest()

    def _pretrain(self, job: Job, place: Path) -> Mapping[str, Any]:
        objective = make("cross-entropy", rng=job.spec["seed"])
        network = _fresh(job.spec, self._parts(job), objective)
        losses = self._train(job, network, objective, job.spec["seed"], place)
        save_state(network.cpu().state_dict(), job.place(place, ".pt"))
        return {"losses": losses}

    def _finetune(self, job: Job, network: Network, place: Path) -> None:
        objective = make(job.spec["kind"], rng=job.spec["seed"], **job.spec["options"])
        self._train(job, network, objective, job.spec["seed"] + _FINETUNED, place)

    def _train(
        self, job: Job, network: Network, objective: Objective, seed: int, place: Path
    ) -> list[float]:
        return train(
            network,
            self._parts(job).splits.train,
            objective,
            Recipe(**job.spec["recipe"]),
            inputs=self._parts(job).inputs,
            seed=seed,
            machine=Machine(_first(job).spec["device"]),
            saving=Saving(job.place(place, ".part"), self.save_every),
        )

    def _network(self, first: Job, place: Path) -> Network:
        """Return the pretrained model of a seed."""
        objective = make("cross-entropy", rng=first.spec["seed"])
        network = _fresh(first.spec, self._parts(first), objective)
        network.load_state_dict(load_state(first.place(place, ".pt")))
        return network

    def _parts(self, job: Job) -> "_Parts":
        return _loaded(json.dumps({**_first(job).spec["data"], "folder": self.folder}))

    def _validated(self, job: Job, network: Network) -> Mapping[str, Any]:
        parts = self._parts(job)
        if parts.splits.validation is None:
            msg = "there is no validation data to choose settings on"
            raise MissingInputError(msg)
        count = parts.data.validation_copies
        found = _predicted(network, parts, parts.splits.validation, count, _first(job).spec)
        wanted = dict.fromkeys((job.spec["choose_by"], *_VALIDATED))
        told = evaluate(found, scores=["msr"], metrics=list(wanted), interval="none")
        return {
            # JSON has no NaN.
            result.metric: None if math.isnan(result.value) else result.value
            for result in told.results
        }

    def _tested(self, job: Job, network: Network, place: Path) -> Mapping[str, Any]:
        parts = self._parts(job)
        test, count = parts.splits.test, parts.data.test_copies
        found = _predicted(network, parts, test, count, _first(job).spec)
        content = io.BytesIO()
        np.savez_compressed(
            content,
            logits=found.logits,
            labels=plain(found.labels),
            ids=plain(found.ids),
            group=plain(found.group),
        )
        write_atomically(job.place(place, ".npz"), content.getvalue())
        return {"samples": int(found.n)}


class _Parts(NamedTuple):
    """The pictures of an experiment, and how a network sees them."""

    data: DataChoice
    splits: Splits
    inputs: Inputs


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
    variation = variation_of(dict(data.variation))
    return _Parts(data, splits, Inputs.of(splits.train, variation))


def _fresh(spec: Mapping[str, Any], parts: _Parts, objective: Objective) -> Network:
    backbone = MODELS[spec["model"]].make(parts.splits.train.shape, seed=spec["seed"])
    head = objective.head(backbone.width, parts.splits.train.count)
    return Network(backbone, head)


def _first(job: Job) -> Job:
    """Return the pretraining that a job builds on; itself, where it is one."""
    return job.needs[0] if job.needs else job


def _predicted(
    network: Network, parts: _Parts, images: Images, copies: int, spec: Mapping[str, Any]
) -> Predictions:
    """Return what a model says of pictures, each copy of which is a sample of its own."""
    # Test and validation pictures are varied by seeds of their own.
    seed = 2 * parts.data.seed + (images is parts.splits.test)
    network.to(spec["device"])
    pictures = parts.inputs.fixed(images, seed=seed, copies=copies, device=spec["device"])
    rows = np.tile(images.places, copies)
    # "17.2" is the third copy of the picture in row 17.
    names = [f"{row}.{i // images.n}" for i, row in enumerate(rows)] if copies > 1 else rows
    return Predictions(
        logits=logits_of(network, pictures),
        labels=np.tile(images.labels, copies),
        ids=names,
        group=rows,
    )
