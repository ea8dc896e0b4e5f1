"""The structure of a Parquet file: its row groups, column chunks and the headers of its pages.

Polars reads the values and does not report where row groups begin, which a reader needs that reads
each group once and names the damaged one. Polars also trusts the counts in a file: a negative count
in the header of a page aborts the process, and a damaged footer can make it wait forever. So the
counts are checked here first. Footer and headers are Thrift structures in the compact protocol.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Final

from abstain._foundation.input_files import check_fits_memory, open_regular_file
from abstain.errors import FileFormatError

#: What a file begins and ends with, and the bytes of the length before the end.
_MAGIC: Final = b"PAR1"
_TAIL: Final = 8

#: Types of the compact protocol.
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY = 0, 1, 2, 3, 7, 8
_LIST, _SET, _MAP, _STRUCT = 9, 10, 11, 12

#: A number of 64 bits has at most so many bytes.
_VARINT: Final = 10

#: Bytes that are read for the header of a page at first; statistics of text may take more.
_HEADER: Final = 1 << 8

#: Errors that follow from fields that are missing, have another type, or end too early.
_DAMAGE: Final = (AttributeError, LookupError, TypeError, ValueError, RecursionError)


@dataclass(frozen=True)
class ColumnChunk:
    """The values of one column in one row group.

    Attributes
    ----------
    path : tuple of str
        Names from the column to the values; more than one of nested values.
    start, size : int
        Where the pages begin in the file, and how many bytes they take.
    n_values : int
        How many values, missing ones included.
    """

    path: tuple[str, ...]
    start: int
    size: int
    n_values: int


@dataclass(frozen=True)
class RowGroup:
    """Rows that lie together in a file, column by column; encrypted columns are left out."""

    n_rows: int
    chunks: tuple[ColumnChunk, ...]


def row_groups(path: Path) -> tuple[int, ...]:
    """Return the number of rows of each row group; refuse a file that is cut short."""
    return tuple(group.n_rows for group in read_footer(path))


def read_footer(path: Path) -> tuple[RowGroup, ...]:
    """Return the row groups of a file; refuse a damaged footer."""
    status = path.stat()
    return _read_footer(path, (status.st_ino, status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=8)
def _read_footer(path: Path, state: tuple[int, int, int]) -> tuple[RowGroup, ...]:
    """Read the footer once for all pieces of a file; `state` changes when the file does."""
    del state
    with open_regular_file(path) as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(length - _TAIL, 0))
        tail = file.read(_TAIL)
        size = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or size + _TAIL > length:
            raise FileFormatError(
                f"{path.name} cannot be read as parquet: it does not end with a footer, so it is "
                "cut short, or of another format"
            )
        pages_end = length - _TAIL - size
        file.seek(pages_end)
        footer = file.read(size)
    try:
        groups = _CompactReader(footer).struct(_FILE)[_ROW_GROUPS]
        return tuple(_row_group(group, pages_end) for group in groups)
    except _DAMAGE as error:
        raise FileFormatError(
            f"{path.name} cannot be read as parquet: its footer is damaged"
        ) from error


#: The fields that are read of a structure, by their numbers; all others are skipped.
_ROW_GROUPS, _COLUMNS, _N_ROWS, _META, _NAMES = 4, 1, 3, 3, 3
_N_VALUES, _COMPRESSED, _DATA_START, _DICTIONARY_START = 5, 7, 9, 11
_CHUNK: Final[Mapping[int, Any]] = {
    _META: dict.fromkeys((_NAMES, _N_VALUES, _COMPRESSED, _DATA_START, _DICTIONARY_START))
}
_FILE: Final[Mapping[int, Any]] = {_ROW_GROUPS: {_COLUMNS: _CHUNK, _N_ROWS: None}}


def _row_group(fields: Mapping[int, Any], pages_end: int) -> RowGroup:
    n_rows = fields[_N_ROWS]
    chunks = tuple(_chunk(column[_META]) for column in fields[_COLUMNS] if _META in column)
    for chunk in chunks:
        is_nested = len(chunk.path) > 1
        has_wrong_count = chunk.n_values < n_rows if is_nested else chunk.n_values != n_rows
        has_wrong_place = chunk.start < 0 or chunk.size < 0 or chunk.start + chunk.size > pages_end
        if has_wrong_count or has_wrong_place:
            raise ValueError
    if n_rows < 0:
        raise ValueError
    return RowGroup(n_rows, chunks)


def _chunk(fields: Mapping[int, Any]) -> ColumnChunk:
    # Some writers give 0 for the dictionary that a column does not have.
    starts = [fields[_DATA_START], fields.get(_DICTIONARY_START, 0) or fields[_DATA_START]]
    path = tuple(name.decode() for name in fields[_NAMES])
    return ColumnChunk(path, min(starts), fields[_COMPRESSED], fields[_N_VALUES])


# ------------------------------------------------------------------------------------ pages
_DATA, _DICTIONARY, _DATA_V2 = 5, 7, 8
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE, _COUNT = 2, 3, 1
_PAGE: Final[Mapping[int, Any]] = {
    _UNCOMPRESSED_SIZE: None,
    _COMPRESSED_SIZE: None,
    **{kind: {_COUNT: None} for kind in (_DATA, _DICTIONARY, _DATA_V2)},
}


def check_pages(
    path: Path, columns: Collection[str], source: str, start: int = 0, stop: int | None = None
) -> None:
    """Refuse a file whose page headers contradict its footer, in some columns and a range of rows.

    Polars allocates memory for as many values as the header of a page claims. Messages name the
    rows by `source`.
    """
    groups = _groups_in_range(read_footer(path), start, stop)
    chunks = [chunk for group in groups for chunk in group.chunks if chunk.path[0] in columns]
    with open_regular_file(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        for chunk in chunks:
            _check_chunk(content, source, chunk)


def _groups_in_range(
    groups: Iterable[RowGroup], start: int, stop: int | None
) -> Iterator[RowGroup]:
    """Yield the row groups that hold a row from `start` up to `stop`."""
    first_row = 0
    for group in groups:
        end = first_row + group.n_rows
        if end > start and (stop is None or first_row < stop):
            yield group
        first_row = end


def _check_chunk(content: mmap, source: str, chunk: ColumnChunk) -> None:
    at, end = chunk.start, chunk.start + chunk.size
    n_values = size = 0
    try:
        while at < end and n_values < chunk.n_values:
            header, length = _page_header(content, at, end)
            at += length + header[_COMPRESSED_SIZE]
            size += header[_UNCOMPRESSED_SIZE]
            n_dictionary = header.get(_DICTIONARY, {}).get(_COUNT, 0)
            in_page = [header[kind][_COUNT] for kind in (_DATA, _DATA_V2) if kind in header]
            n_values += sum(in_page)
            sizes = (header[_COMPRESSED_SIZE], header[_UNCOMPRESSED_SIZE], n_dictionary, *in_page)
            if min(sizes) < 0 or at > end or n_dictionary > header[_UNCOMPRESSED_SIZE]:
                raise ValueError
        if n_values != chunk.n_values:
            raise ValueError
    except _DAMAGE as error:
        raise FileFormatError(
            f"{source} cannot be read as parquet: the column {chunk.path[0]!r} is damaged"
        ) from error
    check_fits_memory(size, source, f"the column {chunk.path[0]!r}")


def _page_header(content: mmap, at: int, end: int) -> tuple[Mapping[int, Any], int]:
    """Return the fields of the header of a page, and how many bytes it takes."""
    length = _HEADER
    while True:
        reader = _CompactReader(content[at : min(at + length, end)])
        try:
            return reader.struct(_PAGE), reader.at
        except IndexError:
            if at + length >= end:
                raise
        length *= 4


# ------------------------------------------------------------------------------------ Thrift
class _CompactReader:
    """Reads structures of the compact protocol from the front of some bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def struct(self, wanted: Mapping[int, Any] | None) -> dict[int, Any]:
        """Read a structure; return the wanted fields, of structures in it those wanted there."""
        wanted = wanted or {}
        fields: dict[int, Any] = {}
        number = 0
        while (kind := self._byte()) & 15 != _STOP:
            delta = kind >> 4
            number = number + delta if delta else self._number()
            if number in wanted:
                fields[number] = self._value(kind & 15, wanted[number])
            else:
                self._skip(kind & 15)
        return fields

    def _value(self, kind: int, wanted: Mapping[int, Any] | None) -> Any:
        if kind == _STRUCT:
            return self.struct(wanted)
        if kind == _LIST:
            size, inner = self._list()
            return [self._value(inner, wanted) for _ in range(size)]
        if kind == _BINARY:
            size = self._varint()
            self.at += size
            if self.at > len(self.data):
                raise IndexError
            return self.data[self.at - size : self.at]
        if kind in {_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _SET, _MAP}:
            # None of the fields that are read has such a type.
            raise ValueError
        return self._number()

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        out = 0
        for i in range(_VARINT):
            byte = self._byte()
            out |= (byte & 0x7F) << (7 * i)
            if byte < 0x80:
                return out
        raise ValueError

    def _number(self) -> int:
        coded = self._varint()
        return (coded >> 1) ^ -(coded & 1)

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        size = head >> 4
        return (self._varint() if size == 15 else size), head & 15

    def _skip(self, kind: int) -> None:
        if kind in {_TRUE, _FALSE}:
            return
        if kind == _BYTE:
            self.at += 1
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            size = self._varint()
            self.at += size
        elif kind == _STRUCT:
            self.struct(None)
        elif kind in {_LIST, _SET}:
            size, inner = self._list()
            self._skip_entries(size, (inner,))
        elif kind == _MAP:
            size = self._varint()
            kinds = self._byte() if size else 0
            self._skip_entries(size, (kinds >> 4, kinds & 15))
        else:
            self._varint()

    def _skip_entries(self, size: int, kinds: tuple[int, ...]) -> None:
        # A truth value has a byte of its own in a list.
        plain = [_BYTE if kind in {_TRUE, _FALSE} else kind for kind in kinds]
        for _ in range(size):
            for kind in plain:
                self._skip(kind)
