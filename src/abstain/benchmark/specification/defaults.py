"""What a benchmark trains and scores where nobody asks for anything else: data, in one place."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from abstain.benchmark.methods import METHODS
from abstain.benchmark.recipe import Recipe
from abstain.benchmark.specification.config import Arm
from abstain.benchmark.tasks import Task

__all__ = ["SEEDS", "default_arms", "default_methods"]

#: How many networks of each setting.
SEEDS: Final = 5

#: What networks are trained by; an arm has the name of its objective. Each tries no dropout and
#: that of the task, DeepGamblers also the rewards of the task (Jaeger et al. 2023, appendix E).
_KINDS: Final = ("cross-entropy", "confidnet", "devries", "deep-gamblers")

#: The stages of ConfidNet that a task gives epochs.
_BRANCH: Final = ("confidence", "fine-tune")

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
    if kind == "confidnet":
        # Its classifier is that of cross-entropy, and the branch comes on top.
        branch = {k: n for k, n in zip(_BRANCH, task.branch, strict=True) if n}
        own["stages"] = scaled(branch, recipe.epochs / task.recipe.epochs)
    rates = tuple(dict.fromkeys((0.0, task.dropout)))
    return Arm(kind, kind, recipe, **({"dropout": rates, "grid": grid} | own))
