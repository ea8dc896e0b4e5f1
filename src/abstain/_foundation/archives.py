"""Read arrays from .npz and .npy files without unpickling.

A small compressed archive can contain more data than fit into memory. Before an array is read, its
size is compared with the file size and the available memory.
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

_SUFFIX = ".npy"
_ZIP_SIGNATURE = b"PK\x03\x04"
#: Maximum number of bytes that one compressed byte expands to, for each method of `numpy.savez`.
_MAX_EXPANSION = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
_MAX_ARRAYS = 10_000
#: Maximum size of a header. NumPy has the same limit, but applies it after reading.
_MAX_HEADER_BYTES = 10_000
#: Signature of the record at the end of an archive, position of the number of members in the
#: record, and maximum size of the record including a comment.
_END_SIGNATURE, _COUNT_OFFSET, _MAX_END_BYTES = b"PK\x05\x06", 10, 22 + (1 << 16)
_MANY_MEMBERS = 0xFFFF
#: Size of the local header of a member in the archive, without the name of the member.
_LOCAL_HEADER_BYTES = 30
#: Maximum number of bytes before an array header, for the signature, the version and the length.
_PREAMBLE_BYTES = 12
_BLOCK = 1 << 20


class Header(NamedTuple):
    """The header of an array in NumPy's .npy format."""

    shape: tuple[int, ...]
    #: Whether the first axis varies fastest in the data.
    is_fortran_order: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        """Size of the data in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


class Archive(Mapping[str, Array]):
    """A mapping from names to the arrays of an .npz file, read on access.

    A damaged file, or a file in another format, raises a FileFormatError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = path.name
        with self._open() as (_, members):
            self._names = tuple(members)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in the order of the file."""
        return iter(self._names)

    def __len__(self) -> int:
        """Count the arrays."""
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        """Return whether an array exists. The array is not read."""
        return name in self._names

    def __getitem__(self, name: str) -> Array:
        """Read one array."""
        return self.read([name])[name]

    def read(self, names: Iterable[str]) -> dict[str, Array]:
        """Read the arrays with the given names. An unknown name raises a KeyError."""
        requested = tuple(names)
        for name in requested:
            if name not in self._names:
                raise KeyError(name)
        with self._open() as (archive, members):
            return {name: self._array(archive, members[name], name) for name in requested}

    def verify(self, name: str) -> None:
        """Verify the checksum of an array."""
        with self._open() as (archive, members):
            _read_to_end(archive, members[name])

    def memory_map(self, name: str) -> Array:
        """Map an uncompressed array into memory, or read a compressed array.

        The checksum of a mapped array is not verified. Call `verify` first.
        """
        with self._open() as (archive, members):
            member = members[name]
            header = self._header(archive, member, name)
            has_mappable_layout = header.dtype.kind in "iuf" and not header.is_fortran_order
            is_compressed = member.compress_type != zipfile.ZIP_STORED
            if is_compressed or not has_mappable_layout or header.n_bytes == 0:
                return self._array(archive, member, name)
        data_start = self._member_start(member) + member.file_size - header.n_bytes
        return np.memmap(self.path, header.dtype, "r", data_start, header.shape)

    def _member_start(self, member: zipfile.ZipInfo) -> int:
        """Return the byte offset of the data of a member in the archive."""
        with open_regular_file(self.path) as file:
            file.seek(member.header_offset)
            local_header = file.read(_LOCAL_HEADER_BYTES)
        # Bytes 26 and 28 contain the lengths of the name and of the extra field after the header.
        name_length = int.from_bytes(local_header[26:28], "little")
        extra_length = int.from_bytes(local_header[28:30], "little")
        return member.header_offset + _LOCAL_HEADER_BYTES + name_length + extra_length

    @cached_property
    def headers(self) -> dict[str, Header]:
        """Header of each array."""
        with self._open() as (archive, members):
            return {name: self._header(archive, member, name) for name, member in members.items()}

    @contextmanager
    def _open(self) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
        """Open the archive, and yield it with a mapping from array names to its members."""
        with open_regular_file(self.path) as file:
            self._check_signature(file.read(len(_ZIP_SIGNATURE)))
            length = file.seek(0, os.SEEK_END)
            with (
                library_errors_as_format_errors(self.source, "npz"),
                zipfile.ZipFile(file) as archive,
            ):
                check_member_count(file, archive)
                yield archive, _members(archive, length, self.source)

    def _check_signature(self, signature: bytes) -> None:
        """Raise a FileFormatError if the first bytes are not those of a ZIP archive."""
        if signature == _ZIP_SIGNATURE:
            return
        is_pickle = signature[:1] == b"\x80"
        description = "a pickle" if is_pickle else "no archive of arrays"
        raise FileFormatError(
            f"{self.source} is {description}, though it ends in '.npz'; write it with `numpy.savez`"
        )

    def _header(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Header:
        with archive.open(member) as file:
            return _header(file, member.file_size, f"{self.source} holds under {name!r}")

    def _array(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Array:
        with archive.open(member) as file:
            header = _header(file, member.file_size, f"{self.source} holds under {name!r}")
            check_fits_memory(header.n_bytes, self.source, f"the array {name!r}")
            return _read_entries(file, header)


def verify_archive(path: Path, format_name: str) -> None:
    """Verify the checksum of every member of a ZIP archive, because `torch.load` does not."""
    with (
        open_regular_file(path) as file,
        library_errors_as_format_errors(path.name, format_name),
        zipfile.ZipFile(file) as archive,
    ):
        check_member_count(file, archive)
        for member in archive.infolist():
            _read_to_end(archive, member)


def check_member_count(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """Raise a BadZipFile error if the archive is damaged and members cannot be found."""
    length = file.seek(0, os.SEEK_END)
    file.seek(max(length - _MAX_END_BYTES, 0))
    tail = file.read()
    count_start = tail.rfind(_END_SIGNATURE) + _COUNT_OFFSET
    n_members = int.from_bytes(tail[count_start : count_start + 2], "little")
    # An archive of at least `_MANY_MEMBERS` members stores the number in another record.
    if n_members not in {_MANY_MEMBERS, len(archive.infolist())}:
        raise zipfile.BadZipFile(
            f"{n_members:,} members were written, but {len(archive.infolist()):,} exist"
        )


def _read_to_end(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Read a member in blocks, and let `zipfile` verify the checksum."""
    with archive.open(member) as file:
        while file.read(_BLOCK):
            pass


