"""Files to tables: one opener for each suffix, and plain words when a file is not what it says."""

import csv
import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from abstain._foundation import input_files
from abstain._foundation.archives import Archive
from abstain._foundation.input_files import (
    HEADER,
    opened,
    refuse_absent,
    refuse_beyond_memory,
    size_of,
)
from abstain._foundation.json_records import parsed
from abstain.errors import FileFormatError, InputError
from abstain.tables.column import DataColumn, from_series
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
)

#: More columns than this take minutes and gigabytes.
_MOST_COLUMNS = 200_000


def open_table(path: Path) -> DataTable:
    """Open one file by its suffix."""
    refuse_absent(path)
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        raise FileFormatError(_suffix_refusal(path))
    if size_of(path) == 0:
        msg = f"{path.name} is empty (0 bytes)"
        raise FileFormatError(msg)
    return opener(path)


def _suffix_refusal(path: Path) -> str:
    if path.suffix.lower() in {".pkl", ".pickle", ".pt", ".pth", ".npy", ".joblib"}:
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
    import polars as pl

    names, separator, note = read_header(path)
    _refuse_too_wide(len(names), path.name)
    refuse_repeated(names, path.name)
    refuse_beyond_memory(size_of(path), path.name, "its text")
    with plain_words(path.name, _format(path)):
        frame = pl.read_csv(path, separator=separator, infer_schema_length=None, glob=False)
        # polars leaves the quotes inside a name doubled.
        frame.columns = names
    blank = _blank_rows(frame)

    def as_written(name: str) -> DataColumn:
        with plain_words(path.name, _format(path)):
            raw = pl.read_csv(
                path,
                columns=[names.index(name)],
                separator=separator,
                infer_schema=False,
                glob=False,
            )
            raw.columns = [name]
        return from_series((raw if blank is None else raw.filter(~blank))[name])

    frame = frame if blank is None else frame.filter(~blank)
    table = from_polars(frame, path.name, typeless=True)
    return replace(table, notes=(note,) if note else (), as_written=as_written)


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
    import polars as pl

    _refuse_too_wide(first_keys(path), path.name)
    refuse_beyond_memory(size_of(path), path.name, "its text")
    try:
        frame = pl.read_ndjson(path, infer_schema_length=None)
        repeated = may_repeat_keys(path, frame)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        frame, repeated = None, True
    if frame is None or repeated:
        # Python writes NaN, which strict JSON lacks; the slow reader also finds the bad line, and
        # a key that is there twice.
        rows = list(json_rows(path))
        if frame is None:
            with plain_words(path.name, _format(path)):
                frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    refuse_columnless(frame.width, path.name)
    return from_polars(frame, path.name)


# ------------------------------------------------------------------------------------ binary
def _open_parquet(path: Path) -> DataTable:
    import polars as pl

    return _scanned(path, lambda: pl.scan_parquet(path, glob=False, hive_partitioning=False))


def _scanned(path: Path, scan: "Callable[[], pl.LazyFrame]") -> DataTable:
    """Read a file that knows its columns and rows, and of these the columns that are asked for."""
    import polars as pl

    with plain_words(path.name, _format(path)):
        lazy = scan()
        schema = lazy.collect_schema()
        height = int(lazy.select(pl.len()).collect().item())
    refuse_columnless(len(schema), path.name)

    def read(names: tuple[str, ...]) -> "pl.DataFrame":
        size = sum(height * _width(schema[name]) for name in names)
        refuse_beyond_memory(size, path.name, f"{height:,} rows of what is needed")
        with plain_words(path.name, _format(path)):
            return lazy.select(names).collect()

    return from_scan(schema, height, read, path.name)


def _width(dtype: "pl.DataType") -> int:
    """Return the fewest bytes that an entry takes in memory."""
    return np.dtype(dtype.to_python()).itemsize if dtype.is_numeric() else 1


def refuse_columnless(count: int, source: str) -> None:
    """Refuse a file without columns, or with more than can be meant."""
    if count == 0:
        msg = f"{source} has no columns"
        raise FileFormatError(msg)
    _refuse_too_wide(count, source)


def _refuse_too_wide(count: int, source: str) -> None:
    if count > _MOST_COLUMNS:
        msg = (
            f"{source} has {count:,} columns; at most {_MOST_COLUMNS:,} are read. Keep those that "
            "are needed, or save class scores as one array (n, K) with `numpy.savez`"
        )
        raise FileFormatError(msg)


def _open_ipc(path: Path) -> DataTable:
    import polars as pl

    # Two layouts share the suffix .arrow; only the one for files starts with its name.
    with opened(path) as file:
        if file.read(6) == b"ARROW1":
            return _scanned(path, lambda: pl.scan_ipc(path, glob=False))
    with opened(path) as file, plain_words(path.name, _format(path)):
        frame = pl.read_ipc_stream(file)
    refuse_columnless(frame.width, path.name)
    return from_polars(frame, path.name)


