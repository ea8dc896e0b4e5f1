"""Read and validate the configuration file of a fine-tuning experiment."""

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

#: Packaged configuration file for each data set.
PACKAGED_CONFIGURATIONS = {
    "digits": "digits.toml",
    "digits8": "digits8.toml",
    "cifar10": "cifar.toml",
    "cifar100": "cifar.toml",
}

#: Name of the model before fine-tuning. The remaining models are named after their objective.
BEFORE = "before"

#: Number of copies of an image.
_Copies = Annotated[int, between(1, 10_000)]

#: Number of seeds.
_SeedCount = Annotated[int, between(1, 1000)]

#: Fields of an objective that are options neither of the objective nor of the recipe.
_OBJECTIVE_FIELDS = ("kind", "title", "try")

_RECIPE_FIELDS = tuple(f.name for f in fields(Recipe))


@dataclass(frozen=True, kw_only=True)
class DataChoice:
    """Data set, sizes of its splits, and random variation of the images."""

    #: Name in `DATASETS`.
    name: NonBlankText = "digits"
    #: Number of training images. None for all images that are not in another split.
    train: PositiveInt | None = None
    validation: NonNegativeInt = 0
    #: Number of test images. None for the official test set.
    test: PositiveInt | None = None
    #: Numbers of randomly varied copies of each image.
    validation_copies: _Copies = 1
    test_copies: _Copies = 1
    #: Number of images in a file that is not the official version.
    records: PositiveInt | None = None
    #: Seed of the splits and of the variation of validation and test images.
    seed: NonNegativeInt = 0
    #: Name and options of the variation. Empty for images without variation.
    variation: Mapping[str, Any] = field(default_factory=dict)
    #: Folder with the files, which is not part of the specification of a job.
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
    """Hyperparameters of a fine-tuning."""

    #: Options of the objective.
    options: Mapping[str, Any]
    recipe: Recipe
    #: Hyperparameters in which the settings of an objective differ.
    varied: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Text with the hyperparameters that differ between the settings of an objective."""
        texts = []
        for name, value in self.varied.items():
            if isinstance(value, float):
                texts.append(f"{name.replace('_', ' ')} {value:g}")
            else:
                texts.append(f"{name} {value}")
        return ", ".join(texts) or "as configured"


@dataclass(frozen=True)
class ComparedObjective:
    """A training objective with its candidate settings."""

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
    """Configuration of a fine-tuning experiment."""

    data: DataChoice
    #: Name in `abstain_bench.networks.MODELS`.
    model: str
    #: Recipe of the pretraining with cross-entropy.
    pretrain: Recipe
    objectives: tuple[ComparedObjective, ...]
    #: Seeds of the compared models.
    seeds: tuple[int, ...]
    #: Seeds of the models with which settings are selected.
    tuning_seeds: tuple[int, ...]
    #: Name of the objective with which all objectives are compared.
    reference: str
    #: Metric by which settings are selected on validation data.
    choose_by: str

    @property
    def is_tuned(self) -> bool:
        """Whether there is more than one candidate setting."""
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
        """Validate the number, names, titles and settings of the objectives."""
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
    """Return the path of the packaged configuration file for a data set."""
    if data not in PACKAGED_CONFIGURATIONS:
        raise UnknownNameError(
            f"`data` must be one of {', '.join(PACKAGED_CONFIGURATIONS)}; got {data!r}."
            f"{suggest(data, PACKAGED_CONFIGURATIONS)}"
        )
    folder = resources.files("abstain_bench.studies") / "configs"
    return Path(str(folder / PACKAGED_CONFIGURATIONS[data]))


def read_experiment(path: Path) -> Experiment:
    """Read and validate a configuration file."""
    content = read_toml(path)
    with prefix_errors(path.name):
        return parse_experiment(content)


def configuration_text(config: Path | None, data: str | None) -> str:
    """Return the text of a configuration file, by default the packaged one for a data set."""
    path = config or packaged_configuration(data or "digits")
    name = read_experiment(path).data.name
    if config is not None and data not in {None, name}:
        raise InputError(
            f"`--print-config` prints a file without changes, and the data set of {path.name} is "
            f"{name!r}"
        )
    return input_files.read_text(path).replace(f'name = "{name}"', f'name = "{data or name}"', 1)


def parse_experiment(content: Mapping[str, Any]) -> Experiment:
    """Create an experiment from the tables of a configuration file."""
    table_names = ("data", "model", "pretrain", "finetune", "seeds", "study", "objectives")
    check_field_names(content, table_names, "the configuration")
    tables = {name: get_table(content, name) for name in table_names}
    data = tables["data"]
    model = tables["model"]
    seeds = tables["seeds"]
    study = tables["study"]
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
    """Replace the fields of an experiment by the arguments that are not None.

    Tuning seeds are restricted to the new seeds; if none remain, the first new seed is used.
    """
    overridden_data: dict[str, Any] = {}
    if data is not None:
        overridden_data["name"] = data
    if folder is not None:
        overridden_data["folder"] = str(folder)
    final_seeds = experiment.seeds
    if seeds is not None:
        final_seeds = parse_seeds(check_value(seeds, _SeedCount, "seeds"), experiment.seeds)
    tuning_seeds = tuple(seed for seed in experiment.tuning_seeds if seed in final_seeds)
    if experiment.tuning_seeds and not tuning_seeds:
        tuning_seeds = final_seeds[:1]
    return replace(
        experiment,
        data=replace(experiment.data, **overridden_data),
        model=model or experiment.model,
        seeds=final_seeds,
        tuning_seeds=tuning_seeds,
    )


def _parse_objective(name: str, table: Any, base_recipe: Recipe) -> ComparedObjective:
    """Create an objective from the table ``[objectives.NAME]`` of a configuration."""
    if not isinstance(table, Mapping):
        raise InputError(f"`objectives.{name}` must be a table: [objectives.{name}]")
    kind = check_value(table.get("kind", "rank-weighted"), NonBlankText, f"objectives.{name}.kind")
    allowed = (*OBJECTIVES[kind].options, *_RECIPE_FIELDS)
    fixed = {key: value for key, value in table.items() if key not in _OBJECTIVE_FIELDS}
    grid = get_table(table, "try", f"objectives.{name}")
    check_field_names(fixed, allowed, f"[objectives.{name}]")
    check_field_names(grid, allowed, f"[objectives.{name}]")
    for key, values in grid.items():
        is_list = isinstance(values, list) and values
        if not is_list or any(values.count(value) > 1 for value in values):
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
    """Create a setting, and check that the objective and the recipe support its values."""
    recipe_values = {key: value for key, value in values.items() if key in _RECIPE_FIELDS}
    options = {key: value for key, value in values.items() if key not in _RECIPE_FIELDS}
    recipe = replace(base_recipe, **recipe_values)
    objective = OBJECTIVES[kind].make(rng=0, **options)
    _check_trained_modules(objective, kind)
    objective.plan(recipe.epochs)
    return FinetuningSetting(options, recipe, varied)


def _check_trained_modules(objective: Objective, kind: str) -> None:
    """Raise an error if an objective trains a separate confidence output.

    The confidence would then not be the maximum softmax response.
    """
    modules = [name for phase in objective.phases for name in phase.trains]
    additional = [name for name in modules if name not in CLASSIFIER]
    if additional:
        raise InputError(
            f"{kind!r} trains {additional[0]!r} in addition to the classifier, which the "
            "pretrained models do not have; use cross-entropy, rank-weighted or joint"
        )


def _check_seeds(seeds: Any, name: str, *, empty: bool = False) -> tuple[int, ...]:
    """Check that the seeds are distinct, and that there is at least one unless `empty` is True."""
    check_distinct(seeds, name, allow_empty=empty)
    return tuple(check_value(seeds, list[NonNegativeInt], name))
