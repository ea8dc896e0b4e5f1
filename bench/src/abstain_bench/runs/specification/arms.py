"""`Arm`: the networks that are trained with one training objective, and their settings.

Only `check_arm` requires torch, because it builds the objective.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
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

#: Name of the arm of the ensembles over all seeds; no network is trained for it.
ENSEMBLE: Final = "ensemble"

#: Objectives whose first phase is the complete training of another objective.
INITIAL_OBJECTIVES: Final[Mapping[str, str]] = {"confidnet": "cross-entropy"}
#: The later phases of these objectives: the option for the phase's share of the training, and its
#: default.
LATER_PHASES: Final[Mapping[str, Mapping[str, tuple[str, float]]]] = {
    "confidnet": {"confidence": ("confidence_share", 0.45), "fine-tune": ("fine_tune", 0.0)}
}

#: Objectives that begin with a warm-up: its default share, and the options that have no effect
#: before it ends. Settings that differ only in these options share the warm-up.
WARM_UPS: Final[Mapping[str, tuple[float, tuple[str, ...]]]] = {
    "deep-gamblers": (1 / 3, ("reward",))
}

#: The objective with a reward for abstaining, the name of the option, its default and its lower
#: limit. `bench/tests/runs/test_rewards.py` compares them with those of the objective.
_DEEP_GAMBLERS: Final = "deep-gamblers"
_REWARD_OPTION: Final = "reward"
_DEFAULT_REWARD: Final = 2.2
_MIN_REWARD: Final = 1.0

#: Valid names of arms. The name becomes part of file names.
ARM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")

#: Maximum number of settings of an arm; each is trained with every seed.
_MAX_SETTINGS = 100


@dataclass(frozen=True)
class Setting:
    """One choice of the hyperparameters of an arm; validation data select among the settings.

    Attributes
    ----------
    dropout : float
        Dropout probability; 0 for no dropout.
    options : mapping
        Options of the objective that differ from their defaults.
    grid_values : mapping
        The values that distinguish the setting from the other settings of its arm.
    recipe_changes : mapping
        Fields of the recipe that differ from those of the arm.
    """

    dropout: float
    options: Mapping[str, Any] = field(default_factory=dict)
    grid_values: Mapping[str, Any] = field(default_factory=dict)
    recipe_changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Text that identifies the setting, for file names and tables: "dropout0.3-reward2.2"."""
        return "-".join(f"{name}{format_value(value)}" for name, value in self.grid_values.items())


