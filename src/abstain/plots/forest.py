"""Estimates with their intervals, one row a method: the forest plot."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abstain.evaluation.comparison import Comparison, Estimate, RelationToBest, sort_best_first
from abstain.plots import formatting
from abstain.plots.drawable import Titled
from abstain.plots.labels import hide_frame, unique_labels, set_many_tick_labels, label_width, draw_rule, draw_rules, draw_text
from abstain.plots.style import INK, LIGHT, MUTED, PAPER
from abstain.tables import split_name
from abstain.typing import Split

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Filled as long as the method is not found worse than the best.
_MARKS: dict[RelationToBest, dict[str, Any]] = {
    "best": {"marker": "D", "color": LIGHT[0], "markerfacecolor": LIGHT[0]},
    "worse": {"marker": "o", "color": MUTED, "markerfacecolor": PAPER},
}
_OTHER = {"marker": "o", "color": INK, "markerfacecolor": INK}

#: Numbers on the axis of values.
_TICKS = 5


@dataclass(eq=False)
class ForestDisplay(Titled):
    """The metric of each method with its interval, the best first, data set by data set.

    A blue diamond marks the best of a data set and a dotted line its value. Filled dots are not
    told apart from it by the test of the comparison; hollow ones are found worse.

    `plot` passes its options on to the ``Axes.errorbar`` of each mark.

    Attributes
    ----------
    metric : str
        Name in the catalogue.
    groups : dict of Split to list of Estimate
        The rows of each data set, the best first.
    footing : dict of (Split, str) to str
        How each method stands to the best: "best", "not told apart", "worse", "untested" or
        "undefined".

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
    footing: dict[tuple[Split, str], RelationToBest]

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, metric: str | None = None, *, data: Split | None = None
    ) -> Self:
        """Take the estimates of one metric.

        Parameters
        ----------
        comparison : Comparison
            What `compare` returned.
        metric : str, optional
            By default the first.
        data : tuple of (column, value), optional
            One data set; by default all, one below the other.

        Returns
        -------
        ForestDisplay
            Call `plot` to draw it.
        """
        name = formatting.check_comparison(comparison).metric_or_first(metric)
        splits = comparison.data if data is None else [comparison.data_or_only(data)]
        groups: dict[Split, list[Estimate]] = {}
        footing: dict[tuple[Split, str], RelationToBest] = {}
        for split in splits:
            groups[split] = sort_best_first(comparison.estimates_of(name, split))
            stands = comparison.relations_to_best(name, split)
            footing |= {(split, method): stand for method, stand in stands.items()}
        return cls(name, groups, footing)

    @property
    def title(self) -> str:
        """What the figure shows, in words."""
        rows = self._rows()
        level = formatting.format_percent(rows[0].level) if rows else ""
        where = formatting.data_set_suffix(rows[0].data) if rows and not self._headed() else ""
        return f"{formatting.metric_title(self.metric)} with {level} intervals{where}"

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row an estimate."""
        import polars as pl

        rows = [
            {
                **dict(e.data),
                "method": e.method,
                "value": e.value,
                "low": e.low,
                "high": e.high,
                "against_best": self.footing[e.data, e.method],
                "note": e.note,
            }
            for e in self._rows()
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        written = unique_labels([e.method for e in self._rows()])
        places, names, y = [], [], 0.0
        for split, estimates in self.groups.items():
            if self._headed():
                at = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 9}
                draw_text(axes, 0.0, y, split_name(split), fontweight="bold", **at)
                y += 1.0
            self._draw_best(axes, estimates, y)
            for estimate in estimates:
                places.append(y)
                names.append(written[estimate.method])
                y += 1.0
            y += 0.4
        self._draw_rows(axes, dict(zip(places, self._rows(), strict=True)), kwargs)
        hide_frame(axes)
        set_many_tick_labels(axes, "y", names, places)
        axes.set_ylim(y - 0.8, -0.7)
        self._label(axes)

    def _draw_rows(self, ax: "Axes", rows: dict[float, Estimate], kwargs: dict[str, Any]) -> None:
        """Draw the estimates by their places, those of one mark together."""
        across = ax.get_yaxis_transform()
        marked: dict[RelationToBest, list[float]] = {}
        for y, estimate in rows.items():
            if math.isnan(estimate.value):
                note = f": {estimate.note}" if estimate.note else ""
                said = {"color": MUTED, "style": "italic", "va": "center", "fontsize": 8}
                draw_text(ax, 0.02, y, f"undefined{note}"[:70], transform=across, **said)
                continue
            mark = self.footing[estimate.data, estimate.method]
            marked.setdefault(mark if mark in _MARKS else "untested", []).append(y)
        drawn = [y for places in marked.values() for y in places]
        draw_rules(ax, [0.0] * len(drawn), [1.0] * len(drawn), drawn, transform=across)
        for mark, places in marked.items():
            own = [rows[y] for y in places]
            # A value at the end of its range may lie a rounding beyond its own interval.
            ends = np.maximum([[e.value - e.low for e in own], [e.high - e.value for e in own]], 0)
            style = {**_MARKS.get(mark, _OTHER), "markersize": 5.5, "linewidth": 1.6, "capsize": 0}
            values = [e.value for e in own]
            ax.errorbar(values, places, xerr=ends, linestyle="none", **style | kwargs)

    def _draw_best(self, ax: "Axes", estimates: list[Estimate], y: float) -> None:
        best = next((e for e in estimates if self.footing[e.data, e.method] == "best"), None)
        if best is not None:
            dots = {"color": LIGHT[0], "linestyle": (0, (1, 2)), "linewidth": 1.1}
            known = sum(not math.isnan(e.value) for e in estimates)
            ends = [y - 0.45, y + known - 0.55]
            draw_rule(ax, [best.value, best.value], ends, **{**dots, "zorder": 1})

    def _label(self, ax: "Axes") -> None:
        rows = self._rows()
        better = "lower" if rows and rows[0].lower_is_better else "higher"
        ax.set_xlabel(
            f"{formatting.metric_title(self.metric)} ({better} is better)", parse_math=False
        )
        _write_numbers(ax)

    def _headed(self) -> bool:
        """Tell whether each group of rows needs a head of its own."""
        return len(self.groups) > 1

    def _rows(self) -> list[Estimate]:
        return [estimate for estimates in self.groups.values() for estimate in estimates]

    def _size(self) -> tuple[float, float]:
        heads = 1.4 * len(self.groups) if self._headed() else 0
        names = label_width(e.method for e in self._rows())
        return 4.4 + names, 1.2 + 0.27 * (len(self._rows()) + heads)


def _write_numbers(ax: "Axes") -> None:
    """Write few and short numbers on the axis of values, so that no two run together."""
    low, high = ax.get_xlim()
    for steps in range(_TICKS, 0, -1):
        ax.locator_params(axis="x", nbins=steps, min_n_ticks=2)
        if sum(low <= tick <= high for tick in ax.get_xticks()) <= _TICKS:
            break
    ax.ticklabel_format(axis="x", style="sci", scilimits=(-4, 4), useOffset=False)
    ax.xaxis.get_offset_text().set_color(MUTED)
