"""Define a cascade, its stages and its plan, and find the stage that answers each sample."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np

from abstain._foundation import checks, json_records, records
from abstain._foundation.arrays import to_numpy
from abstain._foundation.frames import NotebookDisplay
from abstain._foundation.json_records import READERS
from abstain._foundation.lazy_imports import special
from abstain._foundation.records import (
    Fraction,
    NonBlankText,
    NonNegative,
    NonNegativeInt,
    Number,
    OpenFraction,
    PositiveInt,
)
from abstain.confidence import ConfidenceScore
from abstain.errors import DomainError, InputError
from abstain.predictions import Predictions
from abstain.thresholds import _choice, scales
from abstain.thresholds.scales import UNKNOWN, RuleScale
from abstain.typing import AnyArray, Array, BoolArray, IntArray, Scale


def daily_share(reviews: float, arrivals: int, *, overflow: float = 0.05) -> float:
    """Compute the largest share of reviews for which a daily capacity is rarely exceeded.

    Answers: if people can review 40 of the 400 cases of a day, which share of cases can require a
    review so that more than 40 reviews occur on at most 5% of the days?

    Parameters
    ----------
    reviews : int
        Number of samples that people can review in a day, from 0 to `arrivals`.
    arrivals : int
        Maximum number of samples that arrive in a day.
    overflow : float, default=0.05
        Maximum share of days with more reviews than `reviews`, between 0 and 1.

    Returns
    -------
    float
        The share p with P(Bin(arrivals, p) > reviews) = overflow, or 1 if `reviews` equals
        `arrivals`. The share is below reviews / arrivals if `overflow` is below a half.

    Raises
    ------
    InputError, DomainError
        If a count is not an integer, `reviews` exceeds `arrivals`, or `overflow` is outside (0, 1).

    Notes
    -----
    The function assumes that the samples of a day are independent and have the same probability of
    a review. The share is a quantile of the beta distribution, as in `binomial_risk_bound`.

    Examples
    --------
    >>> from abstain.thresholds.cascade import daily_share
    >>> round(daily_share(40, 400), 4), round(daily_share(40, 400, overflow=0.001), 4)
    (0.0786, 0.0613)
    """
    arrivals = checks.positive_int(arrivals, "arrivals")
    if isinstance(reviews, bool) or reviews != int(checks.number(reviews, "reviews")):
        raise InputError(f"`reviews` must be a whole number; got {reviews!r}")
    n_reviews = int(reviews)
    if not 0 <= n_reviews <= arrivals:
        raise DomainError(f"`reviews` must lie in [0, arrivals = {arrivals}]; got {reviews!r}")
    hint = "It is the share of days on which there may be more reviews, such as 0.05."
    overflow = _choice.check_open_interval(overflow, "overflow", hint=hint)
    if n_reviews == arrivals:
        return 1.0
    return float(special.betaincinv(n_reviews + 1.0, arrivals - n_reviews, overflow))


def overflow_probability(share: float, reviews: int, arrivals: int) -> float:
    """Return P(Bin(arrivals, share) > reviews), the share of days above the capacity."""
    if reviews >= arrivals:
        return 0.0
    return float(special.betainc(reviews + 1.0, arrivals - reviews, share))


@dataclass(frozen=True)
class CascadePlan:
    """Limits, costs and options with which the thresholds of a cascade are selected.

    Attributes
    ----------
    max_risk : float
        The maximum mean loss of all answers, including the answers of the person.
    delta : float
        The probability, over calibration sets, that the guarantee may fail.
    capacity : float
        The maximum share of the samples that the person answers. 1 means no limit, and 0 means no
        reviews.
    reviews, arrivals, overflow : int, int, float or None
        Daily number of reviews, daily number of samples, and maximum share of days with more
        reviews, if these numbers determine `capacity`.
    person_cost, error_cost : float
        Cost of a review, and cost of a loss of 1.
    person_error : float or None
        Assumed error rate of the person, or None if the error rate is measured.
    ordered_by : float
        Share of the calibration samples that order the candidate thresholds. The remaining samples
        test the thresholds.
    seed : int
        Seed of the split of the samples.
    """

    max_risk: OpenFraction
    delta: OpenFraction
    capacity: Fraction = 1.0
    reviews: NonNegativeInt | None = None
    arrivals: PositiveInt | None = None
    overflow: OpenFraction | None = None
    person_cost: NonNegative = 1.0
    error_cost: NonNegative = 0.0
    person_error: Fraction | None = 0.0
    ordered_by: OpenFraction = 0.5
    seed: NonNegativeInt = 0

    def __post_init__(self) -> None:
        """Validate the fields of the plan."""
        records.check(self, owner="a cascade")
        is_set = [x is not None for x in (self.reviews, self.arrivals, self.overflow)]
        if any(is_set) and not all(is_set):
            raise InputError(
                "`reviews`, `arrivals` and `overflow` of a cascade go together; one is missing"
            )
        if self.reviews is None or self.arrivals is None or self.overflow is None:
            return
        share = daily_share(self.reviews, self.arrivals, overflow=self.overflow)
        if abs(share - self.capacity) > 1e-9:
            raise DomainError(
                f"`capacity` of a cascade must be {share!r}, which follows from the daily numbers; "
                f"got {self.capacity!r}"
            )

    @property
    def has_capacity_limit(self) -> bool:
        """Whether the plan limits the share of reviewed samples."""
        return self.capacity < 1


#: Name of the last stage, which answers all samples that no model answers.
PERSON: Final = "person"
#: Reserved name for the cost of an error.
ERROR: Final = "error"

Answers = Literal["some", "all", "none"]


@dataclass(frozen=True)
class CascadeStage:
    """A model of a cascade and the rule by which the model answers samples.

    Attributes
    ----------
    name : str
        Name of the model.
    answers : {"some", "all", "none"}
        "some" answers the samples whose confidence reaches `threshold`. "all" answers all samples
        that reach the stage. "none" means that the model is not run and costs nothing.
    threshold : float or None
        The lowest confidence of an answered sample. None unless `answers` is "some".
    cost : float
        Cost of running the model on one sample, in the common unit of all costs.
    score : str
        Name of the confidence score, or "" if unknown.
    scale : {"log-odds", "probability", "score", "unknown"}
        Scale of the threshold, as in `DecisionRule`.

    Examples
    --------
    >>> from abstain.thresholds.cascade import CascadeStage
    >>> CascadeStage("small", "some", 0.9).accepts([0.95, 0.9, 0.2]).tolist()
    [True, True, False]
    """

    name: NonBlankText
    answers: Answers = "none"
    threshold: Number | None = None
    cost: NonNegative = 0.0
    score: str = ""
    scale: RuleScale = UNKNOWN

    def __post_init__(self) -> None:
        """Validate every field."""
        records.check(self, owner="a stage of a cascade")
        if self.name in {PERSON, ERROR}:
            raise InputError(f"a stage must not be named {self.name!r}, which is a reserved name")
        if (self.threshold is None) != (self.answers != "some"):
            raise DomainError(
                f"the stage {self.name!r} must have a threshold if and only if it answers 'some'; "
                f"got {self.answers!r} and {self.threshold!r}"
            )

    def accepts(self, confidence: AnyArray | ConfidenceScore | Predictions) -> BoolArray:
        """Return which samples the stage answers.

        Parameters
        ----------
        confidence : array of shape (n,), ConfidenceScore or Predictions
            As in `DecisionRule.apply`.

        Returns
        -------
        ndarray of shape (n,)
            Booleans.
        """
        array, scale = stage_confidence(self, confidence, None)
        values = checks.confidence(array, f"confidence of {self.name!r}")
        return accepts_confidence(self, values, scale)

    @property
    def scale_description(self) -> str:
        """Text with the scale of the threshold, and its value as log-odds or as a probability.

        The text is empty if the scale is unknown, or if the threshold cannot be converted.
        """
        if self.threshold is None or self.scale == UNKNOWN:
            return ""
        return scales.describe_scale(self.threshold, self.scale)

    def __str__(self) -> str:
        """Describe which samples the stage answers."""
        if self.threshold is None:
            action = "answers all" if self.answers == "all" else "is not run"
            return f"{self.name} {action}"
        units = f" ({self.scale_description})" if self.scale_description else ""
        return f"{self.name} answers from a confidence of {self.threshold:.6g}{units} on"


def accepts_confidence(stage: CascadeStage, values: Array, scale: str | None) -> BoolArray:
    """Return a mask of the samples that a stage answers, from validated confidences."""
    if stage.threshold is None:
        return np.full(values.size, stage.answers == "all")
    return scales.reaches_threshold(values, stage.threshold, stage.scale, scale)


def stage_confidence(
    stage: CascadeStage,
    confidence: AnyArray | ConfidenceScore | Predictions,
    scale: Scale | None,
) -> tuple[Any, str | None]:
    """Return the confidences of a stage, and their scale or None if it is unknown."""
    if isinstance(confidence, Predictions):
        confidence = scales.compute_confidence(confidence, stage.score, None)
    if not isinstance(confidence, ConfidenceScore):
        return confidence, scale
    scales.check_score_name(stage.score, confidence.name)
    # `scale` refers only to columns of the user, because computed scores have a known scale.
    user_scale = scale if confidence.is_user_column else None
    return scales.values_on_scale(confidence, stage.scale, user_scale)


#: Value of the field "kind" in the JSON form of a cascade.
KIND: Final = "cascade"
VERSION: Final = 1


@dataclass(frozen=True)
class Cascade(NotebookDisplay):
    """A sequence of models in which the first confident model answers a sample.

    A person answers the samples that no model answers. If no thresholds satisfy the limits, the
    person answers all samples, and the field `reason` contains an explanation.

    Attributes
    ----------
    stages : tuple of CascadeStage
        The models, in their order.
    plan : CascadePlan
        Limits and costs.
    n, tested : int
        Number of calibration samples, and number of calibration samples that tested the thresholds.
    answered : tuple of float
        Share of the calibration samples that each stage answers, followed by the share of the
        person.
    risk, cost : float
        Mean loss and mean cost of a calibration sample.
    reason : str
        Reason for a missing guarantee, or "" if the cascade has a guarantee.

    Raises
    ------
    InputError
        If a field is invalid. The message names the field. DomainError is a subclass.

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
    n: NonNegativeInt
    tested: NonNegativeInt
    answered: tuple[Fraction, ...]
    risk: NonNegative
    cost: NonNegative = 0.0
    reason: str = ""

    def __post_init__(self) -> None:
        """Validate the fields of the cascade."""
        records.check(self, owner="a cascade")
        names = [stage.name for stage in self.stages]
        records.check_distinct(names, "stages", allow_empty=False)
        if len(self.answered) != len(names) + 1:
            raise DomainError(
                f"`answered` of a cascade must have one share for each of the {len(names)} stages "
                f"and the person; got {len(self.answered)}"
            )
        answering = [stage.name for stage in self.stages if stage.answers != "none"]
        if self.reason and answering:
            raise DomainError(
                "a cascade with a `reason` why there is no guarantee must send everything to the "
                f"{PERSON}; {answering[0]!r} answers"
            )
        if self.tested > self.n:
            raise DomainError(
                f"`tested` of a cascade must be at most n = {self.n}; got {self.tested}"
            )

    @property
    def attainable(self) -> bool:
        """Whether thresholds reach the limits."""
        return not self.reason

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the stages, followed by "person".

        The method `decide` returns indices into this tuple.
        """
        return (*(stage.name for stage in self.stages), PERSON)

    def decide(
        self,
        *confidences: AnyArray | ConfidenceScore | Predictions,
        scale: Scale | None = None,
    ) -> IntArray:
        """Return the stage that answers each sample.

        Parameters
        ----------
        *confidences : array of shape (n,), ConfidenceScore or Predictions
            Confidences of each stage, in the order of the stages. Higher means more trusted. For
            samples that an earlier stage answers, the values are ignored and may be NaN. You may
            pass confidences of only the first stages.
        scale : {"log-odds", "probability", "score"}, optional
            Scale of arrays, as in `DecisionRule.apply`. "score" compares arrays without conversion.

        Returns
        -------
        ndarray of shape (n,)
            Index in `names` of the answering stage. If none of the passed stages answers a sample,
            the entry is the index of the next stage. Compute the confidences of this stage, and
            call `decide` again with them.

        Raises
        ------
        InputError
            If no confidences or too many confidences are passed, or if they may be on another scale
            than the threshold.
        ShapeError, DomainError
            If lengths differ, or if a sample that reaches a stage has a NaN or infinite confidence.

        Examples
        --------
        >>> from abstain.thresholds.cascade import Cascade, CascadeStage, CascadePlan
        >>> stages = (CascadeStage("small", "some", 0.9), CascadeStage("large", "some", 0.7))
        >>> cascade = Cascade(stages, CascadePlan(0.05, 0.1), 100, 50, (0.5, 0.4, 0.1), 0.01)
        >>> cascade.decide([0.95, 0.5, 0.1]).tolist()  # run the large model for two samples
        [0, 1, 1]
        """
        if not 1 <= len(confidences) <= len(self.stages):
            names = ", ".join(stage.name for stage in self.stages)
            raise InputError(
                f"pass confidences of {names}, or of the first of them; got {len(confidences)}"
            )
        stages = self.stages[: len(confidences)]
        values_and_scales = [
            stage_confidence(stage, confidence, scale)
            for stage, confidence in zip(stages, confidences, strict=True)
        ]
        first_array, _ = values_and_scales[0]
        n = checks.vector(first_array, f"confidence of {self.names[0]!r}").size
        answered_by = np.full(n, self._next_run_stage(len(stages)), np.int64)
        remaining = np.arange(n)
        for i, stage in enumerate(stages):
            array, array_scale = values_and_scales[i]
            name = f"confidence of {stage.name!r}"
            values = checks.vector(array, name, length=n, reference=self.names[0])
            if remaining.size == 0 or stage.answers == "none":
                continue
            remaining_values = checks.confidence(values[remaining], name)
            accepted = accepts_confidence(stage, remaining_values, array_scale)
            answered_by[remaining[accepted]] = i
            remaining = remaining[~accepted]
        return answered_by

    def _next_run_stage(self, start: int) -> int:
        """Return the index of the first active stage from `start` on, or of the person."""
        for i, stage in enumerate(self.stages[start:], start):
            if stage.answers != "none":
                return i
        return len(self.stages)

    def costs(self, answered: IntArray) -> Array:
        """Compute the cost of each sample, which does not include the cost of errors.

        Parameters
        ----------
        answered : ndarray of shape (n,)
            Result of `decide` for the confidences of all stages.

        Returns
        -------
        ndarray of shape (n,)
            Cost of the stages that were run for each sample, plus the cost of a review if the
            person answers.
        """
        stage_costs = [0.0 if stage.answers == "none" else stage.cost for stage in self.stages]
        cost_with_person = sum(stage_costs) + self.plan.person_cost
        cost_by_answering_stage = np.append(np.cumsum(stage_costs), cost_with_person)
        return np.asarray(cost_by_answering_stage[to_numpy(answered, "answered")])

    def to_json(self) -> str:
        """Return the cascade as JSON text, from which `from_json` restores it exactly."""
        return json.dumps({"kind": KIND, "version": VERSION, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> "Cascade":
        """Read a cascade from JSON text that `to_json` returned.

        Parameters
        ----------
        text : str
            JSON text, which may have been edited.

        Returns
        -------
        Cascade
            The cascade.

        Raises
        ------
        FileFormatError
            If the text is not JSON, not a cascade or of a later version, or if a field is missing,
            unknown or invalid. The message names the field.
        """
        with json_records.invalid_file_errors("cascade"):
            fields, _ = json_records.parse_record(text, KIND, (VERSION,))
            if isinstance(fields.get("stages"), list):
                fields["stages"] = tuple(
                    records.from_nested_fields(CascadeStage, stage, "a stage of a cascade")
                    for stage in fields["stages"]
                )
            if "plan" in fields:
                fields["plan"] = records.from_nested_fields(
                    CascadePlan, fields["plan"], "the plan of a cascade"
                )
            return records.from_fields(cls, fields, "a cascade")

    def __str__(self) -> str:
        """Describe the cascade in a sentence."""
        if self.reason:
            return f"Everything goes to the person: {self.reason}."
        plan = self.plan
        stages = ", ".join(str(stage) for stage in self.stages)
        person = ""
        if all(stage.answers != "all" for stage in self.stages):
            person_share = f"{100 * self.answered[-1]:.3g}% of the calibration samples"
            person = f", the person the rest; {person_share} went to the person"
        limit = ""
        if plan.has_capacity_limit:
            limit = f", with at most {plan.capacity:.4g} of them sent to the person"
        return (
            f"{stages[0].upper()}{stages[1:]}{person}; with probability {1 - plan.delta:.6g} or "
            f"more over calibration sets, the true risk of all answers is at most "
            f"{plan.max_risk:g}{limit}."
        )


READERS[KIND] = Cascade.from_json
