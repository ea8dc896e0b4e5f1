"""Lines of estimators against a number, as the figures of several studies draw them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from abstain.plots.series import Series
from abstain_bench.studies._study import Row
from abstain_bench.studies._words import ESTIMATOR_TITLES


def lines(
    rows: Sequence[Row],
    value: Callable[[Row], Any],
    panel: Callable[[Row], str],
    *,
    x: str = "n",
    half: Callable[[Row], float] | None = None,
) -> tuple[Series, ...]:
    """Return a line for each panel and estimator, with a band of `half` to both sides."""
    out = []
    for shown, name in dict.fromkeys((panel(row), row["estimator"]) for row in rows):
        mine = [row for row in rows if (panel(row), row["estimator"]) == (shown, name)]
        y = tuple(float(value(row)) for row in mine)
        reach = () if half is None else [half(row) for row in mine]
        low = tuple(v - r for v, r in zip(y, reach, strict=False))
        high = tuple(v + r for v, r in zip(y, reach, strict=False))
        at = tuple(float(row[x]) for row in mine)
        out.append(Series(ESTIMATOR_TITLES[name], at, y, low, high, shown))
    return tuple(out)


def above_zero(series: Iterable[Series]) -> tuple[Series, ...]:
    """Return the lines of those panels in which a logarithmic axis can show something.

    Examples
    --------
    >>> some, none = Series("log", (8.0,), (0.1,), panel="a"), Series("log", (8.0,), (0.0,))
    >>> [line.panel for line in above_zero([some, none])]
    ['a']
    """
    lines = tuple(series)
    shown = {line.panel for line in lines if any(y > 0 for y in line.y)}
    return tuple(line for line in lines if line.panel in shown)
