"""Lines of estimators for the figures of several studies."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from abstain.plots.series import Series
from abstain_bench.studies._area_estimators import ESTIMATOR_TITLES
from abstain_bench.studies._tables import Row


def estimator_series(
    rows: Sequence[Row],
    value: Callable[[Row], Any],
    panel: Callable[[Row], str],
    *,
    x: str = "n",
    half_width: Callable[[Row], float] | None = None,
) -> tuple[Series, ...]:
    """Return a line for each panel and estimator, with a band of value ± `half_width`.

    `x` is the column of the horizontal axis.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((panel(row), row["estimator"]), []).append(row)
    series = []
    for (panel_title, estimator), group in groups.items():
        positions = tuple(float(row[x]) for row in group)
        y = tuple(float(value(row)) for row in group)
        low: tuple[float, ...] = ()
        high: tuple[float, ...] = ()
        if half_width is not None:
            half_widths = [half_width(row) for row in group]
            low = tuple(v - half for v, half in zip(y, half_widths, strict=True))
            high = tuple(v + half for v, half in zip(y, half_widths, strict=True))
        title = ESTIMATOR_TITLES[estimator]
        series.append(Series(title, positions, y, low, high, panel_title))
    return tuple(series)


def panels_above_zero(series: Iterable[Series]) -> tuple[Series, ...]:
    """Return the lines of the panels that have a positive value, for a logarithmic axis.

    Examples
    --------
    >>> positive, zero = Series("log", (8.0,), (0.1,), panel="a"), Series("log", (8.0,), (0.0,))
    >>> [line.panel for line in panels_above_zero([positive, zero])]
    ['a']
    """
    lines = tuple(series)
    panels = {line.panel for line in lines if any(y > 0 for y in line.y)}
    return tuple(line for line in lines if line.panel in panels)
