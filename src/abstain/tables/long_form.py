"""Conversion of tables in long form, which have one row for each pair of sample and class."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from abstain._foundation.notes import READING, Note
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.tables._column_selection import find_column
from abstain.tables._reading import ReadingOptions
from abstain.tables.column import DataColumn
from abstain.tables.table import DataTable
from abstain.typing import IntArray

#: Text between the name of the class scores and the name of a class in a new column name.
_SEPARATOR = ":"


@dataclass(frozen=True)
class _Samples:
    """The samples of a table in long form, and the rows of each sample."""

    table: DataTable
    #: Column that contains the names of the samples.
    id_column: str
    #: Index of the sample of each row in order of first appearance, shape (number of rows,).
    sample_index: IntArray
    #: First row of each sample, shape (n,).
    first_rows: IntArray

    def format_name(self, row: int) -> str:
        """Return the name of the sample in a row, for a message."""
        return self.table.load([self.id_column])[self.id_column].format_entry(row)


def to_wide_form(table: DataTable, options: ReadingOptions) -> tuple[DataTable, ReadingOptions]:
    """Return a table with one row per sample, and options for reading this table.

    If the option `long` is not set, the table and the options are returned unchanged.
    """
    if options.long is None:
        return table, options
    kind, requested_scores = _class_scores_option(options)
    if options.id is None:
        raise MissingInputError(
            f"{format_option('long')} requires the column with the name of each sample; pass it "
            f"with {format_option('id')}"
        )
    id_column = find_column(table, options.id, "id")
    class_column = find_column(table, options.long, "long")
    score_column = find_column(table, requested_scores, kind)
    split_columns = [find_column(table, name, "by") for name in options.by]
    columns = table.load([id_column, class_column, score_column, *split_columns])
    sample_index, first_rows = _index_samples(
        columns[id_column], [columns[name] for name in split_columns]
    )
    samples = _Samples(table, id_column, sample_index, first_rows)
    class_codes, class_names = columns[class_column].as_text().distinct()
    row_by_sample_and_class = _index_rows(samples, class_codes, class_names)
    scores = columns[score_column]
    new_columns = {
        f"{score_column}{_SEPARATOR}{name}": scores.rows(row_by_sample_and_class[:, k])
        for k, name in enumerate(class_names)
    }
    pattern: dict[str, Any] = {kind: (f"{score_column}{_SEPARATOR}*",)}
    wide_table = _make_table(samples, new_columns, removed={class_column, score_column})
    return wide_table, replace(options, long=None, **pattern)


def _class_scores_option(options: ReadingOptions) -> tuple[str, str]:
    """Return the kind of class scores, and the name of the column with the scores."""
    for kind in ("probabilities", "logits"):
        names = getattr(options, kind)
        if len(names) == 1:
            return kind, names[0]
    raise InputError(
        f"{format_option('long')} requires the one column of class scores; name it with "
        f"{format_option('probabilities')} or {format_option('logits')}"
    )


def _index_samples(
    ids: DataColumn, split_columns: Iterable[DataColumn]
) -> tuple[IntArray, IntArray]:
    """Return the index of the sample of each row, and the first row of each sample.

    Samples are numbered in order of first appearance. Rows with the same sample name in different
    splits are different samples.
    """
    if ids.is_missing is not None:
        row = int(np.flatnonzero(ids.is_missing)[0])
        raise DomainError(
            f"column {ids.name!r} must name the sample of each row; row {row} has no name"
        )
    codes, _ = ids.distinct()
    for column in split_columns:
        split_codes, split_values = column.distinct()
        codes = np.unique(codes * len(split_values) + split_codes, return_inverse=True)[1]
    _, first_rows, code_index = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first_rows, kind="stable")
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return rank[code_index], first_rows[order]


def _index_rows(samples: _Samples, class_codes: IntArray, class_names: list[str]) -> IntArray:
    """Return the row number for each sample and class. Each pair must have exactly one row."""
    n_samples, n_classes = samples.first_rows.size, len(class_names)
    row_index = np.full((n_samples, n_classes), -1, np.int64)  # -1 if there is no row
    rows = np.arange(class_codes.size)
    # In reverse order, the first row of a repeated pair is written last and remains.
    row_index[samples.sample_index[::-1], class_codes[::-1]] = rows[::-1]
    is_repeated = row_index[samples.sample_index, class_codes] != rows
    if is_repeated.any():
        row = int(np.argmax(is_repeated))
        raise DomainError(
            f"the sample {samples.format_name(row)} has two rows for the class "
            f"{class_names[class_codes[row]]!r}; drop one, or name the column that distinguishes "
            f"them with {format_option('by')}"
        )
    missing_pairs = np.argwhere(row_index < 0)
    if missing_pairs.size:
        sample, class_code = missing_pairs[0]
        row = int(samples.first_rows[sample])
        raise DomainError(
            f"the sample {samples.format_name(row)} has no row for the class "
            f"{class_names[class_code]!r}; every sample requires a row for each of the "
            f"{n_classes} classes"
        )
    return row_index


def _make_table(
    samples: _Samples, new_columns: dict[str, DataColumn], removed: set[str]
) -> DataTable:
    """Return a table with one row per sample that contains the new columns."""
    table = samples.table
    kinds = {name: kind for name, kind in table.kind_by_column.items() if name not in removed}

    def load(requested: Iterable[str]) -> dict[str, DataColumn]:
        """Load columns by name.

        Columns are new columns, or columns of the table in long form.
        """
        names = tuple(requested)
        long_columns = table.load([name for name in names if name not in new_columns])
        columns = {}
        for name in names:
            if name in new_columns:
                columns[name] = replace(new_columns[name], name=name)
            else:
                columns[name] = _values_by_sample(samples, long_columns[name])
        return columns

    n_samples = samples.first_rows.size
    note = f"{n_samples:,} samples from {table.n_rows:,} rows with one class each"
    return replace(
        table,
        n_rows=n_samples,
        kind_by_column={**kinds, **dict.fromkeys(new_columns, "number")},
        loader=load,
        load_as_text=None,
        notes=(*table.notes, Note(READING, note)),
    )


def _values_by_sample(samples: _Samples, column: DataColumn) -> DataColumn:
    """Return a column with one entry per sample.

    An error is raised if the values of a column differ within a sample.
    """
    codes, _ = column.distinct()
    differs = codes != codes[samples.first_rows][samples.sample_index]
    if differs.any():
        row = int(np.argmax(differs))
        first_row = int(samples.first_rows[samples.sample_index[row]])
        raise DomainError(
            f"column {column.name!r} must have the same value in all rows of a sample; "
            f"{samples.format_name(row)} has {column.format_entry(first_row)} and "
            f"{column.format_entry(row)}"
        )
    return column.rows(samples.first_rows)
