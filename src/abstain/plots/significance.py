"""Which method is found better than which: the significance map of Traub et al. (2024)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from abstain.errors import InputError
from abstain.evaluation.comparison import Comparison, PairedDifference
from abstain.plots import formatting
from abstain.plots._panels import Panels, grid_shape, name_panel, split_axes
from abstain.plots.drawable import Titled
from abstain.plots.labels import hide_frame, unique_labels, set_many_tick_labels, label_width, draw_squares, draw_text
from abstain.plots.style import GRID, INK, LIGHT, MUTED, PAPER
from abstain.typing import Split

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: More methods than this leave no room for p-values in the cells.
_READABLE = 12

#: Characters of a name.
_NAME = 20


@dataclass(eq=False)
class SignificanceMapDisplay(Titled):
    """A square of methods: blue where the row is found better than the column.

    Methods stand in the order of their ranks, so what is found lies above the diagonal. A cell
    holds the adjusted p-value of its pair; a two-sided test has one p-value for both cells of
    a pair, and it is written into one of them.

    `plot` passes its options on to the ``matplotlib.patches.PathPatch`` of the cells of one kind
    (linewidth, facecolor).

    Attributes
    ----------
    methods : tuple of str
        Rows and columns, the best first.
    pairs : tuple of PairedDifference
        By one test.
    level : float
        A difference is found when the adjusted p-value is below 1 - level.

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
        """Take the pairs of one metric on one data set.

        Parameters
        ----------
        comparison : Comparison
            What `compare` returned.
        metric : str, optional
            By default the first.
        data : tuple of (column, value), optional
            The data set; may be left out when there is only one.
        test : str, optional
            By default the one that decides.

        Returns
        -------
        SignificanceMapDisplay
            Call `plot` to draw it.
        """
        name = formatting.check_comparison(comparison).metric_or_first(metric)
        split = comparison.data_or_only(data)
        pairs = tuple(comparison.pairs_of(name, split, test))
        named = {method for pair in pairs for method in (pair.first, pair.second)}
        order = [s.method for s in comparison.standings_of(name, split)]
        methods = dict.fromkeys([*order, *comparison.methods])
        return cls(tuple(m for m in methods if m in named), pairs, comparison.level)

    @property
    def title(self) -> str:
        """What the figure shows, in words."""
        if not self.pairs:
            return "No pairs to compare"
        pair = self.pairs[0]
        where = formatting.data_set_suffix(pair.data)
        doubt = "" if pair.valid else "; not a valid test"
        return (
            f"Row better than column by {formatting.metric_title(pair.metric)}{where}\n"
            f"({pair.test_description}{doubt}; blue: p < {1 - self.level:g})"
        )

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row a cell that holds a p-value."""
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
        k, place = len(self.methods), self._places
        kinds: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
        for (row, column), pair in self._cells().items():
            kinds[pair.better == row].append((place[column], place[row]))
            if k <= _READABLE:
                self._write(axes, (place[column], place[row]), pair.adjusted, pair.better == row)
        for found, at in kinds.items():
            style = {"facecolor": LIGHT[0] if found else GRID, "edgecolor": PAPER}
            draw_squares(axes, at, **style | {"linewidth": _gap(k)} | kwargs)
        axes.set(xlim=(-0.52, k - 0.48), ylim=(k - 0.48, -0.52), aspect="equal")
        hide_frame(axes)
        self._name(axes)

    def _write(self, ax: "Axes", place: tuple[int, int], adjusted: float, found: bool) -> None:
        said = "–" if math.isnan(adjusted) else _short(adjusted)
        color, weight = (PAPER, "bold") if found else (INK, "normal")
        size = 9 if len(self.methods) <= 8 else 6.5
        middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size}
        draw_text(ax, *place, said, color=color, fontweight=weight, **middle)

    @property
    def _places(self) -> dict[str, int]:
        """Where each method stands."""
        return {method: i for i, method in enumerate(self.methods)}

    def _cells(self) -> dict[tuple[str, str], PairedDifference]:
        """Return the pair of each cell: of two-sided tests the row is the better or first one."""
        cells, place = {(p.first, p.second): p for p in self.pairs}, self._places
        # Where both orders of a pair were tested, each has its own cell.
        for pair in self.pairs:
            turned = place[pair.second] < place[pair.first]
            if pair.better:
                turned = pair.better == pair.second
            if (pair.second, pair.first) not in cells and turned:
                cells[pair.second, pair.first] = cells.pop((pair.first, pair.second))
        return dict(sorted(cells.items(), key=lambda cell: (place[cell[0][0]], place[cell[0][1]])))

    def _name(self, ax: "Axes") -> None:
        written = unique_labels(self.methods, _NAME)
        names = [written[method] for method in self.methods]
        # Letters no higher than the cells, so that no name lies on another.
        size = {"fontsize": min(10.0, 0.9 * 72 * _side(len(names)) / max(len(names), 1))}
        slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        every = range(len(names))
        set_many_tick_labels(ax, "y", names, every, **size)
        set_many_tick_labels(ax, "x", names, every, **size, **slanted)
        ax.set_xlabel("… than this method", color=MUTED, fontsize=9)
        ax.set_ylabel("This method is better …", color=MUTED, fontsize=9)

    def _size(self) -> tuple[float, float]:
        return _size_of(self.methods)


@dataclass(eq=False)
class SignificanceMapsDisplay(Panels):
    """Several significance maps side by side: of two tests, or by two metrics.

    `plot` passes its options on as `SignificanceMapDisplay` does.

    Attributes
    ----------
    maps : dict of str to SignificanceMapDisplay
        By what stands above each.
    title : str
        What the figure shows.

    Examples
    --------
    >>> from abstain.evaluation.comparison import PairedDifference
    >>> from abstain.plots import SignificanceMapDisplay, SignificanceMapsDisplay
    >>> pair = PairedDifference("augrc", (), "msr", "pe", -0.01, adjusted=0.002, better="msr")
    >>> one = SignificanceMapDisplay(("msr", "pe"), (pair,), 0.95)
    >>> SignificanceMapsDisplay({"by AUGRC": one}, "Two tests").frame().rows()
    [('by AUGRC', 'msr', 'pe', 0.002, True)]
    """

    maps: dict[str, SignificanceMapDisplay]
    title: str

    def __post_init__(self) -> None:
        """Refuse a figure of nothing."""
        if not self.maps:
            raise InputError("`maps` must hold at least one map; got none")

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row a cell that holds a p-value."""
        import polars as pl

        return pl.concat(
            own.frame().select(pl.lit(name).alias("map"), pl.all())
            for name, own in self.maps.items()
        )

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        made = split_axes(axes, len(self.maps), share_x=False, share_y=False, max_columns=2)
        self.ax_ = made[0]
        for (name, own), ax in zip(self.maps.items(), made, strict=True):
            own.plot(ax, title=False, **kwargs)
            name_panel(ax, name)

    def _size(self) -> tuple[float, float]:
        rows, columns = grid_shape(len(self.maps), 2)
        sizes = [_size_of(own.methods) for own in self.maps.values()]
        return columns * max(w for w, _ in sizes), 0.4 + rows * max(h for _, h in sizes)


def _size_of(methods: tuple[str, ...]) -> tuple[float, float]:
    """Return width and height of a map with its names, in inches."""
    side, names = _side(len(methods)), label_width(methods, _NAME)
    return max(side + 0.9 + names, 4.2), side + 1.5 + 0.7 * names


def _side(methods: int) -> float:
    """Return the side of the square, in inches: a cell has room for letters that can be read."""
    return min(max(0.46 * methods, 1.6), max(5.5, 0.1 * methods))


def _gap(methods: int) -> float:
    """Return the gap between two cells, in points: no more than a quarter of a cell."""
    return min(1.5, 72 * _side(methods) / methods / 4)


def _short(value: float) -> str:
    """Write a p-value into a small cell: no zero in front of the point.

    Examples
    --------
    >>> _short(0.0123), _short(0.00001), _short(0.5), _short(1.0)
    ('.012', '<.001', '.50', '1')
    """
    if value < 0.001:
        return "<.001"
    if value >= 0.995:
        return "1"
    return f"{value:.3f}"[1:] if value < 0.1 else f"{value:.2f}"[1:]
