"""Reliability diagrams."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from abstain.curves.reliability import Binning, ReliabilityCurve, reliability_curve
from abstain.plots._display import Display, by_score, column
from abstain.plots._style import reference_style
from abstain.typing import AnyArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Area of the dot of a bin that holds nothing and of one that holds everything, in points^2.
_SMALLEST, _LARGEST = 8.0, 160.0


@dataclass(eq=False)
class ReliabilityDisplay(Display[ReliabilityCurve]):
    """Share right against mean confidence; larger dots hold more samples.

    On the dotted diagonal confidence means what it says; below it is overconfident.

    Examples
    --------
    >>> from abstain.plots import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions([0.9, 0.9, 0.2, 0.2], [0, 0, 1, 0], bins=2)
    >>> display.frame()["accuracy"].to_list()
    [0.5, 1.0]
    """

    x: ClassVar[str] = "confidence"
    y: ClassVar[str] = "accuracy"

    @classmethod
    def from_predictions(
        cls,
        confidence: AnyArray | Mapping[str, AnyArray],
        loss: AnyArray,
        *,
        bins: int = 15,
        binning: Binning = "equal_width",
        weight: AnyArray | None = None,
    ) -> Self:
        """Compute the curves.

        Parameters
        ----------
        confidence : array of shape (n,), or mapping from name to array
            In [0, 1], read as the probability of being right; several scores by name.
        loss : array of shape (n,)
            In [0, 1]; 1 for an error under 0/1 loss.
        bins : int, default=15
            Number of bins.
        binning : {"equal_width", "equal_mass"}, default="equal_width"
            Bins of equal width in confidence, or of about equal weight.
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        ReliabilityDisplay
            Call `plot` to draw it.
        """

        def curve(c: AnyArray) -> ReliabilityCurve:
            return reliability_curve(c, loss, bins=bins, binning=binning, weight=weight)

        return cls(by_score(confidence, curve))

    def _draw(self, ax: "Axes", curve: ReliabilityCurve, style: dict[str, Any]) -> None:
        (line,) = ax.plot(column(curve, self.x), column(curve, self.y), **style)
        share = column(curve, "weight") / curve.total
        size = _SMALLEST + (_LARGEST - _SMALLEST) * share
        color = line.get_color()
        dots = (column(curve, self.x), column(curve, self.y))
        ax.scatter(*dots, s=size, color=color, linewidths=0, zorder=3, clip_on=False)

    def _draw_reference(self, ax: "Axes") -> None:
        ax.plot([0, 1], [0, 1], label="_diagonal", **reference_style())

    def _titles(self) -> tuple[str, str]:
        return "Mean confidence in the bin", "Share right in the bin"
