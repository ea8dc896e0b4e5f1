"""Unpacking archives: nothing leaves the folder, no links, nothing half written."""

import bz2
import contextlib
import gzip
import lzma
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from abstain._foundation.files import make_folder
from abstain.errors import FileFormatError, InputError

#: Name, size and content of a file in an archive.
_Member = tuple[str, int, IO[bytes]]
_DAMAGE = (
    tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError,
    NotImplementedError, RuntimeError, MemoryError, ArithmeticError, ValueError, struct.error,
)  # fmt: skip


_COMPRESSED: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}


def unpack(archive: Path, folder: Path, *, verify: bool = False) -> None:
    """Unpack a tar or zip archive into a folder; what is there with its size is left alone.

    With `verify` the checksums that a compressed archive itself holds are checked before anything
    is written, at the cost of reading it twice; files in zip archives are checked in any case.

    Every file is written beside its place and moved there, so a stopped run leaves no half file,
    and the next one goes on. Names that lead out of the folder, links and devices are refused
    before anything of that name is written.
    """
    make_folder(folder)
    members = _zip_members if zipfile.is_zipfile(archive) else _tar_members
    try:
        if verify and members is _tar_members:
            with _open_decompressed(archive) as file:
                _drain(file)
        for name, size, content in members(archive):
            _write(_target_path(folder, name, archive), size, content)
    except (FileFormatError, InputError):
        raise
    except _DAMAGE as error:
        words = " ".join(str(error).split())
        raise FileFormatError(
            f"{str(archive)!r} ({archive.stat().st_size:,} bytes) is cut off or damaged; delete it "
            f"and fetch it again ({words})"
        ) from None
    except OSError as error:
        raise InputError(
            f"{archive.name} cannot be unpacked in {str(folder)!r}: {error.strerror or error}"
        ) from None


def _open_decompressed(archive: Path) -> IO[bytes]:
    """Open what is compressed; unlike tarfile's own streams these check the checksums."""
    with archive.open("rb") as file:
        head = file.read(6)
    for magic, opener in _COMPRESSED.items():
        if head.startswith(magic):
            return cast("IO[bytes]", opener(archive, "rb"))
    return archive.open("rb")


def _drain(file: IO[bytes]) -> None:
    """Read to the end, where the checksum is."""
    while file.read(1 << 20):
        pass


def _tar_members(archive: Path) -> Iterator[_Member]:
    with _open_decompressed(archive) as stream:
        yield from _members_of(stream, archive)
        _drain(stream)


def _members_of(stream: IO[bytes], archive: Path) -> Iterator[_Member]:
    with tarfile.open(fileobj=stream, mode="r|") as file:
        for member in file:
            if member.isdir():
                continue
            content = file.extractfile(member) if member.isreg() else None
            if content is None:
                raise _unsafe_archive_error(archive, member.name, "is a link or a device")
            yield member.name, member.size, content


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            if member.is_dir():
                continue
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in {0, stat.S_IFREG}:
                raise _unsafe_archive_error(archive, member.filename, "is a link or a device")
            with file.open(member) as content:
                yield member.filename, member.file_size, content


def _target_path(folder: Path, name: str, archive: Path) -> Path:
    """Return where a file of the archive goes; refuse a way out of the folder."""
    path = PurePosixPath(name)
    parts = [part for part in path.parts if part != "."]
    if path.is_absolute() or ".." in parts or not parts or "\\" in name or ":" in parts[0]:
        raise _unsafe_archive_error(archive, name, "leads out of the folder")
    target = folder.joinpath(*parts)
    # A link that stood there before could lead out too.
    inside = folder.resolve()
    if not target.parent.resolve().is_relative_to(inside) or target.is_symlink():
        raise _unsafe_archive_error(archive, name, "would follow a link out of the folder")
    return target


def _unsafe_archive_error(archive: Path, name: str, reason: str) -> FileFormatError:
    msg = (
        f"{archive.name} is not unpacked: {name!r} in it {reason}; it is not the published archive"
    )
    return FileFormatError(msg)


def _write(target: Path, size: int, content: IO[bytes]) -> None:
    if target.is_file() and target.stat().st_size == size:
        return
    make_folder(target.parent)
    free = shutil.disk_usage(target.parent).free
    if size > free:
        raise InputError(f"{target.name} takes {size:,} bytes, and the disk has {free:,}")
    # Always the same name, so that the next run takes up what a killed one left.
    temporary = target.parent / f".{target.name}.tmp"
    try:
        with temporary.open("wb") as file:
            shutil.copyfileobj(content, file, 1 << 20)
        if temporary.stat().st_size != size:
            raise EOFError(f"{target.name} ends early")
        temporary.replace(target)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
