"""Verdicts on many things in several respects: a grid of marks, each told by shape and color."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abstain.errors import InputError
from abstain.plots._panels import legend_below
from abstain.plots.drawable import Titled
from abstain.plots.labels import hide_frame, unique_labels, set_many_tick_labels, label_width, draw_rules
from abstain.plots.style import GRID, PAPER
from abstain.plots.verdicts import verdict_mark

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Inches of a row and of a column, and characters of a name.
_ROW, _COLUMN, _NAME = 0.185, 0.36, 30

#: The size of a mark, and of one that is said elsewhere.
_MARK, _SMALL = 6.0, 5.0


@dataclass(eq=False)
class VerdictGridDisplay(Titled):
    """What holds of each row in each column, and what is broken.

    `plot` passes its options on to the ``Axes.plot`` of the marks of one kind (markersize).

    Attributes
    ----------
    cells : dict of row to dict of column to str
        "holds" or "broken"; a column that a row lacks is left empty.
    columns : tuple of str
        From left to right. A line stands where the first word changes.
    title : str
        What the figure shows.
    elsewhere : tuple of str
        Columns of what others say, whose marks are hollow.

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
    elsewhere: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a grid of nothing, and cells of no column."""
        strange = {column for row in self.cells.values() for column in row} - {*self.columns}
        if not any(self.cells.values()) or strange:
            found = f"cells of {sorted(strange)}" if strange else "none"
            raise InputError(
                f"`cells` must hold at least one, of the `columns` {self.columns}; got {found}"
            )

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row a cell."""
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
            handles += axes.plot(*self._places(verdict, hollow=hollow), **style)
            names.append(f"{verdict}, it is said" if hollow else verdict)
        wide, high = len(self.columns), len(self.cells)
        draw_rules(axes, [-0.5] * high, [wide - 0.5] * high, [i + 0.5 for i in range(high)])
        for i in self._starts():
            axes.axvline(i - 0.5, color=GRID, linewidth=1.6, zorder=0)
        axes.set(xlim=(-0.5, wide - 0.5), ylim=(high - 0.5, -0.5))
        self._name(axes)
        hide_frame(axes)
        legend_below(axes, handles, names)

    def _kinds(self) -> list[tuple[str, bool]]:
        """Return the verdicts there are, each with whether it is said elsewhere."""
        kinds = [
            (row[column], column in self.elsewhere)
            for row in self.cells.values()
            for column in self.columns
            if column in row
        ]
        return list(dict.fromkeys(kinds))

    def _style(self, verdict: str, *, hollow: bool) -> dict[str, Any]:
        style = {"linestyle": "none", "markersize": _MARK, "markeredgewidth": 0.8, **verdict_mark(verdict)}
        if hollow:
            style |= {"markersize": _SMALL, "markerfacecolor": PAPER, "markeredgewidth": 1.1}
        return style

    def _places(self, verdict: str, *, hollow: bool) -> tuple[list[int], list[int]]:
        """Return where the marks of one kind stand."""
        places = [
            (x, y)
            for y, row in enumerate(self.cells.values())
            for x, column in enumerate(self.columns)
            if row.get(column) == verdict and (column in self.elsewhere) == hollow
        ]
        return [x for x, _ in places], [y for _, y in places]

    def _starts(self) -> list[int]:
        """Return the columns at which another group begins."""
        first = [column.split()[0] for column in self.columns]
        return [i for i in range(1, len(first)) if first[i] != first[i - 1]]

    def _name(self, ax: "Axes") -> None:
        written = unique_labels(list(self.cells), _NAME)
        set_many_tick_labels(
            ax, "y", [written[name] for name in self.cells], range(len(self.cells)), fontsize=8
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
        width = len(self.columns) * _COLUMN + label_width(list(self.cells), _NAME) + 0.9
        return max(width, 4.5), len(self.cells) * _ROW + 0.75 * label_width(self.columns) + 0.9
