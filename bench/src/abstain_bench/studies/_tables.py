"""Tables of studies: rows, and groups of rows."""

from collections.abc import Iterable, Mapping
from typing import Any

#: One row of a table: column names to numbers, texts, booleans or None.
Row = Mapping[str, Any]


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
