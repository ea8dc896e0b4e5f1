"""Forest plots, which show the estimate and the interval of each method in a row."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abstain.evaluation.comparison import Comparison, Estimate, RelationToBest, sort_best_first
from abstain.plots import formatting
from abstain.plots.drawable import Titled
from abstain.plots.labels import (
    draw_rule,
    draw_rules,
    draw_text,
    hide_frame,
    label_width,
    set_many_tick_labels,
    unique_labels,
)
from abstain.plots.style import INK, LIGHT, MUTED, PAPER, Style
from abstain.tables import split_name
from abstain.typing import Split

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Markers by the result of the comparison with the best method.
_MARKS: dict[str, Style] = {
    "best": {"marker": "D", "color": LIGHT[0], "markerfacecolor": LIGHT[0]},
    "worse": {"marker": "o", "color": MUTED, "markerfacecolor": PAPER},
    "other": {"marker": "o", "color": INK, "markerfacecolor": INK},
}

#: Maximum number of ticks on the axis of values.
_MAX_TICKS = 5


@dataclass(eq=False)
class ForestDisplay(Titled):
    """Forest plot of a metric on one or several data sets, with methods sorted by value.

    On each data set, a blue diamond and a dotted line mark the best method. Filled dots mark
    methods that are not significantly different from the best method. Hollow dots mark methods that
    are significantly worse.

    `plot` passes additional options to the ``Axes.errorbar`` of each marker.

    Attributes
    ----------
    metric : str
        Name of the metric.
    groups : dict of Split to list of Estimate
        Estimates on each data set, starting with the best estimate.
    relations : dict of (Split, str) to str
        Comparison of each method with the best method. The value is "best", "not told apart" (not
        significantly different), "worse", "untested" or "undefined".

    Examples
    --------
    >>> from abstain.evaluation.comparison import Estimate
    >>> from abstain.plots import ForestDisplay
    >>> estimate = Estimate(
    ...     "augrc", (), "", "msr", 0.04, 0.03, 0.05, 0.005, 0.95, "log scale", 900, 80, True
    ... )
    >>> ForestDisplay("augrc", {(): [estimate]}, {((), "msr"): "best"}).frame()["value"].to_list()
    [0.04]
    """

    metric: str
    groups: dict[Split, list[Estimate]]
    relations: dict[tuple[Split, str], RelationToBest]

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, metric: str | None = None, *, data: Split | None = None
    ) -> Self:
        """Create a display of the estimates of one metric.

        Parameters
        ----------
        comparison : Comparison
            Result of `compare`.
        metric : str, optional
            Name of the metric. The default is the first metric.
        data : tuple of (column, value), optional
            Data set. By default, all data sets are drawn, one below the other.

        Returns
        -------
        ForestDisplay
            Display of the data. The method `plot` draws the figure.
        """
        name = formatting.check_comparison(comparison).metric_or_first(metric)
        splits = comparison.data if data is None else [comparison.data_or_only(data)]
        groups: dict[Split, list[Estimate]] = {}
        relations: dict[tuple[Split, str], RelationToBest] = {}
        for split in splits:
            groups[split] = sort_best_first(comparison.estimates_of(name, split))
            stands = comparison.relations_to_best(name, split)
            relations |= {(split, method): stand for method, stand in stands.items()}
        return cls(name, groups, relations)

    @property
    def title(self) -> str:
        """Title of the figure."""
        metric, rows = formatting.metric_title(self.metric), self._rows()
        level = formatting.format_percent(rows[0].level) if rows else ""
        is_single = bool(rows) and not self._has_headings()
        data_suffix = formatting.data_set_suffix(rows[0].data) if is_single else ""
        return f"{metric} with {level} intervals{data_suffix}"

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per estimate."""
        import polars as pl

        rows: list[dict[str, Any]] = []
        for e in self._rows():
            row = {"method": e.method, "value": e.value, "low": e.low, "high": e.high}
            relation = self.relations[e.data, e.method]
            rows.append({**dict(e.data), **row, "against_best": relation, "note": e.note})
        return pl.DataFrame(rows, infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw the estimates of each data set.

        Several data sets have headings.
        """
        rows: dict[float, Estimate] = {}
        y = 0.0
        for split, estimates in self.groups.items():
            if self._has_headings():
                style = {"fontweight": "bold", "va": "center", "fontsize": 9}
                across = axes.get_yaxis_transform()
                draw_text(axes, 0.0, y, split_name(split), transform=across, **style)
                y += 1.0
            self._draw_best(axes, estimates, y)
            rows |= {y + i: estimate for i, estimate in enumerate(estimates)}
            y += len(estimates) + 0.4
        self._draw_rows(axes, rows, kwargs)
        hide_frame(axes)
        label_by_method = unique_labels([e.method for e in rows.values()])
        names = [label_by_method[e.method] for e in rows.values()]
        set_many_tick_labels(axes, "y", names, list(rows))
        axes.set_ylim(y - 0.8, -0.7)
        is_lower_better = any(e.lower_is_better for e in rows.values())
        direction = "lower" if is_lower_better else "higher"
        metric = formatting.metric_title(self.metric)
        axes.set_xlabel(f"{metric} ({direction} is better)", parse_math=False)
        _limit_ticks(axes)

    def _draw_best(self, ax: "Axes", estimates: list[Estimate], y: float) -> None:
        """Draw a dotted line at the value of the best method on a data set."""
        n_defined = sum(not math.isnan(e.value) for e in estimates)
        y_bounds = [y - 0.45, y + n_defined - 0.55]
        style = {"color": LIGHT[0], "linestyle": (0, (1, 2)), "linewidth": 1.1, "zorder": 1}
        for e in estimates:
            if self.relations[e.data, e.method] == "best":
                draw_rule(ax, [e.value, e.value], y_bounds, **style)

    def _draw_rows(self, ax: "Axes", rows: dict[float, Estimate], kwargs: dict[str, Any]) -> None:
        """Draw the estimates at the given positions."""
        across = ax.get_yaxis_transform()
        positions_by_mark: dict[str, list[float]] = {}
        for y, estimate in rows.items():
            if math.isnan(estimate.value):
                note = f": {estimate.note}" if estimate.note else ""
                style: Style = {"color": MUTED, "style": "italic", "va": "center", "fontsize": 8}
                draw_text(ax, 0.02, y, f"undefined{note}"[:70], transform=across, **style)
                continue
            relation = self.relations[estimate.data, estimate.method]
            positions_by_mark.setdefault(relation if relation in _MARKS else "other", []).append(y)
        positions = [y for group in positions_by_mark.values() for y in group]
        n = len(positions)
        draw_rules(ax, [0.0] * n, [1.0] * n, positions, transform=across)
        for name, positions in positions_by_mark.items():
            values = np.array([rows[y].value for y in positions])
            low = np.array([rows[y].low for y in positions])
            high = np.array([rows[y].high for y in positions])
            # A value at the bound of its range can exceed its interval by a rounding error.
            error_bars = np.maximum([values - low, high - values], 0)
            style = {**_MARKS[name], "markersize": 5.5, "linewidth": 1.6}
            style |= {"capsize": 0, "linestyle": "none", **kwargs}
            ax.errorbar(values, positions, xerr=error_bars, **style)

    def _has_headings(self) -> bool:
        """Return whether each data set has a heading."""
        return len(self.groups) > 1

    def _rows(self) -> list[Estimate]:
        return [estimate for estimates in self.groups.values() for estimate in estimates]

    def _size(self) -> tuple[float, float]:
        heading_rows = 1.4 * len(self.groups) if self._has_headings() else 0
        names = label_width(e.method for e in self._rows())
        return 4.4 + names, 1.2 + 0.27 * (len(self._rows()) + heading_rows)


def _limit_ticks(ax: "Axes") -> None:
    """Limit the number of ticks on the value axis, so that labels do not overlap."""
    low, high = ax.get_xlim()
    for steps in range(_MAX_TICKS, 0, -1):
        ax.locator_params(axis="x", nbins=steps, min_n_ticks=2)
        if sum(low <= tick <= high for tick in ax.get_xticks()) <= _MAX_TICKS:
            break
    ax.ticklabel_format(axis="x", style="sci", scilimits=(-4, 4), useOffset=False)
    ax.xaxis.get_offset_text().set_color(MUTED)
