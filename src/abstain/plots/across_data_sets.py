"""Figures of mean ranks and performance profiles over several data sets or runs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from abstain.errors import InputError
from abstain.evaluation.comparison import Comparison, MeanRanks, Profile
from abstain.plots import formatting
from abstain.plots.drawable import Titled
from abstain.plots.labels import (
    add_curve_legend,
    draw_text,
    hide_frame,
    label_width,
    legend_height,
    unique_labels,
)
from abstain.plots.style import CURVE_ID, INK, LIGHT, MUTED, line_style, style_axes

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

# Vertical distance of rows of names, of bars, and of the names from the bars.
_ROW_STEP, _BAR_STEP, _NAME_GAP = 1.0, 0.5, 0.9


@dataclass(eq=False)
class CriticalDifferenceDisplay(Titled):
    """Mean ranks of methods. Bars connect methods that do not differ significantly.

    `plot` passes additional options to ``Axes.plot`` for each bar (color, linewidth).

    Attributes
    ----------
    mean_ranks : MeanRanks
        Mean ranks, Friedman's test, and the critical difference of Nemenyi's test.
    ranking_unit : str
        Units on which the methods are ranked, which are "data sets" or "runs".

    Examples
    --------
    >>> from abstain.evaluation.comparison import MeanRanks
    >>> from abstain.plots import CriticalDifferenceDisplay
    >>> across = MeanRanks(
    ...     "augrc",
    ...     9,
    ...     ("pe", "msr", "mls"),
    ...     (1.2, 1.9, 2.9),
    ...     12.0,
    ...     0.002,
    ...     1.1,
    ...     (("pe", "msr"), ("msr", "mls")),
    ...     0.95,
    ... )
    >>> CriticalDifferenceDisplay(across).frame().rows()
    [('pe', 1.2, '1'), ('msr', 1.9, '1, 2'), ('mls', 2.9, '2')]
    """

    mean_ranks: MeanRanks
    ranking_unit: str = "data sets or runs"

    @classmethod
    def from_comparison(cls, comparison: Comparison, metric: str | None = None) -> Self:
        """Create a display of the mean ranks over all data sets by one metric.

        Parameters
        ----------
        comparison : Comparison
            Result of `compare` for several data sets or runs.
        metric : str, optional
            Name of the metric. The default is the first metric.

        Returns
        -------
        CriticalDifferenceDisplay
            Display of the data. The method `plot` draws the figure.

        Raises
        ------
        InputError
            If the comparison has only one data set and one run.
        """
        name = formatting.check_comparison(comparison).metric_or_first(metric)
        across = comparison.mean_ranks_of(name)
        if across is None:
            raise InputError(
                "a critical difference needs several data sets or runs; the comparison has one "
                "of each, for which SignificanceMapDisplay shows the differences"
            )
        return cls(across, comparison.block_kind)

    @property
    def title(self) -> str:
        """Title of the figure."""
        a = self.mean_ranks
        return (
            f"Mean ranks by {formatting.metric_title(a.metric)} over {a.blocks} "
            f"{self.ranking_unit}\n(Friedman test: {formatting.format_p_equation(a.p_value)}; bars "
            "connect methods that do not differ significantly by Nemenyi's test)"
        )

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with methods in order of mean rank."""
        import polars as pl

        a = self.mean_ranks
        groups = [
            ", ".join(str(i) for i, clique in enumerate(a.cliques, 1) if method in clique)
            for method in a.methods
        ]
        columns = {"method": a.methods, "mean_rank": a.mean_ranks}
        return pl.DataFrame({**columns, "not_significantly_different": groups})

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw the axis of ranks, the critical difference, the bars and the names."""
        k = max(len(self.mean_ranks.methods), 2)
        axes.plot([1, k], [0, 0], color=INK, linewidth=1.2)
        for rank in range(1, k + 1):
            axes.plot([rank, rank], [0, -0.22], color=INK, linewidth=1.0)
            style = {"ha": "center", "va": "bottom", "fontsize": 8, "color": MUTED}
            draw_text(axes, rank, -0.35, str(rank), **style)
        self._draw_critical_difference(axes, k)
        top = self._draw_cliques(axes, kwargs)
        bottom = self._draw_names(axes, k, top)
        axes.set(xlim=(0.9, k + 0.1), ylim=(bottom + 0.4, -2.6), xticks=[], yticks=[])
        hide_frame(axes)

    def _draw_critical_difference(self, ax: "Axes", k: int) -> None:
        """Draw the critical difference as a bar above the axis."""
        distance = self.mean_ranks.critical_difference
        if not distance > 0:  # The condition is also true for NaN.
            return
        end, y = min(1 + distance, k), -1.75
        ax.plot([1, end], [y, y], color=INK, linewidth=1.6)
        for x in (1, end):
            ax.plot([x, x], [y - 0.15, y + 0.15], color=INK, linewidth=1.6)
        suffix = " exceeds the axis, so no difference is significant" if 1 + distance > k else ""
        draw_text(ax, 1, y - 0.25, f"CD {distance:.2f}{suffix}", fontsize=8, va="bottom")

    def _draw_cliques(self, ax: "Axes", kwargs: dict[str, Any]) -> float:
        """Draw the bars that connect methods, and return the y coordinate below the bars.

        Bars that would overlap are drawn at different heights.
        """
        rank_by_method = dict(zip(self.mean_ranks.methods, self.mean_ranks.mean_ranks, strict=True))
        bars = []
        for methods in self.mean_ranks.cliques:
            ranks = [rank_by_method[method] for method in methods]
            bars.append((min(ranks), max(ranks)))
        style = {"color": LIGHT[0], "linewidth": 4.5, "solid_capstyle": "round", "zorder": 3}
        # The right end of the last bar at each height.
        last_ends: list[float] = []
        for low, high in sorted(bars):
            free_levels = [i for i, end in enumerate(last_ends) if low > end + 0.15]
            if free_levels:
                level = free_levels[0]
                last_ends[level] = high
            else:
                level = len(last_ends)
                last_ends.append(high)
            y = 0.55 + _BAR_STEP * level
            ax.plot([low - 0.03, high + 0.03], [y, y], **{**style, **kwargs})
        return 0.55 + _BAR_STEP * len(last_ends)

    def _draw_names(self, ax: "Axes", k: int, top: float) -> float:
        """Draw the names of the better half of the methods at the left, and others at the right."""
        methods = self.mean_ranks.methods
        label_by_method = unique_labels(methods)
        n_left = (len(methods) + 1) // 2
        for i, rank in enumerate(self.mean_ranks.mean_ranks):
            name = label_by_method[methods[i]]
            if i < n_left:
                row = i
                edge = 0.9
                text = f"{name}  {rank:.2f} "
                align = "right"
            else:
                row = len(methods) - 1 - i
                edge = k + 0.1
                text = f" {rank:.2f}  {name}"
                align = "left"
            y = top + _NAME_GAP + _ROW_STEP * row
            ax.plot([rank, rank, edge], [0, y, y], color=MUTED, linewidth=0.9, zorder=1)
            draw_text(ax, edge, y, text, ha=align, va="center", fontsize=9)
        return top + _NAME_GAP + _ROW_STEP * (n_left - 1)

    def _size(self) -> tuple[float, float]:
        k = len(self.mean_ranks.methods)
        rows = 3.4 + (k + 1) // 2 + _BAR_STEP * len(self.mean_ranks.cliques)
        return 5.4 + 2 * label_width(self.mean_ranks.methods), 0.7 + 0.27 * rows


@dataclass(eq=False)
class PerformanceProfileDisplay(Titled):
    """Share of runs and data sets on which the metric is at least as good as a threshold.

    If the line of a method is above that of another method at each threshold, the upper method is
    better at every quantile.

    `plot` passes additional options to each call of ``Axes.plot`` of a profile (color, linewidth).

    Attributes
    ----------
    profiles : tuple of Profile
        Profile of each method, for one metric.
    unit : str
        Units that the shares count, which are "runs", "data sets" or a combination.

    Examples
    --------
    >>> from abstain.evaluation.comparison import Profile
    >>> from abstain.plots import PerformanceProfileDisplay
    >>> profile = Profile("augrc", "pe", (0.01, 0.02), (0.4, 1.0), (0.2, 0.8), (0.6, 1.0))
    >>> PerformanceProfileDisplay((profile,)).frame()["share"].to_list()
    [0.4, 1.0]
    """

    profiles: tuple[Profile, ...]
    unit: str = "runs and data sets"

    @classmethod
    def from_comparison(cls, comparison: Comparison, metric: str | None = None) -> Self:
        """Create a display of the performance profiles for one metric.

        Parameters
        ----------
        comparison : Comparison
            Result of `compare` for several data sets or runs.
        metric : str, optional
            Name of the metric. The default is the first metric.

        Returns
        -------
        PerformanceProfileDisplay
            Display of the data. The method `plot` draws the figure.

        Raises
        ------
        InputError
            If the comparison has only one data set and one run.
        """
        name = formatting.check_comparison(comparison).metric_or_first(metric)
        profiles = tuple(p for p in comparison.profiles if p.metric == name)
        if not profiles:
            raise InputError(
                "a performance profile needs several data sets or runs; the comparison has none"
            )
        return cls(profiles, comparison.aggregated_over)

    @property
    def title(self) -> str:
        """Title of the figure."""
        metric = formatting.metric_title(self.profiles[0].metric)
        return f"Share of {self.unit} at least as good as a threshold of {metric}"

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table. The first column is the method."""
        import polars as pl

        columns = ["method", "threshold", "share", "low", "high"]
        rows = [
            (p.method, *map(float, point))
            for p in self.profiles
            for point in zip(p.threshold, p.share, p.low, p.high, strict=True)
        ]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw the profile of each method with its band."""
        label_by_method = unique_labels([p.method for p in self.profiles])
        for index, profile in enumerate(self.profiles):
            label = label_by_method[profile.method]
            style = {**line_style(index), "label": label, **kwargs, "gid": CURVE_ID}
            band = {"color": style["color"], "alpha": 0.12, "linewidth": 0}
            axes.fill_between(profile.threshold, profile.low, profile.high, **band)
            axes.plot(profile.threshold, profile.share, **style)
        metric = formatting.metric_title(self.profiles[0].metric)
        axes.set_xlabel(f"Threshold of {metric}", parse_math=False)
        axes.set(ylabel="Share at least as good", ylim=(-0.02, 1.02))
        style_axes(axes)
        add_curve_legend(axes)

    def _size(self) -> tuple[float, float]:
        width, height = super()._size()
        return width, height + legend_height((p.method for p in self.profiles), width)
