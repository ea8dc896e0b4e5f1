"""Rejection and retention curves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from abstain.curves.retention import (
    AccuracyRejectionCurve,
    ErrorRetentionCurve,
    accuracy_rejection_curve,
    error_retention_curve,
)
from abstain.plots._display import Display, by_score
from abstain.typing import AnyArray


@dataclass(eq=False)
class RetentionDisplay(Display[ErrorRetentionCurve]):
    """Mean loss when the rejected samples go to an oracle, against the share kept.

    Examples
    --------
    >>> from abstain.plots import RetentionDisplay
    >>> display = RetentionDisplay.from_predictions([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1])
    >>> display.frame()["error"].to_list()
    [0.0, 0.0, 0.25, 0.5]
    """

    x: ClassVar[str] = "retention"
    y: ClassVar[str] = "error"

    @classmethod
    def from_predictions(
        cls,
        confidence: AnyArray | Mapping[str, AnyArray],
        loss: AnyArray,
        *,
        weight: AnyArray | None = None,
    ) -> Self:
        """Compute the curves.

        Parameters
        ----------
        confidence : array of shape (n,), or mapping from name to array
            Higher means more trusted; several scores by name.
        loss : array of shape (n,)
            Finite and non-negative.
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        RetentionDisplay
            Call `plot` to draw it.
        """
        return cls(by_score(confidence, lambda c: error_retention_curve(c, loss, weight=weight)))

    def _titles(self) -> tuple[str, str]:
        return "Retention (share the model answers)", "Mean loss, an oracle answering the rest"


@dataclass(eq=False)
class AccuracyRejectionDisplay(Display[AccuracyRejectionCurve]):
    """Accuracy of the accepted against the share rejected.

    Examples
    --------
    >>> from abstain.plots import AccuracyRejectionDisplay
    >>> display = AccuracyRejectionDisplay.from_predictions([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1])
    >>> display.frame()["rejection"].to_list()
    [0.75, 0.25, 0.0]
    """

    x: ClassVar[str] = "rejection"
    y: ClassVar[str] = "accuracy"

    @classmethod
    def from_predictions(
        cls,
        confidence: AnyArray | Mapping[str, AnyArray],
        loss: AnyArray,
        *,
        weight: AnyArray | None = None,
    ) -> Self:
        """Compute the curves.

        Parameters
        ----------
        confidence : array of shape (n,), or mapping from name to array
            Higher means more trusted; several scores by name.
        loss : array of shape (n,)
            In [0, 1]; 1 for an error under 0/1 loss.
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        AccuracyRejectionDisplay
            Call `plot` to draw it.
        """
        return cls(by_score(confidence, lambda c: accuracy_rejection_curve(c, loss, weight=weight)))

    def _titles(self) -> tuple[str, str]:
        return "Rejection (share rejected)", "Accuracy of the accepted"