def format_value(value: Any) -> str:
    """Return a value as text for file names."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def grid_combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return all combinations of the values of a grid; the last name varies fastest."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


@dataclass(frozen=True)
class Arm:
    """Networks that are trained with one training objective, and the settings to select from.

    Attributes
    ----------
    name : str
        Name for files and tables: letters, digits, dots, hyphens and underscores.
    objective : str
        Name of the training objective in `abstain.training.OBJECTIVES`.
    recipe : Recipe
        Length, learning rate and other parameters of the training.
    dropout : tuple of float
        Dropout rates to try.
    options : mapping
        Options of the objective that all settings share.
    option_grid : mapping from str to tuple
        Values to try, by option of the objective.
    stage_lengths : mapping from str to int
        Length of later phases of the objective, by name, in addition to that of the recipe. Empty
        if the objective divides the length of the recipe among its phases. In steps if the recipe
        defines steps, otherwise in epochs.
    recipe_grid : mapping from str to tuple
        Values to try, by field of the recipe.

    Examples
    --------
    >>> from abstain_bench.runs.specification import Arm, Recipe
    >>> grid = {"reward": (2.2, 6.0)}
    >>> arm = Arm("dg", "deep-gamblers", Recipe(), dropout=(0.0, 0.3), option_grid=grid)
    >>> [setting.label for setting in arm.settings]
    ['dropout0-reward2.2', 'dropout0-reward6', 'dropout0.3-reward2.2', 'dropout0.3-reward6']
    """

    name: str
    objective: NonBlankText
    recipe: Recipe
    dropout: Annotated[tuple[Annotated[float, between(0.0, 0.99)], ...], DISTINCT_NONEMPTY] = (0.0,)
    options: Mapping[str, Any] = field(default_factory=dict)
    option_grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    stage_lengths: Mapping[str, int] = field(default_factory=dict)
    recipe_grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_name()
        path = f"arms.{self.name}"
        check_unconverted(self, lambda name: f"{path}.{_KEYS_IN_FILES.get(name, name)}")
        for name, values in self.option_grid.items():
            check_distinct(values, f"{path}.try.{name}", allow_empty=False)
            if name in self.options:
                raise InputError(
                    f"`{path}.try.{name}` and `{path}.options.{name}` must not both be set"
                )
        for name, values in self.recipe_grid.items():
            check_distinct(values, f"{path}.try.recipe.{name}", allow_empty=False)
        grid = [*self.option_grid.values(), *self.recipe_grid.values()]
        n_settings = math.prod([len(self.dropout), *map(len, grid)])
        if n_settings > _MAX_SETTINGS:
            raise InputError(
                f"the arm {self.name!r} must have at most {_MAX_SETTINGS} settings; "
                f"got {n_settings:,}"
            )
        self._check_rewards()
        labels = [setting.label for setting in self.settings]
        if len(set(labels)) < len(labels):
            duplicate = next(label for label in labels if labels.count(label) > 1)
            raise InputError(
                f"the arm {self.name!r} has two settings named {duplicate!r}; choose values that "
                "differ more"
            )
        if self.recipe_grid:
            for setting in self.settings:
                # Raises an error for unknown fields and invalid values.
                self.recipe_of(setting)

    @property
    def rewards(self) -> tuple[Any, ...]:
        """Rewards for abstaining of all settings; empty for objectives without a reward."""
        if self.objective != _DEEP_GAMBLERS:
            return ()
        default = (self.options.get(_REWARD_OPTION, _DEFAULT_REWARD),)
        return tuple(self.option_grid.get(_REWARD_OPTION, default))

    def _check_rewards(self) -> None:
        """Reject rewards that no network can be trained with, before any job is planned."""
        for reward in self.rewards:
            is_number = isinstance(reward, int | float) and not isinstance(reward, bool)
            if not is_number or not _MIN_REWARD < reward < math.inf:
                raise InputError(
                    f"`reward` of the arm {self.name!r} must be a number above 1; got {reward!r}"
                )

    def recipe_of(self, setting: Setting) -> Recipe:
        """Return the recipe of a setting."""
        path = f"`arms.{self.name}.try.recipe`"
        names = [f.name for f in fields(Recipe)]
        for name in setting.recipe_changes:
            if name not in names:
                raise UnknownNameError(
                    f"{path}: a recipe has no field {name!r}.{suggest(name, names)} "
                    f"It has {', '.join(names)}."
                )
        try:
            return replace(self.recipe, **setting.recipe_changes)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def classifier_length(self, setting: Setting) -> int:
        """Return the length of the first phase, which is the training of another objective."""
        length = self.recipe_of(setting).length
        if self.stage_lengths:
            # The later phases are additional.
            return length
        phases = LATER_PHASES[self.objective].values()
        shares = [setting.options.get(option, default) for option, default in phases]
        nonzero_shares = [share for share in shares if share]
        first_share = 1.0
        for share in nonzero_shares:
            first_share -= share
        return min(max(round(first_share * length), 1), length - len(nonzero_shares))

    def warm_up_setting(self, setting: Setting) -> Setting | None:
        """Return the part of a setting that affects its warm-up; None if there is no warm-up."""
        default_share, later_options = WARM_UPS.get(self.objective, (0.0, ()))
        if not (self.stage_lengths or setting.options.get("warm_up", default_share)):
            return None
        options = {k: value for k, value in setting.options.items() if k not in later_options}
        return Setting(setting.dropout, options, recipe_changes=setting.recipe_changes)

    def _check_name(self) -> None:
        # Any type is possible, because the name may come from a file.
        name: Any = self.name
        if not isinstance(name, str) or not ARM_NAME.fullmatch(name):
            raise InputError(
                "the name of an arm must have up to 60 letters, digits, dots, hyphens and "
                f"underscores; got {name!r}"
            )
        if name == ENSEMBLE:
            raise InputError(
                f"an arm must not be named {ENSEMBLE!r}: this is the arm of the ensembles"
            )

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """All combinations of dropout rates, options and fields of the recipe to try."""
        settings = []
        for dropout in self.dropout:
            for options in grid_combinations(self.option_grid):
                for changes in grid_combinations(self.recipe_grid):
                    recipe_values = {f"recipe.{name}": value for name, value in changes.items()}
                    grid_values = {"dropout": dropout, **options, **recipe_values}
                    all_options = {**self.options, **options}
                    settings.append(Setting(float(dropout), all_options, grid_values, changes))
        return tuple(settings)


#: Names of fields in files, if they differ.
_KEYS_IN_FILES: Final = {
    "objective": "kind",
    "option_grid": "try",
    "stage_lengths": "stages",
    "recipe_grid": "try.recipe",
}


def reward_notes(arms: Sequence[Arm], n_classes: int) -> list[str]:
    """Describe rewards above the number of classes: such a network learns not to abstain.

    Examples
    --------
    >>> from abstain_bench.runs.specification import Arm, Recipe
    >>> arm = Arm("dg", "deep-gamblers", Recipe(), option_grid={"reward": (2.0, 6.0, 15.0)})
    >>> [note.partition(":")[0] for note in reward_notes([arm], n_classes=2)]
    ['the rewards 6, 15 of the arm dg are above the number of classes, 2']
    """
    notes = []
    for arm in arms:
        above = [format_value(float(reward)) for reward in arm.rewards if reward > n_classes]
        if above:
            subject = "the rewards" if len(above) > 1 else "the reward"
            verb = "are" if len(above) > 1 else "is"
            notes.append(
                f"{subject} {', '.join(above)} of the arm {arm.name} {verb} above the number of "
                f"classes, {n_classes}: at the optimum such a network never abstains. It is "
                "trained nevertheless, as in FD-Shifts"
            )
    return notes


def check_arm(arm: Arm) -> None:
    """Reject an unknown objective, unknown options, and lengths that the objective cannot have."""
    from abstain.training import OBJECTIVES

    objective = OBJECTIVES[arm.objective]
    for setting in arm.settings:
        recipe = arm.recipe_of(setting)
        share_options, total_length = objective.shares_of_stages(recipe.length, arm.stage_lengths)
        # The total must be a valid length of a recipe.
        total_length = recipe.with_length(total_length).length
        conflicts = sorted(set(objective.stages.values()) & set(setting.options))
        if arm.stage_lengths and conflicts:
            path = f"arms.{arm.name}"
            raise InputError(
                f"`{path}.stages` and the option `{conflicts[0]}` of {path} must not both be set"
            )
        objective.make(rng=0, **{**setting.options, **share_options}).plan(total_length)
