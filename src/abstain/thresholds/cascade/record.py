"""`Cascade`: which stage answers which sample, what that promises, and what it rests on."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np

from abstain._foundation import checks, json_records, records
from abstain._foundation.arrays import to_numpy
from abstain._foundation.json_records import READERS
from abstain._foundation.records import Chance, Count, Fraction, Natural, NotNegative, Number, Word
from abstain.confidence import ConfidenceScore
from abstain.errors import DomainError, FileFormatError, InputError
from abstain.predictions import Predictions
from abstain.thresholds import scales
from abstain.thresholds.cascade.capacity import daily_share
from abstain.thresholds.scales import UNKNOWN, RuleScale
from abstain.typing import AnyArray, Array, BoolArray, IntArray, Scale

#: What marks a text as the JSON form of a cascade.
KIND: Final = "cascade"
VERSION: Final = 1

#: The name of the last stage, which answers what no model did, and of what an error costs.
PERSON: Final = "person"
ERROR: Final = "error"

Answers = Literal["some", "all", "none"]


@dataclass(frozen=True)
class CascadeStage:
    """A model of a cascade: what it answers of the samples that reach it.

    Attributes
    ----------
    name : str
        Of the model.
    answers : {"some", "all", "none"}
        "some": where its confidence reaches `threshold`; "all" that reach it; "none": it is not
        run, so that it costs nothing.
    threshold : float or None
        The lowest confidence with which it answers; None unless it answers some.
    cost : float
        Of running it on one sample, in any unit that all costs share.
    score : str
        Name of its confidence score; "" if unknown.
    scale : {"log-odds", "probability", "score", "unknown"}
        What the threshold is measured in, as in `DecisionRule`.

    Examples
    --------
    >>> from abstain.thresholds.cascade import CascadeStage
    >>> CascadeStage("small", "some", 0.9).accepts([0.95, 0.9, 0.2]).tolist()
    [True, True, False]
    """

    name: Word
    answers: Answers = "none"
    threshold: Number | None = None
    cost: NotNegative = 0.0
    score: str = ""
    scale: RuleScale = UNKNOWN

    def __post_init__(self) -> None:
        """Validate every field."""
        records.check(self, of="a stage of a cascade")
        if self.name in {PERSON, ERROR}:
            msg = f"a stage must not be named {self.name!r}, which has a meaning of its own"
            raise InputError(msg)
        if (self.threshold is None) != (self.answers != "some"):
            msg = (
                f"the stage {self.name!r} must have a threshold exactly where it answers 'some'; "
                f"got {self.answers!r} and {self.threshold!r}"
            )
            raise DomainError(msg)

    def accepts(self, confidence: AnyArray | ConfidenceScore | Predictions) -> BoolArray:
        """Tell which samples it answers, of those whose confidences are given.

        Parameters
        ----------
        confidence : array of shape (n,), ConfidenceScore or Predictions
            As for `DecisionRule.apply`.

        Returns
        -------
        ndarray of shape (n,)
            Booleans.
        """
        given, said = _confidence(self, confidence, None)
        values = checks.confidence(given, f"confidence of {self.name!r}")
        return _accepted(self, values, said)

    def __str__(self) -> str:
        """Say what it does."""
        if self.threshold is None:
            said = "answers all" if self.answers == "all" else "is not run"
            return f"{self.name} {said}"
        return f"{self.name} answers from a confidence of {self.threshold:.6g} on"


@dataclass(frozen=True)
class CascadePlan:
    """What is asked of a cascade: risk, capacity, costs, and how its thresholds are found.

    Attributes
    ----------
    max_risk : float
        The largest mean loss of all answers, those of the person among them.
    delta : float
        The chance, over calibration sets, that the promise may fail.
    capacity : float
        The largest share of the samples that may go to the person; 1 for no limit, 0 for none.
    reviews, arrivals, overflow : int, int, float or None
        What a person can do in a day, of how many samples, and the share of days on which there
        may be more, where `capacity` follows from them.
    person_cost, error_cost : float
        Of a review, and of a loss of 1.
    person_error : float or None
        The share of wrong answers of the person that is assumed; None where it is measured.
    ordered_by : float
        The share of the calibration samples that order the choices of thresholds; the others test.
    seed : int
        By which the samples are divided.
    """

    max_risk: Chance
    delta: Chance
    capacity: Fraction = 1.0
    reviews: Count | None = None
    arrivals: Natural | None = None
    overflow: Chance | None = None
    person_cost: NotNegative = 1.0
    error_cost: NotNegative = 0.0
    person_error: Fraction | None = 0.0
    ordered_by: Chance = 0.5
    seed: Count = 0

    def __post_init__(self) -> None:
        """Validate every field, and the fields of a day against each other."""
        records.check(self, of="a cascade")
        known = [x is not None for x in (self.reviews, self.arrivals, self.overflow)]
        if any(known) and not all(known):
            msg = "`reviews`, `arrivals` and `overflow` of a cascade go together; one is missing"
            raise InputError(msg)
        if self.reviews is None or self.arrivals is None or self.overflow is None:
            return
        share = daily_share(self.reviews, self.arrivals, overflow=self.overflow)
        if abs(share - self.capacity) > 1e-9:
            msg = f"`capacity` of a cascade must be {share!r} by its days; got {self.capacity!r}"
            raise DomainError(msg)

    @property
    def limited(self) -> bool:
        """Whether there is a limit to what may go to the person."""
        return self.capacity < 1


@dataclass(frozen=True)
class Cascade:
    """Who answers each sample: the first stage whose confidence reaches its threshold, or a person.

    Without thresholds that keep the promise, `reason` says why, and everything is the person's.

    Attributes
    ----------
    stages : tuple of CascadeStage
        The models, in the order in which they are asked.
    plan : CascadePlan
        What was asked for.
    n, tested : int
        Calibration samples, and how many of them tested the thresholds; the others ordered them.
    answered : tuple of float
        The share of the calibration samples that each stage answers, the person last.
    risk, cost : float
        Mean loss and mean cost of a calibration sample.
    reason : str
        Why nothing is promised; "" where it is.

    Raises
    ------
    InputError
        (or its kind, DomainError) When a field holds what it cannot; the message names the field.

    Examples
    --------
    >>> from abstain.thresholds.cascade import Cascade, CascadeStage, CascadePlan
    >>> stages = (CascadeStage("small", "some", 0.9), CascadeStage("large", "some", 0.7))
    >>> cascade = Cascade(
    ...     stages, CascadePlan(max_risk=0.05, delta=0.1), 100, 50, (0.5, 0.4, 0.1), 0.01
    ... )
    >>> cascade.names
    ('small', 'large', 'person')
    >>> cascade.decide([0.95, 0.5, 0.1], [float("nan"), 0.8, 0.2]).tolist()
    [0, 1, 2]
    >>> Cascade.from_json(cascade.to_json()) == cascade
    True
    """

    stages: tuple[CascadeStage, ...]
    plan: CascadePlan
    n: Count
    tested: Count
    answered: tuple[Fraction, ...]
    risk: NotNegative
    cost: NotNegative = 0.0
    reason: str = ""

    def __post_init__(self) -> None:
        """Validate every field, and the fields against each other."""
        records.check(self, of="a cascade")
        names = [stage.name for stage in self.stages]
        records.once(names, "stages", empty=False)
        if len(self.answered) != len(names) + 1:
            msg = (
                f"`answered` of a cascade must have one share for each of the {len(names)} stages "
                f"and the person; got {len(self.answered)}"
            )
            raise DomainError(msg)
        if self.tested > self.n:
            msg = f"`tested` of a cascade must be at most n = {self.n}; got {self.tested}"
            raise DomainError(msg)

    @property
    def attainable(self) -> bool:
        """Whether there are thresholds that keep the promise."""
        return not self.reason

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the stages, the person last; `decide` returns places among them."""
        return (*(stage.name for stage in self.stages), PERSON)

    def decide(
        self,
        *confidences: AnyArray | ConfidenceScore | Predictions,
        scale: Scale | None = None,
    ) -> IntArray:
        """Tell which stage answers each sample.

        Parameters
        ----------
        *confidences : array of shape (n,), ConfidenceScore or Predictions
            One for each stage, in their order; higher is more trusted. What a stage says of
            samples that an earlier one answers is not looked at and may be NaN. Fewer than there
            are stages tell who is asked next.
        scale : {"log-odds", "probability", "score"}, optional
            What arrays are measured in, as for `DecisionRule.apply`; "score" compares them as they
            are.

        Returns
        -------
        ndarray of shape (n,)
            The place in `names` of who answers. Of samples that none of the stages given answers,
            the place of the next stage that is run: ask it, and decide again with what it says.

        Raises
        ------
        InputError
            None or too many confidences; confidences that may be on another scale than the
            threshold.
        ShapeError, DomainError
            Lengths that differ; NaN or infinite entries of samples that reach the stage.

        Examples
        --------
        >>> from abstain.thresholds.cascade import Cascade, CascadeStage, CascadePlan
        >>> stages = (CascadeStage("small", "some", 0.9), CascadeStage("large", "some", 0.7))
        >>> cascade = Cascade(stages, CascadePlan(0.05, 0.1), 100, 50, (0.5, 0.4, 0.1), 0.01)
        >>> cascade.decide([0.95, 0.5, 0.1]).tolist()  # the large model is asked for two
        [0, 1, 1]
        """
        if not 1 <= len(confidences) <= len(self.stages):
            names = ", ".join(stage.name for stage in self.stages)
            msg = f"give confidences of {names}, or of the first of them; got {len(confidences)}"
            raise InputError(msg)
        pairs = zip(self.stages, confidences, strict=False)
        found = [_confidence(stage, given, scale) for stage, given in pairs]
        n = checks.vector(found[0][0], f"confidence of {self.names[0]!r}").size
        out = np.full(n, self._next(len(found)), np.int64)
        left = np.arange(n)
        for place, (stage, (given, said)) in enumerate(zip(self.stages, found, strict=False)):
            name = f"confidence of {stage.name!r}"
            values = checks.vector(given, name, length=n, like=self.names[0])
            if left.size == 0 or stage.answers == "none":
                continue
            accepted = _accepted(stage, checks.confidence(values[left], name), said)
            out[left[accepted]] = place
            left = left[~accepted]
        return out

    def _next(self, start: int) -> int:
        """Return the place of the first stage from there on that is run, or of the person."""
        run = (i for i, s in enumerate(self.stages) if i >= start and s.answers != "none")
        return next(run, len(self.stages))

    def costs(self, answered: IntArray) -> Array:
        """Return what each sample cost, errors apart, by the stage that answered it.

        Parameters
        ----------
        answered : ndarray of shape (n,)
            What `decide` returned for the confidences of all stages.

        Returns
        -------
        ndarray of shape (n,)
            The costs of all stages that were run on it, and of the review.
        """
        run = [0.0 if stage.answers == "none" else stage.cost for stage in self.stages]
        total = np.append(np.cumsum(run), sum(run) + self.plan.person_cost)
        return np.asarray(total[to_numpy(answered, "answered")])

    def to_json(self) -> str:
        """Return the cascade as JSON text; `from_json` gives back exactly the same numbers."""
        return json.dumps({"kind": KIND, "version": VERSION, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> "Cascade":
        """Read a cascade from the text that `to_json` wrote.

        Parameters
        ----------
        text : str
            JSON, perhaps edited by hand.

        Returns
        -------
        Cascade
            Equal to the one that was written.

        Raises
        ------
        FileFormatError
            No JSON, no cascade, of a later version, or a field that is missing, unknown or holds
            what it cannot. The message names the field.
        """
        try:
            found = json_records.parsed(text)
            json_records.take_kind(found, (KIND,))
            json_records.take_version(found, "version", (VERSION,))
            if isinstance(found.get("stages"), list):
                found["stages"] = tuple(
                    _part(CascadeStage, stage, "a stage of a cascade") for stage in found["stages"]
                )
            if "plan" in found:
                found["plan"] = _part(CascadePlan, found["plan"], "the plan of a cascade")
            return records.read(cls, found, "a cascade")
        except InputError as error:
            msg = f"not a valid cascade: {error}"
            raise FileFormatError(msg) from error

    def __str__(self) -> str:
        """Say the cascade in a plain sentence."""
        if self.reason:
            return f"Everything goes to the person: {self.reason}."
        said = ", ".join(str(stage) for stage in self.stages)
        load = f"; {100 * self.answered[-1]:.3g} % of the calibration samples went to the person"
        p = self.plan
        limit = f", with at most {p.capacity:.4g} of them sent to the person" if p.limited else ""
        return (
            f"{said[0].upper()}{said[1:]}, the person the rest{load}; for {1 - p.delta:.6g} or "
            f"more of all calibration sets the true risk of all answers is at most "
            f"{p.max_risk:g}{limit}."
        )


def _accepted(stage: CascadeStage, values: Array, said: str | None) -> BoolArray:
    if stage.threshold is None:
        return np.full(values.size, stage.answers == "all")
    return scales.reached(values, stage.threshold, stage.scale, said)


def _part(kind: Any, found: object, what: str) -> Any:
    """Read a record inside the record: every field there, and no other."""
    if not isinstance(found, dict):
        msg = f"{what} must be an object with its fields; got {json_records.shown(found)}"
        raise InputError(msg)
    return records.read(kind, found, what)


def _confidence(
    stage: CascadeStage,
    given: AnyArray | ConfidenceScore | Predictions,
    scale: Scale | None,
) -> tuple[Any, str | None]:
    """Return the confidences of a stage, and what they are measured in where that is known."""
    if isinstance(given, Predictions):
        given = scales.scored(given, stage.score, None)
    if not isinstance(given, ConfidenceScore):
        return given, scale
    scales.refuse_other(stage.score, given.name)
    return scales.on_scale(given, stage.scale, scale)


READERS[KIND] = Cascade.from_json
