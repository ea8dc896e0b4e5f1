"""A configuration as plain values and as the tables of TOML, and back.

A manifest has the fields of a configuration beside each other, TOML has them in tables; one is
made into the other, so there is one reader.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from typing import Any, Final

from abstain._foundation.optional_packages import is_installed
from abstain._foundation.records import NonBlankText, check_value
from abstain._foundation.toml import check_field_names, get_table
from abstain.errors import InputError
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.specification.arms import Arm, look_up_arm
from abstain_bench.runs.specification.changes import (
    folder_of,
    seeds_of,
    trained_for,
    tuple_of,
)
from abstain_bench.runs.specification.config import (
    SEEDS,
    Config,
    Samples,
    default_arms,
    default_methods,
    look_up,
)
from abstain_bench.runs.tasks import TASKS, Sizes, Task

__all__ = ["flat", "from_plain", "from_run", "plain", "tables_of"]

#: The fields of each table.
_TABLES: Final = {
    "benchmark": ("task", "seeds", "metrics", "methods", "samples", "precision", "folder"),
    "exposures": ("corruptions", "severities"),
    "model": ("name", "weights", "side"),
}
#: Fields that are left out of manifests where the task says the same, as runs at first had none.
_LATER: Final = ("data", "variation", "weights", "side")
#: Of `Config`, and what its arms have in common.
_FIELDS: Final = (*_TABLES["benchmark"], *_TABLES["exposures"], "model", *_LATER, "recipe", "arms")
_OF_DATA: Final = tuple(f.name for f in fields(Sizes) if f.name != "records")
_OF_RECIPE: Final = tuple(f.name for f in fields(Recipe))
_OF_ARM: Final = ("kind", "dropout", "options", "try", "recipe", "stages")


def from_plain(found: Mapping[str, Any]) -> Config:
    """Make a configuration of plain values, such as `plain` returns.

    Examples
    --------
    >>> from abstain_bench.runs.specification import from_plain
    >>> from_plain({"task": "glyphs", "recipe": {"epochs": 3}}).arms[0].recipe.epochs
    3
    """
    check_field_names(found, _FIELDS, "the configuration")
    own = dict(found)
    if "task" not in own:
        raise InputError(f"`task` must name the task: one of {', '.join(TASKS)}")
    task = TASKS[check_value(own.pop("task"), NonBlankText, "task")]
    handled = _handled(task, own)
    recipe = recipe_of(get_table(own, "recipe"), "[recipe]", task.recipe)
    named = get_table(own, "arms")
    arms = tuple(_arm(name, get_table(named, name, "arms"), recipe) for name in named)
    for arm in arms if is_installed("torch") else ():
        _look_up_named(arm)
    seeds = seeds_of(own.pop("seeds", SEEDS))
    samples = check_value(own.pop("samples", Config.samples), Samples, "samples")
    methods = own.pop("methods", None)
    if not arms:
        # Only those: what is not trained may need more epochs than this recipe has.
        whole_arms = default_arms(task, task.recipe)
        wanted = whole_arms if methods is None else trained_for(methods, whole_arms)
        arms = default_arms(task, recipe, [arm.kind for arm in wanted])
    if methods is None:
        methods = default_methods([arm.kind for arm in arms], samples, seeds)
    config = Config(
        task=task.name,
        arms=arms,
        seeds=seeds,
        model=own.pop("model", task.model),
        methods=tuple_of(methods, "methods"),
        samples=samples,
        folder=folder_of(own.pop("folder", "")),
        weights=folder_of(own.pop("weights", "")),
        **handled,
        **{name: _tuples(own[name]) for name in own if name not in {"recipe", "arms"}},
    )
    look_up(config)
    return config


def from_run(found: Mapping[str, Any]) -> Config:
    """Make a configuration of the plain values in a manifest, on a machine without torch too.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config, from_run, plain
    >>> config = default_config("digits")
    >>> from_run(plain(config)) == config
    True
    """
    recipe = Recipe(**found["recipe"])
    arms = tuple(_arm(name, own, recipe) for name, own in found["arms"].items())
    given = [name for name in _FIELDS if name in found and name not in {"recipe", "arms", "data"}]
    data = Sizes(**found["data"]) if "data" in found else None
    return Config(arms=arms, data=data, **{name: _tuples(found[name]) for name in given})


def plain(config: Config) -> dict[str, Any]:
    """Return a configuration as plain values, for JSON.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config, from_plain, plain
    >>> config = default_config("digits")
    >>> from_plain(plain(config)) == config
    True
    """
    base = config.arms[0].recipe
    own = {name: getattr(config, name) for name in _FIELDS if name not in {"recipe", "arms"}}
    own = {name: list(x) if isinstance(x, tuple) else x for name, x in own.items()}
    if config.data is not None:
        own["data"] = config.data.said()
    if config.variation is not None:
        own["variation"] = dict(config.variation)
    unsaid = [name for name in _LATER if getattr(config, name) == getattr(Config, name)]
    own = {name: x for name, x in own.items() if name not in unsaid}
    return own | {
        "recipe": base.said(),
        "arms": {arm.name: _plain_arm(arm, asdict(base)) for arm in config.arms},
    }


def tables_of(config: Config) -> dict[str, Any]:
    """Return a configuration as the tables of TOML.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config, tables_of
    >>> tables_of(default_config("digits"))["model"]
    {'name': 'small-conv', 'weights': '', 'side': 0}
    """
    found, task = plain(config), TASKS[config.task]
    tables: dict[str, Any] = {
        name: {key: found[key] for key in _TABLES[name]} for name in ("benchmark", "exposures")
    }
    tables["model"] = {"name": config.model, "weights": config.weights, "side": config.side}
    if task.needs_folder:
        tables["data"] = (config.data or Sizes()).said()
    changed = task.variation if config.variation is None else config.variation
    tables |= {"variation": dict(changed), "recipe": asdict(config.arms[0].recipe)}
    return tables | {"arms": found["arms"]}


def flat(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a configuration from the tables of TOML."""
    whole = ("data", "variation", "recipe", "arms")
    check_field_names(found, (*_TABLES, *whole), "the configuration")
    tables = {name: get_table(found, name) for name in _TABLES}
    for name, known in _TABLES.items():
        check_field_names(tables[name], known, f"[{name}]")
    own = {**tables["benchmark"], **tables["exposures"], **tables["model"]}
    if "name" in own:
        own["model"] = own.pop("name")
    return own | {name: found[name] for name in whole if name in found}


