"""`CascadeStage`: a model of a cascade, and the lowest confidence of its answers."""

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from abstain._foundation import checks, records
from abstain._foundation.records import NonBlankText, NonNegative, Number
from abstain.confidence import ConfidenceScore
from abstain.errors import DomainError, InputError
from abstain.predictions import Predictions
from abstain.thresholds import scales
from abstain.thresholds.scales import UNKNOWN, RuleScale
from abstain.typing import AnyArray, Array, BoolArray, Scale

#: The name of the last stage, which answers what no model did, and of what an error costs.
PERSON: Final = "person"
ERROR: Final = "error"

Answers = Literal["some", "all", "none"]


@dataclass(frozen=True)
class CascadeStage:
    """A model of a cascade, and the samples that it answers among those that reach it.

    Attributes
    ----------
    name : str
        Name of the model.
    answers : {"some", "all", "none"}
        "some": samples whose confidence reaches `threshold`; "all": all samples that reach the
        stage; "none": the model is not run and costs nothing.
    threshold : float or None
        The lowest confidence of its answers; None unless it answers "some".
    cost : float
        Cost of running it on one sample, in a common unit of all costs.
    score : str
        Name of its confidence score; "" if unknown.
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
        """Return which samples it answers.

        Parameters
        ----------
        confidence : array of shape (n,), ConfidenceScore or Predictions
            As in `DecisionRule.apply`.

        Returns
        -------
        ndarray of shape (n,)
            Booleans.
        """
        given, said = stage_confidence(self, confidence, None)
        values = checks.confidence(given, f"confidence of {self.name!r}")
        return accepts_confidence(self, values, said)

    @property
    def scale_description(self) -> str:
        """Scale of the threshold, and the threshold on the other scale, as text.

        Empty for an unknown scale, and for the unit of a score.
        """
        if self.threshold is None or self.scale == UNKNOWN:
            return ""
        return scales.describe_scale(self.threshold, self.scale)

    def __str__(self) -> str:
        """Describe the samples that it answers."""
        if self.threshold is None:
            action = "answers all" if self.answers == "all" else "is not run"
            return f"{self.name} {action}"
        units = f" ({self.scale_description})" if self.scale_description else ""
        return f"{self.name} answers from a confidence of {self.threshold:.6g}{units} on"


def accepts_confidence(stage: CascadeStage, values: Array, said: str | None) -> BoolArray:
    """Tell which validated confidences a stage answers; `said` is what they are measured in."""
    if stage.threshold is None:
        return np.full(values.size, stage.answers == "all")
    return scales.reaches_threshold(values, stage.threshold, stage.scale, said)


def stage_confidence(
    stage: CascadeStage,
    given: AnyArray | ConfidenceScore | Predictions,
    scale: Scale | None,
) -> tuple[Any, str | None]:
    """Return the confidences of a stage, and what they are measured in where that is known."""
    if isinstance(given, Predictions):
        given = scales.compute_confidence(given, stage.score, None)
    if not isinstance(given, ConfidenceScore):
        return given, scale
    scales.check_score_name(stage.score, given.name)
    # What is computed says itself what it is measured in.
    return scales.values_on_scale(given, stage.scale, scale if given.is_user_column else None)
