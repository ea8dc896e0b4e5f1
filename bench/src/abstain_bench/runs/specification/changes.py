"""A configuration with something asked for otherwise, as the command line does."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

from abstain._foundation.records import NonBlankText, between, check_value
from abstain.errors import InputError, UnknownNameError, suggest
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.specification.arms import Arm
from abstain_bench.runs.specification.config import Config, default_methods, look_up, scaled

__all__ = ["changed"]

#: The most seeds that can be asked for.
_MOST_SEEDS: Final = 1000


def changed(
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
    """Return the configuration with what was asked for otherwise.

    Examples
    --------
    >>> from abstain_bench.runs.specification import changed, default_config
    >>> few = changed(default_config("glyphs"), seeds=1, arms=["confidnet"], samples=0)
    >>> few.methods
    ('confidnet',)
    """
    asked = _given(
        seeds=None if seeds is None else seeds_of(seeds, config.seeds),
        folder=None if folder is None else folder_of(str(folder)),
        arms=None if arms is None else _named_arms(config.arms, arms),
        model=model,
        samples=samples,
        methods=methods,
        metrics=metrics,
        corruptions=corruptions,
        severities=severities,
        precision=precision,
        weights=None if weights is None else folder_of(str(weights)),
        side=side,
    )
    if methods is None:
        asked["methods"] = _methods_left(config, asked)
    elif arms is None:
        asked["arms"] = trained_for(methods, config.arms)
    if epochs is not None:
        # Last: arms that are not trained may need more.
        asked["arms"] = _shortened(asked.get("arms", config.arms), epochs)
    return _checked(replace(config, **asked))


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are asked for, as a configuration has them."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items() if v is not None}


def _checked(config: Config) -> Config:
    """Refuse names that are not there, and methods that could never give a number.

    Before anything is trained for them.
    """
    look_up(config)
    lacking = {} if config.samples else {"samples": "passes with dropout, and `samples` is 0"}
    if len(config.seeds) < 2:
        lacking["ensemble"] = "networks to put together, and there is one seed"
    for name in config.methods:
        for need in METHODS[name].needs:
            if need in lacking:
                raise InputError(f"the method {name!r} needs {lacking[need]}")
    return config


def trained_for(methods: Any, arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """Return the arms whose networks some method scores; all where none does, to be refused."""
    named = [
        METHODS[check_value(name, NonBlankText, "methods")] for name in tuple_of(methods, "methods")
    ]
    kinds = {method.objective for method in named}
    return tuple(arm for arm in arms if arm.kind in kinds) or tuple(arms)


def _methods_left(config: Config, asked: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the methods for other arms, samples and seeds: all again if it was all before."""
    own, all_own = (
        default_methods(
            [arm.kind for arm in from_.get("arms", config.arms)],
            from_.get("samples", config.samples),
            from_.get("seeds", config.seeds),
        )
        for from_ in (asked, {})
    )
    if set(config.methods) == set(all_own):
        return own
    return tuple(name for name in config.methods if name in own or name not in all_own)


def _named_arms(arms: Sequence[Arm], names: Sequence[str]) -> tuple[Arm, ...]:
    by_name = {arm.name: arm for arm in arms}
    names = tuple_of(names, "arms")
    for name in names:
        if name not in by_name:
            there = ", ".join(by_name)
            raise UnknownNameError(
                f"there is no arm named {name!r}.{suggest(name, by_name)} There are {there}."
            )
    return tuple(by_name[name] for name in names)


def _shortened(arms: Sequence[Arm], epochs: int) -> tuple[Arm, ...]:
    return tuple(
        replace(
            arm,
            recipe=_in_epochs(arm.recipe, epochs),
            stages=scaled(arm.stages, epochs / arm.recipe.length),
        )
        for arm in arms
    )


def _in_epochs(recipe: Recipe, epochs: int) -> Recipe:
    """Return a recipe of so many epochs; of steps it has none then, and no warm-up of these."""
    if not recipe.steps:
        return replace(recipe, epochs=epochs)
    return replace(recipe, epochs=epochs, steps=0, warm_up_steps=0)


def seeds_of(given: Any, own: Sequence[int] = ()) -> tuple[int, ...]:
    """Return the seeds of a list, or as many as a number says: those given before, then more."""
    if isinstance(given, int) and not isinstance(given, bool):
        count = check_value(given, Annotated[int, between(1, _MOST_SEEDS)], "seeds")
        after = max(own, default=-1) + 1
        return (*own, *range(after, after + count))[:count]
    return tuple_of(given, "seeds")


def folder_of(given: Any) -> str:
    """Return a folder as a text, with the home folder for its tilde; empty stays empty."""
    return str(Path(check_value(given, NonBlankText, "folder")).expanduser()) if given != "" else ""


def tuple_of(given: Any, name: str) -> tuple[Any, ...]:
    """Return a list as a tuple."""
    if not isinstance(given, list | tuple):
        raise InputError(f"`{name}` must be a list; got {given!r}")
    return tuple(given)
