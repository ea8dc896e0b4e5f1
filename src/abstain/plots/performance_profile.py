"""How large a share of the runs is at least as good as a threshold: the performance profile."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from abstain.errors import InputError
from abstain.evaluation.comparison import Comparison, Profile
from abstain.plots import words
from abstain.plots.drawable import Titled
from abstain.plots.labels import labels, legend_height, name_the_curves
from abstain.plots.style import CURVE, finish, line_style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


@dataclass(eq=False)
class PerformanceProfileDisplay(Titled):
    """The share of runs and data sets whose metric is at least as good as each threshold.

    A method whose line lies above that of another everywhere is better on every part of its
    runs, not only in the mean.

    `plot` passes its options on to every ``Axes.plot`` of a profile (color, linewidth).

    Attributes
    ----------
    profiles : tuple of Profile
        One for each method, all of one metric.
    over : str
        What a share is of: "runs", "data sets" or both.

    Examples
    --------
    >>> from abstain.evaluation.comparison import Profile
    >>> from abstain.plots import PerformanceProfileDisplay
    >>> profile = Profile("augrc", "pe", (0.01, 0.02), (0.4, 1.0), (0.2, 0.8), (0.6, 1.0))
    >>> PerformanceProfileDisplay((profile,)).frame()["share"].to_list()
    [0.4, 1.0]
    """

    profiles: tuple[Profile, ...]
    over: str = "runs and data sets"

    @classmethod
    def from_comparison(cls, comparison: Comparison, metric: str | None = None) -> Self:
        """Take the profiles of one metric.

        Parameters
        ----------
        comparison : Comparison
            What `compare` returned, of several data sets or runs.
        metric : str, optional
            By default the first.

        Returns
        -------
        PerformanceProfileDisplay
            Call `plot` to draw it.

        Raises
        ------
        InputError
            If there is only one data set and run.
        """
        name = words.checked(comparison).metric_shown(metric)
        found = tuple(p for p in comparison.profiles if p.metric == name)
        if not found:
            msg = "a performance profile needs several data sets or runs; the comparison has none"
            raise InputError(msg)
        return cls(found, comparison.aggregated_over)

    @property
    def title(self) -> str:
        """What the figure shows, in words."""
        metric = words.metric_title(self.profiles[0].metric)
        return f"Share of {self.over} at least as good as a threshold of {metric}"

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, the name of the method first."""
        import polars as pl

        columns = ("threshold", "share", "low", "high")
        parts = [
            pl.DataFrame({c: [float(v) for v in getattr(p, c)] for c in columns}).select(
                pl.lit(p.method).alias("method"), pl.all()
            )
            for p in self.profiles
        ]
        return pl.concat(parts)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        written = labels([p.method for p in self.profiles])
        for index, profile in enumerate(self.profiles):
            style = {**line_style(index), "label": written[profile.method], **kwargs, "gid": CURVE}
            band = {"color": style["color"], "alpha": 0.12, "linewidth": 0}
            axes.fill_between(profile.threshold, profile.low, profile.high, **band)
            axes.plot(profile.threshold, profile.share, **style)
        metric = words.metric_title(self.profiles[0].metric)
        axes.set_xlabel(f"Threshold of {metric}", parse_math=False)
        axes.set(ylabel="Share at least as good", ylim=(-0.02, 1.02))
        finish(axes)
        name_the_curves(axes)

    def _size(self) -> tuple[float, float]:
        width, height = super()._size()
        return width, height + legend_height((p.method for p in self.profiles), width)
