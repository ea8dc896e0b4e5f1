"""Reliability diagram before and after calibration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from abstain.curves.reliability import ReliabilityCurve
from abstain.evaluation.calibration import CalibrationCheck
from abstain.plots.curves import ReliabilityDisplay
from abstain.plots.drawable import curve_column
from abstain.plots.formatting import check_result_type
from abstain.plots.style import LIGHT, MUTED, Style
from abstain.typing import FloatArray

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

BEFORE, AFTER = "before", "after"

_BAR_LABEL = "95% range if calibrated"

_STYLES: Mapping[str, dict[str, Any]] = {
    BEFORE: {"color": MUTED, "linestyle": (0, (4, 2)), "linewidth": 1.3},
    AFTER: {"color": LIGHT[0], "linestyle": "-", "linewidth": 1.8},
}


@dataclass(eq=False)
class CalibrationDisplay(ReliabilityDisplay):
    """Reliability diagrams before calibration (gray) and after calibration.

    On the dotted diagonal, accuracy equals confidence. Below the diagonal, the score is
    overconfident. Larger dots represent more samples.

    If the score is perfectly calibrated, each dot is inside its light bar with a probability of
    95%. A dot inside its bar is therefore consistent with perfect calibration.

    Attributes
    ----------
    errors : dict of str to float
        ECE of each curve, for the legend.
    consistency_bars : tuple of arrays of shape (bins,), or None
        Lower and upper bounds of the bars.

    Examples
    --------
    >>> import abstain as ab
    >>> from abstain.plots.calibration import CalibrationDisplay
    >>> data = ab.Predictions(confidence=[0.9, 0.9, 0.8, 0.8], loss=[0, 1, 0, 1])
    >>> check = ab.calibration_check(ab.calibrate("confidence", data, method="isotonic"), data)
    >>> table = CalibrationDisplay.from_check(check).frame().drop_nulls("confidence")
    >>> table["confidence"].round(2).to_list()
    [0.8, 0.9, 0.5]
    """

    always_named: ClassVar[bool] = True

    errors: dict[str, float] = field(default_factory=dict)
    consistency_bars: tuple[FloatArray, FloatArray] | None = None

    @classmethod
    def from_check(cls, check: CalibrationCheck) -> Self:
        """Create a display from a calibration check.

        Parameters
        ----------
        check : CalibrationCheck
            Result of `calibration_check`. The curve before calibration is omitted if the score was
            not a probability.

        Returns
        -------
        CalibrationDisplay
            Display of the data. The method `plot` draws the figure.
        """
        ece = check_result_type(check, CalibrationCheck, "check", "calibration_check").ece
        curves: dict[str, ReliabilityCurve] = {}
        if check.reliability_before is not None:
            curves[BEFORE] = check.reliability_before
        curves[AFTER] = check.reliability_after
        bars = (check.consistent_low, check.consistent_high)
        return cls(curves, {BEFORE: ece.before, AFTER: ece.after}, bars)

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table.

        The first column is "before" or "after".
        """
        import polars as pl

        table = super().frame()
        if self.consistency_bars is None:
            return table
        names = ("consistent_low", "consistent_high")
        bars = pl.DataFrame(dict(zip(names, self.consistency_bars, strict=True)), nan_to_null=True)
        after = table.filter(pl.col("score") == AFTER).hstack(bars)
        before = table.filter(pl.col("score") != AFTER)
        return pl.concat([before, after], how="diagonal")

    def _style(self, index: int, name: str) -> dict[str, Any]:
        del index  # The style depends only on the name.
        error = self.errors.get(name)
        label = name if error is None else f"{name} (ECE {error:.4f})"
        return {**_STYLES.get(name, {}), "label": label}

    def _draw_reference(self, ax: "Axes") -> None:
        super()._draw_reference(ax)
        if self.consistency_bars is None:
            return
        x = curve_column(self.curves[AFTER], self.x)
        style: Style = {"colors": MUTED, "alpha": 0.22, "linewidth": 5, "zorder": 1.5}
        ax.vlines(x, *self.consistency_bars, label=_BAR_LABEL, **style)
