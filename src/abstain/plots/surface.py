"""Contour plots of a function of two variables."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._foundation.arrays import read_only
from abstain.errors import ShapeError
from abstain.plots._panels import Panels, grid_shape, hide_inner_labels, name_panel
from abstain.plots.labels import hide_frame
from abstain.plots.style import INK, MUTED, PAPER
from abstain.typing import FloatArray

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

_PANEL_SIZE, _SINGLE_PANEL_SIZE = (2.9, 2.5), (5.2, 4.0)


@dataclass(eq=False)
class SurfaceDisplay(Panels):
    """Contour plots of positive functions of two variables.

    All panels share one logarithmic color scale.

    `plot` passes additional options to each call of ``Axes.contourf`` (cmap, alpha).

    Attributes
    ----------
    x, y : ndarray of shape (a,), (b,)
        Values of the two variables in ascending order.
    surfaces : dict of str to ndarray of shape (b, a)
        Function values of each panel. Values of at most 0 are left blank.
    title, x_title, y_title, z_title : str
        Titles of the figure, of its axes and of its color scale.
    log_y : bool
        Whether the y axis is logarithmic.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.plots.surface import SurfaceDisplay
    >>> z = np.array([[0.1, 0.2], [0.01, 0.02]])
    >>> display = SurfaceDisplay(np.array([0.1, 0.9]), np.array([8.0, 64.0]), {"plug-in": z})
    >>> display.frame().rows()[0]
    ('plug-in', 0.1, 8.0, 0.1)
    """

    x: FloatArray
    y: FloatArray
    surfaces: dict[str, FloatArray]
    title: str = ""
    x_title: str = ""
    y_title: str = ""
    z_title: str = ""
    log_y: bool = True

    def __post_init__(self) -> None:
        """Check that there is a surface, and that all surfaces have the shape of `y` and `x`."""
        if not self.surfaces or min(self.x.size, self.y.size) < 2:
            raise ShapeError(
                "`surfaces` must hold at least one, over at least two numbers in each direction"
            )
        self.surfaces = {name: read_only(surface) for name, surface in self.surfaces.items()}
        for name, surface in self.surfaces.items():
            if surface.shape != (self.y.size, self.x.size):
                raise ShapeError(
                    f"the surface {name!r} must have shape {(self.y.size, self.x.size)}, rows for "
                    f"`y` and columns for `x`; got {surface.shape}"
                )

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per point of a surface."""
        import polars as pl

        x, y = np.meshgrid(self.x, self.y)
        tables = [
            pl.DataFrame({"x": x.ravel(), "y": y.ravel(), "z": z.ravel()}).select(
                pl.lit(name).alias("panel"), pl.all()
            )
            for name, z in self.surfaces.items()
        ]
        return pl.concat(tables)

    def _draw_on(self, ax: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw one panel per surface, and one common color scale."""
        axes = self._split_axes(ax, len(self.surfaces), share_x=True, share_y=True)
        levels = self._levels()
        for (name, z), panel in zip(self.surfaces.items(), axes, strict=True):
            colors = self._draw_panel(panel, z, levels, kwargs)
            name_panel(panel, name)
        hide_inner_labels(axes, share_y=True)
        figure: Any = self.figure_
        bar = figure.colorbar(colors, ax=axes, ticks=levels[:: max(len(levels) // 7, 1)], aspect=30)
        bar.set_label(self.z_title, color=INK)
        bar.ax.tick_params(colors=MUTED, length=0, labelsize=8)
        bar.ax.set_yticklabels([f"{v:.2g}" for v in bar.get_ticks()])
        bar.outline.set_visible(False)

    def _draw_panel(
        self, ax: "Axes", z: FloatArray, levels: FloatArray, kwargs: dict[str, Any]
    ) -> Any:
        """Draw one surface, and return the artist to which the color scale refers."""
        from matplotlib.colors import LogNorm

        positive = np.ma.masked_where(~(z > 0), z)
        norm = LogNorm(levels[0], levels[-1])
        style = {"levels": levels, "norm": norm, "cmap": "viridis", "extend": "both", **kwargs}
        colors = ax.contourf(self.x, self.y, positive, **style)
        style = {"levels": levels[1:-1:3], "colors": PAPER, "linewidths": 0.5, "alpha": 0.7}
        lines = ax.contour(self.x, self.y, positive, **style)
        ax.clabel(lines, fmt="%.2g", fontsize=6.5)
        if self.log_y:
            ax.set_yscale("log")
        ax.set_xlabel(self.x_title, parse_math=False)
        ax.set_ylabel(self.y_title, parse_math=False)
        hide_frame(ax)
        ax.tick_params(colors=MUTED, length=0, labelsize=8, which="both")
        return colors

    def _levels(self) -> FloatArray:
        """Return the contour levels of all panels. Each level is about twice the previous level."""
        positive = np.concatenate([z[np.isfinite(z) & (z > 0)] for z in self.surfaces.values()])
        if positive.size == 0:
            positive = np.ones(1)
        low, high = np.quantile(positive, [0.01, 0.99])
        if low == high:
            # All values are equal. The scale therefore extends around the common value.
            low, high = low / 2, high * 2
        steps = max(int(np.ceil(np.log2(high / low))), 3)
        out: FloatArray = np.geomspace(low, high, min(steps, 16) + 1)
        return out

    def _size(self) -> tuple[float, float]:
        rows, columns = grid_shape(len(self.surfaces))
        width, height = _SINGLE_PANEL_SIZE if rows * columns == 1 else _PANEL_SIZE
        return columns * width + 1.1, rows * height + 0.6
