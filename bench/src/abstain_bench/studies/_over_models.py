"""Average the results over several files, each with the predictions of one model."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain_bench.studies._tables import Row, group_rows

#: Name of the table of the averages.
OVER_MODELS: Final = "over-models"

#: Caption of this table in every study.
OVER_MODELS_CAPTION: Final = (
    "Mean and standard deviation (with n - 1) over the files, each with the predictions of one "
    "model."
)


def average_over_models(
    rows: Sequence[Row],
    files: Collection[str],
    group_columns: Sequence[str],
    values: Mapping[str, Callable[[Row], float]],
) -> list[dict[str, Any]]:
    """Return mean and standard deviation of each value over the files, one row for each group.

    The result is empty if there are fewer than two files.

    Examples
    --------
    >>> rows = [{"data": "a", "n": 8, "mae": 1.0}, {"data": "b", "n": 8, "mae": 3.0}]
    >>> average_over_models(rows, {"a", "b"}, ["n"], {"mae": lambda row: row["mae"]})
    [{'n': 8, 'models': 2, 'mae': 2.0, 'mae_sd': 1.4142135623730951}]
    """
    if len(set(files)) < 2:
        return []
    averages = []
    for group in group_rows((row for row in rows if row["data"] in files), *group_columns).values():
        average: dict[str, Any] = {column: group[0][column] for column in group_columns}
        average["models"] = len(group)
        for name, value in values.items():
            model_values = np.array([value(row) for row in group], dtype=np.float64)
            average[name] = float(model_values.mean())
            average[f"{name}_sd"] = float(model_values.std(ddof=1)) if len(group) > 1 else np.nan
        averages.append(average)
    return averages


def over_models_table(averages: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """Return the averages as a table by name, or no table if there are none."""
    return {OVER_MODELS: averages} if averages else {}
