"""The row groups of a Parquet file, read off its footer: how many rows each holds.

polars reads the rows and keeps the groups to itself; a reader that names the group in which
something is wrong, and reads each once, has to know where they begin. The footer is a Thrift
structure in the compact protocol, of which only these counts are wanted.
"""

import os
from pathlib import Path
from typing import Final

from abstain._foundation.input_files import opened
from abstain.errors import FileFormatError

#: What a file begins and ends with, and the bytes of the length before the end.
_MAGIC: Final = b"PAR1"
_TAIL: Final = 8

#: Types of the compact protocol.
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY = 0, 1, 2, 3, 7, 8
_LIST, _SET, _MAP, _STRUCT = 9, 10, 11, 12

#: The fields of a file that are its row groups, and of a row group its rows.
_ROW_GROUPS, _NUM_ROWS = 4, 3


def row_groups(path: Path) -> tuple[int, ...]:
    """Return the number of rows of each row group; refuse a file that is cut short."""
    with opened(path) as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(length - _TAIL, 0))
        tail = file.read(_TAIL)
        size = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or size + _TAIL > length:
            msg = (
                f"{path.name} cannot be read as parquet: it does not end with a footer, so it is "
                "cut short, or of another format"
            )
            raise FileFormatError(msg)
        file.seek(length - _TAIL - size)
        footer = file.read(size)
    try:
        return tuple(_Compact(footer).rows())
    except (IndexError, ValueError, RecursionError) as error:
        msg = f"{path.name} cannot be read as parquet: its footer is damaged"
        raise FileFormatError(msg) from error


class _Compact:
    """Reads a structure of the compact protocol from the front."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def rows(self) -> list[int]:
        """Return the rows of the groups of a file."""
        out: list[int] = []
        field = 0
        while (kind := self._field(field))[1] != _STOP:
            field = kind[0]
            if field == _ROW_GROUPS:
                size, _ = self._list()
                out = [self._group() for _ in range(size)]
            else:
                self._skip(kind[1])
        return out

    def _group(self) -> int:
        field, found = 0, -1
        while (kind := self._field(field))[1] != _STOP:
            field = kind[0]
            if field == _NUM_ROWS:
                found = self._number()
            else:
                self._skip(kind[1])
        if found < 0:
            raise ValueError
        return found

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        out = shift = 0
        while True:
            byte = self._byte()
            out |= (byte & 0x7F) << shift
            if byte < 0x80:
                return out
            shift += 7

    def _number(self) -> int:
        coded = self._varint()
        return (coded >> 1) ^ -(coded & 1)

    def _field(self, before: int) -> tuple[int, int]:
        """Return the number of the next field of a structure and its type."""
        head = self._byte()
        delta, kind = head >> 4, head & 15
        if kind == _STOP:
            return before, _STOP
        return (before + delta if delta else self._number()), kind

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
            self._skip_structure()
        elif kind in {_LIST, _SET}:
            size, inner = self._list()
            self._skip_entries(size, (inner,))
        elif kind == _MAP:
            size = self._varint()
            kinds = self._byte() if size else 0
            self._skip_entries(size, (kinds >> 4, kinds & 15))
        else:
            self._varint()

    def _skip_structure(self) -> None:
        field = 0
        while (found := self._field(field))[1] != _STOP:
            field = found[0]
            self._skip(found[1])

    def _skip_entries(self, size: int, kinds: tuple[int, ...]) -> None:
        # A truth value has a byte of its own in a list.
        plain = [_BYTE if kind in {_TRUE, _FALSE} else kind for kind in kinds]
        for _ in range(size):
            for kind in plain:
                self._skip(kind)
