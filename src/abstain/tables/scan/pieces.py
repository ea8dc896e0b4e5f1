"""A file in pieces that fit in memory: row groups, blocks of lines, stretches of rows.

A piece is a few numbers, so it can be sent to another process or written down; only its table has
the rows. Pieces of a file come in its order, and together they are the file.
"""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import numpy as np

from abstain._foundation.archives import Archive
from abstain._foundation.input_files import file_size, open_regular_file
from abstain.errors import FileFormatError
from abstain.tables.column import DataColumn, from_array
from abstain.tables.files import (
    is_log,
    lines_table,
    open_table,
    plain_words,
    refuse_columnless,
    text_table,
)
from abstain.tables.parquet import check_pages, row_groups
from abstain.tables.table import DataTable, from_scan

if TYPE_CHECKING:
    import polars as pl

#: Bytes of a block of text, and the most that a line with line ends in quotes may have.
_BLOCK: Final = 32 << 20
_LONGEST: Final = 1 << 30

#: Bytes of a piece of a file that says how many rows it has, and fewest and most rows of it.
_BYTES: Final = 64 << 20
_LEAST, _MOST = 1 << 12, 1 << 20


@dataclass(frozen=True)
class Piece:
    """A part of a file.

    Attributes
    ----------
    path : Path
        The file.
    place : str
        Where in it, in words: "row groups 4 to 7"; empty for all of it.
    start, stop : int
        Between which bytes of a text, or which rows of another file.
    row : int
        How many rows of the file come before it.
    share : float
        How much of the file is read with it.
    name : str
        How messages name the file, where that is not its name alone.
    """

    path: Path
    place: str
    start: int
    stop: int
    row: int
    share: float = 1.0
    name: str = ""

    @property
    def file(self) -> str:
        """How messages name the file."""
        return self.name or self.path.name

    @property
    def source(self) -> str:
        """How messages name it."""
        return f"{self.file}, {self.place}" if self.place else self.file

    @property
    def size(self) -> int:
        """How much of the file it is: bytes of a text, rows elsewhere."""
        return self.stop - self.start

    @property
    def rows(self) -> int:
        """How many rows it has; -1 of a text, whose lines nobody has counted."""
        return -1 if self.path.suffix.lower() in _TEXTS and not is_log(self.path) else self.size

    def open(self) -> DataTable:
        """Open it as a table, of which only the columns that are asked for are read."""
        table = _format_of(self.path).open(self)
        return replace(table, source=self.source, first=self.row)


@dataclass(frozen=True)
class _Format:
    """How files of one kind are cut, and how a piece of one is opened."""

    cut: Callable[[Path, int], Iterator[Piece]]
    open: Callable[[Piece], DataTable]


def cut_sizes() -> list[int]:
    """Return what decides where files are cut: with other sizes the pieces are others."""
    return [_BLOCK, _BYTES, _LEAST, _MOST]


