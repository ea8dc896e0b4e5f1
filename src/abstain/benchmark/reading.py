"""A configuration from its task alone or from TOML, and as plain values.

A manifest has the fields of a configuration beside each other, TOML has them in tables; one is
made into the other, so there is one reader.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final, Unpack

from abstain._foundation.toml_fields import read_toml, refuse_unknown, table, text
from abstain.benchmark.changes import (
    Changes,
    changed,
    folder_of,
    seeds_of,
    trained_for,
    tuple_of,
)
from abstain.benchmark.config import Arm, Config, whole
from abstain.benchmark.defaults import SEEDS, default_arms, default_methods
from abstain.benchmark.recipe import Recipe
from abstain.benchmark.tasks import TASKS
from abstain.errors import InputError
from abstain.training import OBJECTIVES

__all__ = [
    "Changes",
    "changed",
    "default_config",
    "from_plain",
    "plain",
    "read_config",
    "tables_of",
]

#: The fields of each table.
_TABLES: Final = {
    "benchmark": ("task", "seeds", "metrics", "methods", "samples", "precision", "folder"),
    "exposures": ("corruptions", "severities"),
    "model": ("name",),
}
#: Of `Config`, and what its arms have in common.
_FIELDS: Final = (*_TABLES["benchmark"], *_TABLES["exposures"], "model", "recipe", "arms")
_OF_RECIPE: Final = tuple(f.name for f in fields(Recipe))
_OF_ARM: Final = ("kind", "dropout", "options", "try", "recipe", "stages")


def default_config(task: str, **changes: Unpack[Changes]) -> Config:
    """Return the configuration of a task for which nothing is written down.

    Parameters
    ----------
    task : str
        In `TASKS`.
    **changes : dict
        As for `changed`.

    Returns
    -------
    Config
        The papers' four ways to train, each method that scores one of them, all exposures.

    Raises
    ------
    InputError
        There is no such task, or a change that cannot be.

    Examples
    --------
    >>> from abstain.benchmark.reading import default_config
    >>> config = default_config("glyphs", seeds=2)
    >>> config.seeds, [arm.name for arm in config.arms]
    ((0, 1), ['cross-entropy', 'confidnet', 'devries', 'deep-gamblers'])
    """
    return changed(from_plain({"task": task}), **changes)


def read_config(path: str | Path) -> Config:
    r"""Read a configuration from a TOML file.

    Parameters
    ----------
    path : str or Path
        The file; what it does not say is as in `default_config`.

    Returns
    -------
    Config
        What it describes.

    Raises
    ------
    InputError
        The file cannot be read, or a field of it is wrong: the error names it.
    FileFormatError
        The file is no TOML.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain.benchmark.reading import read_config
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.toml"
    ...     _ = path.write_text('[benchmark]\ntask = "digits"\nseeds = [3]\n[arms.devries]')
    ...     read_config(path).methods
    ('devries',)
    """
    place = Path(path)
    found = read_toml(place)
    try:
        return from_plain(_flat(found))
    except InputError as error:
        msg = f"{place.name}: {error}"
        raise InputError(msg) from None


def from_plain(found: Mapping[str, Any]) -> Config:
    """Make a configuration of plain values, such as `plain` returns.

    Parameters
    ----------
    found : mapping
        The fields of `Config`, the task at least; "arms" by name, and "recipe", which all arms
        begin with.

    Returns
    -------
    Config
        What is not said is as in `default_config`.

    Raises
    ------
    InputError
        A field that does not exist or has a value that cannot be.

    Examples
    --------
    >>> from abstain.benchmark.reading import from_plain
    >>> from_plain({"task": "glyphs", "recipe": {"epochs": 3}}).arms[0].recipe.epochs
    3
    """
    refuse_unknown(found, _FIELDS, "the configuration")
    own = dict(found)
    if "task" not in own:
        msg = f"`task` must name the task: one of {', '.join(TASKS)}"
        raise InputError(msg)
    task = TASKS[text(own.pop("task"), "task")]
    recipe = _recipe(table(own, "recipe"), "[recipe]", task.recipe)
    named = table(own, "arms")
    arms = tuple(_arm(name, table(named, name, "arms"), recipe) for name in named)
    seeds = seeds_of(own.pop("seeds", SEEDS))
    samples = whole(own.pop("samples", Config.samples), "samples", 0, 1000)
    methods = own.pop("methods", None)
    if not arms:
        # Only those: what is not trained may need more epochs than this recipe has.
        whole_arms = default_arms(task, task.recipe)
        wanted = whole_arms if methods is None else trained_for(methods, whole_arms)
        arms = default_arms(task, recipe, [arm.kind for arm in wanted])
    if methods is None:
        methods = default_methods([arm.kind for arm in arms], samples, seeds)
    return Config(
        task=task.name,
        arms=arms,
        seeds=seeds,
        model=own.pop("model", task.model),
        methods=tuple_of(methods, "methods"),
        samples=samples,
        folder=folder_of(own.pop("folder", "")),
        **{name: _tuples(own[name]) for name in own if name not in {"recipe", "arms"}},
    )


def plain(config: Config) -> dict[str, Any]:
    """Return a configuration as plain values, for JSON.

    Parameters
    ----------
    config : Config
        Any.

    Returns
    -------
    dict
        What `from_plain` makes the same configuration of; nothing is left to defaults.

    Examples
    --------
    >>> from abstain.benchmark.reading import default_config, from_plain, plain
    >>> config = default_config("digits")
    >>> from_plain(plain(config)) == config
    True
    """
    base = asdict(config.arms[0].recipe)
    own = {
        name: _lists(getattr(config, name)) for name in _FIELDS if name not in {"recipe", "arms"}
    }
    return own | {
        "recipe": base,
        "arms": {arm.name: _plain_arm(arm, base) for arm in config.arms},
    }


def tables_of(config: Config) -> dict[str, Any]:
    """Return a configuration as the tables of TOML.

    Parameters
    ----------
    config : Config
        Any.

    Returns
    -------
    dict
        Tables by name, of plain values; `read_config` reads them from a file.

    Examples
    --------
    >>> from abstain.benchmark.reading import default_config, tables_of
    >>> tables_of(default_config("digits"))["model"]
    {'name': 'small-conv'}
    """
    found = plain(config)
    tables = {
        name: {key: found[key] for key in _TABLES[name]} for name in ("benchmark", "exposures")
    }
    return tables | {"model": {"name": found["model"]}} | {k: found[k] for k in ("recipe", "arms")}


def _flat(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a configuration from the tables of TOML."""
    refuse_unknown(found, (*_TABLES, "recipe", "arms"), "the configuration")
    tables = {name: table(found, name) for name in _TABLES}
    for name, known in _TABLES.items():
        refuse_unknown(tables[name], known, f"[{name}]")
    own = {**tables["benchmark"], **tables["exposures"]}
    if "name" in tables["model"]:
        own["model"] = tables["model"]["name"]
    return own | {name: found[name] for name in ("recipe", "arms") if name in found}


