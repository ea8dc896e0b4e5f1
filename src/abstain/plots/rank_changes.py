"""How ranks change from one metric to another, in every study at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abstain.errors import InputError
from abstain.plots._panels import Panels, name_panel, split_axes
from abstain.plots.labels import hide_frame, unique_labels, set_many_tick_labels, label_width, draw_text
from abstain.plots.style import GRID, INK, LIGHT, PAPER

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Inches of a cell: two ranks and the arrow between them.
_WIDE, _HIGH = 0.62, 0.27

#: Characters of the name of a study.
_NAME = 24

#: The change from which on a cell has the full color.
_MOST = 4


@dataclass(frozen=True)
class RankChange:
    """The ranks of one method in one study by two metrics.

    Attributes
    ----------
    method, study : str
        Row and column.
    before, after : float
        Its rank by the first and by the second metric; NaN where it has none.
    panel : str
        In which panel it is drawn, such as how settings were chosen.

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
        """By how many ranks it falls; negative where it rises."""
        return self.after - self.before


@dataclass(eq=False)
class RankChangesDisplay(Panels):
    """A table of ranks by two metrics: methods by studies, blue where a method rises.

    A cell holds both ranks, or one where they agree; orange where the second metric ranks the
    method worse. The stronger the color, the more ranks.

    `plot` passes its options on to every ``matplotlib.patches.Rectangle`` (linewidth, alpha).

    Attributes
    ----------
    changes : tuple of RankChange
        At most one a method, study and panel.
    title : str
        What the figure shows.

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
        """Refuse a figure of nothing."""
        if not self.changes:
            raise InputError("`changes` must hold at least one method in one study; got none")

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row a cell."""
        import polars as pl

        rows = [(c.panel, c.method, c.study, c.before, c.after, c.change) for c in self.changes]
        columns = ["panel", "method", "study", "before", "after", "change"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        panels = _once(c.panel for c in self.changes)
        made = split_axes(axes, len(panels), share_x=False, share_y=False, max_columns=1)
        self.ax_ = made[0]
        for panel, ax in zip(panels, made, strict=True):
            self._draw_panel(ax, [c for c in self.changes if c.panel == panel], kwargs)
            if panel:
                name_panel(ax, panel)

    def _draw_panel(self, ax: "Axes", own: Sequence[RankChange], kwargs: dict[str, Any]) -> None:
        from matplotlib.patches import Rectangle

        rows, columns = _once(c.method for c in own), _once(c.study for c in own)
        for cell in own:
            x, y = columns.index(cell.study), rows.index(cell.method)
            style = {"facecolor": _color(cell.change), "edgecolor": PAPER, "linewidth": 1.2}
            ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **{**style, **kwargs}))
            bold = "bold" if cell.change else "normal"
            middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7.5}
            draw_text(ax, x, y, _said(cell), color=INK, fontweight=bold, **middle)
        ax.set(xlim=(-0.52, len(columns) - 0.48), ylim=(len(rows) - 0.48, -0.52))
        hide_frame(ax)
        named = unique_labels(rows), unique_labels(columns, _NAME)
        set_many_tick_labels(ax, "y", [named[0][row] for row in rows], range(len(rows)))
        slanted = {"rotation": 35, "ha": "right", "rotation_mode": "anchor", "fontsize": 8.5}
        set_many_tick_labels(ax, "x", [named[1][c] for c in columns], range(len(columns)), **slanted)

    def _size(self) -> tuple[float, float]:
        own = [
            [c for c in self.changes if c.panel == panel]
            for panel in _once(c.panel for c in self.changes)
        ]
        wide = max(len(_once(c.study for c in cells)) for cells in own)
        high = sum(len(_once(c.method for c in cells)) for cells in own)
        names = label_width([c.method for c in self.changes])
        return max(0.6 + names + _WIDE * wide, 4.2), 0.7 + 1.1 * len(own) + _HIGH * high


def _once(names: Any) -> list[str]:
    return list(dict.fromkeys(names))


def _said(cell: RankChange) -> str:
    if math.isnan(cell.change):
        return "–"
    return f"{cell.before:g} → {cell.after:g}" if cell.change else f"{cell.after:g}"


def _color(change: float) -> tuple[float, ...]:
    """Mix the color of a change into that of none."""
    from matplotlib.colors import to_rgb

    if not change or math.isnan(change):
        return to_rgb(GRID)
    share = 0.25 + 0.45 * min(abs(change), _MOST) / _MOST
    full, paper = to_rgb(LIGHT[1] if change > 0 else LIGHT[0]), to_rgb(PAPER)
    return tuple(share * f + (1 - share) * p for f, p in zip(full, paper, strict=True))
