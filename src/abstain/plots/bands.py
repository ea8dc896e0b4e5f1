"""Risk-coverage curves with the bands that chance draws around them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abstain.curves.bands import RiskCoverageBand
from abstain.errors import InputError
from abstain.evaluation.comparison import Comparison
from abstain.plots import formatting
from abstain.plots.drawable import Titled
from abstain.plots.labels import labels, legend_height, name_the_curves
from abstain.plots.style import COVERAGE, CURVE, RISKS, finish, line_style
from abstain.tables import split_name
from abstain.typing import BoolArray, Split

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Before the place of a method in the mark of all that is drawn for it.
METHOD = "method-"


# At small coverage few samples are accepted and the bands reach far up; they would flatten
# the rest, so the axis is chosen by what lies above this coverage.
_STEADY = 0.1

#: A band of the whole curve that speaks only from this coverage on is not drawn.
_LATE = 0.8


@dataclass(eq=False)
class RiskCoverageBandDisplay(Titled):
    """Risk against coverage with two bands for each method.

    The inner band holds the true risk at each coverage by itself; the outer one with thin edges
    holds the whole true curve at once.

    `plot` passes its options on to every ``Axes.plot`` of a curve (color, linewidth).

    Attributes
    ----------
    bands : dict of str to RiskCoverageBand
        One for each method.
    where : str
        The data set, in words, or empty.
    places : dict of str to int
        The color of each method; by default in the order of `bands`.
    known : int
        How many methods there are, where not all are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.curves.bands import RiskCoverageBand
    >>> from abstain.plots import RiskCoverageBandDisplay
    >>> risk = np.array([0.01, 0.05])
    >>> band = RiskCoverageBand(
    ...     "selective",
    ...     np.array([0.5, 1.0]),
    ...     risk,
    ...     risk / 4,
    ...     risk / 2,
    ...     risk * 2,
    ...     risk / 3,
    ...     risk * 3,
    ...     0.95,
    ... )
    >>> RiskCoverageBandDisplay.from_curve({"msr": band}).frame()["high"].to_list()
    [0.02, 0.1]
    """

    bands: dict[str, RiskCoverageBand]
    where: str = ""
    places: dict[str, int] | None = None
    known: int = 0

    @classmethod
    def from_curve(cls, band: Mapping[str, RiskCoverageBand]) -> Self:
        """Take bands by name, as they are.

        Parameters
        ----------
        band : mapping from name to RiskCoverageBand
            All selective or all generalized.

        Returns
        -------
        RiskCoverageBandDisplay
            Call `plot` to draw it.
        """
        if not band:
            raise InputError("`band` must hold at least one curve; got an empty mapping")
        return cls(dict(band))

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        *,
        data: Split | None = None,
        kind: str = "selective",
        methods: tuple[str, ...] | None = None,
    ) -> Self:
        """Take the bands of one data set.

        Parameters
        ----------
        comparison : Comparison
            What `compare` returned.
        data : tuple of (column, value), optional
            The data set; may be left out when there is only one.
        kind : {"selective", "generalized"}, default="selective"
            Mean loss of the accepted, or accepted loss per sample.
        methods : tuple of str, optional
            Which methods; by default all.

        Returns
        -------
        RiskCoverageBandDisplay
            Call `plot` to draw it.
        """
        if kind not in RISKS:
            raise InputError(f"`kind` must be 'selective' or 'generalized'; got {kind!r}")
        split = formatting.check_comparison(comparison).data_or_only(data)
        wanted = comparison.methods if methods is None else methods
        found = {b.method: b for b in comparison.bands if b.data == split}
        # Only what is drawn is computed.
        bands = {method: getattr(found[method], kind) for method in wanted if method in found}
        places = {method: i for i, method in enumerate(comparison.methods)}
        known = len(found) if len(found) > len(bands) else 0
        return cls(bands, split_name(split) if split else "", places, known)

    @property
    def title(self) -> str:
        """What the figure shows, in words."""
        band = next(iter(self.bands.values()), None)
        if band is None:
            return "No bands"
        where = f", {self.where}" if self.where else ""
        some = f", {len(self.bands)} of {self.known} methods" if self.known else ""
        level = formatting.format_percent(band.level)
        said = f"{level} bands: inner at each coverage, outer for the whole curve"
        if not any(whole(band).any() for band in self.bands.values()):
            said = f"{level} bands at each coverage; too few samples for one of the whole curve"
        return f"{band.kind.capitalize()} risk against coverage{where}{some}\n({said})"

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, the name of the method first."""
        import polars as pl

        parts = [
            band.frame().select(pl.lit(name).alias("method"), pl.all())
            for name, band in self.bands.items()
        ]
        return pl.concat(parts)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        written = labels(list(self.bands))
        for index, (name, band) in enumerate(self.bands.items()):
            place = index if self.places is None else self.places[name]
            style = {**line_style(place), "label": written[name], **kwargs, "gid": CURVE}
            self._draw(axes, band, style, f"{METHOD}{place}")
        kinds = {band.kind for band in self.bands.values()}
        risk = RISKS[kinds.pop()] if len(kinds) == 1 else "Risk"
        axes.set(xlabel=COVERAGE, ylabel=risk, xlim=(0, 1))
        axes.set_ylim(0, self._top())
        finish(axes)
        if self.bands:
            name_the_curves(axes)
        self._mark_lines(axes)

    def _draw(self, ax: "Axes", band: RiskCoverageBand, style: dict[str, Any], gid: str) -> None:
        x, color = band.coverage, style["color"]
        outer: dict[str, Any] = {
            "facecolor": (color, 0.06),
            "edgecolor": (color, 0.6),
            "linewidth": 0.6,
        }
        speaks = whole(band)
        if speaks.any():
            ends = band.low_all[speaks], band.high_all[speaks]
            ax.fill_between(x[speaks], *ends, **outer, gid=gid)
        inner: dict[str, Any] = {"color": color, "alpha": 0.18, "linewidth": 0}
        ax.fill_between(x, band.low, band.high, **inner, gid=gid)
        ax.plot(x, band.risk, **style)

    def _mark_lines(self, ax: "Axes") -> None:
        """Mark each curve as its method's, after the legend has found them by their old mark."""
        lines = [line for line in ax.get_lines() if line.get_gid() == CURVE]
        legend = ax.get_legend()
        named: list[Any] = [] if legend is None else [*legend.legend_handles, *legend.get_texts()]
        ours = [part for part in named if part.get_gid() == CURVE]
        # The lines, the lines beside the names and the names, each in the order of the bands.
        for i, part in enumerate([*lines, *ours]):
            name = list(self.bands)[i % len(self.bands)]
            place = list(self.bands).index(name) if self.places is None else self.places[name]
            part.set_gid(f"{METHOD}{place}")

    def _top(self) -> float | None:
        return max((_reach(band) for band in self.bands.values()), default=0.0) * 1.05 or None

    def _size(self) -> tuple[float, float]:
        width, height = super()._size()
        return width, height + legend_height(self.bands, width)


def whole(band: RiskCoverageBand) -> BoolArray:
    """Tell at which coverages the band of the whole curve is shown: none where it speaks late."""
    if band.simultaneous_from > _LATE:
        return np.zeros(band.coverage.size, dtype=bool)
    return band.coverage >= band.simultaneous_from


def _reach(band: RiskCoverageBand) -> float:
    """Return how far up what is drawn of a band reaches."""
    drawn = np.where(whole(band), band.high_all, band.high)
    return float(np.nanmax(np.append(drawn[band.coverage >= _STEADY], 0.0)))
