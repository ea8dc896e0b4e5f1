"""Figures of rank probabilities, and of rankings by two metrics."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abstain.errors import InputError
from abstain.evaluation.comparison import Agreement, Comparison, Standing
from abstain.plots import formatting
from abstain.plots._panels import Panels, grid_shape, name_panel, split_axes
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
from abstain.plots.style import INK, LIGHT, MUTED
from abstain.typing import Split

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Radius of a circle with probability 1, in ranks; neighboring circles do not touch.
_MAX_RADIUS = 0.44

#: With more circles, radii are rounded to multiples of the step.
_MAX_EXACT_RADII, _RADIUS_STEP = 300, 0.005


@dataclass(eq=False)
class RankBlobDisplay(Titled):
    """Probability of each rank for each method, as the area of a circle.

    The cross is the mean rank, and the line is the central range of the ranks, both over simulated
    studies of this size if the estimates were the true values. Over all data sets, the rank is that
    of the aggregate, so its mean differs from the mean of the ranks on the data sets.

    `plot` passes additional options to ``matplotlib.collections.EllipseCollection``, for the
    circles of one size (facecolor, alpha).

    Attributes
    ----------
    standings : tuple of Standing
        Ranks of the methods, the best first.
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
            Name of the metric; the default is the first metric.
        data : tuple of (column, value), optional
            Data set; the default is the only one, or all data sets together.
        source : str, optional
            Method for the rank probabilities; the default is that of the first standing.

        Returns
        -------
        RankBlobDisplay
            Display that is not drawn yet; call `plot`.
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
        k, count = self._n_ranks(), len(self.standings)
        draw_rules(axes, [0.5] * count, [k + 0.5] * count, range(count))
        ranked = {y: s for y, s in enumerate(self.standings) if not math.isnan(s.mean_rank)}
        for y in sorted(set(range(count)) - set(ranked)):
            text_style = {"color": MUTED, "fontsize": 8, "style": "italic", "va": "center"}
            draw_text(axes, 0.5, y, "no rank", **text_style)
        self._draw_blobs(axes, ranked, kwargs)
        line: dict[str, Any] = {"color": INK, "linewidth": 1.4, "zorder": 3}
        standings = list(ranked.values())
        bounds = [s.rank_low for s in standings], [s.rank_high for s in standings]
        draw_rules(axes, *bounds, list(ranked), **line)
        line |= {"marker": "x", "markersize": 6, "markeredgewidth": 1.6, "linestyle": "none"}
        axes.plot([_mean_drawn_rank(s) for s in standings], list(ranked), **line)
        axes.set(xlim=(0.4, k + 0.6), ylim=(count - 0.4, -0.6), aspect="equal")
        hide_frame(axes)
        label_by_method = unique_labels([s.method for s in self.standings])
        names = [label_by_method[s.method] for s in self.standings]
        set_many_tick_labels(axes, "y", names, range(len(names)))
        ranks = range(1, k + 1)
        set_many_tick_labels(axes, "x", [str(rank) for rank in ranks], ranks, color=MUTED)
        axes.set_xlabel("Rank (1 is best)")

    def _draw_blobs(self, ax: "Axes", ranked: dict[int, Standing], kwargs: dict[str, Any]) -> None:
        """Draw the circles, grouped by size because there can be thousands."""
        from matplotlib.collections import EllipseCollection

        blobs = [
            (x, y, c)
            for y, s in ranked.items()
            for x, c in enumerate(s.rank_probabilities, 1)
            if c > 0
        ]
        blob_array = np.array(blobs).reshape(-1, 3)
        radii = _MAX_RADIUS * np.sqrt(blob_array[:, 2])
        if radii.size > _MAX_EXACT_RADII:
            radii = _RADIUS_STEP * np.maximum(np.rint(radii / _RADIUS_STEP), 1)
        style = {"facecolor": LIGHT[0], "edgecolor": "none", "alpha": 0.45, "zorder": 2, **kwargs}
        # All circles are inside the axes, and clipping would increase the size of the file.
        style = {"clip_on": False, **style}
        for radius in np.unique(radii):
            diameter, offsets = [2 * radius], blob_array[radii == radius, :2]
            positions: dict[str, Any] = {
                "units": "xy",
                "offsets": offsets,
                "offset_transform": ax.transData,
            }
            ax.add_collection(
                EllipseCollection(diameter, diameter, [0], **positions, **style), autolim=False
            )

    def _n_ranks(self) -> int:
        return max((len(s.rank_probabilities) for s in self.standings), default=1)

    def _size(self) -> tuple[float, float]:
        cell = 0.4 if len(self.standings) <= 10 else 0.3
        names = label_width(s.method for s in self.standings)
        return max(0.8 + names + cell * self._n_ranks(), 4.2), 1.4 + cell * len(self.standings)


def _mean_drawn_rank(standing: Standing) -> float:
    """Return the mean of the plotted rank probabilities.

    Over all data sets, `mean_rank` is another quantity: the mean of the ranks on the data sets.
    """
    if standing.data is not None or not standing.rank_probabilities:
        return standing.mean_rank
    total = sum(rank * chance for rank, chance in enumerate(standing.rank_probabilities, 1))
    return total / (sum(standing.rank_probabilities) or math.nan)


