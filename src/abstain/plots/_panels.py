"""Figures that consist of several panels with one legend."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from abstain.errors import InputError
from abstain.plots.drawable import Titled
from abstain.plots.labels import (
    add_legend,
    hide_frame,
    label_width,
    n_legend_columns,
    set_axes_title,
    set_figure_title,
    set_tick_labels,
    unique_labels,
)
from abstain.plots.style import MUTED, style_axes

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.gridspec import GridSpecFromSubplotSpec

# Width of a line in the legend with its padding, in inches.
_HANDLE_WIDTH = 0.55


def distinct(records: Iterable[Any], field: str) -> list[str]:
    """Return the distinct values of a field in their order of appearance."""
    return list(dict.fromkeys(getattr(record, field) for record in records))


def table_of(records: Iterable[Any], columns: Sequence[str]) -> "pl.DataFrame":
    """Return a Polars table with one row per record and one column per attribute."""
    import polars as pl

    rows = [[getattr(record, column) for column in columns] for record in records]
    return pl.DataFrame(rows, schema=list(columns), orient="row")


def grid_shape(n_panels: int, max_columns: int = 3) -> tuple[int, int]:
    """Return the number of rows and columns of a grid of panels.

    Examples
    --------
    >>> grid_shape(1), grid_shape(4), grid_shape(6), grid_shape(7)
    ((1, 1), (2, 2), (2, 3), (3, 3))
    """
    columns = min(max_columns, 2 if n_panels == 4 else n_panels)
    return math.ceil(n_panels / columns), columns


def hide_inner_labels(panels: Sequence["Axes"], *, share_y: bool) -> None:
    """Hide axis titles and shared tick labels, except at the edges of a grid of panels."""
    count = len(panels)
    _, columns = grid_shape(count)
    for i, ax in enumerate(panels):
        if i % columns:
            ax.set_ylabel("")
            ax.tick_params(labelleft=not share_y)
        if i + columns < count:
            ax.set_xlabel("")
            ax.tick_params(labelbottom=False, which="both")


def style_panel(ax: "Axes", x_title: str, y_title: str) -> None:
    """Set the axis titles and the style of a panel with curves or points."""
    ax.set_xlabel(x_title, parse_math=False)
    ax.set_ylabel(y_title, parse_math=False)
    style_axes(ax)
    ax.tick_params(labelsize=8, which="both", length=0, colors=MUTED)


def name_panel(ax: "Axes", name: str) -> None:
    """Set the title of a panel if the title is not empty."""
    if name:
        set_axes_title(ax, name, fontsize=9.5)


def replace_axes(
    ax: "Axes", n_rows: int, n_columns: int, **options: Any
) -> "GridSpecFromSubplotSpec":
    """Replace axes by a grid of new axes at the same position."""
    position = ax.get_subplotspec()
    if position is None:
        raise InputError(
            "`ax` must be created by plt.subplots or add_subplot, because panels replace it"
        )
    ax.remove()
    return position.subgridspec(n_rows, n_columns, **options)


class Panels(Titled):
    """A figure of several panels with a common title."""

    #: Maximum number of panels side by side.
    max_columns: ClassVar[int] = 3

    def _split_axes(
        self, ax: "Axes", n_panels: int, *, share_x: bool = False, share_y: bool = False
    ) -> list["Axes"]:
        """Replace the axes by a grid of new axes, one for each panel.

        If there is one panel, the axes are not replaced.
        """
        if n_panels == 1:
            return [ax]
        figure: Any = self.figure_
        n_rows, n_columns = grid_shape(n_panels, self.max_columns)
        grid = replace_axes(ax, n_rows, n_columns)
        panels: list[Axes] = []
        for i in range(n_panels):
            first = panels[0] if panels else None
            shared = {"sharex": first if share_x else None, "sharey": first if share_y else None}
            panels.append(figure.add_subplot(grid[divmod(i, n_columns)], **shared))
        self.ax_ = panels[0]
        return panels

    def _draw_title(self, ax: "Axes") -> None:
        set_figure_title(ax.figure, self.title)


class DisplayGrid(Panels):
    """Several displays in the panels of one figure, at most two side by side."""

    max_columns: ClassVar[int] = 2

    #: Name of the first column of the table, with the titles of the panels.
    panel_column: ClassVar[str] = "panel"

    @property
    @abstractmethod
    def _displays(self) -> Mapping[str, Titled]:
        """Displays by the title of their panel."""

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data of all panels as a Polars table."""
        import polars as pl

        return pl.concat(
            display.frame().select(pl.lit(name).alias(self.panel_column), pl.all())
            for name, display in self._displays.items()
        )

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        panels = self._split_axes(axes, len(self._displays))
        for (name, display), ax in zip(self._displays.items(), panels, strict=True):
            display.plot(ax, title=False, **kwargs)
            name_panel(ax, name)

    def _size(self) -> tuple[float, float]:
        rows, columns = grid_shape(len(self._displays), self.max_columns)
        sizes = [display._size() for display in self._displays.values()]  # noqa: SLF001
        return columns * max(w for w, _ in sizes), 0.4 + rows * max(h for _, h in sizes)


