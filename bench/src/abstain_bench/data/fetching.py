"""Download of published data sets: resumable, checked, and unpacked."""

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
    """Unpack a tar or zip archive into a folder; existing files of the right size are kept.

    With `verify`, the checksums in a compressed archive are verified before any file is written, so
    the archive is read twice. Files in zip archives are always verified.

    Every file is written to a temporary name and then renamed, so a stopped run leaves no partial
    file, and the next run resumes. Paths outside the folder, links and devices raise an error
    before the file is written.
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
    """Open an archive decompressed; unlike `tarfile`, these readers verify the checksums."""
    with archive.open("rb") as file:
        head = file.read(6)
    for magic, opener in _COMPRESSED.items():
        if head.startswith(magic):
            return cast("IO[bytes]", opener(archive, "rb"))
    return archive.open("rb")


def _drain(file: IO[bytes]) -> None:
    """Read to the end of the file, where the checksum is verified."""
    while file.read(1 << 20):
        pass


def _tar_members(archive: Path) -> Iterator[_Member]:
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
    """Return the path of an unpacked file; raise FileFormatError for a path outside the folder."""
    path = PurePosixPath(name)
    parts = [part for part in path.parts if part != "."]
    if path.is_absolute() or ".." in parts or not parts or "\\" in name or ":" in parts[0]:
        raise _unsafe_archive_error(archive, name, "leads out of the folder")
    target = folder.joinpath(*parts)
    # An existing link could lead out, too.
    if not target.parent.resolve().is_relative_to(folder.resolve()) or target.is_symlink():
        raise _unsafe_archive_error(archive, name, "would follow a link out of the folder")
    return target


def _unsafe_archive_error(archive: Path, name: str, reason: str) -> FileFormatError:
    return FileFormatError(
        f"{archive.name} is not unpacked: {name!r} in it {reason}; it is not the published archive"
    )


def _write(target: Path, size: int, content: IO[bytes]) -> None:
    if target.is_file() and target.stat().st_size == size:
        return
    make_folder(target.parent)
    free = shutil.disk_usage(target.parent).free
    if size > free:
        raise InputError(f"{target.name} takes {size:,} bytes, and the disk has {free:,}")
    # Always the same name, so that the next run overwrites the file of a killed one.
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


#: Callback during a download: name of the file, received bytes, and all bytes (0 if unknown).
Progress = Callable[[str, int, int], None]

#: Bytes per chunk; a broken connection loses the last, incomplete chunk.
_CHUNK = 1 << 16
#: Seconds without a response after which a connection counts as broken.
_TIMEOUT = 30.0
#: Seconds to wait for the first response to an encrypted request that may not be supported.
_HTTPS_TIMEOUT = 10.0
_NOT_SATISFIABLE, _PARTIAL, _ERRORS = 416, 206, 400
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
    """Download a published data set into a folder, check it and unpack it there.

    Parameters
    ----------
    name : str
        Name in `SOURCES`, such as "cifar10".
    folder : str or Path
        Folder for the files; it is created if it does not exist.
    mirror : str, optional
        Address of a folder (http or https) with copies of the files, which replaces the addresses
        of the authors. The files are checked in the same way.
    keep : bool, default=True
        Whether to keep archives after they are unpacked.
    progress : callable, optional
        Callback with the name of the file, the received bytes, and all bytes (0 if unknown).

    Returns
    -------
    Path
        The folder to read from.

    Raises
    ------
    UnknownNameError
        If the data set does not exist.
    MissingInputError
        If pooch is not installed.
    InputError
        If the data set can only be downloaded manually (ImageNet), the connection failed, or the
        disk is full or not writable.
    FileFormatError
        If a file has another checksum or size than the published one, or an archive is damaged or
        would write outside the folder.

    Notes
    -----
    Addresses that begin with ``http:`` are tried with ``https:`` first. Responses are read up to
    the published size. Files are checked by the published SHA-256, or by the weaker check in
    `DownloadSource.checked`.

    Existing files are not downloaded again if they have the right checksum, or the right size for
    files of an archive. After a broken connection or a killed process, the same call resumes from
    the folder ``.NAME.fetching``. Files that are not the published ones are never overwritten; the
    error names them.

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
    folder = Path(folder).expanduser()
    make_folder(folder)
    for file in source.files:
        archive = _retrieve(file, folder / file.into, mirror, progress)
        if file.archive:
            unpack(archive, folder / file.unpacked, verify=not file.checksum[0])
            if not keep:
                archive.unlink()
    return folder / source.folder


