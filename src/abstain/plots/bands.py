"""Risk-coverage curves with confidence bands."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abstain.curves.bands import RiskCoverageBand
from abstain.errors import InputError
from abstain.evaluation.comparison import Comparison
from abstain.plots import formatting
from abstain.plots.drawable import Titled
from abstain.plots.labels import add_curve_legend, legend_height, unique_labels
from abstain.plots.style import COVERAGE_TITLE, CURVE_ID, RISK_TITLES, line_style, style_axes
from abstain.tables import split_name
from abstain.typing import BoolArray, Split

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Prefix of the id of all artists of a method; its index follows.
METHOD_CLASS_PREFIX = "method-"


# Bands are wide at low coverage, so only values above this coverage determine the risk axis.
_MIN_COVERAGE_FOR_AXIS = 0.1

#: A simultaneous band that starts at a higher coverage is not drawn.
_MAX_SIMULTANEOUS_START = 0.8


@dataclass(eq=False)
class RiskCoverageBandDisplay(Titled):
    """Risk by coverage with two confidence bands for each method.

    The inner band is pointwise. The outer band, with thin edges, is simultaneous for the complete
    curve.

    `plot` passes additional options to each call of ``Axes.plot`` of a curve (color, linewidth).

    Attributes
    ----------
    bands : dict of str to RiskCoverageBand
        Band of each method.
    data_name : str
        Name of the data set, or empty.
    index_by_method : dict of str to int
        Color index of each method; the default is the order of `bands`.
    n_methods : int
        Number of methods of the comparison if not all are drawn, otherwise 0.

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
        """Create a display from bands by name.

        Parameters
        ----------
        band : mapping from name to RiskCoverageBand
            Bands of one kind of risk.

        Returns
        -------
        RiskCoverageBandDisplay
            Display that is not drawn yet; call `plot`.
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
            Data set; optional if there is only one.
        kind : {"selective", "generalized"}, default="selective"
            Kind of risk: mean loss of the accepted samples, or accepted loss per sample.
        methods : tuple of str, optional
            Names of the methods; the default is all methods.

        Returns
        -------
        RiskCoverageBandDisplay
            Display that is not drawn yet; call `plot`.
        """
        if kind not in RISK_TITLES:
            raise InputError(f"`kind` must be 'selective' or 'generalized'; got {kind!r}")
        split = formatting.check_comparison(comparison).data_or_only(data)
        requested = comparison.methods if methods is None else methods
        band_by_method = {b.method: b for b in comparison.bands if b.data == split}
        # Bands are computed on access, so only those of the requested methods are computed.
        bands = {
            method: getattr(band_by_method[method], kind)
            for method in requested
            if method in band_by_method
        }
        places = {method: i for i, method in enumerate(comparison.methods)}
        known = len(band_by_method) if len(band_by_method) > len(bands) else 0
        return cls(bands, split_name(split) if split else "", places, known)

    @property
    def title(self) -> str:
        """Title of the figure."""
        band = next(iter(self.bands.values()), None)
        if band is None:
            return "No bands"
        data_suffix = f", {self.data_name}" if self.data_name else ""
        method_suffix = f", {len(self.bands)} of {self.n_methods} methods" if self.n_methods else ""
        level = formatting.format_percent(band.level)
        subtitle = f"{level} confidence bands: inner pointwise, outer simultaneous"
        if not any(has_simultaneous_band(band).any() for band in self.bands.values()):
            subtitle = f"{level} pointwise confidence bands; too few samples for simultaneous bands"
        return (
            f"{band.kind.capitalize()} risk by coverage{data_suffix}{method_suffix}\n({subtitle})"
        )

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table; the first column is the method."""
        import polars as pl

        tables = [
            band.frame().select(pl.lit(name).alias("method"), pl.all())
            for name, band in self.bands.items()
        ]
        return pl.concat(tables)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        label_by_method = unique_labels(list(self.bands))
        for index, (name, band) in enumerate(self.bands.items()):
            color_index = index if self.index_by_method is None else self.index_by_method[name]
            style = {
                **line_style(color_index),
                "label": label_by_method[name],
                **kwargs,
                "gid": CURVE_ID,
            }
            self._draw_band(axes, band, style, f"{METHOD_CLASS_PREFIX}{color_index}")
        kinds = {band.kind for band in self.bands.values()}
        risk = RISK_TITLES[kinds.pop()] if len(kinds) == 1 else "Risk"
        axes.set(xlabel=COVERAGE_TITLE, ylabel=risk, xlim=(0, 1))
        axes.set_ylim(0, self._risk_limit())
        style_axes(axes)
        if self.bands:
            add_curve_legend(axes)
        self._set_method_ids(axes)

    def _draw_band(
        self, ax: "Axes", band: RiskCoverageBand, style: dict[str, Any], gid: str
    ) -> None:
        x, color = band.coverage, style["color"]
        outer: dict[str, Any] = {
            "facecolor": (color, 0.06),
            "edgecolor": (color, 0.6),
            "linewidth": 0.6,
        }
        is_simultaneous = has_simultaneous_band(band)
        if is_simultaneous.any():
            bounds = band.low_all[is_simultaneous], band.high_all[is_simultaneous]
            ax.fill_between(x[is_simultaneous], *bounds, **outer, gid=gid)
        inner: dict[str, Any] = {"color": color, "alpha": 0.18, "linewidth": 0}
        ax.fill_between(x, band.low, band.high, **inner, gid=gid)
        ax.plot(x, band.risk, **style)

    def _set_method_ids(self, ax: "Axes") -> None:
        """Replace the ids of curves and legend entries by ids of their methods."""
        lines = [line for line in ax.get_lines() if line.get_gid() == CURVE_ID]
        legend = ax.get_legend()
        legend_artists: list[Any] = (
            [] if legend is None else [*legend.legend_handles, *legend.get_texts()]
        )
        curve_artists = [artist for artist in legend_artists if artist.get_gid() == CURVE_ID]
        # Curves, legend lines and legend texts, each in the order of the bands.
        for i, part in enumerate([*lines, *curve_artists]):
            name = list(self.bands)[i % len(self.bands)]
            color_index = (
                list(self.bands).index(name)
                if self.index_by_method is None
                else self.index_by_method[name]
            )
            part.set_gid(f"{METHOD_CLASS_PREFIX}{color_index}")

    def _risk_limit(self) -> float | None:
        return (
            max((_max_plotted_risk(band) for band in self.bands.values()), default=0.0) * 1.05
            or None
        )

    def _size(self) -> tuple[float, float]:
        width, height = super()._size()
        return width, height + legend_height(self.bands, width)


def has_simultaneous_band(band: RiskCoverageBand) -> BoolArray:
    """Return the coverages at which the simultaneous band is drawn; none if it starts late."""
    if band.simultaneous_from > _MAX_SIMULTANEOUS_START:
        return np.zeros(band.coverage.size, dtype=bool)
    return band.coverage >= band.simultaneous_from


def _max_plotted_risk(band: RiskCoverageBand) -> float:
    """Return the maximum of the drawn bands above the minimum coverage."""
    upper = np.where(has_simultaneous_band(band), band.high_all, band.high)
    return float(np.nanmax(np.append(upper[band.coverage >= _MIN_COVERAGE_FOR_AXIS], 0.0)))
