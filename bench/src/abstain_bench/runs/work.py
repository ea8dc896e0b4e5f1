"""How jobs are done: `Trainer`, what all that train share, and the `Worker` of a benchmark."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from abstain._foundation.files import write_atomically
from abstain.errors import InputError
from abstain.metrics.catalogue import OF_CLASSIFIER, PRIMARY
from abstain.predictions import Predictions
from abstain.training import OBJECTIVES, Network, Objective, make
from abstain_bench._torch import one_thread
from abstain_bench.data import Images
from abstain_bench.networks import MODELS
from abstain_bench.runs.costs import Stopwatch
from abstain_bench.runs.jobs import Job
from abstain_bench.runs.jobs.devices import device_of_this_process
from abstain_bench.runs.jobs.progress import ProgressWriter
from abstain_bench.runs.loaded_task import InputImages, LoadedTask, load_task
from abstain_bench.runs.methods import METHODS, FitData, FittedMethods, Method, fit_all
from abstain_bench.runs.outputs import ensemble_outputs, network_outputs
from abstain_bench.runs.passes import compute_outputs
from abstain_bench.runs.selection import validation_values
from abstain_bench.runs.specification.arms import ENSEMBLE
from abstain_bench.runs.specification.jobs import SCORES_SUFFIX, stage_of
from abstain_bench.runs.store import VALIDATION, RunScores, ScoreFile, pack_scores
from abstain_bench.runs.tasks import Sizes
from abstain_bench.runs.training import Checkpointing, Machine, Preprocessing, Recipe, train
from abstain_bench.runs.training.loop import load_state, save_state

__all__ = ["Trainer", "Worker", "load_classifier", "make_network"]

#: Where the state of a network has its classifier.
_CLASSIFIER_PREFIX: Final = "head.classifier."

#: What is told of a network as soon as it is tested.
_EARLY_METRICS: Final = (PRIMARY, OF_CLASSIFIER)


@dataclass(frozen=True)
class Trainer(ABC):
    """Does jobs, those that train among them; it travels to other processes.

    Attributes
    ----------
    folder : str
        Where the files of the data set are.
    devices : tuple of str
        Where torch computes; the processes share them evenly.
    save_every : float
        Seconds between two savings of a training in progress.
    """

    folder: str = ""
    devices: tuple[str, ...] = ("cpu",)
    save_every: float = 30.0

    def __call__(self, job: Job, place: Path) -> Mapping[str, Any]:
        """Do one job."""
        with one_thread():
            return self.do(job, place)

    @abstractmethod
    def do(self, job: Job, place: Path) -> Mapping[str, Any]:
        """Do one job, with the files of the jobs that it needs; return what it found."""

    @property
    def device(self) -> str:
        """Where this process computes."""
        return device_of_this_process(self.devices)

    def train(
        self,
        job: Job,
        place: Path,
        network: Network,
        objective: Objective,
        *,
        images: Images,
        inputs: Preprocessing,
        recipe: Recipe,
        seed: int,
        precision: str = "32-true",
        n_epochs_done: int = 0,
    ) -> list[float]:
        """Train a network as `abstain_bench.runs.training.train`, and go on after a kill."""
        return train(
            network,
            images,
            objective,
            recipe,
            preprocessing=inputs,
            seed=seed,
            machine=Machine(self.device, precision),
            checkpointing=Checkpointing(
                job.path(place, ".part"),
                self.save_every,
                warm_up_path=place / job.warm_up_file if job.warm_up_file else None,
            ),
            on_step=ProgressWriter(job, place, "epoch", recipe.epochs),
            n_epochs_done=n_epochs_done,
        )


def make_network(
    model: str, shape: tuple[int, int, int], classes: int, objective: Objective, **fresh: Any
) -> Network:
    """Make a network of a model and the head of an objective; `fresh` as `Model.make` takes it."""
    backbone = MODELS[model].make(shape, **fresh)
    with warnings.catch_warnings():
        # The notes of a run name the rewards above the number of classes once, before training.
        warnings.filterwarnings("ignore", message="`reward`")
        return Network(backbone, objective.head(backbone.width, classes))


def load_classifier(network: Network, path: Path) -> None:
    """Give a network the backbone and the classifier of one that was trained."""
    state = load_state(path)
    for part, start in (
        (network.backbone, "backbone."),
        (network.head.classifier, _CLASSIFIER_PREFIX),
    ):
        own = {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
        part.load_state_dict(own)


@dataclass(frozen=True)
class Worker(Trainer):
    """Does the jobs of a benchmark.

    Attributes
    ----------
    weights : str
        The file of the weights that networks begin with, for jobs that name its hash.
    """

    weights: str = ""

    def do(self, job: Job, place: Path) -> Mapping[str, Any]:
        """Do one job."""
        if stage_of(job) == "train":
            return self._train(job, place)
        if job.name.startswith(ENSEMBLE):
            return _score_ensemble(job, place)
        return self._score(job, place)

    def _train(self, job: Job, place: Path) -> Mapping[str, Any]:
        watch = Stopwatch()
        with watch.measure("pictures"):
            task = self._task(job)
        objective = _make_objective(job)
        network = self._make_network(job, task, objective)
        images = task.task_images.train
        recipe = (
            Recipe(**job.spec["recipe"])
            .with_length(_stage_shares_and_length(job)[1])
            .with_epochs_for(images.n)
        )
        plan, done = objective.plan(recipe.epochs), 0
        for need in job.needs:
            # Its first phase was the whole training of another job.
            load_classifier(network, need.path(place, ".pt"))
            done = plan.count(plan[0])
        with watch.measure("training"):
            losses = self.train(
                job,
                place,
                network,
                objective,
                images=images,
                inputs=task.preprocessing,
                recipe=recipe,
                seed=job.spec["seed"],
                precision=job.spec["precision"],
                n_epochs_done=done,
            )
        save_state(network.cpu().state_dict(), job.path(place, ".pt"))
        return {"losses": losses, "took": watch.rounded_seconds}

    def _score(self, job: Job, place: Path) -> Mapping[str, Any]:
        """Score the validation images, or the exposures, by every method."""
        (first,) = job.needs
        watch = JobStopwatch()
        with watch.measure("pictures"):
            task = self._task(first)
        objective = _make_objective(first)
        network = self._make_network(first, task, objective, trained=True)
        network.load_state_dict(load_state(first.path(place, ".pt")))
        steps = ProgressWriter(job, place, "part", _n_image_sets(job))
        asked = _TrainedNetwork(
            network.to(self.device), objective, first.spec["seed"], steps, watch
        )
        samples = job.spec["samples"]
        if stage_of(job) == "validate":
            validation = asked.about(lambda: task.validation, samples)
            fitted = watch.fit_methods(job, asked.known(job, task, validation))
            scores = _run_scores(VALIDATION, validation, fitted, watch)
            return _finish_validation(job, place, scores, watch)
        fitted = watch.fit_methods(job, asked.known(job, task))
        exposures = {exposure.key: exposure for exposure in task.task_images.exposures}
        parts = [
            _run_scores(
                key,
                asked.about(partial(task.exposure_images, exposures[key]), samples),
                fitted,
                watch,
            )
            for key in job.spec["exposures"]
        ]
        return _finish_test(job, place, parts, watch)

    def _task(self, first: Job) -> LoadedTask:
        spec = first.spec
        data = Sizes(**spec["data"]) if "data" in spec else None
        return load_task(spec["task"], self.folder, data, spec["variation"])

    def _make_network(
        self, first: Job, task: LoadedTask, objective: Objective, *, trained: bool = False
    ) -> Network:
        """Make the network of a job; of one that is trained the weights come later."""
        spec, classes = first.spec, task.task_images.train.count
        fresh = {"seed": spec["seed"], "dropout": spec["dropout"], "side": spec.get("side", 0)}
        if "weights" in spec and not trained:
            fresh["weights"] = self.weights
        return make_network(spec["model"], task.shape, classes, objective, **fresh)


class JobStopwatch(Stopwatch):
    """Adds up the seconds of a job that scores, also of each score."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = Stopwatch()

    def fit_methods(self, job: Job, known: FitData) -> FittedMethods:
        """Fit the methods of a job."""
        found = fit_all(job.spec["methods"], known)
        self.scores.add(found.seconds)
        return found

    @property
    def took(self) -> dict[str, Any]:
        """The seconds as a receipt keeps them."""
        return {**self.rounded_seconds, "scores": self.scores.rounded_seconds}


