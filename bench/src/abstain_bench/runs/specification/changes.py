"""Changes of a configuration, as the options of the command line request them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

from abstain._foundation.records import NonBlankText, between, check_value
from abstain.errors import InputError, UnknownNameError, suggest
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.specification.arms import Arm
from abstain_bench.runs.specification.config import (
    Config,
    check_config,
    default_methods,
    scale_stages,
)

__all__ = ["update_config"]

#: Maximum number of seeds.
_MAX_SEEDS: Final = 1000


def update_config(
    config: Config,
    *,
    seeds: int | Sequence[int] | None = None,
    arms: Sequence[str] | None = None,
    folder: str | Path | None = None,
    epochs: int | None = None,
    model: str | None = None,
    samples: int | None = None,
    methods: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    corruptions: Sequence[str] | None = None,
    severities: Sequence[int] | None = None,
    precision: str | None = None,
    weights: str | Path | None = None,
    side: int | None = None,
) -> Config:
    """Return a configuration with changed fields; None leaves a field as it is.

    If `methods` is None, the methods follow the changed arms, passes and seeds. If only `methods`
    is set, only the arms that these methods score are trained.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config, update_config
    >>> small = update_config(default_config("glyphs"), seeds=1, arms=["confidnet"], samples=0)
    >>> small.methods
    ('confidnet',)
    """
    changes = _requested_fields(
        seeds=None if seeds is None else parse_seeds(seeds, config.seeds),
        folder=None if folder is None else expand_folder(str(folder)),
        arms=None if arms is None else _select_arms(config.arms, arms),
        model=model,
        samples=samples,
        methods=methods,
        metrics=metrics,
        corruptions=corruptions,
        severities=severities,
        precision=precision,
        weights=None if weights is None else expand_folder(str(weights)),
        side=side,
    )
    if methods is None:
        changes["methods"] = _updated_methods(config, changes)
    elif arms is None:
        changes["arms"] = arms_for_methods(methods, config.arms)
    if epochs is not None:
        # Last, because arms that are not trained may need more epochs.
        changes["arms"] = _with_epochs(changes.get("arms", config.arms), epochs)
    changed_config = replace(config, **changes)
    _check_methods(changed_config)
    return changed_config


def _requested_fields(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None; lists become tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items() if v is not None}


def _check_methods(config: Config) -> None:
    """Reject unknown names, and methods whose inputs the benchmark does not compute."""
    check_config(config)
    missing = {}
    if not config.samples:
        missing["samples"] = "passes with dropout, and `samples` is 0"
    if len(config.seeds) < 2:
        missing["ensemble"] = "several networks, and there is only one seed"
    for name in config.methods:
        for need in METHODS[name].needs:
            if need in missing:
                raise InputError(f"the method {name!r} needs {missing[need]}")


def arms_for_methods(methods: Any, arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """Return the arms that some of the methods score; all arms if there is none."""
    names = [check_value(name, NonBlankText, "methods") for name in as_tuple(methods, "methods")]
    objectives = {METHODS[name].objective for name in names}
    # With all arms, the check of the methods raises the error.
    return tuple(arm for arm in arms if arm.objective in objectives) or tuple(arms)


def _updated_methods(config: Config, changes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the methods for changed arms, passes and seeds; all available if it had all before."""
    before = _default_methods_of(config)
    after = _default_methods_of(replace(config, **changes))
    if set(config.methods) == set(before):
        return after
    return tuple(name for name in config.methods if name in after or name not in before)


def _default_methods_of(config: Config) -> tuple[str, ...]:
    objectives = [arm.objective for arm in config.arms]
    return default_methods(objectives, config.samples, config.seeds)


def _select_arms(arms: Sequence[Arm], names: Sequence[str]) -> tuple[Arm, ...]:
    by_name = {arm.name: arm for arm in arms}
    names = as_tuple(names, "arms")
    for name in names:
        if name not in by_name:
            raise UnknownNameError(
                f"there is no arm {name!r}.{suggest(name, by_name)} The arms are: "
                f"{', '.join(by_name)}"
            )
    return tuple(by_name[name] for name in names)


def _with_epochs(arms: Sequence[Arm], epochs: int) -> tuple[Arm, ...]:
    return tuple(
        replace(
            arm,
            recipe=_recipe_in_epochs(arm.recipe, epochs),
            stage_lengths=scale_stages(arm.stage_lengths, epochs / arm.recipe.length),
        )
        for arm in arms
    )


def _recipe_in_epochs(recipe: Recipe, epochs: int) -> Recipe:
    """Return a recipe that lasts `epochs` epochs, without a number of steps."""
    if not recipe.steps:
        return replace(recipe, epochs=epochs)
    return replace(recipe, epochs=epochs, steps=0, warm_up_steps=0)


def parse_seeds(seeds: Any, initial: Sequence[int] = ()) -> tuple[int, ...]:
    """Return the seeds of a list, or as many seeds as a number requests.

    A number takes the `initial` seeds first, then the integers after the largest of them.
    """
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        count = check_value(seeds, Annotated[int, between(1, _MAX_SEEDS)], "seeds")
        first_new = max(initial, default=-1) + 1
        return (*initial, *range(first_new, first_new + count))[:count]
    return as_tuple(seeds, "seeds")


def expand_folder(folder: Any) -> str:
    """Return a folder as text with an expanded tilde; an empty text stays empty."""
    return (
        str(Path(check_value(folder, NonBlankText, "folder")).expanduser()) if folder != "" else ""
    )


def as_tuple(values: Any, name: str) -> tuple[Any, ...]:
    """Return a list as a tuple; other types are rejected."""
    if not isinstance(values, list | tuple):
        raise InputError(f"`{name}` must be a list; got {values!r}")
    return tuple(values)
