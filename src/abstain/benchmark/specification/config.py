"""What a benchmark consists of, in plain records that refuse what cannot be.

None of it needs torch. Whether the models and objectives that a record names are there, and take
what they are given, `look_up` says: a run that is read back was looked up where it began.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import product
from operator import sub
from typing import Annotated, Any, Final

from abstain._foundation.extras import has
from abstain._foundation.records import ONCE, ONCE_OR_NONE, Word, between, hold, once
from abstain.benchmark.data.corruptions import CORRUPTIONS, SEVERITIES
from abstain.benchmark.methods import METHODS, Method
from abstain.benchmark.recipe import Precision, Recipe
from abstain.benchmark.tasks import TASKS, Task
from abstain.errors import InputError
from abstain.metrics import METRICS

__all__ = ["ENSEMBLE", "Arm", "Config", "Setting"]

#: The arm of the networks of all seeds together; nobody trains it.
ENSEMBLE: Final = "ensemble"

#: Objectives whose first phase is the whole training of another one, which is done once for both.
BEGINS_WITH: Final[Mapping[str, str]] = {"confidnet": "cross-entropy"}
#: The later phases of such an objective, each with the option that is its share and the default.
_LATER: Final[Mapping[str, Mapping[str, tuple[str, float]]]] = {
    "confidnet": {"confidence": ("confidence_share", 0.45), "fine-tune": ("fine_tune", 0.0)}
}

#: Objectives that begin with a warm-up: its share unless an option says otherwise, and the options
#: that a network knows nothing of until it is over. Settings that differ in these only share it.
_WARM_UPS: Final[Mapping[str, tuple[float, tuple[str, ...]]]] = {
    "deep-gamblers": (1 / 3, ("reward",))
}

#: What an arm may be called: its name becomes part of names of files.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")

#: Passes with dropout on.
Samples = Annotated[int, between(0, 1000)]

#: The most settings of an arm: each is trained with every seed.
_MOST_SETTINGS = 100


@dataclass(frozen=True)
class Setting:
    """One way to train the networks of an arm; validation data choose among them.

    Attributes
    ----------
    dropout : float
        The chance that a unit is left out; 0 for no dropout.
    options : mapping
        Of the objective, all of them that are not its defaults.
    tried : mapping
        What distinguishes it from the other settings of its arm.
    """

    dropout: float
    options: Mapping[str, Any] = field(default_factory=dict)
    tried: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What distinguishes it, for files and people: "dropout0.3-reward2.2"."""
        return "-".join(f"{name}{short(value)}" for name, value in self.tried.items())


