"""`Arm`: the networks that are trained by one objective, and the settings to choose among.

None of it needs torch but `look_up_arm`, which asks the objective what it takes.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, reduce
from itertools import product
from operator import sub
from typing import Annotated, Any, Final

from abstain._foundation.records import (
    DISTINCT_NONEMPTY,
    NonBlankText,
    between,
    check_distinct,
    check_unconverted,
)
from abstain.errors import InputError, UnknownNameError, suggest
from abstain_bench.runs.recipe import Recipe

__all__ = ["ENSEMBLE", "Arm", "Setting"]

#: The arm of the networks of all seeds together; nobody trains it.
ENSEMBLE: Final = "ensemble"

#: Objectives whose first phase is the whole training of another one, which is done once for both.
BEGINS_WITH: Final[Mapping[str, str]] = {"confidnet": "cross-entropy"}
#: The later phases of such an objective, each with the option that is its share and the default.
LATER: Final[Mapping[str, Mapping[str, tuple[str, float]]]] = {
    "confidnet": {"confidence": ("confidence_share", 0.45), "fine-tune": ("fine_tune", 0.0)}
}

#: Objectives that begin with a warm-up: its share unless an option says otherwise, and the options
#: that a network knows nothing of until it is over. Settings that differ in these only share it.
WARM_UPS: Final[Mapping[str, tuple[float, tuple[str, ...]]]] = {
    "deep-gamblers": (1 / 3, ("reward",))
}

#: The objective with a reward for abstaining, the option, its default, and the limit above which
#: it must be. `bench/tests/runs/test_rewards.py` compares them with those of the objective.
_GAMBLERS: Final = "deep-gamblers"
_REWARD: Final = "reward"
_DEFAULT_REWARD: Final = 2.2
_MIN_REWARD: Final = 1.0

#: What an arm may be called: its name becomes part of names of files.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")

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
    recipe : mapping
        Fields of the recipe that are otherwise than in its arm.
    """

    dropout: float
    options: Mapping[str, Any] = field(default_factory=dict)
    tried: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)

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
        of the classifier; empty where the objective shares out the epochs of the recipe. Steps,
        where the recipe counts these.
    recipes : mapping from str to tuple
        Fields of the recipe, with the values to try.

    Examples
    --------
    >>> from abstain_bench.runs.specification import Arm, Recipe
    >>> arm = Arm("dg", "deep-gamblers", Recipe(), dropout=(0.0, 0.3), grid={"reward": (2.2, 6.0)})
    >>> [setting.label for setting in arm.settings]
    ['dropout0-reward2.2', 'dropout0-reward6', 'dropout0.3-reward2.2', 'dropout0.3-reward6']
    """

    name: str
    kind: NonBlankText
    recipe: Recipe
    dropout: Annotated[tuple[Annotated[float, between(0.0, 0.99)], ...], DISTINCT_NONEMPTY] = (0.0,)
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    stages: Mapping[str, int] = field(default_factory=dict)
    recipes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._refuse_name()
        where = f"arms.{self.name}"
        check_unconverted(self, lambda name: f"{where}.{'try' if name == 'grid' else name}")
        for name, values in self.grid.items():
            check_distinct(values, f"{where}.try.{name}", allow_empty=False)
            if name in self.options:
                raise InputError(
                    f"`{where}.try.{name}` and `{where}.options.{name}` must not both be given"
                )
        for name, values in self.recipes.items():
            check_distinct(values, f"{where}.try.recipe.{name}", allow_empty=False)
        tried = [*self.grid.values(), *self.recipes.values()]
        count = math.prod([len(self.dropout), *map(len, tried)])
        if count > _MOST_SETTINGS:
            raise InputError(
                f"the arm {self.name!r} has {count:,} settings; at most {_MOST_SETTINGS} are tried"
            )
        self._check_rewards()
        labels = [setting.label for setting in self.settings]
        if len(set(labels)) < len(labels):
            twice = next(label for label in labels if labels.count(label) > 1)
            raise InputError(
                f"the arm {self.name!r} has two settings {twice!r}; try values further apart"
            )
        for setting in self.settings if self.recipes else ():
            # A field that does not exist, or a value that cannot be, is told at once.
            self.recipe_of(setting)

    @property
    def rewards(self) -> tuple[Any, ...]:
        """Rewards for abstaining that are trained with; empty for all objectives but one."""
        if self.kind != _GAMBLERS:
            return ()
        default = (self.options.get(_REWARD, _DEFAULT_REWARD),)
        return tuple(self.grid.get(_REWARD, default))

    def _check_rewards(self) -> None:
        """Reject a reward that no network can be trained with, before any job is planned."""
        for reward in self.rewards:
            is_number = isinstance(reward, int | float) and not isinstance(reward, bool)
            if not is_number or not _MIN_REWARD < reward < math.inf:
                raise InputError(
                    f"`reward` of the arm {self.name!r} must be a number above 1; got {reward!r}"
                )

    def recipe_of(self, setting: Setting) -> Recipe:
        """Return the recipe of a setting."""
        where = f"`arms.{self.name}.try.recipe`"
        known = [field.name for field in fields(Recipe)]
        if unknown := [name for name in setting.recipe if name not in known]:
            near = suggest(unknown[0], known)
            raise UnknownNameError(
                f"{where}: a recipe has no field {unknown[0]!r}.{near} It has {', '.join(known)}."
            )
        try:
            return replace(self.recipe, **setting.recipe)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    def classifier_length(self, setting: Setting) -> int:
        """Return how long the phase is that is the whole training of another objective."""
        epochs = self.recipe_of(setting).length
        if self.stages:
            # They come on top of it.
            return epochs
        shares = [setting.options.get(*given) for given in LATER[self.kind].values()]
        later = [share for share in shares if share]
        return min(max(round(reduce(sub, later, 1.0) * epochs), 1), epochs - len(later))

    def warm_up(self, setting: Setting) -> Setting | None:
        """Return all of a setting that its warm-up knows of; None where there is no warm-up."""
        share, later = WARM_UPS.get(self.kind, (0.0, ()))
        if not (self.stages or setting.options.get("warm_up", share)):
            return None
        known = {name: value for name, value in setting.options.items() if name not in later}
        return Setting(setting.dropout, known, recipe=setting.recipe)

    def _refuse_name(self) -> None:
        # A text is not sure to be one: it may come from a file.
        given: Any = self.name
        if not isinstance(given, str) or not NAME.fullmatch(given):
            raise InputError(
                "an arm must be named with up to 60 letters, digits, dots, hyphens and "
                f"underscores; got {given!r}"
            )
        if given == ENSEMBLE:
            raise InputError(
                f"an arm must not be named {ENSEMBLE!r}: that is what all its seeds make together"
            )

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """All combinations of dropout rates, options and fields of the recipe to try."""
        return tuple(
            Setting(
                # The dropout is no option of the objective.
                float(dropout),
                {**self.options, **tried},
                {"dropout": dropout, **tried, **{f"recipe.{k}": x for k, x in recipe.items()}},
                recipe,
            )
            for dropout in self.dropout
            for tried in tried_in(self.grid)
            for recipe in tried_in(self.recipes)
        )


def reward_notes(arms: Sequence[Arm], n_classes: int) -> list[str]:
    """Describe the rewards above the number of classes, with which a network learns not to abstain.

    Examples
    --------
    >>> from abstain_bench.runs.specification import Arm, Recipe
    >>> arm = Arm("dg", "deep-gamblers", Recipe(), grid={"reward": (2.0, 6.0, 15.0)})
    >>> [note.partition(":")[0] for note in reward_notes([arm], n_classes=2)]
    ['the rewards 6, 15 of the arm dg are above the number of classes, 2']
    """
    notes = []
    for arm in arms:
        above = [short(float(reward)) for reward in arm.rewards if reward > n_classes]
        if above:
            subject = "the rewards" if len(above) > 1 else "the reward"
            verb = "are" if len(above) > 1 else "is"
            notes.append(
                f"{subject} {', '.join(above)} of the arm {arm.name} {verb} above the number of "
                f"classes, {n_classes}: at the optimum such a network never abstains. It is "
                "trained all the same, as in FD-Shifts"
            )
    return notes


def look_up_arm(arm: Arm) -> None:
    """Refuse an objective that is not there, or does not take its options or epochs."""
    from abstain.training import OBJECTIVES

    kind = OBJECTIVES[arm.kind]
    for setting in arm.settings:
        recipe = arm.recipe_of(setting)
        shares, length = kind.staged(recipe.length, arm.stages)
        # All of them together must be a length that a recipe may have.
        whole = recipe.lasting(length)
        if arm.stages and (twice := sorted(set(kind.stages.values()) & set(setting.options))):
            where = f"arms.{arm.name}"
            raise InputError(
                f"`{where}.stages` and the option `{twice[0]}` of {where} must not both be given"
            )
        kind.make(rng=0, **{**setting.options, **shares}).plan(whole.length)