def read_npy(path: Path) -> Array:
    """Read the array in an .npy file."""
    with open_regular_file(path) as file, library_errors_as_format_errors(path.name, "npy"):
        length = file.seek(0, os.SEEK_END)
        file.seek(0)
        header = _header(file, length, f"{path.name} holds")
        check_fits_memory(header.n_bytes, path.name, "its array")
        return _read_entries(file, header)


def _members(archive: zipfile.ZipFile, length: int, source: str) -> dict[str, zipfile.ZipInfo]:
    """Validate the declared sizes of the arrays, and return the members by array name."""
    files = [member for member in archive.infolist() if not member.is_dir()]
    if len(files) > _MAX_ARRAYS:
        raise FileFormatError(
            f"{source} holds {len(files):,} arrays; at most {_MAX_ARRAYS:,} are read"
        )
    members: dict[str, zipfile.ZipInfo] = {}
    for member in files:
        name = member.filename.removesuffix(_SUFFIX)
        if name in members:
            raise FileFormatError(f"{source} has two arrays named {name!r}; names must differ")
        if member.flag_bits & 1 or member.compress_type not in _MAX_EXPANSION:
            raise FileFormatError(
                f"{source} holds {name!r} in a way that `numpy.savez` does not write"
            )
        max_size = member.compress_size * _MAX_EXPANSION[member.compress_type]
        if member.compress_size > length or member.file_size > max_size:
            raise FileFormatError(
                f"{source} is damaged: {name!r} claims {member.file_size:,} bytes, more than so "
                "short a file can hold"
            )
        members[name] = member
    return members


def _header(file: IO[bytes], length: int, subject: str) -> Header:
    """Read and validate the header of an array in a file of `length` bytes."""
    preamble = file.read(_PREAMBLE_BYTES)
    if preamble[:6] != np.lib.format.MAGIC_PREFIX or len(preamble) < _PREAMBLE_BYTES:
        raise FileFormatError(f"{subject} something that is no array")
    version = preamble[6]
    # The length of the header takes two bytes in version 1 of the format, four in later versions.
    n_length_bytes = 2 if version == 1 else 4
    header_size = int.from_bytes(preamble[8 : 8 + n_length_bytes], "little")
    if version not in {1, 2, 3} or header_size > _MAX_HEADER_BYTES:
        raise FileFormatError(
            f"{subject} an array of an unknown version, or with a header of {header_size:,} bytes"
        )
    header_stream = io.BytesIO(preamble[8:] + file.read(max(header_size + n_length_bytes - 4, 0)))
    if version == 1:
        header = Header(*np.lib.format.read_array_header_1_0(header_stream))
    else:
        header = Header(*np.lib.format.read_array_header_2_0(header_stream))
    _check_header(header, length - 8 - n_length_bytes - header_size, subject)
    return header


def _check_header(header: Header, n_data_bytes: int, subject: str) -> None:
    """Raise a FileFormatError if the array contains objects or has the wrong size."""
    if header.dtype.hasobject:
        raise FileFormatError(
            f"{subject} Python objects (pickles), which are never loaded because loading them can "
            "run any code; save plain arrays of numbers or text instead"
        )
    if min(header.shape, default=0) < 0 or header.n_bytes != n_data_bytes:
        shape = " x ".join(f"{side:,}" for side in header.shape)
        raise FileFormatError(
            f"{subject} an array that claims {shape} entries of {header.dtype}, and "
            f"{n_data_bytes:,} bytes"
        )
    if header.dtype.itemsize == 0:
        raise FileFormatError(f"{subject} an array of entries without a size ({header.dtype})")


def _read_entries(file: IO[bytes], header: Header) -> Array:
    """Read the data of an array, and validate strings and booleans."""
    values = np.empty(math.prod(header.shape), header.dtype)
    raw_bytes = values.view(np.uint8)
    _read_into(file, raw_bytes)
    if header.dtype.kind == "U":
        byte_order = header.dtype.str[0]
        code_points = raw_bytes.view(byte_order + "u4")
        is_surrogate = (code_points >= 0xD800) & (code_points < 0xE000)
        # Code points that are not characters would raise different errors later.
        if (is_surrogate | (code_points > sys.maxunicode)).any():
            raise ValueError("an array of text contains invalid characters")
    if header.dtype.kind == "b":
        # Any byte other than 0 means True. Without conversion, NumPy would sum a byte 7 as seven.
        values = raw_bytes != 0
    if header.is_fortran_order:
        return values.reshape(header.shape[::-1]).T
    return values.reshape(header.shape)


def _read_into(file: IO[bytes], buffer: Array) -> None:
    """Fill a byte array with data from a file. If the file is too short, an EOFError is raised."""
    position = 0
    block = file.read(_BLOCK)
    while block:
        buffer[position : position + len(block)] = np.frombuffer(block, np.uint8)
        position += len(block)
        # The last call returns no bytes. In an archive, this call verifies the checksum.
        block = file.read(_BLOCK)
    if position != buffer.size:
        raise EOFError
