"""Line plots in one or several panels."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from abstain.errors import InputError, ShapeError
from abstain.plots._panels import (
    Panels,
    distinct,
    grid_shape,
    hide_inner_labels,
    legend_below,
    legend_below_height,
    name_panel,
    style_panel,
)
from abstain.plots.labels import label_width
from abstain.plots.style import CURVE_ID, INK, line_style, reference_style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Size of a panel in a figure with several panels, and size of a single panel, in inches.
_PANEL_SIZE, _SINGLE_PANEL_SIZE = (2.9, 2.35), (5.6, 3.9)
#: Width of a compact figure, and height of its panel, in inches.
_COMPACT_SIZE = (3.9, 2.6)


@dataclass(frozen=True)
class Series:
    """A line with a name, its points, and an optional band.

    Attributes
    ----------
    name : str
        Name in the legend. Lines with the same name have the same style in all panels.
    x, y : tuple of float
        Points from left to right. A NaN produces a gap in the line.
    low, high : tuple of float
        Bounds of a band around the line, or empty tuples. If more than two lines of a panel have
        bands, only the first band is drawn.
    panel : str
        Panel in which the line is drawn.

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
        """Check that the line and the band have one value for each point."""
        lengths = {name: len(getattr(self, name)) for name in ("y", "low", "high")}
        for name, length in lengths.items():
            if length != len(self.x) and not (length == 0 and lengths["low"] == lengths["high"]):
                raise ShapeError(
                    f"`{name}` must have one number for each of {len(self.x)} points; got {length}"
                )