def _open_npz(path: Path) -> DataTable:
    archive = Archive(path)
    if not archive:
        msg = f"{path.name} holds no arrays"
        raise FileFormatError(msg)
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
}


#: What stands in quotes, and a quote that this line does not close.
_QUOTED = re.compile(r'"(?:[^"]|"")*(?:"|$)')
#: No name of a column has more lines.
_MOST_LINES = 100
_BLOCK = 1 << 20


# ------------------------------------------------------------- what is looked at before polars
# polars keeps the first of two equal keys, and renames the second of two equal columns.
def lines_of(file: IO[bytes], source: str, most: int | None = HEADER) -> Iterator[str]:
    """Yield the lines of a text; refuse to read more than `most` bytes of it, if there is a most.

    Lines end where JSON and CSV say so, not at U+2028 and its like.
    """
    read = 0
    while line := file.readline(-1 if most is None else most + 1 - read):
        start, read = read, read + len(line)
        if most is not None and read > most:
            msg = (
                f"{source} cannot be read: its first line, or a quote in it, has no end within "
                f"{most >> 20} MB"
            )
            raise FileFormatError(msg)
        if b"\x00" in line:
            ending = source.rpartition(".")[2]
            msg = f"{source} is not a text file, though it ends in '.{ending}'"
            raise FileFormatError(msg)
        try:
            yield line.decode("utf-8" if start else "utf-8-sig")
        except UnicodeDecodeError as error:
            msg = (
                f"{source} is not text in UTF-8 (byte {start + error.start}); save it with the "
                "encoding UTF-8"
            )
            raise FileFormatError(msg) from error


# ------------------------------------------------------------------------------------ CSV
def read_header(path: Path) -> tuple[list[str], str, str]:
    """Return the names of the columns, their separator, and what is to say about it.

    The header is one record: a name in quotes may hold separators, quotes and line ends.
    """
    with opened(path) as file:
        lines = lines_of(file, path.name)
        first = _first_record(lines)
        separator, note = _separator("".join(first), path)
        try:
            names = next(csv.reader(chain(first, lines), delimiter=separator), [])
        except csv.Error as error:
            msg = (
                f"the header of {path.name} cannot be read ({error}): is a quote opened and not "
                "closed?"
            )
            raise FileFormatError(msg) from error
    return names, separator, note


def _first_record(lines: Iterator[str]) -> list[str]:
    """Return the first line that is not blank, and those after it until every quote is closed."""
    found = [line for line in [next((x for x in lines if x.strip()), "")] if line]
    while "".join(found).count('"') % 2 and len(found) < _MOST_LINES:
        more = next(lines, None)
        if more is None:
            break
        found.append(more)
    return found


def _separator(record: str, path: Path) -> tuple[str, str]:
    if path.suffix.lower() == ".tsv":
        return "\t", ""
    plain = _QUOTED.sub("", record)
    if "," not in plain:
        for other, word in ((";", "semicolons"), ("\t", "tabs")):
            if other in plain:
                return other, f"the columns of {path.name} are separated by {word}"
    return ",", ""


# ------------------------------------------------------------------------------------ JSON lines
def first_keys(path: Path) -> int:
    """Return how many keys the first line has; 0 if it is no JSON, which its reader will say."""
    with opened(path) as file:
        line = next((x for x in lines_of(file, path.name) if x.strip()), "")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return 0
    return len(found) if isinstance(found, dict) else 0


def may_repeat_keys(path: Path, frame: "pl.DataFrame") -> bool:
    """Tell whether a line may hold a key twice; a no is proven by counting.

    Where no key has a blank behind it, '":' comes at least once for each key of the file; where it
    comes as often as the table has values, no key is left over.
    """
    found = held = 0
    with opened(path) as file:
        last = b""
        while block := file.read(_BLOCK):
            block = last + block
            if b" :" in block or b"\t:" in block or b"\r:" in block:
                return True
            found += block.count(b'":') - last.count(b'":')
            last = block[-1:]
    for column in frame.iter_columns():
        held += len(column) - column.null_count()
    return found != held


def json_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file with one in each line; NaN and infinities are numbers here."""
    with opened(path) as file:
        for number, line in enumerate(lines_of(file, path.name, None), start=1):
            if line.strip():
                yield _row(line, f"{path.name}: line {number}")


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        return parsed(line, finite=False)
    except InputError as error:
        msg = f"{where} is not a JSON object such as {{'label': 1}}: {error}"
        raise FileFormatError(msg) from error


def plain_words(source: str, format_name: str) -> AbstractContextManager[None]:
    """Turn what polars raises on a damaged file into a FileFormatError of one sentence."""
    import polars as pl

    # A panic of polars is no `Exception`.
    return input_files.plain_words(source, format_name, (pl.exceptions.PanicException,))
