"""What a benchmark consists of, in plain records that refuse what cannot be.

None of it needs torch. Whether the models and objectives that a record names are there, and take
what they are given, `look_up` says: a run that is read back was looked up where it began.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from abstain._foundation.catalogue import match_spelling
from abstain._foundation.optional_packages import is_installed
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
from abstain_bench.runs.specification.arms import BEGINS_WITH, LATER, Arm, look_up_arm
from abstain_bench.runs.tasks import TASKS, Sizes, Task

__all__ = ["Config"]

#: Passes with dropout on.
Samples = Annotated[int, between(0, 1000)]


#: Fields that have another name in a file.
_WRITTEN: Final = {"model": "model.name"}


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole benchmark.

    Attributes
    ----------
    task : str
        In `TASKS`: the pictures, and all that classifiers are exposed to.
    arms : tuple of Arm
        What is trained.
    seeds : tuple of int
        Of the networks; every arm and setting is trained with each.
    model : str
        In `MODELS`.
    methods : tuple of str
        In `METHODS`; those whose objective no arm has are refused.
    metrics : tuple of str
        What is reported, in `abstain.metrics.METRICS`. For each of them and each method the
        setting is chosen that is best on validation data.
    samples : int
        Passes with dropout on: 0, or at least 2.
    corruptions : tuple of str
        Which corruptions the classifiers are exposed to; empty for none.
    severities : tuple of int
        Of the corruptions, 1 to 5.
    folder : str
        Where the files of the data set are; no part of what a job depends on.
    precision : {"32-true", "16-mixed", "bf16-mixed"}
        Of training; what a trained network says is computed in float32.
    data : Sizes, optional
        How much of the files of the data set is taken; by default as the task does.
    variation : mapping, optional
        How pictures to learn from are changed, with its name; by default as the task says.
    weights : str
        A file of trained weights that all networks begin with; empty where they are drawn. What
        is in it is part of what a job depends on, and not where it is.
    side : int
        Height and width that pictures are scaled to before the model sees them; 0 for theirs.

    Raises
    ------
    InputError
        A number out of its range, a value that is there twice, or an arm that is.
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
    samples: Samples = 10
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
        within = ("weights", "side")
        check_unconverted(
            self, lambda name: f"model.{name}" if name in within else _WRITTEN.get(name, name)
        )
        methods = tuple(match_spelling(name, METHODS) for name in self.methods)
        check_distinct(methods, "`methods`")
        object.__setattr__(self, "methods", methods)
        check_distinct([arm.name for arm in self.arms], "the names of `arms`")
        check_distinct([arm.kind for arm in self.arms], "the objectives of `arms`")
        if self.samples == 1:
            raise InputError("`samples` must be 0 or at least 2; got 1")

    def methods_of(self, arm: Arm) -> tuple[Method, ...]:
        """Return the methods that score the networks of an arm, but for those of ensembles."""
        return tuple(
            method
            for method in self._known
            if method.objective == arm.kind and "ensemble" not in method.needs
        )

    @property
    def ensemble_methods(self) -> tuple[Method, ...]:
        """The methods that score the networks of all seeds together."""
        return tuple(method for method in self._known if "ensemble" in method.needs)

    @property
    def _known(self) -> list[Method]:
        # A run that is read back may name a method of its own program.
        return [METHODS[name] for name in self.methods if name in METHODS]


def look_up(config: Config) -> None:
    """Refuse names that are in no catalogue, and arms that cannot be trained.

    Without torch nothing is run: models and objectives are then taken as they are named.
    """
    task = TASKS[config.task]
    if config.data is not None and not task.needs_folder:
        raise InputError(
            f"[data] is of tasks whose pictures are files; those of {task.name!r} come with it"
        )
    for name, catalogue in (("metrics", METRICS), ("corruptions", CORRUPTIONS)):
        for given in getattr(config, name):
            _ = catalogue[given]
    kinds = {arm.kind for arm in config.arms}
    for given in config.methods:
        wanted = METHODS[given].objective
        if wanted not in kinds:
            raise InputError(
                f"the method {given!r} scores networks trained by {wanted!r}, and no arm is"
            )
    if is_installed("torch"):
        from abstain_bench.networks import MODELS
        from abstain_bench.runs.training.variations import variation_of

        _ = MODELS[config.model]
        variation_of(dict(config.variation or {}))
        for arm in config.arms:
            look_up_arm(arm)


# --------------------------------------------------------------------- where nobody asks otherwise
#: How many networks of each setting.
SEEDS: Final = 5

#: What networks are trained by; an arm has the name of its objective. Each tries no dropout and
#: that of the task, DeepGamblers also the rewards of the task (Jaeger et al. 2023, appendix E).
_KINDS: Final = ("cross-entropy", "confidnet", "devries", "deep-gamblers")

#: By task and arm: fields of `Arm` that are otherwise, and fields of the recipe under "recipe".
#: They were chosen on validation data.
_OTHERWISE: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "glyphs": {
        "confidnet": {"options": {"learning_rate": 1e-3}},
        # Hints cost the classifier time; it takes longer to learn as much.
        "devries": {"recipe": {"epochs": 24}, "options": {"budget": 0.1}},
    },
    "digits": {
        "confidnet": {"options": {"learning_rate": 1e-3}},
    },
}


def default_arms(task: Task, recipe: Recipe, kinds: Sequence[str] = _KINDS) -> tuple[Arm, ...]:
    """Return what is trained for a task, with this recipe."""
    return tuple(_default_arm(kind, task, recipe) for kind in kinds)


def default_methods(kinds: Iterable[str], samples: int, seeds: Sequence[int]) -> tuple[str, ...]:
    """Return every method that has its objective, its passes, or its networks to put together."""
    lacking = set() if samples else {"samples"}
    if len(seeds) < 2:
        lacking.add("ensemble")
    return tuple(method.name for method in methods_of(kinds, lacking=lacking))


def scaled(stages: Mapping[str, int], factor: float) -> dict[str, int]:
    """Return stages so many times as long, one epoch each at least."""
    return {name: max(1, round(own * factor)) for name, own in stages.items()}


def _default_arm(kind: str, task: Task, recipe: Recipe) -> Arm:
    own = dict(_OTHERWISE.get(task.name, {}).get(kind, {}))
    recipe = replace(recipe, **own.pop("recipe", {}))
    grid = {"reward": task.rewards} if kind == "deep-gamblers" else {}
    if kind in BEGINS_WITH:
        # Its classifier is that of the other, and the branch comes on top.
        branch = {k: n for k, n in zip(LATER[kind], task.branch, strict=True) if n}
        own["stages"] = scaled(branch, recipe.epochs / task.recipe.epochs)
    rates = tuple(dict.fromkeys((0.0, task.dropout)))
    return Arm(kind, kind, recipe, **({"dropout": rates, "grid": grid} | own))
