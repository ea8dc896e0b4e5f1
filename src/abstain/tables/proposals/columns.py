"""The record of a proposed role, and functions that inspect names and values of columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain.tables.table import DataTable
from abstain.typing import Array

#: Words that name a data set and not the role of a column.
_DATA_WORDS = frozenset({"test", "val", "valid", "validation", "train", "eval", "dev", "iid"})
#: Maximum number of rows that are inspected.
N_FIRST_ROWS = 10_000

#: The role of further class scores, which the proposed command does not read.
UNUSED = "unused"


@dataclass(frozen=True)
class ColumnProposal:
    """A proposed role of a column or of a family of columns.

    Attributes
    ----------
    role : str
        An option of `read_predictions` ("label", "logits", "by"), or "unused" for further class
        scores.
    columns : tuple of str
        The columns; a name that begins with "-" is negated.
    reason : str
        The reason for the proposal.
    is_default : bool
        Whether `read_predictions` selects the column by default.
    """

    role: str
    columns: tuple[str, ...]
    reason: str
    is_default: bool = False


def flat_columns(table: DataTable) -> list[str]:
    """Return the columns with one number or text per row."""
    return [name for name, kind in table.kind_by_column.items() if kind in {"number", "text"}]


def bare_name(name: str) -> str:
    """Return a name in lower case, without words that name a data set."""
    words = "".join(name.split()).casefold().replace("-", "_").split("_")
    return "_".join(word for word in words if word not in _DATA_WORDS)


def first_rows(table: DataTable, names: Sequence[str]) -> dict[str, Array]:
    """Return the first rows of several columns."""
    rows = np.arange(min(table.n_rows, N_FIRST_ROWS))
    return {name: column.values for name, column in table.select_rows(rows).load(names).items()}


def distinct_values(table: DataTable, name: str) -> list[Any]:
    """Return the distinct values of a column in ascending order."""
    return table.load([name])[name].distinct()[1]
