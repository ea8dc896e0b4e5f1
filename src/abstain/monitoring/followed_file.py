"""Read log files that grow and are rotated (renamed when they are full)."""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from abstain._foundation.input_files import check_exists, open_regular_file
from abstain.errors import InputError
from abstain.monitoring.lines import MAX_LINE, LineBatch


class FilePosition(NamedTuple):
    """Read position of a file, and values that identify the file.

    Attributes
    ----------
    name : str
        Name that the file had when it was last read.
    size, lines : int
        Numbers of bytes and lines that were read.
    inode : int
        Number of the file in the file system, which renaming does not change, or 0 if it is
        unknown.
    digest : str
        Hash of the bytes that were read, or an empty text in states of earlier versions.
    """

    name: str
    size: int
    lines: int
    inode: int = 0
    digest: str = ""


#: The position in each file of a folder.
ReadPositions: TypeAlias = tuple[FilePosition, ...]


#: Maximum number of bytes of a read, which is the longest line with its line break.
BLOCK: Final = MAX_LINE + 1
#: Number of first bytes and of last bytes that are compared before reading continues.
_WINDOW: Final = 1 << 12


class FollowedFile:
    """A growing file, with the position up to which it was read."""

    # The position of an earlier run is validated by the hash of all bytes that were read. Later,
    # only the first and the last of these bytes are compared.

    def __init__(self, position: FilePosition) -> None:
        self._saved = position
        self.name = position.name
        self.inode = position.inode
        self._size = position.size
        self._n_lines = position.lines
        self._is_checked = position.size == 0
        self._hash = hashlib.blake2b(digest_size=16)
        #: First and last bytes that were read.
        self._head = b""
        self._tail = b""
        #: Inode, size and modification time of the file when it was last read to its end.
        self._last_status: tuple[int, int, int] | None = None
        #: Position up to which the end of an overlong line was searched, or 0 without an open
        #: search.
        self._searched = 0

    @property
    def position(self) -> FilePosition:
        """Position up to which the file was read."""
        if not self._is_checked:
            return self._saved._replace(name=self.name)
        digest = self._hash.hexdigest()
        return FilePosition(self.name, self._size, self._n_lines, self.inode, digest)

    def is_unchanged(self, status: os.stat_result) -> bool:
        """Return whether the file is unchanged since it was last read to its end."""
        return self._last_status == _identity(status)

    def has_more(self, status: os.stat_result) -> bool:
        """Return whether the file ends with an incomplete line, which has not been read."""
        return status.st_size > self._size

    def matches(self, path: Path) -> bool:
        """Return whether another file begins with the bytes that were read from this file."""
        with open_regular_file(path) as file:
            if os.fstat(file.fileno()).st_size < self._size:
                return False
            if self._is_checked:
                return self._matches_windows(file)
            return self._matches_hash(file)

    def _matches_windows(self, file: BinaryIO) -> bool:
        """Return whether the first and last bytes that were read equal those of a file."""
        if file.read(len(self._head)) != self._head:
            return False
        file.seek(self._size - len(self._tail))
        return file.read(len(self._tail)) == self._tail

    def _matches_hash(self, file: BinaryIO) -> bool:
        """Restore the read position if the hash of the file equals the saved hash."""
        copy = FollowedFile(FilePosition(self.name, 0, 0))
        while copy._size < self._size:
            block = file.read(min(BLOCK, self._size - copy._size))
            if not block:
                return False
            copy._advance(block, 0)
        if not copy._tail.endswith(b"\n"):
            return False
        if self._saved.digest and copy._hash.hexdigest() != self._saved.digest:
            return False
        self._hash = copy._hash
        self._head = copy._head
        self._tail = copy._tail
        self._is_checked = True
        return True

    def batches(self, path: Path, inode: int) -> Iterator[LineBatch]:
        """Yield the complete lines that were added after the current position.

        The position advances only when the caller accepts a batch. If the file at `path` was
        replaced or truncated after it was identified, the method yields nothing.
        """
        with open_regular_file(path) as file:
            status = os.fstat(file.fileno())
            if status.st_ino != inode or not self._matches_windows(file):
                return
            self.inode = inode
            yield from self._complete_lines(file)
            self._last_status = _identity(status)

    def _complete_lines(self, file: BinaryIO) -> Iterator[LineBatch]:
        """Yield batches of complete lines, and a batch with the beginning of each overlong line."""
        while True:
            block = self._read_at(file, self._size, BLOCK)
            end = block.rfind(b"\n") + 1
            if end > 0:
                yield self._batch(block[:end])
                continue
            is_overlong = len(block) == BLOCK
            if not is_overlong:
                return
            if not self._searched:
                yield LineBatch.from_bytes([block], self._n_lines, self.name)
            if not self._skip_long_line(file):
                return

    def _batch(self, block: bytes) -> LineBatch:
        """Return the lines of a block as a batch; accepting it advances the read position."""
        lines = block[:-1].split(b"\n")

        def accept(count: int) -> None:
            n_bytes = sum(map(len, lines[:count])) + count
            self._advance(block[:n_bytes], count)

        return LineBatch.from_bytes(lines, self._n_lines, self.name, accept)

    def _skip_long_line(self, file: BinaryIO) -> bool:
        """Skip a line that is too long, and return whether it ends with a line break."""
        end = self._find_line_end(file)
        if end is None:
            return False
        while self._size < end:
            block = self._read_at(file, self._size, min(BLOCK, end - self._size))
            self._advance(block, 0)
        self._n_lines += 1
        return True

    def _find_line_end(self, file: BinaryIO) -> int | None:
        """Return the position after the next line break, or None if there is no line break."""
        position = max(self._searched, self._size)
        while True:
            block = self._read_at(file, position, BLOCK)
            if not block:
                self._searched = position
                return None
            index = block.find(b"\n")
            if index >= 0:
                self._searched = 0
                return position + index + 1
            position += len(block)

    def _advance(self, data: bytes, n_lines: int) -> None:
        """Advance the position by the length of `data`, which contains `n_lines` lines."""
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


