"""Files of users, opened within bounds: regular ones only, and no more of them than there may be.

Every reader opens here what it was given, so that no link, device or size surprises it, and what a
library raises on its bytes becomes one sentence.
"""

import contextlib
import errno
import hashlib
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from abstain._foundation.json_records import parse_object
from abstain.errors import AbstainError, FileFormatError, InputError, suggest

#: The most of a text that is read whole (JSON, TOML), and of the header of a table, in bytes.
MAX_TEXT_BYTES, MAX_HEADER_BYTES = 16 << 20, 64 << 20

#: Longest part of a library's own message that ours repeats.
_REASON = 100
#: Of a log: enough for its last line.
_TAIL = 1 << 16
_KINDS = {
    stat.S_IFDIR: "a folder, not a file",
    stat.S_IFIFO: "a pipe, not a file",
    stat.S_IFCHR: "a device, not a file",
    stat.S_IFBLK: "a device, not a file",
    stat.S_IFSOCK: "a socket, not a file",
}
#: Where Linux says how much memory a container may take.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


# ------------------------------------------------------------------------------------ paths
def check_exists(path: Path) -> None:
    """Refuse a path at which nothing is, and name its nearest neighbor."""
    with os_errors_as_input_errors(str(path), path):
        path.stat()


@contextmanager
def os_errors_as_input_errors(source: str, path: Path | None = None) -> Iterator[None]:
    """Turn what the system raises when it does not give a file out into an InputError."""
    try:
        yield
    except OSError as error:
        # Without a number it comes from a library that is at odds with the bytes.
        if error.errno is None:
            raise
        raise InputError(_refusal(source, error, path)) from error
    except ValueError:
        # No path can hold this character; a library may find it in the bytes of a file.
        if path is None or "\0" not in str(path):
            raise
        raise InputError(_absent(path)) from None


def _refusal(source: str, error: OSError, path: Path | None) -> str:
    if path is not None and isinstance(error, FileNotFoundError | NotADirectoryError):
        return _absent(path)
    if isinstance(error, PermissionError):
        return f"{source} cannot be opened: you may not read it"
    if isinstance(error, IsADirectoryError):
        return f"{source} cannot be opened: it is a folder, not a file"
    if error.errno == errno.ELOOP:
        return f"{source} cannot be opened: it is a symbolic link that leads back to itself"
    return f"{source} cannot be read: {error.strerror or error}"


def _absent(path: Path) -> str:
    folder = path.parent
    with contextlib.suppress(OSError, ValueError):
        if path.is_symlink():
            where = str(path.readlink())
            return f"there is no file {str(path)!r}: it is a link to {where!r}, which is not there"
        if folder.is_dir():
            near = suggest(path.name, sorted(p.name for p in folder.iterdir()))
            return f"there is no file {str(path)!r}.{near}"
    return f"there is no file {str(path)!r}: the folder {str(folder)!r} does not exist"


# ------------------------------------------------------------------------------------ contents
@contextmanager
def open_regular_file(path: Path) -> Iterator[io.BufferedReader]:
    """Open a regular file; refuse folders, pipes and devices, which may have no end."""
    with os_errors_as_input_errors(path.name, path):
        file_size(path)
        # What has become a pipe since must not make us wait.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(path, flags), "rb") as file:  # noqa: PTH123
            _refuse_irregular(path, os.fstat(file.fileno()))
            yield file


def file_size(path: Path) -> int:
    """Return the size of a regular file in bytes; refuse whatever else is there."""
    with os_errors_as_input_errors(path.name, path):
        found = path.stat()
    _refuse_irregular(path, found)
    return found.st_size


def _refuse_irregular(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        what = _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
        raise InputError(f"{path.name} cannot be opened: it is {what}")


def read_bytes(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """Return all bytes of a file that has no more than `most`."""
    with open_regular_file(path) as file:
        # The size may be wrong: some files that the system makes up have none.
        found = file.read(max_bytes + 1)
    if len(found) > max_bytes:
        raise FileFormatError(
            f"{path.name} is larger than {max_bytes >> 20} MB, more than such a file may have"
        )
    return found


def read_text(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """Return a text in UTF-8."""
    try:
        return read_bytes(path, max_bytes).decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{path.name} is not text in UTF-8 (byte {error.start}); save it with the encoding "
            "UTF-8"
        ) from error


def read_json_object(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> dict[str, Any]:
    """Return the fields of a file that holds one JSON object; see `parsed`."""
    return parse_object(read_text(path, max_bytes))


def input_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, whatever its size."""
    with open_regular_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def last_line(path: Path) -> str:
    """Return the last line of a text, which may be long; bytes that are no UTF-8 are replaced."""
    with open_regular_file(path) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - _TAIL, 0))
        lines = file.read(_TAIL).decode(errors="replace").splitlines()
    return lines[-1] if lines else ""


# ------------------------------------------------------------------------------------ damage
@contextmanager
def library_errors_as_format_errors(
    source: str, format_name: str, panics: tuple[type[BaseException], ...] = ()
) -> Iterator[None]:
    """Turn what a library raises on a damaged file into a FileFormatError of one sentence.

    Only calls of the library belong into the block: it takes errors for damage that would be
    mistakes of ours elsewhere. `panics` are those of its errors that are no `Exception`.
    """
    damage: tuple[type[BaseException], ...] = (Exception, *panics)
    try:
        with os_errors_as_input_errors(source):
            yield
    except AbstainError:
        raise
    except MemoryError as error:
        raise FileFormatError(
            f"{source} cannot be read as {format_name}: it claims more than the memory holds"
        ) from error
    except damage as error:
        # No list of what libraries raise on hostile bytes has ever been complete.
        reason = " ".join(str(error).split()) or type(error).__name__
        reason = reason if len(reason) <= _REASON else reason[:_REASON] + "..."
        raise FileFormatError(
            f"{source} cannot be read as {format_name}: it is damaged, cut short or of another "
            f"format ({reason})"
        ) from error


# ------------------------------------------------------------------------------------ memory
def check_fits_memory(size: int, source: str, what: str) -> None:
    """Refuse to read what is larger than the memory that is free, before anything is read."""
    free = available_memory()
    if size > free:
        raise FileFormatError(
            f"{source} cannot be read: {what} takes {_gigabytes(size)}, and {_gigabytes(free)} of "
            "memory are free"
        )


def available_memory() -> int:
    """Return how many bytes of memory are free for us; a huge number where nobody tells."""
    return min(_available(), *map(_limit, _LIMITS), _address_space())


def _available() -> int:
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) << 10
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    return sys.maxsize


def _limit(place: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(Path(place).read_text(encoding="ascii"))
    return sys.maxsize


def _address_space() -> int:
    try:
        import resource
    except ImportError:
        return sys.maxsize
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size < 1e15 else f"{size / 1e15:,.0f} million GB"
