"""Create configurations from a task, a protocol or a TOML file, and modify them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from abstain._foundation.toml import read_toml
from abstain.errors import InputError, UnknownNameError, suggest
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.specification.arms import Arm
from abstain_bench.runs.specification.config import (
    Config,
    check_config,
    default_methods,
    scale_stages,
)
from abstain_bench.runs.specification.plain_values import (
    arms_for_methods,
    as_tuple,
    expand_folder,
    from_plain,
    from_toml_tables,
    parse_seeds,
    prefix_errors,
)
from abstain_bench.runs.specification.protocols import PROTOCOLS


def default_config(task: str, *, protocol: str = "", **changes: Any) -> Config:
    """Return the default configuration of a task, with optional changes.

    Parameters
    ----------
    task : str
        Name in `TASKS`.
    protocol : str, optional
        Name of a published benchmark in `PROTOCOLS`, whose settings replace the defaults. For
        "vit-b16", the settings of the transformer in the protocol are used.
    **changes
        Changed fields, as in `update_config`.

    Returns
    -------
    Config
        The configuration. The default configuration has four training objectives, all methods that
        apply to them, and all exposures.

    Raises
    ------
    InputError
        If the task does not exist or a change is invalid.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config
    >>> config = default_config("glyphs", seeds=2)
    >>> config.seeds, [arm.name for arm in config.arms]
    ((0, 1), ['cross-entropy', 'confidnet', 'devries', 'deep-gamblers'])
    >>> fd_shifts = default_config("cifar10", protocol="fd-shifts")
    >>> fd_shifts.samples, fd_shifts.arms[1].stage_lengths, fd_shifts.arms[2].recipe.nesterov
    (50, {'confidence': 200, 'fine-tune': 20}, True)
    """
    model = changes.get("model") or ""
    plain = PROTOCOLS[protocol].to_plain(task, model) if protocol else {"task": task}
    return update_config(from_plain(plain), **changes)


def read_config(path: str | Path) -> Config:
    r"""Read a configuration from a TOML file.

    Parameters
    ----------
    path : str or Path
        Path of the file. Fields that are missing in the file have the values of `default_config`.

    Returns
    -------
    Config
        The configuration in the file.

    Raises
    ------
    InputError
        If the file cannot be read or a field is invalid. The message contains the field.
    FileFormatError
        If the file is not valid TOML.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain_bench.runs.specification import read_config
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.toml"
    ...     _ = path.write_text('[benchmark]\ntask = "digits"\nseeds = [3]\n[arms.devries]')
    ...     read_config(path).methods
    ('devries',)
    """
    tables = read_toml(Path(path))
    with prefix_errors(Path(path).name):
        return from_plain(from_toml_tables(tables))


def update_config(
    config: Config,
    *,
    seeds: int | Sequence[int] | None = None,
    arms: Sequence[str] | None = None,
    folder: str | Path | None = None,
    epochs: int | None = None,
    methods: Sequence[str] | None = None,
    weights: str | Path | None = None,
    **fields: Any,
) -> Config:
    """Return a configuration with changed fields.

    If a field is None, it is not changed. `seeds` may be the number of seeds. `arms` contains names
    of arms. `fields` may contain all other fields of `Config`. The default methods depend on the
    modified arms, dropout passes and seeds. If only `methods` is set, arms that no method requires
    are removed.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config, update_config
    >>> small = update_config(default_config("glyphs"), seeds=1, arms=["confidnet"], samples=0)
    >>> small.methods
    ('confidnet',)
    """
    requested = {
        "seeds": None if seeds is None else parse_seeds(seeds, config.seeds),
        "arms": None if arms is None else _select_arms(config.arms, arms),
        "folder": None if folder is None else expand_folder(str(folder)),
        "weights": None if weights is None else expand_folder(str(weights)),
        "methods": methods,
        **fields,
    }
    changes: dict[str, Any] = {}
    for name, field in requested.items():
        if field is not None:
            changes[name] = tuple(field) if isinstance(field, list) else field
    if methods is None:
        changes["methods"] = _updated_methods(config, changes)
    elif arms is None:
        changes["arms"] = arms_for_methods(methods, config.arms)
    if epochs is not None:
        # The arms are selected before, because arms that are not trained may need more epochs.
        changes["arms"] = _with_epochs(changes.get("arms", config.arms), epochs)
    changed_config = replace(config, **changes)
    _check_methods(changed_config)
    return changed_config


def _check_methods(config: Config) -> None:
    """Raise an error if a name does not exist or a method requires an unavailable input."""
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


def _updated_methods(config: Config, changes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the methods of a configuration after changes of arms, dropout passes or seeds.

    If the original configuration had all default methods, the result has all default methods.
    Otherwise, the result contains those of its methods that are still available.
    """
    before = _default_methods(config)
    after = _default_methods(replace(config, **changes))
    if set(config.methods) == set(before):
        return after
    return tuple(name for name in config.methods if name in after or name not in before)


def _default_methods(config: Config) -> tuple[str, ...]:
    return default_methods([arm.objective for arm in config.arms], config.samples, config.seeds)


def _select_arms(arms: Sequence[Arm], names: Sequence[str]) -> tuple[Arm, ...]:
    """Return the arms with the given names."""
    by_name = {arm.name: arm for arm in arms}
    requested = as_tuple(names, "arms")
    for name in requested:
        if name not in by_name:
            raise UnknownNameError(
                f"there is no arm {name!r}.{suggest(name, by_name)} The arms are: "
                f"{', '.join(by_name)}"
            )
    return tuple(by_name[name] for name in requested)


def _with_epochs(arms: Sequence[Arm], epochs: int) -> tuple[Arm, ...]:
    """Return arms that are trained for `epochs` epochs, with proportionally scaled phases."""
    changed = []
    for arm in arms:
        recipe = replace(arm.recipe, epochs=epochs)
        if recipe.steps:
            # The length of the recipe is no longer defined by steps.
            recipe = replace(recipe, steps=0, warm_up_steps=0)
        stage_lengths = scale_stages(arm.stage_lengths, epochs / arm.recipe.length)
        changed.append(replace(arm, recipe=recipe, stage_lengths=stage_lengths))
    return tuple(changed)
