"""Scatter plot of two computations of the same numbers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.errors import InputError
from abstain.plots._panels import Panels, grid_shape, legend_below, name_panel, split_axes
from abstain.plots.style import INK, LIGHT, MUTED, reference_style, style_axes

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

_SIZE = (3.5, 3.4)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")


@dataclass(frozen=True)
class Pair:
    """Results of two computations for one case.

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


@dataclass(eq=False)
class AgreementDisplay(Panels):
    """Scatter plot of one result against the other, or of their relative difference.

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
        """Check that there is something to plot."""
        if not self.pairs:
            raise InputError("`pairs` must hold at least one case; got none")

    @property
    def panels(self) -> list[str]:
        """Names of the panels, in order."""
        return list(dict.fromkeys(p.panel for p in self.pairs))

    @property
    def groups(self) -> list[str]:
        """Groups, in the order of their colors."""
        return list(dict.fromkeys(p.group for p in self.pairs))

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per case."""
        import polars as pl

        rows = [
            {
                "panel": p.panel,
                "group": p.group,
                "name": p.name,
                "x": p.x,
                "y": p.y,
                "difference": p.y - p.x,
            }
            for p in self.pairs
        ]
        return pl.DataFrame(rows)

    def _draw_on(self, ax: "Axes", kwargs: dict[str, Any]) -> None:
        axes = split_axes(ax, len(self.panels), share_x=False, share_y=False)
        self.ax_ = axes[0]
        handles: dict[str, Any] = {}
        for panel, at in zip(self.panels, axes, strict=True):
            self._draw_panel(at, panel, kwargs, handles)
        _, columns = grid_shape(len(axes))
        for i, at in enumerate(axes):
            if i % columns:
                at.set_ylabel("")
        legend_below(axes[0], list(handles.values()), list(handles))

    def _draw_panel(
        self, ax: "Axes", panel: str, kwargs: dict[str, Any], handles: dict[str, Any]
    ) -> None:
        panel_pairs = [p for p in self.pairs if p.panel == panel]
        for i, group in enumerate(self.groups):
            group_pairs = [p for p in panel_pairs if p.group == group]
            if not group_pairs:
                continue
            x = np.array([p.x for p in group_pairs])
            y = np.array([p.y for p in group_pairs])
            style: dict[str, Any] = {
                "color": LIGHT[i % len(LIGHT)],
                "marker": _MARKERS[i % len(_MARKERS)],
            }
            style |= {"s": 22, "alpha": 0.85, "linewidths": 0, **kwargs}
            # The relative difference is undefined for x = 0.
            relative_difference = np.divide(y - x, x, out=np.full(x.size, np.nan), where=x != 0)
            dots = ax.scatter(x, relative_difference if self.is_relative_difference else y, **style)
            handles.setdefault(group, dots)
        self._scale(ax, panel_pairs)
        if panel:
            name_panel(ax, panel)

    def _scale(self, ax: "Axes", panel_pairs: list[Pair]) -> None:
        values = [value for p in panel_pairs for value in (p.x, p.y)]
        # A logarithmic axis needs values over at least a factor of 5 for its tick labels.
        is_logarithmic = min(values) > 0 and max(values) > 5 * min(values)
        if is_logarithmic:
            ax.set_xscale("log")
        if self.is_relative_difference:
            ax.axhline(0, **reference_style() | {"color": INK})
        else:
            if is_logarithmic:
                ax.set_yscale("log")
            bounds = [min(values), max(values)]
            ax.plot(bounds, bounds, **reference_style() | {"color": INK})
        if not is_logarithmic:
            ax.locator_params(nbins=5)
        ax.set_xlabel(self.x_title, parse_math=False)
        ax.set_ylabel(self.y_title, parse_math=False)
        style_axes(ax)
        ax.tick_params(labelsize=8, which="both", length=0, colors=MUTED)

    def _size(self) -> tuple[float, float]:
        rows, columns = grid_shape(len(self.panels), 3)
        return columns * _SIZE[0] + 0.5, rows * _SIZE[1] + 0.6