def _retrieve(file: Download, folder: Path, mirror: str | None, progress: Progress | None) -> Path:
    """Download a file unless it exists; check it in either case and return its path."""
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
        with contextlib.suppress(OSError):  # it is kept while something is in it
            work.rmdir()
    if not file.checksum[0]:
        _check_file(path, file, pooch)
    return path


def _partial_file(work: Path, file: Download) -> Path:
    """Return the path of the partial file, with the bytes that a killed process received."""
    part = work / f"{file.name}.part"
    # Temporary files of pooch: empty, or complete files during the check.
    temporary = [p for p in work.iterdir() if p.is_file() and p.name not in {part.name, file.name}]
    for path in sorted(temporary, key=lambda p: p.stat().st_size, reverse=True):
        if part.exists() or not path.stat().st_size:
            path.unlink()
        else:
            path.replace(part)
    return part


def _pooch() -> Any:
    try:
        import pooch
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "pooch":
            raise
        raise MissingInputError("data sets are fetched with pooch: pip install pooch") from None
    return pooch


def _check_file(path: Path, file: Download, pooch: Any) -> None:
    """Raise an error for an existing file that is not the published one."""
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
    n_missing_bytes = file.size - (part.stat().st_size if part.is_file() else 0)
    free = shutil.disk_usage(folder).free
    if n_missing_bytes > free:
        raise InputError(
            f"{file.name} needs {n_missing_bytes / 1e9:,.1f} GB, and {str(folder)!r} has "
            f"{free / 1e9:,.1f} GB left; choose another folder"
        )


@contextlib.contextmanager
def _translate_errors(file: Download, url: str, folder: Path) -> Iterator[None]:
    """Replace errors of the connection by errors of one line that name the remedy."""
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
        # A checksum error of pooch, which has deleted the file.
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
    """Disable the log of pooch; the caller reports the progress."""
    logger = pooch.get_logger()
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


class _TooLongError(Exception):
    """A response is longer than the published file, for which no checksum is published."""


class _ResumingDownloader:
    """Downloads a file into a partial file, and resumes after a broken connection."""

    def __init__(self, part: Path, file: Download, progress: Progress | None) -> None:
        self._part = part
        self._file = file
        self._progress = progress

    def __call__(self, url: str, output_file: str, _pooch: Any) -> None:
        """Download all bytes, then pass them to pooch, which checks them."""
        size = self._file.size if self._file.exact else 0
        done = self._part.stat().st_size if self._part.is_file() else 0
        if size and done > size:
            # The partial file cannot be the beginning of the file.
            self._part.unlink()
            done = 0
        if not (size and done == size) and not self._download(url, done):
            # The partial file is longer than the file of the server.
            self._part.unlink()
            self._download(url, 0)
        self._part.replace(output_file)

    def _download(self, url: str, done: int) -> bool:
        """Download the missing bytes; return False if the server has fewer."""
        # Unencoded, because the counted bytes must be those of the file.
        headers = {"Accept-Encoding": "identity"}
        if done:
            headers["Range"] = f"bytes={done}-"
        with _request(url, headers) as response:
            if response.status_code == _NOT_SATISFIABLE and done:
                length = str(response.headers.get("Content-Range", "")).rpartition("/")[2]
                return length == str(done)
            response.raise_for_status()
            self._receive(response, done if response.status_code == _PARTIAL else 0)
        return True

    def _receive(self, response: Any, done: int) -> None:
        import requests

        file, length = self._file, int(response.headers.get("Content-Length") or 0)
        total = done + length if length else file.size * file.exact
        with self._part.open("ab" if done else "wb") as out:
            # Undecoded, because some servers declare .gz files as an encoding.
            for chunk in response.raw.stream(_CHUNK, decode_content=False):
                used = chunk[: file.max_size - done] if file.max_size else chunk
                out.write(used)
                done += len(used)
                if self._progress is not None:
                    self._progress(file.name, done, total or file.size)
                if len(used) < len(chunk):
                    # The response is longer than the file.
                    break
            else:
                if total and done != total:
                    raise requests.exceptions.ConnectionError(f"{done} of {total} bytes")
                return
        if not file.checksum[0]:
            self._part.unlink()
            raise _TooLongError


def _request(url: str, headers: dict[str, str]) -> Any:
    """Request a file, without encryption only if the server does not support it."""
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
