"""The configuration of the fine-tuning experiment as TOML: read, and checked field by field."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from abstain._foundation import checks
from abstain._foundation.toml_fields import read_toml, refuse_unknown, table, text
from abstain.benchmark.training import Recipe
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.studies.finetuning_config import (
    Contender,
    DataChoice,
    Experiment,
    Setting,
    seed_number,
)
from abstain.training import OBJECTIVES, Objective
from abstain.training.network import CLASSIFIER

#: The configuration that comes with the package for each data set.
SHIPPED = {
    "digits": "digits.toml",
    "digits8": "digits8.toml",
    "cifar10": "cifar.toml",
    "cifar100": "cifar.toml",
}

#: The most seeds that can be asked for.
_MOST_SEEDS = 1000

#: Of an objective, beside its own options and those of the recipe.
_OWN = ("kind", "title", "try")


def shipped(data: str) -> Path:
    """Return the configuration that comes with the package for a data set."""
    if data not in SHIPPED:
        msg = f"`data` must be one of {', '.join(SHIPPED)}; got {data!r}.{suggest(data, SHIPPED)}"
        raise UnknownNameError(msg)
    return Path(str(resources.files("abstain.studies") / "configs" / SHIPPED[data]))


def read_experiment(path: Path) -> Experiment:
    """Read a configuration; say which field is wrong."""
    found = read_toml(path)
    try:
        return experiment_of(found)
    except InputError as error:
        msg = f"{path.name}: {error}"
        raise InputError(msg) from None


def experiment_of(found: Mapping[str, Any]) -> Experiment:
    """Make the experiment that nested plain values describe."""
    parts = ("data", "model", "pretrain", "finetune", "seeds", "study", "objectives")
    refuse_unknown(found, parts, "the configuration")
    tables = {name: table(found, name) for name in parts}
    data, model, study = (tables[name] for name in ("data", "model", "study"))
    refuse_unknown(data, [f.name for f in fields(DataChoice)], "[data]")
    refuse_unknown(model, ["name"], "[model]")
    refuse_unknown(study, ["reference", "choose_by"], "[study]")
    seeds = tables["seeds"]
    refuse_unknown(seeds, ["final", "tuning"], "[seeds]")
    base = _recipe(tables["finetune"], "[finetune]", Recipe())
    return Experiment(
        data=DataChoice(**data),
        model=model.get("name", "small-conv"),
        pretrain=_recipe(tables["pretrain"], "[pretrain]", Recipe()),
        contenders=tuple(_contender(name, own, base) for name, own in tables["objectives"].items()),
        seeds=_seeds(seeds.get("final", [0]), "seeds.final"),
        tuning_seeds=_seeds(seeds.get("tuning", []), "seeds.tuning", empty=True),
        reference=study.get("reference", "ce"),
        choose_by=study.get("choose_by", "aurc_plugin"),
    )


def changed(
    experiment: Experiment,
    *,
    data: str | None = None,
    folder: str | Path | None = None,
    model: str | None = None,
    seeds: int | None = None,
    final: Sequence[int] | None = None,
) -> Experiment:
    """Return the experiment with what was asked for otherwise."""
    choice = experiment.data
    if data is not None:
        choice = replace(choice, name=data)
    if folder is not None:
        choice = replace(choice, folder=str(folder))
    own = experiment.seeds if final is None else _seeds(list(final), "seeds")
    if seeds is not None:
        count = checks.positive_int(seeds, "seeds")
        if count > _MOST_SEEDS:
            msg = f"`seeds` must be at most {_MOST_SEEDS:,}; got {count:,}"
            raise InputError(msg)
        own = _first(own, count)
    kept = tuple(seed for seed in experiment.tuning_seeds if seed in own)
    tuning = kept or (own[:1] if experiment.tuning_seeds else ())
    return replace(
        experiment,
        data=choice,
        model=model or experiment.model,
        seeds=own,
        tuning_seeds=tuning,
    )


def _first(own: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return as many seeds as asked for: those of the configuration, then the next numbers."""
    more = range(max(own) + 1, max(own) + 1 + max(count - len(own), 0))
    return (*own, *more)[:count]


def _contender(name: str, own: Any, base: Recipe) -> Contender:
    if not isinstance(own, Mapping):
        msg = f"`objectives.{name}` must be a table: [objectives.{name}]"
        raise InputError(msg)
    kind = text(own.get("kind", "rank-weighted"), f"objectives.{name}.kind")
    allowed = (*OBJECTIVES[kind].options, *(f.name for f in fields(Recipe)))
    given = {key: value for key, value in own.items() if key not in _OWN}
    grid = table(own, "try", f"objectives.{name}")
    for part in (given, grid):
        refuse_unknown(part, allowed, f"[objectives.{name}]")
    for key, values in grid.items():
        if not isinstance(values, list) or not values or any(values.count(v) > 1 for v in values):
            msg = (
                f"`objectives.{name}.try.{key}` must be a list of values to try, each once; "
                f"got {values!r}"
            )
            raise InputError(msg)
    settings = []
    for values in product(*grid.values()):
        tried = dict(zip(grid, values, strict=True))
        settings.append(_setting(given | tried, tried, kind, base, name))
    return Contender(name, own.get("title", name), kind, tuple(settings))


def _setting(
    given: Mapping[str, Any], tried: Mapping[str, Any], kind: str, base: Recipe, name: str
) -> Setting:
    """Tell options of the objective from those of the recipe, and try the objective out."""
    of_recipe = {f.name for f in fields(Recipe)}
    options = {key: value for key, value in given.items() if key not in of_recipe}
    recipe = _recipe(
        {key: value for key, value in given.items() if key in of_recipe},
        f"[objectives.{name}]",
        base,
    )
    try:
        objective = OBJECTIVES[kind].make(rng=0, **options)
        _refuse_parts(objective, kind)
        objective.plan(recipe.epochs)
    except InputError as error:
        msg = f"[objectives.{name}]: {error}"
        raise InputError(msg) from None
    return Setting(options, recipe, tried)


def _refuse_parts(objective: Objective, kind: str) -> None:
    """Refuse what learns more than a classifier: its confidence is not that of the softmax."""
    parts = [part for phase in objective.phases for part in phase.trains if part not in CLASSIFIER]
    if parts:
        msg = (
            f"{kind!r} trains {parts[0]!r} beside the classifier, which the pretrained models do "
            "not have; cross-entropy, rank-weighted and joint can be compared"
        )
        raise InputError(msg)


def _recipe(given: Any, where: str, base: Recipe) -> Recipe:
    refuse_unknown(given, [f.name for f in fields(Recipe)], where)
    try:
        return replace(base, **given)
    except InputError as error:
        msg = f"{where}: {error}"
        raise InputError(msg) from None


def _seeds(given: Any, name: str, *, empty: bool = False) -> tuple[int, ...]:
    listed = isinstance(given, list) and (given or empty)
    seeds = tuple(seed_number(seed, name) for seed in given) if listed else ()
    if not listed or len(set(seeds)) < len(seeds):
        msg = f"`{name}` must be a list of different seeds; got {given!r}"
        raise InputError(msg)
    return seeds
