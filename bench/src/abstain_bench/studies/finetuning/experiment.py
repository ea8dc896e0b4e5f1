"""What the fine-tuning experiment consists of, in plain records that refuse what cannot be.

A configuration in TOML is read into them field by field.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from abstain._foundation import input_files
from abstain._foundation.records import (
    NonBlankText,
    NonNegativeInt,
    PositiveInt,
    between,
    check_distinct,
    check_unconverted,
    check_value,
)
from abstain._foundation.toml import check_field_names, get_table, read_toml
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.metrics import METRICS
from abstain.metrics.catalogue import OF_POPULATION
from abstain.training import OBJECTIVES, Objective
from abstain.training.network import CLASSIFIER
from abstain_bench.data import DATASETS
from abstain_bench.networks import MODELS
from abstain_bench.runs.specification.arms import grid_combinations
from abstain_bench.runs.specification.changes import parse_seeds
from abstain_bench.runs.specification.plain_values import prefix_errors, update_recipe
from abstain_bench.runs.training import Recipe
from abstain_bench.runs.training.variations import make_variation

#: The configuration that comes with the package for each data set.
SHIPPED = {
    "digits": "digits.toml",
    "digits8": "digits8.toml",
    "cifar10": "cifar.toml",
    "cifar100": "cifar.toml",
}

#: The model that is not fine-tuned, beside the objectives.
BEFORE = "before"

#: What an objective may be called: its name becomes part of names of files.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")

#: Of a picture.
_Copies = Annotated[int, between(1, 10_000)]

#: How many can be asked for.
_Number = Annotated[int, between(1, 1000)]

#: Of an objective, beside its own options and those of the recipe.
_OWN = ("kind", "title", "try")

_OF_RECIPE = tuple(f.name for f in fields(Recipe))


@dataclass(frozen=True, kw_only=True)
class DataChoice:
    """Which pictures, how many, and what is done to them."""

    #: In `DATASETS`.
    name: NonBlankText = "digits"
    #: Pictures to learn from; None for all that are left.
    train: PositiveInt | None = None
    validation: NonNegativeInt = 0
    #: None where the source has a test set.
    test: PositiveInt | None = None
    #: How often each picture is taken, each time varied anew.
    validation_copies: _Copies = 1
    test_copies: _Copies = 1
    #: Pictures in a file, where they are not those of the official version.
    records: PositiveInt | None = None
    #: Of the parts, and of the variation of validation and test.
    seed: NonNegativeInt = 0
    #: Its name and options; empty for none.
    variation: Mapping[str, Any] = field(default_factory=dict)
    #: Where the files are; no part of what a job depends on.
    folder: str = ""

    def __post_init__(self) -> None:
        check_unconverted(self, "data.{}".format)
        _ = DATASETS[self.name]
        variation = make_variation(dict(self.variation))
        copies = max(self.validation_copies, self.test_copies)
        if copies > 1 and not (variation and variation.is_part_of_task):
            raise InputError(
                "copies of pictures are all the same unless `data.variation` changes them"
            )


@dataclass(frozen=True)
class Trial:
    """One way to fine-tune: what the objective and the recipe are given."""

    #: Of the objective.
    options: Mapping[str, Any]
    recipe: Recipe
    #: What distinguishes it from the other settings of its objective.
    tried: Mapping[str, Any]

    @property
    def said(self) -> str:
        """What distinguishes it, in words."""
        return (
            ", ".join(
                f"{name.replace('_', ' ')} {value:g}"
                if isinstance(value, float)
                else f"{name} {value}"
                for name, value in self.tried.items()
            )
            or "as given"
        )


@dataclass(frozen=True)
class Contender:
    """An objective of the experiment, and the settings it is tried with."""

    #: For files.
    name: str
    #: For people.
    title: str
    #: In `abstain.training.OBJECTIVES`.
    kind: str
    settings: tuple[Trial, ...]

    def __post_init__(self) -> None:
        if self.name == BEFORE or not _NAME.fullmatch(self.name):
            raise InputError(
                "an objective must be named with up to 60 letters, digits, dots, hyphens and "
                f"underscores, and not {BEFORE!r}; got {self.name!r}"
            )
        check_value(self.title, NonBlankText, f"objectives.{self.name}.title")


@dataclass(frozen=True)
class Experiment:
    """The whole experiment."""

    data: DataChoice
    #: In `abstain_bench.networks.MODELS`.
    model: str
    #: With cross-entropy.
    pretrain: Recipe
    contenders: tuple[Contender, ...]
    #: Of the models that are compared, and of those that settings are chosen with.
    seeds: tuple[int, ...]
    tuning_seeds: tuple[int, ...]
    #: The contender that the others are compared with.
    reference: str
    #: The metric of the validation data that decides.
    choose_by: str

    @property
    def tuned(self) -> bool:
        """Whether there is anything to choose."""
        return any(len(contender.settings) > 1 for contender in self.contenders)

    def __post_init__(self) -> None:
        _ = MODELS[check_value(self.model, NonBlankText, "model.name")]
        _ = METRICS[check_value(self.choose_by, NonBlankText, "study.choose_by")]
        self._refuse_names()
        if stray := [seed for seed in self.tuning_seeds if seed not in self.seeds]:
            raise InputError(
                f"`seeds.tuning` must be among `seeds.final`, whose models it takes; got {stray[0]}"
            )
        counts = {c.name: len(c.settings) for c in self.contenders}
        if len(set(counts.values())) > 1:
            said = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise InputError(
                f"every objective must be tried with the same number of settings; got {said}"
            )
        if self.tuned and not (self.data.validation and self.tuning_seeds):
            msg = "settings are chosen on validation data: `data.validation` and `seeds.tuning`"
            raise InputError(msg + " must not be empty")

    def _refuse_names(self) -> None:
        names = [contender.name for contender in self.contenders]
        if len(names) < 2:
            raise InputError(
                "an experiment needs at least two objectives, the reference and another"
            )
        if self.reference not in names:
            msg = f"`study.reference` must be one of the objectives, {', '.join(names)}; "
            raise InputError(msg + f"got {self.reference!r}")
        titles = [contender.title for contender in self.contenders]
        if twice := next((title for title in titles if titles.count(title) > 1), None):
            raise InputError(
                f"two objectives have the title {twice!r}; tables and figures need one for each"
            )


def shipped(data: str) -> Path:
    """Return the configuration that comes with the package for a data set."""
    if data not in SHIPPED:
        raise UnknownNameError(
            f"`data` must be one of {', '.join(SHIPPED)}; got {data!r}.{suggest(data, SHIPPED)}"
        )
    return Path(str(resources.files("abstain_bench.studies") / "configs" / SHIPPED[data]))


def read_experiment(path: Path) -> Experiment:
    """Read a configuration; say which field is wrong."""
    found = read_toml(path)
    with prefix_errors(path.name):
        return experiment_of(found)


def configuration_text(config: Path | None, data: str | None) -> str:
    """Return the text of a configuration, or of the one that comes with a data set."""
    path = config or shipped(data or "digits")
    # Whatever is no configuration is said before it is printed.
    name = read_experiment(path).data.name
    if config is not None and data not in {None, name}:
        raise InputError(
            f"`--print-config` prints a file as it is, and {path.name} is about {name!r}"
        )
    return input_files.read_text(path).replace(f'name = "{name}"', f'name = "{data or name}"', 1)


def experiment_of(found: Mapping[str, Any]) -> Experiment:
    """Make the experiment that nested plain values describe."""
    parts = ("data", "model", "pretrain", "finetune", "seeds", "study", "objectives")
    check_field_names(found, parts, "the configuration")
    tables = {name: get_table(found, name) for name in parts}
    data, model, study = (tables[name] for name in ("data", "model", "study"))
    check_field_names(data, [f.name for f in fields(DataChoice)], "[data]")
    check_field_names(model, ["name"], "[model]")
    check_field_names(study, ["reference", "choose_by"], "[study]")
    seeds = tables["seeds"]
    check_field_names(seeds, ["final", "tuning"], "[seeds]")
    base = update_recipe(Recipe(), tables["finetune"], "[finetune]")
    return Experiment(
        data=DataChoice(**data),
        model=model.get("name", "small-conv"),
        pretrain=update_recipe(Recipe(), tables["pretrain"], "[pretrain]"),
        contenders=tuple(_contender(name, own, base) for name, own in tables["objectives"].items()),
        seeds=_seeds(seeds.get("final", [0]), "seeds.final"),
        tuning_seeds=_seeds(seeds.get("tuning", []), "seeds.tuning", empty=True),
        reference=study.get("reference", "ce"),
        choose_by=study.get("choose_by", OF_POPULATION),
    )


def changed(
    experiment: Experiment,
    *,
    data: str | None = None,
    folder: str | Path | None = None,
    model: str | None = None,
    seeds: int | None = None,
) -> Experiment:
    """Return the experiment with what was asked for otherwise."""
    choice = experiment.data
    if data is not None:
        choice = replace(choice, name=data)
    if folder is not None:
        choice = replace(choice, folder=str(folder))
    own = experiment.seeds
    if seeds is not None:
        own = parse_seeds(check_value(seeds, _Number, "seeds"), own)
    kept = tuple(seed for seed in experiment.tuning_seeds if seed in own)
    tuning = kept or (own[:1] if experiment.tuning_seeds else ())
    return replace(
        experiment,
        data=choice,
        model=model or experiment.model,
        seeds=own,
        tuning_seeds=tuning,
    )


def _contender(name: str, own: Any, base: Recipe) -> Contender:
    if not isinstance(own, Mapping):
        raise InputError(f"`objectives.{name}` must be a table: [objectives.{name}]")
    kind = check_value(own.get("kind", "rank-weighted"), NonBlankText, f"objectives.{name}.kind")
    allowed = (*OBJECTIVES[kind].options, *_OF_RECIPE)
    given = {key: value for key, value in own.items() if key not in _OWN}
    grid = get_table(own, "try", f"objectives.{name}")
    for part in (given, grid):
        check_field_names(part, allowed, f"[objectives.{name}]")
    for key, values in grid.items():
        if not isinstance(values, list) or not values or any(values.count(v) > 1 for v in values):
            raise InputError(
                f"`objectives.{name}.try.{key}` must be a list of values to try, each once; "
                f"got {values!r}"
            )
    with prefix_errors(f"[objectives.{name}]"):
        settings = tuple(
            _setting(given | tried, tried, kind, base) for tried in grid_combinations(grid)
        )
    return Contender(name, own.get("title", name), kind, settings)


def _setting(given: Mapping[str, Any], tried: Mapping[str, Any], kind: str, base: Recipe) -> Trial:
    """Tell options of the objective from those of the recipe, and try the objective out."""
    recipe = replace(base, **{key: given[key] for key in given if key in _OF_RECIPE})
    options = {key: value for key, value in given.items() if key not in _OF_RECIPE}
    objective = OBJECTIVES[kind].make(rng=0, **options)
    _refuse_parts(objective, kind)
    objective.plan(recipe.epochs)
    return Trial(options, recipe, tried)


def _refuse_parts(objective: Objective, kind: str) -> None:
    """Refuse what learns more than a classifier: its confidence is not that of the softmax."""
    parts = [part for phase in objective.phases for part in phase.trains if part not in CLASSIFIER]
    if parts:
        raise InputError(
            f"{kind!r} trains {parts[0]!r} beside the classifier, which the pretrained models do "
            "not have; cross-entropy, rank-weighted and joint can be compared"
        )


def _seeds(given: Any, name: str, *, empty: bool = False) -> tuple[int, ...]:
    check_distinct(given, name, empty=empty)
    # What torch takes; the seed of the test pictures is twice that of the data, and one more.
    return tuple(check_value(given, list[NonNegativeInt], name))
