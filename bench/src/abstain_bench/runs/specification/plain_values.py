"""Convert configurations to and from plain values and TOML tables.

In a manifest, a configuration is stored as a single mapping. In a TOML file, it is divided into
tables, which are converted to this mapping.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Annotated, Any, Final

from abstain._foundation.lazy_imports import is_installed
from abstain._foundation.records import NonBlankText, between, check_value
from abstain._foundation.toml import check_field_names, get_table
from abstain.errors import InputError
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.specification.arms import Arm, check_arm
from abstain_bench.runs.specification.config import (
    N_SEEDS,
    Config,
    SampleCount,
    check_config,
    default_arms,
    default_methods,
)
from abstain_bench.runs.tasks import TASKS, Sizes, Task

#: Maximum number of seeds.
_MAX_SEEDS: Final = 1000
#: The fields of each TOML table.
_TABLES: Final = {
    "benchmark": ("task", "seeds", "metrics", "methods", "samples", "precision", "folder"),
    "exposures": ("corruptions", "severities"),
    "model": ("name", "weights", "side"),
}
#: Fields that a manifest omits if they have their defaults, because the first version of `Config`
#: did not have them.
_FIELDS_ADDED_LATER: Final = ("data", "variation", "weights", "side")
#: All fields of `Config`, and the recipe that all arms share.
_FIELDS: Final = (
    *_TABLES["benchmark"],
    *_TABLES["exposures"],
    "model",
    *_FIELDS_ADDED_LATER,
    "recipe",
    "arms",
)
_DATA_FIELDS: Final = tuple(f.name for f in fields(Sizes) if f.name != "records")
_RECIPE_FIELDS: Final = tuple(f.name for f in fields(Recipe))
_ARM_FIELDS: Final = ("kind", "dropout", "options", "try", "recipe", "stages")


def from_plain(fields_: Mapping[str, Any]) -> Config:
    """Create a configuration from plain values, and validate it.

    Missing fields have the default values of the task.

    Examples
    --------
    >>> from abstain_bench.runs.specification import from_plain
    >>> from_plain({"task": "glyphs", "recipe": {"epochs": 3}}).arms[0].recipe.epochs
    3
    """
    check_field_names(fields_, _FIELDS, "the configuration")
    if "task" not in fields_:
        raise InputError(f"`task` must name the task: one of {', '.join(TASKS)}")
    task = TASKS[check_value(fields_["task"], NonBlankText, "task")]
    recipe = update_recipe(task.recipe, get_table(fields_, "recipe"), "[recipe]")
    arm_tables = get_table(fields_, "arms")
    arms = tuple(
        _parse_arm(name, get_table(arm_tables, name, "arms"), recipe) for name in arm_tables
    )
    if is_installed("torch"):
        _check_options(arms)
    seeds = parse_seeds(fields_.get("seeds", N_SEEDS))
    samples = check_value(fields_.get("samples", Config.samples), SampleCount, "samples")
    methods = fields_.get("methods")
    if not arms:
        # The recipe may have too few epochs for an arm that is not trained.
        all_arms = default_arms(task, task.recipe)
        selected = all_arms if methods is None else arms_for_methods(methods, all_arms)
        arms = default_arms(task, recipe, [arm.objective for arm in selected])
    if methods is None:
        methods = default_methods([arm.objective for arm in arms], samples, seeds)
    other_names = ("metrics", "precision", "corruptions", "severities", "side")
    config = Config(
        task=task.name,
        arms=arms,
        seeds=seeds,
        model=fields_.get("model", task.model),
        methods=as_tuple(methods, "methods"),
        samples=samples,
        folder=expand_folder(fields_.get("folder", "")),
        weights=expand_folder(fields_.get("weights", "")),
        **_parse_data_and_variation(task, fields_),
        **{name: _list_to_tuple(fields_[name]) for name in other_names if name in fields_},
    )
    check_config(config)
    return config


def _check_options(arms: Sequence[Arm]) -> None:
    """Raise an error if the objective or an option of an arm is invalid. This requires torch."""
    from abstain.training import OBJECTIVES

    for arm in arms:
        option_names = OBJECTIVES[arm.objective].options
        check_field_names(arm.options, option_names, f"[arms.{arm.name}.options]")
        check_field_names(arm.option_grid, option_names, f"[arms.{arm.name}.try]")
        with prefix_errors(f"[arms.{arm.name}]"):
            check_arm(arm)


def from_run(fields_: Mapping[str, Any]) -> Config:
    """Create a configuration from the values in a manifest, without checks that require torch.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config, from_run, to_plain
    >>> config = default_config("digits")
    >>> from_run(to_plain(config)) == config
    True
    """
    recipe = Recipe(**fields_["recipe"])
    arms = tuple(_parse_arm(name, arm, recipe) for name, arm in fields_["arms"].items())
    data = Sizes(**fields_["data"]) if "data" in fields_ else None
    other_names = [name for name in _FIELDS if name not in {"recipe", "arms", "data"}]
    other_fields = {name: _list_to_tuple(fields_[name]) for name in other_names if name in fields_}
    return Config(arms=arms, data=data, **other_fields)


def to_plain(config: Config) -> dict[str, Any]:
    """Convert a configuration to values that can be stored as JSON.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config, from_plain, to_plain
    >>> config = default_config("digits")
    >>> from_plain(to_plain(config)) == config
    True
    """
    base_recipe = config.arms[0].recipe
    plain: dict[str, Any] = {}
    for name in _FIELDS:
        if name in {"recipe", "arms"}:
            continue
        field = getattr(config, name)
        if name in _FIELDS_ADDED_LATER and field == getattr(Config, name):
            continue
        plain[name] = list(field) if isinstance(field, tuple) else field
    if config.data is not None:
        plain["data"] = config.data.to_dict()
    if config.variation is not None:
        plain["variation"] = dict(config.variation)
    plain["recipe"] = base_recipe.to_dict()
    plain["arms"] = {arm.name: _arm_to_plain(arm, base_recipe) for arm in config.arms}
    return plain


def to_toml_tables(config: Config) -> dict[str, Any]:
    """Convert a configuration to the tables of a TOML file.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config, to_toml_tables
    >>> to_toml_tables(default_config("digits"))["model"]
    {'name': 'small-conv', 'weights': '', 'side': 0}
    """
    plain = to_plain(config)
    task = TASKS[config.task]
    tables: dict[str, Any] = {
        name: {key: plain[key] for key in _TABLES[name]} for name in ("benchmark", "exposures")
    }
    tables["model"] = {"name": config.model, "weights": config.weights, "side": config.side}
    if task.needs_folder:
        tables["data"] = (config.data or Sizes()).to_dict()
    variation = task.variation if config.variation is None else config.variation
    tables["variation"] = dict(variation)
    tables["recipe"] = asdict(config.arms[0].recipe)
    tables["arms"] = plain["arms"]
    return tables


def from_toml_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the tables of a TOML file to configuration fields."""
    same_in_both = ("data", "variation", "recipe", "arms")
    check_field_names(tables, (*_TABLES, *same_in_both), "the configuration")
    fields_: dict[str, Any] = {}
    for name, field_names in _TABLES.items():
        fields_of_table = get_table(tables, name)
        check_field_names(fields_of_table, field_names, f"[{name}]")
        fields_ |= fields_of_table
    if "name" in fields_:
        fields_["model"] = fields_.pop("name")
    return fields_ | {name: tables[name] for name in same_in_both if name in tables}


