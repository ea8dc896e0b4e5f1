"""The ROC curve of failure detection."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from abstain.curves.failure_roc import FailureRocCurve, failure_roc_curve
from abstain.plots._display import Display, by_score
from abstain.plots._style import reference_style
from abstain.typing import AnyArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False)
class FailureRocDisplay(Display[FailureRocCurve]):
    """Successes kept against failures let through; the dotted diagonal knows nothing.

    Examples
    --------
    >>> from abstain.plots import FailureRocDisplay
    >>> display = FailureRocDisplay.from_predictions([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1])
    >>> display.frame()["true_positive_rate"].to_list()
    [0.0, 0.5, 1.0, 1.0]
    """

    x: ClassVar[str] = "false_positive_rate"
    y: ClassVar[str] = "true_positive_rate"

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
            1 for a failure, 0 for a success.
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        FailureRocDisplay
            Call `plot` to draw it.
        """
        return cls(by_score(confidence, lambda c: failure_roc_curve(c, loss, weight=weight)))

    def _draw_reference(self, ax: "Axes") -> None:
        ax.plot([0, 1], [0, 1], label="_chance", **reference_style())

    def _titles(self) -> tuple[str, str]:
        return "Share of the failures accepted", "Share of the successes accepted"