def _handled(task: Task, own: dict[str, Any]) -> dict[str, Any]:
    """Take the data and the variation out of the fields; None where the task says the same."""
    data, changes = get_table(own, "data"), get_table(own, "variation")
    check_field_names(data, _OF_DATA, "[data]")
    with named("[data]"):
        sizes = Sizes(**data)
    asked = "variation" in own and changes != dict(task.variation)
    own.pop("data", None)
    own.pop("variation", None)
    return {"data": None if sizes == Sizes() else sizes, "variation": changes if asked else None}


def _arm(name: str, own: Mapping[str, Any], base: Recipe) -> Arm:
    where = f"[arms.{name}]"
    check_field_names(own, _OF_ARM, where)
    options, grid, recipe, stages = (
        get_table(own, part, f"arms.{name}") for part in ("options", "try", "recipe", "stages")
    )
    recipes = get_table(grid, "recipe", f"arms.{name}.try")
    grid.pop("recipe", None)
    # An arm of that name needs no other word about what it is.
    kind = own.get("kind", name)
    rates = own.get("dropout", 0.0)
    rates = rates if isinstance(rates, list) else [rates]
    rates = [float(rate) if type(rate) is int else rate for rate in rates]
    tried = {key: tuple_of(values, f"arms.{name}.try.{key}") for key, values in grid.items()}
    also = {key: tuple_of(x, f"arms.{name}.try.recipe.{key}") for key, x in recipes.items()}
    own_recipe = recipe_of(recipe, f"[arms.{name}.recipe]", base)
    with named(where):
        return Arm(name, kind, own_recipe, tuple(rates), options, tried, stages, also)


def _look_up_named(arm: Arm) -> None:
    """Look up an arm of a file: errors name its tables."""
    from abstain.training import OBJECTIVES

    for part, what in ((arm.options, "options"), (arm.grid, "try")):
        check_field_names(part, OBJECTIVES[arm.kind].options, f"[arms.{arm.name}.{what}]")
    with named(f"[arms.{arm.name}]"):
        look_up_arm(arm)


def _plain_arm(arm: Arm, base: Mapping[str, Any]) -> dict[str, Any]:
    recipe = {name: value for name, value in asdict(arm.recipe).items() if base[name] != value}
    found = {
        "kind": arm.kind,
        "dropout": list(arm.dropout),
        "options": dict(arm.options),
        "try": {
            **{name: list(values) for name, values in arm.grid.items()},
            **({"recipe": {k: list(x) for k, x in arm.recipes.items()}} if arm.recipes else {}),
        },
        "recipe": recipe,
        "stages": dict(arm.stages),
    }
    return {name: value for name, value in found.items() if value}


def recipe_of(given: Mapping[str, Any], where: str, base: Recipe) -> Recipe:
    """Return a recipe with what a table says otherwise; `where` names the table in errors."""
    check_field_names(given, _OF_RECIPE, where)
    with named(where):
        return replace(base, **given)


@contextmanager
def named(where: str) -> Iterator[None]:
    """Name the table, or the file, that a wrong field stands in."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _tuples(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given
