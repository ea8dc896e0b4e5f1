"""What goes wrong while a file is read, told in plain words: refused by the system, or damaged."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from abstain.errors import FileFormatError, InputError

#: Longest part of a library's own message that ours repeats.
_REASON = 100


@contextmanager
def readable(source: str) -> Iterator[None]:
    """Turn what the system raises when it does not give a file out into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(_refused(source, error)) from error


def _refused(source: str, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return f"{source} cannot be opened: you may not read it"
    if isinstance(error, IsADirectoryError):
        return f"{source} cannot be opened: it is a folder, not a file"
    return f"{source} cannot be read: {error.strerror or error}"


@contextmanager
def plain_words(source: str, format_name: str) -> Iterator[None]:
    """Turn what a library raises on a damaged file into a FileFormatError of one sentence.

    Only calls of the library belong into the block: it takes errors for damage that would be
    mistakes of ours elsewhere.
    """
    import polars as pl

    damaged = (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        zlib.error,
        struct.error,
        EOFError,
        OSError,
        KeyError,
        ValueError,
        NotImplementedError,
    )
    try:
        yield
    except damaged as error:
        # With a number the system refuses; without one a library is at odds with the bytes.
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(_refused(source, error)) from error
        reason = " ".join(str(error).split()) or type(error).__name__
        reason = reason if len(reason) <= _REASON else reason[:_REASON] + "..."
        msg = (
            f"{source} cannot be read as {format_name}: it is damaged, cut short or of another "
            f"format ({reason})"
        )
        raise FileFormatError(msg) from error
