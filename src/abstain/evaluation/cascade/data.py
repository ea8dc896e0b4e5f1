"""What several models said of the same samples: aligned, with confidences and losses."""

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

#: What one stage may be given as: predictions, confidences with losses, or confidences alone.
StageInput = Predictions | tuple[AnyArray, AnyArray] | AnyArray
Loss = "str | CostMatrix | None"

#: How many names are shown in a message.
_SHOWN: Final = 3


@dataclass(frozen=True, eq=False)
class StageScores:
    """What one stage says of n samples.

    `score` has no name where the confidences came without one; `ids` and `labels` tell the samples.
    """

    name: str
    score: ConfidenceScore
    loss: Array | None
    ids: Array | None = None
    labels: Array | None = None

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.score.values.size)

    def select(self, places: IntArray) -> "StageScores":
        """Return the samples at these places, in that order."""
        values, p = self.score.values[places], self.score.probability
        if p is not None:
            # That values are probabilities is told by their being the same array.
            p = values if p is self.score.values else p[places]
        score = replace(self.score, values=values, probability=p)
        loss = None if self.loss is None else self.loss[places]
        return StageScores(self.name, score, loss)


@dataclass(frozen=True, eq=False)
class AlignedStages:
    """The same samples under every stage."""

    stages: tuple[StageScores, ...]
    data: CascadeData
    #: The share of wrong answers of the person that is assumed; None where it is measured.
    person_error: float | None
    #: Whether the samples were brought into one order by their names.
    by_id: bool

    @property
    def scores(self) -> tuple[ConfidenceScore, ...]:
        """The confidences, as `Cascade.decide` takes them."""
        return tuple(stage.score for stage in self.stages)


@dataclass(frozen=True, eq=False)
class StageRequest:
    """What is asked of the data: which score of each stage, which loss.

    `stages` are those of a cascade that exists; `person_error` is what is assumed where nothing is
    given for the person.
    """

    loss: Any = None
    scores: Mapping[str, Any] | None = None
    stages: tuple[CascadeStage, ...] = ()
    person_error: float | None = 0.0
    #: What confidences that are not computed are measured in, where it is said.
    scale: Scale | None = None

    def score(self, name: str) -> Any:
        """Return the score of a stage: as asked, or that of the cascade; None for the only one."""
        asked = (self.scores or {}).get(name)
        known = next((stage.score for stage in self.stages if stage.name == name), "")
        if asked is not None:
            said = asked if isinstance(asked, str) else getattr(asked, "name", "")
            scales.refuse_other(known, said)
            return asked
        return known or None


def align_stages(
    given: Mapping[str, Any], wanted: StageRequest, *, where: str = ""
) -> AlignedStages:
    """Score what was given for each stage, and bring all to the same samples in the same order."""
    try:
        return _aligned(given, wanted)
    except InputError as error:
        if not where:
            raise
        raise type(error)(f"{where}: {error}") from error


def _aligned(given: Mapping[str, Any], wanted: StageRequest) -> AlignedStages:
    names = [stage.name for stage in wanted.stages] or [name for name in given if name != PERSON]
    for name in wanted.scores or {}:
        checks.one_of(name, "scores", tuple(names))
    strange = [name for name in given if name not in names and name != PERSON]
    lacking = [name for name in names if name not in given]
    if strange or lacking:
        what = f"lacks {lacking[0]!r}" if lacking else f"has {strange[0]!r}, which is no stage"
        msg = f"the data must hold each stage of the cascade ({', '.join(names)}); it {what}"
        raise MissingInputError(msg) if lacking else InputError(msg)
    found = [_scores(name, given[name], wanted) for name in names]
    found, by_id = _matched(found)
    person = given.get(PERSON, wanted.person_error)
    losses = [stage.loss for stage in found]
    known = None if any(x is None for x in losses) else [x for x in losses if x is not None]
    if known is not None and person is None:
        raise MissingInputError(
            f"the losses of the person were measured when this cascade was chosen; give them here "
            f"too, as {PERSON!r} (--person), or the share of wrong answers"
        )
    rate = float(person) if isinstance(person, int | float) else None
    values = [stage.score.values for stage in found]
    # Without labels nobody's losses are looked at.
    wrong = _person(person, found) if known is not None and rate is None else rate or 0.0
    data = CascadeData.of(names, values, known, wrong)
    return AlignedStages(tuple(found), data, rate, by_id)