@dataclass(eq=False)
class SeriesDisplay(Panels):
    """Line plots in one or several panels.

    `plot` passes additional options to each call of ``Axes.plot`` of a line (linewidth, marker).

    Attributes
    ----------
    series : tuple of Series
        Lines, in the order of the legend.
    title, x_title, y_title : str
        Titles of the figure and of its axes.
    log_x, log_y : bool
        Whether the axes are logarithmic. Values of at most 0 are not drawn on a logarithmic axis.
    linear_threshold : float
        If positive, the y axis is linear from -linear_threshold to linear_threshold and logarithmic
        outside of this range.
    share_y : bool
        Whether all panels share the y axis.
    level : mapping from panel to float
        Position of a dotted line in each panel on the y axis, such as the true value.
    level_name : str
        Name of the dotted line, for the legend.
    order : tuple of str
        Names in the order of their colors, for the same colors in several figures.
    marks : tuple of float
        Positions of vertical dashed lines in all panels, such as alarms.
    marks_name : str
        Name of the vertical lines, for the legend.
    is_compact : bool
        Whether a single panel is narrow, for a figure beside a table.

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
    linear_threshold: float = 0.0
    share_y: bool = False
    level: Mapping[str, float] = field(default_factory=dict)
    level_name: str = ""
    order: tuple[str, ...] = ()
    marks: tuple[float, ...] = ()
    marks_name: str = ""
    is_compact: bool = False

    def __post_init__(self) -> None:
        """Check that there is at least one line with a point."""
        if not any(s.x for s in self.series):
            raise InputError("`series` must hold at least one line with a point; got none")

    @property
    def panels(self) -> list[str]:
        """Names of the panels, in the order in which they first appear."""
        return distinct(self.series, "panel")

    @property
    def names(self) -> list[str]:
        """Names of the lines, in the order in which colors are assigned."""
        return distinct(self.series, "name")

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per point."""
        import polars as pl

        columns: dict[str, Any] = {"panel": pl.String, "name": pl.String}
        columns |= dict.fromkeys(("x", "y", "low", "high"), pl.Float64)
        rows = [
            (s.panel, s.name, s.x[i], s.y[i], *((s.low[i], s.high[i]) if s.low else (None, None)))
            for s in self.series
            for i in range(len(s.x))
        ]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def _draw_on(self, ax: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw all panels and one legend."""
        axes = self._split_axes(ax, len(self.panels), share_x=True, share_y=self.share_y)
        handles: dict[str, Any] = {}
        for panel, panel_axes in zip(self.panels, axes, strict=True):
            self._draw_panel(panel_axes, panel, kwargs, handles)
            self._scale_axes(panel_axes, panel)
            style_panel(panel_axes, self.x_title, self.y_title)
            name_panel(panel_axes, panel)
        hide_inner_labels(axes, share_y=self.share_y)
        legend_below(axes[0], list(handles.values()), list(handles))

    def _draw_panel(
        self, ax: "Axes", panel: str, kwargs: dict[str, Any], handles: dict[str, Any]
    ) -> None:
        """Draw the lines and bands of a panel, and add legend entries for new names."""
        color_order = list(dict.fromkeys((*self.order, *self.names)))
        name_with_band = self._only_name_with_band()
        bands: dict[str, Any] = {}
        for s in self.series:
            if s.panel != panel:
                continue
            marker = "o" if len(s.x) <= _MAX_POINTS_WITH_MARKERS else ""
            style = {**line_style(color_order.index(s.name)), "linewidth": 1.4}
            style |= {"marker": marker, "markersize": 2.6, **kwargs, "gid": CURVE_ID}
            (line,) = ax.plot(s.x, self._on_axis(s.y), **style)
            handles.setdefault(s.name, line)
            if s.low and name_with_band in {None, s.name}:
                band = {"color": style["color"], "alpha": 0.07, "linewidth": 0}
                bounds = self._on_axis(s.low), self._on_axis(s.high)
                bands[s.name] = ax.fill_between(s.x, *bounds, **band)
        if panel in self.level:
            line = ax.axhline(self.level[panel], **{**reference_style(), "color": INK})
            handles.setdefault(self.level_name, line)
        for position in self.marks:
            line = ax.axvline(position, color=INK, linestyle=(0, (4, 2)), linewidth=1.2)
            handles.setdefault(self.marks_name, line)
        if name_with_band in bands:
            handles.setdefault(f"band of {name_with_band}", bands[name_with_band])

    def _only_name_with_band(self) -> str | None:
        """Return the name of the line whose band is drawn, or None if all bands are drawn.

        Many overlapping bands would be unreadable.
        """
        names = distinct((s for s in self.series if s.low), "name")
        return names[0] if len(names) > _MAX_BANDS else None

    def _on_axis(self, values: tuple[float, ...]) -> list[float]:
        """Replace values of at most 0 by NaN if the axis is logarithmic."""
        return [math.nan if self.log_y and not v > 0 else v for v in values]

    def _scale_axes(self, ax: "Axes", panel: str) -> None:
        """Set the scale of both axes of a panel."""
        if self.log_x:
            all_x = {x for line in self.series for x in line.x}
            positive_x = sorted(x for x in all_x if x > 0)
            if positive_x:
                set_log_ticks(ax, positive_x)
        lines = [line for line in self.series if self.share_y or line.panel == panel]
        max_y = max((max(line.y, default=-math.inf) for line in lines), default=-math.inf)
        if self.log_y and max_y > 0:
            ax.set_yscale("log")
        elif self.linear_threshold > 0:
            ax.set_yscale("symlog", linthresh=self.linear_threshold, linscale=0.6)
        elif self._must_hide_negative_band(lines):
            ax.set_ylim(bottom=max(ax.get_ylim()[0], 0.0))

    def _must_hide_negative_band(self, series: Sequence[Series]) -> bool:
        """Return whether the part of a band below 0 should be omitted.

        It is omitted if the plotted quantity cannot be negative. A dotted line at or below 0
        indicates a quantity that can be negative, such as a bias.
        """
        has_negative_band = any(low < 0 for s in series for low in s.low)
        has_negative_value = any(y < 0 for s in series for y in s.y)
        may_be_negative = has_negative_value or any(level <= 0 for level in self.level.values())
        return has_negative_band and not may_be_negative

    def _size(self) -> tuple[float, float]:
        """Return the size of the figure, including titles and legend."""
        n_rows, n_columns = grid_shape(len(self.panels))
        is_single = n_rows * n_columns == 1
        panel_width, panel_height = _SINGLE_PANEL_SIZE if is_single else _PANEL_SIZE
        width = max(n_columns * panel_width + 0.4, 5.6)
        if self.is_compact and is_single:
            width, panel_height = _COMPACT_SIZE
        title_height = 0.2 if any(self.panels) else 0.0
        # Long titles of panels have two lines.
        extra_height = 0.35 if label_width(self.panels) > n_columns * panel_width else 0.0
        height = n_rows * (panel_height + title_height) + 0.5 + extra_height
        return width, height + legend_below_height(self._legend_names(), width)

    def _legend_names(self) -> list[str]:
        """Return the names of the lines, the dotted line, the vertical lines and the band."""
        names = list(self.names)
        if self.level:
            names.append(self.level_name)
        if self.marks:
            names.append(self.marks_name)
        name_with_band = self._only_name_with_band()
        if name_with_band:
            names.append(f"band of {name_with_band}")
        return names


#: Maximum number of points of a line with markers.
_MAX_POINTS_WITH_MARKERS = 20
#: Maximum number of bands in a panel. With more bands, only the first is drawn.
_MAX_BANDS = 2

#: Maximum and minimum number of ticks of a logarithmic axis.
_MAX_TICKS, _MIN_TICKS = 9, 4
#: Width of a digit as a share of the axis of the smallest panel.
_DIGIT_WIDTH = 0.03


def set_log_ticks(ax: "Axes", values: list[float]) -> None:
    """Make the x axis logarithmic, with ticks at the x values or at powers of two."""
    from matplotlib.ticker import NullLocator

    ax.set_xscale("log")
    ticks = _drop_overlapping(_tick_candidates(values))
    ax.set_xticks(ticks, [_format_tick(v) for v in ticks])
    ax.xaxis.set_minor_locator(NullLocator())


def _tick_candidates(values: Sequence[float]) -> list[float]:
    """Return tick positions, which are the values or, if there are many, powers of two.

    Examples
    --------
    >>> _tick_candidates([1, 2, 3, 4, 5]), _tick_candidates(range(1, 31))
    ([1, 2, 3, 4, 5], [1, 2, 4, 8, 16])
    """
    if len(values) <= _MAX_TICKS:
        return list(values)
    low, high = math.ceil(math.log2(values[0])), math.floor(math.log2(values[-1]))
    powers = [2.0**k if k < 0 else 2**k for k in range(low, high + 1)]
    if len(powers) < _MIN_TICKS:
        powers = list(values[:: math.ceil(len(values) / _MIN_TICKS)])
    return powers if len(powers) <= _MAX_TICKS else powers[:: math.ceil(len(powers) / 6)]


def _drop_overlapping(values: Sequence[float]) -> list[float]:
    """Remove ticks whose labels would overlap.

    The first and the last tick are never removed.

    Examples
    --------
    >>> _drop_overlapping([1, 2, 4, 8]), _drop_overlapping([1000, 1001, 2000])
    ([1, 2, 4, 8], [1000, 2000])
    """
    span = math.log(values[-1] / values[0]) or 1.0
    ticks = [values[0]]
    for value in values[1:]:
        n_digits = (len(_format_tick(ticks[-1])) + len(_format_tick(value))) / 2
        width = _DIGIT_WIDTH * span * (1 + n_digits)
        while value == values[-1] and len(ticks) > 1 and math.log(value / ticks[-1]) < width:
            ticks.pop()
        if math.log(value / ticks[-1]) >= width:
            ticks.append(value)
    return ticks


def _format_tick(value: float) -> str:
    """Format a number of samples as a tick label.

    Examples
    --------
    >>> _format_tick(512), _format_tick(131072), _format_tick(1048576)
    ('512', '131k', '1.0M')
    """
    if value >= 1e6:
        return f"{value / 1e6:.1f}M"
    return f"{value / 1e3:.0f}k" if value >= 10_000 else f"{value:g}"
