"""Metrics of network architectures on several data sets."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from abstain.errors import InputError
from abstain.plots._panels import RowPanels, distinct, legend_below, table_of
from abstain.plots.labels import draw_rule, unique_labels
from abstain.plots.style import INK, LIGHT, PAPER, Style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Height of a row, in inches.
_ROW_HEIGHT = 0.36
#: Vertical spread of the models of a row, as a share of its height.
_MODEL_SPREAD = 0.5
#: Markers that distinguish the models without color.
_MARKERS = "osD^vP*X"
#: Filled marker of the baseline, and hollow marker of the best method.
_BASELINE_MARK: dict[str, Any] = {"markersize": 4.5}
_BEST_MARK: dict[str, Any] = {"markersize": 6.5, "markerfacecolor": PAPER}


@dataclass(frozen=True)
class BackboneValue:
    """Metric of one network architecture on one data set, for the baseline and the best method.

    Examples
    --------
    >>> from abstain.plots.backbones import BackboneValue
    >>> BackboneValue("VGG-13", "iid", "AURC", 12.5, 11.0, "mcd_pe").best
    11.0
    """

    model: str
    data: str
    metric: str
    baseline: float
    best: float = math.nan
    best_method: str = ""


@dataclass(eq=False)
class BackboneDisplay(RowPanels):
    """Metrics of several network architectures, with one row per data set.

    Filled markers show the baseline, and hollow markers show the best method.

    `plot` passes additional options to each call of ``Axes.plot``.

    Attributes
    ----------
    values : tuple of BackboneValue
        Values, whose order determines the order of panels, rows and colors.
    baseline : str
        Name of the baseline, for the legend.
    title : str
        Title of the figure.

    Examples
    --------
    >>> from abstain.plots.backbones import BackboneDisplay, BackboneValue
    >>> values = (BackboneValue("VGG-13", "iid", "AURC", 12.5, 11.0, "mcd_pe"),)
    >>> BackboneDisplay(values, "msr", "Backbones").frame().rows()
    [('AURC', 'iid', 'VGG-13', 12.5, 11.0, 'mcd_pe')]
    """

    panel_width: ClassVar[float] = 2.5

    values: tuple[BackboneValue, ...]
    baseline: str
    title: str

    def __post_init__(self) -> None:
        """Check that there is at least one value."""
        if not self.values:
            raise InputError("`values` must hold at least one value of a model; got none")

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per model, data set and metric."""
        return table_of(self.values, ("metric", "data", "model", "baseline", "best", "best_method"))

    def _draw_on(self, ax: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw all panels and one legend."""
        from matplotlib.lines import Line2D

        handles = self._draw_row_panels(ax, kwargs)
        style: Style = {"color": INK, "linestyle": "none", "marker": "o"}
        handles[self.baseline] = Line2D([], [], **_BASELINE_MARK, **style)
        if not all(math.isnan(v.best) for v in self.values):
            handles["best method"] = Line2D([], [], **_BEST_MARK, **style)
        label_by_model = unique_labels(distinct(self.values, "model"))
        names = [label_by_model.get(name, name) for name in handles]
        legend_below(self.ax_ or ax, list(handles.values()), names)

    def _draw_panel(
        self, ax: "Axes", panel: str, kwargs: dict[str, Any], handles: dict[str, Any]
    ) -> None:
        """Draw the values of one metric, connected by a line for each model."""
        rows, models = self._row_names, distinct(self.values, "model")
        for row in range(len(rows)):
            draw_rule(ax, [0, 1], [row, row], transform=ax.get_yaxis_transform())
        for v in self.values:
            if v.metric != panel:
                continue
            i = models.index(v.model)
            y = rows.index(v.data) + _MODEL_SPREAD * ((i + 0.5) / len(models) - 0.5)
            color = LIGHT[i % len(LIGHT)]
            style = {"color": color, "marker": _MARKERS[i % len(_MARKERS)], "linestyle": "none"}
            if not math.isnan(v.best):
                ax.plot([v.baseline, v.best], [y, y], color=color, linewidth=1, alpha=0.5, zorder=2)
                ax.plot([v.best], [y], **{**style, **_BEST_MARK, "zorder": 3, **kwargs})
            (mark,) = ax.plot(
                [v.baseline], [y], **{**style, **_BASELINE_MARK, "zorder": 4, **kwargs}
            )
            handles.setdefault(v.model, mark)

    @property
    def _panel_names(self) -> list[str]:
        return distinct(self.values, "metric")

    @property
    def _row_names(self) -> list[str]:
        return distinct(self.values, "data")

    def _size(self) -> tuple[float, float]:
        legend_names = [*distinct(self.values, "model"), self.baseline, "best method"]
        return self._grid_size(_ROW_HEIGHT * len(self._row_names), legend_names)
