"""Reader of the row groups, column chunks and page headers of a Parquet file, with checks.

Polars reads the values but does not report the positions of row groups. The positions are needed to
read each group once and to name a damaged group. Polars also does not check the counts in a file. A
negative count in a page header aborts the process, and a damaged footer can make Polars wait
forever. Therefore, this module checks the counts first. Footers and headers are Thrift structures
in the compact protocol.
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

#: First and last bytes of a Parquet file. The length of the footer precedes the last mark.
_MAGIC: Final = b"PAR1"
_TAIL_BYTES: Final = 8

#: Type codes of the compact protocol of Thrift.
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY = 0, 1, 2, 3, 7, 8
_LIST, _SET, _MAP, _STRUCT = 9, 10, 11, 12

#: Maximum number of bytes of an encoded 64-bit number.
_MAX_VARINT_BYTES: Final = 10

#: Number of bytes that are read first for a page header. Statistics of text can need more bytes.
_HEADER_BYTES: Final = 1 << 8

#: Errors that reading raises if a field is missing, has a wrong type, or ends too early.
_DAMAGE_ERRORS: Final = (AttributeError, LookupError, TypeError, ValueError, RecursionError)


@dataclass(frozen=True)
class ColumnChunk:
    """The values of one column in one row group.

    Attributes
    ----------
    path : tuple of str
        Name of the column, followed by the names of nested fields.
    start, size : int
        Position of the first page in the file, and total size of the pages in bytes.
    n_values : int
        Number of values, including missing values.
    """

    path: tuple[str, ...]
    start: int
    size: int
    n_values: int


@dataclass(frozen=True)
class RowGroup:
    """A group of rows that are stored together, with the column chunks that are not encrypted."""

    n_rows: int
    chunks: tuple[ColumnChunk, ...]


def row_groups(path: Path) -> tuple[int, ...]:
    """Return the number of rows of each row group, or raise an error for a truncated file."""
    return tuple(group.n_rows for group in read_footer(path))


def read_footer(path: Path) -> tuple[RowGroup, ...]:
    """Return the row groups of a file, or raise an error for a damaged footer."""
    status = path.stat()
    return _read_footer(path, (status.st_ino, status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=8)
def _read_footer(path: Path, state: tuple[int, int, int]) -> tuple[RowGroup, ...]:
    """Read the footer of a file.

    The results are cached by the `state` of the file, so an unchanged file is read once.
    """
    del state
    with open_regular_file(path) as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(length - _TAIL_BYTES, 0))
        tail = file.read(_TAIL_BYTES)
        footer_size = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or footer_size + _TAIL_BYTES > length:
            raise FileFormatError(
                f"{path.name} cannot be read as parquet: it does not end with a footer, so it is "
                "truncated or has another format"
            )
        pages_end = length - _TAIL_BYTES - footer_size
        file.seek(pages_end)
        footer = file.read(footer_size)
    try:
        groups = _CompactReader(footer).read_struct(_FILE)[_ROW_GROUPS]
        return tuple(_row_group(group, pages_end) for group in groups)
    except _DAMAGE_ERRORS as error:
        raise FileFormatError(
            f"{path.name} cannot be read as parquet: its footer is damaged"
        ) from error


#: Numbers of the fields that are read from each structure. All other fields are skipped.
_ROW_GROUPS, _COLUMNS, _N_ROWS, _META, _NAMES = 4, 1, 3, 3, 3
_N_VALUES, _COMPRESSED, _DATA_START, _DICTIONARY_START = 5, 7, 9, 11
_CHUNK: Final[Mapping[int, Any]] = {
    _META: dict.fromkeys((_NAMES, _N_VALUES, _COMPRESSED, _DATA_START, _DICTIONARY_START))
}
_FILE: Final[Mapping[int, Any]] = {_ROW_GROUPS: {_COLUMNS: _CHUNK, _N_ROWS: None}}


def _row_group(fields: Mapping[int, Any], pages_end: int) -> RowGroup:
    """Return a row group, or raise a ValueError if a count or position is impossible."""
    n_rows = fields[_N_ROWS]
    chunks = tuple(_chunk(column[_META]) for column in fields[_COLUMNS] if _META in column)
    for chunk in chunks:
        is_nested = len(chunk.path) > 1
        has_wrong_count = chunk.n_values < n_rows if is_nested else chunk.n_values != n_rows
        is_outside_file = chunk.start < 0 or chunk.size < 0 or chunk.start + chunk.size > pages_end
        if has_wrong_count or is_outside_file:
            raise ValueError
    if n_rows < 0:
        raise ValueError
    return RowGroup(n_rows, chunks)


def _chunk(fields: Mapping[int, Any]) -> ColumnChunk:
    # Some writers store the position 0 if a column has no dictionary.
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
    """Raise an error if page headers contradict the footer.

    Polars would allocate memory for the number of values that a page header states. Only the pages
    of the given columns and rows are checked. Error messages call the rows `source`.
    """
    groups = _groups_in_range(read_footer(path), start, stop)
    chunks = [chunk for group in groups for chunk in group.chunks if chunk.path[0] in columns]
    with open_regular_file(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        for chunk in chunks:
            _check_chunk(content, source, chunk)


def _groups_in_range(
    groups: Iterable[RowGroup], start: int, stop: int | None
) -> Iterator[RowGroup]:
    """Yield the row groups that contain a row from `start` up to `stop`."""
    first_row = 0
    for group in groups:
        end = first_row + group.n_rows
        if end > start and (stop is None or first_row < stop):
            yield group
        first_row = end


def _check_chunk(content: mmap, source: str, chunk: ColumnChunk) -> None:
    """Raise an error if the page headers of a column chunk are damaged."""
    position, end = chunk.start, chunk.start + chunk.size
    n_values = n_bytes = 0
    try:
        while position < end and n_values < chunk.n_values:
            header, header_size = _read_page_header(content, position, end)
            compressed_size = header[_COMPRESSED_SIZE]
            uncompressed_size = header[_UNCOMPRESSED_SIZE]
            n_dictionary = header.get(_DICTIONARY, {}).get(_COUNT, 0)
            counts = [header[kind][_COUNT] for kind in (_DATA, _DATA_V2) if kind in header]
            position += header_size + compressed_size
            n_bytes += uncompressed_size
            n_values += sum(counts)
            has_negative = min(compressed_size, uncompressed_size, n_dictionary, *counts) < 0
            if has_negative or position > end or n_dictionary > uncompressed_size:
                raise ValueError
        if n_values != chunk.n_values:
            raise ValueError
    except _DAMAGE_ERRORS as error:
        raise FileFormatError(
            f"{source} cannot be read as parquet: the column {chunk.path[0]!r} is damaged"
        ) from error
    check_fits_memory(n_bytes, source, f"the column {chunk.path[0]!r}")


def _read_page_header(content: mmap, start: int, end: int) -> tuple[Mapping[int, Any], int]:
    """Return the fields of a page header and its size in bytes."""
    n_bytes = _HEADER_BYTES
    while True:
        reader = _CompactReader(content[start : min(start + n_bytes, end)])
        try:
            return reader.read_struct(_PAGE), reader.position
        except IndexError:
            if start + n_bytes >= end:
                raise
        n_bytes *= 4


# ------------------------------------------------------------------------------------ Thrift
class _CompactReader:
    """Reader of structures in the compact protocol of Thrift."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def read_struct(self, field_tree: Mapping[int, Any] | None) -> dict[int, Any]:
        """Read the fields whose numbers are in `field_tree`, and skip other fields."""
        field_tree = field_tree or {}
        fields: dict[int, Any] = {}
        number = 0
        while True:
            number_step, type_code = self._read_two_half_bytes()
            if type_code == _STOP:
                return fields
            number = number + number_step if number_step else self._read_integer()
            if number in field_tree:
                fields[number] = self._read_value(type_code, field_tree[number])
            else:
                self._skip(type_code)

    def _read_value(self, type_code: int, field_tree: Mapping[int, Any] | None) -> Any:
        """Read a structure, list, text or integer, and raise a ValueError for other types."""
        if type_code == _STRUCT:
            return self.read_struct(field_tree)
        if type_code == _LIST:
            size, entry_type = self._read_list_header()
            return [self._read_value(entry_type, field_tree) for _ in range(size)]
        if type_code == _BINARY:
            size = self._read_varint()
            start = self.position
            self.position += size
            if self.position > len(self.data):
                raise IndexError
            return self.data[start : self.position]
        if type_code in {_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _SET, _MAP}:
            # No required field has one of these types.
            raise ValueError
        return self._read_integer()

    def _read_byte(self) -> int:
        self.position += 1
        return self.data[self.position - 1]

    def _read_two_half_bytes(self) -> tuple[int, int]:
        """Return the upper four bits and the lower four bits of the next byte."""
        return divmod(self._read_byte(), 16)

    def _read_varint(self) -> int:
        """Read an unsigned integer of variable length.

        Each byte contains 7 bits, and the last byte is below 128.
        """
        value = 0
        for i in range(_MAX_VARINT_BYTES):
            byte = self._read_byte()
            value |= (byte & 0x7F) << (7 * i)
            if byte < 0x80:
                return value
        raise ValueError

    def _read_integer(self) -> int:
        """Read a signed integer in zigzag encoding.

        The encoding stores 0, -1, 1, -2 as 0, 1, 2, 3.
        """
        encoded = self._read_varint()
        return (encoded >> 1) ^ -(encoded & 1)

    def _read_list_header(self) -> tuple[int, int]:
        """Return the size of a list and the type code of its entries."""
        size, entry_type = self._read_two_half_bytes()
        # If the first four bits are 15, the size follows as a separate number.
        return (self._read_varint() if size == 15 else size), entry_type

    def _skip(self, type_code: int) -> None:
        """Skip a value of a type."""
        if type_code in {_TRUE, _FALSE}:
            return
        if type_code == _BYTE:
            self.position += 1
        elif type_code == _DOUBLE:
            self.position += 8
        elif type_code == _BINARY:
            size = self._read_varint()
            self.position += size
        elif type_code == _STRUCT:
            self.read_struct(None)
        elif type_code in {_LIST, _SET}:
            size, entry_type = self._read_list_header()
            self._skip_entries(size, (entry_type,))
        elif type_code == _MAP:
            size = self._read_varint()
            self._skip_entries(size, self._read_two_half_bytes() if size else ())
        else:
            self._read_varint()

    def _skip_entries(self, size: int, type_codes: tuple[int, ...]) -> None:
        # A structure stores a boolean as a type code. A list stores a boolean as a byte.
        type_codes = tuple(_BYTE if code in {_TRUE, _FALSE} else code for code in type_codes)
        for _ in range(size):
            for type_code in type_codes:
                self._skip(type_code)