def short(value: Any) -> str:
    """Return a value as it stands in the name of a file."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def tried_in(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return all combinations of values to try; the last of the grid changes first."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


@dataclass(frozen=True)
class Arm:
    """Networks that are trained by one objective, with the settings to choose among.

    Attributes
    ----------
    name : str
        For files and tables; letters, digits, dots, hyphens and underscores.
    kind : str
        In `abstain.training.OBJECTIVES`.
    recipe : Recipe
        How long and how fast.
    dropout : tuple of float
        The rates to try.
    options : mapping
        Of the objective, the same in all settings.
    grid : mapping from str to tuple
        Options of the objective, with the values to try.
    stages : mapping from str to int
        Epochs of phases of the objective by name, on top of those of the recipe, which are then
        of the classifier; empty where the objective shares out the epochs of the recipe.

    Examples
    --------
    >>> from abstain.benchmark.specification import Arm, Recipe
    >>> arm = Arm("dg", "deep-gamblers", Recipe(), dropout=(0.0, 0.3), grid={"reward": (2.2, 6.0)})
    >>> [setting.label for setting in arm.settings]
    ['dropout0-reward2.2', 'dropout0-reward6', 'dropout0.3-reward2.2', 'dropout0.3-reward6']
    """

    name: str
    kind: Word
    recipe: Recipe
    dropout: Annotated[tuple[Annotated[float, between(0.0, 0.99)], ...], ONCE] = (0.0,)
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    stages: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._refuse_name()
        where = f"arms.{self.name}"
        hold(self, lambda name: f"{where}.{'try' if name == 'grid' else name}")
        for name, values in self.grid.items():
            once(values, f"{where}.try.{name}", empty=False)
            if name in self.options:
                msg = f"`{where}.try.{name}` and `{where}.options.{name}` must not both be given"
                raise InputError(msg)
        count = math.prod([len(self.dropout), *map(len, self.grid.values())])
        if count > _MOST_SETTINGS:
            msg = (
                f"the arm {self.name!r} has {count:,} settings; at most {_MOST_SETTINGS} are tried"
            )
            raise InputError(msg)
        labels = [setting.label for setting in self.settings]
        if len(set(labels)) < len(labels):
            twice = next(label for label in labels if labels.count(label) > 1)
            msg = f"the arm {self.name!r} has two settings {twice!r}; try values further apart"
            raise InputError(msg)

    def classifier_epochs(self, setting: Setting) -> int:
        """Return the epochs of the phase that is the whole training of another objective."""
        epochs = self.recipe.epochs
        if self.stages:
            # They come on top of it.
            return epochs
        shares = [setting.options.get(*given) for given in _LATER[self.kind].values()]
        later = [share for share in shares if share]
        return min(max(round(reduce(sub, later, 1.0) * epochs), 1), epochs - len(later))

    def warm_up(self, setting: Setting) -> Setting | None:
        """Return all of a setting that its warm-up knows of; None where there is no warm-up."""
        share, later = _WARM_UPS.get(self.kind, (0.0, ()))
        if not (self.stages or setting.options.get("warm_up", share)):
            return None
        known = {name: value for name, value in setting.options.items() if name not in later}
        return Setting(setting.dropout, known)

    def _refuse_name(self) -> None:
        # A text is not sure to be one: it may come from a file.
        given: Any = self.name
        if not isinstance(given, str) or not NAME.fullmatch(given):
            msg = (
                "an arm must be named with up to 60 letters, digits, dots, hyphens and "
                f"underscores; got {given!r}"
            )
            raise InputError(msg)
        if given == ENSEMBLE:
            msg = f"an arm must not be named {ENSEMBLE!r}: that is what all its seeds make together"
            raise InputError(msg)

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """All combinations of dropout rates and options to try."""
        return tuple(
            # The dropout is no option of the objective.
            Setting(float(dropout), {**self.options, **tried}, {"dropout": dropout, **tried})
            for dropout in self.dropout
            for tried in tried_in(self.grid)
        )


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

    Raises
    ------
    InputError
        A number out of its range, a value that is there twice, or an arm that is.
    """

    task: Word
    arms: Annotated[tuple[Arm, ...], ONCE]
    seeds: Annotated[tuple[Annotated[int, between(0, 2**31 - 1)], ...], ONCE]
    model: Word
    methods: Annotated[tuple[Word, ...], ONCE]
    metrics: Annotated[tuple[Word, ...], ONCE] = (
        "augrc",
        "aurc",
        "failure_auroc",
        "accuracy",
        "ece",
    )
    samples: Samples = 10
    corruptions: Annotated[tuple[Word, ...], ONCE_OR_NONE] = tuple(CORRUPTIONS)
    severities: Annotated[tuple[Annotated[int, between(1, SEVERITIES)], ...], ONCE_OR_NONE] = tuple(
        range(1, SEVERITIES + 1)
    )
    folder: str = ""
    precision: Precision = "32-true"

    def __post_init__(self) -> None:
        hold(self, lambda name: "model.name" if name == "model" else name)
        once([arm.name for arm in self.arms], "the names of `arms`")
        once([arm.kind for arm in self.arms], "the objectives of `arms`")
        if self.samples == 1:
            msg = "`samples` must be 0 or at least 2; got 1"
            raise InputError(msg)

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
    _ = TASKS[config.task]
    for name, catalogue in (("metrics", METRICS), ("corruptions", CORRUPTIONS)):
        for given in getattr(config, name):
            _ = catalogue[given]
    kinds = {arm.kind for arm in config.arms}
    for given in config.methods:
        wanted = METHODS[given].objective
        if wanted not in kinds:
            msg = f"the method {given!r} scores networks trained by {wanted!r}, and no arm is"
            raise InputError(msg)
    if has("torch"):
        from abstain.benchmark.models import MODELS

        _ = MODELS[config.model]
        for arm in config.arms:
            look_up_arm(arm)


def look_up_arm(arm: Arm) -> None:
    """Refuse an objective that is not there, or does not take its options or epochs."""
    from abstain.training import OBJECTIVES

    kind = OBJECTIVES[arm.kind]
    shares, epochs = kind.staged(arm.recipe.epochs, arm.stages)
    # All of them together must be a number of epochs that a recipe may have.
    whole = replace(arm.recipe, epochs=epochs)
    for setting in arm.settings:
        if arm.stages and (twice := sorted(set(kind.stages.values()) & set(setting.options))):
            where = f"arms.{arm.name}"
            msg = f"`{where}.stages` and the option `{twice[0]}` of {where} must not both be given"
            raise InputError(msg)
        kind.make(rng=0, **{**setting.options, **shares}).plan(whole.epochs)


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
    """Return every method that has its objective, its passes, or its networks to put together.

    Once each: not under other names that papers have for it, which would be rows twice.
    """
    trained = set(kinds)
    lacking = set() if samples else {"samples"}
    if len(seeds) < 2:
        lacking.add("ensemble")
    return tuple(
        method.name
        for method in METHODS.values()
        if method.objective in trained and lacking.isdisjoint(method.needs) and not method.same_as
    )


def scaled(stages: Mapping[str, int], factor: float) -> dict[str, int]:
    """Return stages so many times as long, one epoch each at least."""
    return {name: max(1, round(own * factor)) for name, own in stages.items()}


def _default_arm(kind: str, task: Task, recipe: Recipe) -> Arm:
    own = dict(_OTHERWISE.get(task.name, {}).get(kind, {}))
    recipe = replace(recipe, **own.pop("recipe", {}))
    grid = {"reward": task.rewards} if kind == "deep-gamblers" else {}
    if kind in BEGINS_WITH:
        # Its classifier is that of the other, and the branch comes on top.
        branch = {k: n for k, n in zip(_LATER[kind], task.branch, strict=True) if n}
        own["stages"] = scaled(branch, recipe.epochs / task.recipe.epochs)
    rates = tuple(dict.fromkeys((0.0, task.dropout)))
    return Arm(kind, kind, recipe, **({"dropout": rates, "grid": grid} | own))
