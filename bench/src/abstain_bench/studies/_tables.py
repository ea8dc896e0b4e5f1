"""Tables of studies: groups of rows, and averages over several files."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

#: One row of a table: column names to numbers, texts, booleans or None.
Row = Mapping[str, Any]

#: Name and caption of the table of the averages over several files.
OVER_MODELS: Final = "over-models"
OVER_MODELS_CAPTION: Final = (
    "Mean and standard deviation (with n - 1) over the files, each with the predictions of one "
    "model."
)


def group_rows(rows: Iterable[Row], *columns: str) -> dict[Any, list[Row]]:
    """Group rows by their value in one column, or by the tuple of their values in several.

    Groups are in the order of their first rows.

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
    """Return the distinct values of a column in the order of the rows."""
    return tuple(dict.fromkeys(row[column] for row in rows))


def column_total(rows: Iterable[Row], column: str) -> int:
    """Return the sum of a column of counts."""
    return sum(row[column] for row in rows)


def average_over_models(
    rows: Sequence[Row],
    files: Collection[str],
    group_columns: Sequence[str],
    columns: Sequence[str],
) -> dict[str, list[Row]]:
    """Return the table of mean and standard deviation over the files, one row for each group.

    There is no table if there are fewer than two files.

    Examples
    --------
    >>> rows = [{"data": "a", "n": 8, "mae": 1.0}, {"data": "b", "n": 8, "mae": 3.0}]
    >>> average_over_models(rows, {"a", "b"}, ["n"], ["mae"])
    {'over-models': [{'n': 8, 'models': 2, 'mae': 2.0, 'mae_sd': 1.4142135623730951}]}
    """
    if len(set(files)) < 2:
        return {}
    averages: list[Row] = []
    for group in group_rows((row for row in rows if row["data"] in files), *group_columns).values():
        average: dict[str, Any] = {column: group[0][column] for column in group_columns}
        average["models"] = len(group)
        for column in columns:
            values = np.array([row[column] for row in group], dtype=np.float64)
            average[column] = float(values.mean())
            average[f"{column}_sd"] = float(values.std(ddof=1)) if len(group) > 1 else np.nan
        averages.append(average)
    return {OVER_MODELS: averages}
