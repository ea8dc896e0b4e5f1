"""Files that appear whole or not at all, and plain words when they cannot be written."""

import contextlib
import os
import secrets
import shutil
import time
from pathlib import Path

from abstain.errors import InputError

#: Seconds.
_HOUR = 3600


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the place and move there, so that a killed run leaves no half file."""
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            # Without this a crash of the machine may keep the new name and lose the content.
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        msg = f"{str(path)!r} cannot be written: {why(path, error)}"
        raise InputError(msg) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def sweep(folder: Path, pattern: str = ".*.tmp") -> None:
    """Take away what writers left that were killed an hour ago or longer.

    A younger file may belong to somebody who is still writing it.
    """
    for path in folder.glob(pattern):
        # It may be gone, or another's.
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _HOUR:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def make_folder(path: Path) -> None:
    """Make a folder and those above it; refuse a path on which something else stands."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"the folder {str(path)!r} cannot be written: {why(path / '_', error)}"
        raise InputError(msg) from error


def why(path: Path, error: OSError) -> str:
    """Say what stands in the way of a file; the system's own words where nothing is plainer."""
    above = [p for p in path.parents if p.exists() and not p.is_dir()]
    if above:
        return f"{str(above[0])!r} is a file, not a folder"
    if path.is_dir():
        return "it is a folder"
    if isinstance(error, FileNotFoundError) and not path.parent.exists():
        return f"the folder {str(path.parent)!r} does not exist"
    if isinstance(error, PermissionError):
        return "you may not write there"
    return error.strerror or str(error)
