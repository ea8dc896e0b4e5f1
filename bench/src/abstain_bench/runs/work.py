"""Execution of jobs.

`Trainer` is the base class, and `Worker` executes the jobs of a benchmark.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from abstain._foundation.files import write_atomically
from abstain.errors import InputError
from abstain.metrics.catalogue import CLASSIFIER_METRIC, DEFAULT_METRIC
from abstain.predictions import Predictions
from abstain.training import OBJECTIVES, Network, Objective, make
from abstain_bench._torch import one_thread
from abstain_bench.data import Images
from abstain_bench.networks import MODELS
from abstain_bench.runs.costs import Stopwatch
from abstain_bench.runs.jobs import Job
from abstain_bench.runs.jobs.engine import device_of_this_process
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
from abstain_bench.runs.training import Checkpointing, Machine, Recipe, train
from abstain_bench.runs.training.loop import load_state, save_state

#: Prefix of the classifier's parameters in the state of a network.
_CLASSIFIER_PREFIX: Final = "head.classifier."

#: Metrics that a test job reports for its first exposure. The tables are made later.
_EARLY_METRICS: Final = (DEFAULT_METRIC, CLASSIFIER_METRIC)


@dataclass(frozen=True)
class Trainer(ABC):
    """Base class of callables that execute jobs that include trainings.

    Instances are pickled and sent to worker processes.

    Attributes
    ----------
    folder : str
        Folder with the files of the data set.
    devices : tuple of str
        Devices for torch. Processes are distributed evenly over the devices.
    save_every : float
        Minimum number of seconds between two checkpoints of a training.
    """

    folder: str = ""
    devices: tuple[str, ...] = ("cpu",)
    save_every: float = 30.0

    def __call__(self, job: Job, folder: Path) -> Mapping[str, Any]:
        """Execute a job in a single thread, and return its results."""
        with one_thread():
            return self.do(job, folder)

    @abstractmethod
    def do(self, job: Job, folder: Path) -> Mapping[str, Any]:
        """Execute a job in a folder of jobs, and return its results.

        The folder also contains the files of the jobs that the job depends on.
        """

    @property
    def device(self) -> str:
        """The device of this process."""
        return device_of_this_process(self.devices)

    def train(
        self,
        job: Job,
        folder: Path,
        network: Network,
        objective: Objective,
        *,
        images: Images,
        recipe: Recipe,
        precision: str = "32-true",
        **options: Any,
    ) -> list[float]:
        """Train a network, or resume the training from a checkpoint.

        `options` are further arguments of `abstain_bench.runs.training.train`.
        """
        warm_up_path = folder / job.warm_up_file if job.warm_up_file else None
        checkpointing = Checkpointing(job.path(folder, ".part"), self.save_every, warm_up_path)
        on_step = ProgressWriter(job, folder, "epoch", recipe.epochs)
        return train(
            network,
            images,
            objective,
            recipe,
            machine=Machine(self.device, precision),
            checkpointing=checkpointing,
            on_step=on_step,
            **options,
        )


def make_network(
    model: str, shape: tuple[int, int, int], classes: int, objective: Objective, **options: Any
) -> Network:
    """Create a network from the backbone of a model and the head of an objective.

    `options` are further arguments of `Model.make`.
    """
    backbone = MODELS[model].make(shape, **options)
    with warnings.catch_warnings():
        # The notes of a benchmark already contain the warning about the reward.
        warnings.filterwarnings("ignore", message="`reward`")
        return Network(backbone, objective.head(backbone.width, classes))


def load_classifier(network: Network, path: Path) -> None:
    """Load the backbone and the classifier from the file of a trained network."""
    state = load_state(path)
    modules = {"backbone.": network.backbone, _CLASSIFIER_PREFIX: network.head.classifier}
    for prefix, module in modules.items():
        module_state = {
            name.removeprefix(prefix): value
            for name, value in state.items()
            if name.startswith(prefix)
        }
        module.load_state_dict(module_state)


@dataclass(frozen=True)
class Worker(Trainer):
    """Executes the jobs of a benchmark.

    Attributes
    ----------
    weights : str
        Path of a file with initial weights. The file is used by jobs whose specification contains
        the hash of the file.
    """

    weights: str = ""

    def do(self, job: Job, folder: Path) -> Mapping[str, Any]:
        """Execute a job, and return its results."""
        if stage_of(job) == "train":
            return self._train(job, folder)
        if job.name.startswith(ENSEMBLE):
            return _score_ensemble(job, folder)
        return self._score(job, folder)

    def _train(self, job: Job, folder: Path) -> Mapping[str, Any]:
        """Train the network of a job, and write its parameters to a file."""
        watch = Stopwatch()
        with watch.measure("pictures"):
            task = self._load_task(job)
        objective = _make_objective(job)
        network = self._make_network(job, task, objective)
        images = task.task_images.train
        _, length = _stage_shares_and_length(job)
        recipe = Recipe(**job.spec["recipe"]).with_length(length).with_epochs_for(images.n)
        n_epochs_done = 0
        if job.needs:
            # Another job trained the classifier, which is the first phase of this training.
            (classifier_job,) = job.needs
            load_classifier(network, classifier_job.path(folder, ".pt"))
            plan = objective.plan(recipe.epochs)
            n_epochs_done = plan.count(plan[0])
        with watch.measure("training"):
            losses = self.train(
                job,
                folder,
                network,
                objective,
                images=images,
                preprocessing=task.preprocessing,
                recipe=recipe,
                seed=job.spec["seed"],
                precision=job.spec["precision"],
                n_epochs_done=n_epochs_done,
            )
        save_state(network.cpu().state_dict(), job.path(folder, ".pt"))
        return {"losses": losses, "took": watch.rounded_seconds}

    def _score(self, job: Job, folder: Path) -> Mapping[str, Any]:
        """Compute the scores of every method for the validation images or the exposures."""
        (training_job,) = job.needs
        watch = JobStopwatch()
        with watch.measure("pictures"):
            task = self._load_task(training_job)
        objective = _make_objective(training_job)
        network = self._make_network(training_job, task, objective, trained=True)
        network.load_state_dict(load_state(training_job.path(folder, ".pt")))
        progress = ProgressWriter(job, folder, "part", _count_image_sets(job))
        seed = training_job.spec["seed"]
        trained = _TrainedNetwork(network.to(self.device), objective, seed, progress, watch)
        samples = job.spec["samples"]
        if stage_of(job) == "validate":
            validation = trained.outputs_for(lambda: task.validation, samples)
            fitted = watch.fit_methods(job, trained.fit_data(job, task, validation))
            scores = _score_outputs(VALIDATION, validation, fitted, watch)
            return _finish(job, folder, [scores], watch)
        fitted = watch.fit_methods(job, trained.fit_data(job, task))
        exposures = {exposure.key: exposure for exposure in task.task_images.exposures}
        scores_by_exposure = []
        for key in job.spec["exposures"]:
            load_images = partial(task.exposure_images, exposures[key])
            outputs = trained.outputs_for(load_images, samples)
            scores_by_exposure.append(_score_outputs(key, outputs, fitted, watch))
        return _finish(job, folder, scores_by_exposure, watch)

    def _load_task(self, training_job: Job) -> LoadedTask:
        spec = training_job.spec
        data = Sizes(**spec["data"]) if "data" in spec else None
        return load_task(spec["task"], self.folder, data, spec["variation"])

    def _make_network(
        self, training_job: Job, task: LoadedTask, objective: Objective, *, trained: bool = False
    ) -> Network:
        """Create the network of a training job; load initial weights unless `trained` is True."""
        spec = training_job.spec
        n_classes = task.task_images.train.n_classes
        options = {"seed": spec["seed"], "dropout": spec["dropout"], "side": spec.get("side", 0)}
        if "weights" in spec and not trained:
            options["weights"] = self.weights
        return make_network(spec["model"], task.shape, n_classes, objective, **options)


class JobStopwatch(Stopwatch):
    """Measures the durations of the phases of a scoring job and of each confidence score."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = Stopwatch()

    def fit_methods(self, job: Job, data: FitData) -> FittedMethods:
        """Fit the methods of a job, and record the duration of each fit."""
        fitted = fit_all(job.spec["methods"], data)
        self.scores.add(fitted.seconds)
        return fitted

    @property
    def took(self) -> dict[str, Any]:
        """The durations in the form in which receipts store them."""
        return {**self.rounded_seconds, "scores": self.scores.rounded_seconds}


