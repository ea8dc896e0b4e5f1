"""Functions that open files as tables, with error messages for damaged files."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from abstain._foundation import input_files
from abstain._foundation.archives import Archive, read_npy
from abstain._foundation.checks import FIRST_INEXACT_INTEGER
from abstain._foundation.input_files import (
    check_exists,
    check_fits_memory,
    file_size,
    open_regular_file,
)
from abstain._foundation.notes import READING, Note
from abstain.errors import FileFormatError, InputError, ShapeError
from abstain.tables._lines import (
    check_encoding,
    count_simple_rows,
    first_keys,
    has_lone_surrogates,
    json_rows,
    may_repeat_keys,
    read_header,
)
from abstain.tables.column import DataColumn, from_series
from abstain.tables.logs import inspect_ai, lm_eval
from abstain.tables.model_outputs import open_json, open_torch
from abstain.tables.parquet import check_pages, read_footer
from abstain.tables.table import (
    DataTable,
    check_unique_names,
    from_archive,
    from_arrays,
    from_polars,
    from_scan,
)

if TYPE_CHECKING:
    import polars as pl

#: Suffix of a file that contains one array.
ARRAY_SUFFIX: Final = ".npy"
#: Minimum size in bytes of a CSV file whose columns are read separately.
_LARGE_CSV_BYTES = 1 << 22
#: Number of rows from which the data types of separately read columns are inferred.
_INFERENCE_ROWS = 1000

#: Maximum number of columns. Reading more takes minutes and gigabytes.
_MAX_COLUMNS = 200_000


def open_table(path: Path) -> DataTable:
    """Open a file as a table. Its suffix determines the format."""
    check_exists(path)
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        raise FileFormatError(_unknown_suffix_message(path))
    if file_size(path) == 0:
        raise FileFormatError(f"{path.name} is empty (0 bytes)")
    return opener(path)


def _unknown_suffix_message(path: Path) -> str:
    """Return an error message on an unsupported suffix, which states how to convert the file."""
    if path.suffix.lower() in {".pkl", ".pickle", ".joblib"}:
        hint = " Save the arrays with `numpy.savez(file, labels=..., logits=...)` instead."
    elif path.suffix.lower() in {".gz", ".zip", ".xz", ".zst", ".bz2"}:
        hint = " Unpack it first."
    elif path.suffix.lower() in {".xlsx", ".xls", ".ods"}:
        hint = " Export the sheet as CSV."
    else:
        hint = ""
    return (
        f"{path.name} has the suffix {path.suffix!r}, which abstain does not read. Supported: "
        f"{', '.join(SUFFIXES)} and folders of FD-Shifts results.{hint}"
    )


# ------------------------------------------------------------------------------------ text
def _open_csv(path: Path) -> DataTable:
    """Open a CSV file as a table.

    If a file is large and simple, only the requested columns are read.
    """
    names, separator, note = read_header(path)
    _check_number_of_columns(len(names), path.name)
    check_unique_names(names, path.name)
    check_fits_memory(file_size(path), path.name, "its text")
    table = None
    if file_size(path) >= _LARGE_CSV_BYTES:
        n_rows = count_simple_rows(path, len(names), separator)
        if n_rows is not None:
            table = _open_columns(path, names, separator, n_rows)
    if table is None:
        table = _read_all_columns(path, path, names, separator)
    return replace(table, notes=(Note(READING, note),) if note else ())


@contextmanager
def _csv_errors(path: Path) -> Iterator[None]:
    """Convert polars errors to a FileFormatError.

    If the file is not encoded in UTF-8, the error message contains the probable encoding.
    """
    try:
        with polars_errors_as_format_errors(path.name, format_name(path)):
            yield
    except FileFormatError as error:
        if "utf-8" in str(error):
            check_encoding(path)
        raise


def _open_columns(path: Path, names: list[str], separator: str, n_rows: int) -> DataTable | None:
    """Open a simple CSV file as a table that reads only the requested columns.

    If the first rows do not determine the data types of all columns, the result is None.
    """
    import polars as pl

    def read(requested: tuple[str, ...], **options: Any) -> "pl.DataFrame":
        """Read columns by name. Pass `options` to polars."""
        position_by_name = {name: i for i, name in enumerate(names)}
        in_file_order = sorted(requested, key=position_by_name.__getitem__)
        with _csv_errors(path):
            frame = pl.read_csv(
                path,
                columns=[position_by_name[name] for name in in_file_order],
                separator=separator,
                glob=False,
                **options,
            )
        frame.columns = in_file_order
        return frame

    def read_typed(requested: tuple[str, ...]) -> "pl.DataFrame":
        """Read columns. Their data types come from the first rows or, if necessary, all rows."""
        if not requested:
            return pl.DataFrame()
        try:
            frame = read(requested, infer_schema_length=_INFERENCE_ROWS)
        except FileFormatError:
            # A later row contradicts the inferred type, so types are inferred from all rows.
            return read(requested, infer_schema_length=None)
        # Large floats are not exact, and may be integers that another data type represents.
        floats = [column for column in frame.iter_columns() if column.dtype.is_float()]
        if any((np.abs(column.to_numpy()) >= FIRST_INEXACT_INTEGER).any() for column in floats):
            return read(requested, infer_schema_length=None)
        return frame

    def read_as_text(name: str) -> DataColumn:
        return from_series(read((name,), infer_schema=False)[name])

    with open_regular_file(path) as file, _csv_errors(path):
        first_lines = b"".join(islice(file, 1 + _INFERENCE_ROWS))
        first_rows = pl.read_csv(first_lines, separator=separator, infer_schema_length=None)
        first_rows.columns = names
    has_empty_column = any(c.null_count() == len(c) for c in first_rows.iter_columns())
    if n_rows < _INFERENCE_ROWS or has_empty_column:
        return None
    table = from_scan(first_rows.schema, n_rows, read_typed, path.name)
    return replace(table, is_untyped=True, load_as_text=read_as_text)


def read_csv_block(path: Path, block: bytes, source: str) -> DataTable:
    """Read a block of complete records from the middle of a CSV file."""
    names, separator, _ = read_header(path)
    check_unique_names(names, path.name)
    return replace(_read_all_columns(path, block, names, separator), source=source)


def _read_all_columns(
    path: Path, content: Path | bytes, names: list[str], separator: str
) -> DataTable:
    """Read all columns of a CSV file or of a block of it.

    All rows determine the data types.
    """
    import polars as pl

    def read(**options: Any) -> "pl.DataFrame":
        """Read the content with polars. Pass `options` to polars."""
        with _csv_errors(path):
            return pl.read_csv(
                content,
                separator=separator,
                has_header=isinstance(content, Path),
                glob=False,
                **options,
            )

    frame = read(infer_schema_length=None)
    if frame.width != len(names):
        raise FileFormatError(
            f"{path.name} has {frame.width} fields per row, but its header has {len(names)}"
        )
    # polars does not unescape doubled quotes in names.
    frame.columns = names
    is_blank = _find_blank_rows(frame)

    def read_as_text(name: str) -> DataColumn:
        texts = read(columns=[names.index(name)], infer_schema=False)
        texts.columns = [name]
        return from_series((texts if is_blank is None else texts.filter(~is_blank))[name])

    frame = frame if is_blank is None else frame.filter(~is_blank)
    return replace(from_polars(frame, path.name, is_untyped=True), load_as_text=read_as_text)


def _find_blank_rows(frame: "pl.DataFrame") -> "pl.Series | None":
    """Return a mask of the rows in which all entries are missing, or None if there are none."""
    is_blank = None
    for column in frame.iter_columns():
        is_empty = column.is_null()
        is_blank = is_empty if is_blank is None else is_blank & is_empty
        # Often the first column has no empty field, so 100,000 columns need no further check.
        if not is_blank.any():
            return None
    return is_blank


def format_name(path: Path) -> str:
    """Return the name of a file format for messages, which is the suffix without the dot."""
    return path.suffix.lower().lstrip(".")


def _open_jsonl(path: Path) -> DataTable:
    _check_number_of_columns(len(first_keys(path)), path.name)
    check_fits_memory(file_size(path), path.name, "its text")
    with open_regular_file(path) as file:
        if is_log(path):
            return lm_eval.make_table(json_rows(file, path.name), path.name)
        return read_json_lines(file, path.name)


def is_log(path: Path) -> bool:
    """Return whether a JSON lines file is a log of lm-evaluation-harness."""
    return set(first_keys(path)) >= lm_eval.SAMPLE_FIELDS


def read_json_lines(file: IO[bytes], source: str) -> DataTable:
    """Read a file with one JSON object in each line."""
    import polars as pl

    frame, must_check_lines = None, True
    # The fast reader is not used if polars would replace half of a surrogate pair by NUL.
    if not has_lone_surrogates(file):
        file.seek(0)
        with suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException):
            frame = pl.read_ndjson(file, infer_schema_length=None)
    if frame is not None:
        file.seek(0)
        must_check_lines = may_repeat_keys(file, frame)
    if frame is None or must_check_lines:
        # The slower reader accepts NaN, which Python writes. Its errors name the line of a syntax
        # error or of a repeated key.
        file.seek(0)
        rows = list(json_rows(file, source))
        if frame is None:
            with polars_errors_as_format_errors(source, source.rpartition(".")[2]):
                frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    check_columns(frame.width, source)
    return from_polars(frame, source)


# ------------------------------------------------------------------------------------ binary
def scan_rows(path: Path) -> "pl.LazyFrame":
    """Scan a Parquet or Arrow file without reading its rows."""
    import polars as pl

    if path.suffix.lower() == ".parquet":
        return pl.scan_parquet(path, glob=False, hive_partitioning=False)
    return pl.scan_ipc(path, glob=False)


def has_rows_index(path: Path) -> bool:
    """Return whether a file is a Parquet or Arrow file from which ranges of rows can be read.

    The suffix .arrow is used for both Arrow files and Arrow streams. Only Arrow files, which begin
    with a magic number, have such an index.
    """
    if path.suffix.lower() not in {".feather", ".arrow", ".ipc"}:
        return path.suffix.lower() == ".parquet"
    with open_regular_file(path) as file:
        return file.read(6) == b"ARROW1"


def count_indexed_rows(path: Path) -> int:
    """Return the number of rows of a Parquet or Arrow file."""
    import polars as pl

    with polars_errors_as_format_errors(path.name, format_name(path)):
        return int(scan_rows(path).select(pl.len()).collect().item())


def open_rows(path: Path, source: str, start: int = 0, stop: int | None = None) -> DataTable:
    """Open a range of rows of a Parquet or Arrow file as a table.

    Columns are read only if they are requested.
    """
    is_parquet = path.suffix.lower() == ".parquet"
    if is_parquet:
        # Polars can wait forever for a damaged footer, so the footer is checked first.
        read_footer(path)
    with polars_errors_as_format_errors(source, format_name(path)):
        lazy_frame = scan_rows(path)
        schema = lazy_frame.collect_schema()
    if stop is None:
        n_rows = count_indexed_rows(path)
    else:
        n_rows = stop - start
        lazy_frame = lazy_frame.slice(start, n_rows)
    check_columns(len(schema), path.name)

    def read(names: tuple[str, ...]) -> "pl.DataFrame":
        dtypes = [schema[name] for name in names]
        entry_bytes = [np.dtype(t.to_python()).itemsize if t.is_numeric() else 1 for t in dtypes]
        check_fits_memory(n_rows * sum(entry_bytes), source, f"a table of {n_rows:,} rows")
        if is_parquet:
            check_pages(path, names, source, start, stop)
        with polars_errors_as_format_errors(source, format_name(path)):
            return lazy_frame.select(names).collect()

    return from_scan(schema, n_rows, read, source)


def check_columns(n_columns: int, source: str) -> None:
    """Raise an error if a file has no columns or too many columns."""
    if n_columns == 0:
        raise FileFormatError(f"{source} has no columns")
    _check_number_of_columns(n_columns, source)


def _check_number_of_columns(n_columns: int, source: str) -> None:
    if n_columns > _MAX_COLUMNS:
        raise FileFormatError(
            f"{source} has {n_columns:,} columns; at most {_MAX_COLUMNS:,} are read. Keep the "
            "required ones, or save class scores as one array (n, K) with `numpy.savez`"
        )


def _open_parquet(path: Path) -> DataTable:
    return open_rows(path, path.name)


def _open_ipc(path: Path) -> DataTable:
    """Open an Arrow file or an Arrow stream."""
    import polars as pl

    if has_rows_index(path):
        return open_rows(path, path.name)
    with (
        open_regular_file(path) as file,
        polars_errors_as_format_errors(path.name, format_name(path)),
    ):
        frame = pl.read_ipc_stream(file)
    check_columns(frame.width, path.name)
    return from_polars(frame, path.name)


def _open_npz(path: Path) -> DataTable:
    archive = Archive(path)
    if not archive:
        raise FileFormatError(f"{path.name} contains no arrays")
    return from_archive(archive)


# ------------------------------------------------------------------------------------ array files
def _open_array(path: Path) -> DataTable:
    """Open a file with one array as a table whose column has the name of the file."""
    return from_arrays({path.stem: read_npy(path)}, path.name)


def are_arrays(paths: Sequence[Path]) -> bool:
    """Return whether all files contain a single array.

    An error is raised if some files contain arrays and others contain tables.
    """
    array_files = [path for path in paths if path.suffix.lower() == ARRAY_SUFFIX]
    if array_files and len(array_files) < len(paths):
        other_file = next(path for path in paths if path not in array_files)
        raise InputError(
            f"{array_files[0].name} contains one array and {other_file.name} a complete table; "
            f"arrays ({ARRAY_SUFFIX}) can only be combined with other arrays"
        )
    return bool(array_files)


def open_arrays(paths: Sequence[Path]) -> DataTable:
    """Open several files, each with a single array, as a table with one column per file."""
    arrays = {}
    for path in paths:
        if path.stem in arrays:
            raise InputError(f"two files contain an array named {path.stem!r}; names must differ")
        arrays[path.stem] = read_npy(path)
    source = ", ".join(path.name for path in paths)
    lengths = {name: array.shape[:1] for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ShapeError(f"{source} must have the same number of rows; got the shapes {shapes}")
    return from_arrays(arrays, source)


_OPENERS: dict[str, Callable[[Path], DataTable]] = {
    ".csv": _open_csv,
    ".tsv": _open_csv,
    ".parquet": _open_parquet,
    ".feather": _open_ipc,
    ".arrow": _open_ipc,
    ".ipc": _open_ipc,
    ".jsonl": _open_jsonl,
    ".ndjson": _open_jsonl,
    ".npz": _open_npz,
    ".json": open_json,
    ".pth": open_torch,
    ".pt": open_torch,
    ".eval": inspect_ai.open_log,
    ARRAY_SUFFIX: _open_array,
}
SUFFIXES = tuple(_OPENERS)


def polars_errors_as_format_errors(source: str, format_name: str) -> AbstractContextManager[None]:
    """Convert errors that polars raises for a damaged file to FileFormatError."""
    import polars as pl

    # The class of a polars panic does not inherit from Exception.
    return input_files.library_errors_as_format_errors(
        source, format_name, (pl.exceptions.PanicException,)
    )
