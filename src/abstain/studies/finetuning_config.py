"""What the fine-tuning experiment consists of, in plain records that refuse what cannot be."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from abstain._foundation import checks
from abstain._foundation.toml_fields import text
from abstain.benchmark.data import DATASETS
from abstain.benchmark.models import MODELS
from abstain.benchmark.training import Recipe
from abstain.benchmark.training.inputs import variation_of
from abstain.errors import InputError
from abstain.metrics import METRICS

#: The model that is not fine-tuned, beside the objectives.
BEFORE = "before"

#: What an objective may be called: its name becomes part of names of files.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")

#: The most copies of a picture that are taken.
_MOST_COPIES = 10_000


@dataclass(frozen=True, kw_only=True)
class DataChoice:
    """Which pictures, how many, and what is done to them.

    Attributes
    ----------
    name : str
        In `DATASETS`.
    train : int or None
        Pictures to learn from; None for all that are left.
    validation, test : int or None
        Pictures to choose and to test on; `test` is None where the source has a test set.
    validation_copies, test_copies : int
        How often each of these is taken, each time varied anew.
    records : int or None
        Pictures in a file, where they are not those of the official version.
    seed : int
        Of the parts, and of the variation of validation and test.
    variation : mapping
        Its name and options; empty for none.
    folder : str
        Where the files are; no part of what a job depends on.
    """

    name: str = "digits"
    train: int | None = None
    validation: int = 0
    test: int | None = None
    validation_copies: int = 1
    test_copies: int = 1
    records: int | None = None
    seed: int = 0
    variation: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""

    def __post_init__(self) -> None:
        _ = DATASETS[text(self.name, "data.name")]
        if self.folder != "":
            text(self.folder, "data.folder")
        for name in ("train", "test", "records"):
            if getattr(self, name) is not None:
                checks.positive_int(getattr(self, name), f"data.{name}")
        if self.validation != 0 or isinstance(self.validation, bool):
            checks.positive_int(self.validation, "data.validation")
        seed_number(self.seed, "data.seed")
        self._refuse_copies()

    def _refuse_copies(self) -> None:
        for name in ("validation_copies", "test_copies"):
            copies = checks.positive_int(getattr(self, name), f"data.{name}")
            if copies > _MOST_COPIES:
                msg = f"`data.{name}` must be at most {_MOST_COPIES:,}; got {copies:,}"
                raise InputError(msg)
        given: object = self.variation
        if not isinstance(given, Mapping):
            msg = "`data.variation` must be a table: [data.variation]"
            raise InputError(msg)
        variation = variation_of(dict(self.variation))
        copies = max(self.validation_copies, self.test_copies)
        if copies > 1 and not (variation and variation.of_task):
            msg = "copies of pictures are all the same unless `data.variation` changes them"
            raise InputError(msg)


@dataclass(frozen=True)
class Setting:
    """One way to fine-tune: what the objective and the recipe are given.

    Attributes
    ----------
    options : mapping
        Of the objective.
    recipe : Recipe
        How long and how fast.
    tried : mapping
        What distinguishes it from the other settings of its objective.
    """

    options: Mapping[str, Any]
    recipe: Recipe
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
    """An objective of the experiment, and the settings it is tried with.

    Attributes
    ----------
    name, title : str
        For files, and for people.
    kind : str
        In `abstain.training.OBJECTIVES`.
    settings : tuple of Setting
        At least one.
    """

    name: str
    title: str
    kind: str
    settings: tuple[Setting, ...]

    def __post_init__(self) -> None:
        if self.name == BEFORE or not _NAME.fullmatch(self.name):
            msg = (
                "an objective must be named with up to 60 letters, digits, dots, hyphens and "
                f"underscores, and not {BEFORE!r}; got {self.name!r}"
            )
            raise InputError(msg)
        text(self.title, f"objectives.{self.name}.title")


@dataclass(frozen=True)
class Experiment:
    """The whole experiment.

    Attributes
    ----------
    data : DataChoice
        The pictures.
    model : str
        In `abstain.benchmark.models.MODELS`.
    pretrain : Recipe
        With cross-entropy.
    contenders : tuple of Contender
        What is compared.
    seeds, tuning_seeds : tuple of int
        Of the models that are compared, and of those that settings are chosen with.
    reference : str
        The contender that the others are compared with.
    choose_by : str
        The metric of the validation data that decides.
    """

    data: DataChoice
    model: str
    pretrain: Recipe
    contenders: tuple[Contender, ...]
    seeds: tuple[int, ...]
    tuning_seeds: tuple[int, ...]
    reference: str
    choose_by: str

    @property
    def tuned(self) -> bool:
        """Whether there is anything to choose."""
        return any(len(contender.settings) > 1 for contender in self.contenders)

    def __post_init__(self) -> None:
        _ = MODELS[text(self.model, "model.name")]
        _ = METRICS[text(self.choose_by, "study.choose_by")]
        self._refuse_names()
        if stray := [seed for seed in self.tuning_seeds if seed not in self.seeds]:
            msg = (
                f"`seeds.tuning` must be among `seeds.final`, whose models it takes; got {stray[0]}"
            )
            raise InputError(msg)
        counts = {c.name: len(c.settings) for c in self.contenders}
        if len(set(counts.values())) > 1:
            said = ", ".join(f"{name} {count}" for name, count in counts.items())
            msg = f"every objective must be tried with the same number of settings; got {said}"
            raise InputError(msg)
        if self.tuned and not (self.data.validation and self.tuning_seeds):
            msg = "settings are chosen on validation data: `data.validation` and `seeds.tuning`"
            raise InputError(msg + " must not be empty")

    def _refuse_names(self) -> None:
        names = [contender.name for contender in self.contenders]
        if len(names) < 2:
            msg = "an experiment needs at least two objectives, the reference and another"
            raise InputError(msg)
        if self.reference not in names:
            msg = f"`study.reference` must be one of the objectives, {', '.join(names)}; "
            raise InputError(msg + f"got {self.reference!r}")
        titles = [contender.title for contender in self.contenders]
        if twice := next((title for title in titles if titles.count(title) > 1), None):
            msg = f"two objectives have the title {twice!r}; tables and figures need one for each"
            raise InputError(msg)


def seed_number(given: Any, name: str) -> int:
    """Validate one seed."""
    # What torch takes; the seed of the test pictures is twice that of the data, and one more.
    whole = isinstance(given, int) and not isinstance(given, bool)
    if not whole or not 0 <= given < 2**63:
        msg = f"`{name}` must hold whole numbers from 0 to 2^63 - 1; got {given!r}"
        raise InputError(msg)
    number: int = given
    return number
