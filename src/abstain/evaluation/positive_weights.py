"""Removal of rows with weight 0, which happens before all other steps."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from abstain._foundation.checks import positive_weight_mask
from abstain.errors import DomainError
from abstain.predictions import CostMatrix, Predictions
from abstain.typing import BoolArray, Split


def positive_weight_rows(data: Any, *columns: Any, where: str = "") -> tuple[Any, ...]:
    """Return the rows with a positive weight, of the predictions and of the columns.

    A column has one entry per row. Other arguments, such as the name of a loss, and data that are
    no `Predictions` are returned unchanged. Predictions without positive weights raise a
    DomainError.
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
    """Return the rows with a positive weight of each split, and of the losses.

    Splits without such rows are removed. Samples without ids keep their row numbers.
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
    """Return the rows with a positive weight; None if there are none."""
    rows = _positive_rows(predictions)
    if rows is None:
        return predictions
    return _numbered(predictions).subset(rows) if rows.any() else None


def positive_weight_runs(
    runs: Mapping[tuple[Split, str], Mapping[str, Predictions]], loss: Any
) -> tuple[dict[tuple[Split, str], dict[str, Predictions]], Any]:
    """Return the rows of each run that have a positive weight for some method, and their losses.

    Runs of a data set with equally many rows keep the same rows, so that their samples stay
    matched. Runs without such rows are removed.
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
    """Return a mask of the rows with a positive weight in any table; None if all rows have one."""
    each = [_positive_rows(part) for part in parts]
    known = [rows for rows in each if rows is not None]
    if len(known) < len(each):
        return None
    rows = np.logical_or.reduce(known)
    return None if rows.all() else rows


def zero_weights_error(where: str = "") -> DomainError:
    """Return the error for data whose weights are all 0."""
    msg = "`weight` must not be zero everywhere; got only zeros"
    return DomainError(f"{where}: {msg}" if where else msg)


def _numbered(predictions: Predictions) -> Predictions:
    """Return predictions whose ids are their row numbers, unless they have ids.

    The samples keep these ids if other rows are removed.
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
    """Return some rows of a column; a column of another length is returned unchanged."""
    if column is None or isinstance(column, str | CostMatrix):
        return column
    values = np.asarray(column)
    return values[rows] if values.shape[:1] == rows.shape else column
