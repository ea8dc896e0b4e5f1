"""Dot plots of values with mean, median and quartiles."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.errors import InputError
from abstain.plots._panels import Panels, legend_below, n_legend_columns, name_panel, split_axes
from abstain.plots.labels import draw_rule, hide_frame, label_width, set_tick_labels, unique_labels
from abstain.plots.style import LIGHT, MUTED

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Width of a panel and height of one name in a row, in inches.
_PANEL_WIDTH, _ROW_HEIGHT = 2.7, 0.2
#: Maximum number of panels side by side.
_MAX_COLUMNS = 3
#: Share of a row that its names fill, and share of a name that its box fills.
_GROUP_HEIGHT, _BOX_HEIGHT = 0.8, 0.7
#: Minimum number of values for a box.
_MIN_VALUES_FOR_BOX = 5


@dataclass(frozen=True)
class SpreadValues:
    """Values of one name in a row of a panel.

    Examples
    --------
    >>> SpreadValues("AURC", "CIFAR-10", "ViT", (0.01, 0.02)).name
    'ViT'
    """

    panel: str
    row: str
    name: str
    values: tuple[float, ...]


@dataclass(eq=False)
class SpreadDisplay(Panels):
    """Dots of single values, with a thin line at their mean and a thick line at their median.

    With at least five values, a box extends from the first to the third quartile. `plot` passes its
    options on to every ``Axes.plot`` of dots.

    Attributes
    ----------
    spreads : tuple of SpreadValues
        Values in the order of panels, rows and colors.
    title : str
        Title of the figure.

    Examples
    --------
    >>> from abstain.plots.spread import SpreadValues, SpreadDisplay
    >>> SpreadDisplay((SpreadValues("AURC", "iid", "ViT", (0.1,)),), "Runs").frame().rows()
    [('AURC', 'iid', 'ViT', 0.1)]
    """

    spreads: tuple[SpreadValues, ...]
    title: str

    def __post_init__(self) -> None:
        """Check that there is something to plot."""
        if not any(math.isfinite(x) for s in self.spreads for x in s.values):
            raise InputError("`spreads` must hold at least one value; got none")

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per value."""
        import polars as pl

        rows = [(s.panel, s.row, s.name, x) for s in self.spreads for x in s.values]
        return pl.DataFrame(rows, schema=["panel", "row", "name", "value"], orient="row")

    def _draw_on(self, ax: "Axes", kwargs: dict[str, Any]) -> None:
        panels, names = self._unique("panel"), self._unique("name")
        axes = split_axes(ax, len(panels), share_x=False, share_y=True, max_columns=_MAX_COLUMNS)
        handles: dict[str, Any] = {}
        for i, (panel_axes, panel) in enumerate(zip(axes, panels, strict=True)):
            self._draw_panel(panel_axes, panel, kwargs, handles)
            panel_axes.tick_params(labelleft=i % _MAX_COLUMNS == 0)
        label_by_name = unique_labels(names)
        drawn_names = [name for name in names if name in handles]
        legend_below(
            axes[0], [handles[n] for n in drawn_names], [label_by_name[n] for n in drawn_names]
        )
        self.ax_ = axes[0]

    def _draw_panel(
        self, ax: "Axes", panel: str, kwargs: dict[str, Any], handles: dict[str, Any]
    ) -> None:
        rows, names = self._unique("row"), self._unique("name")
        name_height = _GROUP_HEIGHT / len(names)
        for line in range(len(rows) - 1):
            draw_rule(ax, [0, 1], [line + 0.5] * 2, transform=ax.get_yaxis_transform())
        for s in self.spreads:
            values = np.array([x for x in s.values if math.isfinite(x)])
            if s.panel == panel and values.size:
                i = names.index(s.name)
                y = rows.index(s.row) + name_height * (i + 0.5) - _GROUP_HEIGHT / 2
                dots = _draw_values(
                    ax, values, (y, name_height * _BOX_HEIGHT / 2), LIGHT[i % len(LIGHT)], kwargs
                )
                handles.setdefault(s.name, dots)
        hide_frame(ax)
        ax.grid(visible=False)
        label_by_row = unique_labels(rows)
        set_tick_labels(ax, "y", [label_by_row[name] for name in rows], range(len(rows)))
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.locator_params(axis="x", nbins=4)
        ax.tick_params(axis="x", labelsize=8, colors=MUTED)
        name_panel(ax, panel)

    def _unique(self, name: str) -> list[str]:
        return list(dict.fromkeys(getattr(s, name) for s in self.spreads))

    def _size(self) -> tuple[float, float]:
        panels, rows, names = (self._unique(part) for part in ("panel", "row", "name"))
        width = min(len(panels), _MAX_COLUMNS) * _PANEL_WIDTH + label_width(rows) + 0.3
        n_legend_rows = math.ceil(len(names) / n_legend_columns(names, width - 0.3))
        panel_height = max(_ROW_HEIGHT * len(rows) * max(len(names), 2), 1.0) + 0.7
        return width, math.ceil(
            len(panels) / _MAX_COLUMNS
        ) * panel_height + 0.3 + 0.2 * n_legend_rows


def _draw_values(
    ax: "Axes", values: Any, place: tuple[float, float], color: str, kwargs: dict[str, Any]
) -> Any:
    """Draw the values of one name in one row; return the dots."""
    y, half_height = place
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    if values.size >= _MIN_VALUES_FOR_BOX:
        ax.barh(
            [y], [high - low], left=[low], height=2 * half_height, color=color, alpha=0.18, zorder=2
        )
    ax.plot(
        [values.mean()] * 2, [y - half_height, y + half_height], color=color, linewidth=1, zorder=3
    )
    ax.plot([median] * 2, [y - half_height, y + half_height], color=color, linewidth=2.6, zorder=3)
    style = {"color": color, "marker": "o", "markersize": 3, "linestyle": "none", "alpha": 0.55}
    (dots,) = ax.plot(values, np.full(values.size, y), **{**style, "zorder": 4, **kwargs})
    return dots
