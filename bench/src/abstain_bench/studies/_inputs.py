"""Validate the inputs of studies: data sets, populations, scores, losses, sizes and repetitions."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain.errors import AbstainError, InputError, MissingInputError
from abstain.evaluation.inputs import check_splits
from abstain.predictions import Predictions, per_sample_loss
from abstain.report.formatting import join_first
from abstain.simulate import LogitPopulation, Population, logits, make
from abstain.tables import split_name
from abstain.typing import FloatArray
from abstain_bench.studies._display import counted
from abstain_bench.studies._sources import (
    TABLE_S2_SCORES,
    FileSource,
    LogitSource,
    PopulationSource,
    SampleSource,
    ScoredData,
    compute_confidence,
    default_scores,
)

#: Default losses for data with class scores.
_DEFAULT_LOSSES: Final = ("zero_one", "cross_entropy")

#: Largest permitted loss.
_MAX_LOSS: Final = 1e60

#: Name of the population of labeled class scores.
LOGITS: Final = "logits"

#: A data set, a mapping from names to data sets, or None.
DataArgument: TypeAlias = Predictions | Mapping[Any, Predictions] | None

#: A sequence of populations or names of populations. The keys of a mapping are names for tables.
PopulationsArgument: TypeAlias = (
    Sequence[str | Population | LogitPopulation] | Mapping[str, str | Population | LogitPopulation]
)


@dataclass(frozen=True, eq=False)
class StudyRequest:
    """Data sets, populations, scores and losses that a study uses.

    If `scores` or `losses` is empty, all defaults that apply to the data are used.
    """

    data: DataArgument = None
    populations: PopulationsArgument = ()
    scores: Sequence[str] | None = None
    losses: Sequence[str] | None = None
    #: Whether the rows of a file are drawn with replacement.
    replace: bool = False

    @cached_property
    def datasets(self) -> dict[str, Predictions]:
        """The data sets by their names in tables."""
        return named_datasets(self.data)

    @cached_property
    def scored_datasets(self) -> list[ScoredData]:
        """Scores and losses of each data set."""
        return [self.compute_scores(name, data) for name, data in self.datasets.items()]

    def select_populations(
        self, defaults: Sequence[str]
    ) -> list[tuple[str, Population | LogitPopulation]]:
        """Return named populations; the defaults are used only if there are no data sets."""
        return named_populations(self.populations, () if self.datasets else defaults)

    def sources(self, default_populations: Sequence[str]) -> list[SampleSource]:
        """Return a source of random samples for each data set and each population."""
        sources: list[SampleSource] = [
            FileSource(data, replace=self.replace) for data in self.scored_datasets
        ]
        for name, population in self.select_populations(default_populations):
            sources.append(self._population_source(name, population))
        names = [source.name for source in sources]
        repeated = _first_repeated(names)
        if repeated:
            raise InputError(
                f"two data sets of the study have the name {repeated!r}; use different names"
            )
        return sources

    def _population_source(
        self, name: str, population: Population | LogitPopulation
    ) -> SampleSource:
        """Return the source of random samples for a population."""
        if isinstance(population, Population):
            return PopulationSource(name, population)
        scores = as_names(self.scores) or TABLE_S2_SCORES
        losses = as_names(self.losses) or _DEFAULT_LOSSES
        return LogitSource(name, population, scores, losses)

    def compute_scores(self, name: str, predictions: Predictions) -> ScoredData:
        """Compute the requested scores and losses of a data set."""
        if predictions.weight is not None:
            raise InputError(
                f"the study draws samples of equal weight, but {name!r} has weights: remove them"
            )
        scores = as_names(self.scores) or default_scores(predictions)
        if not scores:
            raise MissingInputError(
                f"{name!r} has no confidence: pass logits, probabilities or a confidence column"
            )
        loss_names = as_names(self.losses)
        omission = ""
        if not loss_names:
            loss_names, omission = _default_losses(name, predictions)
        losses = {
            loss: per_sample_loss(predictions, loss).astype(np.float64) for loss in loss_names
        }
        for loss, values in losses.items():
            _check_loss_size(name, loss, values)
        confidence = {score: compute_confidence(score, predictions) for score in scores}
        return ScoredData(name, confidence, losses, omission)

    @property
    def omission_notes(self) -> list[str]:
        """Notes about default scores and losses that cannot be computed for some data sets."""
        notes = [] if self.scores else _omitted_score_notes(self.datasets)
        omissions = [data.omission for data in self.scored_datasets if data.omission]
        if omissions:
            n_more = len(omissions) - 1
            more = f" ({counted(n_more, 'more data set')} without it)" if n_more else ""
            notes.append(f"Without cross-entropy: {omissions[0]}{more}")
        return notes


def named_populations(
    populations: PopulationsArgument, defaults: Sequence[str]
) -> list[tuple[str, Population | LogitPopulation]]:
    """Return named populations, or the defaults if `populations` is empty."""
    if isinstance(populations, str | Population | LogitPopulation):
        populations = [populations]
    if isinstance(populations, Mapping) and populations:
        return [(str(name), _as_population(entry)) for name, entry in populations.items()]
    requested = list(populations) or defaults
    selected = [_as_population(entry) for entry in requested]
    names = [population.name for population in selected]
    repeated = _first_repeated(names)
    if repeated:
        raise InputError(
            f"two populations have the name {repeated!r}; pass other names: "
            "populations={'first': ..., 'second': ...}"
        )
    return list(zip(names, selected, strict=True))


def _as_population(population: Any) -> Population | LogitPopulation:
    """Return a population, which may be specified by its name."""
    if isinstance(population, Population | LogitPopulation):
        return population
    if isinstance(population, str):
        return logits() if population == LOGITS else make(population)
    raise InputError(
        f"a population must be a name or a Population; got {type(population).__name__}"
    )


def _first_repeated(names: Sequence[str]) -> str | None:
    return next((name for name in names if names.count(name) > 1), None)


def named_datasets(data: DataArgument) -> dict[str, Predictions]:
    """Return data sets by name; a single data set without name is called "data"."""
    if data is None:
        return {}
    splits: Any = {(): data} if isinstance(data, Predictions) else data
    if isinstance(splits, Mapping) and splits and all(isinstance(name, str) for name in splits):
        return {str(name): split for name, split in splits.items()}
    named = {_split_name(key): split for key, split in check_splits(splits).items()}
    if len(named) == 1:
        (split,) = named.values()
        return {"data": split}
    return named


def _split_name(key: Hashable) -> str:
    columns_and_values: Any = key
    return split_name(columns_and_values)


def _check_loss_size(name: str, loss: str, values: FloatArray) -> None:
    """Raise an error if losses are so large that their fourth power may overflow."""
    largest = float(values.max())
    if largest > _MAX_LOSS:
        raise InputError(
            f"losses must be at most {_MAX_LOSS:g}, because a study computes their fourth power; "
            f"the largest {loss!r} loss of {name!r} is {largest:.3g}. Divide the losses by a "
            "constant: all results scale with it"
        )


def _default_losses(name: str, predictions: Predictions) -> tuple[tuple[str, ...], str]:
    """Return the default losses, and the reason if cross-entropy is not available."""
    if predictions.loss is not None:
        return ("own",), ""
    if not predictions.has_class_scores:
        return ("zero_one",), ""
    try:
        per_sample_loss(predictions, "cross_entropy")
    except AbstainError as error:
        return ("zero_one",), f"{name}: {error}"
    return _DEFAULT_LOSSES, ""


def _omitted_score_notes(datasets: Mapping[str, Predictions]) -> list[str]:
    """Return a note about scores of table S2 that require logits, if the data have none."""
    omitted_by_data = {}
    for name, predictions in datasets.items():
        if not predictions.has_class_scores:
            continue
        available = default_scores(predictions)
        omitted = [score for score in TABLE_S2_SCORES if score not in available]
        if omitted:
            omitted_by_data[name] = omitted
    if not omitted_by_data:
        return []
    name, omitted = next(iter(omitted_by_data.items()))
    n_more = len(omitted_by_data) - 1
    more = f" (the same holds for {counted(n_more, 'more data set')})" if n_more else ""
    scores = ", ".join(omitted)
    return [f"Scores of the paper without a value: {scores}, because {name} has no logits{more}."]


def tie_notes(sources: Sequence[SampleSource]) -> list[str]:
    """Return a note about the limit of the trapezoidal rule, if confidences are tied."""
    names = [source.name for source in sources if source.has_ties]
    if not names:
        return []
    note = (
        f"Some confidences are tied in {join_first(names, 3)}. There the trapezoid converges to "
        "another limit than the AURC that all estimators are compared with."
    )
    return [note]


def true_value_notes(sources: Sequence[SampleSource]) -> list[str]:
    """Return a note about the standard errors of true values that are estimated."""
    return [
        f"The true value of {source.name} is an estimate from a large sample, with a relative "
        f"standard error of up to {source.max_relative_error:.1g}. Smaller errors cannot be "
        "detected."
        for source in sources
        if isinstance(source, LogitSource)
    ]


def check_sizes(sizes: Sequence[int], *, minimum: int) -> tuple[int, ...]:
    """Validate sample sizes, and return the distinct sizes in ascending order."""
    requested = [sizes] if isinstance(sizes, int) else list(sizes)
    distinct = sorted({checks.positive_int(n, "sizes") for n in requested})
    if not distinct or distinct[0] < minimum:
        raise InputError(
            f"`sizes` must be sample sizes of at least {minimum}; got {tuple(requested)}"
        )
    return tuple(distinct)


def check_repeats(repeats: int) -> int:
    """Check that there are enough repetitions to compute a standard deviation."""
    count = checks.positive_int(repeats, "repeats")
    if count < 2:
        raise InputError(
            f"`repeats` must be at least 2, to compute a standard deviation; got {count}"
        )
    return count


def as_names(names: Iterable[str] | None) -> tuple[str, ...]:
    """Convert a name, several names or None to a tuple of names."""
    if isinstance(names, str):
        return (names,)
    return tuple(names or ())
