"""A table: named columns that are loaded when asked for, whatever they come from."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from abstain._foundation.archives import Archive, Header
from abstain._foundation.arrays import to_numpy
from abstain._foundation.frames import is_arrow_table
from abstain._foundation.input_files import library_errors_as_format_errors
from abstain._foundation.notes import Note
from abstain._foundation.optional_packages import is_installed
from abstain.errors import InputError, MissingInputError
from abstain.tables.column import DataColumn, from_array, from_series
from abstain.typing import Array

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl

Kind = Literal["number", "text", "block", "other"]
Loader: TypeAlias = Callable[[tuple[str, ...]], dict[str, DataColumn]]


@dataclass(frozen=True, eq=False)
class DataTable:
    """Named columns of one length."""

    #: How messages name the table ("preds.csv", "the DataFrame").
    source: str
    #: Number of rows.
    height: int
    #: The columns in order, each "number", "text", "block" (several numbers a row) or "other".
    kinds: Mapping[str, Kind]
    #: Returns the named columns.
    loader: Loader = field(repr=False)
    #: The columns are keys of an archive or of a mapping: other names and blocks are usual.
    keyed: bool = False
    #: The format has no types (CSV): a column of quoted numbers is a column of numbers.
    typeless: bool = False
    #: Which key is the logits, the label and so on, where the layout is a known one.
    meant: Mapping[str, str] = field(default_factory=dict)
    #: The columns of which each could say what is right, where a log holds several.
    grades: tuple[str, ...] = ()
    #: Whether a missing grade is usual, as in the log of a tool that leaves such answers out.
    may_lack_grades: bool = False
    #: What was met on opening.
    notes: tuple[Note, ...] = ()
    #: The number of rows of each key, where they may differ (archives).
    lengths: Mapping[str, int] = field(default_factory=dict)
    #: Of a part of a file, how many of its rows come before; None for all that there is.
    first: int | None = None
    #: Typeless formats: returns a column as the text in the file ("007" for 7).
    as_written: Callable[[str], DataColumn] | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self.kinds)

    def find(self, name: str) -> str | None:
        """Return the column of that name, else the only one that is it but for case and blanks."""
        if name in self.kinds:
            return name
        near = self._folded.get(_fold(name), [])
        if len(near) > 1:
            shown = " and ".join(map(repr, near[:3]))
            raise InputError(
                f"{self.source} has {shown}, both {name!r} but for case and blanks; name one"
            )
        return near[0] if near else None

    @cached_property
    def _folded(self) -> dict[str, list[str]]:
        out: dict[str, list[str]] = {}
        for name in self.kinds:
            out.setdefault(_fold(name), []).append(name)
        return out

    def load(self, names: Iterable[str]) -> dict[str, DataColumn]:
        """Load columns by name; unknown names were refused before."""
        return self.loader(tuple(dict.fromkeys(names)))

    def loaded(self, names: Iterable[str]) -> "DataTable":
        """Return the table with these columns in memory, so that they are read once."""
        columns = self.load(names)
        return replace(self, loader=lambda wanted: {name: columns[name] for name in wanted})

    def rows(self, kept: Array) -> "DataTable":
        """Return the table of some of the rows."""

        def load(wanted: tuple[str, ...]) -> dict[str, DataColumn]:
            return {name: column.rows(kept) for name, column in self.loader(wanted).items()}

        return replace(self, height=kept.size, loader=load, as_written=None)


def _fold(name: str) -> str:
    return "".join(name.split()).casefold()


def refuse_repeated(names: list[str], source: str) -> None:
    """Refuse a table in which two columns share a name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{source} has two columns named {name!r}; names must differ")
        seen.add(name)


def refuse_rowless(height: int, source: str) -> None:
    """Refuse a table without rows."""
    if height == 0:
        raise InputError(f"{source} has a header but no rows; at least one sample is needed")


def kind_of(dtype: "pl.DataType") -> Kind:
    """Return what a column of a type of polars holds."""
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
    """Where the values of a column are: in a column of the file, or in a field of a nested one."""

    #: The column of the file.
    parent: str
    #: The fields from there to the values; none for a column that is not nested.
    fields: tuple[str, ...]
    dtype: "pl.DataType"

    def values(self, frame: "pl.DataFrame", name: str) -> "pl.Series":
        """Return the values under this name."""
        series = frame[self.parent]
        for field_name in self.fields:
            series = series.struct.field(field_name)
        return series.alias(name)


def leaf_columns(schema: "Mapping[str, pl.DataType]") -> dict[str, LeafColumn]:
    """Return the columns of a schema by name, nested fields under paths such as judge.verdict.

    If a column has the same name as such a path, the column is returned.
    """
    leaves: dict[str, LeafColumn] = {}
    for parent, dtype in schema.items():
        fields = dict(_leaves(LeafColumn(parent, (), dtype)))
        leaves |= {name: x for name, x in fields.items() if name == parent or name not in schema}
    return leaves


def _leaves(column: LeafColumn) -> Iterator[tuple[str, LeafColumn]]:
    import polars as pl

    if isinstance(column.dtype, pl.Struct) and column.dtype.fields:
        for name, dtype in column.dtype.to_schema().items():
            nested = cast("pl.DataType", dtype)
            yield from _leaves(LeafColumn(column.parent, (*column.fields, name), nested))
    else:
        yield ".".join((column.parent, *column.fields)), column


def from_polars(frame: "pl.DataFrame", source: str, *, typeless: bool = False) -> DataTable:
    """Wrap a polars frame."""
    refuse_rowless(frame.height, source)
    leaves = leaf_columns(frame.schema)
    return DataTable(
        source,
        frame.height,
        {name: kind_of(leaf.dtype) for name, leaf in leaves.items()},
        lambda names: {name: from_series(leaves[name].values(frame, name)) for name in names},
        typeless=typeless,
    )


