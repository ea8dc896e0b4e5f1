"""Figures of rank probabilities, and of rankings by two metrics."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abstain.errors import InputError
from abstain.evaluation.comparison import Agreement, Comparison, Standing
from abstain.plots import formatting
from abstain.plots._panels import DisplayGrid
from abstain.plots.drawable import Titled
from abstain.plots.labels import (
    draw_rules,
    draw_text,
    draw_texts,
    hide_frame,
    label_width,
    set_many_tick_labels,
    unique_labels,
)
from abstain.plots.style import INK, LIGHT, MUTED, Style
from abstain.typing import Split

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Radius of a circle with probability 1, in ranks. Neighboring circles do not touch.
_MAX_RADIUS = 0.44

#: Maximum number of circles with exact radii. With more circles, radii are rounded to multiples of
#: the step.
_MAX_EXACT_RADII, _RADIUS_STEP = 300, 0.005


@dataclass(eq=False)
class RankBlobDisplay(Titled):
    """Rank probabilities of methods, drawn as circles whose area is the probability.

    A cross marks the mean rank of each method, and a line marks the central range of its ranks. The
    ranks are simulated for new studies of the same size, under the assumption that the estimates
    are the true values.

    Over all data sets, methods are ranked by the aggregate of the metric over the data sets. The
    mean of this rank is not the same as the mean of the ranks on single data sets.

    `plot` passes additional options to ``matplotlib.collections.EllipseCollection``, for the
    circles of one size (facecolor, alpha).

    Attributes
    ----------
    standings : tuple of Standing
        Ranks of the methods, starting with the best method.
    level : float
        Level of the central range.
    is_adjusted : bool
        Whether the p-values of the comparison are adjusted for multiple comparisons.

    Examples
    --------
    >>> from abstain.evaluation.comparison import Standing
    >>> from abstain.plots import RankBlobDisplay
    >>> one = Standing("augrc", (), "pe", 0.03, 1.0, 1.2, 1.0, 2.0, (0.8, 0.2), "bootstrap")
    >>> two = Standing("augrc", (), "msr", 0.04, 2.0, 1.8, 1.0, 2.0, (0.2, 0.8), "bootstrap")
    >>> RankBlobDisplay((one, two), 0.95).frame()["rank_1"].to_list()
    [0.8, 0.2]
    """

    standings: tuple[Standing, ...]
    level: float
    is_adjusted: bool = True

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        metric: str | None = None,
        *,
        data: Split | None = None,
        source: str | None = None,
    ) -> Self:
        """Create a display of the ranks by one metric.

        Parameters
        ----------
        comparison : Comparison
            Result of `compare`.
        metric : str, optional
            Name of the metric. The default is the first metric.
        data : tuple of (column, value), optional
            Data set. By default, the display covers the only data set, or all data sets together.
        source : str, optional
            How the rank probabilities are computed, such as "bootstrap". The default is the source
            of the ranks of the best method.

        Returns
        -------
        RankBlobDisplay
            Display of the data. The method `plot` draws the figure.
        """
        name = formatting.check_comparison(comparison).metric_or_first(metric)
        split = comparison.data_or_all(data)
        standings = comparison.standings_of(name, split, source)
        return cls(tuple(standings), comparison.level, comparison.is_adjusted)

    @property
    def title(self) -> str:
        """Title of the figure."""
        if not self.standings:
            return "No ranks"
        first = self.standings[0]
        metric = formatting.metric_title(first.metric)
        return (
            f"Probability of each rank by {metric}{formatting.data_set_suffix(first.data)}\n"
            f"({first.source}; × mean, line: {formatting.format_percent(self.level)} range in "
            f"studies of this size, {formatting.SIMULATION_ASSUMPTION}; "
            f"{formatting.ranks_note(is_adjusted=self.is_adjusted)})"
        )

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per method."""
        import polars as pl

        rows = [
            {
                "method": s.method,
                "rank": s.rank,
                "mean_rank": _mean_drawn_rank(s),
                "rank_low": s.rank_low,
                "rank_high": s.rank_high,
                **{f"rank_{i}": chance for i, chance in enumerate(s.rank_probabilities, 1)},
            }
            for s in self.standings
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw the circles, the mean rank and the range of the ranks of each method."""
        k, count = self._n_ranks(), len(self.standings)
        draw_rules(axes, [0.5] * count, [k + 0.5] * count, range(count))
        ranked = {y: s for y, s in enumerate(self.standings) if not math.isnan(s.mean_rank)}
        for y in range(count):
            if y not in ranked:
                style = {"color": MUTED, "fontsize": 8, "style": "italic", "va": "center"}
                draw_text(axes, 0.5, y, "no rank", **style)
        self._draw_circles(axes, ranked, kwargs)
        rows, standings = list(ranked), list(ranked.values())
        line: Style = {"color": INK, "linewidth": 1.4, "zorder": 3}
        low, high = [s.rank_low for s in standings], [s.rank_high for s in standings]
        draw_rules(axes, low, high, rows, **line)
        cross: Style = {"marker": "x", "markersize": 6, "markeredgewidth": 1.6, "linestyle": "none"}
        axes.plot([_mean_drawn_rank(s) for s in standings], rows, **line, **cross)
        axes.set(xlim=(0.4, k + 0.6), ylim=(count - 0.4, -0.6), aspect="equal")
        hide_frame(axes)
        label_by_method = unique_labels([s.method for s in self.standings])
        names = [label_by_method[s.method] for s in self.standings]
        set_many_tick_labels(axes, "y", names, range(count))
        ranks = range(1, k + 1)
        set_many_tick_labels(axes, "x", [str(rank) for rank in ranks], ranks, color=MUTED)
        axes.set_xlabel("Rank (1 is best)")

    def _draw_circles(
        self, ax: "Axes", ranked: dict[int, Standing], kwargs: dict[str, Any]
    ) -> None:
        """Draw the circles of the rank probabilities.

        All circles of one size are a single artist, because there can be thousands of circles.
        """
        from matplotlib.collections import EllipseCollection

        circles = [
            (rank, y, probability)
            for y, s in ranked.items()
            for rank, probability in enumerate(s.rank_probabilities, 1)
            if probability > 0
        ]
        centers, areas = np.hsplit(np.array(circles).reshape(-1, 3), [2])
        radii = _MAX_RADIUS * np.sqrt(areas[:, 0])
        if radii.size > _MAX_EXACT_RADII:
            radii = _RADIUS_STEP * np.maximum(np.rint(radii / _RADIUS_STEP), 1)
        style: Style = {"facecolor": LIGHT[0], "edgecolor": "none", "alpha": 0.45, "zorder": 2}
        # All circles are inside the axes, and clipping would increase the size of the file.
        style |= {"clip_on": False, "units": "xy", "offset_transform": ax.transData, **kwargs}
        for radius in np.unique(radii):
            style["offsets"] = centers[radii == radius]
            collection = EllipseCollection([2 * radius], [2 * radius], [0], **style)
            ax.add_collection(collection, autolim=False)

    def _n_ranks(self) -> int:
        return max((len(s.rank_probabilities) for s in self.standings), default=1)

    def _size(self) -> tuple[float, float]:
        cell = 0.4 if len(self.standings) <= 10 else 0.3
        names = label_width(s.method for s in self.standings)
        return max(0.8 + names + cell * self._n_ranks(), 4.2), 1.4 + cell * len(self.standings)


def _mean_drawn_rank(standing: Standing) -> float:
    """Return the mean rank, computed from the plotted probabilities.

    Over all data sets, `mean_rank` is a different quantity: the mean of the ranks on the data sets.
    """
    if standing.data is not None or not standing.rank_probabilities:
        return standing.mean_rank
    total = sum(rank * chance for rank, chance in enumerate(standing.rank_probabilities, 1))
    return total / (sum(standing.rank_probabilities) or math.nan)


@dataclass(eq=False)
class RankingChangeDisplay(Titled):
    """Rankings of methods by two metrics, in which a line connects the two ranks of each method.

    The ranks by the first metric are at the left, and those by the second are at the right. A line
    is orange if the second metric ranks the method worse. A line is blue and dashed if the second
    metric ranks the method better. Methods without a rank are omitted.

    `plot` passes additional options to each call of ``Axes.plot``.

    Attributes
    ----------
    first, second : str
        The metrics.
    ranks : dict of str to (float, float)
        Ranks of each method by the two metrics. Tied methods have the mean of their ranks.
    data : tuple of (column, value), or None
        Data set, or None for all data sets together.
    agreement : Agreement or None
        Kendall's tau of the two rankings.

    Examples
    --------
    >>> from abstain.plots import RankingChangeDisplay
    >>> ranks = {"pe": (1.0, 2.0), "msr": (2.0, 1.0)}
    >>> RankingChangeDisplay("augrc", "aurc", ranks, (), None).frame().rows()
    [('pe', 1.0, 2.0), ('msr', 2.0, 1.0)]
    """

    first: str
    second: str
    ranks: dict[str, tuple[float, float]]
    data: Split | None
    agreement: Agreement | None

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        first: str | None = None,
        second: str | None = None,
        *,
        data: Split | None = None,
    ) -> Self:
        """Create a display of the rankings by two metrics.

        Parameters
        ----------
        comparison : Comparison
            Result of `compare`.
        first, second : str, optional
            Names of the metrics. The default is the first two metrics of the comparison.
        data : tuple of (column, value), optional
            Data set. By default, the display covers the only data set, or all data sets together.

        Returns
        -------
        RankingChangeDisplay
            Display of the data. The method `plot` draws the figure.
        """
        first = formatting.check_comparison(comparison).metric_or_first(first, "first")
        other_metrics = [m for m in comparison.metrics if m != first]
        if second is None and other_metrics:
            second = other_metrics[0]
        second = comparison.metric_or_first(second)
        split = comparison.data_or_all(data)
        first_ranks = {s.method: s.rank for s in comparison.standings_of(first, split)}
        second_ranks = {s.method: s.rank for s in comparison.standings_of(second, split)}
        ranks = {}
        for method, rank in first_ranks.items():
            if method in second_ranks:
                ranks[method] = (rank, second_ranks[method])
        agreement = None
        for candidate in comparison.agreements:
            has_both_metrics = {candidate.first, candidate.second} == {first, second}
            if has_both_metrics and candidate.data == split:
                agreement = candidate
                break
        return cls(first, second, ranks, split, agreement)

    @property
    def title(self) -> str:
        """Title of the figure."""
        names = f"{formatting.metric_title(self.first)} and {formatting.metric_title(self.second)}"
        title = f"Ranks by {names}{formatting.data_set_suffix(self.data)}"
        a = self.agreement
        if a is None or math.isnan(a.tau):
            return title
        if math.isnan(a.low):
            return f"{title}\n(Kendall's tau {a.tau:.2f})"
        return (
            f"{title}\n(Kendall's tau {a.tau:.2f}; {a.low:.2f} to {a.high:.2f} in studies of this "
            f"size, {formatting.SIMULATION_ASSUMPTION})"
        )

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per method."""
        import polars as pl

        rows = [(method, *ranks) for method, ranks in self.ranks.items()]
        columns = ["method", f"rank_{self.first}", f"rank_{self.second}"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw a line for each method, with its name and its rank at each end."""
        ranks = {m: both for m, both in self.ranks.items() if not any(map(math.isnan, both))}
        # Tied methods are sorted by the other metric, so that few lines cross.
        left = sorted(ranks, key=lambda m: ranks[m])
        right = sorted(ranks, key=lambda m: ranks[m][::-1])
        for y, method in enumerate(left):
            style = {"marker": "o", "markersize": 5, **_line_style(*ranks[method]), **kwargs}
            axes.plot([0, 1], [y, right.index(method)], **style)
        label_by_method = unique_labels(list(self.ranks))
        for weight, is_changed in (("normal", False), ("bold", True)):
            before, after = {}, {}
            for method, (rank_before, rank_after) in ranks.items():
                if (rank_before != rank_after) == is_changed:
                    name = label_by_method[method]
                    before[f"{name}  {rank_before:g}"] = (-0.06, left.index(method))
                    after[f"{rank_after:g}  {name}"] = (1.06, right.index(method))
            draw_texts(axes, before, ha="right", va="center", fontweight=weight)
            draw_texts(axes, after, va="center", fontweight=weight)
        for x, metric in enumerate((self.first, self.second)):
            draw_text(axes, x, -0.9, formatting.metric_title(metric), ha="center", color=MUTED)
        axes.set(xlim=(-0.1, 1.1), ylim=(max(len(left), 1) - 0.4, -1.3), xticks=[], yticks=[])
        hide_frame(axes)

    def _size(self) -> tuple[float, float]:
        return 3.4 + 2 * label_width(self.ranks), 1.3 + 0.29 * max(len(self.ranks), 3)


@dataclass(eq=False)
class RankingChangesDisplay(DisplayGrid):
    """Rankings by two metrics in several studies, with one panel per study.

    `plot` passes additional options as `RankingChangeDisplay` does.

    Attributes
    ----------
    rankings : dict of str to RankingChangeDisplay
        Displays by the title of their panel.
    title : str
        Title of the figure.

    Examples
    --------
    >>> from abstain.plots import RankingChangeDisplay, RankingChangesDisplay
    >>> one = RankingChangeDisplay("augrc", "aurc", {"pe": (1.0, 2.0)}, (), None)
    >>> RankingChangesDisplay({"iid": one}, "Rankings").frame().rows()
    [('iid', 'pe', 1.0, 2.0)]
    """

    rankings: dict[str, RankingChangeDisplay]
    title: str

    def __post_init__(self) -> None:
        """Check that there is at least one ranking."""
        if not self.rankings:
            raise InputError("`rankings` must hold at least one ranking; got none")

    @property
    def _displays(self) -> dict[str, RankingChangeDisplay]:
        return self.rankings


def _line_style(before: float, after: float) -> dict[str, Any]:
    """Return the line style of a method.

    The line is gray for equal ranks, dashed blue for a better second rank, and orange for a worse
    second rank.
    """
    if before == after:
        return {"color": MUTED, "linewidth": 1.0, "markerfacecolor": INK}
    if after > before:
        return {"color": LIGHT[1], "linestyle": "-", "linewidth": 2.2, "zorder": 3}
    return {"color": LIGHT[0], "linestyle": (0, (4, 2)), "linewidth": 2.2, "zorder": 3}
