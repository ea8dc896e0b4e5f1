"""Networks of several kinds side by side: one panel a metric, one row a data set."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abstain.errors import InputError
from abstain.plots._panels import Panels, legend_below, n_legend_columns, name_panel, split_axes
from abstain.plots.labels import hide_frame, unique_labels, set_tick_labels, label_width, draw_rule
from abstain.plots.style import INK, LIGHT, MUTED, PAPER

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Inches of a panel, and of a row.
_PANEL_WIDTH, _ROW_HEIGHT = 2.5, 0.36
#: How far apart the models of a row stand, as a share of it.
_MODEL_SPREAD = 0.5
#: Panels side by side.
_MAX_COLUMNS = 3
#: Shapes of the models, so that they are told without color.
_MARKERS = "osD^vP*X"


@dataclass(frozen=True)
class BackboneValue:
    """What a model achieves on a data set by a metric: the baseline, and the best method if any.

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
    """Filled marks for the baseline, hollow ones for the best method, one color a model.

    `plot` passes its options on to every ``Axes.plot``.

    Attributes
    ----------
    values : tuple of BackboneValue
        In the order of panels, rows and colors.
    baseline : str
        What the filled marks are called.
    title : str
        What the figure shows.

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
        """Refuse a figure of nothing."""
        if not self.values:
            raise InputError("`values` must hold at least one value of a model; got none")

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row a model, data set and metric."""
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
        for y in range(len(data)):
            draw_rule(ax, [0, 1], [y, y], transform=ax.get_yaxis_transform())
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
        """Return what the filled and the hollow marks are called."""
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
