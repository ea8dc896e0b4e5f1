"""Division of a file into chunks that fit in memory, such as row groups or blocks of lines.

A `FileChunk` contains only a position in the file, so it can be sent to another process. The chunks
are in the order of the file and cover the complete file.
"""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Final, Literal

import numpy as np

from abstain._foundation.archives import Archive
from abstain._foundation.input_files import file_size, open_regular_file
from abstain.errors import FileFormatError
from abstain.tables.column import DataColumn, from_array
from abstain.tables.files import (
    SUFFIXES,
    count_indexed_rows,
    has_rows_index,
    is_log,
    open_rows,
    open_table,
    read_csv_block,
    read_json_lines,
)
from abstain.tables.parquet import row_groups
from abstain.tables.table import DataTable

#: Size in bytes of a chunk of text, and maximum size of a record with quoted line ends.
_TEXT_CHUNK_BYTES: Final = 32 << 20
_MAX_LINE_BYTES: Final = 1 << 30

#: Size in bytes of a chunk of another file, and its minimum and maximum number of rows.
_CHUNK_BYTES: Final = 64 << 20
_MIN_ROWS, _MAX_ROWS = 1 << 12, 1 << 20


@dataclass(frozen=True)
class FileChunk:
    """A chunk of a file.

    Attributes
    ----------
    path : Path
        The file.
    location : str
        Position in the file as text, such as "row groups 4 to 7", or an empty text for a complete
        file.
    start, stop : int
        First and end byte of a chunk of text; first and end row of another chunk.
    first_row : int
        Number of rows of the file that precede the chunk.
    share : float
        Share of the file that has been read when the chunk has been read.
    custom_label : str
        Name of the file in messages, if it differs from the file name.
    """

    path: Path
    location: str
    start: int
    stop: int
    first_row: int
    share: float = 1.0
    custom_label: str = ""

    @property
    def file_label(self) -> str:
        """Name of the file, for messages."""
        return self.custom_label or self.path.name

    @property
    def source(self) -> str:
        """Name of the file with the position of the chunk, for messages."""
        return f"{self.file_label}, {self.location}" if self.location else self.file_label

    @property
    def size(self) -> int:
        """Size of the chunk: the number of bytes for text, and the number of rows otherwise."""
        return self.stop - self.start

    @property
    def n_rows(self) -> int:
        """Number of rows of the chunk, or -1 for a chunk of text, whose lines are not counted."""
        return -1 if _format_of(self.path) in {"csv", "json lines"} else self.size

    def open(self) -> DataTable:
        """Open the chunk as a table. Columns are read only if they are requested."""
        file_format = _format_of(self.path)
        if file_format == "csv":
            table = read_csv_block(self.path, self._read_bytes(), self.source)
        elif file_format == "json lines":
            table = read_json_lines(io.BytesIO(self._read_bytes()), self.source)
        elif file_format == "indexed rows":
            table = open_rows(self.path, self.source, self.start, self.stop)
        elif file_format == "npz":
            table = _open_npz(self)
        else:
            table = open_table(self.path)
        return replace(table, source=self.source, first_row=self.first_row)

    def _read_bytes(self) -> bytes:
        with open_regular_file(self.path) as file:
            file.seek(self.start)
            return file.read(self.size)


def _format_of(path: Path) -> Literal["csv", "json lines", "indexed rows", "npz", "undivided"]:
    """Return the name of the format that determines how a file is divided."""
    suffix = path.suffix.lower()
    if suffix in {".csv", ".tsv"}:
        return "csv"
    # A log can contain the lines on one answer anywhere, so a log is not divided.
    if suffix in {".jsonl", ".ndjson"} and not is_log(path):
        return "json lines"
    if has_rows_index(path):
        return "indexed rows"
    return "npz" if suffix == ".npz" else "undivided"


def chunk_size_limits() -> list[int]:
    """Return the limits of the sizes of chunks."""
    return [_TEXT_CHUNK_BYTES, _CHUNK_BYTES, _MIN_ROWS, _MAX_ROWS]


def iter_chunks(path: Path, n_columns: int = 1) -> Iterator[FileChunk]:
    """Yield the chunks of a file from which `n_columns` columns are read.

    A file without rows has no chunks.
    """
    max_rows = _CHUNK_BYTES // (8 * max(n_columns, 1))
    max_rows = min(max(max_rows, _MIN_ROWS), _MAX_ROWS)
    if path.suffix.lower() not in SUFFIXES or file_size(path) == 0:
        open_table(path)  # This call raises an error that describes the file.
    file_format = _format_of(path)
    if file_format == "csv":
        yield from _divide_text(path, _header_end(path), _find_last_record_end)
    elif file_format == "json lines":
        yield from _divide_text(path, 0, _find_last_line_end)
    elif path.suffix.lower() == ".parquet":
        yield from _divide_parquet(path, max_rows)
    elif file_format == "indexed rows":
        n_rows = count_indexed_rows(path)
        yield from _divide_rows(path, 0, n_rows, max_rows, n_rows=n_rows)
    elif file_format == "npz":
        headers = Archive(path).headers.values()
        has_no_rows = {header.shape[0] for header in headers if header.shape} == {0}
        n_rows = 0 if has_no_rows else open_table(path).n_rows
        yield from _divide_rows(path, 0, n_rows, max_rows, n_rows=n_rows)
    else:
        yield FileChunk(path, "", 0, open_table(path).n_rows, 0)