@dataclass(frozen=True)
class _TrainedNetwork:
    """A trained network that answers about images."""

    network: Network
    objective: Objective
    seed: int
    steps: ProgressWriter
    watch: Stopwatch

    def about(self, pictures: Callable[[], InputImages], samples: int) -> Predictions:
        with self.watch.measure("pictures"):
            seen = pictures()
        with self.watch.measure("passes"):
            return compute_outputs(
                self.network,
                self.objective,
                seen.images,
                seen.labels,
                seen.source_indices,
                samples=samples,
                seed=self.seed,
                on_share=self.steps.add_share,
            )

    def known(self, job: Job, task: LoadedTask, validation: Predictions | None = None) -> FitData:
        """Return what the methods of a job are fitted on, and no more: passes are most of its work.

        Asked about the validation images already, the network is not asked again.
        """
        train = self.about(lambda: task.train, 0) if _methods_fitted_on(job, "train") else None
        learning = _methods_fitted_on(job, "validation")
        if validation is None and learning:
            looked_at = any("samples" in method.needs for method in learning)
            samples = job.spec["samples"] if looked_at else 0
            validation = self.about(lambda: task.validation, samples)
        layer = getattr(self.network.head, "classifier", None)
        last = (None, None) if layer is None else map(_to_numpy, (layer.weight, layer.bias))
        return FitData(train, validation, *last)