@dataclass(frozen=True)
class _TrainedNetwork:
    """A trained network, which computes outputs for images."""

    network: Network
    objective: Objective
    seed: int
    progress: ProgressWriter
    watch: Stopwatch

    def outputs_for(self, load: Callable[[], InputImages], samples: int) -> Predictions:
        """Load images, and compute their outputs in one pass and in `samples` dropout passes."""
        with self.watch.measure("pictures"):
            inputs = load()
        with self.watch.measure("passes"):
            return compute_outputs(
                self.network,
                self.objective,
                inputs.images,
                inputs.labels,
                inputs.source_indices,
                samples=samples,
                seed=self.seed,
                on_share=self.progress.add_share,
            )

    def fit_data(
        self, job: Job, task: LoadedTask, validation: Predictions | None = None
    ) -> FitData:
        """Compute the outputs on which the methods of a job are fitted.

        `validation` contains the outputs for the validation images if they are already computed.
        """
        train = None
        if _methods_fitted_on(job, "train"):
            train = self.outputs_for(lambda: task.train, 0)
        validation_methods = _methods_fitted_on(job, "validation")
        if validation is None and validation_methods:
            needs_samples = any("samples" in method.needs for method in validation_methods)
            samples = job.spec["samples"] if needs_samples else 0
            validation = self.outputs_for(lambda: task.validation, samples)
        last_layer = getattr(self.network.head, "classifier", None)
        if last_layer is None:
            return FitData(train, validation)
        weight, bias = _to_numpy(last_layer.weight), _to_numpy(last_layer.bias)
        return FitData(train, validation, weight, bias)


