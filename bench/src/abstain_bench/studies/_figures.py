"""Lines for the figures of several studies."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from abstain.plots.series import Series
from abstain.typing import FloatArray
from abstain_bench.studies._area_estimators import ESTIMATOR_TITLES
from abstain_bench.studies._tables import Row


def column_series(
    title: str,
    rows: Sequence[Row],
    x: str,
    y: str,
    *,
    half_width: str = "",
    panel: str = "",
) -> Series:
    """Return the line of the column `y` against the column `x`. A value of None leads to a gap.

    If `half_width` is the name of a column, the line has a band of y ± this column.

    Examples
    --------
    >>> rows = [{"n": 8, "mean": 1.0, "sd": 0.5}, {"n": 16, "mean": None, "sd": 0.5}]
    >>> column_series("a", rows, "n", "mean", half_width="sd").low
    (0.5, nan)
    """
    center = _column(rows, y)
    low = high = np.empty(0)
    if half_width:
        half_widths = _column(rows, half_width)
        low, high = center - half_widths, center + half_widths
    return Series(
        title,
        tuple(_column(rows, x).tolist()),
        tuple(center.tolist()),
        tuple(low.tolist()),
        tuple(high.tolist()),
        panel,
    )


def _column(rows: Sequence[Row], name: str) -> FloatArray:
    return np.array([row[name] for row in rows], dtype=np.float64)


def estimator_series(
    rows: Sequence[Row],
    y: str,
    panel: Callable[[Row], str],
    *,
    x: str = "n",
    half_width: str = "",
) -> tuple[Series, ...]:
    """Return a line for each panel and estimator. See `column_series` for the columns."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((panel(row), row["estimator"]), []).append(row)
    return tuple(
        column_series(ESTIMATOR_TITLES[name], group, x, y, half_width=half_width, panel=title)
        for (title, name), group in groups.items()
    )


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
