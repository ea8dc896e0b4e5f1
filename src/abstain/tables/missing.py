"""Missing entries: refused by default, dropped, or taken as abstentions, and said so."""

from dataclasses import dataclass, field

import numpy as np

from abstain._foundation.option_words import option
from abstain.errors import DomainError
from abstain.tables.column import DataColumn
from abstain.typing import Array, BoolArray


@dataclass
class Missing:
    """How missing entries are treated while a table is read, and what came of it.

    Attributes
    ----------
    policy : str
        "error", "drop" or "reject".
    source : str
        Names the table in messages.
    height : int
        Number of rows.
    dropped : ndarray of bool or None
        Rows to leave out.
    abstained : ndarray of bool or None
        Rows whose prediction or class scores are missing: the model gave no answer.
    """

    policy: str
    source: str
    height: int
    dropped: BoolArray | None = None
    abstained: BoolArray | None = None
    notes: list[str] = field(default_factory=list)

    def required(self, column: DataColumn, what: str) -> DataColumn:
        """Treat a column without which a row means nothing: labels, losses, weights."""
        if column.missing is not None:
            if self.policy != "drop":
                raise DomainError(self._refusal(column.name, column.missing, what, reject=False))
            self._drop(column.missing, f"{what} in {column.name!r}")
        return column

    def confidence(self, column: DataColumn) -> DataColumn:
        """Treat a confidence: an abstention gets the lowest confidence of the column."""
        # A log-probability of -inf is an answer that the model gave no chance at all.
        lowest = column.values == -np.inf
        missing = lowest if column.missing is None else lowest | column.missing
        if not missing.any():
            return column
        if self.policy == "error":
            raise DomainError(self._refusal(column.name, missing, "confidence"))
        if self.policy == "drop":
            self._drop(missing, f"confidence in {column.name!r}")
            return column
        if missing.all():
            msg = f"{self.source}: {column.name!r} (confidence) has no value in any row"
            raise DomainError(msg)
        values = column.values.copy()
        values[missing] = values[~missing].min()
        self.notes.append(
            f"{count(missing)} have no confidence in {column.name!r} and count as abstentions: "
            f"they got the lowest confidence of the column, {values[missing][0]!s}"
        )
        return DataColumn(column.name, values, None, None, column.origin)

    def answers(self, missing: BoolArray, name: str, what: str) -> None:
        """Treat rows in which the model gave no answer."""
        if not missing.any():
            return
        if self.policy == "error":
            raise DomainError(self._refusal(name, missing, what))
        if self.policy == "drop":
            self._drop(missing, f"{what} in {name!r}")
            return
        self.abstained = missing if self.abstained is None else self.abstained | missing
        self.notes.append(
            f"{count(missing)} have no {what} in {name!r} and count as abstentions: always wrong"
        )

    @property
    def kept(self) -> Array | None:
        """The rows to keep; None for all."""
        if self.dropped is None:
            return None
        if self.dropped.all():
            msg = f"{self.source}: every row lacks a value that is needed; none is left"
            raise DomainError(msg)
        return np.flatnonzero(~self.dropped)

    def _drop(self, missing: BoolArray, what: str) -> None:
        self.dropped = missing if self.dropped is None else self.dropped | missing
        self.notes.append(f"{count(missing)} dropped: no {what}")

    def _refusal(self, name: str, missing: BoolArray, what: str, *, reject: bool = True) -> str:
        first = int(np.flatnonzero(missing)[0])
        ways = f"{option('missing', 'drop')} leaves these rows out"
        if reject:
            reject_them = option("missing", "reject")
            ways += f"; {reject_them} counts them as abstentions with the lowest confidence"
        return (
            f"{self.source}: {count(missing)} have no {what} in {name!r}, the first in row "
            f"{first}, counted from 0. {ways}"
        )


def count(mask: BoolArray) -> str:
    """Write a number of rows with its share."""
    some = int(mask.sum())
    return f"{some:,} of {mask.size:,} rows ({some / mask.size:.2%})"