def _parse_data_and_variation(task: Task, fields_: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields `data` and `variation`; a field is None if the task has the same value."""
    data = get_table(fields_, "data")
    variation = get_table(fields_, "variation")
    check_field_names(data, _DATA_FIELDS, "[data]")
    with prefix_errors("[data]"):
        sizes = Sizes(**data)
    has_variation = "variation" in fields_ and variation != dict(task.variation)
    return {
        "data": None if sizes == Sizes() else sizes,
        "variation": variation if has_variation else None,
    }


def _parse_arm(name: str, fields_: Mapping[str, Any], base_recipe: Recipe) -> Arm:
    """Create an arm from the TOML table `[arms.<name>]`."""
    path = f"arms.{name}"
    check_field_names(fields_, _ARM_FIELDS, f"[{path}]")
    grid = get_table(fields_, "try", path)
    recipe_grid = get_table(grid, "recipe", f"{path}.try")
    option_grid = {key: values for key, values in grid.items() if key != "recipe"}
    dropout = fields_.get("dropout", 0.0)
    rates = dropout if isinstance(dropout, list) else [dropout]
    recipe_changes = get_table(fields_, "recipe", path)
    arm_fields = {
        # By default, the arm has the name of its objective.
        "objective": fields_.get("kind", name),
        "recipe": update_recipe(base_recipe, recipe_changes, f"[{path}.recipe]"),
        "dropout": tuple(float(rate) if type(rate) is int else rate for rate in rates),
        "options": get_table(fields_, "options", path),
        "stage_lengths": get_table(fields_, "stages", path),
        "option_grid": _tuple_values(option_grid, f"{path}.try"),
        "recipe_grid": _tuple_values(recipe_grid, f"{path}.try.recipe"),
    }
    with prefix_errors(f"[{path}]"):
        return Arm(name, **arm_fields)


def _tuple_values(grid: Mapping[str, Any], path: str) -> dict[str, tuple[Any, ...]]:
    """Convert the lists of a grid to tuples."""
    return {key: as_tuple(values, f"{path}.{key}") for key, values in grid.items()}


def _arm_to_plain(arm: Arm, base_recipe: Recipe) -> dict[str, Any]:
    """Convert an arm to plain values, and omit empty fields."""
    base_fields = asdict(base_recipe)
    recipe_changes = {
        name: field for name, field in asdict(arm.recipe).items() if field != base_fields[name]
    }
    grid: dict[str, Any] = {name: list(values) for name, values in arm.option_grid.items()}
    if arm.recipe_grid:
        grid["recipe"] = {name: list(values) for name, values in arm.recipe_grid.items()}
    plain = {
        "kind": arm.objective,
        "dropout": list(arm.dropout),
        "options": dict(arm.options),
        "try": grid,
        "recipe": recipe_changes,
        "stages": dict(arm.stage_lengths),
    }
    return {name: field for name, field in plain.items() if field}


def update_recipe(recipe: Recipe, changes: Mapping[str, Any], path: str) -> Recipe:
    """Return a recipe with changed fields.

    Error messages include `path`, which is the name of the TOML table.
    """
    check_field_names(changes, _RECIPE_FIELDS, path)
    with prefix_errors(path):
        return replace(recipe, **changes)


@contextmanager
def prefix_errors(path: str) -> Iterator[None]:
    """Add the name of a table or file to the message of an InputError."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _list_to_tuple(field: Any) -> Any:
    return tuple(field) if isinstance(field, list) else field


def arms_for_methods(methods: Any, arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """Return the arms that the methods require, or all arms if the methods require none."""
    names = [check_value(name, NonBlankText, "methods") for name in as_tuple(methods, "methods")]
    objectives = {METHODS[name].objective for name in names}
    needed_arms = tuple(arm for arm in arms if arm.objective in objectives)
    # If no arm is left, `check_config` raises an error for the methods.
    return needed_arms or tuple(arms)


def parse_seeds(seeds: Any, initial: Sequence[int] = ()) -> tuple[int, ...]:
    """Return a list of seeds, or create the number of seeds that an integer specifies.

    In the latter case, the result starts with the `initial` seeds and continues with larger
    integers.
    """
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        count = check_value(seeds, Annotated[int, between(1, _MAX_SEEDS)], "seeds")
        first_new = max(initial, default=-1) + 1
        return (*initial, *range(first_new, first_new + count))[:count]
    return as_tuple(seeds, "seeds")


def expand_folder(folder: Any) -> str:
    """Return the path of a folder with an expanded tilde, or an empty string if it is empty."""
    if folder == "":
        return ""
    return str(Path(check_value(folder, NonBlankText, "folder")).expanduser())


def as_tuple(values: Any, name: str) -> tuple[Any, ...]:
    """Convert a list to a tuple, and raise an error for other types."""
    if not isinstance(values, list | tuple):
        raise InputError(f"`{name}` must be a list; got {values!r}")
    return tuple(values)
