"""Lines against a number, in one panel or several: how an estimate behaves as the sample grows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from abstain.errors import InputError, ShapeError
from abstain.plots._panels import (
    Panels,
    grid_shape,
    hide_inner_labels,
    legend_below,
    n_legend_columns,
    name_panel,
    split_axes,
)
from abstain.plots.labels import label_width
from abstain.plots.style import CURVE_ID, INK, MUTED, style_axes, line_style, reference_style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Inches of a panel among others, and of one alone.
_PANEL, _ALONE = (2.9, 2.35), (5.6, 3.9)


@dataclass(frozen=True)
class Series:
    """One line: a name, its points, and where they may lie.

    Attributes
    ----------
    name : str
        In the legend; the same name looks the same in every panel.
    x, y : tuple of float
        The points, from left to right; NaN leaves a gap.
    low, high : tuple of float
        A band around the line; empty when there is none. Of more than two in a
        panel only the first is drawn.
    panel : str
        In which panel it is drawn.

    Examples
    --------
    >>> Series("plug-in", (8, 16), (0.1, 0.05)).panel
    ''
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    panel: str = ""

    def __post_init__(self) -> None:
        """Refuse a line or a band without one number for each point."""
        lengths = {name: len(getattr(self, name)) for name in ("y", "low", "high")}
        for name, length in lengths.items():
            if length != len(self.x) and not (length == 0 and lengths["low"] == lengths["high"]):
                raise ShapeError(
                    f"`{name}` must have one number for each of {len(self.x)} points; got {length}"
                )


@dataclass(eq=False)
class SeriesDisplay(Panels):
    """Lines against a number, in small multiples where there are several panels.

    `plot` passes its options on to every ``Axes.plot`` of a line (linewidth, marker).

    Attributes
    ----------
    series : tuple of Series
        What is drawn, in the order of the legend.
    title, x_title, y_title : str
        What the figure and its axes show.
    log_x, log_y : bool
        Whether the axes are logarithmic; what is not above 0 is then left out.
    linear_to : float
        Above 0, the y axis is logarithmic on both sides of 0 from this size on.
    share_y : bool
        Whether all panels have one y axis.
    level : mapping from panel to float
        A dotted line at a height of each panel, such as the true value.
    level_name : str
        What the dotted line is called.
    order : tuple of str
        Names in the order of their colors, so that a name looks the same in several figures.

    Examples
    --------
    >>> from abstain.plots.series import Series, SeriesDisplay
    >>> display = SeriesDisplay((Series("plug-in", (8, 16), (0.1, 0.05)),), "Error", "n", "error")
    >>> display.frame().rows()[0]
    ('', 'plug-in', 8.0, 0.1, None, None)
    """

    series: tuple[Series, ...]
    title: str
    x_title: str
    y_title: str
    log_x: bool = True
    log_y: bool = False
    linear_to: float = 0.0
    share_y: bool = False
    level: Mapping[str, float] = field(default_factory=dict)
    level_name: str = ""
    order: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a figure of nothing."""
        if not any(s.x for s in self.series):
            raise InputError("`series` must hold at least one line with a point; got none")

    @property
    def panels(self) -> list[str]:
        """The names of the panels, in order."""
        return list(dict.fromkeys(s.panel for s in self.series))

    @property
    def names(self) -> list[str]:
        """The names of the lines, in order."""
        return list(dict.fromkeys(s.name for s in self.series))

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row a point."""
        import polars as pl

        columns = ("panel", "name", "x", "y", "low", "high")
        types = dict(zip(columns, (pl.String, pl.String, *(pl.Float64,) * 4), strict=True))
        rows = [
            (s.panel, s.name, x, y, _at(s.low, i), _at(s.high, i))
            for s in self.series
            for i, (x, y) in enumerate(zip(s.x, s.y, strict=True))
        ]
        return pl.DataFrame(rows, schema=types, orient="row")

    def _draw_on(self, ax: "Axes", kwargs: dict[str, Any]) -> None:
        panels = self.panels
        axes = split_axes(ax, len(panels), share_y=self.share_y)
        self.ax_ = axes[0]
        known = list(dict.fromkeys((*self.order, *self.names)))
        styles = {name: line_style(known.index(name)) for name in self.names}
        handles: dict[str, Any] = {}
        for name, at in zip(panels, axes, strict=True):
            self._draw_panel(at, name, styles, kwargs, handles)
        hide_inner_labels(axes, share_y=self.share_y)
        legend_below(axes[0], list(handles.values()), list(handles))

    def _draw_panel(
        self,
        ax: "Axes",
        panel: str,
        styles: Mapping[str, dict[str, Any]],
        kwargs: Mapping[str, Any],
        handles: dict[str, Any],
    ) -> None:
        banded = self._banded()
        bands: dict[str, Any] = {}
        for s in self.series:
            if s.panel == panel:
                style = {"marker": "o", "markersize": 2.6, **styles[s.name]}
                if len(s.x) > _MARKED:
                    style["marker"] = ""
                style |= {"linewidth": 1.4, **kwargs, "gid": CURVE_ID}
                (line,) = ax.plot(s.x, [_shown(y, log=self.log_y) for y in s.y], **style)
                if s.low and (banded is None or s.name == banded):
                    band = self._draw_band(ax, s, style["color"])
                    bands |= {f"band of {banded}": band} if banded else {}
                handles.setdefault(s.name, line)
        if panel in self.level:
            line = ax.axhline(self.level[panel], **reference_style() | {"color": INK})
            handles.setdefault(self.level_name, line)
        for name, band in bands.items():
            handles.setdefault(name, band)
        self._scale(ax, panel)

    def _banded(self) -> str | None:
        """Return the only line that has a band, and None where all have theirs.

        Many bands upon each other are one gray; the table has them all.
        """
        names = [name for name in self.names if any(s.low for s in self.series if s.name == name)]
        return names[0] if len(names) > _BANDS else None

    def _draw_band(self, ax: "Axes", s: Series, color: str) -> Any:
        low = [_shown(v, log=self.log_y) for v in s.low]
        high = [_shown(v, log=self.log_y) for v in s.high]
        return ax.fill_between(s.x, low, high, color=color, alpha=0.07, linewidth=0)

    def _scale(self, ax: "Axes", panel: str) -> None:
        if self.log_x:
            positive = sorted({x for s in self.series for x in s.x if x > 0})
            if positive:
                log_ticks(ax, positive)
        if self.log_y and self._positive(panel):
            ax.set_yscale("log")
        elif self.linear_to > 0:
            ax.set_yscale("symlog", linthresh=self.linear_to, linscale=0.6)
        elif self._above_zero(panel):
            ax.set_ylim(bottom=max(ax.get_ylim()[0], 0.0))
        ax.set_xlabel(self.x_title, parse_math=False)
        ax.set_ylabel(self.y_title, parse_math=False)
        style_axes(ax)
        ax.tick_params(labelsize=8, which="both", length=0, colors=MUTED)
        if panel:
            name_panel(ax, panel)

    def _above_zero(self, panel: str) -> bool:
        """Tell whether only bands reach below 0, where an area cannot be."""
        if any(v <= 0 for v in self.level.values()):
            # Of a bias, the band says whether there is any.
            return False
        shown = [s for s in self.series if self.share_y or s.panel == panel]
        below = any(v < 0 for s in shown for v in s.low)
        return below and not any(v < 0 for s in shown for v in s.y)

    def _positive(self, panel: str) -> bool:
        """Tell whether a logarithmic axis has anything to show."""
        shown = [s for s in self.series if self.share_y or s.panel == panel]
        return any(y > 0 for s in shown for y in s.y)

    def _size(self) -> tuple[float, float]:
        rows, columns = grid_shape(len(self.panels))
        one = _ALONE if rows * columns == 1 else _PANEL
        width = max(columns * one[0] + 0.4, 5.6)
        names = [*self.names, *([self.level_name] if self.level else [])]
        names += [f"band of {banded}"] if (banded := self._banded()) else []
        below = math.ceil(len(names) / n_legend_columns(names, width - 0.3))
        titled = 0.2 if any(self.panels) else 0.0
        extra = 0.35 if label_width(self.panels) > columns * one[0] else 0.0
        return width, rows * (one[1] + titled) + 0.5 + 0.2 * below + extra