#: Pattern for the names of the files in a folder that are read.
PATTERN: Final = "*.jsonl"
#: Pattern for names of rotated files, to which rotation added ".1" or "-20261123".
_ROTATED: Final = re.compile(r"(?P<name>.*\.jsonl)[.-][0-9][0-9T:._-]*")

#: Maximum number of times that a folder is listed if files are renamed meanwhile.
_MAX_LISTINGS: Final = 5

#: Status of each file in a folder, by name.
Listing: TypeAlias = dict[str, os.stat_result]


class Folder:
    """The `*.jsonl` files of a folder, which are identified by their content if they are renamed.

    Parameters
    ----------
    folder : Path
        Folder with the files. Its subfolders are not read.
    read : tuple of FilePosition
        Positions up to which an earlier run has read.
    warn : callable
        Function that receives a message about each file that was replaced or changed.
    """

    def __init__(self, folder: Path, read: ReadPositions, warn: Callable[[str], None]) -> None:
        self._folder = folder
        self._warn = warn
        self._files = {position.name: FollowedFile(position) for position in read}

    @property
    def read(self) -> ReadPositions:
        """Read position of each file."""
        return tuple(self._files[name].position for name in sorted(self._files))

    def batches(self) -> Iterator[LineBatch]:
        """Yield the complete lines that were added since the last call.

        Rotated files come first, sorted by age with the oldest first. The other files are sorted by
        name.
        """
        listing = self._follow()
        for name in sorted(self._files, key=lambda name: _reading_order(name, listing)):
            if name in listing and not self._files[name].is_unchanged(listing[name]):
                yield from self._added_to(name, listing[name].st_ino)

    def _added_to(self, name: str, inode: int) -> Iterator[LineBatch]:
        """Yield the complete lines that were added to a file, unless it no longer exists."""
        path = self._folder / name
        try:
            yield from self._files[name].batches(path, inode)
        except InputError:
            # The file may have been renamed or deleted since the folder was listed.
            if path.exists() or path.is_symlink():
                raise

    def unfinished(self) -> list[str]:
        """Return the names of the files whose last line is incomplete."""
        listing = self._list()
        names = sorted(self._files.keys() & listing.keys())
        return [name for name in names if self._files[name].has_more(listing[name])]

    def _list(self) -> Listing:
        """Return the status of each regular file and each followed file in the folder."""
        check_exists(self._folder)
        if not self._folder.is_dir():
            raise InputError(
                f"{self._folder.name} is a file: give the folder that it lies in, or send it "
                "through standard input"
            )
        listing: Listing = {}
        for path in self._folder.iterdir():
            try:
                status = path.stat()
            except FileNotFoundError:
                # A missing file is a broken link, or it was deleted in this moment.
                if path.is_symlink() and _is_followed(path.name):
                    check_exists(path)
                continue
            if stat.S_ISREG(status.st_mode) or _is_followed(path.name):
                listing[path.name] = status
        return listing

    def _follow(self) -> Listing:
        """List the folder, find the current name of each known file, and add new files."""
        listing, files = self._identify()
        identified = set(files.values())
        for name, file in self._files.items():
            if file not in identified and name in listing:
                self._warn(
                    f"{name} is not the file that was read before, or was changed; it is read "
                    "from its beginning (ids that are remembered are not counted again)"
                )
        new_names = {name for name in listing if _is_followed(name)}
        new_names |= _missed_rotations(files, listing)
        for name in new_names - files.keys():
            files[name] = FollowedFile(FilePosition(name, 0, 0))
        self._files = files
        return listing

    def _identify(self) -> tuple[Listing, dict[str, FollowedFile]]:
        """List the folder, and return the known files by their current names.

        If a file is renamed during the comparison, the folder is listed again.
        """
        for n_left in reversed(range(_MAX_LISTINGS)):
            listing = self._list()
            try:
                files = self._find_all(listing)
            except InputError:
                if not n_left or self._is_current(listing):
                    raise
                continue
            if self._is_current(listing):
                break
        return listing, files

    def _find_all(self, listing: Listing) -> dict[str, FollowedFile]:
        """Return the known files that still exist, by their current names."""
        files: dict[str, FollowedFile] = {}
        for file in self._files.values():
            present_name = self._find(file, listing, files)
            if present_name is not None:
                file.name = present_name
                files[present_name] = file
        return files

    def _is_current(self, listing: Listing) -> bool:
        """Return whether no file was renamed, replaced or emptied since the folder was listed."""
        current = self._list()
        for name, status in listing.items():
            if name not in self._files and not _is_followed(name):
                continue
            if name not in current:
                return False
            if current[name].st_ino != status.st_ino or current[name].st_size < status.st_size:
                return False
        return True

    def _find(
        self, file: FollowedFile, listing: Listing, identified: dict[str, FollowedFile]
    ) -> str | None:
        """Return the current name of a known file, or None if it no longer exists."""
        same_inode = [name for name, status in listing.items() if status.st_ino == file.inode]
        # Rotation may also copy a file and then empty the original file.
        copies = [name for name in listing if _rotated_from(name) == file.name]
        for name in dict.fromkeys([*same_inode, file.name, *sorted(copies)]):
            if name not in listing or name in identified:
                continue
            if file.is_unchanged(listing[name]) or file.matches(self._folder / name):
                return name
        return None