@dataclass(eq=False)
class RankingChangeDisplay(Titled):
    """Rankings by two metrics, at the left and at the right, connected by lines.

    Lines are orange if the second metric ranks a method worse, and blue and dashed if it ranks the
    method better. Methods without a rank are omitted.

    `plot` passes additional options to each call of ``Axes.plot``.

    Attributes
    ----------
    first, second : str
        The metrics.
    ranks : dict of str to (float, float)
        Ranks of each method by the two metrics; tied methods have the mean of their ranks.
    data : tuple of (column, value), or None
        Data set; None for all data sets together.
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
            Names of the metrics; the default is the first two.
        data : tuple of (column, value), optional
            Data set; the default is the only one, or all data sets together.

        Returns
        -------
        RankingChangeDisplay
            Display that is not drawn yet; call `plot`.
        """
        first_metric = formatting.check_comparison(comparison).metric_or_first(first, "first")
        other_metrics = [m for m in comparison.metrics if m != first_metric]
        second_metric = comparison.metric_or_first(
            other_metrics[0] if second is None and other_metrics else second
        )
        split = comparison.data_or_all(data)
        left, right = (
            {s.method: s.rank for s in comparison.standings_of(metric, split)}
            for metric in (first_metric, second_metric)
        )
        ranks = {method: (rank, right[method]) for method, rank in left.items() if method in right}
        return cls(
            first_metric,
            second_metric,
            ranks,
            split,
            _find_agreement(comparison, first_metric, second_metric, split),
        )

    @property
    def title(self) -> str:
        """Title of the figure."""
        names = f"{formatting.metric_title(self.first)} and {formatting.metric_title(self.second)}"
        return f"Ranks by {names}{formatting.data_set_suffix(self.data)}{self._tau()}"

    def _tau(self) -> str:
        if self.agreement is None or math.isnan(self.agreement.tau):
            return ""
        a = self.agreement
        if math.isnan(a.low):
            return f"\n(Kendall's tau {a.tau:.2f})"
        interval = f"{a.low:.2f} to {a.high:.2f}"
        return (
            f"\n(Kendall's tau {a.tau:.2f}; {interval} in studies of this size, "
            f"{formatting.SIMULATION_ASSUMPTION})"
        )

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per method."""
        import polars as pl

        rows = [(method, *ranks) for method, ranks in self.ranks.items()]
        columns = ["method", f"rank_{self.first}", f"rank_{self.second}"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        left, right = self._positions()
        label_by_method = unique_labels(list(self.ranks))
        for method, y in left.items():
            style = {"marker": "o", "markersize": 5, **_line_style(*self.ranks[method]), **kwargs}
            axes.plot([0, 1], [y, right[method]], **style)
        for changed in (False, True):
            ranks_by_method = {
                m: r for m, r in self.ranks.items() if m in left and (r[0] != r[1]) == changed
            }
            bold = {"fontweight": "bold" if changed else "normal", "va": "center"}
            before = {
                f"{label_by_method[m]}  {r[0]:g}": (-0.06, left[m])
                for m, r in ranks_by_method.items()
            }
            after = {
                f"{r[1]:g}  {label_by_method[m]}": (1.06, right[m])
                for m, r in ranks_by_method.items()
            }
            draw_texts(axes, before, ha="right", **bold)
            draw_texts(axes, after, **bold)
        for x, metric in enumerate((self.first, self.second)):
            name = formatting.metric_title(metric)
            draw_text(axes, x, -0.9, name, ha="center", color=MUTED)
        axes.set(xlim=(-0.1, 1.1), ylim=(max(len(left), 1) - 0.4, -1.3), xticks=[], yticks=[])
        hide_frame(axes)

    def _positions(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the positions of the methods on both sides; ties cross few lines."""
        ranked = [m for m, ranks in self.ranks.items() if not any(map(math.isnan, ranks))]
        ranks = self.ranks
        left = sorted(ranked, key=lambda m: ranks[m])
        right = sorted(ranked, key=lambda m: (ranks[m][1], ranks[m][0]))
        return {m: i for i, m in enumerate(left)}, {m: i for i, m in enumerate(right)}

    def _size(self) -> tuple[float, float]:
        return _ranking_size(self.ranks)


@dataclass(eq=False)
class RankingChangesDisplay(Panels):
    """Rankings by two metrics in several studies, one panel per study.

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
        """Check that there is something to plot."""
        if not self.rankings:
            raise InputError("`rankings` must hold at least one ranking; got none")

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per method and panel."""
        import polars as pl

        return pl.concat(
            ranking.frame().select(pl.lit(name).alias("panel"), pl.all())
            for name, ranking in self.rankings.items()
        )

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        panel_axes = split_axes(
            axes, len(self.rankings), share_x=False, share_y=False, max_columns=2
        )
        self.ax_ = panel_axes[0]
        for (name, ranking), ax in zip(self.rankings.items(), panel_axes, strict=True):
            ranking.plot(ax, title=False, **kwargs)
            name_panel(ax, name)

    def _size(self) -> tuple[float, float]:
        rows, columns = grid_shape(len(self.rankings), 2)
        sizes = [_ranking_size(ranking.ranks) for ranking in self.rankings.values()]
        return columns * max(w for w, _ in sizes), 0.4 + rows * max(h for _, h in sizes)


def _ranking_size(ranks: Mapping[str, object]) -> tuple[float, float]:
    """Return the width and height of a figure of two rankings, in inches."""
    return 3.4 + 2 * label_width(ranks), 1.3 + 0.29 * max(len(ranks), 3)


def _find_agreement(
    comparison: Comparison, first_metric: str, second_metric: str, data: Split | None
) -> Agreement | None:
    return next(
        (
            a
            for a in comparison.agreements
            if {a.first, a.second} == {first_metric, second_metric} and a.data == data
        ),
        None,
    )


def _line_style(before: float, after: float) -> dict[str, Any]:
    if before == after:
        return {"color": MUTED, "linewidth": 1.0, "markerfacecolor": INK}
    worse = after > before
    return {
        "color": LIGHT[1] if worse else LIGHT[0],
        "linestyle": "-" if worse else (0, (4, 2)),
        "linewidth": 2.2,
        "zorder": 3,
    }
