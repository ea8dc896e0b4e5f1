"""Tables in long form, with a row for each class of a sample, to a row for each sample."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from abstain._foundation.notes import READING, Note
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, MissingInputError, UnknownNameError, suggest
from abstain.tables._reading import ReadingOptions
from abstain.tables.column import DataColumn
from abstain.tables.table import DataTable
from abstain.typing import IntArray

#: Between the name of the scores and that of a class.
_BETWEEN = ":"


@dataclass(frozen=True)
class _Samples:
    """Which rows belong to which sample and which class."""

    table: DataTable
    #: The column that names the samples.
    name: str
    #: Shape (rows,). The sample of each row, in order of first appearance.
    sample: IntArray
    #: Shape (n,). The first row of each sample.
    first: IntArray

    def shown(self, row: int) -> str:
        return self.table.load([self.name])[self.name].shown(row)


def widened(table: DataTable, asked: ReadingOptions) -> tuple[DataTable, ReadingOptions]:
    """Return the table with a row for each sample, and the options that read it."""
    if asked.long is None:
        return table, asked
    kind, scores = _scores(asked)
    if asked.id is None:
        raise MissingInputError(
            f"{format_option('long')} says that a sample has a row for each class; name the column "
            f"that says which sample it is with {format_option('id')}"
        )
    name, classes, values = (_column(table, n) for n in (asked.id, asked.long, scores))
    apart = [_column(table, n) for n in asked.by]
    columns = table.load([name, classes, values, *apart])
    samples = _Samples(table, name, *_appearance(columns[name], [columns[n] for n in apart]))
    codes, names = columns[classes].as_text().distinct()
    place = _places(samples, codes, names)
    held = columns[values]
    wide = {f"{values}{_BETWEEN}{c}": held.rows(place[:, k]) for k, c in enumerate(names)}
    pattern: dict[str, Any] = {kind: (f"{values}{_BETWEEN}*",)}
    options = replace(asked, long=None, **pattern)
    return _table(samples, wide, dropped={classes, values}), options


def _scores(asked: ReadingOptions) -> tuple[str, str]:
    """Return which class scores are asked for, and the one column that holds them."""
    given = [(kind, getattr(asked, kind)) for kind in ("probabilities", "logits")]
    found = [(kind, names[0]) for kind, names in given if len(names) == 1]
    if not found:
        either = f"{format_option('probabilities')} or {format_option('logits')}"
        raise InputError(
            f"{format_option('long')} goes with the one column of class scores: name it with "
            f"{either}"
        )
    return found[0]


def _column(table: DataTable, name: str) -> str:
    found = table.find(name)
    if found is None:
        raise UnknownNameError(
            f"{table.source} has no column {name!r}.{suggest(name, table.names)}"
        )
    return found


def _appearance(column: DataColumn, apart: Iterable[DataColumn]) -> tuple[IntArray, IntArray]:
    """Return the sample of each row and the first row of each, in order of first appearance.

    A name may come again in another part of the data.
    """
    if column.missing is not None:
        row = int(np.flatnonzero(column.missing)[0])
        raise DomainError(
            f"column {column.name!r} must name the sample of each row; row {row} has no name"
        )
    codes, _ = column.distinct()
    for other in apart:
        part, names = other.distinct()
        codes = np.unique(codes * len(names) + part, return_inverse=True)[1]
    _, first, own = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return rank[own], first[order]


def _places(samples: _Samples, codes: IntArray, names: list[str]) -> IntArray:
    """Return the row of each sample and class; refuse a pair that is twice there, or not."""
    n, k = samples.first.size, len(names)
    place = np.full((n, k), -1, np.int64)
    rows = np.arange(codes.size)
    # From the last on, so that the first row of a pair stays.
    place[samples.sample[::-1], codes[::-1]] = rows[::-1]
    twice = place[samples.sample, codes] != rows
    if twice.any():
        row = int(np.argmax(twice))
        raise DomainError(
            f"the sample {samples.shown(row)} has two rows for the class {names[codes[row]]!r}; "
            "name what tells them apart with " + format_option("by") + ", or drop one"
        )
    lacking = np.argwhere(place < 0)
    if lacking.size:
        i, c = lacking[0]
        row = int(samples.first[i])
        raise DomainError(
            f"the sample {samples.shown(row)} has no row for the class {names[c]!r}; every sample "
            f"needs a row for each of the {k} classes"
        )
    return place


def _table(samples: _Samples, wide: dict[str, DataColumn], dropped: set[str]) -> DataTable:
    table = samples.table
    kinds = {name: kind for name, kind in table.kinds.items() if name not in dropped}

    def load(wanted: Iterable[str]) -> dict[str, DataColumn]:
        names = tuple(wanted)
        plain = table.load([name for name in names if name not in wide])
        known = {name: _of_samples(samples, column) for name, column in plain.items()}
        known |= {n: replace(wide[n], name=n) for n in names if n in wide}
        return {name: known[name] for name in names}

    note = f"{table.height:,} rows of one class each, of {samples.first.size:,} samples"
    return replace(
        table,
        height=samples.first.size,
        kinds={**kinds, **dict.fromkeys(wide, "number")},
        loader=load,
        as_written=None,
        notes=(*table.notes, Note(READING, note)),
    )


def _of_samples(samples: _Samples, column: DataColumn) -> DataColumn:
    """Return a column with one entry for each sample; refuse one that differs within a sample."""
    codes, _ = column.distinct()
    differs = codes != codes[samples.first][samples.sample]
    if differs.any():
        row = int(np.argmax(differs))
        before = int(samples.first[samples.sample[row]])
        raise DomainError(
            f"column {column.name!r} must say the same in all rows of a sample; "
            f"{samples.shown(row)} has {column.shown(before)} and {column.shown(row)}"
        )
    return column.rows(samples.first)
