"""Several files as several models of one kind: the mean of what is found, and how they differ."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain_bench.studies._study import Row

#: The table of them.
OVER_MODELS: Final = "over-models"

#: What its caption says in every study.
CAPTION: Final = (
    "Mean over the files and standard deviation between them (with n - 1), each file a model."
)


def over_models(
    rows: Sequence[Row],
    files: Collection[str],
    by: Sequence[str],
    values: Mapping[str, Callable[[Row], float]],
) -> list[dict[str, Any]]:
    """Return a row for each group of the rows of files, with mean and deviation of each value.

    None with fewer than two files: then there is nothing to average.

    Examples
    --------
    >>> rows = [{"data": "a", "n": 8, "mae": 1.0}, {"data": "b", "n": 8, "mae": 3.0}]
    >>> over_models(rows, {"a", "b"}, ["n"], {"mae": lambda row: row["mae"]})
    [{'n': 8, 'models': 2, 'mae': 2.0, 'mae_sd': 1.4142135623730951}]
    """
    if len(set(files)) < 2:
        return []
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["data"] in files:
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
    out = []
    for key, mine in groups.items():
        line: dict[str, Any] = {**dict(zip(by, key, strict=True)), "models": len(mine)}
        for name, value in values.items():
            own = np.array([value(row) for row in mine], dtype=np.float64)
            line[name] = float(own.mean())
            line[f"{name}_sd"] = float(own.std(ddof=1)) if own.size > 1 else float("nan")
        out.append(line)
    return out


def tables_of(over: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """Return the table by its name; no table of one model."""
    return {OVER_MODELS: over} if over else {}
