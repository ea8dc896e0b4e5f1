"""What a benchmark consists of, in plain records that refuse what cannot be."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from abstain._foundation import checks
from abstain._foundation.toml_fields import text
from abstain.benchmark.data.corruptions import CORRUPTIONS, SEVERITIES
from abstain.benchmark.methods import METHODS, Method
from abstain.benchmark.models import MODELS
from abstain.benchmark.recipe import Recipe
from abstain.benchmark.settings import Setting, settings_of
from abstain.benchmark.tasks import TASKS
from abstain.benchmark.training import PRECISIONS
from abstain.errors import InputError
from abstain.metrics import METRICS
from abstain.training import OBJECTIVES

__all__ = ["ENSEMBLE", "Arm", "Config", "Setting"]

#: The arm of the networks of all seeds together; nobody trains it.
ENSEMBLE: Final = "ensemble"

#: What an arm may be called: its name becomes part of names of files.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")

#: The most settings of an arm: each is trained with every seed.
_MOST_SETTINGS = 100


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
    >>> from abstain.benchmark.config import Arm
    >>> from abstain.benchmark.recipe import Recipe
    >>> arm = Arm("dg", "deep-gamblers", Recipe(), dropout=(0.0, 0.3), grid={"reward": (2.2, 6.0)})
    >>> [setting.label for setting in arm.settings]
    ['dropout0-reward2.2', 'dropout0-reward6', 'dropout0.3-reward2.2', 'dropout0.3-reward6']
    """

    name: str
    kind: str
    recipe: Recipe
    dropout: tuple[float, ...] = (0.0,)
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    stages: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._refuse_name()
        where = f"arms.{self.name}"
        _ = OBJECTIVES[text(self.kind, f"{where}.kind")]
        _refuse_twice(self.dropout, f"{where}.dropout")
        for rate in self.dropout:
            checks.fraction(rate, f"{where}.dropout", high=0.99)
        for name, values in self.grid.items():
            _refuse_twice(values, f"{where}.try.{name}")
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
        # An option that the objective does not take is said before anything is trained.
        for setting in self.settings:
            self.classifier_epochs(setting)

    def classifier_epochs(self, setting: Setting) -> int:
        """Return the epochs of the first phase of the objective in one of the settings."""
        kind = OBJECTIVES[self.kind]
        shares, epochs = kind.staged(self.recipe.epochs, self.stages)
        if self.stages and (twice := sorted(set(kind.stages.values()) & set(setting.options))):
            where = f"arms.{self.name}"
            msg = f"`{where}.stages` and the option `{twice[0]}` of {where} must not both be given"
            raise InputError(msg)
        # All of them together must be a number of epochs that a recipe may have.
        whole = replace(self.recipe, epochs=epochs)
        plan = kind.make(rng=0, **{**setting.options, **shares}).plan(whole.epochs)
        return plan.count(plan[0])

    def _refuse_name(self) -> None:
        # A text is not sure to be one: it may come from a file.
        given: Any = self.name
        if not isinstance(given, str) or not _NAME.fullmatch(given):
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
        return settings_of(self.dropout, self.options, self.grid)


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
        A name that does not exist, a number out of its range, or a method without its arm.
    """

    task: str
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]
    model: str
    methods: tuple[str, ...]
    metrics: tuple[str, ...] = ("augrc", "aurc", "failure_auroc", "accuracy", "ece")
    samples: int = 10
    corruptions: tuple[str, ...] = tuple(CORRUPTIONS)
    severities: tuple[int, ...] = tuple(range(1, SEVERITIES + 1))
    folder: str = ""
    precision: str = "32-true"

    def __post_init__(self) -> None:
        _ = TASKS[text(self.task, "task")], MODELS[text(self.model, "model.name")]
        for name in ("arms", "seeds", "methods", "metrics"):
            _refuse_twice(getattr(self, name), name)
        for name in ("corruptions", "severities"):
            _refuse_twice(getattr(self, name), name, empty=True)
        _refuse_twice([arm.name for arm in self.arms], "the names of `arms`")
        _refuse_twice([arm.kind for arm in self.arms], "the objectives of `arms`")
        self._refuse_numbers()
        checks.one_of(self.precision, "precision", PRECISIONS)
        for name, catalogue in (("metrics", METRICS), ("corruptions", CORRUPTIONS)):
            for given in getattr(self, name):
                _ = catalogue[text(given, name)]
        self._refuse_methods()

    def _refuse_numbers(self) -> None:
        for seed in self.seeds:
            whole(seed, "seeds", 0, 2**31 - 1)
        for severity in self.severities:
            whole(severity, "severities", 1, SEVERITIES)
        whole(self.samples, "samples", 0, 1000)
        if self.samples == 1:
            msg = "`samples` must be 0 or at least 2; got 1"
            raise InputError(msg)

    def _refuse_methods(self) -> None:
        kinds = {arm.kind for arm in self.arms}
        for name in self.methods:
            wanted = METHODS[text(name, "methods")].objective
            if wanted not in kinds:
                msg = f"the method {name!r} scores networks trained by {wanted!r}, and no arm is"
                raise InputError(msg)

    def methods_of(self, arm: Arm) -> tuple[Method, ...]:
        """Return the methods that score the networks of an arm, but for those of ensembles."""
        found = (METHODS[name] for name in self.methods)
        return tuple(m for m in found if m.objective == arm.kind and "ensemble" not in m.needs)

    @property
    def ensemble_methods(self) -> tuple[Method, ...]:
        """The methods that score the networks of all seeds together."""
        found = (METHODS[name] for name in self.methods)
        return tuple(method for method in found if "ensemble" in method.needs)


def whole(given: Any, name: str, low: int, high: int) -> int:
    """Validate a whole number in a range."""
    if isinstance(given, bool) or not isinstance(given, int) or not low <= given <= high:
        msg = f"`{name}` must hold whole numbers from {low} to {high}; got {given!r}"
        raise InputError(msg)
    return given


def _refuse_twice(given: Any, name: str, *, empty: bool = False) -> None:
    """Refuse what is no sequence, is empty, or holds a value twice."""
    if not isinstance(given, list | tuple) or not (given or empty):
        rule = "a list" if empty else "a list that is not empty"
        msg = f"`{name}` must be {rule}; got {given!r}"
        raise InputError(msg)
    for number, value in enumerate(given):
        if value in given[:number]:
            msg = f"`{name}` must hold each value once; got {value!r} twice"
            raise InputError(msg)
