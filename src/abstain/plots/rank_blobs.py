"""How likely each method is at each rank: the blob plot of Wiesenfarth et al. (2021)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from abstain.evaluation.comparison import Comparison, Standing
from abstain.plots import words
from abstain.plots.drawable import Titled
from abstain.plots.labels import calm, labels, name_ticks, room, rule, write
from abstain.plots.palette import LIGHT
from abstain.plots.style import INK, MUTED
from abstain.typing import Split

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: The radius of a chance of 1, in ranks: neighboring blobs do not touch.
_RADIUS = 0.44


@dataclass(eq=False)
class RankBlobDisplay(Titled):
    """A row for each method, a column for each rank, the area of a blob its chance.

    The cross marks the mean of the chances drawn and the line through it their central range,
    both over studies of this size if the values found were the true ones. Over all data sets the
    rank is that of the aggregate, whose mean is another than the mean rank over the data sets.

    `plot` passes its options on to every ``matplotlib.patches.Circle`` (facecolor, alpha).

    Attributes
    ----------
    standings : tuple of Standing
        The best rank first.
    level : float
        Of the range.

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
        name = words.checked(comparison).metric_shown(metric)
        split = comparison.data_or_all(data)
        found = comparison.standings_of(name, split, source)
        return cls(tuple(found), comparison.level)

    @property
    def title(self) -> str:
        """What the figure shows, in words."""
        if not self.standings:
            return "No ranks"
        first = self.standings[0]
        metric = words.metric_title(first.metric)
        return (
            f"Chance of each rank by {metric}{words.of_data(first.data)}\n"
            f"({first.source}; × mean, line: {words.percent(self.level)} of ranks in studies of "
            f"this size, {words.SUPPOSED}; {words.NOT_ADJUSTED})"
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
                **{f"rank_{i}": chance for i, chance in enumerate(s.chances, 1)},
            }
            for s in self.standings
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        k = self._ranks()
        for y, standing in enumerate(self.standings):
            self._draw_row(axes, standing, y, kwargs)
        axes.set(xlim=(0.4, k + 0.6), ylim=(len(self.standings) - 0.4, -0.6), aspect="equal")
        calm(axes)
        written = labels([s.method for s in self.standings])
        names = [written[s.method] for s in self.standings]
        name_ticks(axes, "y", names, range(len(names)))
        axes.set_xticks(range(1, k + 1))
        axes.set_xlabel("Rank (1 is best)")

    def _draw_row(self, ax: "Axes", standing: Standing, y: int, kwargs: dict[str, Any]) -> None:
        from matplotlib.patches import Circle

        rule(ax, [0.5, self._ranks() + 0.5], [y, y])
        if math.isnan(standing.mean_rank):
            write(ax, 0.5, y, "no rank", color=MUTED, fontsize=8, style="italic", va="center")
            return
        for rank, chance in enumerate(standing.chances, 1):
            if chance > 0:
                style = {"facecolor": LIGHT[0], "edgecolor": "none", "alpha": 0.45, "zorder": 2}
                ax.add_patch(Circle((rank, y), _RADIUS * math.sqrt(chance), **style | kwargs))
        line: dict[str, Any] = {"color": INK, "linewidth": 1.4, "zorder": 3}
        ax.plot([standing.rank_low, standing.rank_high], [y, y], **line)
        ax.plot([_mean(standing)], [y], marker="x", markersize=6, markeredgewidth=1.6, **line)

    def _ranks(self) -> int:
        return max((len(s.chances) for s in self.standings), default=1)

    def _size(self) -> tuple[float, float]:
        cell = 0.4 if len(self.standings) <= 10 else 0.3
        names = room(s.method for s in self.standings)
        return max(0.8 + names + cell * self._ranks(), 4.2), 1.4 + cell * len(self.standings)


def _mean(standing: Standing) -> float:
    """Return the mean of the chances that are drawn.

    Over all data sets `mean_rank` is another quantity: the mean of the ranks on each of them.
    """
    if standing.data is not None or not standing.chances:
        return standing.mean_rank
    drawn = sum(rank * chance for rank, chance in enumerate(standing.chances, 1))
    return drawn / (sum(standing.chances) or math.nan)
