"""One column of a table in NumPy: numbers, or text as codes, and what its missing entries mean.

Files and frames of every kind end here, so that what follows knows neither polars nor pandas.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._foundation.checks import FIRST_INEXACT_INTEGER, reject_rounding_ties
from abstain._foundation.notes import DROPPED, READING, Note, RowCount
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, ShapeError
from abstain.tables.number_formats import parse_numbers
from abstain.typing import Array, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import polars as pl

#: Stands in for a missing value of a text or of a column that splits the rows.
MISSING = "(missing)"


@dataclass(frozen=True, eq=False)
class DataColumn:
    """A column: numbers of shape (n,), a block (n, ...), or text as codes into `texts`."""

    #: The column's name in the file.
    name: str
    #: Numbers or booleans; for text, the code of each entry, -1 where it is missing.
    values: Array
    #: The distinct texts in ascending order; None for numbers.
    texts: Array | None = None
    #: Where the entry is null or NaN; None when nothing is missing.
    missing: BoolArray | None = None
    #: What the file calls the type, for messages.
    origin: str = ""

    @property
    def is_text(self) -> bool:
        """Whether the column holds text."""
        return self.texts is not None

    @cached_property
    def whole(self) -> bool:
        """Whether every number present is a whole number (or the column holds booleans)."""
        if self.values.dtype.kind != "f":
            return True
        present = self.values if self.missing is None else self.values[~self.missing]
        return bool(np.isfinite(present).all() and (np.floor(present) == present).all())

    def rows(self, keep: Array) -> "DataColumn":
        """Return the column at some rows."""
        missing = None if self.missing is None else self.missing[keep]
        if missing is not None and not missing.any():
            missing = None
        values, texts = self.values[keep], self.texts
        if texts is not None:
            # A text that none of these rows has is none of their column's.
            used = np.zeros(texts.size + 1, np.bool_)
            used[values] = True
            used[-1] = False
            values = np.append(np.cumsum(used[:-1]) - 1, -1)[values]
            texts = texts[used[:-1]]
        return replace(self, values=values, texts=texts, missing=missing)

    def shown(self, row: int) -> str:
        """Return one entry as messages print it."""
        if self.missing is not None and self.missing[row]:
            return MISSING
        if self.texts is not None:
            return repr(str(self.texts[self.values[row]]))
        return str(self.values[row])

    def distinct(self) -> tuple[IntArray, list[Any]]:
        """Return a code for each row and the distinct values, ascending, missing ones last.

        What stands in a missing entry is no value.
        """
        if self.values.ndim != 1:
            raise ShapeError(
                f"column {self.name!r} must hold one number or text a row; got shape "
                f"{self.values.shape}"
            )
        there = slice(None) if self.missing is None else ~self.missing
        found, own = np.unique(self.values[there], return_inverse=True)
        names = found.tolist() if self.texts is None else [str(t) for t in self.texts[found]]
        codes = np.full(self.values.size, len(names))
        codes[there] = own
        return codes, names if self.missing is None else [*names, MISSING]

    def as_text(self) -> "DataColumn":
        """Return numbers as text: whole numbers without a decimal point."""
        if self.is_text:
            return self
        values = self.values
        if self.whole and values.dtype.kind == "f":
            values = np.where(np.isfinite(values), values, 0).astype(np.int64)
        codes, names = replace(self, values=values).distinct()
        present = names if self.missing is None else names[:-1]
        texts = np.array([str(v) for v in present], dtype=object)
        order = np.argsort(texts, kind="stable")
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        # The code of a missing entry is behind all others.
        return replace(self, values=np.append(place, -1)[codes], texts=texts[order])

    def strings(self) -> Array:
        """Return a text column as an object array of str, None where missing."""
        texts = np.array([*(() if self.texts is None else self.texts), None], dtype=object)
        out: Array = texts[self.values]
        return out


def from_array(values: Array, name: str) -> DataColumn:
    """Wrap a NumPy array: numbers stay as they are, everything else goes through polars."""
    if values.dtype.kind == "c":
        raise InputError(f"column {name!r} holds complex numbers; real numbers are needed")
    if values.dtype.kind in "biuf":
        missing = None
        if values.dtype.kind == "f" and values.ndim == 1:
            nan = np.isnan(values)
            missing = nan if nan.any() else None
        return DataColumn(name, values, None, missing, str(values.dtype))
    import polars as pl

    if values.ndim != 1:
        raise InputError(f"column {name!r} must have one axis when it holds {values.dtype}")
    if values.dtype.kind == "V":
        raise InputError(
            f"column {name!r} holds records or untyped bytes ({values.dtype}); save each field "
            "as an array of its own"
        )
    try:
        entries = values.tolist() if values.dtype.kind != "M" else values
        series = pl.Series(name, entries, strict=False)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"column {name!r} mixes kinds of values that do not fit in one column"
        ) from error
    return from_series(series)


def from_series(series: "pl.Series") -> DataColumn:
    """Convert a polars series."""
    import polars as pl

    dtype = series.dtype
    if isinstance(dtype, pl.List | pl.Array):
        return _from_lists(series)
    if dtype == pl.Boolean or dtype.is_numeric():
        return _from_numbers(series)
    if dtype == pl.Null:
        nothing = np.ones(len(series), dtype=np.bool_)
        return DataColumn(series.name, np.full(len(series), np.nan), None, nothing, "empty")
    return _from_text(series)


def _from_numbers(series: "pl.Series") -> DataColumn:
    import polars as pl

    origin = str(series.dtype)
    if origin in {"Int128", "UInt128"}:
        # NumPy has no such integers; as floats, different labels would become one.
        return _from_text(series)
    if series.dtype.is_decimal():
        series = series.cast(pl.Float64)
    null = series.is_null().to_numpy() if series.null_count() else None
    if null is not None:
        zero = False if series.dtype == pl.Boolean else 0
        series = series.fill_null(float("nan") if series.dtype.is_float() else zero)
    values = series.to_numpy()
    if values.dtype.kind == "f" and null is None:
        null = np.isnan(values)
        null = null if null.any() else None
    elif values.dtype.kind == "f":
        null = np.isnan(values)
    return DataColumn(series.name, values, None, null, origin)


def _from_text(series: "pl.Series") -> DataColumn:
    import polars as pl

    origin = str(series.dtype)
    try:
        series = series.cast(pl.String)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"column {series.name!r} holds {origin} values, which cannot be read as text"
        ) from error
    texts = series.drop_nulls().unique().sort()
    codes = series.cast(pl.Enum(texts)).to_physical()
    missing = series.is_null().to_numpy() if series.null_count() else None
    values = codes.cast(pl.Int32).fill_null(-1).to_numpy()
    return DataColumn(series.name, values, texts.to_numpy().astype(object), missing, origin)


def _from_lists(series: "pl.Series") -> DataColumn:
    """Stack a column of equally long lists into a block (n, k)."""
    import polars as pl

    lengths = series.list.len() if isinstance(series.dtype, pl.List) else None
    if series.null_count() or (lengths is not None and lengths.n_unique() > 1):
        raise InputError(
            f"column {series.name!r} holds lists of differing length; they must be equally long"
        )
    inner = series.explode()
    if not inner.dtype.is_numeric() or inner.null_count():
        raise InputError(
            f"column {series.name!r} holds lists of {inner.dtype}; lists of numbers are needed"
        )
    return DataColumn(
        series.name, inner.to_numpy().reshape(len(series), -1), None, None, str(series.dtype)
    )


def to_number(column: DataColumn) -> DataColumn:
    """Read a text column of a text format (CSV) as numbers; what is no number stays text.

    "NA", "N/A", "null" and "None" count as missing, as they do where such files are written.
    Percentages such as "90%" become fractions.
    """
    if column.texts is None:
        return column
    words = [str(text).strip() for text in column.texts]
    numbers = parse_numbers(words)
    if numbers is None:
        return column
    _refuse_tied(words, numbers, column.name)
    # Missing entries have the code -1.
    number_by_code = np.append(numbers, np.nan)
    return from_array(number_by_code[column.values], column.name)


def _refuse_tied(words: list[str], numbers: FloatArray, name: str) -> None:
    """Refuse whole numbers that were written apart and would be one float64."""
    large = [
        i
        for i in np.flatnonzero(np.abs(numbers) >= FIRST_INEXACT_INTEGER)
        if words[i].lstrip("+-").isdigit()
    ]
    exact = np.array([int(words[i]) for i in large], dtype=object)
    reject_rounding_ties(exact, numbers[large], name)


# --------------------------------------------------------------------------- missing entries
class NoRowLeftError(DomainError):
    """Every row of a table lacks a value; of a part of a larger one no more than its rows do."""

    def __init__(self, message: str, notes: tuple[Note, ...] = (), n_rows: int = 0) -> None:
        super().__init__(message)
        self.notes, self.n_rows = notes, n_rows


@dataclass
class Missing:
    """How missing entries are treated while a table is read, and what came of it."""

    #: "error", "drop" or "reject".
    policy: str
    #: Names the table in messages.
    source: str
    #: Number of rows.
    height: int
    #: Whether these are some of the rows, of which nobody knows the lowest confidence of all.
    partial: bool = False
    #: Rows to leave out.
    dropped: BoolArray | None = None
    #: Rows whose prediction or class scores are missing: the model gave no answer.
    abstained: BoolArray | None = None
    notes: list[Note] = field(default_factory=list)

    def required(self, column: DataColumn, what: str, *, may_lack: bool = False) -> DataColumn:
        """Treat a column without which a row means nothing: labels, losses, weights.

        If `may_lack` is set, "reject" leaves such rows out too, since no grade can be given.
        """
        if column.missing is not None:
            is_dropped = self.policy == "drop" or (may_lack and self.policy == "reject")
            if not is_dropped:
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
        is_kept = np.ones(missing.size, np.bool_) if self.dropped is None else ~self.dropped
        is_present = is_kept & ~missing
        if not is_present.any():
            raise DomainError(
                f"{self.source}: {column.name!r} (confidence) has no value in any row"
            )
        missing &= is_kept
        if not missing.any():
            return column
        values = column.values.copy()
        values[missing] = values[is_present].min()
        text = (
            f"have no confidence in {column.name!r} and count as abstentions: "
            f"they got the lowest confidence of the column, {values[missing][0]!s}"
        )
        self.notes.append(Note(READING, text, rows=count(missing)))
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
        text = f"have no {what} in {name!r} and count as abstentions: always wrong"
        self.notes.append(Note(READING, text, rows=count(missing)))

    @property
    def kept(self) -> Array | None:
        """The rows to keep; None for all."""
        if self.dropped is None:
            return None
        if self.dropped.all():
            raise NoRowLeftError(
                f"{self.source}: every row lacks a value that is needed; none is left",
                tuple(self.notes),
                self.height,
            )
        return np.flatnonzero(~self.dropped)

    def _drop(self, missing: BoolArray, what: str) -> None:
        self.dropped = missing if self.dropped is None else self.dropped | missing
        self.notes.append(Note(DROPPED, f"no {what}", rows=count(missing)))

    def _refusal(self, name: str, missing: BoolArray, what: str, *, reject: bool = True) -> str:
        first = int(np.flatnonzero(missing)[0])
        ways = f"{format_option('missing', 'drop')} leaves these rows out"
        if reject and not self.partial:
            reject_them = format_option("missing", "reject")
            ways += f"; {reject_them} counts them as abstentions with the lowest confidence"
        return (
            f"{self.source}: {count(missing)} have no {what} in {name!r}, the first in row "
            f"{first}, counted from 0. {ways}"
        )


def count(mask: BoolArray) -> RowCount:
    """Count the rows of a mask."""
    return RowCount(int(mask.sum()), mask.size)
