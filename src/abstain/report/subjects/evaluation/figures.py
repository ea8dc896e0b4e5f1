"""Static figures of an evaluation: risk-coverage curves and reliability diagrams."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain.curves.reliability import ReliabilityCurve
from abstain.curves.risk_coverage import RiskCoverageCurve, thin
from abstain.plots.bands import METHOD_CLASS_PREFIX
from abstain.plots.drawable import Titled
from abstain.plots.style import INK, MUTED, line_style, reference_style, style_axes

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Coverage at which the curves have a dot.
MARKED_COVERAGE: Final = 0.8

_MAX_VERTICES: Final = 120
#: The risk of the first accepted samples varies strongly and does not determine the axis.
_MIN_COVERAGE_FOR_AXIS: Final = 0.05
_MIN_DRAWN_COVERAGE: Final = 0.02
_SIZE: Final = (5.6, 3.7)


@dataclass(eq=False)
class CurvesFigure(Titled):
    """Selective risk against coverage, with a dot at 80% coverage.

    `index_by_name` are the indices of the colors. The artists of a curve have the class
    ``method-INDEX``, so that a page can hide them. `is_share` prints the risk as a percentage. The
    curves in `scaled`, all by default, determine the risk axis.
    """

    curves: dict[str, RiskCoverageCurve]
    index_by_name: Mapping[str, int]
    is_share: bool = True
    scaled: tuple[str, ...] = ()
    title: str = field(default="Selective risk by coverage", repr=False)

    def frame(self) -> "pl.DataFrame":
        """Return the plotted points as a Polars table."""
        import polars as pl

        tables = [
            thin(curve, vertices=_MAX_VERTICES)
            .frame()
            .select(pl.lit(name).alias("score"), "coverage", "risk")
            for name, curve in self.curves.items()
        ]
        return pl.concat(tables, how="vertical_relaxed")

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        max_risk = 0.0
        axes.axvline(MARKED_COVERAGE, **reference_style())
        for name, curve in self.curves.items():
            index = self.index_by_name[name]
            gid = f"{METHOD_CLASS_PREFIX}{index}"
            thinned = thin(curve, vertices=_MAX_VERTICES)
            x, y = (np.asarray(to_numpy(v, "curve")) for v in (thinned.coverage, thinned.risk))
            # The risk of the first samples varies strongly.
            is_drawn = x >= min(_MIN_DRAWN_COVERAGE, float(x[-1]))
            x, y = x[is_drawn], y[is_drawn]
            style = {**line_style(index), **kwargs, "gid": gid}
            axes.plot(x, y, **style)
            i = int(np.searchsorted(x, MARKED_COVERAGE).clip(max=x.size - 1))
            axes.plot(x[i], y[i], "o", color=style["color"], markersize=4.5, gid=gid)
            if name in (self.scaled or self.curves):
                max_risk = max(max_risk, float(y[x >= _MIN_COVERAGE_FOR_AXIS].max(initial=0.0)))
        axes.set(xlabel="Coverage: share of samples answered", xlim=(0, 1))
        axes.set_ylim(0, 1.06 * max_risk or 1.0)
        _style(axes, y_is_percent=self.is_share)

    def _size(self) -> tuple[float, float]:
        return _SIZE


@dataclass(eq=False)
class ReliabilityFigure(Titled):
    """Accuracy by mean confidence in each bin with at least 20 samples."""

    curves: dict[str, ReliabilityCurve]
    index_by_name: Mapping[str, int]
    title: str = field(default="Accuracy by predicted probability", repr=False)

    def frame(self) -> "pl.DataFrame":
        """Return the plotted points as a Polars table."""
        import polars as pl

        tables = [
            curve.frame().select(pl.lit(name).alias("score"), pl.all())
            for name, curve in self.curves.items()
        ]
        return pl.concat(tables, how="vertical_relaxed")

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        axes.plot([0, 1], [0, 1], **reference_style())
        for name, curve in self.curves.items():
            index = self.index_by_name[name]
            is_drawn = np.flatnonzero(np.asarray(curve.count) >= MIN_BIN_COUNT)
            x, y = np.asarray(curve.confidence)[is_drawn], np.asarray(curve.accuracy)[is_drawn]
            style = {**line_style(index), "marker": "o", "markersize": 4, **kwargs}
            axes.plot(x, y, **style, gid=f"{METHOD_CLASS_PREFIX}{index}")
        axes.set(xlabel="Predicted probability of a correct answer", xlim=(0, 1), ylim=(0, 1.02))
        _style(axes, y_is_percent=True)

    def _size(self) -> tuple[float, float]:
        return _SIZE


#: Minimum number of samples of a bin of a reliability figure.
MIN_BIN_COUNT: Final = 20


def _style(axes: "Axes", *, y_is_percent: bool) -> None:
    """Style the axes, with percentages as ticks and horizontal grid lines only."""
    from matplotlib.ticker import PercentFormatter

    style_axes(axes)
    axes.grid(visible=False, axis="x")
    axes.spines[["left"]].set_visible(False)
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    if y_is_percent:
        decimals = 0 if axes.get_ylim()[1] > _FINE_AXIS else 1
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=decimals))
    axes.xaxis.label.set_color(MUTED)
    axes.tick_params(labelcolor=INK)


#: Below this maximum, the ticks of the risk have one decimal.
_FINE_AXIS: Final = 0.05
