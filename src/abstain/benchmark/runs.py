"""`Run` and `RunScores`: what is kept of one trained network, and what it says of one exposure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from abstain.typing import FloatArray, IntArray

__all__ = ["VALIDATION", "Run", "RunScores"]

#: Stands for the validation pictures where an exposure is named.
VALIDATION: Final = "validation"


@dataclass(frozen=True)
class Run:
    """One trained network, the networks of all seeds together, or one that was imported.

    Attributes
    ----------
    name : str
        Unique in its folder: "cross-entropy-dropout0.3-seed1".
    arm : str
        What it was trained by: the name of an arm, or "ensemble".
    setting : str
        What the runs of all seeds have in common besides: "dropout0.3". Empty where the arm has
        one setting only.
    seed : int
        Of the network; an ensemble stands in every seed.
    model : str
        Its backbone.
    facts : mapping
        What was written down about it: losses, seconds.
    """

    name: str
    arm: str
    setting: str
    seed: int
    model: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RunScores:
    """What one run says of the pictures of one exposure, scored by every method it allows.

    Attributes
    ----------
    exposure : str
        Its key, such as "iid" or "corruption-fog-3"; "validation" for the validation pictures.
    labels : int64 ndarray of shape (n,)
        The true classes; -1 for a picture of no known class.
    places : int64 ndarray of shape (n,)
        Which picture of the source each is; copies of one share it and are not independent.
    prediction : int64 ndarray of shape (n,)
        The predicted classes.
    averaged : int64 ndarray of shape (n,) or None
        Those by the mean over the dropout passes; None where there are none.
    confidence : mapping from str to float64 ndarray of shape (n,)
        By the name of the method, higher is more trusted; none for methods that gave no numbers.
    logits : float32 ndarray of shape (n, K) or None
        The class logits.
    reasons : mapping from str to str
        Why a method gave no numbers.
    """

    exposure: str
    labels: IntArray
    places: IntArray
    prediction: IntArray
    averaged: IntArray | None
    confidence: Mapping[str, FloatArray]
    logits: FloatArray | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of pictures."""
        return len(self.labels)

    def rows(self, rows: slice, exposure: str) -> "RunScores":
        """Return some of the pictures, without logits, under the name of an exposure or study."""
        return RunScores(
            exposure,
            self.labels[rows],
            self.places[rows],
            self.prediction[rows],
            None if self.averaged is None else self.averaged[rows],
            {name: own[rows] for name, own in self.confidence.items()},
            reasons=self.reasons,
        )

    def predicted(self, averages: bool) -> IntArray:
        """Return the predictions that a method judges."""
        return self.averaged if averages and self.averaged is not None else self.prediction
