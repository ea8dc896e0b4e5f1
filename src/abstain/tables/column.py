"""Columns of numbers or text, and the treatment of missing entries.

The readers convert all files and dataframes to these columns, so other modules do not depend on
polars or pandas.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._foundation.checks import FIRST_INEXACT_INTEGER, reject_rounding_ties
from abstain._foundation.notes import ABSTENTIONS, DROPPED, Note, RowCount
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, ShapeError
from abstain.tables.number_formats import parse_numbers
from abstain.typing import Array, BoolArray, IntArray

if TYPE_CHECKING:
    import polars as pl

#: Text that stands for a missing entry of a column of text or of a split column.
MISSING = "(missing)"


@dataclass(frozen=True, eq=False)
class DataColumn:
    """A column of a table.

    The values are numbers of shape (n,), arrays of shape (n, ...), or indices of texts in `texts`.
    """

    #: Name of the column in the file.
    name: str
    #: Numbers or booleans. For text, the code of each entry, with -1 for a missing entry.
    values: Array
    #: Distinct texts in ascending order, or None for a column of numbers.
    texts: Array | None = None
    #: Mask of the entries that are null or NaN, or None if no entry is missing.
    is_missing: BoolArray | None = None
    #: Name of the data type in the file.
    dtype_name: str = ""

    @property
    def is_text(self) -> bool:
        """Whether the column contains text."""
        return self.texts is not None

    @cached_property
    def has_only_integers(self) -> bool:
        """Whether all numbers, except missing entries, are integers or booleans."""
        if self.values.dtype.kind != "f":
            return True
        present = self.values if self.is_missing is None else self.values[~self.is_missing]
        return bool(np.isfinite(present).all() and (np.floor(present) == present).all())

    def rows(self, rows: Array) -> "DataColumn":
        """Return the column with the selected rows only.

        Texts that do not occur in these rows are removed.
        """
        is_missing = None if self.is_missing is None else self.is_missing[rows]
        if is_missing is not None and not is_missing.any():
            is_missing = None
        values, texts = self.values[rows], self.texts
        if texts is not None:
            # The code of missing entries is -1, which indexes the last entry of these arrays.
            is_used_by_code = np.zeros(texts.size + 1, np.bool_)
            is_used_by_code[values] = True
            is_used = is_used_by_code[:-1]
            new_code_by_code = np.append(np.cumsum(is_used) - 1, -1)
            values = new_code_by_code[values]
            texts = texts[is_used]
        return replace(self, values=values, texts=texts, is_missing=is_missing)

    def format_entry(self, row: int) -> str:
        """Return an entry as text for a message."""
        if self.is_missing is not None and self.is_missing[row]:
            return MISSING
        if self.texts is not None:
            return repr(str(self.texts[self.values[row]]))
        return str(self.values[row])

    def distinct(self) -> tuple[IntArray, list[Any]]:
        """Return the index of the value of each row, and the distinct values in ascending order.

        If there are missing entries, `MISSING` is the last value.
        """
        if self.values.ndim != 1:
            raise ShapeError(
                f"column {self.name!r} must have one number or text per row; got shape "
                f"{self.values.shape}"
            )
        if self.is_missing is None:
            values, codes = np.unique(self.values, return_inverse=True)
            return codes, self._names_of(values)
        is_present = ~self.is_missing
        values, present_codes = np.unique(self.values[is_present], return_inverse=True)
        names = self._names_of(values)
        codes = np.full(self.values.size, len(names))
        codes[is_present] = present_codes
        return codes, [*names, MISSING]

    def _names_of(self, values: Array) -> list[Any]:
        """Return the numbers, or the texts instead of their indices."""
        if self.texts is None:
            names: list[Any] = values.tolist()
            return names
        return [str(text) for text in self.texts[values]]

    def as_text(self) -> "DataColumn":
        """Convert numbers to text. Integers have no decimal point."""
        if self.is_text:
            return self
        values = self.values
        if self.has_only_integers and values.dtype.kind == "f":
            values = np.where(np.isfinite(values), values, 0).astype(np.int64)
        codes, names = replace(self, values=values).distinct()
        present = names if self.is_missing is None else names[:-1]
        texts = np.array([str(value) for value in present], dtype=object)
        order = np.argsort(texts, kind="stable")
        text_code = np.empty(order.size, dtype=np.int64)
        text_code[order] = np.arange(order.size)
        # `distinct` gives missing entries the last code, so this array ends with their code -1.
        text_code_by_code = np.append(text_code, -1)
        return replace(self, values=text_code_by_code[codes], texts=texts[order])

    def to_strings(self) -> Array:
        """Return a column of text as an array of str objects, with None for missing entries."""
        texts = [] if self.texts is None else list(self.texts)
        # The code of missing entries is -1, which indexes the last entry.
        string_by_code = np.array([*texts, None], dtype=object)
        strings: Array = string_by_code[self.values]
        return strings


def from_array(values: Array, name: str) -> DataColumn:
    """Convert a NumPy array to a column. Arrays that are not numeric are converted by polars."""
    if values.dtype.kind == "c":
        raise InputError(f"column {name!r} contains complex numbers; only real numbers are read")
    if values.dtype.kind in "biuf":
        is_missing = None
        if values.dtype.kind == "f" and values.ndim == 1:
            is_nan = np.isnan(values)
            is_missing = is_nan if is_nan.any() else None
        return DataColumn(name, values, None, is_missing, str(values.dtype))
    import polars as pl

    if values.ndim != 1:
        raise InputError(f"column {name!r} has type {values.dtype}, so it must have one axis")
    if values.dtype.kind == "V":
        raise InputError(
            f"column {name!r} contains records or untyped bytes ({values.dtype}); save each field "
            "as a separate array"
        )
    try:
        entries = values.tolist() if values.dtype.kind != "M" else values
        series = pl.Series(name, entries, strict=False)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"column {name!r} mixes values of types that do not fit in one column"
        ) from error
    return from_series(series)


def from_series(series: "pl.Series") -> DataColumn:
    """Convert a polars series to a column."""
    import polars as pl

    dtype = series.dtype
    if isinstance(dtype, pl.List | pl.Array):
        return _from_lists(series)
    if dtype == pl.Boolean or dtype.is_numeric():
        return _from_numbers(series)
    if dtype == pl.Null:
        values = np.full(len(series), np.nan)
        return DataColumn(series.name, values, None, np.ones(len(series), np.bool_), "empty")
    return _from_text(series)


def _from_numbers(series: "pl.Series") -> DataColumn:
    """Convert a polars series of numbers or booleans to a column."""
    import polars as pl

    dtype_name = str(series.dtype)
    if dtype_name in {"Int128", "UInt128"}:
        # NumPy has no integers of 128 bits, and different labels could become equal floats.
        return _from_text(series)
    if series.dtype.is_decimal():
        series = series.cast(pl.Float64)
    is_missing = series.is_null().to_numpy() if series.null_count() else None
    if is_missing is not None:
        zero = False if series.dtype == pl.Boolean else 0
        series = series.fill_null(float("nan") if series.dtype.is_float() else zero)
    values = series.to_numpy()
    if values.dtype.kind == "f":
        is_nan = np.isnan(values)
        is_missing = is_nan if is_nan.any() else None
    return DataColumn(series.name, values, None, is_missing, dtype_name)


def _from_text(series: "pl.Series") -> DataColumn:
    """Convert a polars series to a column of text."""
    import polars as pl

    dtype_name = str(series.dtype)
    try:
        series = series.cast(pl.String)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"column {series.name!r} contains {dtype_name} values, which cannot be read as text"
        ) from error
    texts = series.drop_nulls().unique().sort()
    enum_codes = series.cast(pl.Enum(texts)).to_physical()
    is_missing = series.is_null().to_numpy() if series.null_count() else None
    codes = enum_codes.cast(pl.Int32).fill_null(-1).to_numpy()
    return DataColumn(series.name, codes, texts.to_numpy().astype(object), is_missing, dtype_name)


def _from_lists(series: "pl.Series") -> DataColumn:
    """Convert a series of n lists of length k to an array of shape (n, k)."""
    import polars as pl

    lengths = series.list.len() if isinstance(series.dtype, pl.List) else None
    if series.null_count() or (lengths is not None and lengths.n_unique() > 1):
        raise InputError(
            f"column {series.name!r} contains lists of different lengths; they must be equal"
        )
    numbers = series.explode()
    if not numbers.dtype.is_numeric() or numbers.null_count():
        raise InputError(
            f"column {series.name!r} contains lists of {numbers.dtype}; only lists of numbers are "
            "read"
        )
    block = numbers.to_numpy().reshape(len(series), -1)
    return DataColumn(series.name, block, None, None, str(series.dtype))


def to_number(column: DataColumn, decimal: str = ".") -> DataColumn:
    """Convert a column of text to numbers if every text is a number.

    This applies to files without data types, such as CSV. "NA", "N/A", "null" and "None" are
    missing numbers. Percentages such as "90%" become fractions.
    """
    if column.texts is None:
        return column
    texts = [str(text).strip() for text in column.texts]
    if decimal == ",":
        texts = [text.replace(",", ".") if "." not in text else text for text in texts]
    numbers = parse_numbers(texts)
    if numbers is None:
        return column
    # Different integers must not become the same float64 number.
    is_large = np.abs(numbers) >= FIRST_INEXACT_INTEGER
    large = [i for i in np.flatnonzero(is_large) if texts[i].lstrip("+-").isdigit()]
    exact = np.array([int(texts[i]) for i in large], dtype=object)
    reject_rounding_ties(exact, numbers[large], column.name)
    # The code of missing entries is -1, which indexes the last entry.
    number_by_code = np.append(numbers, np.nan)
    return from_array(number_by_code[column.values], column.name)


# --------------------------------------------------------------------------- missing entries
class NoRowsLeftError(DomainError):
    """Error that is raised if a required value is missing in every row of a table."""

    def __init__(self, message: str, notes: tuple[Note, ...] = (), n_rows: int = 0) -> None:
        super().__init__(message)
        self.notes, self.n_rows = notes, n_rows


@dataclass
class MissingEntries:
    """Policy for the missing entries of a table, with notes on the affected rows."""

    #: One of "error", "drop" and "reject".
    policy: str
    #: Name of the table in messages.
    source: str
    n_rows: int
    #: Whether the table is a chunk, for which the lowest confidence of all rows is not available.
    is_chunk: bool = False
    #: Mask of the dropped rows, or None if no row is dropped.
    is_dropped: BoolArray | None = None
    #: Mask of the rows without a prediction or class scores, or None if every row has an answer.
    is_abstention: BoolArray | None = None
    notes: list[Note] = field(default_factory=list)

    def handle_required(
        self, column: DataColumn, role: str, *, may_lack: bool = False
    ) -> DataColumn:
        """Drop rows without a required value such as a label, or raise an error.

        If `may_lack` is True, the policy "reject" also drops such rows, because nothing can replace
        a missing grade.
        """
        if column.is_missing is not None:
            is_dropped = self.policy == "drop" or (may_lack and self.policy == "reject")
            if not is_dropped:
                raise DomainError(
                    self._message(column.name, column.is_missing, role, can_reject=False)
                )
            self._drop(column.is_missing, f"{role} in {column.name!r}")
        return column

    def fill_confidence(self, column: DataColumn) -> DataColumn:
        """Treat missing confidences by the policy.

        With the policy "reject", they are replaced by the lowest confidence of the column.
        """
        # A log-probability is -inf if the model assigned probability 0 to the answer.
        is_missing = column.values == -np.inf
        if column.is_missing is not None:
            is_missing |= column.is_missing
        if not is_missing.any():
            return column
        if self.policy == "error":
            raise DomainError(self._message(column.name, is_missing, "confidence"))
        if self.policy == "drop":
            self._drop(is_missing, f"confidence in {column.name!r}")
            return column
        is_retained = np.ones(is_missing.size, np.bool_)
        if self.is_dropped is not None:
            is_retained = ~self.is_dropped
        is_present = is_retained & ~is_missing
        if not is_present.any():
            raise DomainError(
                f"{self.source}: {column.name!r} (confidence) has no value in any row"
            )
        is_missing &= is_retained
        if not is_missing.any():
            return column
        values = column.values.copy()
        values[is_missing] = values[is_present].min()
        text = (
            f"have no confidence in {column.name!r} and count as abstentions with the lowest "
            f"confidence of the column, {values[is_missing][0]!s}, also in calibration metrics "
            "such as the ECE; --missing drop removes these rows"
        )
        self.notes.append(Note(ABSTENTIONS, text, rows=count_rows(is_missing)))
        return DataColumn(column.name, values, None, None, column.dtype_name)

    def handle_answers(self, is_missing: BoolArray, name: str, role: str) -> None:
        """Apply the policy to rows without a prediction or without class scores.

        With the policy "reject", such rows are abstentions.
        """
        if not is_missing.any():
            return
        if self.policy == "error":
            raise DomainError(self._message(name, is_missing, role))
        if self.policy == "drop":
            self._drop(is_missing, f"{role} in {name!r}")
            return
        if self.is_abstention is None:
            self.is_abstention = is_missing
        else:
            self.is_abstention = self.is_abstention | is_missing
        text = f"have no {role} in {name!r} and count as abstentions, which are always wrong"
        self.notes.append(Note(ABSTENTIONS, text, rows=count_rows(is_missing)))

    @property
    def retained_rows(self) -> Array | None:
        """Indices of the rows that are not dropped, or None if all rows remain."""
        if self.is_dropped is None:
            return None
        if self.is_dropped.all():
            raise NoRowsLeftError(
                f"{self.source}: every row lacks a required value, so no row remains",
                tuple(self.notes),
                self.n_rows,
            )
        return np.flatnonzero(~self.is_dropped)

    def _drop(self, is_missing: BoolArray, description: str) -> None:
        self.is_dropped = is_missing if self.is_dropped is None else self.is_dropped | is_missing
        self.notes.append(Note(DROPPED, f"no {description}", rows=count_rows(is_missing)))

    def _message(
        self, name: str, is_missing: BoolArray, role: str, *, can_reject: bool = True
    ) -> str:
        """Return an error message on missing entries, with the options that treat them."""
        row = int(np.flatnonzero(is_missing)[0])
        remedies = f"{format_option('missing', 'drop')} removes these rows"
        if can_reject and not self.is_chunk:
            remedies += (
                f"; {format_option('missing', 'reject')} counts them as abstentions with the "
                "lowest confidence"
            )
        return (
            f"{self.source}: {count_rows(is_missing)} have no {role} in {name!r}, the first in row "
            f"{row}, counted from 0. {remedies}"
        )


def count_rows(mask: BoolArray) -> RowCount:
    """Count the rows that a mask selects, and all rows."""
    return RowCount(int(mask.sum()), mask.size)
