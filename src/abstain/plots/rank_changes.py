"""Table of rank changes between two metrics in several studies."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abstain.errors import InputError
from abstain.plots._panels import Panels, name_panel, split_axes
from abstain.plots.labels import (
    draw_text,
    hide_frame,
    label_width,
    set_many_tick_labels,
    unique_labels,
)
from abstain.plots.style import GRID, INK, LIGHT, PAPER

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Width and height of a cell, in inches.
_CELL_WIDTH, _CELL_HEIGHT = 0.62, 0.27

#: Maximum length of the name of a study, in characters.
_MAX_NAME_LENGTH = 24

#: Rank change at which a cell has the full color.
_MAX_COLOR_CHANGE = 4


@dataclass(frozen=True)
class RankChange:
    """Ranks of one method in one study by two metrics.

    Attributes
    ----------
    method, study : str
        Row and column.
    before, after : float
        Ranks by the first and by the second metric; NaN without a rank.
    panel : str
        Panel in which the cell is drawn.

    Examples
    --------
    >>> RankChange("pe", "iid", 3.0, 1.0).change
    -2.0
    """

    method: str
    study: str
    before: float
    after: float
    panel: str = ""

    @property
    def change(self) -> float:
        """Difference of the ranks; negative if the second rank is better."""
        return self.after - self.before


@dataclass(eq=False)
class RankChangesDisplay(Panels):
    """Table of ranks by two metrics, with one row per method and one column per study.

    A cell contains both ranks, or one if they are equal. Cells are blue if the second rank is
    better and orange if it is worse; the color is stronger for larger changes.

    `plot` passes additional options to ``matplotlib.patches.Rectangle`` for each cell (linewidth,
    alpha).

    Attributes
    ----------
    changes : tuple of RankChange
        At most one per method, study and panel.
    title : str
        Title of the figure.

    Examples
    --------
    >>> from abstain.plots import RankChange, RankChangesDisplay
    >>> display = RankChangesDisplay((RankChange("pe", "iid", 3.0, 1.0),), "AURC and AUGRC")
    >>> display.frame().rows()
    [('', 'pe', 'iid', 3.0, 1.0, -2.0)]
    """

    changes: tuple[RankChange, ...]
    title: str

    def __post_init__(self) -> None:
        """Check that there is something to plot."""
        if not self.changes:
            raise InputError("`changes` must hold at least one method in one study; got none")

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per cell."""
        import polars as pl

        rows = [(c.panel, c.method, c.study, c.before, c.after, c.change) for c in self.changes]
        columns = ["panel", "method", "study", "before", "after", "change"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        panels = _unique(c.panel for c in self.changes)
        panel_axes = split_axes(axes, len(panels), share_x=False, share_y=False, max_columns=1)
        self.ax_ = panel_axes[0]
        for panel, ax in zip(panels, panel_axes, strict=True):
            self._draw_panel(ax, [c for c in self.changes if c.panel == panel], kwargs)
            if panel:
                name_panel(ax, panel)

    def _draw_panel(self, ax: "Axes", cells: Sequence[RankChange], kwargs: dict[str, Any]) -> None:
        from matplotlib.patches import Rectangle

        rows, columns = _unique(c.method for c in cells), _unique(c.study for c in cells)
        for cell in cells:
            x, y = columns.index(cell.study), rows.index(cell.method)
            style = {"facecolor": _color(cell.change), "edgecolor": PAPER, "linewidth": 1.2}
            ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **{**style, **kwargs}))
            bold = "bold" if cell.change else "normal"
            middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7.5}
            draw_text(ax, x, y, _cell_text(cell), color=INK, fontweight=bold, **middle)
        ax.set(xlim=(-0.52, len(columns) - 0.48), ylim=(len(rows) - 0.48, -0.52))
        hide_frame(ax)
        label_maps = unique_labels(rows), unique_labels(columns, _MAX_NAME_LENGTH)
        set_many_tick_labels(ax, "y", [label_maps[0][row] for row in rows], range(len(rows)))
        slanted = {"rotation": 35, "ha": "right", "rotation_mode": "anchor", "fontsize": 8.5}
        set_many_tick_labels(
            ax, "x", [label_maps[1][c] for c in columns], range(len(columns)), **slanted
        )

    def _size(self) -> tuple[float, float]:
        cells_by_panel = [
            [c for c in self.changes if c.panel == panel]
            for panel in _unique(c.panel for c in self.changes)
        ]
        n_columns = max(len(_unique(c.study for c in cells)) for cells in cells_by_panel)
        n_rows = sum(len(_unique(c.method for c in cells)) for cells in cells_by_panel)
        names = label_width([c.method for c in self.changes])
        return max(0.6 + names + _CELL_WIDTH * n_columns, 4.2), 0.7 + 1.1 * len(
            cells_by_panel
        ) + _CELL_HEIGHT * n_rows


def _unique(names: Any) -> list[str]:
    return list(dict.fromkeys(names))


def _cell_text(cell: RankChange) -> str:
    if math.isnan(cell.change):
        return "–"
    return f"{cell.before:g} → {cell.after:g}" if cell.change else f"{cell.after:g}"


def _color(change: float) -> tuple[float, ...]:
    """Return the color of a rank change."""
    from matplotlib.colors import to_rgb

    if not change or math.isnan(change):
        return to_rgb(GRID)
    share = 0.25 + 0.45 * min(abs(change), _MAX_COLOR_CHANGE) / _MAX_COLOR_CHANGE
    full, paper = to_rgb(LIGHT[1] if change > 0 else LIGHT[0]), to_rgb(PAPER)
    return tuple(share * f + (1 - share) * p for f, p in zip(full, paper, strict=True))
