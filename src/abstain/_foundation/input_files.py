"""Open input files, and raise errors with clear messages for missing or damaged files.

Folders, pipes, devices and oversized files raise an error before data are read.
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

#: Maximum size in bytes of a text file (JSON, TOML), and of the header of a table.
MAX_TEXT_BYTES, MAX_HEADER_BYTES = 16 << 20, 64 << 20

#: Maximum length of the error message of a library that a message quotes.
_MAX_REASON_LENGTH = 100
#: Number of bytes at the end of a log that are searched for the last line.
_TAIL_BYTES = 1 << 16
_KIND_DESCRIPTIONS = {
    stat.S_IFDIR: "a folder, not a file",
    stat.S_IFIFO: "a pipe, not a file",
    stat.S_IFCHR: "a device, not a file",
    stat.S_IFBLK: "a device, not a file",
    stat.S_IFSOCK: "a socket, not a file",
}
#: Files in which Linux stores the memory limit of a container.
_MEMORY_LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


# ------------------------------------------------------------------------------------ paths
def check_exists(path: Path) -> None:
    """If a path does not exist, raise an InputError that suggests a similar name."""
    with os_errors_as_input_errors(str(path), path):
        path.stat()


@contextmanager
def os_errors_as_input_errors(source: str, path: Path | None = None) -> Iterator[None]:
    """Convert an OSError in the block to an InputError."""
    try:
        yield
    except OSError as error:
        # An OSError without an error number describes the contents of a file.
        if error.errno is None:
            raise
        raise InputError(_open_error_message(source, error, path)) from error
    except ValueError:
        # A null character in a path raises ValueError, which libraries also use for other reasons.
        if path is None or "\0" not in str(path):
            raise
        raise InputError(_missing_file_message(path)) from None


def _open_error_message(source: str, error: OSError, path: Path | None) -> str:
    """Describe why a file cannot be opened or read."""
    if path is not None and isinstance(error, FileNotFoundError | NotADirectoryError):
        return _missing_file_message(path)
    if isinstance(error, PermissionError):
        return f"{source} cannot be opened: you may not read it"
    if isinstance(error, IsADirectoryError):
        return f"{source} cannot be opened: it is a folder, not a file"
    if error.errno == errno.ELOOP:
        return f"{source} cannot be opened: it is a symbolic link that leads back to itself"
    return f"{source} cannot be read: {error.strerror or error}"


def _missing_file_message(path: Path) -> str:
    """Describe why a file does not exist, and suggest a similar name."""
    folder = path.parent
    with contextlib.suppress(OSError, ValueError):
        if path.is_symlink():
            target = str(path.readlink())
            return f"there is no file {str(path)!r}: it is a link to {target!r}, which is not there"
        if folder.is_dir():
            suggestion = suggest(path.name, sorted(p.name for p in folder.iterdir()))
            return f"there is no file {str(path)!r}.{suggestion}"
    return f"there is no file {str(path)!r}: the folder {str(folder)!r} does not exist"


# ------------------------------------------------------------------------------------ contents
@contextmanager
def open_regular_file(path: Path) -> Iterator[io.BufferedReader]:
    """Open a regular file. Folders, pipes and devices raise an InputError."""
    with os_errors_as_input_errors(path.name, path):
        file_size(path)
        # A pipe may have replaced the file in the meantime, and opening must not wait for it.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(path, flags), "rb") as file:  # noqa: PTH123
            _reject_irregular(path, os.fstat(file.fileno()))
            yield file


def file_size(path: Path) -> int:
    """Return the size of a regular file in bytes. Other files raise an InputError."""
    with os_errors_as_input_errors(path.name, path):
        status = path.stat()
    _reject_irregular(path, status)
    return status.st_size


def _reject_irregular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KIND_DESCRIPTIONS.get(stat.S_IFMT(status.st_mode), "no regular file")
        raise InputError(f"{path.name} cannot be opened: it is {kind}")


def read_bytes(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """Return the bytes of a file, or raise a FileFormatError if it is larger than `max_bytes`."""
    with open_regular_file(path) as file:
        # The reported size can be wrong, because virtual files have size 0.
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise FileFormatError(
            f"{path.name} is larger than {max_bytes >> 20} MB, more than such a file may have"
        )
    return data


def read_text(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """Return the contents of a UTF-8 text file."""
    try:
        return read_bytes(path, max_bytes).decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{path.name} is not text in UTF-8 (byte {error.start}); save it with the encoding "
            "UTF-8"
        ) from error


def read_json_object(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> dict[str, Any]:
    """Return the fields of a JSON file that contains one object."""
    return parse_object(read_text(path, max_bytes))


def input_sha256(path: Path) -> str:
    """Return the SHA-256 hash of a regular file of any size."""
    with open_regular_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def last_line(path: Path) -> str:
    """Return the last line of a text file, with invalid UTF-8 replaced."""
    with open_regular_file(path) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - _TAIL_BYTES, 0))
        lines = file.read(_TAIL_BYTES).decode(errors="replace").splitlines()
    return lines[-1] if lines else ""


# ------------------------------------------------------------------------------------ damage
@contextmanager
def library_errors_as_format_errors(
    source: str, format_name: str, panics: tuple[type[BaseException], ...] = ()
) -> Iterator[None]:
    """Convert every error in the block to a FileFormatError.

    The block should contain only calls of a library that parses a file. `panics` contains error
    types of the library that do not inherit from `Exception`.
    """
    # Libraries raise many types of errors for invalid bytes, so all types are converted.
    library_errors: tuple[type[BaseException], ...] = (Exception, *panics)
    try:
        with os_errors_as_input_errors(source):
            yield
    except AbstainError:
        raise
    except MemoryError as error:
        raise FileFormatError(
            f"{source} cannot be read as {format_name}: it declares more data than fits into memory"
        ) from error
    except library_errors as error:
        raise FileFormatError(
            f"{source} cannot be read as {format_name}: it is damaged, cut short or of another "
            f"format ({_short_reason(error)})"
        ) from error


def _short_reason(error: BaseException) -> str:
    """Return an error message on one line, truncated if it is long."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if len(reason) > _MAX_REASON_LENGTH:
        reason = reason[:_MAX_REASON_LENGTH] + "..."
    return reason


# ------------------------------------------------------------------------------------ memory
def check_fits_memory(n_bytes: int, source: str, description: str) -> None:
    """Raise a FileFormatError if data require more than the available memory."""
    available = available_memory()
    if n_bytes > available:
        raise FileFormatError(
            f"{source} cannot be read: {description} takes {_gigabytes(n_bytes)}, and "
            f"{_gigabytes(available)} of memory are free"
        )


def available_memory() -> int:
    """Return the available memory in bytes, or `sys.maxsize` if it is unknown."""
    container_limits = [_container_limit(path) for path in _MEMORY_LIMIT_FILES]
    return min(_available_in_system(), *container_limits, _address_space_limit())


def _available_in_system() -> int:
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) << 10
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    return sys.maxsize


def _container_limit(path: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(Path(path).read_text(encoding="ascii"))
    return sys.maxsize


def _address_space_limit() -> int:
    try:
        import resource
    except ImportError:
        return sys.maxsize
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size < 1e15 else f"{size / 1e15:,.0f} million GB"
