"""`Config`, the complete configuration of a benchmark, and the defaults for a task.

This module does not require torch. If torch is not installed, the model and the objectives are not
checked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from abstain._foundation.catalogue import match_spelling
from abstain._foundation.lazy_imports import is_installed
from abstain._foundation.records import (
    DISTINCT,
    DISTINCT_NONEMPTY,
    NonBlankText,
    between,
    check_distinct,
    check_unconverted,
)
from abstain.errors import InputError
from abstain.metrics import METRICS
from abstain_bench.data.corruptions import CORRUPTIONS, SEVERITIES
from abstain_bench.runs.methods import METHODS, Method, methods_of
from abstain_bench.runs.recipe import Precision, Recipe
from abstain_bench.runs.specification.arms import INITIAL_OBJECTIVES, LATER_PHASES, Arm, check_arm
from abstain_bench.runs.tasks import TASKS, Sizes, Task

#: Number of forward passes with dropout.
SampleCount = Annotated[int, between(0, 1000)]


@dataclass(frozen=True, kw_only=True)
class Config:
    """The configuration of a benchmark.

    Attributes
    ----------
    task : str
        Name in `TASKS`. The task defines the images and the exposures.
    arms : tuple of Arm
        Training objectives with their settings.
    seeds : tuple of int
        Seeds of the networks. All settings of all arms are trained with each seed.
    model : str
        Name in `MODELS`.
    methods : tuple of str
        Names in `METHODS`. For each method, there must be an arm with the training objective of the
        method.
    metrics : tuple of str
        Names of the reported metrics in `abstain.metrics.METRICS`. For each metric and method, the
        best setting is selected on the validation data.
    samples : int
        Number of forward passes with dropout, which is 0 or at least 2.
    corruptions : tuple of str
        Corruptions of the exposures with corrupted images. The tuple may be empty.
    severities : tuple of int
        Severities of the corruptions, 1 to 5.
    folder : str
        Folder with the files of the data set. The keys of jobs do not depend on the folder.
    precision : {"32-true", "16-mixed", "bf16-mixed"}
        Precision of training. Outputs of trained networks are always computed in float32.
    data : Sizes, optional
        Number and size of the images that are read from the files. The default is the sizes of the
        task.
    variation : mapping, optional
        Name and options of the augmentation of training images. The default is the augmentation of
        the task.
    weights : str
        Path of a file with the initial weights of all networks. If empty, the weights are
        initialized at random. Job keys depend on a hash of the file, not on its path.
    side : int
        Height and width to which images are resized before the model. The value 0 keeps their size.

    Raises
    ------
    InputError
        If a number is out of range, or if a value or an arm name is repeated.
    """

    task: NonBlankText
    arms: Annotated[tuple[Arm, ...], DISTINCT_NONEMPTY]
    seeds: Annotated[tuple[Annotated[int, between(0, 2**31 - 1)], ...], DISTINCT_NONEMPTY]
    model: NonBlankText
    methods: Annotated[tuple[NonBlankText, ...], DISTINCT_NONEMPTY]
    metrics: Annotated[tuple[NonBlankText, ...], DISTINCT_NONEMPTY] = (
        "augrc",
        "aurc",
        "failure_auroc",
        "accuracy",
        "ece",
    )
    samples: SampleCount = 10
    corruptions: Annotated[tuple[NonBlankText, ...], DISTINCT] = tuple(CORRUPTIONS)
    severities: Annotated[tuple[Annotated[int, between(1, SEVERITIES)], ...], DISTINCT] = tuple(
        range(1, SEVERITIES + 1)
    )
    folder: str = ""
    precision: Precision = "32-true"
    data: Sizes | None = None
    variation: Mapping[str, Any] | None = None
    weights: str = ""
    side: Annotated[int, between(0, 4096)] = 0

    def __post_init__(self) -> None:
        keys_in_files = {"model": "model.name", "weights": "model.weights", "side": "model.side"}
        check_unconverted(self, lambda name: keys_in_files.get(name, name))
        methods = tuple(match_spelling(name, METHODS) for name in self.methods)
        check_distinct(methods, "`methods`")
        object.__setattr__(self, "methods", methods)
        check_distinct([arm.name for arm in self.arms], "the names of `arms`")
        check_distinct([arm.objective for arm in self.arms], "the objectives of `arms`")
        if self.samples == 1:
            raise InputError("`samples` must be 0 or at least 2; got 1")

    def methods_of(self, arm: Arm) -> tuple[Method, ...]:
        """Return the methods that apply to individual networks of an arm."""
        return tuple(
            method
            for method in self._available_methods
            if method.objective == arm.objective and "ensemble" not in method.needs
        )

    @property
    def ensemble_methods(self) -> tuple[Method, ...]:
        """Methods that apply to ensembles of the networks of all seeds."""
        return tuple(method for method in self._available_methods if "ensemble" in method.needs)

    @property
    def _available_methods(self) -> list[Method]:
        # A stored configuration may contain methods that only another version of the package has.
        return [METHODS[name] for name in self.methods if name in METHODS]


def check_config(config: Config) -> None:
    """Raise an error if a name does not exist or an arm cannot be trained.

    If torch is not installed, the model and the objectives are not checked.
    """
    task = TASKS[config.task]
    if config.data is not None and not task.needs_folder:
        raise InputError(
            f"[data] is valid only for tasks with image files; the images of {task.name!r} are "
            "part of the package"
        )
    for name in config.metrics:
        _ = METRICS[name]
    for name in config.corruptions:
        _ = CORRUPTIONS[name]
    objectives = {arm.objective for arm in config.arms}
    for name in config.methods:
        required_objective = METHODS[name].objective
        if required_objective not in objectives:
            raise InputError(
                f"the method {name!r} scores networks trained with {required_objective!r}, and no "
                "arm has this objective"
            )
    if is_installed("torch"):
        from abstain_bench.networks import MODELS
        from abstain_bench.runs.training.inputs import make_variation

        _ = MODELS[config.model]
        make_variation(dict(config.variation or {}))
        for arm in config.arms:
            check_arm(arm)


# ------------------------------------------------------------------------------------ defaults
#: Number of networks per setting.
N_SEEDS: Final = 5

#: Training objectives of the default arms, which have the names of the objectives. Each arm tries
#: the dropout probabilities 0 and that of the task. The arm of DeepGamblers also tries the rewards
#: of the task (Jaeger et al. 2023, appendix E).
_OBJECTIVES: Final = ("cross-entropy", "confidnet", "devries", "deep-gamblers")

#: Fields of an arm and of its recipe that replace the defaults, by task and arm. Their values were
#: selected on validation data.
_TASK_OVERRIDES: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "glyphs": {
        "confidnet": {"options": {"learning_rate": 1e-3}},
        # Hints slow down the training of the classifier, so the training has more epochs.
        "devries": {"recipe": {"epochs": 24}, "options": {"budget": 0.1}},
    },
    "digits": {
        "confidnet": {"options": {"learning_rate": 1e-3}},
    },
}


def default_arms(
    task: Task, recipe: Recipe, objectives: Sequence[str] = _OBJECTIVES
) -> tuple[Arm, ...]:
    """Return one arm per objective, with the settings of a task and a recipe."""
    return tuple(_default_arm(objective, task, recipe) for objective in objectives)


def default_methods(
    objectives: Iterable[str], samples: int, seeds: Sequence[int]
) -> tuple[str, ...]:
    """Return all methods for the given objectives whose required inputs are available.

    Methods that require dropout passes are included only if `samples` is positive. Methods for
    ensembles are included only if there are at least two seeds.
    """
    missing = set() if samples else {"samples"}
    if len(seeds) < 2:
        missing.add("ensemble")
    return tuple(method.name for method in methods_of(objectives, missing=missing))


def scale_stages(stages: Mapping[str, int], factor: float) -> dict[str, int]:
    """Multiply the length of each phase by a factor, and round to an integer of at least 1."""
    return {name: max(1, round(length * factor)) for name, length in stages.items()}


def _default_arm(objective: str, task: Task, recipe: Recipe) -> Arm:
    """Return the arm for an objective, with the settings of a task and a recipe."""
    overrides = _TASK_OVERRIDES.get(task.name, {}).get(objective, {})
    arm_recipe = replace(recipe, **overrides.get("recipe", {}))
    stage_lengths: dict[str, int] = {}
    if objective in INITIAL_OBJECTIVES:
        # Another arm trains the classifier. The lengths of the later phases are additional.
        lengths = zip(LATER_PHASES[objective], task.branch, strict=True)
        nonzero_lengths = {phase: length for phase, length in lengths if length}
        stage_lengths = scale_stages(nonzero_lengths, arm_recipe.epochs / task.recipe.epochs)
    return Arm(
        objective,
        objective,
        arm_recipe,
        dropout=tuple(dict.fromkeys((0.0, task.dropout))),
        options=overrides.get("options", {}),
        option_grid={"reward": task.rewards} if objective == "deep-gamblers" else {},
        stage_lengths=stage_lengths,
    )
