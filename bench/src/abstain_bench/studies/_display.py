"""Format tables, figures and conclusions of studies."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain.plots.series import Series
from abstain.typing import FloatArray

#: A table row, which maps column names to numbers, texts, booleans or None.
Row = Mapping[str, Any]

#: Name and caption of the table with means over several files.
OVER_MODELS: Final = "over-models"
OVER_MODELS_CAPTION: Final = (
    "Mean and standard deviation (with n - 1) over the files, each with the predictions of one "
    "model."
)


def group_rows(rows: Iterable[Row], *columns: str) -> dict[Any, list[Row]]:
    """Group rows by the values of one or several columns, in order of first occurrence.

    A key is a value for one column, or a tuple of values for several columns.

    Examples
    --------
    >>> rows = [{"n": 8, "bias": 0.2}, {"n": 32, "bias": 0.1}, {"n": 8, "bias": 0.3}]
    >>> {n: [row["bias"] for row in group] for n, group in group_rows(rows, "n").items()}
    {8: [0.2, 0.3], 32: [0.1]}
    """
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        values = tuple(row[column] for column in columns)
        groups.setdefault(values[0] if len(columns) == 1 else values, []).append(row)
    return groups


def unique_values(rows: Iterable[Row], column: str) -> tuple[Any, ...]:
    """Return the distinct values of a column in order of first occurrence."""
    return tuple(dict.fromkeys(row[column] for row in rows))


def total(rows: Iterable[Row], column: str) -> int:
    """Return the sum of a column that contains counts."""
    return sum(row[column] for row in rows)


def average_over_models(
    rows: Sequence[Row],
    files: Collection[str],
    group_columns: Sequence[str],
    columns: Sequence[str],
) -> dict[str, list[Row]]:
    """Compute the mean and the standard deviation of columns over files.

    If there are several files, the result contains one table with a row per group; otherwise it is
    empty.

    Examples
    --------
    >>> rows = [{"data": "a", "n": 8, "mae": 1.0}, {"data": "b", "n": 8, "mae": 3.0}]
    >>> average_over_models(rows, {"a", "b"}, ["n"], ["mae"])
    {'over-models': [{'n': 8, 'models': 2, 'mae': 2.0, 'mae_sd': 1.4142135623730951}]}
    """
    if len(set(files)) < 2:
        return {}
    averages: list[Row] = []
    rows_of_files = [row for row in rows if row["data"] in files]
    for group in group_rows(rows_of_files, *group_columns).values():
        average: dict[str, Any] = {column: group[0][column] for column in group_columns}
        average["models"] = len(group)
        for column in columns:
            values = np.array([row[column] for row in group], dtype=np.float64)
            average[column] = float(values.mean())
            average[f"{column}_sd"] = float(values.std(ddof=1)) if len(group) > 1 else np.nan
        averages.append(average)
    return {OVER_MODELS: averages}


def column_series(
    title: str,
    rows: Sequence[Row],
    x: str,
    y: str,
    *,
    half_width: str = "",
    panel: str = "",
) -> Series:
    """Plot column `y` against column `x`; the line has a gap where a value is None.

    If `half_width` is set, the band around the line has the half-widths in this column.

    Examples
    --------
    >>> rows = [{"n": 8, "mean": 1.0, "sd": 0.5}, {"n": 16, "mean": None, "sd": 0.5}]
    >>> column_series("a", rows, "n", "mean", half_width="sd").low
    (0.5, nan)
    """
    center = _column(rows, y)
    low = np.empty(0)
    high = np.empty(0)
    if half_width:
        half_widths = _column(rows, half_width)
        low = center - half_widths
        high = center + half_widths
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


def panels_above_zero(series: Iterable[Series]) -> tuple[Series, ...]:
    """Return the lines of panels that contain at least one positive value.

    A panel without positive values cannot have a logarithmic axis.

    Examples
    --------
    >>> positive, zero = Series("log", (8.0,), (0.1,), panel="a"), Series("log", (8.0,), (0.0,))
    >>> [line.panel for line in panels_above_zero([positive, zero])]
    ['a']
    """
    lines = tuple(series)
    panels = {line.panel for line in lines if any(y > 0 for y in line.y)}
    return tuple(line for line in lines if line.panel in panels)


def signed(value: float, form: str = "{:+.1f}") -> str:
    """Format a number with a true minus sign, and without a sign if it rounds to zero.

    Examples
    --------
    >>> signed(-0.25), signed(-0.0), signed(-0.5, "{:.2f}")
    ('−0.2', '+0.0', '−0.50')
    """
    return form.format(value + 0.0).replace("-", "\u2212")


def value_range(values: Sequence[float], form: str) -> str:
    """Format the smallest and the largest value as a range, or as one number if they look equal.

    Examples
    --------
    >>> value_range([0.5, 0.25], "{:.2f}"), value_range([-0.5], "{:+.1f}")
    ('0.25 to 0.50', '−0.5')
    """
    if not values:
        return "–"
    low = signed(min(values), form)
    high = signed(max(values), form)
    return low if low == high else f"{low} to {high}"


def counted(n: float, noun: str, plural: str = "") -> str:
    """Format a count followed by a noun in the singular or plural.

    Examples
    --------
    >>> counted(1, "case"), counted(2, "case"), counted(2, "study", "studies")
    ('1 case', '2 cases', '2 studies')
    """
    if n == 1:
        return f"{n:g} {noun}"
    return f"{n:g} {plural or f'{noun}s'}"
