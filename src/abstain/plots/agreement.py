"""Scatter plots of two results for the same cases, such as two implementations of a metric."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.errors import InputError
from abstain.plots._panels import (
    Panels,
    distinct,
    grid_shape,
    legend_below,
    name_panel,
    style_panel,
    table_of,
)
from abstain.plots.style import INK, LIGHT, Style, reference_style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

_SIZE = (3.5, 3.4)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")


@dataclass(frozen=True)
class Pair:
    """Two results for one case, such as the values of a metric from two implementations.

    Attributes
    ----------
    name : str
        Name of the case.
    group : str
        Group, which determines the color.
    x, y : float
        Results of the two computations.
    panel : str
        Panel in which the case is drawn.

    Examples
    --------
    >>> Pair("digits, msr", "digits", 0.01, 0.011).panel
    ''
    """

    name: str
    group: str
    x: float
    y: float
    panel: str = ""

    @property
    def difference(self) -> float:
        """Second result minus first result."""
        return self.y - self.x


@dataclass(eq=False)
class AgreementDisplay(Panels):
    """Scatter plot of two results for each case, with the first result on the x axis.

    The y axis shows the second result or, if `is_relative_difference` is true, the relative
    difference.

    `plot` passes additional options to each call of ``Axes.scatter`` (s, alpha).

    Attributes
    ----------
    pairs : tuple of Pair
        Cases.
    title, x_title, y_title : str
        Titles of the figure and of its axes.
    is_relative_difference : bool
        Whether the y axis shows (y - x) / x instead of y.

    Examples
    --------
    >>> from abstain.plots.agreement import AgreementDisplay, Pair
    >>> display = AgreementDisplay((Pair("digits, msr", "digits", 0.01, 0.011),), "", "a", "p")
    >>> display.frame()["difference"].round(6).to_list()
    [0.001]
    """

    pairs: tuple[Pair, ...]
    title: str
    x_title: str
    y_title: str
    is_relative_difference: bool = False

    def __post_init__(self) -> None:
        """Check that there is at least one case."""
        if not self.pairs:
            raise InputError("`pairs` must hold at least one case; got none")

    @property
    def panels(self) -> list[str]:
        """Names of the panels, in the order in which they first appear."""
        return distinct(self.pairs, "panel")

    @property
    def groups(self) -> list[str]:
        """Names of the groups, in the order in which colors are assigned."""
        return distinct(self.pairs, "group")

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per case."""
        return table_of(self.pairs, ("panel", "group", "name", "x", "y", "difference"))

    def _draw_on(self, ax: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw all panels and one legend."""
        axes = self._split_axes(ax, len(self.panels))
        _, columns = grid_shape(len(axes))
        handles: dict[str, Any] = {}
        for i, (panel, panel_axes) in enumerate(zip(self.panels, axes, strict=True)):
            panel_pairs = [p for p in self.pairs if p.panel == panel]
            self._draw_points(panel_axes, panel_pairs, kwargs, handles)
            self._draw_reference(panel_axes, panel_pairs)
            style_panel(panel_axes, self.x_title, "" if i % columns else self.y_title)
            name_panel(panel_axes, panel)
        legend_below(axes[0], list(handles.values()), list(handles))

    def _draw_points(
        self, ax: "Axes", panel_pairs: list[Pair], kwargs: dict[str, Any], handles: dict[str, Any]
    ) -> None:
        """Draw the cases of a panel, and add a legend entry for each group that has none."""
        for i, group in enumerate(self.groups):
            x = np.array([p.x for p in panel_pairs if p.group == group])
            y = np.array([p.y for p in panel_pairs if p.group == group])
            if not x.size:
                continue
            if self.is_relative_difference:
                # The relative difference is undefined for x = 0.
                y = np.divide(y - x, x, out=np.full(x.size, np.nan), where=x != 0)
            style: Style = {"color": LIGHT[i % len(LIGHT)], "marker": _MARKERS[i % len(_MARKERS)]}
            style |= {"s": 22, "alpha": 0.85, "linewidths": 0, **kwargs}
            handles.setdefault(group, ax.scatter(x, y, **style))

    def _draw_reference(self, ax: "Axes", panel_pairs: list[Pair]) -> None:
        """Set the scales of the axes, and draw a line at equal results."""
        values = [value for p in panel_pairs for value in (p.x, p.y)]
        low, high = min(values), max(values)
        # A logarithmic axis has tick labels only if the values span at least a factor of 5.
        is_logarithmic = low > 0 and high > 5 * low
        if is_logarithmic:
            ax.set_xscale("log")
        if is_logarithmic and not self.is_relative_difference:
            ax.set_yscale("log")
        style = {**reference_style(), "color": INK}
        if self.is_relative_difference:
            ax.axhline(0, **style)
        else:
            ax.plot([low, high], [low, high], **style)
        if not is_logarithmic:
            ax.locator_params(nbins=5)

    def _size(self) -> tuple[float, float]:
        rows, columns = grid_shape(len(self.panels))
        return columns * _SIZE[0] + 0.5, rows * _SIZE[1] + 0.6