def _person(person: Any, found: list[StageScores]) -> Array:
    loss = per_sample_loss(person) if isinstance(person, Predictions) else person
    values = checks.vector(loss, "loss of the person")
    first = found[0]
    if isinstance(person, Predictions) and person.ids is not None and first.ids is not None:
        own = StageScores(PERSON, ConfidenceScore("", values), values, _ids(person))
        return values[_places(first, own)]
    return values


def _scores(name: str, given: Any, wanted: StageRequest) -> StageScores:
    """Return what a stage says; a bare pair holds confidences and losses."""
    if isinstance(given, Predictions):
        for field in ("weight", "group"):
            if getattr(given, field) is not None:
                raise InputError(
                    f"stage {name!r}: a cascade counts independent samples alike, so its "
                    f"predictions must have no `{field}`; drop it"
                )
        own = compute_confidence(given, wanted.score(name), where=name)
        own = set_scale(own, wanted.scale) if own.is_user_column else own
        labels = None if given.labels is None else to_numpy(given.labels, "labels")
        return StageScores(name, own, per_sample_loss(given, wanted.loss), _ids(given), labels)
    if isinstance(given, tuple):
        if len(given) != 2:
            raise InputError(
                f"stage {name!r} must be predictions or (confidence, loss); got {len(given)} parts"
            )
        confidence, wrong = given
    else:
        confidence, wrong = given, None
    values = checks.confidence(confidence, f"confidence of {name!r}")
    unit = bool(values.min() >= 0 and values.max() <= 1)
    own = set_scale(
        ConfidenceScore("", values, values if unit else None, is_user_column=True), wanted.scale
    )
    return StageScores(name, own, None if wrong is None else to_numpy(wrong, "loss"))


def _ids(predictions: Predictions) -> Array | None:
    return None if predictions.ids is None else to_numpy(predictions.ids, "ids")


def _matched(found: list[StageScores]) -> tuple[list[StageScores], bool]:
    """Bring all stages into the order of the first, by the names of the samples where there are."""
    first = found[0]
    by_id = all(stage.ids is not None for stage in found) and len(found) > 1
    out = [first]
    for stage in found[1:]:
        if by_id:
            out.append(stage.select(_places(first, stage)))
            continue
        if stage.n != first.n:
            raise ShapeError(
                f"every stage must say something of the same samples; {first.name!r} has "
                f"{first.n}, {stage.name!r} {stage.n}. With names of the samples (ids, --id) they "
                "are matched"
            )
        _refuse_others(first, stage)
        out.append(stage)
    return out, by_id


def _places(first: StageScores, other: StageScores) -> IntArray:
    """Return where each sample of the first stage stands in another one."""
    if first.ids is None or other.ids is None:
        return np.arange(first.n)
    keys = [str(x) for x in first.ids.tolist()]
    place = {str(x): i for i, x in enumerate(other.ids.tolist())}
    if len(place) < other.n or len(set(keys)) < len(keys):
        raise DomainError(
            f"the names of the samples of {first.name!r} and {other.name!r} must be distinct"
        )
    lacking = [key for key in keys if key not in place]
    if lacking or len(place) != len(keys):
        more = [key for key in place if key not in set(keys)]
        who, which = (other.name, lacking) if lacking else (first.name, more)
        shown = ", ".join(map(repr, which[:_SHOWN]))
        raise InputError(
            f"{who!r} lacks {len(which)} samples that another stage has, such as {shown}"
        )
    return np.array([place[key] for key in keys])


def _refuse_others(first: StageScores, other: StageScores) -> None:
    """Refuse rows that have other true classes: they are not the same samples in the same order."""
    if first.labels is None or other.labels is None:
        return
    differ = np.flatnonzero(np.asarray(first.labels) != np.asarray(other.labels))
    if differ.size:
        at = int(differ[0])
        raise InputError(
            f"the true classes of {first.name!r} and {other.name!r} differ in {differ.size} rows, "
            f"first at index {at}: these are not the same samples in the same order. Give names of "
            "the samples (ids, --id)"
        )
