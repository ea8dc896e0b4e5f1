"""What proposals of roles have in common: the record, and looks at names and values of columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain.tables.table import DataTable
from abstain.typing import Array

#: Words that say of which data a column or an array is, and nothing of its role.
_DATA_WORDS = frozenset({"test", "val", "valid", "validation", "train", "eval", "dev", "iid"})
#: Rows that are looked at.
N_FIRST_ROWS = 10_000

#: The role of class scores that are like those proposed and that the command does not read.
UNUSED = "unused"


@dataclass(frozen=True)
class ColumnProposal:
    """The role that a column, or a family of columns, may have.

    Attributes
    ----------
    role : str
        The option of `read_predictions`: "label", "logits", "by" and so on; "unused" for class
        scores beside the proposed ones.
    columns : tuple of str
        The columns; one beginning with "-" is turned around.
    reason : str
        What speaks for it.
    usual : bool
        Whether it is read so without being asked for.
    """

    role: str
    columns: tuple[str, ...]
    reason: str
    usual: bool = False


def plain_columns(table: DataTable) -> list[str]:
    """Return the columns with one number or text a row."""
    return [name for name, kind in table.kinds.items() if kind in {"number", "text"}]


def bare_name(name: str) -> str:
    """Return a name in lower case without the words that say of which data it is."""
    words = "".join(name.split()).casefold().replace("-", "_").split("_")
    return "_".join(word for word in words if word not in _DATA_WORDS)


def first_rows(table: DataTable, names: Sequence[str]) -> dict[str, Array]:
    """Return the first rows of columns."""
    rows = np.arange(min(table.height, N_FIRST_ROWS))
    return {name: column.values for name, column in table.rows(rows).load(names).items()}


def distinct_values(table: DataTable, name: str) -> list[Any]:
    """Return the distinct values of a column, ascending."""
    return table.load([name])[name].distinct()[1]