def _count_image_sets(job: Job) -> int:
    """Return how many sets of images a scoring job passes through the network."""
    uses_train = bool(_methods_fitted_on(job, "train"))
    uses_validation = stage_of(job) == "validate" or bool(_methods_fitted_on(job, "validation"))
    return len(job.spec.get("exposures", ())) + uses_train + uses_validation


def _methods_fitted_on(job: Job, split: str) -> list[Method]:
    methods = (METHODS[name] for name in job.spec["methods"])
    return [method for method in methods if split in method.fitted_splits]


def _score_ensemble(job: Job, folder: Path) -> Mapping[str, Any]:
    """Compute the scores of an ensemble, which averages the probabilities over all seeds."""
    files = [ScoreFile(member.path(folder, SCORES_SUFFIX)) for member in job.needs]
    watch = JobStopwatch()
    # Methods of ensembles are not fitted on data.
    fitted = watch.fit_methods(job, FitData())
    scores_by_exposure = []
    for key in job.spec.get("exposures", [VALIDATION]):
        members = []
        for file in files:
            member = file.read(key)
            if member.logits is None:
                raise InputError(
                    f"the scores of {key!r} have no logits, which an ensemble requires"
                )
            members.append(network_outputs(member.logits, member.labels, member.source_indices))
        scores_by_exposure.append(_score_outputs(key, ensemble_outputs(members), fitted, watch))
    return _finish(job, folder, scores_by_exposure, watch)


def _finish(
    job: Job, folder: Path, scores_by_exposure: list[RunScores], watch: JobStopwatch
) -> Mapping[str, Any]:
    """Write the scores of a validation or test job, and return its results."""
    write_atomically(job.path(folder, SCORES_SUFFIX), pack_scores(scores_by_exposure))
    # The command prints the metrics of a test job at once. `results_of` makes the tables later.
    metrics = job.spec.get("metrics", _EARLY_METRICS)
    uses_mean = {name: METHODS[name].uses_mean_prediction for name in job.spec["methods"]}
    with watch.measure("evaluation"):
        values = validation_values(scores_by_exposure[0], uses_mean, metrics)
    if stage_of(job) == "validate":
        reasons = dict(scores_by_exposure[0].reasons)
        return {"validated": values, "reasons": reasons, "took": watch.took}
    n_images = sum(scores.n for scores in scores_by_exposure)
    return {"pictures": n_images, "first": values, "took": watch.took}


def _score_outputs(
    key: str, outputs: Predictions, fitted: FittedMethods, watch: JobStopwatch
) -> RunScores:
    """Compute the scores of the fitted methods for one exposure."""
    scores = fitted.score(outputs)
    watch.scores.add(scores.seconds)
    confidence = {name: array for name, array in scores.items() if name not in scores.reasons}
    return RunScores.from_outputs(key, outputs, confidence, scores.reasons)


def _make_objective(training_job: Job) -> Objective:
    spec = training_job.spec
    shares, _ = _stage_shares_and_length(training_job)
    return make(spec["objective"], rng=spec["seed"], **{**spec["options"], **shares})


def _stage_shares_and_length(training_job: Job) -> tuple[dict[str, float], int]:
    """Return the fraction of each phase as options of the objective, and the total length."""
    spec = training_job.spec
    length = Recipe(**spec["recipe"]).length
    stage_lengths = spec.get("stages", {})
    return OBJECTIVES[spec["objective"]].shares_of_stages(length, stage_lengths)


def _to_numpy(tensor: Any) -> Any:
    return tensor.detach().cpu().float().numpy()
