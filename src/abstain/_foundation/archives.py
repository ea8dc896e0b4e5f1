"""Arrays of an .npz file: what each claims to be is checked before it is read, and never pickles.

An archive of a few megabytes may hold, or claim, more than any memory. So only arrays that are
asked for are read, and their sizes must fit the file and the memory first.
"""

import io
import math
import os
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from abstain._foundation.input_files import (
    check_fits_memory,
    library_errors_as_format_errors,
    open_regular_file,
)
from abstain.errors import FileFormatError
from abstain.typing import Array

_ENDING = ".npy"
_START = b"PK\x03\x04"
#: By the methods of `numpy.savez`: how many bytes can come of one. DEFLATE makes no more of it.
_MOST_OF = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
_MOST_ARRAYS = 10_000
#: Of a header: NumPy's own limit, which it checks after reading.
_MOST_HEADER = 10_000
#: The record at the end of an archive: how it begins, where in it the number of members stands, and
#: how many bytes it has at most, a comment included.
_END, _COUNT_AT, _MAX_END = b"PK\x05\x06", 10, 22 + (1 << 16)
_MANY_MEMBERS = 0xFFFF
#: The bytes of a member's own header in the archive, before its name.
_LOCAL = 30
#: The bytes before a header, its length included.
_FRAME = 12
_BLOCK = 1 << 20


class Header(NamedTuple):
    """What an array claims to be."""

    #: Its axes.
    shape: tuple[int, ...]
    #: Whether the first axis runs fastest.
    is_fortran_order: bool
    #: Of its entries.
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        """The bytes of its entries."""
        return math.prod(self.shape) * self.dtype.itemsize


class Archive(Mapping[str, Array]):
    """The arrays of an .npz file by name, each read when it is asked for.

    A file that is damaged or no archive, two arrays of one name, or one that claims a size that
    cannot be, are a FileFormatError.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.source = path, path.name
        with self._open() as (_, members):
            self._names = tuple(members)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in the order of the file."""
        return iter(self._names)

    def __len__(self) -> int:
        """Count the arrays."""
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is such an array, without reading it."""
        return name in self._names

    def __getitem__(self, name: str) -> Array:
        """Read one array."""
        return self.read([name])[name]

    def read(self, names: Iterable[str]) -> dict[str, Array]:
        """Read some of the arrays that are there."""
        wanted = tuple(names)
        for name in wanted:
            if name not in self._names:
                raise KeyError(name)
        with self._open() as (archive, members):
            return {name: self._array(archive, members[name], name) for name in wanted}

    def verify(self, name: str) -> None:
        """Read one array in blocks, and compare its bytes with its checksum."""
        with self._open() as (archive, members):
            _read_to_end(archive, members[name])

    def memory_map(self, name: str) -> Array:
        """Map one array into memory if it is stored uncompressed; else read it.

        A mapped array is loaded page by page, so its checksum is not compared: call `verify` first.
        """
        with self._open() as (archive, members):
            member = members[name]
            header = self._header(archive, member, name)
            plain = header.dtype.kind in "iuf" and not header.is_fortran_order and header.n_bytes
            if member.compress_type != zipfile.ZIP_STORED or not plain:
                return self._array(archive, member, name)
        with open_regular_file(self.path) as file:
            file.seek(member.header_offset)
            before = file.read(_LOCAL)
        # Of the name and of what else stands before the member's bytes.
        extra = sum(int.from_bytes(before[at : at + 2], "little") for at in (26, 28))
        start = member.header_offset + _LOCAL + extra + member.file_size - header.n_bytes
        return np.memmap(self.path, header.dtype, "r", start, header.shape)

    @cached_property
    def headers(self) -> dict[str, Header]:
        """What each array claims to be."""
        with self._open() as (archive, members):
            return {n: self._header(archive, member, n) for n, member in members.items()}

    @contextmanager
    def _open(self) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
        with open_regular_file(self.path) as file:
            start = file.read(len(_START))
            if start != _START:
                what = "a pickle" if start[:1] == b"\x80" else "no archive of arrays"
                raise FileFormatError(
                    f"{self.source} is {what}, though it ends in '.npz'; write it with "
                    "`numpy.savez`"
                )
            length = file.seek(0, os.SEEK_END)
            with (
                library_errors_as_format_errors(self.source, "npz"),
                zipfile.ZipFile(file) as archive,
            ):
                check_member_count(file, archive)
                yield archive, _members(archive, length, self.source)

    def _header(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Header:
        with archive.open(member) as file:
            return _header(file, member.file_size, f"{self.source} holds under {name!r}")

    def _array(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Array:
        with archive.open(member) as file:
            header = _header(file, member.file_size, f"{self.source} holds under {name!r}")
            check_fits_memory(header.n_bytes, self.source, f"the array {name!r}")
            return _entries(file, header)


def verify_archive(path: Path, format_name: str) -> None:
    """Compare every member of a ZIP archive with its checksum; refuse a damaged archive.

    `torch.load` compares no checksums, so this function is called before it.
    """
    with (
        open_regular_file(path) as file,
        library_errors_as_format_errors(path.name, format_name),
        zipfile.ZipFile(file) as archive,
    ):
        check_member_count(file, archive)
        for member in archive.infolist():
            _read_to_end(archive, member)


def check_member_count(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """Raise BadZipFile if a ZIP archive claims another number of members than `zipfile` finds.

    One damaged length in its directory hides the members that follow.
    """
    length = file.seek(0, os.SEEK_END)
    file.seek(max(length - _MAX_END, 0))
    tail = file.read()
    at = tail.rfind(_END) + _COUNT_AT
    claimed = int.from_bytes(tail[at : at + 2], "little")
    # An archive with more members keeps their number elsewhere.
    if claimed not in {_MANY_MEMBERS, len(archive.infolist())}:
        raise zipfile.BadZipFile(
            f"{claimed:,} members were written, and {len(archive.infolist()):,} are found"
        )


def _read_to_end(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Read a member in blocks: at its end, `zipfile` compares the checksum."""
    with archive.open(member) as file:
        while file.read(_BLOCK):
            pass


