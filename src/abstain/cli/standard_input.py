"""Predictions piped in: `-` in the place of a file."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final

from abstain.errors import InputError

#: What stands for standard input, and the commands in which it does.
MARK: Final = "-"
_COMMANDS: Final = frozenset({"compare", "evaluate", "inspect", "threshold"})
#: The suffix of what begins so.
_STARTS: Final = (
    (b"PAR1", ".parquet"),
    (b"ARROW1", ".arrow"),
    (b"PK\x03\x04", ".npz"),
    (b"\x93NUMPY", ".npy"),
    (b"[", ".json"),
)
_HEAD: Final = 1 << 20

#: The file that holds what was piped in; None where nothing was.
_SPOOLED: ContextVar[Path | None] = ContextVar("spooled", default=None)


@contextmanager
def standard_input(arguments: list[str]) -> Iterator[list[str]]:
    """Give the arguments with a file in the place of `-`, for as long as they are worked on."""
    known = _SPOOLED.get()
    asked = MARK in arguments and arguments[0] in {MARK, *_COMMANDS}
    if not asked or known is not None:
        yield [str(known) if a == MARK and known is not None else a for a in arguments]
        return
    with TemporaryDirectory(prefix="abstain-") as folder:
        path = _spool(Path(folder))
        token = _SPOOLED.set(path)
        try:
            yield [str(path) if a == MARK else a for a in arguments]
        finally:
            _SPOOLED.reset(token)


def as_given(path: Path) -> str:
    """Write a file as it was given: `-` where it was piped in."""
    return MARK if path == _SPOOLED.get() else str(path)


def _spool(folder: Path) -> Path:
    """Write standard input to a file with the suffix of what it holds."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError(
            "`-` stands for standard input, and nothing is piped in: `... | abstain evaluate -`"
        )
    held = folder / "held"
    with held.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with held.open("rb") as file:
        suffix = _suffix(file)
    return held.rename(folder / f"standard-input{suffix}")


def _suffix(file: IO[bytes]) -> str:
    head = file.read(_HEAD)
    if not head:
        raise InputError("standard input is empty: `-` stands for it, and nothing was piped in")
    start = head.lstrip()
    for begin, suffix in _STARTS:
        if start.startswith(begin):
            return suffix
    if not start.startswith(b"{"):
        return ".csv"
    return ".jsonl" if _is_row(head, whole=not file.read(1)) else ".json"


def _is_row(head: bytes, *, whole: bool) -> bool:
    """Tell a first line that is one sample from the beginning of arrays by key."""
    line, _, rest = head.strip().partition(b"\n")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        # Lines longer than what is looked at hold arrays.
        return False
    alone = whole and not rest.strip()
    return isinstance(found, dict) and not (
        alone and any(isinstance(x, list) for x in found.values())
    )