#: From so many points on a line has no marks.
_MARKED = 20
#: The most bands of a panel; of more only the first is drawn.
_BANDS = 2


def _at(values: tuple[float, ...], i: int) -> float | None:
    return values[i] if values else None


def _shown(value: float, *, log: bool) -> float:
    """Leave out what a logarithmic axis cannot show."""
    return math.nan if log and not value > 0 else value


#: The most ticks that are written under a logarithmic axis, and how few are too few.
_TICKS, _FEW = 9, 4
#: A digit of a tick as a share of the axis of the smallest panel.
_DIGIT = 0.03


def log_ticks(ax: "Axes", values: list[float]) -> None:
    """Make the x axis logarithmic; its ticks are values that were measured, or powers of two."""
    from matplotlib.ticker import NullLocator

    ax.set_xscale("log")
    shown = _apart(_candidates(values))
    ax.set_xticks(shown, [_short(v) for v in shown])
    ax.xaxis.set_minor_locator(NullLocator())


def _candidates(values: Sequence[float]) -> list[float]:
    """Return what may be written under the axis: the values while few, else powers of two.

    Examples
    --------
    >>> _candidates([1, 2, 3, 4, 5]), _candidates(range(1, 31))
    ([1, 2, 3, 4, 5], [1, 2, 4, 8, 16])
    """
    if len(values) <= _TICKS:
        return list(values)
    low, high = math.ceil(math.log2(values[0])), math.floor(math.log2(values[-1]))
    powers = [2.0**k if k < 0 else 2**k for k in range(low, high + 1)]
    if len(powers) < _FEW:
        powers = list(values[:: math.ceil(len(values) / _FEW)])
    return powers if len(powers) <= _TICKS else powers[:: math.ceil(len(powers) / 6)]


def _apart(values: Sequence[float]) -> list[float]:
    """Leave out what would touch its neighbor on the axis, but neither end.

    Examples
    --------
    >>> _apart([1, 2, 4, 8]), _apart([1000, 1001, 2000])
    ([1, 2, 4, 8], [1000, 2000])
    """
    span = math.log(values[-1] / values[0]) or 1.0
    kept = [values[0]]
    for value in values[1:]:
        wide = _DIGIT * span * (1 + (len(_short(kept[-1])) + len(_short(value))) / 2)
        while value == values[-1] and len(kept) > 1 and math.log(value / kept[-1]) < wide:
            kept.pop()
        if math.log(value / kept[-1]) >= wide:
            kept.append(value)
    return kept


def _short(value: float) -> str:
    """Write a number of samples shortly.

    Examples
    --------
    >>> _short(512), _short(131072), _short(1048576)
    ('512', '131k', '1.0M')
    """
    if value >= 1e6:
        return f"{value / 1e6:.1f}M"
    return f"{value / 1e3:.0f}k" if value >= 10_000 else f"{value:g}"
