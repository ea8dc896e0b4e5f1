"""Download published data sets with resumption, checksums and unpacking."""

import bz2
import contextlib
import gzip
import logging
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
from abstain.errors import (
    FileFormatError,
    InputError,
    MissingInputError,
    UnknownNameError,
    suggest,
)
from abstain_bench.data.downloads import SOURCES, Download, DownloadSource

#: Name, size and content of a file in an archive.
_Member = tuple[str, int, IO[bytes]]
#: Errors that a damaged archive can raise.
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
    """Unpack a tar or zip archive into a folder.

    Existing files with the right size are not overwritten. If `verify` is True, the checksum of a
    tar archive is verified before any file is written. The checksums of zip archives are always
    verified.

    Each file is written under a temporary name and then renamed, so an interrupted call leaves no
    incomplete file. If an archive contains a link, a device or a path outside the folder, an error
    is raised and this entry is not written.
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
        damage = " ".join(str(error).split())
        raise FileFormatError(
            f"{str(archive)!r} ({archive.stat().st_size:,} bytes) is cut off or damaged; delete it "
            f"and fetch it again ({damage})"
        ) from None
    except OSError as error:
        raise InputError(
            f"{archive.name} cannot be unpacked in {str(folder)!r}: {error.strerror or error}"
        ) from None


def _open_decompressed(archive: Path) -> IO[bytes]:
    """Open the decompressed content of an archive with a reader that verifies checksums."""
    with archive.open("rb") as file:
        head = file.read(6)
    for magic, opener in _COMPRESSED.items():
        if head.startswith(magic):
            return cast("IO[bytes]", opener(archive, "rb"))
    return archive.open("rb")


def _drain(file: IO[bytes]) -> None:
    """Read the file to its end, which verifies its checksum."""
    while file.read(1 << 20):
        pass


def _tar_members(archive: Path) -> Iterator[_Member]:
    """Yield each file of a tar archive, or raise FileFormatError for a link or a device."""
    with (
        _open_decompressed(archive) as stream,
        tarfile.open(fileobj=stream, mode="r|") as file,
    ):
        for member in file:
            if member.isdir():
                continue
            content = file.extractfile(member) if member.isreg() else None
            if content is None:
                raise _unsafe_archive_error(archive, member.name, "is a link or a device")
            yield member.name, member.size, content
        _drain(stream)


def _zip_members(archive: Path) -> Iterator[_Member]:
    """Yield each file of a zip archive, or raise FileFormatError for a link or a device."""
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
    """Return the path of a file to unpack, or raise FileFormatError if it is outside the folder."""
    path = PurePosixPath(name)
    parts = [part for part in path.parts if part != "."]
    leads_up = path.is_absolute() or ".." in parts
    if leads_up or not parts or "\\" in name or ":" in parts[0]:
        raise _unsafe_archive_error(archive, name, "leads out of the folder")
    target = folder.joinpath(*parts)
    # An existing link could also lead out of the folder.
    if not target.parent.resolve().is_relative_to(folder.resolve()) or target.is_symlink():
        raise _unsafe_archive_error(archive, name, "would follow a link out of the folder")
    return target


def _unsafe_archive_error(archive: Path, name: str, reason: str) -> FileFormatError:
    return FileFormatError(
        f"{archive.name} is not unpacked: {name!r} in it {reason}; it is not the published archive"
    )


def _write(target: Path, size: int, content: IO[bytes]) -> None:
    """Write an unpacked file atomically, unless the file exists with the right size."""
    if target.is_file() and target.stat().st_size == size:
        return
    make_folder(target.parent)
    free = shutil.disk_usage(target.parent).free
    if size > free:
        raise InputError(f"{target.name} takes {size:,} bytes, and the disk has {free:,}")
    # The name is always the same, so that the next call overwrites the file of a killed process.
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


#: Callback that is called during a download. Its arguments are the name of the file, the number of
#: received bytes, and the number of all bytes (0 if unknown).
Progress = Callable[[str, int, int], None]

#: Number of bytes per chunk. A broken connection loses the last, incomplete chunk.
_CHUNK = 1 << 16
#: Number of seconds without a response after which a connection is considered broken.
_TIMEOUT = 30.0
#: Maximum number of seconds to wait for a connection with https, which a server may not support.
_HTTPS_TIMEOUT = 10.0
#: HTTP status if the requested range is not satisfiable.
_NOT_SATISFIABLE = 416
#: HTTP status of a partial response.
_PARTIAL = 206
#: The lowest HTTP status of an error.
_ERRORS = 400
#: Titles of the kinds of checksums.
_KINDS = {"sha256": "SHA-256", "md5": "MD5"}


def fetch(
    name: str,
    folder: str | Path,
    *,
    mirror: str | None = None,
    keep: bool = True,
    progress: Progress | None = None,
) -> Path:
    """Download a published data set to a folder, verify its files and unpack its archives.

    Parameters
    ----------
    name : str
        Name in `SOURCES`, such as "cifar10".
    folder : str or Path
        Folder for the files. The folder is created if it does not exist.
    mirror : str, optional
        Address (http or https) of a folder with copies of the files, which replaces the addresses
        of the authors.
    keep : bool, default=True
        Whether to keep archives after unpacking.
    progress : callable, optional
        Callback that is called during the download. The function receives the name of the file, the
        number of received bytes, and the total number of bytes (0 if unknown).

    Returns
    -------
    Path
        Path of the folder with the files of the data set.

    Raises
    ------
    UnknownNameError
        If the data set does not exist.
    MissingInputError
        If pooch is not installed.
    InputError
        If the data set can only be downloaded manually, as ImageNet. If the connection fails, or if
        the disk is full or not writable.
    FileFormatError
        If the checksum or the size of a file differs from the published value. If an archive is
        damaged or contains a path outside the folder.

    Notes
    -----
    If the URL begins with ``http:``, the function tries ``https:`` first. Each file is verified by
    its published SHA-256 checksum, or by the weaker check in `DownloadSource.checked`.

    An existing file with the right checksum is not downloaded again, and an unpacked file with the
    right size is not overwritten. If an existing file differs from the published file, an error is
    raised and the file is not overwritten. After an interruption, the same call resumes the
    download from the folder ``.NAME.fetching``.

    Examples
    --------
    >>> from abstain_bench.data.fetching import fetch
    >>> folder = fetch("cifar10", "data")  # doctest: +SKIP
    """
    if name not in SOURCES:
        raise UnknownNameError(
            f"there is no published data set named {name!r}.{suggest(name, SOURCES)} "
            "`abstain data list` prints them all."
        )
    source = SOURCES[name]
    if not source.files:
        raise InputError(f"{source.title} cannot be fetched: {source.note}")
    root = Path(folder).expanduser()
    make_folder(root)
    for file in source.files:
        path = _retrieve(file, root / file.into, mirror, progress)
        if file.archive:
            unpack(path, root / file.unpacked, verify=not file.checksum[0])
            if not keep:
                path.unlink()
    return root / source.folder


def _retrieve(file: Download, folder: Path, mirror: str | None, progress: Progress | None) -> Path:
    """Download a file if it does not exist, verify it, and return its path."""
    pooch = _pooch()
    make_folder(folder)
    path = folder / file.name
    if path.exists():
        _check_file(path, file, pooch)
        return path
    work = folder / f".{file.name}.fetching"
    make_folder(work)
    part = _partial_file(work, file)
    url = f"{mirror.rstrip('/')}/{file.name}" if mirror else file.url
    try:
        _check_disk_space(folder, file, part)
        with _translate_errors(file, url, folder), _silence_pooch(pooch):
            pooch.retrieve(
                url,
                known_hash=":".join(file.checksum) if file.checksum[0] else None,
                fname=file.name,
                path=work,
                downloader=_ResumingDownloader(part, file, progress),
            )
            (work / file.name).replace(path)
    finally:
        # The folder remains if it contains a partial file.
        with contextlib.suppress(OSError):
            work.rmdir()
    if not file.checksum[0]:
        _check_file(path, file, pooch)
    return path


def _partial_file(work: Path, file: Download) -> Path:
    """Return the path of the temporary file that stores an incomplete download."""
    part = work / f"{file.name}.part"
    # A temporary file of pooch is empty, or is a complete file whose check was interrupted.
    temporary_files = [
        path
        for path in work.iterdir()
        if path.is_file() and path.name not in {part.name, file.name}
    ]
    largest_first = sorted(temporary_files, key=lambda path: path.stat().st_size, reverse=True)
    for path in largest_first:
        if part.exists() or not path.stat().st_size:
            path.unlink()
        else:
            path.replace(part)
    return part


def _pooch() -> Any:
    """Import pooch, or raise MissingInputError if pooch is not installed."""
    try:
        import pooch
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "pooch":
            raise
        raise MissingInputError("data sets are fetched with pooch: pip install pooch") from None
    return pooch


def _check_file(path: Path, file: Download, pooch: Any) -> None:
    """Raise an error if the size or the checksum of a file differs from the published value."""
    if not path.is_file():
        raise InputError(f"{str(path)!r} is no file, and {file.name} belongs there; move it away")
    remedy = "delete it and fetch again, or replace it with the published file"
    size = path.stat().st_size
    if file.size and file.exact and size != file.size:
        raise FileFormatError(
            f"{str(path)!r} is cut off or another version: it has {size:,} bytes, and the "
            f"published file has {file.size:,}; {remedy}"
        )
    kind, published = file.checksum
    checksum = pooch.file_hash(str(path), alg=kind) if kind else ""
    if checksum != published:
        raise FileFormatError(
            f"{str(path)!r} is damaged or another version: its {_KINDS[kind]} checksum is "
            f"{checksum}, and the published one is {published}; {remedy}"
        )


def _check_disk_space(folder: Path, file: Download, part: Path) -> None:
    """Raise an error if the free disk space is smaller than the remaining part of a file."""
    n_missing_bytes = file.size - (part.stat().st_size if part.is_file() else 0)
    free = shutil.disk_usage(folder).free
    if n_missing_bytes > free:
        raise InputError(
            f"{file.name} needs {n_missing_bytes / 1e9:,.1f} GB, and {str(folder)!r} has "
            f"{free / 1e9:,.1f} GB left; choose another folder"
        )


@contextlib.contextmanager
def _translate_errors(file: Download, url: str, folder: Path) -> Iterator[None]:
    """Replace errors of pooch, the connection and the disk by errors that explain the solution."""
    import requests.exceptions as request_errors
    import urllib3

    broken = (
        request_errors.RequestException,
        urllib3.exceptions.HTTPError,
        ConnectionError,
        TimeoutError,
    )
    try:
        yield
    except request_errors.HTTPError as error:
        status = error.response.status_code if error.response is not None else "an error"
        raise InputError(
            f"{file.name} could not be fetched: {url} returns {status}; "
            f"{_manual_remedy(file, folder)}"
        ) from None
    except broken as error:
        bad = (
            request_errors.InvalidSchema,
            request_errors.MissingSchema,
            request_errors.InvalidURL,
        )
        reason = "no connection"
        if isinstance(error, bad):
            reason = "the address is not one of http or https"
        raise InputError(
            f"{file.name} could not be fetched from {url} ({reason}, or it broke); call again to "
            f"resume, or {_manual_remedy(file, folder)}"
        ) from None
    except _TooLongError:
        raise FileFormatError(
            f"{file.name} from {url} is not the published file: it has more than {file.max_size:,} "
            f"bytes, so it was deleted; fetch again, or {_manual_remedy(file, folder)}"
        ) from None
    except ValueError as error:
        # pooch raises this error for a wrong checksum and deletes the file.
        if "hash" not in str(error):
            raise
        kind, published = file.checksum
        raise FileFormatError(
            f"{file.name} from {url} is not the published file: its {_KINDS[kind]} checksum is "
            f"not {published}, so it was deleted; fetch again, or {_manual_remedy(file, folder)}"
        ) from None
    except OSError as error:
        raise InputError(
            f"{file.name} cannot be written in {str(folder)!r}: {error.strerror or error}"
        ) from None


def _manual_remedy(file: Download, folder: Path) -> str:
    return f"put {file.name} into {str(folder)!r} yourself"


@contextlib.contextmanager
def _silence_pooch(pooch: Any) -> Iterator[None]:
    """Suppress the log messages of pooch, because the caller reports the progress."""
    logger = pooch.get_logger()
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


class _TooLongError(Exception):
    """Error for a response that is longer than the published size of a file without a checksum."""


class _ResumingDownloader:
    """Downloads a file to a temporary file, and resumes after the connection is lost."""

    def __init__(self, part: Path, file: Download, progress: Progress | None) -> None:
        self._part = part
        self._file = file
        self._progress = progress

    def __call__(self, url: str, output_file: str, _pooch: Any) -> None:
        """Download the complete file, and move it to `output_file`, where it is verified."""
        size = self._file.size if self._file.exact else 0
        done = self._part.stat().st_size if self._part.is_file() else 0
        if size and done > size:
            # The partial file is longer than the published file.
            self._part.unlink()
            done = 0
        is_complete = bool(size) and done == size
        if not is_complete and not self._download(url, done):
            # The partial file is longer than the file on the server.
            self._part.unlink()
            self._download(url, 0)
        self._part.replace(output_file)

    def _download(self, url: str, done: int) -> bool:
        """Download the missing bytes.

        The result is False if the file on the server has fewer than `done` bytes.
        """
        # The response must not be encoded, because the bytes of the file are counted.
        headers = {"Accept-Encoding": "identity"}
        if done:
            headers["Range"] = f"bytes={done}-"
        with _request(url, headers) as response:
            if response.status_code == _NOT_SATISFIABLE and done:
                length = str(response.headers.get("Content-Range", "")).rpartition("/")[2]
                return length == str(done)
            response.raise_for_status()
            is_partial = response.status_code == _PARTIAL
            self._receive(response, done if is_partial else 0)
        return True

    def _receive(self, response: Any, done: int) -> None:
        """Append a response to the temporary file, which already contains `done` bytes."""
        import requests

        file = self._file
        length = int(response.headers.get("Content-Length") or 0)
        total = done + length if length else file.size * file.exact
        n_received = done
        is_too_long = False
        with self._part.open("ab" if done else "wb") as out:
            # Some servers declare .gz files as encoded content, which must not be decoded.
            for chunk in response.raw.stream(_CHUNK, decode_content=False):
                # A checksum, if there is one, rejects a file that is cut off at the maximum size.
                used = chunk[: file.max_size - n_received] if file.max_size else chunk
                out.write(used)
                n_received += len(used)
                if self._progress is not None:
                    self._progress(file.name, n_received, total or file.size)
                is_too_long = len(used) < len(chunk)
                if is_too_long:
                    break
        if is_too_long and not file.checksum[0]:
            self._part.unlink()
            raise _TooLongError
        if not is_too_long and total and n_received != total:
            raise requests.exceptions.ConnectionError(f"{n_received} of {total} bytes")


def _request(url: str, headers: dict[str, str]) -> Any:
    """Request a file by https, or by http if the server does not support https."""
    import requests

    if url.startswith("http:"):
        unsupported = (requests.exceptions.ConnectionError, requests.exceptions.Timeout)
        with contextlib.suppress(*unsupported):
            response = requests.get(
                f"https:{url.removeprefix('http:')}",
                headers=headers,
                stream=True,
                timeout=(_HTTPS_TIMEOUT, _TIMEOUT),
            )
            if response.status_code < _ERRORS or response.status_code == _NOT_SATISFIABLE:
                return response
            response.close()
    return requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT)


__all__ = ["SOURCES", "Download", "DownloadSource", "Progress", "fetch"]