def read_npy(path: Path) -> Array:
    """Read the array of an .npy file."""
    with open_regular_file(path) as file, library_errors_as_format_errors(path.name, "npy"):
        length = file.seek(0, os.SEEK_END)
        file.seek(0)
        header = _header(file, length, f"{path.name} holds")
        check_fits_memory(header.n_bytes, path.name, "its array")
        return _entries(file, header)


def _members(archive: zipfile.ZipFile, length: int, source: str) -> dict[str, zipfile.ZipInfo]:
    """Return the arrays of an archive by name; refuse sizes that a file so long cannot hold."""
    found = [member for member in archive.infolist() if not member.is_dir()]
    if len(found) > _MOST_ARRAYS:
        raise FileFormatError(
            f"{source} holds {len(found):,} arrays; at most {_MOST_ARRAYS:,} are read"
        )
    members: dict[str, zipfile.ZipInfo] = {}
    for member in found:
        name = member.filename.removesuffix(_ENDING)
        if name in members:
            raise FileFormatError(f"{source} has two arrays named {name!r}; names must differ")
        if member.flag_bits & 1 or member.compress_type not in _MOST_OF:
            raise FileFormatError(
                f"{source} holds {name!r} in a way that `numpy.savez` does not write"
            )
        most = member.compress_size * _MOST_OF[member.compress_type]
        if member.compress_size > length or member.file_size > most:
            raise FileFormatError(
                f"{source} is damaged: {name!r} claims {member.file_size:,} bytes, more than so "
                "short a file can hold"
            )
        members[name] = member
    return members


def _header(file: IO[bytes], length: int, holds: str) -> Header:
    """Read the header of an array; refuse one that its file contradicts."""
    start = file.read(_FRAME)
    if start[:6] != np.lib.format.MAGIC_PREFIX or len(start) < _FRAME:
        raise FileFormatError(f"{holds} something that is no array")
    # The length of the header has two bytes in the first version of the format, four in later ones.
    first = start[6] == 1
    frame = 2 if first else 4
    size = int.from_bytes(start[8 : 8 + frame], "little")
    if start[6] not in {1, 2, 3} or size > _MOST_HEADER:
        raise FileFormatError(
            f"{holds} an array of an unknown version, or with a header of {size:,} bytes"
        )
    said = start[8:] + file.read(max(size + frame - 4, 0))
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    header = Header(*read(io.BytesIO(said)))
    there = length - 8 - frame - size
    if header.dtype.hasobject:
        raise FileFormatError(
            f"{holds} Python objects (pickles), which are never loaded because loading them can "
            "run any code; save plain arrays of numbers or text instead"
        )
    if min(header.shape, default=0) < 0 or header.n_bytes != there:
        sides = " x ".join(f"{side:,}" for side in header.shape)
        raise FileFormatError(
            f"{holds} an array that claims {sides} entries of {header.dtype}, and {there:,} bytes"
        )
    if header.dtype.itemsize == 0:
        raise FileFormatError(f"{holds} an array of entries without a size ({header.dtype})")
    return header


def _entries(file: IO[bytes], header: Header) -> Array:
    out = np.empty(math.prod(header.shape), header.dtype)
    held, place = out.view(np.uint8), 0
    while block := file.read(_BLOCK):
        held[place : place + len(block)] = np.frombuffer(block, np.uint8)
        place += len(block)
    if place != held.size:
        raise EOFError
    if header.dtype.kind == "U":
        codes = held.view(header.dtype.str[0] + "u4")
        # Python fails in its own ways on numbers that stand for no character.
        if ((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise ValueError("an array of text holds what is no character")
    if header.dtype.kind == "b":
        # Any byte but 0 is true; as it stands, NumPy would count a 7 as seven.
        out = held != 0
    return (
        out.reshape(header.shape[::-1]).T if header.is_fortran_order else out.reshape(header.shape)
    )
