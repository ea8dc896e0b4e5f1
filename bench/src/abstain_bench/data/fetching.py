"""Fetching published data sets: from the address of their authors, checked, resumed, unpacked."""

import contextlib
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from abstain._foundation.files import make_folder
from abstain.errors import (
    FileFormatError,
    InputError,
    MissingInputError,
    UnknownNameError,
    suggest,
)
from abstain_bench.data.archives import unpack
from abstain_bench.data.downloads import SOURCES, Download, DownloadSource

#: Told while a file comes in: its name, the bytes there, and all bytes (0 where unknown).
Progress = Callable[[str, int, int], None]

#: Bytes at a time; of a broken connection the last, incomplete ones are lost.
_CHUNK = 1 << 16
#: Seconds without an answer after which a connection counts as broken.
_PATIENCE = 30.0
#: The same until a server answers at all at an address that is only tried.
_TRIED = 10.0
_NOT_SATISFIABLE, _PARTIAL, _ERRORS = 416, 206, 400
#: What people call the kinds of checksums.
_KINDS = {"sha256": "SHA-256", "md5": "MD5"}


def fetch(
    name: str,
    folder: str | Path,
    *,
    mirror: str | None = None,
    keep: bool = True,
    progress: Progress | None = None,
) -> Path:
    """Fetch a published data set into a folder, check it and unpack it there.

    Parameters
    ----------
    name : str
        A name of `SOURCES`, such as "cifar10".
    folder : str or Path
        Where the files go; it is made if it is not there.
    mirror : str, optional
        The address of a folder (http or https) that holds copies of the files, to be used
        instead of the authors' addresses. They are checked as those are.
    keep : bool, default=True
        Whether archives are kept once they are unpacked.
    progress : callable, optional
        Called with the name of the file, the bytes there, and all bytes (0 where unknown).

    Returns
    -------
    Path
        The folder to read from.

    Raises
    ------
    UnknownNameError
        There is no such data set.
    MissingInputError
        pooch is not installed.
    InputError
        The data set can only be had by hand (ImageNet), the connection failed, the disk is full
        or may not be written.
    FileFormatError
        A file has another checksum or size than the published one, or is longer, or an archive is
        damaged or would write outside the folder.

    Notes
    -----
    An address that begins with ``http:`` is tried with ``https:`` first. Of an answer no more than
    the published size is taken. Files are checked by the published SHA-256;
    `DownloadSource.checked` says where only something weaker is published.

    What is there already is not fetched again: a file with the right checksum, a file of an
    archive that has its size. A broken connection or a killed run leaves a folder
    ``.NAME.fetching``, and the same call goes on from there. A file that the user put there and
    that is not the published one is never overwritten; the error names it.

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
    place = Path(folder).expanduser()
    make_folder(place)
    for file in source.files:
        archive = _retrieve(file, place / file.into, mirror, progress)
        if file.archive:
            unpack(archive, place / file.unpacked, verify=not file.checksum[0])
            if not keep:
                archive.unlink()
    return place / source.folder


def _retrieve(file: Download, place: Path, mirror: str | None, progress: Progress | None) -> Path:
    """Return the file, which is fetched unless it is there; check it in either case."""
    pooch = _pooch()
    make_folder(place)
    path = place / file.name
    if path.exists():
        _refuse_wrong(path, file, pooch)
        return path
    work = place / f".{file.name}.fetching"
    make_folder(work)
    part = _part(work, file)
    url = f"{mirror.rstrip('/')}/{file.name}" if mirror else file.url
    try:
        _refuse_full(place, file, part)
        with _words(file, url, place), _quiet(pooch):
            pooch.retrieve(
                url,
                known_hash=":".join(file.checksum) if file.checksum[0] else None,
                fname=file.name,
                path=work,
                downloader=_Resuming(part, file, progress),
            )
            (work / file.name).replace(path)
    finally:
        with contextlib.suppress(OSError):  # it is kept while something is in it
            work.rmdir()
    if not file.checksum[0]:
        _refuse_wrong(path, file, pooch)
    return path


def _part(work: Path, file: Download) -> Path:
    """Return where the bytes come in; what a killed run had there already is taken up."""
    part = work / f"{file.name}.part"
    # pooch's own temporary files: empty, or all bytes that were being checked.
    left = [p for p in work.iterdir() if p.is_file() and p.name not in {part.name, file.name}]
    for found in sorted(left, key=lambda p: p.stat().st_size, reverse=True):
        if part.exists() or not found.stat().st_size:
            found.unlink()
        else:
            found.replace(part)
    return part


def _pooch() -> Any:
    try:
        import pooch
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "pooch":
            raise
        raise MissingInputError("data sets are fetched with pooch: pip install pooch") from None
    return pooch


def _refuse_wrong(path: Path, file: Download, pooch: Any) -> None:
    """Refuse a file that is there and is not the published one."""
    if not path.is_file():
        raise InputError(f"{str(path)!r} is no file, and {file.name} belongs there; move it away")
    what = "delete it and fetch again, or put the published file in its place"
    size = path.stat().st_size
    if file.size and file.exact and size != file.size:
        raise FileFormatError(
            f"{str(path)!r} is cut off or another version: it has {size:,} bytes, and the "
            f"published file has {file.size:,}; {what}"
        )
    kind, known = file.checksum
    if kind and (found := pooch.file_hash(str(path), alg=kind)) != known:
        raise FileFormatError(
            f"{str(path)!r} is damaged or another version: its {_KINDS[kind]} checksum is {found}, "
            f"and the published one is {known}; {what}"
        )


def _refuse_full(place: Path, file: Download, part: Path) -> None:
    wanted = file.size - (part.stat().st_size if part.is_file() else 0)
    free = shutil.disk_usage(place).free
    if wanted > free:
        raise InputError(
            f"{file.name} needs {wanted / 1e9:,.1f} GB, and {str(place)!r} has {free / 1e9:,.1f} "
            "GB left; choose another folder"
        )


@contextlib.contextmanager
def _words(file: Download, url: str, place: Path) -> Iterator[None]:
    """Turn what goes wrong on the way into one line that says what to do."""
    import requests.exceptions as known
    import urllib3

    broken = (
        known.RequestException, urllib3.exceptions.HTTPError, ConnectionError, TimeoutError,
    )  # fmt: skip
    try:
        yield
    except known.HTTPError as error:
        status = error.response.status_code if error.response is not None else "an error"
        raise InputError(
            f"{file.name} could not be fetched: {url} answers {status}; {_by_hand(file, place)}"
        ) from None
    except broken as error:
        bad = (known.InvalidSchema, known.MissingSchema, known.InvalidURL)
        why = "no connection"
        if isinstance(error, bad):
            why = "the address is not one of http or https"
        raise InputError(
            f"{file.name} could not be fetched from {url} ({why}, or it broke); call again to go "
            f"on from there, or {_by_hand(file, place)}"
        ) from None
    except _TooLongError:
        raise FileFormatError(
            f"{file.name} from {url} is not the published file: it has more than {file.most:,} "
            f"bytes, so it was deleted; fetch again, or {_by_hand(file, place)}"
        ) from None
    except ValueError as error:
        # pooch says so of checksums; the file it fetched is deleted by then.
        if "hash" not in str(error):
            raise
        kind, published = file.checksum
        raise FileFormatError(
            f"{file.name} from {url} is not the published file: its {_KINDS[kind]} checksum is "
            f"not {published}, so it was deleted; fetch again, or {_by_hand(file, place)}"
        ) from None
    except OSError as error:
        raise InputError(
            f"{file.name} cannot be written in {str(place)!r}: {error.strerror or error}"
        ) from None


def _by_hand(file: Download, place: Path) -> str:
    return f"put {file.name} into {str(place)!r} yourself"


@contextlib.contextmanager
def _quiet(pooch: Any) -> Iterator[None]:
    """Keep pooch from logging; the progress is told by the caller."""
    logger = pooch.get_logger()
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


class _TooLongError(Exception):
    """An answer goes on where the file ends, and no checksum can tell whether it is the file."""


class _Resuming:
    """Brings a file in beside its place, and goes on there after a broken connection."""

    def __init__(self, part: Path, file: Download, progress: Progress | None) -> None:
        self._part = part
        self._file = file
        self._progress = progress

    def __call__(self, url: str, output_file: str, _pooch: Any) -> None:
        """Bring in all bytes, then hand them to pooch, which checks them."""
        size = self._file.size if self._file.exact else 0
        done = self._part.stat().st_size if self._part.is_file() else 0
        if size and done > size:
            # Whatever it is, it is not the beginning of the file.
            self._part.unlink()
            done = 0
        if not (size and done == size) and not self._whole(url, done):
            # It is longer than the file of the server.
            self._part.unlink()
            self._whole(url, 0)
        self._part.replace(output_file)

    def _whole(self, url: str, done: int) -> bool:
        """Fetch what is missing; False where the server has less than is there."""
        # Unencoded, as the bytes that are counted and resumed are those of the file.
        head = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
        with _answer(url, head) as answer:
            if answer.status_code == _NOT_SATISFIABLE and done:
                length = str(answer.headers.get("Content-Range", "")).rpartition("/")[2]
                return length == str(done)
            answer.raise_for_status()
            self._take(answer, done if answer.status_code == _PARTIAL else 0)
        return True

    def _take(self, answer: Any, done: int) -> None:
        import requests

        file, length = self._file, int(answer.headers.get("Content-Length") or 0)
        whole = done + length if length else file.size * file.exact
        with self._part.open("ab" if done else "wb") as out:
            # Undecoded: some servers call a .gz file an encoding of what is in it.
            for chunk in answer.raw.stream(_CHUNK, decode_content=False):
                kept = chunk[: file.most - done] if file.most else chunk
                out.write(kept)
                done += len(kept)
                if self._progress is not None:
                    self._progress(file.name, done, whole or file.size)
                if len(kept) < len(chunk):
                    # Here the file ends, and the answer goes on.
                    break
            else:
                if whole and done != whole:
                    raise requests.exceptions.ConnectionError(f"{done} of {whole} bytes")
                return
        if not file.checksum[0]:
            self._part.unlink()
            raise _TooLongError


def _answer(url: str, head: dict[str, str]) -> Any:
    """Ask for a file: without encryption only where a server knows no other way."""
    import requests

    if url.startswith("http:"):
        tried = (requests.exceptions.ConnectionError, requests.exceptions.Timeout)
        with contextlib.suppress(*tried):
            answer = requests.get(
                f"https:{url.removeprefix('http:')}",
                headers=head,
                stream=True,
                timeout=(_TRIED, _PATIENCE),
            )
            if answer.status_code < _ERRORS or answer.status_code == _NOT_SATISFIABLE:
                return answer
            answer.close()
    return requests.get(url, headers=head, stream=True, timeout=_PATIENCE)


__all__ = ["SOURCES", "Download", "DownloadSource", "Progress", "fetch"]
