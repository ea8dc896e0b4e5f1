"""`Arm`, which contains the settings of networks that are trained with one objective.

Only `check_arm` requires torch, because it creates the training objective.
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

#: Name of the arm of the ensembles over all seeds. No network is trained for this arm.
ENSEMBLE: Final = "ensemble"

#: Objectives whose first phase is the complete training of another objective.
INITIAL_OBJECTIVES: Final[Mapping[str, str]] = {"confidnet": "cross-entropy"}
#: Later phases of these objectives. For each phase, the values are the option with the share of the
#: phase in the training, and the default of this option.
LATER_PHASES: Final[Mapping[str, Mapping[str, tuple[str, float]]]] = {
    "confidnet": {"confidence": ("confidence_share", 0.45), "fine-tune": ("fine_tune", 0.0)}
}

#: Objectives that begin with a warm-up. The values are the default share of the warm-up, and the
#: options that have no effect during the warm-up. Settings that differ only in these options share
#: the warm-up.
WARM_UPS: Final[Mapping[str, tuple[float, tuple[str, ...]]]] = {
    "deep-gamblers": (1 / 3, ("reward",))
}

#: The objective with a reward for abstaining, the name of its option, and the default and the lower
#: limit of the option. `bench/tests/runs/test_rewards.py` compares these values with the objective.
_DEEP_GAMBLERS: Final = "deep-gamblers"
_REWARD_OPTION: Final = "reward"
_DEFAULT_REWARD: Final = 2.2
_MIN_REWARD: Final = 1.0

#: Pattern of the names of arms, which become part of file names.
ARM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")

#: Maximum number of settings of an arm. Each setting is trained with every seed.
_MAX_SETTINGS = 100


@dataclass(frozen=True)
class Setting:
    """One combination of the hyperparameters of an arm.

    For each method and metric, one setting of an arm is selected on the validation data.

    Attributes
    ----------
    dropout : float
        Dropout probability, or 0 for no dropout.
    options : mapping
        Options of the objective that differ from their defaults.
    grid_values : mapping
        Hyperparameters that distinguish the setting from the other settings of the arm.
    recipe_changes : mapping
        Fields of the recipe that differ from the recipe of the arm.
    """

    dropout: float
    options: Mapping[str, Any] = field(default_factory=dict)
    grid_values: Mapping[str, Any] = field(default_factory=dict)
    recipe_changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Label in file names and tables, for example "dropout0.3-reward2.2"."""
        return "-".join(f"{name}{format_value(value)}" for name, value in self.grid_values.items())