def _is_followed(name: str) -> bool:
    """Return whether a file with this name is read; rotated and hidden files are not."""
    return fnmatchcase(name, PATTERN) and not name.startswith(".")


def _rotated_from(name: str) -> str | None:
    """Return the original name of a rotated file, or None if the name is not a rotated name."""
    match = _ROTATED.fullmatch(name)
    return None if match is None else match["name"]


def _missed_rotations(files: dict[str, FollowedFile], listing: Listing) -> set[str]:
    """Return the rotated files that were created since the folder was last read.

    A rotated file was missed if it is newer than the newest rotated file that was read.
    """
    newest_times: dict[str, int] = {}
    for name in files:
        original = _rotated_from(name)
        if original is not None:
            modified = listing[name].st_mtime_ns
            newest_times[original] = max(newest_times.get(original, 0), modified)
    missed = set()
    for name, status in listing.items():
        original = _rotated_from(name)
        if original in newest_times and status.st_mtime_ns > newest_times[original]:
            missed.add(name)
    return missed


def _reading_order(name: str, listing: Listing) -> tuple[int, int, str]:
    """Return a sort key: rotated files first, by age, and then the other files, by name."""
    if _is_followed(name):
        return 1, 0, name
    modified = listing[name].st_mtime_ns if name in listing else 0
    return 0, modified, name
