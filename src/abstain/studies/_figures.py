"""What a logarithmic axis can show."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from abstain.plots.drawable import Drawable
from abstain.plots.series import Series, SeriesDisplay
from abstain.studies._sources import OWN
from abstain.studies._study import Row
from abstain.studies._words import COLORS, ESTIMATOR_TITLES, loss_said


def above_zero(series: Iterable[Series]) -> tuple[Series, ...]:
    """Return the lines of those panels in which some line is above 0 somewhere.

    Examples
    --------
    >>> some, none = Series("log", (8.0,), (0.1,), panel="a"), Series("log", (8.0,), (0.0,))
    >>> [line.panel for line in above_zero([some, none])]
    ['a']
    """
    lines = tuple(series)
    shown = {line.panel for line in lines if any(y > 0 for y in line.y)}
    return tuple(line for line in lines if line.panel in shown)


#: Figures are made of so many data sets and losses; the tables have all of them.
_MOST: Final = 6

#: Column, title and axis of each figure.
_STATISTICS: Final = {
    "mean": ("Mean and standard deviation of the estimates", "Mean estimate"),
    "bias": ("Bias of the estimates, with two Monte-Carlo standard errors", "Bias"),
    "mse": ("Mean squared error of the estimates", "Mean squared error"),
    "mae": ("Mean absolute error of the estimates", "Mean absolute error"),
}


class _Part(NamedTuple):
    """What one figure is about: a data set with its scores, or all populations."""

    key: str
    said: str
    rows: list[Row]
    panel: str


def estimator_figures(rows: Sequence[Row]) -> dict[str, Drawable]:
    """Return four figures for each data set and loss, their panels the scores.

    Where nothing errs there is no figure of errors.
    """
    found = {
        f"{statistic}{part.key}": _figure(part, statistic)
        for part in _parts(rows)[:_MOST]
        for statistic in _STATISTICS
    }
    return {name: figure for name, figure in found.items() if figure is not None}


def _parts(rows: Sequence[Row]) -> list[_Part]:
    out = []
    alone = [row for row in rows if row["score"] == OWN]
    if alone:
        out.append(_Part("", "simulated populations", alone, "data"))
    for data, loss in dict.fromkeys((r["data"], r["loss"]) for r in rows if r["score"] != OWN):
        mine = [row for row in rows if (row["data"], row["loss"]) == (data, loss)]
        several = len({row["data"] for row in rows}) > 1
        words = (loss, data) if several else (loss,)
        out.append(_Part(f"-{slug(*words)}", f"{data}, {loss_said(loss)}", mine, "score"))
    return out


def slug(*words: str) -> str:
    """Write words as part of a file name.

    Examples
    --------
    >>> slug("zero_one", "digits 8x8.npz")
    'zero-one-digits-8x8-npz'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", "-".join(words)).strip("-").lower()


def _figure(part: _Part, statistic: str) -> SeriesDisplay | None:
    title, axis = _STATISTICS[statistic]
    # AUGRC is another number, so its mean has no place beside those of the AURC.
    rows = [r for r in part.rows if statistic != "mean" or r["target"] == "aurc"]
    panels = list(dict.fromkeys(row[part.panel] for row in rows))
    lines = tuple(
        _line(rows, part.panel, panel, name, statistic) for panel in panels for name in _in(rows)
    )
    logarithmic = statistic in {"mse", "mae"}
    lines = above_zero(lines) if logarithmic else lines
    if not lines:
        return None
    return SeriesDisplay(
        lines,
        f"{title}: {part.said}",
        "Sample size n",
        axis,
        log_y=logarithmic,
        order=COLORS,
        level=_levels(rows, part.panel, statistic),
        level_name="true value" if statistic == "mean" else "no bias",
    )


def _in(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["estimator"] for row in rows))


def _levels(rows: Sequence[Row], panel: str, statistic: str) -> dict[str, float]:
    if statistic == "mean":
        return {row[panel]: row["truth"] for row in rows}
    return {row[panel]: 0.0 for row in rows} if statistic == "bias" else {}


def _line(rows: Sequence[Row], by: str, panel: str, estimator: str, statistic: str) -> Series:
    mine = [row for row in rows if row[by] == panel and row["estimator"] == estimator]
    values = tuple(row[statistic] for row in mine)
    around: dict[str, Any] = {}
    half = {"mean": ("sd", 1.0), "bias": ("bias_se", 2.0)}.get(statistic)
    if half is not None:
        reach = [half[1] * row[half[0]] for row in mine]
        around = {
            "low": tuple(v - r for v, r in zip(values, reach, strict=True)),
            "high": tuple(v + r for v, r in zip(values, reach, strict=True)),
        }
    x = tuple(float(row["n"]) for row in mine)
    return Series(ESTIMATOR_TITLES[estimator], x, values, panel=panel, **around)
