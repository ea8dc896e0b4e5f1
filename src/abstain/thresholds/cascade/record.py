"""`Cascade`: the answering stage of each sample, the guarantee and the calibration results."""

import json
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from abstain._foundation import checks, json_records, records
from abstain._foundation.arrays import to_numpy
from abstain._foundation.frames import NotebookDisplay
from abstain._foundation.json_records import READERS
from abstain._foundation.records import Fraction, NonNegative, NonNegativeInt
from abstain.confidence import ConfidenceScore
from abstain.errors import DomainError, InputError
from abstain.predictions import Predictions
from abstain.thresholds.cascade.plan import CascadePlan
from abstain.thresholds.cascade.stage import (
    PERSON,
    CascadeStage,
    accepts_confidence,
    stage_confidence,
)
from abstain.typing import AnyArray, Array, IntArray, Scale

#: What marks a text as the JSON form of a cascade.
KIND: Final = "cascade"
VERSION: Final = 1


@dataclass(frozen=True)
class Cascade(NotebookDisplay):
    """A sequence of models: the first confident stage answers a sample, or otherwise a person.

    If no thresholds reach the limits, `reason` gives the reason, and the person answers everything.

    Attributes
    ----------
    stages : tuple of CascadeStage
        The models, in their order.
    plan : CascadePlan
        Limits and costs.
    n, tested : int
        Number of calibration samples, and number of those that tested the thresholds.
    answered : tuple of float
        Share of the calibration samples that each stage answers, the person last.
    risk, cost : float
        Mean loss and mean cost of a calibration sample.
    reason : str
        Reason for a missing guarantee; "" if there is one.

    Raises
    ------
    InputError
        (or DomainError, a subclass) If a field is invalid. The message names the field.

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
        """Validate every field, and the fields against each other."""
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
        """Whether there are thresholds that reach the limits."""
        return not self.reason

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the stages, the person last; `decide` returns indices of these names."""
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
            One for each stage, in their order; higher is more trusted. Confidences of samples that
            an earlier stage answers are ignored and may be NaN. If there are fewer confidences than
            stages, the result names the next stage to run.
        scale : {"log-odds", "probability", "score"}, optional
            Scale of arrays, as in `DecisionRule.apply`; "score" compares them without conversion.
            A later stage may have too few samples to check the scale.

        Returns
        -------
        ndarray of shape (n,)
            Index in `names` of the answering stage. For samples that none of these stages answers,
            the index of the next stage: run it, and call `decide` again with its confidences.

        Raises
        ------
        InputError
            If there are no or too many confidences, or if they may be on another scale than the
            threshold.
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
        pairs = zip(self.stages, confidences, strict=False)
        found = [stage_confidence(stage, given, scale) for stage, given in pairs]
        n = checks.vector(found[0][0], f"confidence of {self.names[0]!r}").size
        out = np.full(n, self._next(len(found)), np.int64)
        left = np.arange(n)
        for place, (stage, (given, said)) in enumerate(zip(self.stages, found, strict=False)):
            name = f"confidence of {stage.name!r}"
            values = checks.vector(given, name, length=n, reference=self.names[0])
            if left.size == 0 or stage.answers == "none":
                continue
            accepted = accepts_confidence(stage, checks.confidence(values[left], name), said)
            out[left[accepted]] = place
            left = left[~accepted]
        return out

    def _next(self, start: int) -> int:
        """Return the index of the first stage from `start` on that is run, or of the person."""
        run = (i for i, s in enumerate(self.stages) if i >= start and s.answers != "none")
        return next(run, len(self.stages))

    def costs(self, answered: IntArray) -> Array:
        """Return the cost of each sample without errors, from the stage that answered it.

        Parameters
        ----------
        answered : ndarray of shape (n,)
            Result of `decide` for the confidences of all stages.

        Returns
        -------
        ndarray of shape (n,)
            Sum of the costs of all stages that were run, and of the review.
        """
        run = [0.0 if stage.answers == "none" else stage.cost for stage in self.stages]
        total = np.append(np.cumsum(run), sum(run) + self.plan.person_cost)
        return np.asarray(total[to_numpy(answered, "answered")])

    def to_json(self) -> str:
        """Return the cascade as JSON text; `from_json` restores exactly the same numbers."""
        return json.dumps({"kind": KIND, "version": VERSION, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> "Cascade":
        """Read a cascade from the text that `to_json` wrote.

        Parameters
        ----------
        text : str
            JSON, which may have been edited.

        Returns
        -------
        Cascade
            Equal to the cascade that was written.

        Raises
        ------
        FileFormatError
            No JSON, no cascade, of a later version, or a field that is missing, unknown or holds
            what it cannot. The message names the field.
        """
        with json_records.invalid_file_errors("cascade"):
            found, _ = json_records.parse_record(text, KIND, (VERSION,))
            if isinstance(found.get("stages"), list):
                found["stages"] = tuple(
                    records.from_nested_fields(CascadeStage, stage, "a stage of a cascade")
                    for stage in found["stages"]
                )
            if "plan" in found:
                found["plan"] = records.from_nested_fields(
                    CascadePlan, found["plan"], "the plan of a cascade"
                )
            return records.from_fields(cls, found, "a cascade")

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
