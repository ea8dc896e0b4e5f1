"""Validated records of the fine-tuning experiment, and the reader of its TOML configuration."""

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
from abstain.metrics.catalogue import POPULATION_AREA_METRIC
from abstain.training import OBJECTIVES, Objective
from abstain.training.network import CLASSIFIER
from abstain_bench.data import DATASETS
from abstain_bench.networks import MODELS
from abstain_bench.runs.specification.arms import ARM_NAME, grid_combinations
from abstain_bench.runs.specification.plain_values import (
    parse_seeds,
    prefix_errors,
    update_recipe,
)
from abstain_bench.runs.training import Recipe
from abstain_bench.runs.training.inputs import make_variation

#: Configuration file in the package for each data set.
PACKAGED_CONFIGURATIONS = {
    "digits": "digits.toml",
    "digits8": "digits8.toml",
    "cifar10": "cifar.toml",
    "cifar100": "cifar.toml",
}

#: Name of the model before fine-tuning, where other models have the name of their objective.
BEFORE = "before"

#: Number of copies of an image.
_Copies = Annotated[int, between(1, 10_000)]

#: Number of seeds.
_SeedCount = Annotated[int, between(1, 1000)]

#: Fields of an objective in the configuration, in addition to its options and those of the recipe.
_OBJECTIVE_FIELDS = ("kind", "title", "try")

_RECIPE_FIELDS = tuple(f.name for f in fields(Recipe))


@dataclass(frozen=True, kw_only=True)
class DataChoice:
    """Data set, numbers of images, and their variation."""

    #: Name in `DATASETS`.
    name: NonBlankText = "digits"
    #: Number of training images; None for all remaining ones.
    train: PositiveInt | None = None
    validation: NonNegativeInt = 0
    #: Number of test images; None for the test set of the source.
    test: PositiveInt | None = None
    #: Number of copies of each image, each with another variation.
    validation_copies: _Copies = 1
    test_copies: _Copies = 1
    #: Number of images in a file, if it is not the official version.
    records: PositiveInt | None = None
    #: Seed of the splits, and of the variation of validation and test images.
    seed: NonNegativeInt = 0
    #: Name and options of the variation; empty for none.
    variation: Mapping[str, Any] = field(default_factory=dict)
    #: Folder of the files. It is not part of the specification of a job.
    folder: str = ""

    def __post_init__(self) -> None:
        check_unconverted(self, "data.{}".format)
        _ = DATASETS[self.name]
        variation = make_variation(dict(self.variation))
        copies = max(self.validation_copies, self.test_copies)
        if copies > 1 and not (variation and variation.is_part_of_task):
            raise InputError(
                "copies of an image are identical unless `data.variation` changes them; set a "
                "variation or use one copy"
            )