def _arm(name: str, own: Mapping[str, Any], base: Recipe) -> Arm:
    where = f"[arms.{name}]"
    refuse_unknown(own, _OF_ARM, where)
    options, grid, recipe, stages = (
        table(own, part, f"arms.{name}") for part in ("options", "try", "recipe", "stages")
    )
    # An arm of that name needs no other word about what it is.
    kind = text(own.get("kind", name), f"arms.{name}.kind")
    for part, what in ((options, "options"), (grid, "try")):
        refuse_unknown(part, OBJECTIVES[kind].options, f"[arms.{name}.{what}]")
    rates = own.get("dropout", 0.0)
    rates = rates if isinstance(rates, list) else [rates]
    if not all(isinstance(rate, int | float) and not isinstance(rate, bool) for rate in rates):
        msg = f"`arms.{name}.dropout` must be a number or a list of numbers; got {rates!r}"
        raise InputError(msg)
    tried = {key: tuple_of(values, f"arms.{name}.try.{key}") for key, values in grid.items()}
    own_recipe = _recipe(recipe, f"[arms.{name}.recipe]", base)
    try:
        return Arm(name, kind, own_recipe, tuple(map(float, rates)), options, tried, stages)
    except InputError as error:
        msg = f"{where}: {error}"
        raise InputError(msg) from None


def _plain_arm(arm: Arm, base: Mapping[str, Any]) -> dict[str, Any]:
    recipe = {name: value for name, value in asdict(arm.recipe).items() if base[name] != value}
    found = {
        "kind": arm.kind,
        "dropout": list(arm.dropout),
        "options": dict(arm.options),
        "try": {name: list(values) for name, values in arm.grid.items()},
        "recipe": recipe,
        "stages": dict(arm.stages),
    }
    return {name: value for name, value in found.items() if value}


def _recipe(given: Mapping[str, Any], where: str, base: Recipe) -> Recipe:
    refuse_unknown(given, _OF_RECIPE, where)
    try:
        return replace(base, **given)
    except InputError as error:
        msg = f"{where}: {error}"
        raise InputError(msg) from None


def _lists(given: Any) -> Any:
    return list(given) if isinstance(given, tuple) else given


def _tuples(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given
