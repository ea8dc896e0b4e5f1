"""Align the confidences and losses of several models on the same samples."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain.confidence import ConfidenceScore
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.evaluation.rules.data import compute_confidence, set_scale
from abstain.predictions import Predictions, per_sample_loss
from abstain.thresholds import scales
from abstain.thresholds.cascade import PERSON, CascadeData, CascadeStage
from abstain.typing import AnyArray, Array, IntArray, Scale

#: Input of one stage, which is predictions, a pair (confidence, loss), or confidences.
StageInput = Predictions | tuple[AnyArray, AnyArray] | AnyArray
Loss = "str | CostMatrix | None"

#: Maximum number of ids that an error message lists.
_MAX_IDS: Final = 3


@dataclass(frozen=True, eq=False)
class StageScores:
    """Confidences and losses of one stage."""

    name: str
    #: The confidences. The name of the score is empty if the confidences are an array.
    score: ConfidenceScore
    loss: Array | None
    #: Names of the samples.
    ids: Array | None = None
    labels: Array | None = None

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.score.values.size)

    def select(self, rows: IntArray) -> "StageScores":
        """Return the samples with these row indices, in this order."""
        values = self.score.values[rows]
        probability = self.score.probability
        # If both attributes are the same array, they must remain the same array.
        if probability is self.score.values:
            probability = values
        elif probability is not None:
            probability = probability[rows]
        score = replace(self.score, values=values, probability=probability)
        loss = None if self.loss is None else self.loss[rows]
        return StageScores(self.name, score, loss)


@dataclass(frozen=True, eq=False)
class AlignedStages:
    """The confidences and losses of all stages of a cascade on the same samples."""

    stages: tuple[StageScores, ...]
    data: CascadeData
    #: Assumed error rate of the person, or None if the losses of the person are known.
    person_error: float | None
    #: Whether the samples were matched by their ids.
    matched_by_id: bool

    @property
    def scores(self) -> tuple[ConfidenceScore, ...]:
        """The confidences of the stages, as arguments of `Cascade.decide`."""
        return tuple(stage.score for stage in self.stages)


@dataclass(frozen=True, eq=False)
class StageRequest:
    """The loss and the score of each stage that the user requests."""

    loss: Any = None
    #: Mapping from stages to requested scores.
    scores: Mapping[str, Any] | None = None
    #: Stages of an existing cascade.
    stages: tuple[CascadeStage, ...] = ()
    #: Assumed error rate if the data have no losses of the person.
    person_error: float | None = 0.0
    #: Scale of arrays and confidence columns, if it was passed.
    scale: Scale | None = None

    def score(self, name: str) -> Any:
        """Return the requested score of a stage, by default the score in the cascade, or None."""
        score_by_stage = {stage.name: stage.score for stage in self.stages}
        score_of_cascade = score_by_stage.get(name, "")
        requested = (self.scores or {}).get(name)
        if requested is None:
            return score_of_cascade or None
        requested_name = requested if isinstance(requested, str) else getattr(requested, "name", "")
        scales.check_score_name(score_of_cascade, requested_name)
        return requested


def align_stages(
    sources: Mapping[str, Any], request: StageRequest, *, where: str = ""
) -> AlignedStages:
    """Return the scored data of all stages, aligned on the same samples."""
    try:
        return _align(sources, request)
    except InputError as error:
        if not where:
            raise
        raise type(error)(f"{where}: {error}") from error


def _align(sources: Mapping[str, Any], request: StageRequest) -> AlignedStages:
    """Return the scored data of all stages, aligned on the samples of the first stage."""
    names = [stage.name for stage in request.stages] or [n for n in sources if n != PERSON]
    for name in request.scores or {}:
        checks.one_of(name, "scores", tuple(names))
    rule = f"the data must contain each stage of the cascade ({', '.join(names)})"
    check_stage_names(sources, names, rule)
    stages = [_score_stage(name, sources[name], request) for name in names]
    stages, matched_by_id = _match_samples(stages)
    confidences = [stage.score.values for stage in stages]
    losses = [stage.loss for stage in stages if stage.loss is not None]
    person = sources.get(PERSON, request.person_error)
    person_error = float(person) if isinstance(person, int | float) else None
    if len(losses) < len(stages):
        # Without labels, the losses of the person are not used.
        data = CascadeData.from_arrays(names, confidences, None)
        return AlignedStages(tuple(stages), data, person_error, matched_by_id)
    if person is None:
        raise MissingInputError(
            "the cascade was chosen with measured losses of the person; pass their losses on "
            f"these data as {PERSON!r} (--person), or their error rate"
        )
    person_loss = _person_losses(person, stages[0]) if person_error is None else person_error
    data = CascadeData.from_arrays(names, confidences, losses, person_loss)
    return AlignedStages(tuple(stages), data, person_error, matched_by_id)


def check_stage_names(mapping: Mapping[str, Any], names: list[str], rule: str) -> None:
    """Raise InputError if the keys of a mapping are not exactly the names of the stages."""
    missing = [name for name in names if name not in mapping]
    if missing:
        raise MissingInputError(f"{rule}; it lacks {missing[0]!r}")
    unknown = [name for name in mapping if name not in names and name != PERSON]
    if unknown:
        raise InputError(f"{rule}; it has {unknown[0]!r}, which is no stage")


def _person_losses(person: Any, reference: StageScores) -> Array:
    """Return the losses of the person in the order of the reference stage."""
    loss = per_sample_loss(person) if isinstance(person, Predictions) else person
    values = checks.vector(loss, "loss of the person")
    if isinstance(person, Predictions) and person.ids is not None and reference.ids is not None:
        score = ConfidenceScore("", values)
        stage = StageScores(PERSON, score, values, _sample_ids(person))
        return values[_matching_rows(reference, stage)]
    return values


def _score_stage(name: str, source: Any, request: StageRequest) -> StageScores:
    """Return the confidences and losses of one stage from predictions or arrays."""
    if isinstance(source, Predictions):
        return _score_predictions(name, source, request)
    if isinstance(source, tuple):
        if len(source) != 2:
            raise InputError(
                f"stage {name!r} must be predictions or (confidence, loss); got a tuple of "
                f"length {len(source)}"
            )
        confidence, loss = source
    else:
        confidence, loss = source, None
    values = checks.confidence(confidence, f"confidence of {name!r}")
    is_probability = bool(values.min() >= 0 and values.max() <= 1)
    score = ConfidenceScore("", values, values if is_probability else None, is_user_column=True)
    bare_loss: Array | None = None if loss is None else to_numpy(loss, "loss")
    return StageScores(name, set_scale(score, request.scale), bare_loss)


def _score_predictions(name: str, predictions: Predictions, request: StageRequest) -> StageScores:
    """Return the confidences and losses of one stage from its predictions."""
    for field in ("weight", "group"):
        if getattr(predictions, field) is not None:
            raise InputError(
                f"stage {name!r}: a cascade requires independent samples of equal weight, so "
                f"its predictions must have no `{field}`; drop it"
            )
    score = compute_confidence(predictions, request.score(name), where=name)
    if score.is_user_column:
        score = set_scale(score, request.scale)
    labels = None if predictions.labels is None else to_numpy(predictions.labels, "labels")
    losses = per_sample_loss(predictions, request.loss)
    return StageScores(name, score, losses, _sample_ids(predictions), labels)


def _sample_ids(predictions: Predictions) -> Array | None:
    return None if predictions.ids is None else to_numpy(predictions.ids, "ids")


def _match_samples(stages: list[StageScores]) -> tuple[list[StageScores], bool]:
    """Return all stages in the sample order of the first stage, and whether ids were used."""
    reference = stages[0]
    has_ids = len(stages) > 1 and all(stage.ids is not None for stage in stages)
    if has_ids:
        others = [stage.select(_matching_rows(reference, stage)) for stage in stages[1:]]
        return [reference, *others], True
    for stage in stages[1:]:
        if stage.n != reference.n:
            raise ShapeError(
                f"all stages must have the same samples; {reference.name!r} has {reference.n}, "
                f"{stage.name!r} has {stage.n}. Pass sample ids (ids, --id) to match them"
            )
        _check_same_labels(reference, stage)
    return stages, False


def _matching_rows(reference: StageScores, stage: StageScores) -> IntArray:
    """Return the row index in a stage for each sample of the reference stage."""
    if reference.ids is None or stage.ids is None:
        return np.arange(reference.n)
    reference_ids = [str(sample_id) for sample_id in reference.ids.tolist()]
    row_of_id = {str(sample_id): row for row, sample_id in enumerate(stage.ids.tolist())}
    if len(row_of_id) < stage.n or len(set(reference_ids)) < len(reference_ids):
        raise DomainError(
            f"the ids of the samples of {reference.name!r} and {stage.name!r} must be distinct"
        )
    _check_contains(stage.name, set(row_of_id), reference_ids)
    _check_contains(reference.name, set(reference_ids), list(row_of_id))
    return np.array([row_of_id[sample_id] for sample_id in reference_ids])


def _check_contains(name: str, ids: set[str], required: list[str]) -> None:
    missing = [sample_id for sample_id in required if sample_id not in ids]
    if missing:
        listed = ", ".join(map(repr, missing[:_MAX_IDS]))
        raise InputError(
            f"{name!r} lacks {len(missing)} samples that another stage has, such as {listed}"
        )


def _check_same_labels(reference: StageScores, stage: StageScores) -> None:
    """Raise InputError if matched rows of two stages have different true classes."""
    if reference.labels is None or stage.labels is None:
        return
    differences = np.flatnonzero(np.asarray(reference.labels) != np.asarray(stage.labels))
    if differences.size:
        raise InputError(
            f"the true classes of {reference.name!r} and {stage.name!r} differ in "
            f"{differences.size} rows, first at index {int(differences[0])}, so these are not the "
            "same samples in the same order. Pass sample ids (ids, --id)"
        )
