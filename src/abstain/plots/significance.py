"""Significance map of pairs of methods (Traub et al. 2024)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from abstain.errors import InputError
from abstain.evaluation.comparison import Comparison, PairedDifference
from abstain.plots import formatting
from abstain.plots._panels import DisplayGrid
from abstain.plots.drawable import Titled
from abstain.plots.labels import (
    draw_squares,
    draw_text,
    hide_frame,
    label_width,
    set_many_tick_labels,
    unique_labels,
)
from abstain.plots.style import GRID, LIGHT, MUTED, PAPER, Style
from abstain.typing import Split

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Maximum number of methods with p-values in cells. With more methods, the shade shows the p-value.
_MAX_METHODS_WITH_P_VALUES = 12

#: Upper bounds of the p-values of each shade below 1 - level, with the opacity of the shade.
_SHADES = ((0.001, 1.0), (0.01, 0.62), (math.inf, 0.32))

#: Maximum length of a label, in characters.
_MAX_NAME_LENGTH = 20


@dataclass(eq=False)
class SignificanceMapDisplay(Titled):
    """Matrix of pairs of methods, with blue cells for significant differences.

    In a blue cell, the method of the row is significantly better than the method of the column.
    Methods are sorted by rank, so blue cells are above the diagonal. A cell contains the adjusted
    p-value of a pair of methods. With more than 12 methods, the shade of the cell shows whether the
    p-value is below 0.001, 0.01 or 1 - level.

    For a two-sided test, the p-value of a pair is in the row of the better method.

    `plot` passes additional options to the ``matplotlib.patches.PathPatch`` of the cells of one
    shade (linewidth, facecolor).

    Attributes
    ----------
    methods : tuple of str
        Methods of rows and columns, starting with the best method.
    pairs : tuple of PairedDifference
        Pairs of methods, compared by one test.
    level : float
        Confidence level. A difference is significant if its adjusted p-value is below 1 - level.

    Examples
    --------
    >>> from abstain.evaluation.comparison import PairedDifference
    >>> from abstain.plots import SignificanceMapDisplay
    >>> pair = PairedDifference(
    ...     "augrc",
    ...     (),
    ...     "msr",
    ...     "pe",
    ...     -0.01,
    ...     -0.02,
    ...     -0.005,
    ...     0.004,
    ...     0.8,
    ...     0.7,
    ...     0.9,
    ...     0.002,
    ...     0.002,
    ...     "holm",
    ...     "influence function",
    ...     0.998,
    ...     "msr",
    ... )
    >>> display = SignificanceMapDisplay(("msr", "pe"), (pair,), 0.95)
    >>> display.frame().rows()
    [('msr', 'pe', 0.002, True)]
    """

    methods: tuple[str, ...]
    pairs: tuple[PairedDifference, ...]
    level: float

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        metric: str | None = None,
        *,
        data: Split | None = None,
        test: str | None = None,
    ) -> Self:
        """Create a display of the pairs by one metric on one data set.

        Parameters
        ----------
        comparison : Comparison
            Result of `compare`.
        metric : str, optional
            Name of the metric. The default is the first metric.
        data : tuple of (column, value), optional
            Data set. The argument is optional for a single data set.
        test : str, optional
            Name of the test. The default is the deciding test.

        Returns
        -------
        SignificanceMapDisplay
            Display of the data. The method `plot` draws the figure.
        """
        name = formatting.check_comparison(comparison).metric_or_first(metric)
        split = comparison.data_or_only(data)
        pairs = tuple(comparison.pairs_of(name, split, test))
        tested_methods = {pair.first for pair in pairs} | {pair.second for pair in pairs}
        ranked_methods = [standing.method for standing in comparison.standings_of(name, split)]
        all_methods = dict.fromkeys([*ranked_methods, *comparison.methods])
        methods = tuple(method for method in all_methods if method in tested_methods)
        return cls(methods, pairs, comparison.level)

    @property
    def title(self) -> str:
        """Title of the figure."""
        if not self.pairs:
            return "No pairs of methods"
        pair = self.pairs[0]
        data_suffix = formatting.data_set_suffix(pair.data)
        validity_note = "" if pair.valid else "; not a valid test"
        p_name = "p" if pair.adjustment == "none" else "adjusted p"
        bounds = [f"{1 - self.level:g}", "0.01", "0.001"]
        colors = f"gray: {p_name} \u2265 {bounds[0]}; blue: {p_name} < {bounds[0]}"
        if self._has_text:
            colors += f"; cells contain {p_name}"
        else:
            darker = [bound for bound in bounds[1:] if float(bound) < 1 - self.level]
            colors += f"; darker: < {' and < '.join(darker)}" if darker else ""
        return (
            f"Row better than column by {formatting.metric_title(pair.metric)}{data_suffix}\n"
            f"({pair.test_description}{validity_note}; {colors})"
        )

    @property
    def _has_text(self) -> bool:
        """Whether cells contain their p-value."""
        return len(self.methods) <= _MAX_METHODS_WITH_P_VALUES

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per cell with a p-value."""
        import polars as pl

        rows = [
            {"row": row, "column": column, "adjusted": p.adjusted, "better": p.better == row}
            for (row, column), p in self._cells().items()
        ]
        columns = {
            "row": pl.String,
            "column": pl.String,
            "adjusted": pl.Float64,
            "better": pl.Boolean,
        }
        return pl.DataFrame(rows, schema=columns)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw the cells in a shade for their p-value. If there is space, print the p-value."""
        n_methods = len(self.methods)
        index_by_method = {method: i for i, method in enumerate(self.methods)}
        positions_by_opacity: dict[float, list[tuple[int, int]]] = {
            opacity: [] for _, opacity in _SHADES
        }
        not_significant: list[tuple[int, int]] = []
        for (row, column), pair in self._cells().items():
            position = (index_by_method[column], index_by_method[row])
            is_significant = pair.better == row
            if is_significant:
                opacity = 1.0 if self._has_text else _opacity(pair.adjusted)
                positions_by_opacity[opacity].append(position)
            else:
                not_significant.append(position)
            if self._has_text:
                self._write_p_value(axes, position, pair, is_significant=is_significant)
        # The gap is at most a quarter of a cell, in points.
        gap = min(1.5, 72 * self._side / n_methods / 4) if n_methods else 0.0
        style: Style = {"edgecolor": PAPER, "linewidth": gap}
        for opacity, positions in positions_by_opacity.items():
            shade = {"facecolor": LIGHT[0], "alpha": opacity}
            draw_squares(axes, positions, **{**style, **shade, **kwargs})
        shade = {"facecolor": GRID, "alpha": 1.0}
        draw_squares(axes, not_significant, **{**style, **shade, **kwargs})
        axes.set(xlim=(-0.52, n_methods - 0.48), ylim=(n_methods - 0.48, -0.52), aspect="equal")
        hide_frame(axes)
        self._label_axes(axes)

    def _write_p_value(
        self,
        ax: "Axes",
        position: tuple[int, int],
        pair: PairedDifference,
        *,
        is_significant: bool,
    ) -> None:
        """Write the p-value of a pair in its cell, in bold if the difference is significant."""
        font_size = 9 if len(self.methods) <= 8 else 6.5
        style: Style = {"ha": "center", "va": "center", "fontsize": font_size}
        if is_significant:
            style |= {"color": PAPER, "fontweight": "bold"}
        draw_text(ax, *position, _format_cell(pair.adjusted), **style)

    def _cells(self) -> dict[tuple[str, str], PairedDifference]:
        """Return the pair of methods in each cell.

        For a two-sided test, only the cell in the row of the better method has a pair.
        """
        index = self.methods.index
        cells = {(p.first, p.second): p for p in self.pairs}
        for pair in self.pairs:
            is_reversed = index(pair.second) < index(pair.first)
            if pair.better:
                is_reversed = pair.better == pair.second
            # If a pair was tested in both orders, each order has a cell.
            if (pair.second, pair.first) not in cells and is_reversed:
                cells[pair.second, pair.first] = cells.pop((pair.first, pair.second))
        order = sorted(cells, key=lambda cell: (index(cell[0]), index(cell[1])))
        return {cell: cells[cell] for cell in order}

    def _label_axes(self, ax: "Axes") -> None:
        """Draw the names of the methods and the titles of the axes."""
        label_by_method = unique_labels(self.methods, _MAX_NAME_LENGTH)
        names = [label_by_method[method] for method in self.methods]
        # Labels are not higher than the cells, and therefore do not overlap.
        size = min(10.0, 0.9 * 72 * self._side / max(len(names), 1))
        slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        positions = range(len(names))
        set_many_tick_labels(ax, "y", names, positions, fontsize=size)
        set_many_tick_labels(ax, "x", names, positions, fontsize=size, **slanted)
        ax.set_xlabel("… than this method", color=MUTED, fontsize=9)
        ax.set_ylabel("This method is better …", color=MUTED, fontsize=9)

    @property
    def _side(self) -> float:
        """Side length of the map in inches.

        Cells have a minimum size.
        """
        k = len(self.methods)
        return min(max(0.46 * k, 1.6), max(5.5, 0.1 * k))

    def _size(self) -> tuple[float, float]:
        names_width = label_width(self.methods, _MAX_NAME_LENGTH)
        return max(self._side + 0.9 + names_width, 4.2), self._side + 1.5 + 0.7 * names_width


@dataclass(eq=False)
class SignificanceMapsDisplay(DisplayGrid):
    """Significance maps side by side, for example for two tests or two metrics.

    `plot` passes additional options as `SignificanceMapDisplay` does.

    Attributes
    ----------
    maps : dict of str to SignificanceMapDisplay
        Displays by the title of their panel.
    title : str
        Title of the figure.

    Examples
    --------
    >>> from abstain.evaluation.comparison import PairedDifference
    >>> from abstain.plots import SignificanceMapDisplay, SignificanceMapsDisplay
    >>> pair = PairedDifference("augrc", (), "msr", "pe", -0.01, adjusted=0.002, better="msr")
    >>> one = SignificanceMapDisplay(("msr", "pe"), (pair,), 0.95)
    >>> SignificanceMapsDisplay({"by AUGRC": one}, "Two tests").frame().rows()
    [('by AUGRC', 'msr', 'pe', 0.002, True)]
    """

    panel_column: ClassVar[str] = "map"

    maps: dict[str, SignificanceMapDisplay]
    title: str

    def __post_init__(self) -> None:
        """Check that there is at least one map."""
        if not self.maps:
            raise InputError("`maps` must hold at least one map; got none")

    @property
    def _displays(self) -> dict[str, SignificanceMapDisplay]:
        return self.maps


def _opacity(p_value: float) -> float:
    """Return the opacity of the cell for a significant p-value."""
    return next(opacity for bound, opacity in _SHADES if p_value < bound)


def _format_cell(value: float) -> str:
    """Format a p-value for a small cell without a leading zero.

    Examples
    --------
    >>> [_format_cell(value) for value in (0.0123, 0.00001, 0.5, 1.0, float("nan"))]
    ['.012', '<.001', '.50', '1', '–']
    """
    if math.isnan(value):
        return "–"
    if value < 0.001:
        return "<.001"
    if value >= 0.995:
        return "1"
    return f"{value:.3f}"[1:] if value < 0.1 else f"{value:.2f}"[1:]