@dataclass(frozen=True)
class FinetuningSetting:
    """Hyperparameters of one fine-tuning: options of the objective, and the recipe."""

    #: Options of the objective.
    options: Mapping[str, Any]
    recipe: Recipe
    #: Values in which the settings of the objective differ.
    varied: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Text that distinguishes the setting from the others of its objective."""
        values = (
            f"{name.replace('_', ' ')} {value:g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.varied.items()
        )
        return ", ".join(values) or "as configured"


@dataclass(frozen=True)
class ComparedObjective:
    """An objective of the experiment with its candidate settings."""

    #: Name in file names.
    name: str
    #: Name in tables and figures.
    title: str
    #: Name in `abstain.training.OBJECTIVES`.
    kind: str
    settings: tuple[FinetuningSetting, ...]

    def __post_init__(self) -> None:
        if self.name == BEFORE or not ARM_NAME.fullmatch(self.name):
            raise InputError(
                "an objective must be named with up to 60 letters, digits, dots, hyphens and "
                f"underscores, and not {BEFORE!r}; got {self.name!r}"
            )
        check_value(self.title, NonBlankText, f"objectives.{self.name}.title")


@dataclass(frozen=True)
class Experiment:
    """A fine-tuning experiment: data, network, recipes, objectives and seeds."""

    data: DataChoice
    #: Name in `abstain_bench.networks.MODELS`.
    model: str
    #: Recipe of the pretraining with cross-entropy.
    pretrain: Recipe
    objectives: tuple[ComparedObjective, ...]
    #: Seeds of the compared models, and of the models that select the settings.
    seeds: tuple[int, ...]
    tuning_seeds: tuple[int, ...]
    #: Objective that all others are compared with.
    reference: str
    #: Metric of the validation data by which settings are selected.
    choose_by: str

    @property
    def is_tuned(self) -> bool:
        """Whether an objective has more than one setting."""
        return any(len(objective.settings) > 1 for objective in self.objectives)

    def __post_init__(self) -> None:
        _ = MODELS[check_value(self.model, NonBlankText, "model.name")]
        _ = METRICS[check_value(self.choose_by, NonBlankText, "study.choose_by")]
        self._check_objectives()
        unknown = [seed for seed in self.tuning_seeds if seed not in self.seeds]
        if unknown:
            raise InputError(
                "`seeds.tuning` must be among `seeds.final`, because tuning starts from the "
                f"pretrained models of these seeds; got {unknown[0]}"
            )
        if self.is_tuned and not (self.data.validation and self.tuning_seeds):
            raise InputError(
                "settings are selected on validation data: `data.validation` and `seeds.tuning` "
                "must not be empty"
            )

    def _check_objectives(self) -> None:
        names = [objective.name for objective in self.objectives]
        if len(names) < 2:
            raise InputError(
                "an experiment needs at least two objectives, the reference and another"
            )
        if self.reference not in names:
            raise InputError(
                f"`study.reference` must be one of the objectives, {', '.join(names)}; got "
                f"{self.reference!r}"
            )
        titles = [objective.title for objective in self.objectives]
        repeated = next((title for title in titles if titles.count(title) > 1), None)
        if repeated:
            raise InputError(
                f"two objectives have the title {repeated!r}; tables and figures need distinct "
                "titles"
            )
        n_settings = {objective.name: len(objective.settings) for objective in self.objectives}
        if len(set(n_settings.values())) > 1:
            counts = ", ".join(f"{name} {count}" for name, count in n_settings.items())
            raise InputError(f"every objective must have the same number of settings; got {counts}")


def packaged_configuration(data: str) -> Path:
    """Return the path of the configuration in the package for a data set."""
    if data not in PACKAGED_CONFIGURATIONS:
        raise UnknownNameError(
            f"`data` must be one of {', '.join(PACKAGED_CONFIGURATIONS)}; got {data!r}."
            f"{suggest(data, PACKAGED_CONFIGURATIONS)}"
        )
    folder = resources.files("abstain_bench.studies") / "configs"
    return Path(str(folder / PACKAGED_CONFIGURATIONS[data]))


def read_experiment(path: Path) -> Experiment:
    """Read a configuration. Errors name the file and the field."""
    content = read_toml(path)
    with prefix_errors(path.name):
        return parse_experiment(content)


def configuration_text(config: Path | None, data: str | None) -> str:
    """Return the text of a configuration, by default of the one in the package for a data set."""
    path = config or packaged_configuration(data or "digits")
    name = read_experiment(path).data.name
    if config is not None and data not in {None, name}:
        raise InputError(
            f"`--print-config` prints a file without changes, and the data set of {path.name} is "
            f"{name!r}"
        )
    return input_files.read_text(path).replace(f'name = "{name}"', f'name = "{data or name}"', 1)


def parse_experiment(content: Mapping[str, Any]) -> Experiment:
    """Create an experiment from the content of a configuration."""
    table_names = ("data", "model", "pretrain", "finetune", "seeds", "study", "objectives")
    check_field_names(content, table_names, "the configuration")
    tables = {name: get_table(content, name) for name in table_names}
    data, model, seeds, study = (tables[name] for name in ("data", "model", "seeds", "study"))
    check_field_names(data, [f.name for f in fields(DataChoice)], "[data]")
    check_field_names(model, ["name"], "[model]")
    check_field_names(study, ["reference", "choose_by"], "[study]")
    check_field_names(seeds, ["final", "tuning"], "[seeds]")
    base_recipe = update_recipe(Recipe(), tables["finetune"], "[finetune]")
    return Experiment(
        data=DataChoice(**data),
        model=model.get("name", "small-conv"),
        pretrain=update_recipe(Recipe(), tables["pretrain"], "[pretrain]"),
        objectives=tuple(
            _parse_objective(name, table, base_recipe)
            for name, table in tables["objectives"].items()
        ),
        seeds=_check_seeds(seeds.get("final", [0]), "seeds.final"),
        tuning_seeds=_check_seeds(seeds.get("tuning", []), "seeds.tuning", empty=True),
        reference=study.get("reference", "ce"),
        choose_by=study.get("choose_by", POPULATION_AREA_METRIC),
    )


def override_experiment(
    experiment: Experiment,
    *,
    data: str | None = None,
    folder: str | Path | None = None,
    model: str | None = None,
    seeds: int | None = None,
) -> Experiment:
    """Return the experiment with some fields replaced."""
    choice = experiment.data
    if data is not None:
        choice = replace(choice, name=data)
    if folder is not None:
        choice = replace(choice, folder=str(folder))
    final_seeds = experiment.seeds
    if seeds is not None:
        final_seeds = parse_seeds(check_value(seeds, _SeedCount, "seeds"), final_seeds)
    tuning_seeds = tuple(seed for seed in experiment.tuning_seeds if seed in final_seeds)
    if experiment.tuning_seeds and not tuning_seeds:
        tuning_seeds = final_seeds[:1]
    return replace(
        experiment,
        data=choice,
        model=model or experiment.model,
        seeds=final_seeds,
        tuning_seeds=tuning_seeds,
    )


def _parse_objective(name: str, table: Any, base_recipe: Recipe) -> ComparedObjective:
    if not isinstance(table, Mapping):
        raise InputError(f"`objectives.{name}` must be a table: [objectives.{name}]")
    kind = check_value(table.get("kind", "rank-weighted"), NonBlankText, f"objectives.{name}.kind")
    allowed = (*OBJECTIVES[kind].options, *_RECIPE_FIELDS)
    fixed = {key: value for key, value in table.items() if key not in _OBJECTIVE_FIELDS}
    grid = get_table(table, "try", f"objectives.{name}")
    check_field_names(fixed, allowed, f"[objectives.{name}]")
    check_field_names(grid, allowed, f"[objectives.{name}]")
    for key, values in grid.items():
        if not isinstance(values, list) or not values or any(values.count(v) > 1 for v in values):
            raise InputError(
                f"`objectives.{name}.try.{key}` must be a list of values to try, each once; "
                f"got {values!r}"
            )
    with prefix_errors(f"[objectives.{name}]"):
        settings = tuple(
            _make_setting(fixed | varied, varied, kind, base_recipe)
            for varied in grid_combinations(grid)
        )
    return ComparedObjective(name, table.get("title", name), kind, settings)


def _make_setting(
    values: Mapping[str, Any], varied: Mapping[str, Any], kind: str, base_recipe: Recipe
) -> FinetuningSetting:
    """Separate options of the objective from those of the recipe, and validate both."""
    recipe_values = {key: value for key, value in values.items() if key in _RECIPE_FIELDS}
    options = {key: value for key, value in values.items() if key not in _RECIPE_FIELDS}
    recipe = replace(base_recipe, **recipe_values)
    objective = OBJECTIVES[kind].make(rng=0, **options)
    _check_trained_modules(objective, kind)
    objective.plan(recipe.epochs)
    return FinetuningSetting(options, recipe, varied)


def _check_trained_modules(objective: Objective, kind: str) -> None:
    """Raise an error if an objective trains more than a classifier.

    The confidence of such a network is not its softmax response.
    """
    modules = [name for phase in objective.phases for name in phase.trains]
    additional = [name for name in modules if name not in CLASSIFIER]
    if additional:
        raise InputError(
            f"{kind!r} trains {additional[0]!r} in addition to the classifier, which the "
            "pretrained models do not have; use cross-entropy, rank-weighted or joint"
        )


def _check_seeds(seeds: Any, name: str, *, empty: bool = False) -> tuple[int, ...]:
    check_distinct(seeds, name, allow_empty=empty)
    return tuple(check_value(seeds, list[NonNegativeInt], name))
