"""Risk-coverage curves with confidence bands."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abstain.curves.bands import RiskCoverageBand
from abstain.errors import InputError
from abstain.evaluation.comparison import Comparison
from abstain.plots import formatting
from abstain.plots.drawable import Titled
from abstain.plots.labels import add_curve_legend, legend_height, unique_labels
from abstain.plots.style import COVERAGE_TITLE, CURVE_ID, RISK_TITLES, Style, line_style, style_axes
from abstain.tables import split_name
from abstain.typing import BoolArray, Split

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Prefix of the id of all artists of a method. The index of the method follows.
METHOD_CLASS_PREFIX = "method-"


# Minimum coverage of the values that determine the risk axis. Bands are wide at a lower coverage.
_MIN_COVERAGE_FOR_AXIS = 0.1

#: Maximum coverage at which a drawn simultaneous band can start.
_MAX_SIMULTANEOUS_START = 0.8


@dataclass(eq=False)
class RiskCoverageBandDisplay(Titled):
    """Risk by coverage with two confidence bands for each method.

    The inner band is pointwise. The outer band, which has thin edges, is a simultaneous band for
    the complete curve.

    `plot` passes additional options to each call of ``Axes.plot`` of a curve (color, linewidth).

    Attributes
    ----------
    bands : dict of str to RiskCoverageBand
        Band of each method.
    data_name : str
        Name of the data set, or an empty string.
    index_by_method : dict of str to int
        Color index of each method. The default is the order of `bands`.
    n_methods : int
        Number of methods of the comparison if not all are drawn, and 0 otherwise.

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
    data_name: str = ""
    index_by_method: dict[str, int] | None = None
    n_methods: int = 0

    @classmethod
    def from_curve(cls, band: Mapping[str, RiskCoverageBand]) -> Self:
        """Create a display from one band or several named bands.

        Parameters
        ----------
        band : mapping from name to RiskCoverageBand
            Bands, which all have the same kind of risk.

        Returns
        -------
        RiskCoverageBandDisplay
            Display of the data. The method `plot` draws the figure.
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
        """Create a display of the bands of one data set.

        Parameters
        ----------
        comparison : Comparison
            Result of `compare`.
        data : tuple of (column, value), optional
            Data set. The argument is optional for a single data set.
        kind : {"selective", "generalized"}, default="selective"
            Kind of risk. The selective risk is the mean loss of the accepted samples, and the
            generalized risk is the accepted loss per sample.
        methods : tuple of str, optional
            Names of the methods. The default is all methods.

        Returns
        -------
        RiskCoverageBandDisplay
            Display of the data. The method `plot` draws the figure.
        """
        if kind not in RISK_TITLES:
            raise InputError(f"`kind` must be 'selective' or 'generalized'; got {kind!r}")
        split = formatting.check_comparison(comparison).data_or_only(data)
        requested = comparison.methods if methods is None else methods
        available = {bands.method: bands for bands in comparison.bands if bands.data == split}
        bands = {}
        for method in requested:
            if method in available:
                # A band is computed on access, so the bands of other methods are not computed.
                bands[method] = getattr(available[method], kind)
        index_by_method = {method: i for i, method in enumerate(comparison.methods)}
        n_methods = len(available) if len(available) > len(bands) else 0
        return cls(bands, split_name(split) if split else "", index_by_method, n_methods)

    @property
    def title(self) -> str:
        """Title of the figure."""
        band = next(iter(self.bands.values()), None)
        if band is None:
            return "No bands"
        title = f"{band.kind.capitalize()} risk by coverage"
        if self.data_name:
            title += f", {self.data_name}"
        if self.n_methods:
            title += f", {len(self.bands)} of {self.n_methods} methods"
        level = formatting.format_percent(band.level)
        subtitle = f"{level} pointwise confidence bands; too few samples for simultaneous bands"
        if any(has_simultaneous_band(band).any() for band in self.bands.values()):
            subtitle = f"{level} confidence bands: inner pointwise, outer simultaneous"
        return f"{title}\n({subtitle})"

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table. The first column is the method."""
        import polars as pl

        tables = [
            band.frame().select(pl.lit(name).alias("method"), pl.all())
            for name, band in self.bands.items()
        ]
        return pl.concat(tables)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw the curve and the bands of each method. Their SVG elements get ids."""
        label_by_method = unique_labels(list(self.bands))
        index_by_method = self.index_by_method or {name: i for i, name in enumerate(self.bands)}
        ids = [f"{METHOD_CLASS_PREFIX}{index_by_method[name]}" for name in self.bands]
        for (name, band), method_id in zip(self.bands.items(), ids, strict=True):
            line = {**line_style(index_by_method[name]), "label": label_by_method[name]}
            _draw_band(axes, band, {**line, **kwargs, "gid": CURVE_ID}, method_id)
        kinds = {band.kind for band in self.bands.values()}
        risk = RISK_TITLES[kinds.pop()] if len(kinds) == 1 else "Risk"
        max_risk = max(map(_max_plotted_risk, self.bands.values()), default=0.0)
        axes.set(xlabel=COVERAGE_TITLE, ylabel=risk, xlim=(0, 1))
        axes.set_ylim(0, 1.05 * max_risk or None)
        style_axes(axes)
        if self.bands:
            add_curve_legend(axes)
        legend: Any = axes.get_legend()
        artists: list[Any] = list(axes.get_lines())
        artists += [*legend.legend_handles, *legend.get_texts()] if legend is not None else []
        # Curves, legend lines and legend texts, each in the order of the bands.
        curve_artists = [artist for artist in artists if artist.get_gid() == CURVE_ID]
        for artist, method_id in zip(curve_artists, cycle(ids), strict=False):
            artist.set_gid(method_id)

    def _size(self) -> tuple[float, float]:
        width, height = super()._size()
        return width, height + legend_height(self.bands, width)


def has_simultaneous_band(band: RiskCoverageBand) -> BoolArray:
    """Return a mask of the points at which the simultaneous band is drawn.

    If the band starts at a large coverage, the mask is False everywhere.
    """
    if band.simultaneous_from > _MAX_SIMULTANEOUS_START:
        return np.zeros(band.coverage.size, dtype=bool)
    return band.coverage >= band.simultaneous_from


def _draw_band(ax: "Axes", band: RiskCoverageBand, style: Style, method_id: str) -> None:
    """Draw a curve with its pointwise band and, if available, its simultaneous band."""
    x, color = band.coverage, style["color"]
    is_simultaneous = has_simultaneous_band(band)
    if is_simultaneous.any():
        bounds = band.low_all[is_simultaneous], band.high_all[is_simultaneous]
        outer: Style = {"facecolor": (color, 0.06), "edgecolor": (color, 0.6), "linewidth": 0.6}
        ax.fill_between(x[is_simultaneous], *bounds, gid=method_id, **outer)
    inner: Style = {"color": color, "alpha": 0.18, "linewidth": 0}
    ax.fill_between(x, band.low, band.high, gid=method_id, **inner)
    ax.plot(x, band.risk, **style)


def _max_plotted_risk(band: RiskCoverageBand) -> float:
    """Return the upper limit of the risk axis.

    The limit does not depend on points with a small coverage.
    """
    upper = np.where(has_simultaneous_band(band), band.high_all, band.high)
    return float(np.nanmax(np.append(upper[band.coverage >= _MIN_COVERAGE_FOR_AXIS], 0.0)))