class RowPanels(Panels):
    """Panels side by side, which have the same rows.

    For example, each panel shows one metric, and each row shows one data set.
    """

    #: Width of a panel, in inches.
    panel_width: ClassVar[float]

    @property
    @abstractmethod
    def _panel_names(self) -> list[str]:
        """Titles of the panels."""

    @property
    @abstractmethod
    def _row_names(self) -> list[str]:
        """Names of the rows from top to bottom."""

    @abstractmethod
    def _draw_panel(
        self, ax: "Axes", panel: str, kwargs: dict[str, Any], handles: dict[str, Any]
    ) -> None:
        """Draw the values of a panel, and add a legend entry for each name that has none."""

    def _draw_row_panels(self, ax: "Axes", kwargs: dict[str, Any]) -> dict[str, Any]:
        """Draw all panels, and return the legend entries by name."""
        handles: dict[str, Any] = {}
        axes = self._split_axes(ax, len(self._panel_names), share_y=True)
        rows = self._row_names
        label_by_row = unique_labels(rows)
        for i, (panel, name) in enumerate(zip(axes, self._panel_names, strict=True)):
            self._draw_panel(panel, name, kwargs, handles)
            hide_frame(panel)
            panel.grid(visible=False)
            set_tick_labels(panel, "y", [label_by_row[row] for row in rows], range(len(rows)))
            panel.set_ylim(len(rows) - 0.5, -0.5)
            panel.locator_params(axis="x", nbins=4)
            panel.tick_params(axis="x", labelsize=8, colors=MUTED)
            panel.tick_params(labelleft=i % self.max_columns == 0)
            name_panel(panel, name)
        return handles

    def _grid_size(self, rows_height: float, legend_names: Sequence[str]) -> tuple[float, float]:
        """Return the size of the figure for this number of rows and panels."""
        n_panels = len(self._panel_names)
        width = min(n_panels, self.max_columns) * self.panel_width
        width += label_width(self._row_names) + 0.3
        grid_height = math.ceil(n_panels / self.max_columns) * (max(rows_height, 1.0) + 0.7)
        return width, grid_height + 0.3 + legend_below_height(legend_names, width)


def _n_columns_below(names: Sequence[str], width: float) -> int:
    """Return the number of legend columns that fit below a figure of this width."""
    return n_legend_columns(names, width - 0.3, handle_width=_HANDLE_WIDTH)


def legend_below_height(names: Sequence[str], width: float) -> float:
    """Return the height of the legend below all panels, in inches."""
    return 0.2 * math.ceil(len(names) / _n_columns_below(names, width))


def legend_below(ax: "Axes", handles: Sequence[Any], names: Sequence[str]) -> None:
    """Add a legend below all panels, whose rows have about equal lengths."""
    figure: Any = ax.figure
    max_columns = _n_columns_below(names, figure.bbox.width / figure.dpi)
    n_rows = math.ceil(len(names) / max_columns)
    add_legend(
        figure,
        handles,
        names,
        loc="outside lower left",
        ncols=math.ceil(len(names) / n_rows),
        fontsize=9,
        handlelength=2.0,
        columnspacing=1.2,
        labelspacing=0.3,
    )
