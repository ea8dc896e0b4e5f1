"""From what a study is given, files or populations, to sources of samples."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain.confidence import ConfidenceScore
from abstain.errors import AbstainError, InputError, MissingInputError
from abstain.evaluation.inputs import splits_of
from abstain.metrics import augrc, aurc, population_aurc
from abstain.predictions import Predictions, per_sample_loss
from abstain.simulate import LogitPopulation, Population, logits, make
from abstain.studies._sources import (
    SCORES_OF_TABLE,
    FileSource,
    LogitSource,
    PopulationSource,
    Source,
    TrueAreas,
    confidence_of,
    usual_scores,
)
from abstain.tables import split_name
from abstain.typing import FloatArray, IntArray

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
    "Sequence[str | Population | LogitPopulation] "
    "| Mapping[str, str | Population | LogitPopulation]"
)


@dataclass(frozen=True)
class StudyRequest:
    """What a study shall look at.

    Attributes
    ----------
    scores, losses : tuple of str or None
        None: the usual ones that the data allow.
    replace : bool
        Whether the rows of a file are drawn independently.
    """

    scores: tuple[str, ...] | None = None
    losses: tuple[str, ...] | None = None
    replace: bool = False


def sources_of(
    data: Data,
    populations: Populations,
    usual: Sequence[str],
    wanted: StudyRequest,
) -> tuple[list[Source], list[str]]:
    """Return the sources, and what was left out; without any data the usual populations."""
    lacking: list[str] = []
    parts = named_data(data)
    found: list[Source] = [_of_file(name, p, wanted, lacking) for name, p in parts.items()]
    chosen = named_populations(populations, () if found else usual)
    found += [_of_population(name, p, wanted) for name, p in chosen]
    names = [source.name for source in found]
    for name in names:
        if names.count(name) > 1:
            msg = f"two data sets of the study are called {name!r}; name each once"
            raise InputError(msg)
    return found, [*scores_left_out(parts, wanted), *without_said(lacking)]


def named_populations(
    populations: Populations, usual: Sequence[str]
) -> list[tuple[str, Population | LogitPopulation]]:
    """Return populations with the names that tables call them; the usual ones if none is given."""
    if isinstance(populations, str | Population | LogitPopulation):
        populations = [populations]
    if isinstance(populations, Mapping) and populations:
        return [(str(name), population_of(p)) for name, p in populations.items()]
    found = [population_of(p) for p in (list(populations) or usual)]
    names = [p.name for p in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        msg = (
            f"two populations are called {twice!r}; give names of your own: "
            "populations={'first': ..., 'second': ...}"
        )
        raise InputError(msg)
    return list(zip(names, found, strict=True))


def population_of(population: Any) -> Population | LogitPopulation:
    """Return a population, made by name where a name is given."""
    if isinstance(population, Population | LogitPopulation):
        return population
    if isinstance(population, str):
        return logits() if population == LOGITS else make(population)
    msg = f"a population must be given by name or as a Population; got {type(population).__name__}"
    raise InputError(msg)


def _of_population(
    name: str, population: Population | LogitPopulation, wanted: StudyRequest
) -> Source:
    if isinstance(population, Population):
        return PopulationSource(name, population)
    losses = wanted.losses or _LOSSES
    return LogitSource(name, population, wanted.scores or SCORES_OF_TABLE, losses)


def named_data(data: Data) -> dict[str, Predictions]:
    """Return the data sets by the names that tables call them."""
    if data is None:
        return {}
    parts: Any = {(): data} if isinstance(data, Predictions) else data
    if isinstance(parts, Mapping) and parts and all(isinstance(name, str) for name in parts):
        return {str(name): part for name, part in parts.items()}
    named = {_said(split): part for split, part in splits_of(parts).items()}
    # A part that stands alone is the data.
    return {"data": next(iter(named.values()))} if len(named) == 1 else named


def _said(split: Hashable) -> str:
    pairs: Any = split
    return split_name(pairs)


class ScoredData(NamedTuple):
    """Confidences and losses of a data set, by name."""

    confidence: dict[str, ConfidenceScore]
    loss: dict[str, FloatArray]


def measured_of(
    name: str, predictions: Predictions, wanted: StudyRequest, lacking: list[str]
) -> ScoredData:
    """Compute the scores and losses wanted of a data set; say which usual ones it has not."""
    if predictions.weight is not None:
        msg = f"the study draws samples of equal weight; {name!r} has weights, so leave them out"
        raise InputError(msg)
    scores = wanted.scores or usual_scores(predictions)
    if not scores:
        msg = f"{name!r} has no confidence: give logits, probabilities or a confidence column"
        raise MissingInputError(msg)
    losses = wanted.losses or _usual_losses(name, predictions, lacking)
    values = {loss: per_sample_loss(predictions, loss).astype(np.float64) for loss in losses}
    for loss, found in values.items():
        _refuse_huge(name, loss, found)
    return ScoredData({score: confidence_of(score, predictions) for score in scores}, values)


def _refuse_huge(name: str, loss: str, values: FloatArray) -> None:
    """Refuse losses whose squares, squared again for a standard error, are no numbers."""
    largest = float(values.max())
    if largest > _LARGEST:
        msg = (
            f"a study squares errors twice, so losses must be at most {_LARGEST:g}; {loss!r} of "
            f"{name!r} goes up to {largest:.3g}. Divide it by a constant: all numbers scale with it"
        )
        raise InputError(msg)


def _usual_losses(name: str, predictions: Predictions, lacking: list[str]) -> tuple[str, ...]:
    if predictions.loss is not None:
        return ("own",)
    if not predictions.has_class_scores:
        return ("zero_one",)
    try:
        per_sample_loss(predictions, "cross_entropy")
    except AbstainError as error:
        lacking.append(f"{name}: {error}")
        return ("zero_one",)
    return _LOSSES


def _of_file(
    name: str, predictions: Predictions, wanted: StudyRequest, lacking: list[str]
) -> FileSource:
    known = measured_of(name, predictions, wanted, lacking)
    codes: dict[str, IntArray] = {}
    truths: dict[tuple[str, str], TrueAreas] = {}
    for score, own in known.confidence.items():
        codes[score] = np.unique(own.values, return_inverse=True)[1].astype(np.int64)
        for loss, values in known.loss.items():
            truths[score, loss] = _truth(codes[score], values, replace=wanted.replace)
    return FileSource(name, codes, known.loss, truths, replace=wanted.replace)


def _truth(codes: IntArray, loss: FloatArray, *, replace: bool) -> TrueAreas:
    """Return the areas of all rows: the plug-in, or its limit for independent draws."""
    if replace:
        return TrueAreas(population_aurc(codes, loss), augrc(codes, loss))
    return TrueAreas(aurc(codes, loss, estimator="plugin"), augrc(codes, loss))


def scores_left_out(parts: Mapping[str, Predictions], wanted: StudyRequest) -> list[str]:
    """Say which of the six scores of the paper the data do not allow, in one sentence."""
    if wanted.scores:
        return []
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


def without_said(lacking: Sequence[str]) -> list[str]:
    """Say which data sets have no cross-entropy, and why, in one sentence."""
    if not lacking:
        return []
    more = f" ({len(lacking) - 1} more data sets have none either)" if len(lacking) > 1 else ""
    return [f"Without cross-entropy: {lacking[0]}{more}"]


def ties_said(sources: Sequence[Source]) -> list[str]:
    """Say of which sources the confidences repeat, and what that does to one estimator."""
    tied = [source.name for source in sources if source.tied]
    if not tied:
        return []
    more = f" and {len(tied) - 3} more" if len(tied) > 3 else ""
    sentence = (
        f"Some confidences are tied in {', '.join(tied[:3])}{more}: the trapezoid has a limit of "
        "its own there, in general not the AURC that all are measured against."
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


def enough(repeats: int) -> int:
    """Return a number of repeats; refuse one from which no spread can be seen."""
    count = checks.positive_int(repeats, "repeats")
    if count < 2:
        msg = f"`repeats` must be at least 2, so that a spread can be seen; got {count}"
        raise InputError(msg)
    return count


def chosen_names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return names that were asked for; None where none were."""
    given = [names] if isinstance(names, str) else names
    return tuple(given or ()) or None
