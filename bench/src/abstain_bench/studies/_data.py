"""What a study is given: files or populations, scores and losses, and how many of what sizes."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain.errors import AbstainError, InputError, MissingInputError
from abstain.evaluation.inputs import check_splits
from abstain.predictions import Predictions, per_sample_loss
from abstain.simulate import LogitPopulation, Population, logits, make
from abstain.tables import split_name
from abstain.typing import FloatArray
from abstain_bench.studies._sentences import listed
from abstain_bench.studies._sources import (
    SCORES_OF_TABLE,
    FileSource,
    LogitSource,
    PopulationSource,
    ScoredData,
    Source,
    confidence_of,
    usual_scores,
)

#: The losses that a file of class scores is studied with.
_LOSSES: Final = ("zero_one", "cross_entropy")

#: The largest loss of a study.
_LARGEST: Final = 1e60

#: The name of the population of labeled class scores.
LOGITS: Final = "logits"

#: A data set, several by name, or none.
Data: TypeAlias = Predictions | Mapping[Any, Predictions] | None

#: Populations by name, as they are, or as they are with a name of their own.
Populations: TypeAlias = (
    Sequence[str | Population | LogitPopulation] | Mapping[str, str | Population | LogitPopulation]
)


@dataclass(frozen=True, eq=False)
class StudyRequest:
    """What a study shall look at, as it is given; no scores or losses: those that data allow."""

    data: Data = None
    populations: Populations = ()
    scores: Sequence[str] | None = None
    losses: Sequence[str] | None = None
    #: Whether the rows of a file are drawn independently.
    replace: bool = False

    @cached_property
    def parts(self) -> dict[str, Predictions]:
        """The data sets by the names that tables call them."""
        return named_data(self.data)

    @cached_property
    def scored(self) -> list[ScoredData]:
        """Their scores and losses."""
        return [self.score(name, part) for name, part in self.parts.items()]

    def drawn(self, usual: Sequence[str]) -> list[tuple[str, Population | LogitPopulation]]:
        """Return the populations; without any, and without data, the usual ones."""
        return named_populations(self.populations, () if self.parts else usual)

    def sources(self, usual: Sequence[str]) -> list[Source]:
        """Return where samples come from."""
        found: list[Source] = [FileSource(known, replace=self.replace) for known in self.scored]
        found += [self._of_population(name, p) for name, p in self.drawn(usual)]
        names = [source.name for source in found]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two data sets of the study are called {name!r}; name each once")
        return found

    def _of_population(self, name: str, population: Population | LogitPopulation) -> Source:
        if isinstance(population, Population):
            return PopulationSource(name, population)
        scores = chosen_names(self.scores) or SCORES_OF_TABLE
        return LogitSource(name, population, scores, chosen_names(self.losses) or _LOSSES)

    def score(self, name: str, predictions: Predictions) -> ScoredData:
        """Compute the scores and losses wanted of a data set."""
        if predictions.weight is not None:
            raise InputError(
                f"the study draws samples of equal weight; {name!r} has weights, so leave them out"
            )
        scores = chosen_names(self.scores) or usual_scores(predictions)
        if not scores:
            raise MissingInputError(
                f"{name!r} has no confidence: give logits, probabilities or a confidence column"
            )
        losses, without = chosen_names(self.losses), ""
        if not losses:
            losses, without = _usual_losses(name, predictions)
        values = {loss: per_sample_loss(predictions, loss).astype(np.float64) for loss in losses}
        for loss, found in values.items():
            _refuse_huge(name, loss, found)
        confidence = {score: confidence_of(score, predictions) for score in scores}
        return ScoredData(name, confidence, values, without)

    @property
    def left_out(self) -> list[str]:
        """Which usual scores and losses some data do not allow, a sentence each."""
        lacking = [known.without for known in self.scored if known.without]
        said = [] if self.scores else _scores_left_out(self.parts)
        if lacking:
            more = f" ({len(lacking) - 1} more data sets have none either)" * (len(lacking) > 1)
            said.append(f"Without cross-entropy: {lacking[0]}{more}")
        return said


def named_populations(
    populations: Populations, usual: Sequence[str]
) -> list[tuple[str, Population | LogitPopulation]]:
    """Return populations with the names that tables call them; the usual ones if none is given."""
    if isinstance(populations, str | Population | LogitPopulation):
        populations = [populations]
    if isinstance(populations, Mapping) and populations:
        return [(str(name), _population_of(p)) for name, p in populations.items()]
    found = [_population_of(p) for p in (list(populations) or usual)]
    names = [p.name for p in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(
            f"two populations are called {twice!r}; give names of your own: "
            "populations={'first': ..., 'second': ...}"
        )
    return list(zip(names, found, strict=True))


def _population_of(population: Any) -> Population | LogitPopulation:
    if isinstance(population, Population | LogitPopulation):
        return population
    if isinstance(population, str):
        return logits() if population == LOGITS else make(population)
    raise InputError(
        f"a population must be given by name or as a Population; got {type(population).__name__}"
    )


def named_data(data: Data) -> dict[str, Predictions]:
    """Return the data sets by the names that tables call them."""
    if data is None:
        return {}
    parts: Any = {(): data} if isinstance(data, Predictions) else data
    if isinstance(parts, Mapping) and parts and all(isinstance(name, str) for name in parts):
        return {str(name): part for name, part in parts.items()}
    named = {_said(split): part for split, part in check_splits(parts).items()}
    # A part that stands alone is the data.
    return {"data": next(iter(named.values()))} if len(named) == 1 else named


def _said(split: Hashable) -> str:
    pairs: Any = split
    return split_name(pairs)


def _refuse_huge(name: str, loss: str, values: FloatArray) -> None:
    """Refuse losses whose squares, squared again for a standard error, are no numbers."""
    largest = float(values.max())
    if largest > _LARGEST:
        raise InputError(
            f"a study squares errors twice, so losses must be at most {_LARGEST:g}; {loss!r} of "
            f"{name!r} goes up to {largest:.3g}. Divide it by a constant: all numbers scale with it"
        )


def _usual_losses(name: str, predictions: Predictions) -> tuple[tuple[str, ...], str]:
    """Return the losses that predictions allow, and why there is no cross-entropy among them."""
    if predictions.loss is not None:
        return ("own",), ""
    if not predictions.has_class_scores:
        return ("zero_one",), ""
    try:
        per_sample_loss(predictions, "cross_entropy")
    except AbstainError as error:
        return ("zero_one",), f"{name}: {error}"
    return _LOSSES, ""


def _scores_left_out(parts: Mapping[str, Predictions]) -> list[str]:
    """Say which of the six scores of the paper the data do not allow, in one sentence."""
    without = {
        name: [score for score in SCORES_OF_TABLE if score not in usual_scores(predictions)]
        for name, predictions in parts.items()
        if predictions.has_class_scores
    }
    lacking = {name: scores for name, scores in without.items() if scores}
    if not lacking:
        return []
    first, scores = next(iter(lacking.items()))
    more = f" (likewise for {len(lacking) - 1} more data sets)" if len(lacking) > 1 else ""
    return [f"Of the paper's six scores without {', '.join(scores)}: {first} has no logits{more}."]


def ties_said(sources: Sequence[Source]) -> list[str]:
    """Say of which sources the confidences repeat, and what that does to one estimator."""
    tied = [source.name for source in sources if source.tied]
    if not tied:
        return []
    sentence = (
        f"Some confidences are tied in {listed(tied, 3)}: the trapezoid has a limit of its own "
        "there, in general not the AURC that all are measured against."
    )
    return [sentence]


def truths_said(sources: Sequence[Source]) -> list[str]:
    """Say how uncertain a truth is that is not exact."""
    return [
        f"The truth of {source.name} is an estimate from a large sample, its standard error up to "
        f"{source.error:.1g} of it: smaller errors cannot be seen."
        for source in sources
        if isinstance(source, LogitSource)
    ]


def checked_sizes(sizes: Sequence[int], *, least: int) -> tuple[int, ...]:
    """Validate sample sizes; return them in ascending order, none twice."""
    given = [sizes] if isinstance(sizes, int) else list(sizes)
    found = sorted({checks.positive_int(n, "sizes") for n in given})
    if not found or found[0] < least:
        raise InputError(f"`sizes` must be sample sizes of at least {least}; got {tuple(given)}")
    return tuple(found)


def enough(repeats: int) -> int:
    """Return a number of repeats; refuse one from which no spread can be seen."""
    count = checks.positive_int(repeats, "repeats")
    if count < 2:
        raise InputError(f"`repeats` must be at least 2, so that a spread can be seen; got {count}")
    return count


def chosen_names(names: Iterable[str] | None) -> tuple[str, ...]:
    """Return names that were asked for; none where none were."""
    return (names,) if isinstance(names, str) else tuple(names or ())
