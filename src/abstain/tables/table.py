"""Tables of named columns, which are loaded when they are needed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from abstain._foundation.archives import Archive, Header
from abstain._foundation.arrays import to_numpy
from abstain._foundation.frames import is_arrow_table
from abstain._foundation.input_files import library_errors_as_format_errors
from abstain._foundation.lazy_imports import is_installed
from abstain._foundation.notes import Note
from abstain.errors import InputError, MissingInputError
from abstain.tables.column import DataColumn, from_array, from_series, to_number
from abstain.typing import Array

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl

Kind = Literal["number", "text", "block", "other"]
Loader: TypeAlias = Callable[[tuple[str, ...]], dict[str, DataColumn]]


@dataclass(frozen=True, eq=False)
class DataTable:
    """Named columns with the same number of rows.

    The columns are loaded when they are needed.
    """

    #: Name of the table in messages, such as "preds.csv" or "the dataframe".
    source: str
    n_rows: int
    #: Kind of each column, in order. A "block" contains several numbers per row.
    kind_by_column: Mapping[str, Kind]
    #: Function that loads columns by name.
    loader: Loader = field(repr=False)
    #: Whether the columns are keys of an archive or a mapping, which often contain blocks.
    has_keys: bool = False
    #: Whether the format has no data types, so that quoted numbers are numbers, as in CSV.
    is_untyped: bool = False
    #: Column names by role, such as "logits" or "label", if a known program wrote the file.
    column_by_role: Mapping[str, str] = field(default_factory=dict)
    #: Names of the columns with grades, if a log has several.
    grade_columns: tuple[str, ...] = ()
    #: Whether rows may have no grade, as in logs that omit answers without a grade.
    may_lack_grades: bool = False
    #: Remarks of the function that read the file.
    notes: tuple[Note, ...] = ()
    #: Number of rows of each key of an archive, whose arrays may differ in length.
    length_by_key: Mapping[str, int] = field(default_factory=dict)
    #: Number of rows of the file before this chunk, or None for a complete table.
    first_row: int | None = None
    #: Function that loads a column of an untyped format as text, so "007" instead of 7.
    load_as_text: Callable[[str], DataColumn] | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self.kind_by_column)

    def find(self, name: str) -> str | None:
        """Return the column with this name.

        If there is no such column, the name may differ in case or spaces from the name of one
        column.
        """
        if name in self.kind_by_column:
            return name
        matches = self._names_by_normalized_name.get(_normalize_name(name), [])
        if len(matches) > 1:
            raise InputError(
                f"{self.source} has {' and '.join(map(repr, matches[:3]))}, which differ from "
                f"{name!r} only in case and spaces; write the name exactly"
            )
        return matches[0] if matches else None

    @cached_property
    def _names_by_normalized_name(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name in self.kind_by_column:
            names.setdefault(_normalize_name(name), []).append(name)
        return names

    def load(self, names: Iterable[str]) -> dict[str, DataColumn]:
        """Load existing columns by name."""
        return self.loader(tuple(dict.fromkeys(names)))

    def with_loaded_columns(self, names: Iterable[str]) -> "DataTable":
        """Return the table after loading the named columns into memory.

        These columns are not read again.
        """
        columns = self.load(names)
        return replace(self, loader=lambda requested: {name: columns[name] for name in requested})

    def with_numbers(self, decimal: str) -> "DataTable":
        """Convert texts such as "90%" and "0,9" to numbers."""
        symbols = ("%", ",") if decimal == "," else ("%",)
        numbers: dict[str, DataColumn] = {}
        text_names = [name for name, kind in self.kind_by_column.items() if kind == "text"]
        for name, column in self.load(text_names).items():
            texts = [] if column.texts is None else list(map(str, column.texts))
            has_symbol = any(symbol in text for text in texts for symbol in symbols)
            if has_symbol:
                converted = to_number(column, decimal)
                if not converted.is_text:
                    numbers[name] = converted

        def load(names: tuple[str, ...]) -> dict[str, DataColumn]:
            unchanged = self.load([name for name in names if name not in numbers])
            columns = {**unchanged, **numbers}
            return {name: columns[name] for name in names}

        kinds: dict[str, Kind] = dict(self.kind_by_column)
        kinds.update(dict.fromkeys(numbers, "number"))
        return replace(self, kind_by_column=kinds, loader=load)

    def select_rows(self, rows: Array) -> "DataTable":
        """Return the table with the selected rows only."""

        def load(names: tuple[str, ...]) -> dict[str, DataColumn]:
            return {name: column.rows(rows) for name, column in self.loader(names).items()}

        return replace(self, n_rows=rows.size, loader=load, load_as_text=None)


def _normalize_name(name: str) -> str:
    return "".join(name.split()).casefold()


def check_unique_names(names: list[str], source: str) -> None:
    """Raise an error if two columns have the same name."""
    previous_names: set[str] = set()
    for name in names:
        if name in previous_names:
            raise InputError(f"{source} has two columns named {name!r}; names must differ")
        previous_names.add(name)


def check_has_rows(n_rows: int, source: str) -> None:
    """Raise an error if a table has a header but no rows."""
    if n_rows == 0:
        raise InputError(f"{source} has a header but no rows; at least one sample is needed")


def kind_of_dtype(dtype: "pl.DataType") -> Kind:
    """Return the kind of a column, such as "number", from its polars data type."""
    import polars as pl

    if dtype.is_numeric() or dtype in {pl.Boolean, pl.Null}:
        return "number"
    if isinstance(dtype, pl.List | pl.Array):
        return "block"
    if isinstance(dtype, pl.Categorical | pl.Enum | pl.String):
        return "text"
    return "other"


@dataclass(frozen=True)
class LeafColumn:
    """The location of values in a dataframe.

    The location is the name of a column. In a nested column, the names of fields follow.
    """

    #: Name of the column in the file.
    parent: str
    #: Names of the nested fields from the column to the values, or nothing for a flat column.
    fields: tuple[str, ...]
    dtype: "pl.DataType"

    def values(self, frame: "pl.DataFrame", name: str) -> "pl.Series":
        """Return the values at this location as a series with a new name."""
        series = frame[self.parent]
        for field_name in self.fields:
            series = series.struct.field(field_name)
        return series.alias(name)


def leaf_columns(schema: "Mapping[str, pl.DataType]") -> dict[str, LeafColumn]:
    """Return the flat columns and the nested fields of a schema, by name.

    The name of a nested field is a path such as judge.verdict. If there is also a column with this
    name, the name refers to the column.
    """
    return {
        name: leaf
        for parent, dtype in schema.items()
        for name, leaf in _iter_leaf_columns(LeafColumn(parent, (), dtype))
        if name == parent or name not in schema
    }


def _iter_leaf_columns(column: LeafColumn) -> Iterator[tuple[str, LeafColumn]]:
    """Yield the name and the location of the values of a column, or of each nested field."""
    import polars as pl

    if isinstance(column.dtype, pl.Struct) and column.dtype.fields:
        for name, dtype in column.dtype.to_schema().items():
            nested = cast("pl.DataType", dtype)
            yield from _iter_leaf_columns(LeafColumn(column.parent, (*column.fields, name), nested))
    else:
        yield ".".join((column.parent, *column.fields)), column


def from_polars(frame: "pl.DataFrame", source: str, *, is_untyped: bool = False) -> DataTable:
    """Convert a polars dataframe to a table."""
    table = from_scan(frame.schema, frame.height, lambda names: frame[list(names)], source)
    return replace(table, is_untyped=is_untyped)


def from_scan(
    schema: Mapping[str, Any],
    n_rows: int,
    read: Callable[[tuple[str, ...]], "pl.DataFrame"],
    source: str,
) -> DataTable:
    """Create a table from a schema and a function that reads columns by name."""
    check_has_rows(n_rows, source)
    leaves = leaf_columns(schema)
    kind_by_column = {name: kind_of_dtype(leaf.dtype) for name, leaf in leaves.items()}

    def read_parents(names: Iterable[str]) -> "pl.DataFrame":
        return read(tuple(dict.fromkeys(leaves[name].parent for name in names)))

    def load(names: tuple[str, ...]) -> dict[str, DataColumn]:
        """Load columns by name. Columns of text are loaded one at a time."""
        # As codes, a column of text needs much less memory than as text.
        text_columns = [name for name in names if kind_by_column[name] == "text"]
        other_columns = [name for name in names if kind_by_column[name] != "text"]
        frame = read_parents(other_columns)
        columns = {name: from_series(leaves[name].values(frame, name)) for name in other_columns}
        for name in text_columns:
            columns[name] = from_series(leaves[name].values(read_parents([name]), name))
        return {name: columns[name] for name in names}

    return DataTable(source, n_rows, kind_by_column, load)


def from_frame(native: Any, source: str = "the dataframe") -> DataTable | None:
    """Convert a dataframe that narwhals supports to a table, or return None for other objects."""
    import narwhals as nw

    if type(native).__module__.split(".")[0] == "pandas" and hasattr(native, "columns"):
        _check_names_are_text(list(native.columns), source)
        check_unique_names(list(native.columns), source)
    try:
        frame = nw.from_native(native)
    except TypeError:
        return _from_arrow(native, source) if is_arrow_table(native) else None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if frame.implementation.is_polars() or frame.implementation.is_pyarrow():
        check_unique_names(list(frame.columns), source)
        return from_polars(frame.to_polars(), source)
    check_has_rows(len(frame), source)
    kinds: dict[str, Kind] = {
        name: _kind_of_narwhals(dtype) for name, dtype in frame.schema.items()
    }
    return DataTable(
        source,
        len(frame),
        kinds,
        lambda names: {name: _from_narwhals(frame[name], name) for name in names},
    )


def _from_arrow(native: Any, source: str) -> DataTable:
    """Convert Arrow data, such as a `RecordBatch` of pyarrow, to a table."""
    import polars as pl

    with library_errors_as_format_errors(
        source, "an Arrow stream", (pl.exceptions.PanicException,)
    ):
        frame = pl.DataFrame(native)
    return from_polars(frame, source)


def from_rows(rows: Sequence[Mapping[str, Any]], source: str) -> DataTable:
    """Convert a list of mappings, one per row, to a table."""
    import polars as pl

    with library_errors_as_format_errors(source, "rows", (pl.exceptions.PanicException,)):
        frame = pl.DataFrame([dict(row) for row in rows], infer_schema_length=None, strict=False)
    return from_polars(frame, source)


def to_frame(frame: "pl.DataFrame", backend: Any) -> Any:
    """Convert a polars dataframe to a dataframe of pandas or pyarrow."""
    import narwhals as nw

    if not is_installed(backend):
        raise MissingInputError(
            f"`backend` is {backend!r}, which is not installed: pip install {backend}"
        )
    if backend == "pyarrow":
        return frame.to_arrow()
    # Polars requires pyarrow to convert a dataframe to pandas, so narwhals converts it.
    columns = {
        c.name: c.to_list() if c.null_count() else c.to_numpy() for c in frame.iter_columns()
    }
    return nw.from_dict(columns, backend=backend).to_native()


def _check_names_are_text(columns: list[Any], source: str) -> None:
    for name in columns:
        if not isinstance(name, str):
            raise InputError(f"{source} has a column named {name!r}; names must be text")


def _kind_of_narwhals(dtype: Any) -> Kind:
    import narwhals as nw

    if dtype.is_numeric() or dtype == nw.Boolean:
        return "number"
    if dtype.is_nested():
        return "block"
    return "text" if dtype in {nw.String, nw.Categorical, nw.Enum} else "other"


def _from_narwhals(series: "nw.Series[Any]", name: str) -> DataColumn:
    """Convert a column of pandas or of a similar library without the use of pyarrow."""
    is_missing = series.is_null().to_numpy()
    values = series.to_numpy()
    if values.dtype.kind in "biuf" or not is_missing.any():
        return from_array(values, name)
    values = values.astype(object)
    values[is_missing] = None  # Pandas stores a missing text as NaN or NA.
    return from_array(values, name)


def from_arrays(arrays: Mapping[str, Any], source: str) -> DataTable:
    """Create a table from arrays by name."""
    keys = {str(key): key for key in arrays}
    check_unique_names([str(key) for key in arrays], source)
    headers = {name: to_numpy(arrays[key], name) for name, key in keys.items()}

    def load(names: tuple[str, ...]) -> dict[str, DataColumn]:
        return {name: from_array(to_numpy(arrays[keys[name]], name), name) for name in names}

    return _from_keys(headers, load, source)


def from_archive(archive: Archive) -> DataTable:
    """Create a table from an archive of arrays.

    Arrays are read only if they are requested.
    """

    def load(names: tuple[str, ...]) -> dict[str, DataColumn]:
        return {name: from_array(array, name) for name, array in archive.read(names).items()}

    return _from_keys(archive.headers, load, archive.source)


def _from_keys(headers: Mapping[str, Array | Header], load: Loader, source: str) -> DataTable:
    """Create a table from the shapes and data types of arrays by key."""
    kind_by_key = {name: _kind_of_array(header) for name, header in headers.items()}
    length_by_key = {}
    for name, header in headers.items():
        has_entries = bool(header.shape) and 0 not in header.shape[1:]
        if has_entries:
            length_by_key[name] = header.shape[0]
    n_rows = _most_common_length(length_by_key, source)
    return DataTable(source, n_rows, kind_by_key, load, has_keys=True, length_by_key=length_by_key)


def _kind_of_array(array: Array | Header) -> Kind:
    if not array.shape or array.dtype.kind not in "biufUSOT":
        return "other"
    if len(array.shape) > 1:
        return "block"
    return "number" if array.dtype.kind in "biuf" else "text"


def _most_common_length(length_by_key: dict[str, int], source: str) -> int:
    """Return the most common length of the arrays.

    This length is the number of samples, because other arrays, such as layer weights, differ in
    length.
    """
    if not length_by_key:
        raise InputError(f"{source} contains no arrays")
    lengths, counts = np.unique(list(length_by_key.values()), return_counts=True)
    n_rows = int(lengths[np.argmax(counts)])
    check_has_rows(n_rows, source)
    return n_rows