def from_scan(
    schema: Mapping[str, Any],
    height: int,
    read: Callable[[tuple[str, ...]], "pl.DataFrame"],
    source: str,
) -> DataTable:
    """Wrap a file of which only the asked columns are read."""
    refuse_rowless(height, source)
    leaves = leaf_columns(schema)
    kinds = {name: kind_of(leaf.dtype) for name, leaf in leaves.items()}

    def parents(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(leaves[name].parent for name in names))

    def load(names: tuple[str, ...]) -> dict[str, DataColumn]:
        # Text column by column: as codes it takes a fraction of what it does as read.
        texts = [name for name in names if kinds[name] == "text"]
        others = [name for name in names if kinds[name] != "text"]
        frame = read(parents(others))
        loaded = {name: from_series(leaves[name].values(frame, name)) for name in others}
        for name in texts:
            loaded[name] = from_series(leaves[name].values(read(parents([name])), name))
        return {name: loaded[name] for name in names}

    return DataTable(source, height, kinds, load)


def from_frame(native: Any, source: str = "the dataframe") -> DataTable | None:
    """Wrap a dataframe of any library that narwhals knows; None when it is no dataframe."""
    import narwhals as nw

    if type(native).__module__.split(".")[0] == "pandas" and hasattr(native, "columns"):
        _refuse_unnamed(list(native.columns), source)
        refuse_repeated(list(native.columns), source)
    try:
        frame = nw.from_native(native)
    except TypeError:
        return _from_arrow(native, source) if is_arrow_table(native) else None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if frame.implementation.is_polars() or frame.implementation.is_pyarrow():
        refuse_repeated(list(frame.columns), source)
        return from_polars(frame.to_polars(), source)
    refuse_rowless(len(frame), source)
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
    """Wrap a stream of Arrow, such as a RecordBatch of pyarrow or a reader of batches."""
    import polars as pl

    with library_errors_as_format_errors(
        source, "an Arrow stream", (pl.exceptions.PanicException,)
    ):
        frame = pl.DataFrame(native)
    return from_polars(frame, source)


def from_rows(rows: Sequence[Mapping[str, Any]], source: str) -> DataTable:
    """Wrap a list of mappings, one for each row."""
    import polars as pl

    with library_errors_as_format_errors(source, "rows", (pl.exceptions.PanicException,)):
        frame = pl.DataFrame([dict(row) for row in rows], infer_schema_length=None, strict=False)
    return from_polars(frame, source)


def to_frame(frame: "pl.DataFrame", backend: Any) -> Any:
    """Return a table of polars as a dataframe of pandas or pyarrow."""
    import narwhals as nw

    if not is_installed(backend):
        raise MissingInputError(
            f"`backend` is {backend!r}, which is not installed: pip install {backend}"
        )
    if backend == "pyarrow":
        return frame.to_arrow()
    # Not by polars itself, which converts to pandas through pyarrow.
    plain = {c.name: c.to_list() if c.null_count() else c.to_numpy() for c in frame.iter_columns()}
    return nw.from_dict(plain, backend=backend).to_native()


def _refuse_unnamed(columns: list[Any], source: str) -> None:
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
    """Convert a column of pandas and its kin without going through pyarrow."""
    missing = series.is_null().to_numpy()
    values = series.to_numpy()
    if values.dtype.kind in "biuf" or not missing.any():
        return from_array(values, name)
    values = values.astype(object)
    values[missing] = None  # pandas writes a missing text as NaN or NA
    return from_array(values, name)


def from_arrays(arrays: Mapping[str, Any], source: str) -> DataTable:
    """Wrap a mapping from name to array; entries are read when asked for."""
    names = [str(name) for name in arrays]
    refuse_repeated(names, source)
    read = {str(name): name for name in arrays}

    def load(wanted: tuple[str, ...]) -> dict[str, DataColumn]:
        return {n: from_array(to_numpy(arrays[read[n]], n), n) for n in wanted}

    return _keyed({n: to_numpy(arrays[read[n]], n) for n in names}, load, source)


def from_archive(archive: Archive) -> DataTable:
    """Wrap an archive of arrays, of which only the asked ones are read."""

    def load(wanted: tuple[str, ...]) -> dict[str, DataColumn]:
        return {name: from_array(x, name) for name, x in archive.read(wanted).items()}

    return _keyed(archive.headers, load, archive.source)


def _keyed(claimed: Mapping[str, Array | Header], load: Loader, source: str) -> DataTable:
    """Wrap arrays of which the shapes and types are known."""
    kinds = {name: _kind_of_array(x) for name, x in claimed.items()}
    # A million rows of nothing are no rows.
    lengths = {n: x.shape[0] for n, x in claimed.items() if x.shape and 0 not in x.shape[1:]}
    height = _common_length(lengths, source)
    return DataTable(source, height, kinds, load, keyed=True, lengths=lengths)


def _kind_of_array(x: Array | Header) -> Kind:
    if not x.shape or x.dtype.kind not in "biufUSOT":
        return "other"
    if len(x.shape) > 1:
        return "block"
    return "number" if x.dtype.kind in "biuf" else "text"


def _common_length(lengths: dict[str, int], source: str) -> int:
    """Return the length most arrays share: others (weights of a layer) may stand beside them."""
    if not lengths:
        raise InputError(f"{source} holds no arrays")
    values, counts = np.unique(list(lengths.values()), return_counts=True)
    height = int(values[np.argmax(counts)])
    refuse_rowless(height, source)
    return height
