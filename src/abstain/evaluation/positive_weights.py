"""The rows of predictions that count: rows with weight 0 are dropped first of all."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from abstain._foundation.weights import positive_weight_mask
from abstain.errors import DomainError
from abstain.predictions import CostMatrix, Predictions
from abstain.typing import BoolArray, Split


def positive_weight_rows(data: Any, *columns: Any, where: str = "") -> tuple[Any, ...]:
    """Return the rows with a positive weight, and the same rows of columns with one entry per row.

    Names, such as that of a loss, and data that are no `Predictions` stay as they are. Refuse
    predictions without such rows.
    """
    rows = _positive_rows(data) if isinstance(data, Predictions) else None
    if rows is None:
        return data, *columns
    if not rows.any():
        raise zero_weights_error(where)
    return data.subset(rows), *(select_rows(column, rows) for column in columns)


def positive_weight_splits(
    splits: Mapping[Split, Predictions], loss: Any = None
) -> tuple[dict[Split, Predictions], Any]:
    """Return the rows of each split with a positive weight, and their losses as `counted` does.

    A split without any such row is left out. Samples without ids keep the numbers of their rows.
    """
    found = {}
    for split, part in splits.items():
        rows = _positive_rows(part)
        if rows is None:
            found[split] = part
        elif rows.any():
            found[split], loss = positive_weight_rows(_numbered(part), loss)
    if not found:
        raise zero_weights_error()
    return found, loss


def positive_weight_batch(predictions: Predictions) -> Predictions | None:
    """Return the rows with a positive weight; None where there are none."""
    rows = _positive_rows(predictions)
    if rows is None:
        return predictions
    return _numbered(predictions).subset(rows) if rows.any() else None


def positive_weight_runs(
    runs: Mapping[tuple[Split, str], Mapping[str, Predictions]], loss: Any
) -> tuple[dict[tuple[Split, str], dict[str, Predictions]], Any]:
    """Return, for each data set and run, the rows of the models that have a weight somewhere.

    Runs of a data set that have equally many rows keep the same rows, so that samples stay matched
    between them. A run without such rows is left out. `loss` has its rows dropped likewise.
    """
    found = {}
    for (data, run), models in runs.items():
        n = next(iter(models.values())).n
        others = [part for (d, _), ms in runs.items() if d == data for part in ms.values()]
        rows = _rows_of_any(models.values() if any(p.n != n for p in others) else others)
        if rows is None:
            found[data, run] = dict(models)
        elif rows.any():
            found[data, run] = {name: part.subset(rows) for name, part in models.items()}
            loss = select_rows(loss, rows)
    if not found:
        raise zero_weights_error()
    return found, loss


def _rows_of_any(parts: Iterable[Predictions]) -> BoolArray | None:
    """Return which rows have a positive weight in any part; None where all rows have."""
    each = [_positive_rows(part) for part in parts]
    known = [rows for rows in each if rows is not None]
    if len(known) < len(each):
        return None
    rows = np.logical_or.reduce(known)
    return None if rows.all() else rows


def zero_weights_error(where: str = "") -> DomainError:
    """Return the error for data in which every weight is 0."""
    msg = "`weight` must not be zero everywhere; got only zeros"
    return DomainError(f"{where}: {msg}" if where else msg)


def _numbered(predictions: Predictions) -> Predictions:
    """Return predictions whose samples are named by the numbers of their rows if they have no ids.

    They keep these names when other rows are dropped.
    """
    if predictions.ids is not None:
        return predictions
    named = object.__new__(type(predictions))
    named.__dict__.update(predictions.__dict__)
    object.__setattr__(named, "ids", np.arange(predictions.n))
    return named


def _positive_rows(predictions: Predictions) -> BoolArray | None:
    rows: BoolArray | None = positive_weight_mask(predictions.weight)
    return rows


def select_rows(column: Any, rows: BoolArray) -> Any:
    """Return some rows of a column; one of another length is refused where it is read."""
    if column is None or isinstance(column, str | CostMatrix):
        return column
    values = np.asarray(column)
    return values[rows] if values.shape[:1] == rows.shape else column