# ------------------------------------------------------------------------------------ text
def _divide_text(
    path: Path, start: int, find_last_line_end: Callable[[bytes], tuple[int, int]]
) -> Iterator[FileChunk]:
    """Yield chunks of complete lines of a text file."""
    first_row, size = 0, file_size(path)
    with open_regular_file(path) as file:
        while start < size:
            end, n_lines = _find_chunk_end(file, start, path, find_last_line_end)
            is_complete_file = first_row == 0 and end == size
            location = "" if is_complete_file else f"rows from {first_row:,} on"
            yield FileChunk(path, location, start, end, first_row, end / size)
            first_row += n_lines
            start = end


def _find_chunk_end(
    file: IO[bytes], start: int, path: Path, find_last_line_end: Callable[[bytes], tuple[int, int]]
) -> tuple[int, int]:
    """Return the end of the chunk that begins at `start`, and its number of lines."""
    length, size = _TEXT_CHUNK_BYTES, file_size(path)
    while True:
        file.seek(start)
        block = file.read(length)
        end, n_lines = find_last_line_end(block)
        if start + len(block) >= size:
            return size, n_lines
        if end:
            return start + end, n_lines
        if length >= _MAX_LINE_BYTES:
            raise FileFormatError(
                f"{path.name} cannot be read: a line, or a quote in it, does not end within "
                f"{_MAX_LINE_BYTES >> 20} MB"
            )
        length *= 2


def _find_last_line_end(block: bytes) -> tuple[int, int]:
    return block.rfind(b"\n") + 1, block.count(b"\n")


def _find_last_record_end(block: bytes) -> tuple[int, int]:
    """Return the end of the last complete CSV record and the number of records.

    A record with quotes may contain line ends.
    """
    if b'"' not in block:
        return _find_last_line_end(block)
    characters = np.frombuffer(block, np.uint8)
    line_ends = np.flatnonzero(characters == ord("\n"))
    quotes = np.flatnonzero(characters == ord('"'))
    n_quotes_before = np.searchsorted(quotes, line_ends)
    record_ends = line_ends[n_quotes_before % 2 == 0]
    if record_ends.size == 0:
        return 0, 0
    return int(record_ends[-1]) + 1, record_ends.size


def _header_end(path: Path) -> int:
    """Return the position of the first row of a CSV file, in bytes."""
    n_quotes, has_text = 0, False
    with open_regular_file(path) as file:
        for line in file:
            has_text = has_text or bool(line.strip())
            n_quotes += line.count(b'"')
            if has_text and n_quotes % 2 == 0:
                return file.tell()
    return file_size(path)


# ------------------------------------------------------------------------------------ binary
def _divide_parquet(path: Path, max_rows: int) -> Iterator[FileChunk]:
    """Yield chunks of several small row groups, or of a part of a large row group."""
    group_sizes = row_groups(path)
    n_rows = sum(group_sizes)
    next_group = first_row = 0
    while next_group < len(group_sizes):
        first_group = next_group
        n_chunk_rows = group_sizes[first_group]
        next_group += 1
        while next_group < len(group_sizes) and n_chunk_rows + group_sizes[next_group] <= max_rows:
            n_chunk_rows += group_sizes[next_group]
            next_group += 1
        has_all_groups = first_group == 0 and next_group == len(group_sizes)
        if has_all_groups and n_chunk_rows <= max_rows:
            location = ""
        elif next_group == first_group + 1:
            location = f"row group {first_group}"
        else:
            location = f"row groups {first_group} to {next_group - 1}"
        end = first_row + n_chunk_rows
        yield from _divide_rows(path, first_row, end, max_rows, n_rows=n_rows, location=location)
        first_row = end


def _divide_rows(
    path: Path, start: int, stop: int, max_rows: int, *, n_rows: int, location: str = ""
) -> Iterator[FileChunk]:
    """Yield chunks of at most `max_rows` rows from a range of the `n_rows` rows of a file."""
    if start == stop:
        return
    if stop - start <= max_rows:
        yield FileChunk(path, location, start, stop, start, stop / n_rows)
        return
    for low in range(start, stop, max_rows):
        high = min(low + max_rows, stop)
        rows = f"rows {low:,} to {high - 1:,}"
        chunk_location = f"{location}, {rows}" if location else rows
        yield FileChunk(path, chunk_location, low, high, low, high / n_rows)


def _open_npz(chunk: FileChunk) -> DataTable:
    """Open a range of rows of an archive. Uncompressed arrays are memory-mapped."""
    table = open_table(chunk.path)
    status = chunk.path.stat()
    state = (status.st_ino, status.st_size, status.st_mtime_ns)

    def load(names: tuple[str, ...]) -> dict[str, DataColumn]:
        arrays = {name: _memory_mapped_array(chunk.path, name, state) for name in names}
        return {
            name: from_array(array[chunk.start : chunk.stop], name)
            for name, array in arrays.items()
        }

    per_row = [key for key, length in table.length_by_key.items() if length == table.n_rows]
    length_by_key = dict.fromkeys(per_row, chunk.size)
    return replace(table, n_rows=chunk.size, loader=load, length_by_key=length_by_key)


@lru_cache(maxsize=8)
def _memory_mapped_array(path: Path, name: str, state: tuple[int, int, int]) -> np.ndarray:
    """Return an array of an archive. Uncompressed arrays are memory-mapped.

    Results are cached by the `state` of the file, so a changed file is read again.
    """
    _verify_checksum(path, name, state)
    return Archive(path).memory_map(name)


@lru_cache(maxsize=1 << 12)
def _verify_checksum(path: Path, name: str, state: tuple[int, int, int]) -> None:
    """Verify the checksum of an array. It is verified only once for all chunks of the file."""
    del state
    Archive(path).verify(name)
