"""Figure with a grid of check results, such as the requirements that each metric meets."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from abstain.errors import InputError
from abstain.plots._panels import legend_below
from abstain.plots.drawable import Titled
from abstain.plots.labels import (
    draw_rules,
    hide_frame,
    label_width,
    set_many_tick_labels,
    unique_labels,
)
from abstain.plots.style import GRID, PAPER
from abstain.plots.verdicts import verdict_mark

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Height of a row and width of a column in inches, and maximum length of a label.
_ROW_HEIGHT, _COLUMN_WIDTH, _MAX_NAME_LENGTH = 0.185, 0.36, 30


@dataclass(eq=False)
class VerdictGridDisplay(Titled):
    """Grid of check results, such as metrics by requirements.

    `plot` passes additional options to the ``Axes.plot`` of the markers of one kind (markersize).

    Attributes
    ----------
    cells : dict of row to dict of column to str
        Check result of each row and column, such as "holds" or "broken". Missing columns are left
        empty.
    columns : tuple of str
        Columns from left to right. A line separates columns whose names begin with different words.
    title : str
        Title of the figure.
    hollow_columns : tuple of str
        Columns with results from the literature, whose markers are hollow.

    Examples
    --------
    >>> from abstain.plots import VerdictGridDisplay
    >>> display = VerdictGridDisplay({"AUGRC": {"R1": "holds"}}, ("R1", "R2"), "Requirements")
    >>> display.frame().rows()
    [('AUGRC', 'R1', 'holds')]
    """

    cells: Mapping[str, Mapping[str, str]]
    columns: tuple[str, ...]
    title: str
    hollow_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that there are cells, and that all columns of cells exist."""
        unknown_columns = {column for row in self.cells.values() for column in row} - {
            *self.columns
        }
        if not any(self.cells.values()) or unknown_columns:
            problem = f"cells of {sorted(unknown_columns)}" if unknown_columns else "none"
            raise InputError(
                f"`cells` must contain at least one cell, with `columns` {self.columns}; got "
                f"{problem}"
            )

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per cell."""
        import polars as pl

        rows = [
            (name, column, row[column])
            for name, row in self.cells.items()
            for column in self.columns
            if column in row
        ]
        return pl.DataFrame(rows, schema=["row", "column", "verdict"], orient="row")

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw the markers, the lines between rows and groups of columns, and the labels."""
        n_rows, n_columns = len(self.cells), len(self.columns)
        handles, names = self._draw_marks(axes, kwargs)
        draw_rules(
            axes, [-0.5] * n_rows, [n_columns - 0.5] * n_rows, [i + 0.5 for i in range(n_rows)]
        )
        for i, (previous, column) in enumerate(pairwise(self.columns), 1):
            if previous.split()[0] != column.split()[0]:
                axes.axvline(i - 0.5, color=GRID, linewidth=1.6, zorder=0)
        axes.set(xlim=(-0.5, n_columns - 0.5), ylim=(n_rows - 0.5, -0.5))
        row_labels = list(unique_labels(list(self.cells), _MAX_NAME_LENGTH).values())
        set_many_tick_labels(axes, "y", row_labels, range(n_rows), fontsize=8)
        axes.xaxis.tick_top()
        axes.set_xticks(range(n_columns))
        axes.set_xticklabels(
            self.columns, rotation=45, ha="left", rotation_mode="anchor", fontsize=8
        )
        hide_frame(axes)
        legend_below(axes, handles, names)

    def _draw_marks(self, ax: "Axes", kwargs: dict[str, Any]) -> tuple[list[Any], list[str]]:
        """Draw the markers, and return the legend entries.

        Results that are taken from the literature have hollow markers.
        """
        positions: dict[tuple[str, bool], list[tuple[int, int]]] = {}
        for y, row in enumerate(self.cells.values()):
            for x, column in enumerate(self.columns):
                if column in row:
                    kind = row[column], column in self.hollow_columns
                    positions.setdefault(kind, []).append((x, y))
        handles, names = [], []
        for (verdict, is_hollow), points in positions.items():
            style = {"markersize": 6.0, "markeredgewidth": 0.8, **verdict_mark(verdict)}
            if is_hollow:
                style |= {"markersize": 5.0, "markeredgewidth": 1.1, "markerfacecolor": PAPER}
            x_values, y_values = zip(*points, strict=True)
            handles += ax.plot(x_values, y_values, **{"linestyle": "none", **style, **kwargs})
            names.append(f"{verdict} (literature)" if is_hollow else verdict)
        return handles, names

    def _size(self) -> tuple[float, float]:
        names_width = label_width(list(self.cells), _MAX_NAME_LENGTH)
        width = max(len(self.columns) * _COLUMN_WIDTH + names_width + 0.9, 4.5)
        return width, len(self.cells) * _ROW_HEIGHT + 0.75 * label_width(self.columns) + 0.9