def pieces_of(path: Path, width: int = 1) -> Iterator[Piece]:
    """Yield the pieces of a file of which so many numbers of each row are read.

    A file that has columns and no rows, as programs that write many parts leave them, has none.
    """
    rows = min(max(_BYTES // (8 * max(width, 1)), _LEAST), _MOST)
    if path.suffix.lower() not in _FORMATS or file_size(path) == 0:
        open_table(path)  # which says what is wrong
    else:
        yield from _format_of(path).cut(path, rows)


def _format_of(path: Path) -> _Format:
    found = _FORMATS[path.suffix.lower()]
    # The lines of a log that speak of one answer may lie anywhere in it.
    return _WHOLE if found is _LINES and is_log(path) else found


# ------------------------------------------------------------------------------------ text
def _cut_csv(path: Path, _: int) -> Iterator[Piece]:
    start = _header_end(path)
    yield from _lines(path, start, _ends_of_records)


def _cut_lines(path: Path, _: int) -> Iterator[Piece]:
    yield from _lines(path, 0, lambda block: (block.rfind(b"\n") + 1, block.count(b"\n")))


def _lines(path: Path, start: int, last: Callable[[bytes], tuple[int, int]]) -> Iterator[Piece]:
    """Yield blocks of whole lines; `last` says where the last whole one ends, and how many."""
    row, size = 0, file_size(path)
    with open_regular_file(path) as file:
        while start < size:
            end, count = _whole_lines(file, start, path, last)
            place = "" if not row and end == size else f"rows from {row:,} on"
            yield Piece(path, place, start, end, row, end / size)
            row, start = row + count, end


def _whole_lines(
    file: IO[bytes], start: int, path: Path, last: Callable[[bytes], tuple[int, int]]
) -> tuple[int, int]:
    """Return where a block from here on ends, and how many lines it has."""
    length, size = _BLOCK, file_size(path)
    while True:
        file.seek(start)
        block = file.read(length)
        end, count = last(block)
        if start + len(block) >= size:
            return size, count
        if end:
            return start + end, count
        if length >= _LONGEST:
            raise FileFormatError(
                f"{path.name} cannot be read: a line, or a quote in it, has no end within "
                f"{_LONGEST >> 20} MB"
            )
        length *= 2


def _ends_of_records(block: bytes) -> tuple[int, int]:
    """Return where the last record of a CSV block ends, and how many there are: not in quotes."""
    if b'"' not in block:
        return block.rfind(b"\n") + 1, block.count(b"\n")
    marks = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(marks == ord("\n"))
    quotes = np.flatnonzero(marks == ord('"'))
    outside = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return (int(outside[-1]) + 1, outside.size) if outside.size else (0, 0)


def _header_end(path: Path) -> int:
    """Return the byte at which the rows of a CSV file begin."""
    with open_regular_file(path) as file:
        quotes, begun = 0, False
        for line in file:
            begun = begun or bool(line.strip())
            quotes += line.count(b'"')
            if begun and quotes % 2 == 0:
                return file.tell()
    return file_size(path)


def _block_of(piece: Piece) -> bytes:
    with open_regular_file(piece.path) as file:
        file.seek(piece.start)
        return file.read(piece.stop - piece.start)


def _open_csv(piece: Piece) -> DataTable:
    return text_table(piece.path, _block_of(piece), piece.source)


def _open_lines(piece: Piece) -> DataTable:
    return lines_table(io.BytesIO(_block_of(piece)), piece.source)


# ------------------------------------------------------------------------------------ binary
def _cut_parquet(path: Path, rows: int) -> Iterator[Piece]:
    first = group = row = 0
    sizes = row_groups(path)
    height = sum(sizes)
    while group < len(sizes):
        first, count = group, sizes[group]
        group += 1
        while group < len(sizes) and count + sizes[group] <= rows:
            count += sizes[group]
            group += 1
        place = f"row group {first}" if group == first + 1 else f"row groups {first} to {group - 1}"
        place = "" if first == 0 and group == len(sizes) and count <= rows else place
        yield from _stretches(path, place, (row, row + count), rows, height=height)
        row += count


def _stretches(
    path: Path, place: str, within: tuple[int, int], rows: int, *, height: int
) -> Iterator[Piece]:
    """Yield a range of the rows of a file in pieces of no more than so many; nothing of no rows."""
    start, stop = within
    if start == stop:
        return
    if stop - start <= rows:
        yield Piece(path, place, start, stop, start, stop / height)
        return
    for low in range(start, stop, rows):
        high = min(low + rows, stop)
        said = f"rows {low:,} to {high - 1:,}"
        yield Piece(path, f"{place}, {said}" if place else said, low, high, low, high / height)


def _open_parquet(piece: Piece) -> DataTable:
    import polars as pl

    def scan() -> "pl.LazyFrame":
        return pl.scan_parquet(piece.path, glob=False, hive_partitioning=False)

    def check(columns: tuple[str, ...]) -> None:
        check_pages(piece.path, columns, piece.source, piece.start, piece.stop)

    return _sliced(piece, scan, check)


def _sliced(
    piece: Piece,
    scan: "Callable[[], pl.LazyFrame]",
    check: Callable[[tuple[str, ...]], None] = lambda _: None,
) -> DataTable:
    """Open the rows of a piece; `check` refuses columns on which the library would fail badly."""
    with plain_words(piece.source, piece.path.suffix.lower().lstrip(".")):
        schema = scan().collect_schema()
    refuse_columnless(len(schema), piece.path.name)

    def read(names: tuple[str, ...]) -> "pl.DataFrame":
        check(names)
        with plain_words(piece.source, piece.path.suffix.lower().lstrip(".")):
            return scan().slice(piece.start, piece.size).select(names).collect()

    return from_scan(schema, piece.size, read, piece.source)


def _cut_ipc(path: Path, rows: int) -> Iterator[Piece]:
    import polars as pl

    with open_regular_file(path) as file:
        if file.read(6) != b"ARROW1":
            # The layout of streams has no table of contents.
            yield from _whole(path, rows)
            return
    with plain_words(path.name, path.suffix.lower().lstrip(".")):
        height = int(pl.scan_ipc(path, glob=False).select(pl.len()).collect().item())
    yield from _stretches(path, "", (0, height), rows, height=height)


def _open_ipc(piece: Piece) -> DataTable:
    import polars as pl

    with open_regular_file(piece.path) as file:
        if file.read(6) != b"ARROW1":
            return open_table(piece.path)
    return _sliced(piece, lambda: pl.scan_ipc(piece.path, glob=False))


def _cut_npz(path: Path, rows: int) -> Iterator[Piece]:
    if {header.shape[0] for header in Archive(path).headers.values() if header.shape} == {0}:
        # A part without rows, as the other formats may have.
        return
    height = open_table(path).height
    yield from _stretches(path, "", (0, height), rows, height=height)


def _open_npz(piece: Piece) -> DataTable:
    table = open_table(piece.path)
    archive = Archive(piece.path)
    found = piece.path.stat()
    state = (found.st_ino, found.st_size, found.st_mtime_ns)

    def load(names: tuple[str, ...]) -> dict[str, DataColumn]:
        return {
            name: from_array(_mapped(archive.path, name, state)[piece.start : piece.stop], name)
            for name in names
        }

    lengths = {n: piece.size for n, length in table.lengths.items() if length == table.height}
    return replace(table, height=piece.size, loader=load, lengths=lengths)


@lru_cache(maxsize=8)
def _mapped(path: Path, name: str, state: tuple[int, int, int]) -> np.ndarray:
    """Return an array of an archive, as it lies on the disk where it is not compressed.

    `state` changes when the file is written anew: what was kept of it before is then another array.
    """
    _verified(path, name, state)
    return Archive(path).memory_map(name)


@lru_cache(maxsize=1 << 12)
def _verified(path: Path, name: str, state: tuple[int, int, int]) -> None:
    """Compare an array of an archive with its checksum, once for all pieces of the file."""
    del state
    Archive(path).verify(name)


def _whole(path: Path, _: int) -> Iterator[Piece]:
    yield Piece(path, "", 0, open_table(path).height, 0)


def _open_whole(piece: Piece) -> DataTable:
    return open_table(piece.path)


_CSV, _LINES = _Format(_cut_csv, _open_csv), _Format(_cut_lines, _open_lines)
_IPC, _WHOLE = _Format(_cut_ipc, _open_ipc), _Format(_whole, _open_whole)
_TEXTS: Final = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
_FORMATS: dict[str, _Format] = {
    ".csv": _CSV,
    ".tsv": _CSV,
    ".parquet": _Format(_cut_parquet, _open_parquet),
    ".feather": _IPC,
    ".arrow": _IPC,
    ".ipc": _IPC,
    ".jsonl": _LINES,
    ".ndjson": _LINES,
    ".npz": _Format(_cut_npz, _open_npz),
    ".json": _WHOLE,
    ".pth": _WHOLE,
    ".pt": _WHOLE,
    ".eval": _WHOLE,
}
