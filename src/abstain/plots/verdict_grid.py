"""Grid of check results: one mark per row and column."""

from collections.abc import Mapping
from dataclasses import dataclass
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

#: Sizes of filled and of hollow marks, in points.
_MARK_SIZE, _HOLLOW_MARK_SIZE = 6.0, 5.0


@dataclass(eq=False)
class VerdictGridDisplay(Titled):
    """Grid of check results, such as metrics by requirements.

    `plot` passes additional options to the ``Axes.plot`` of the marks of one kind (markersize).

    Attributes
    ----------
    cells : dict of row to dict of column to str
        Check results, such as "holds" or "broken"; missing columns are left empty.
    columns : tuple of str
        Columns from left to right. A line separates columns whose first words differ.
    title : str
        Title of the figure.
    hollow_columns : tuple of str
        Columns with results from the literature, whose marks are hollow.

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
        """Check that there are cells, and that their columns exist."""
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
        handles, names = [], []
        for verdict, hollow in self._kinds():
            style = {**self._style(verdict, hollow=hollow), **kwargs}
            handles += axes.plot(*self._mark_positions(verdict, hollow=hollow), **style)
            names.append(f"{verdict} (literature)" if hollow else verdict)
        wide, high = len(self.columns), len(self.cells)
        draw_rules(axes, [-0.5] * high, [wide - 0.5] * high, [i + 0.5 for i in range(high)])
        for i in self._group_starts():
            axes.axvline(i - 0.5, color=GRID, linewidth=1.6, zorder=0)
        axes.set(xlim=(-0.5, wide - 0.5), ylim=(high - 0.5, -0.5))
        self._label_axes(axes)
        hide_frame(axes)
        legend_below(axes, handles, names)

    def _kinds(self) -> list[tuple[str, bool]]:
        """Return the distinct check results, each with whether its marks are hollow."""
        kinds = [
            (row[column], column in self.hollow_columns)
            for row in self.cells.values()
            for column in self.columns
            if column in row
        ]
        return list(dict.fromkeys(kinds))

    def _style(self, verdict: str, *, hollow: bool) -> dict[str, Any]:
        style = {
            "linestyle": "none",
            "markersize": _MARK_SIZE,
            "markeredgewidth": 0.8,
            **verdict_mark(verdict),
        }
        if hollow:
            style |= {
                "markersize": _HOLLOW_MARK_SIZE,
                "markerfacecolor": PAPER,
                "markeredgewidth": 1.1,
            }
        return style

    def _mark_positions(self, verdict: str, *, hollow: bool) -> tuple[list[int], list[int]]:
        """Return the positions of the marks of one kind."""
        positions = [
            (x, y)
            for y, row in enumerate(self.cells.values())
            for x, column in enumerate(self.columns)
            if row.get(column) == verdict and (column in self.hollow_columns) == hollow
        ]
        return [x for x, _ in positions], [y for _, y in positions]

    def _group_starts(self) -> list[int]:
        """Return the indices of the columns at which a new group starts."""
        first_words = [column.split()[0] for column in self.columns]
        return [i for i in range(1, len(first_words)) if first_words[i] != first_words[i - 1]]

    def _label_axes(self, ax: "Axes") -> None:
        label_by_row = unique_labels(list(self.cells), _MAX_NAME_LENGTH)
        set_many_tick_labels(
            ax, "y", [label_by_row[name] for name in self.cells], range(len(self.cells)), fontsize=8
        )
        ax.xaxis.tick_top()
        slanted: dict[str, Any] = {
            "rotation": 45,
            "ha": "left",
            "rotation_mode": "anchor",
            "fontsize": 8,
        }
        ax.set_xticks(range(len(self.columns)))
        ax.set_xticklabels(self.columns, **slanted)

    def _size(self) -> tuple[float, float]:
        width = (
            len(self.columns) * _COLUMN_WIDTH
            + label_width(list(self.cells), _MAX_NAME_LENGTH)
            + 0.9
        )
        return max(width, 4.5), len(self.cells) * _ROW_HEIGHT + 0.75 * label_width(
            self.columns
        ) + 0.9
