"""Selective or generalized risk against coverage."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from abstain.curves.risk_coverage import (
    Kind,
    RiskCoverageCurve,
    generalized_risk_coverage_curve,
    risk_coverage_curve,
    thin,
)
from abstain.errors import InputError
from abstain.plots.drawable import Display, by_score, column
from abstain.plots.style import CURVE
from abstain.typing import AnyArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More vertices than this are thinned before they are drawn and tabled.
_VERTICES = 2000

_TITLES = {
    "selective": "Selective risk (mean loss of the accepted)",
    "generalized": "Generalized risk (accepted loss per sample)",
}


@dataclass(eq=False)
class RiskCoverageDisplay(Display[RiskCoverageCurve]):
    """Risk against coverage, with the working points worth choosing marked.

    Straight segments join the vertices, as the trapezoid of AURC and AUGRC has them. No
    threshold lies between two vertices: where many samples are tied the segment is long.
    Curves of more than about 2000 vertices are thinned for drawing and in the table.

    Examples
    --------
    >>> from abstain.plots import RiskCoverageDisplay
    >>> display = RiskCoverageDisplay.from_predictions([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 0])
    >>> display.frame()["risk"].round(3).to_list()
    [0.0, 0.333, 0.25]
    """

    x: ClassVar[str] = "coverage"
    y: ClassVar[str] = "risk"

    @classmethod
    def from_predictions(
        cls,
        confidence: AnyArray | Mapping[str, AnyArray],
        loss: AnyArray,
        *,
        kind: Kind = "selective",
        weight: AnyArray | None = None,
    ) -> Self:
        """Compute the curves.

        Parameters
        ----------
        confidence : array of shape (n,), or mapping from name to array
            Higher means more trusted; several scores by name.
        loss : array of shape (n,)
            Finite and non-negative; 1 for an error under 0/1 loss.
        kind : {"selective", "generalized"}, default="selective"
            Mean loss of the accepted, or accepted loss per sample.
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        RiskCoverageDisplay
            Call `plot` to draw it.
        """
        functions = {
            "selective": risk_coverage_curve,
            "generalized": generalized_risk_coverage_curve,
        }
        if kind not in functions:
            msg = f"`kind` must be 'selective' or 'generalized'; got {kind!r}"
            raise InputError(msg)
        return cls(by_score(confidence, lambda c: functions[kind](c, loss, weight=weight)))

    def plot(
        self, ax: "Axes | None" = None, *, usable: bool = True, steps: bool = False, **kwargs: Any
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        usable : bool, default=True
            Mark the vertices that no larger coverage matches in selective risk.
        steps : bool, default=False
            Keep the risk of a vertex until the next one instead of joining them: what a
            threshold really gives between two distinct confidences.
        **kwargs
            Passed to every ``Axes.plot`` of a curve (color, linewidth, label).

        Returns
        -------
        RiskCoverageDisplay
            With `ax_` and `figure_` set.
        """
        if steps:
            kwargs = {"drawstyle": "steps-post", **kwargs}
        super().plot(ax, **kwargs)
        if usable and self.ax_ is not None:
            self._mark_usable(self.ax_)
        return self

    def _mark_usable(self, ax: "Axes") -> None:
        lines = [line for line in ax.get_lines() if line.get_gid() == CURVE]
        drawn = lines[-len(self.curves) :]
        for line, curve in zip(drawn, self.curves.values(), strict=True):
            kept = self._drawn(curve)
            at = column(kept, "usable")
            x, y = column(kept, self.x)[at], column(kept, self.y)[at]
            ax.scatter(x, y, s=9, color=line.get_color(), linewidths=0, zorder=3)

    def _drawn(self, curve: RiskCoverageCurve) -> RiskCoverageCurve:
        on_host = {
            f.name: getattr(curve, f.name) if f.name in {"kind", "total"} else column(curve, f.name)
            for f in fields(curve)
        }
        return thin(RiskCoverageCurve(**on_host), vertices=_VERTICES)

    def _draw(self, ax: "Axes", curve: RiskCoverageCurve, style: dict[str, Any]) -> None:
        super()._draw(ax, curve, style)
        # From the first vertex to coverage 0: the selective risk is taken as flat there, the
        # generalized risk starts at the origin.
        first = curve.risk[0] if curve.kind == "selective" else 0.0
        lead = {**style, "linestyle": ":", "linewidth": 1.0, "label": "_lead", "gid": None}
        ax.plot([0.0, curve.coverage[0]], [first, curve.risk[0]], **lead)

    def _titles(self) -> tuple[str, str]:
        kinds = {curve.kind for curve in self.curves.values()}
        risk = _TITLES[kinds.pop()] if len(kinds) == 1 else "Risk"
        return "Coverage (share accepted)", risk
