"""Files to tables: one opener for each suffix, and plain words when a file is not what it says."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from abstain._foundation import input_files
from abstain._foundation.archives import Archive
from abstain._foundation.checks import FIRST_INEXACT_INTEGER
from abstain._foundation.input_files import (
    check_exists,
    check_fits_memory,
    file_size,
    open_regular_file,
)
from abstain._foundation.notes import READING, Note
from abstain.errors import FileFormatError
from abstain.tables import array_files
from abstain.tables._lines import (
    first_keys,
    has_lone_surrogates,
    json_rows,
    may_repeat_keys,
    plain_rows,
    read_header,
    refuse_other_encoding,
)
from abstain.tables.column import DataColumn, from_series
from abstain.tables.logs import inspect_ai, lm_eval
from abstain.tables.model_outputs import open_json, open_torch
from abstain.tables.parquet import check_pages, read_footer
from abstain.tables.table import (
    DataTable,
    from_archive,
    from_polars,
    from_scan,
    refuse_repeated,
)

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (
    ".csv",
    ".tsv",
    ".parquet",
    ".feather",
    ".arrow",
    ".ipc",
    ".jsonl",
    ".ndjson",
    ".npz",
    ".json",
    ".pth",
    ".pt",
    ".eval",
    array_files.SUFFIX,
)

#: From so many bytes on a CSV file is looked at by columns, whose types its first rows tell.
_LARGE, _FIRST = 1 << 22, 1000

#: More columns than this take minutes and gigabytes.
_MOST_COLUMNS = 200_000


def open_table(path: Path) -> DataTable:
    """Open one file by its suffix."""
    check_exists(path)
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        raise FileFormatError(_suffix_refusal(path))
    if file_size(path) == 0:
        raise FileFormatError(f"{path.name} is empty (0 bytes)")
    return opener(path)


def _suffix_refusal(path: Path) -> str:
    if path.suffix.lower() in {".pkl", ".pickle", ".joblib"}:
        hint = " Save the arrays with `numpy.savez(file, labels=..., logits=...)` and read that."
    elif path.suffix.lower() in {".gz", ".zip", ".xz", ".zst", ".bz2"}:
        hint = " Unpack it first."
    elif path.suffix.lower() in {".xlsx", ".xls", ".ods"}:
        hint = " Export the sheet as CSV."
    else:
        hint = ""
    return (
        f"{path.name} ends in {path.suffix!r}, which is no format that abstain reads; "
        f"it reads {', '.join(SUFFIXES)} and folders of FD-Shifts results.{hint}"
    )


# ------------------------------------------------------------------------------------ text
def _open_csv(path: Path) -> DataTable:

    names, separator, note = read_header(path)
    _refuse_too_wide(len(names), path.name)
    refuse_repeated(names, path.name)
    check_fits_memory(file_size(path), path.name, "its text")
    height = None if file_size(path) < _LARGE else plain_rows(path, len(names), separator)
    table = None if height is None else _by_column(path, names, separator, height)
    if table is None:
        table = _whole(path, names, separator)
    return replace(table, notes=(Note(READING, note),) if note else ())


@contextmanager
def _csv_errors(path: Path) -> Iterator[None]:
    """Raise a FileFormatError if polars cannot read a text; name its encoding if not UTF-8."""
    try:
        with plain_words(path.name, _format(path)):
            yield
    except FileFormatError as error:
        if "utf-8" in str(error):
            refuse_other_encoding(path)
        raise


def _by_column(path: Path, names: list[str], separator: str, height: int) -> DataTable | None:
    """Open a plain file of which only the asked columns are read; None where that cannot be."""
    import polars as pl

    def read(wanted: tuple[str, ...], **types: Any) -> "pl.DataFrame":
        places = {name: i for i, name in enumerate(names)}
        order = sorted(wanted, key=places.__getitem__)
        with _csv_errors(path):
            frame = pl.read_csv(
                path,
                columns=[places[name] for name in order],
                separator=separator,
                glob=False,
                **types,
            )
        frame.columns = order
        return frame

    def typed(wanted: tuple[str, ...]) -> "pl.DataFrame":
        if not wanted:
            return pl.DataFrame()
        try:
            frame = read(wanted, infer_schema_length=_FIRST)
        except FileFormatError:
            # What comes later has another type than the first rows, which all of them say.
            return read(wanted, infer_schema_length=None)
        return frame if _sure(frame) else read(wanted, infer_schema_length=None)

    with open_regular_file(path) as file, _csv_errors(path):
        head = b"".join(islice(file, 1 + _FIRST))
        first = pl.read_csv(head, separator=separator, infer_schema_length=None)
        first.columns = names
    if height < _FIRST or any(c.null_count() == len(c) for c in first.iter_columns()):
        return None
    table = from_scan(first.schema, height, typed, path.name)

    def written(name: str) -> DataColumn:
        return from_series(read((name,), infer_schema=False)[name])

    return replace(table, typeless=True, as_written=written)


def _sure(frame: "pl.DataFrame") -> bool:
    """Tell whether the type of the first rows is that of all: no number is too large for it."""
    floats = [column for column in frame.iter_columns() if column.dtype.is_float()]
    return not any((np.abs(column.to_numpy()) >= FIRST_INEXACT_INTEGER).any() for column in floats)


def _whole(path: Path, names: list[str], separator: str) -> DataTable:
    """Read all columns: each type is known from every row, and a row may be blank."""
    return _typed(path, path, names, separator)


def text_table(path: Path, block: bytes, source: str) -> DataTable:
    """Read a block of whole records of a CSV file, without its header."""
    names, separator, _ = read_header(path)
    refuse_repeated(names, path.name)
    return replace(_typed(path, block, names, separator), source=source)


def _typed(path: Path, content: Path | bytes, names: list[str], separator: str) -> DataTable:
    """Read all columns of a file, or of a block of one that has no header."""
    import polars as pl

    def read(**how: Any) -> "pl.DataFrame":
        with _csv_errors(path):
            return pl.read_csv(
                content,
                separator=separator,
                has_header=isinstance(content, Path),
                glob=False,
                **how,
            )

    frame = read(infer_schema_length=None)
    if frame.width != len(names):
        raise FileFormatError(
            f"{path.name} has {frame.width} fields in a row, and its header names {len(names)}"
        )
    # polars leaves the quotes inside a name doubled.
    frame.columns = names
    blank = _blank_rows(frame)

    def as_written(name: str) -> DataColumn:
        raw = read(columns=[names.index(name)], infer_schema=False)
        raw.columns = [name]
        return from_series((raw if blank is None else raw.filter(~blank))[name])

    frame = frame if blank is None else frame.filter(~blank)
    return replace(from_polars(frame, path.name, typeless=True), as_written=as_written)


def _blank_rows(frame: "pl.DataFrame") -> "pl.Series | None":
    """Return which rows are empty throughout, None if none is: a blank last line is no sample."""
    blank = None
    for column in frame.iter_columns():
        empty = column.is_null()
        blank = empty if blank is None else blank & empty
        # Nearly always the first column says so, and there may be 100,000 of them.
        if not blank.any():
            return None
    return blank


def _format(path: Path) -> str:
    return path.suffix.lower().lstrip(".")


def _open_jsonl(path: Path) -> DataTable:
    _refuse_too_wide(len(first_keys(path)), path.name)
    check_fits_memory(file_size(path), path.name, "its text")
    with open_regular_file(path) as file:
        if is_log(path):
            return lm_eval.table_of(json_rows(file, path.name), path.name)
        return lines_table(file, path.name)


def is_log(path: Path) -> bool:
    """Tell whether a file of JSON lines holds the samples of lm-evaluation-harness."""
    return set(first_keys(path)) >= lm_eval.SAMPLE_FIELDS


def lines_table(file: IO[bytes], source: str) -> DataTable:
    """Read objects of JSON, one in each line."""
    import polars as pl

    frame, repeated = None, True
    # polars makes a NUL of half of a surrogate pair.
    if not has_lone_surrogates(file):
        file.seek(0)
        with suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException):
            frame = pl.read_ndjson(file, infer_schema_length=None)
    if frame is not None:
        file.seek(0)
        repeated = may_repeat_keys(file, frame)
    if frame is None or repeated:
        # Python writes NaN, which strict JSON lacks; the slow reader also finds the bad line, and
        # a key that is there twice.
        file.seek(0)
        rows = list(json_rows(file, source))
        if frame is None:
            with plain_words(source, source.rpartition(".")[2]):
                frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    refuse_columnless(frame.width, source)
    return from_polars(frame, source)


# ------------------------------------------------------------------------------------ binary
def _open_parquet(path: Path) -> DataTable:
    import polars as pl

    # Before polars looks at the file, which a damaged footer can make wait forever.
    read_footer(path)
    return _scanned(
        path,
        lambda: pl.scan_parquet(path, glob=False, hive_partitioning=False),
        lambda columns: check_pages(path, columns, path.name),
    )


def _scanned(
    path: Path,
    scan: "Callable[[], pl.LazyFrame]",
    check: Callable[[tuple[str, ...]], None] = lambda _: None,
) -> DataTable:
    """Read a file that knows its columns and rows, and of these the columns that are asked for.

    `check` refuses columns on which the library would fail badly.
    """
    import polars as pl

    with plain_words(path.name, _format(path)):
        lazy = scan()
        schema = lazy.collect_schema()
        height = int(lazy.select(pl.len()).collect().item())
    refuse_columnless(len(schema), path.name)

    def read(names: tuple[str, ...]) -> "pl.DataFrame":
        size = sum(height * _width(schema[name]) for name in names)
        check_fits_memory(size, path.name, f"{height:,} rows of what is needed")
        check(names)
        with plain_words(path.name, _format(path)):
            return lazy.select(names).collect()

    return from_scan(schema, height, read, path.name)


def _width(dtype: "pl.DataType") -> int:
    """Return the fewest bytes that an entry takes in memory."""
    return np.dtype(dtype.to_python()).itemsize if dtype.is_numeric() else 1


def refuse_columnless(count: int, source: str) -> None:
    """Refuse a file without columns, or with more than can be meant."""
    if count == 0:
        raise FileFormatError(f"{source} has no columns")
    _refuse_too_wide(count, source)


def _refuse_too_wide(count: int, source: str) -> None:
    if count > _MOST_COLUMNS:
        raise FileFormatError(
            f"{source} has {count:,} columns; at most {_MOST_COLUMNS:,} are read. Keep those that "
            "are needed, or save class scores as one array (n, K) with `numpy.savez`"
        )


def _open_ipc(path: Path) -> DataTable:
    import polars as pl

    # Two layouts share the suffix .arrow; only the one for files starts with its name.
    with open_regular_file(path) as file:
        if file.read(6) == b"ARROW1":
            return _scanned(path, lambda: pl.scan_ipc(path, glob=False))
    with open_regular_file(path) as file, plain_words(path.name, _format(path)):
        frame = pl.read_ipc_stream(file)
    refuse_columnless(frame.width, path.name)
    return from_polars(frame, path.name)


def _open_npz(path: Path) -> DataTable:
    archive = Archive(path)
    if not archive:
        raise FileFormatError(f"{path.name} holds no arrays")
    return from_archive(archive)


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
    array_files.SUFFIX: array_files.open_array,
}


def plain_words(source: str, format_name: str) -> AbstractContextManager[None]:
    """Turn what polars raises on a damaged file into a FileFormatError of one sentence."""
    import polars as pl

    # A panic of polars is no `Exception`.
    return input_files.library_errors_as_format_errors(
        source, format_name, (pl.exceptions.PanicException,)
    )