def format_value(value: Any) -> str:
    """Convert a value to text for file names."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def grid_combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return all combinations of the grid values. The last name varies fastest."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


@dataclass(frozen=True)
class Arm:
    """A set of networks that share a training objective but have different settings.

    Attributes
    ----------
    name : str
        Name in files and tables. The name consists of letters, digits, dots, hyphens and
        underscores.
    objective : str
        Name of the training objective in `abstain.training.OBJECTIVES`.
    recipe : Recipe
        Length, learning rate and other parameters of the training.
    dropout : tuple of float
        Dropout probabilities to try.
    options : mapping
        Options of the objective that are equal in all settings.
    option_grid : mapping from str to tuple
        Values to try for each option of the objective.
    stage_lengths : mapping from str to int
        Length of each later phase of the objective, in the unit of the recipe, which is steps or
        epochs. If the mapping is empty, all phases together have the length of the recipe.
    recipe_grid : mapping from str to tuple
        Values to try for each field of the recipe.

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
        self._check_n_settings()
        self._check_rewards()
        self._check_settings()

    def _check_n_settings(self) -> None:
        """Raise an error if the number of settings is too large, before they are created."""
        grid = [*self.option_grid.values(), *self.recipe_grid.values()]
        n_settings = math.prod([len(self.dropout), *map(len, grid)])
        if n_settings > _MAX_SETTINGS:
            raise InputError(
                f"the arm {self.name!r} must have at most {_MAX_SETTINGS} settings; "
                f"got {n_settings:,}"
            )

    def _check_settings(self) -> None:
        """Raise an error if two settings have the same label or if a recipe is invalid."""
        labels = [setting.label for setting in self.settings]
        if len(set(labels)) < len(labels):
            duplicate = next(label for label in labels if labels.count(label) > 1)
            raise InputError(
                f"the arm {self.name!r} has two settings named {duplicate!r}; choose values that "
                "differ more"
            )
        if self.recipe_grid:
            for setting in self.settings:
                self.recipe_of(setting)

    @property
    def rewards(self) -> tuple[Any, ...]:
        """Abstention rewards of all settings, or an empty tuple if the objective has no reward."""
        if self.objective != _DEEP_GAMBLERS:
            return ()
        fixed_reward = self.options.get(_REWARD_OPTION, _DEFAULT_REWARD)
        return tuple(self.option_grid.get(_REWARD_OPTION, (fixed_reward,)))

    def _check_rewards(self) -> None:
        """Raise an error if a reward is not a number above 1."""
        for reward in self.rewards:
            is_number = isinstance(reward, int | float) and not isinstance(reward, bool)
            if not is_number or not _MIN_REWARD < reward < math.inf:
                raise InputError(
                    f"`reward` of the arm {self.name!r} must be a number above 1; got {reward!r}"
                )

    def recipe_of(self, setting: Setting) -> Recipe:
        """Return the recipe of the arm, as modified by a setting."""
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
        """Return the length of the first phase, in which a classifier is trained."""
        length = self.recipe_of(setting).length
        if self.stage_lengths:
            # The length of the recipe does not include the later phases.
            return length
        phases = LATER_PHASES[self.objective].values()
        shares = [setting.options.get(option, default) for option, default in phases]
        nonzero_shares = [share for share in shares if share]
        first_share = 1.0
        for share in nonzero_shares:
            first_share -= share
        # Each phase has at least one epoch or step.
        longest = length - len(nonzero_shares)
        return min(max(round(first_share * length), 1), longest)

    def warm_up_setting(self, setting: Setting) -> Setting | None:
        """Return a setting with only the hyperparameters of the warm-up, or None without one."""
        default_share, later_options = WARM_UPS.get(self.objective, (0.0, ()))
        has_warm_up = self.stage_lengths or setting.options.get("warm_up", default_share)
        if not has_warm_up:
            return None
        options = {
            name: value for name, value in setting.options.items() if name not in later_options
        }
        return Setting(setting.dropout, options, recipe_changes=setting.recipe_changes)

    def _check_name(self) -> None:
        # A name from a file may have any type.
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
        """All combinations of the candidate dropout probabilities, options and recipe fields."""
        settings = []
        for dropout in self.dropout:
            for options in grid_combinations(self.option_grid):
                for changes in grid_combinations(self.recipe_grid):
                    recipe_values = {f"recipe.{name}": value for name, value in changes.items()}
                    grid_values = {"dropout": dropout, **options, **recipe_values}
                    all_options = {**self.options, **options}
                    settings.append(Setting(float(dropout), all_options, grid_values, changes))
        return tuple(settings)


#: Fields whose names in files differ from their names in `Arm`.
_KEYS_IN_FILES: Final = {
    "objective": "kind",
    "option_grid": "try",
    "stage_lengths": "stages",
    "recipe_grid": "try.recipe",
}


def reward_notes(arms: Sequence[Arm], n_classes: int) -> list[str]:
    """Return a note for each arm whose reward exceeds the number of classes.

    With such a high reward, networks learn never to abstain.

    Examples
    --------
    >>> from abstain_bench.runs.specification import Arm, Recipe
    >>> arm = Arm("dg", "deep-gamblers", Recipe(), option_grid={"reward": (2.0, 6.0, 15.0)})
    >>> [note.partition(":")[0] for note in reward_notes([arm], n_classes=2)]
    ['the rewards 6, 15 of the arm dg are above the number of classes, 2']
    """
    notes = []
    for arm in arms:
        too_high = [format_value(float(reward)) for reward in arm.rewards if reward > n_classes]
        if not too_high:
            continue
        subject = "the rewards" if len(too_high) > 1 else "the reward"
        verb = "are" if len(too_high) > 1 else "is"
        notes.append(
            f"{subject} {', '.join(too_high)} of the arm {arm.name} {verb} above the number of "
            f"classes, {n_classes}: at the optimum such a network never abstains. It is "
            "trained nevertheless, as in FD-Shifts"
        )
    return notes


def check_arm(arm: Arm) -> None:
    """Raise an error if the objective, an option or a phase length of an arm is invalid."""
    from abstain.training import OBJECTIVES

    objective = OBJECTIVES[arm.objective]
    for setting in arm.settings:
        recipe = arm.recipe_of(setting)
        share_options, total_length = objective.shares_of_stages(recipe.length, arm.stage_lengths)
        # `with_length` raises an error if a recipe cannot have the total length.
        recipe.with_length(total_length)
        conflicts = sorted(set(objective.stages.values()) & set(setting.options))
        if arm.stage_lengths and conflicts:
            path = f"arms.{arm.name}"
            raise InputError(
                f"`{path}.stages` and the option `{conflicts[0]}` of {path} must not both be set"
            )
        # An invalid option raises an error.
        objective.make(rng=0, **{**setting.options, **share_options}).plan(total_length)