def _methods_fitted_on(job: Job, part: str) -> list[Method]:
    """Return the methods of a job that are fitted on a part of what is known."""
    methods = (METHODS[name] for name in job.spec["methods"])
    return [method for method in methods if part in method.fitted_splits]


def _n_image_sets(job: Job) -> int:
    """Return how many sets of images a network is asked about in a job."""
    asked = len(job.spec.get("exposures", ())) + bool(_methods_fitted_on(job, "train"))
    return asked + (stage_of(job) == "validate" or bool(_methods_fitted_on(job, "validation")))


def _score_ensemble(job: Job, place: Path) -> Mapping[str, Any]:
    """Put together what the networks of all seeds say."""
    files = [ScoreFile(need.path(place, SCORES_SUFFIX)) for need in job.needs]
    keys = job.spec.get("exposures", [VALIDATION])
    watch = JobStopwatch()
    # Nothing is fitted on what several networks say.
    fitted = watch.fit_methods(job, FitData())
    parts = []
    for key in keys:
        members = [_member_outputs(file.read(key)) for file in files]
        outputs = ensemble_outputs(members)
        parts.append(_run_scores(key, outputs, fitted, watch))
    if stage_of(job) == "validate":
        return _finish_validation(job, place, parts[0], watch)
    return _finish_test(job, place, parts, watch)


def _member_outputs(scores: RunScores) -> Predictions:
    if scores.logits is None:
        raise InputError(f"the scores of {scores.exposure!r} hold no logits to put together")
    return network_outputs(scores.logits, scores.labels, scores.source_indices)


def _finish_validation(
    job: Job, place: Path, scores: RunScores, watch: JobStopwatch
) -> Mapping[str, Any]:
    write_atomically(job.path(place, SCORES_SUFFIX), pack_scores([scores]))
    with watch.measure("evaluation"):
        values = validation_values(scores, _mean_prediction_by_method(job), job.spec["metrics"])
    return {"validated": values, "reasons": dict(scores.reasons), "took": watch.took}


def _finish_test(
    job: Job, place: Path, parts: list[RunScores], watch: JobStopwatch
) -> Mapping[str, Any]:
    write_atomically(job.path(place, SCORES_SUFFIX), pack_scores(parts))
    with watch.measure("evaluation"):
        # What is told as soon as it is there; tables are made by `results_of`.
        first = validation_values(parts[0], _mean_prediction_by_method(job), _EARLY_METRICS)
    return {"pictures": sum(part.n for part in parts), "first": first, "took": watch.took}


def _mean_prediction_by_method(job: Job) -> dict[str, bool]:
    return {name: METHODS[name].uses_mean_prediction for name in job.spec["methods"]}


def _run_scores(
    key: str, outputs: Predictions, fitted: FittedMethods, watch: JobStopwatch
) -> RunScores:
    found = fitted.score(outputs)
    watch.scores.add(found.seconds)
    given = {name: x for name, x in found.items() if name not in found.reasons}
    return RunScores.from_outputs(key, outputs, given, found.reasons)


def _make_objective(first: Job) -> Objective:
    spec = first.spec
    return make(
        spec["objective"],
        rng=spec["seed"],
        **{**spec["options"], **_stage_shares_and_length(first)[0]},
    )


def _stage_shares_and_length(first: Job) -> tuple[dict[str, float], int]:
    """Return the shares that the stages of a training are, and the length of all."""
    spec = first.spec
    length, stages = Recipe(**spec["recipe"]).length, spec.get("stages", {})
    return OBJECTIVES[spec["objective"]].staged(length, stages)


def _to_numpy(tensor: Any) -> Any:
    return tensor.detach().cpu().float().numpy()
