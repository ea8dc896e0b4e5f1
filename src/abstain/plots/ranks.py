"""How firm a ranking is: how likely each method is at each rank, and two metrics' rankings."""

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
from abstain.plots.labels import hide_frame, unique_labels, set_many_tick_labels, label_width, draw_rules, draw_text, draw_texts
from abstain.plots.style import INK, LIGHT, MUTED
from abstain.typing import Split

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: The radius of a chance of 1, in ranks: neighboring blobs do not touch.
_RADIUS = 0.44

#: Of more blobs than this the radii are rounded to multiples of the step, which nobody sees.
_MANY, _STEP = 300, 0.005


@dataclass(eq=False)
class RankBlobDisplay(Titled):
    """A row for each method, a column for each rank, the area of a blob its chance.

    The cross marks the mean of the chances drawn and the line through it their central range,
    both over studies of this size if the values found were the true ones. Over all data sets the
    rank is that of the aggregate, whose mean is another than the mean rank over the data sets.

    `plot` passes its options on to every ``matplotlib.collections.EllipseCollection``, the blobs
    of one size (facecolor, alpha).

    Attributes
    ----------
    standings : tuple of Standing
        The best rank first.
    level : float
        Of the range.
    is_adjusted : bool
        Whether the p-values of the comparison are adjusted for the number of pairs.

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
        """Take the standings of one metric.

        Parameters
        ----------
        comparison : Comparison
            What `compare` returned.
        metric : str, optional
            By default the first.
        data : tuple of (column, value), optional
            The data set; by default the only one, or all together when there are several.
        source : str, optional
            How the chances were found; by default as in the first standing.

        Returns
        -------
        RankBlobDisplay
            Call `plot` to draw it.
        """
        name = formatting.check_comparison(comparison).metric_or_first(metric)
        split = comparison.data_or_all(data)
        found = comparison.standings_of(name, split, source)
        return cls(tuple(found), comparison.level, comparison.is_adjusted)

    @property
    def title(self) -> str:
        """What the figure shows, in words."""
        if not self.standings:
            return "No ranks"
        first = self.standings[0]
        metric = formatting.metric_title(first.metric)
        return (
            f"Chance of each rank by {metric}{formatting.data_set_suffix(first.data)}\n"
            f"({first.source}; × mean, line: {formatting.format_percent(self.level)} of ranks in "
            f"studies of this size, {formatting.SIMULATION_ASSUMPTION}; "
            f"{formatting.ranks_note(is_adjusted=self.is_adjusted)})"
        )

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row a method."""
        import polars as pl

        rows = [
            {
                "method": s.method,
                "rank": s.rank,
                "mean_rank": _mean(s),
                "rank_low": s.rank_low,
                "rank_high": s.rank_high,
                **{f"rank_{i}": chance for i, chance in enumerate(s.rank_probabilities, 1)},
            }
            for s in self.standings
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        k, count = self._ranks(), len(self.standings)
        draw_rules(axes, [0.5] * count, [k + 0.5] * count, range(count))
        ranked = {y: s for y, s in enumerate(self.standings) if not math.isnan(s.mean_rank)}
        for y in sorted(set(range(count)) - set(ranked)):
            said = {"color": MUTED, "fontsize": 8, "style": "italic", "va": "center"}
            draw_text(axes, 0.5, y, "no rank", **said)
        self._draw_blobs(axes, ranked, kwargs)
        line: dict[str, Any] = {"color": INK, "linewidth": 1.4, "zorder": 3}
        known = list(ranked.values())
        ends = [s.rank_low for s in known], [s.rank_high for s in known]
        draw_rules(axes, *ends, list(ranked), **line)
        line |= {"marker": "x", "markersize": 6, "markeredgewidth": 1.6, "linestyle": "none"}
        axes.plot([_mean(s) for s in known], list(ranked), **line)
        axes.set(xlim=(0.4, k + 0.6), ylim=(count - 0.4, -0.6), aspect="equal")
        hide_frame(axes)
        written = unique_labels([s.method for s in self.standings])
        names = [written[s.method] for s in self.standings]
        set_many_tick_labels(axes, "y", names, range(len(names)))
        ranks = range(1, k + 1)
        set_many_tick_labels(axes, "x", [str(rank) for rank in ranks], ranks, color=MUTED)
        axes.set_xlabel("Rank (1 is best)")

    def _draw_blobs(self, ax: "Axes", ranked: dict[int, Standing], kwargs: dict[str, Any]) -> None:
        """Draw the blobs of one size together: of a hundred methods there are thousands."""
        from matplotlib.collections import EllipseCollection

        blobs = [
            (x, y, c)
            for y, s in ranked.items()
            for x, c in enumerate(s.rank_probabilities, 1)
            if c > 0
        ]
        places = np.array(blobs).reshape(-1, 3)
        radii = _RADIUS * np.sqrt(places[:, 2])
        if radii.size > _MANY:
            radii = _STEP * np.maximum(np.rint(radii / _STEP), 1)
        style = {"facecolor": LIGHT[0], "edgecolor": "none", "alpha": 0.45, "zorder": 2, **kwargs}
        # None leaves the axes, and to clip each takes a third of the bytes of a figure.
        style = {"clip_on": False, **style}
        for radius in np.unique(radii):
            wide, at = [2 * radius], places[radii == radius, :2]
            around: dict[str, Any] = {
                "units": "xy",
                "offsets": at,
                "offset_transform": ax.transData,
            }
            ax.add_collection(EllipseCollection(wide, wide, [0], **around, **style), autolim=False)

    def _ranks(self) -> int:
        return max((len(s.rank_probabilities) for s in self.standings), default=1)

    def _size(self) -> tuple[float, float]:
        cell = 0.4 if len(self.standings) <= 10 else 0.3
        names = label_width(s.method for s in self.standings)
        return max(0.8 + names + cell * self._ranks(), 4.2), 1.4 + cell * len(self.standings)


def _mean(standing: Standing) -> float:
    """Return the mean of the chances that are drawn.

    Over all data sets `mean_rank` is another quantity: the mean of the ranks on each of them.
    """
    if standing.data is not None or not standing.rank_probabilities:
        return standing.mean_rank
    drawn = sum(rank * chance for rank, chance in enumerate(standing.rank_probabilities, 1))
    return drawn / (sum(standing.rank_probabilities) or math.nan)


@dataclass(eq=False)
class RankingChangeDisplay(Titled):
    """The ranking by one metric at the left, by another at the right, joined by lines.

    Methods whose rank changes are drawn dark: orange where the second metric ranks them worse,
    blue and dashed where it ranks them better. Methods without a rank are left out.

    `plot` passes its options on to every ``Axes.plot``.

    Attributes
    ----------
    first, second : str
        The metrics.
    ranks : dict of str to (float, float)
        The rank of each method by either metric; tied methods share the mean of their ranks.
    data : tuple of (column, value), or None
        The data set; None for all together.
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
        """Take the standings of two metrics.

        Parameters
        ----------
        comparison : Comparison
            What `compare` returned.
        first, second : str, optional
            The metrics; by default the first two.
        data : tuple of (column, value), optional
            The data set; by default the only one, or all together when there are several.

        Returns
        -------
        RankingChangeDisplay
            Call `plot` to draw it.
        """
        one = formatting.check_comparison(comparison).metric_or_first(first, "first")
        others = [m for m in comparison.metrics if m != one]
        two = comparison.metric_or_first(others[0] if second is None and others else second)
        split = comparison.data_or_all(data)
        left, right = (
            {s.method: s.rank for s in comparison.standings_of(metric, split)}
            for metric in (one, two)
        )
        ranks = {method: (rank, right[method]) for method, rank in left.items() if method in right}
        return cls(one, two, ranks, split, _agreement(comparison, one, two, split))

    @property
    def title(self) -> str:
        """What the figure shows, in words."""
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
        """Return what is drawn as a polars table, one row a method."""
        import polars as pl

        rows = [(method, *ranks) for method, ranks in self.ranks.items()]
        columns = ["method", f"rank_{self.first}", f"rank_{self.second}"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        left, right = self._slots()
        written = unique_labels(list(self.ranks))
        for method, y in left.items():
            style = {"marker": "o", "markersize": 5, **_style(*self.ranks[method]), **kwargs}
            axes.plot([0, 1], [y, right[method]], **style)
        for changed in (False, True):
            named = {m: r for m, r in self.ranks.items() if m in left and (r[0] != r[1]) == changed}
            bold = {"fontweight": "bold" if changed else "normal", "va": "center"}
            before = {f"{written[m]}  {r[0]:g}": (-0.06, left[m]) for m, r in named.items()}
            after = {f"{r[1]:g}  {written[m]}": (1.06, right[m]) for m, r in named.items()}
            draw_texts(axes, before, ha="right", **bold)
            draw_texts(axes, after, **bold)
        for x, metric in enumerate((self.first, self.second)):
            name = formatting.metric_title(metric)
            draw_text(axes, x, -0.9, name, ha="center", color=MUTED)
        axes.set(xlim=(-0.1, 1.1), ylim=(max(len(left), 1) - 0.4, -1.3), xticks=[], yticks=[])
        hide_frame(axes)

    def _slots(self) -> tuple[dict[str, int], dict[str, int]]:
        """Give each method a place of its own on either side; ties cross as few lines as can be."""
        ranked = [m for m, ranks in self.ranks.items() if not any(map(math.isnan, ranks))]
        at = self.ranks
        left = sorted(ranked, key=lambda m: at[m])
        right = sorted(ranked, key=lambda m: (at[m][1], at[m][0]))
        return {m: i for i, m in enumerate(left)}, {m: i for i, m in enumerate(right)}

    def _size(self) -> tuple[float, float]:
        return _size_of(self.ranks)


@dataclass(eq=False)
class RankingChangesDisplay(Panels):
    """Rankings by two metrics in several studies, a panel each.

    `plot` passes its options on as `RankingChangeDisplay` does.

    Attributes
    ----------
    rankings : dict of str to RankingChangeDisplay
        By what stands above each.
    title : str
        What the figure shows.

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
        """Refuse a figure of nothing."""
        if not self.rankings:
            raise InputError("`rankings` must hold at least one ranking; got none")

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row a method and panel."""
        import polars as pl

        return pl.concat(
            own.frame().select(pl.lit(name).alias("panel"), pl.all())
            for name, own in self.rankings.items()
        )

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        made = split_axes(axes, len(self.rankings), share_x=False, share_y=False, max_columns=2)
        self.ax_ = made[0]
        for (name, own), ax in zip(self.rankings.items(), made, strict=True):
            own.plot(ax, title=False, **kwargs)
            name_panel(ax, name)

    def _size(self) -> tuple[float, float]:
        rows, columns = grid_shape(len(self.rankings), 2)
        sizes = [_size_of(own.ranks) for own in self.rankings.values()]
        return columns * max(w for w, _ in sizes), 0.4 + rows * max(h for _, h in sizes)


def _size_of(ranks: Mapping[str, object]) -> tuple[float, float]:
    """Return width and height of two rankings with the names of the methods, in inches."""
    return 3.4 + 2 * label_width(ranks), 1.3 + 0.29 * max(len(ranks), 3)


def _agreement(comparison: Comparison, one: str, two: str, data: Split | None) -> Agreement | None:
    return next(
        (a for a in comparison.agreements if {a.first, a.second} == {one, two} and a.data == data),
        None,
    )


def _style(before: float, after: float) -> dict[str, Any]:
    if before == after:
        return {"color": MUTED, "linewidth": 1.0, "markerfacecolor": INK}
    worse = after > before
    return {
        "color": LIGHT[1] if worse else LIGHT[0],
        "linestyle": "-" if worse else (0, (4, 2)),
        "linewidth": 2.2,
        "zorder": 3,
    }
