"""Results of several network architectures: one panel per metric, one row per data set."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abstain.errors import InputError
from abstain.plots._panels import Panels, legend_below, n_legend_columns, name_panel, split_axes
from abstain.plots.labels import draw_rule, hide_frame, label_width, set_tick_labels, unique_labels
from abstain.plots.style import INK, LIGHT, MUTED, PAPER

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Width of a panel and height of a row, in inches.
_PANEL_WIDTH, _ROW_HEIGHT = 2.5, 0.36
#: Vertical spread of the models of a row, as a share of its height.
_MODEL_SPREAD = 0.5
#: Maximum number of panels side by side.
_MAX_COLUMNS = 3
#: Markers of the models, so that they are recognizable without color.
_MARKERS = "osD^vP*X"


@dataclass(frozen=True)
class BackboneValue:
    """Metric of a model on a data set, for the baseline and for the best method.

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
class BackboneDisplay(Panels):
    """Filled marks for the baseline and hollow marks for the best method, one color per model.

    `plot` passes additional options to each call of ``Axes.plot``.

    Attributes
    ----------
    values : tuple of BackboneValue
        Values in the order of panels, rows and colors.
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

    values: tuple[BackboneValue, ...]
    baseline: str
    title: str

    def __post_init__(self) -> None:
        """Check that there is something to plot."""
        if not self.values:
            raise InputError("`values` must hold at least one value of a model; got none")

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per model, data set and metric."""
        import polars as pl

        rows = [(v.metric, v.data, v.model, v.baseline, v.best, v.best_method) for v in self.values]
        columns = ["metric", "data", "model", "baseline", "best", "best_method"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def _draw_on(self, ax: "Axes", kwargs: dict[str, Any]) -> None:
        metrics, models = self._unique("metric"), self._unique("model")
        axes = split_axes(ax, len(metrics), share_x=False, share_y=True, max_columns=_MAX_COLUMNS)
        handles: dict[str, Any] = {}
        for i, (panel, metric) in enumerate(zip(axes, metrics, strict=True)):
            self._draw_panel(panel, metric, kwargs, handles)
            panel.tick_params(labelleft=i % _MAX_COLUMNS == 0)
        handles |= self._mark_handles()
        label_by_model = unique_labels(models)
        names = [label_by_model.get(name, name) for name in handles]
        legend_below(axes[0], list(handles.values()), names)
        self.ax_ = axes[0]

    def _draw_panel(
        self, ax: "Axes", metric: str, kwargs: dict[str, Any], handles: dict[str, Any]
    ) -> None:
        data, models = self._unique("data"), self._unique("model")
        for row in range(len(data)):
            draw_rule(ax, [0, 1], [row, row], transform=ax.get_yaxis_transform())
        for v in self.values:
            if v.metric != metric:
                continue
            i = models.index(v.model)
            y = data.index(v.data) + _MODEL_SPREAD * ((i + 0.5) / len(models) - 0.5)
            self._draw_value(ax, v, (y, i), kwargs, handles)
        hide_frame(ax)
        ax.grid(visible=False)
        label_by_data = unique_labels(data)
        set_tick_labels(ax, "y", [label_by_data[name] for name in data], range(len(data)))
        ax.set_ylim(len(data) - 0.5, -0.5)
        ax.locator_params(axis="x", nbins=4)
        ax.tick_params(axis="x", labelsize=8, colors=MUTED)
        name_panel(ax, metric)

    def _draw_value(
        self,
        ax: "Axes",
        v: BackboneValue,
        position: tuple[float, int],
        kwargs: dict[str, Any],
        handles: dict[str, Any],
    ) -> None:
        y, i = position
        color = LIGHT[i % len(LIGHT)]
        style = {"color": color, "marker": _MARKERS[i % len(_MARKERS)], "linestyle": "none"}
        hollow = {**style, "markersize": 6.5, "markerfacecolor": PAPER, "zorder": 3, **kwargs}
        filled = {**style, "markersize": 4.5, "zorder": 4, **kwargs}
        if not math.isnan(v.best):
            ax.plot([v.baseline, v.best], [y, y], color=color, linewidth=1, alpha=0.5, zorder=2)
            ax.plot([v.best], [y], **hollow)
        (line,) = ax.plot([v.baseline], [y], **filled)
        handles.setdefault(v.model, line)

    def _mark_handles(self) -> dict[str, Any]:
        """Return the legend handles of the baseline and of the best method."""
        from matplotlib.lines import Line2D

        style: dict[str, Any] = {"color": INK, "linestyle": "none", "marker": "o"}
        filled = Line2D([], [], markersize=4.5, **style)
        hollow = Line2D([], [], markersize=6.5, markerfacecolor=PAPER, **style)
        if all(math.isnan(v.best) for v in self.values):
            return {self.baseline: filled}
        return {self.baseline: filled, "best method": hollow}

    def _unique(self, name: str) -> list[str]:
        return list(dict.fromkeys(getattr(v, name) for v in self.values))

    def _size(self) -> tuple[float, float]:
        count, rows = len(self._unique("metric")), len(self._unique("data"))
        n_columns = min(count, _MAX_COLUMNS)
        width = n_columns * _PANEL_WIDTH + label_width(self._unique("data")) + 0.3
        names = [*self._unique("model"), self.baseline, "best method"]
        n_legend_rows = math.ceil(len(names) / n_legend_columns(names, width - 0.3))
        panel_height = max(_ROW_HEIGHT * rows, 1.0) + 0.7
        return width, math.ceil(count / _MAX_COLUMNS) * panel_height + 0.3 + 0.2 * n_legend_rows
