"""Figure with a table of the ranks of methods by two metrics in several studies."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from abstain.errors import InputError
from abstain.plots._panels import Panels, distinct, name_panel, table_of
from abstain.plots.labels import (
    draw_text,
    hide_frame,
    label_width,
    set_many_tick_labels,
    unique_labels,
)
from abstain.plots.style import GRID, LIGHT, PAPER

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
        Row and column of the table.
    before, after : float
        Ranks by the first and by the second metric, which are NaN for a method without a rank.
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
        """Second rank minus first rank."""
        return self.after - self.before


@dataclass(eq=False)
class RankChangesDisplay(Panels):
    """Table of ranks by two metrics, with one row per method and one column per study.

    A cell contains both ranks, or one number if the ranks are equal. A cell is blue if the second
    metric ranks the method better, and orange if it ranks the method worse. Larger changes have a
    stronger color.

    `plot` passes additional options to ``matplotlib.patches.Rectangle`` for each cell (linewidth,
    alpha).

    Attributes
    ----------
    changes : tuple of RankChange
        Rank changes. There is at most one for each method, study and panel.
    title : str
        Title of the figure.

    Examples
    --------
    >>> from abstain.plots import RankChange, RankChangesDisplay
    >>> display = RankChangesDisplay((RankChange("pe", "iid", 3.0, 1.0),), "AURC and AUGRC")
    >>> display.frame().rows()
    [('', 'pe', 'iid', 3.0, 1.0, -2.0)]
    """

    max_columns: ClassVar[int] = 1

    changes: tuple[RankChange, ...]
    title: str

    def __post_init__(self) -> None:
        """Check that there is at least one rank change."""
        if not self.changes:
            raise InputError("`changes` must hold at least one method in one study; got none")

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per cell."""
        columns = ("panel", "method", "study", "before", "after", "change")
        return table_of(self.changes, columns)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        cells_by_panel = self._cells_by_panel()
        panels = self._split_axes(axes, len(cells_by_panel))
        for (name, cells), ax in zip(cells_by_panel.items(), panels, strict=True):
            self._draw_panel(ax, cells, kwargs)
            name_panel(ax, name)

    def _draw_panel(self, ax: "Axes", cells: list[RankChange], kwargs: dict[str, Any]) -> None:
        """Draw a colored cell for each method and study."""
        from matplotlib.patches import Rectangle

        rows, columns = distinct(cells, "method"), distinct(cells, "study")
        for cell in cells:
            x, y = columns.index(cell.study), rows.index(cell.method)
            style = {"facecolor": _color(cell.change), "edgecolor": PAPER, "linewidth": 1.2}
            ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **{**style, **kwargs}))
            weight = "bold" if cell.change else "normal"
            centered = {"ha": "center", "va": "center", "fontsize": 7.5, "fontweight": weight}
            draw_text(ax, x, y, _cell_text(cell), **centered)
        ax.set(xlim=(-0.52, len(columns) - 0.48), ylim=(len(rows) - 0.48, -0.52))
        hide_frame(ax)
        row_labels, column_labels = unique_labels(rows), unique_labels(columns, _MAX_NAME_LENGTH)
        set_many_tick_labels(ax, "y", list(row_labels.values()), range(len(rows)))
        slanted = {"rotation": 35, "ha": "right", "rotation_mode": "anchor", "fontsize": 8.5}
        set_many_tick_labels(ax, "x", list(column_labels.values()), range(len(columns)), **slanted)

    def _cells_by_panel(self) -> dict[str, list[RankChange]]:
        return {
            panel: [c for c in self.changes if c.panel == panel]
            for panel in distinct(self.changes, "panel")
        }

    def _size(self) -> tuple[float, float]:
        cells_by_panel = list(self._cells_by_panel().values())
        n_columns = max(len(distinct(cells, "study")) for cells in cells_by_panel)
        n_rows = sum(len(distinct(cells, "method")) for cells in cells_by_panel)
        names_width = label_width(c.method for c in self.changes)
        width = max(0.6 + names_width + _CELL_WIDTH * n_columns, 4.2)
        return width, 0.7 + 1.1 * len(cells_by_panel) + _CELL_HEIGHT * n_rows


def _cell_text(cell: RankChange) -> str:
    if math.isnan(cell.change):
        return "–"
    return f"{cell.before:g} → {cell.after:g}" if cell.change else f"{cell.after:g}"


def _color(change: float) -> tuple[float, ...]:
    """Return the color of a cell, which depends on the rank change."""
    from matplotlib.colors import to_rgb

    if not change or math.isnan(change):
        return to_rgb(GRID)
    share = 0.25 + 0.45 * min(abs(change), _MAX_COLOR_CHANGE) / _MAX_COLOR_CHANGE
    full, paper = to_rgb(LIGHT[1] if change > 0 else LIGHT[0]), to_rgb(PAPER)
    return tuple(share * f + (1 - share) * p for f, p in zip(full, paper, strict=True))
