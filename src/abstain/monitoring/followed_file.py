"""A file that grows: what was read of it, and whether it is still the same file."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from abstain._foundation.input_files import open_regular_file
from abstain.monitoring.lines import MAX_LINE, LineBatch


class FilePosition(NamedTuple):
    """How far a file was read, and how it is recognized.

    Attributes
    ----------
    name : str
        Its name in the folder when it was last read.
    size, lines : int
        How many of its bytes and lines were read.
    inode : int
        Its number in the file system, which stays when it is renamed; 0 if unknown.
    digest : str
        A hash of the bytes that were read; empty in states of earlier versions.
    """

    name: str
    size: int
    lines: int
    inode: int = 0
    digest: str = ""


#: A position for each file of a watched folder.
ReadPositions: TypeAlias = tuple[FilePosition, ...]


#: So many bytes are read at once: the longest line and its end.
BLOCK: Final = MAX_LINE + 1
#: So many of the first and of the last bytes that were read are compared before reading goes on.
_WINDOW: Final = 1 << 12


class FollowedFile:
    """A file whose lines are read as they are added.

    A position of an earlier run is checked against all bytes that were read, by their hash. During
    a run, the first and last bytes are compared.
    """

    def __init__(self, position: FilePosition) -> None:
        self._saved = position
        self.name, self.inode = position.name, position.inode
        self._size, self._n_lines = position.size, position.lines
        self._is_checked = position.size == 0
        self._hash = hashlib.blake2b(digest_size=16)
        self._head = self._tail = b""
        #: Inode, size and time of the file when it was last read to its end.
        self._last_status: tuple[int, int, int] | None = None
        #: How far the end of a line that is too long was searched for; 0 if there is none.
        self._searched = 0

    @property
    def position(self) -> FilePosition:
        """How far the file was read."""
        if not self._is_checked:
            return self._saved._replace(name=self.name)
        digest = self._hash.hexdigest()
        return FilePosition(self.name, self._size, self._n_lines, self.inode, digest)

    def is_unchanged(self, status: os.stat_result) -> bool:
        """Return whether nothing was written since the file was last read to its end."""
        return self._last_status == _identity(status)

    def has_more(self, status: os.stat_result) -> bool:
        """Return whether the file holds bytes that were not read: a line without its end."""
        return status.st_size > self._size

    def matches(self, path: Path) -> bool:
        """Return whether a file begins with the bytes that were read of this one."""
        with open_regular_file(path) as file:
            if os.fstat(file.fileno()).st_size < self._size:
                return False
            return self._matches_windows(file) if self._is_checked else self._matches_hash(file)

    def _matches_windows(self, file: BinaryIO) -> bool:
        if file.read(len(self._head)) != self._head:
            return False
        file.seek(self._size - len(self._tail))
        return file.read(len(self._tail)) == self._tail

    def _matches_hash(self, file: BinaryIO) -> bool:
        """Compare with a position of an earlier run, and take up its hash if they agree."""
        copy = FollowedFile(FilePosition(self.name, 0, 0))
        while copy._size < self._size and (block := file.read(min(BLOCK, self._size - copy._size))):
            copy._advance(block, 0)
        if copy._size != self._size or not copy._tail.endswith(b"\n"):
            return False
        if self._saved.digest and copy._hash.hexdigest() != self._saved.digest:
            return False
        self._hash, self._head, self._tail = copy._hash, copy._head, copy._tail
        self._is_checked = True
        return True

    def batches(self, path: Path, inode: int) -> Iterator[LineBatch]:
        """Yield the complete lines behind those that were read.

        The position moves on when a batch is accepted. There are no lines if another file, or an
        emptied one, has taken the place of the one with this inode since it was found.
        """
        with open_regular_file(path) as file:
            status = os.fstat(file.fileno())
            if status.st_ino != inode or not self._matches_windows(file):
                return
            self.inode = inode
            yield from self._complete_lines(file)
            self._last_status = _identity(status)

    def _complete_lines(self, file: BinaryIO) -> Iterator[LineBatch]:
        while block := self._read_at(file, self._size, BLOCK):
            end = block.rfind(b"\n") + 1
            if end:
                yield self._batch(block[:end])
                continue
            if len(block) < BLOCK:
                return
            if not self._searched:
                yield LineBatch.from_bytes([block], self._n_lines, self.name)
            if not self._skip_long_line(file):
                return

    def _batch(self, block: bytes) -> LineBatch:
        lines = block[:-1].split(b"\n")

        def accept(count: int) -> None:
            n_bytes = sum(map(len, lines[:count])) + count
            self._advance(block[:n_bytes], count)

        return LineBatch.from_bytes(lines, self._n_lines, self.name, accept)

    def _skip_long_line(self, file: BinaryIO) -> bool:
        """Move behind a line that is too long; return False if its end is not yet written."""
        position = max(self._searched, self._size)
        while block := self._read_at(file, position, BLOCK):
            length = block.find(b"\n") + 1
            position += length or len(block)
            if length:
                break
        else:
            self._searched = position
            return False
        self._searched = 0
        while self._size < position:
            block = self._read_at(file, self._size, min(BLOCK, position - self._size))
            self._advance(block, 0)
        self._n_lines += 1
        return True

    def _advance(self, data: bytes, n_lines: int) -> None:
        self._hash.update(data)
        self._size += len(data)
        self._n_lines += n_lines
        if len(self._head) < _WINDOW:
            self._head = (self._head + data)[:_WINDOW]
        self._tail = (self._tail + data[-_WINDOW:])[-_WINDOW:]

    @staticmethod
    def _read_at(file: BinaryIO, position: int, count: int) -> bytes:
        file.seek(position)
        return file.read(count)


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns
