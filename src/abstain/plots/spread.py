"""Dot plots of values with their mean, median and quartiles."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from abstain.errors import InputError
from abstain.plots._panels import RowPanels, distinct, legend_below
from abstain.plots.labels import draw_rule, unique_labels
from abstain.plots.style import LIGHT, Style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Height of one name in a row, in inches.
_ROW_HEIGHT = 0.2
#: Share of the height of a row for all names, and share of the height of a name for its box.
_GROUP_HEIGHT, _BOX_HEIGHT = 0.8, 0.7
#: Minimum number of values for a box.
_MIN_VALUES_FOR_BOX = 5


@dataclass(frozen=True)
class SpreadValues:
    """Values that are drawn in one color in one row of a panel, such as the runs of one model.

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
class SpreadDisplay(RowPanels):
    """Dot plot of values, with a thin line at the mean and a thick line at the median.

    With at least five values, a box extends from the first to the third quartile.

    `plot` passes additional options to each call of ``Axes.plot`` of dots.

    Attributes
    ----------
    spreads : tuple of SpreadValues
        Values, whose order determines the order of panels, rows and colors.
    title : str
        Title of the figure.

    Examples
    --------
    >>> from abstain.plots.spread import SpreadValues, SpreadDisplay
    >>> SpreadDisplay((SpreadValues("AURC", "iid", "ViT", (0.1,)),), "Runs").frame().rows()
    [('AURC', 'iid', 'ViT', 0.1)]
    """

    panel_width: ClassVar[float] = 2.7

    spreads: tuple[SpreadValues, ...]
    title: str

    def __post_init__(self) -> None:
        """Check that there is at least one value."""
        if not any(math.isfinite(x) for s in self.spreads for x in s.values):
            raise InputError("`spreads` must hold at least one value; got none")

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per value."""
        import polars as pl

        rows = [(s.panel, s.row, s.name, x) for s in self.spreads for x in s.values]
        return pl.DataFrame(rows, schema=["panel", "row", "name", "value"], orient="row")

    def _draw_on(self, ax: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw all panels and one legend."""
        handles = self._draw_row_panels(ax, kwargs)
        label_by_name = unique_labels(self._names)
        drawn_names = [name for name in self._names if name in handles]
        legend_below(
            self.ax_ or ax,
            [handles[name] for name in drawn_names],
            [label_by_name[name] for name in drawn_names],
        )

    def _draw_panel(
        self, ax: "Axes", panel: str, kwargs: dict[str, Any], handles: dict[str, Any]
    ) -> None:
        """Draw the values of a panel with their mean, median and quartiles."""
        rows, names = self._row_names, self._names
        name_height = _GROUP_HEIGHT / len(names)
        box_height = name_height * _BOX_HEIGHT
        for line in range(len(rows) - 1):
            draw_rule(ax, [0, 1], [line + 0.5] * 2, transform=ax.get_yaxis_transform())
        for s in self.spreads:
            values = np.array([x for x in s.values if math.isfinite(x)])
            if s.panel != panel or not values.size:
                continue
            i = names.index(s.name)
            y = rows.index(s.row) + name_height * (i + 0.5) - _GROUP_HEIGHT / 2
            style: Style = {"color": LIGHT[i % len(LIGHT)], "zorder": 3}
            low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
            if values.size >= _MIN_VALUES_FOR_BOX:
                box = {**style, "alpha": 0.18, "zorder": 2}
                ax.barh([y], [high - low], left=[low], height=box_height, **box)
            y_bounds = [y - box_height / 2, y + box_height / 2]
            ax.plot([values.mean()] * 2, y_bounds, linewidth=1, **style)
            ax.plot([median] * 2, y_bounds, linewidth=2.6, **style)
            style |= {"marker": "o", "markersize": 3, "linestyle": "none", "alpha": 0.55}
            style |= {"zorder": 4, **kwargs}
            (dots,) = ax.plot(values, np.full(values.size, y), **style)
            handles.setdefault(s.name, dots)

    @property
    def _panel_names(self) -> list[str]:
        return distinct(self.spreads, "panel")

    @property
    def _row_names(self) -> list[str]:
        return distinct(self.spreads, "row")

    @property
    def _names(self) -> list[str]:
        return distinct(self.spreads, "name")

    def _size(self) -> tuple[float, float]:
        rows_height = _ROW_HEIGHT * len(self._row_names) * max(len(self._names), 2)
        return self._grid_size(rows_height, self._names)
