"""Read predictions from standard input, which the argument `-` selects."""

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

#: The argument for standard input, and the commands that accept it.
STDIN_NAME: Final = "-"
_COMMANDS: Final = frozenset({"compare", "evaluate", "inspect", "threshold"})
#: File suffixes by the first bytes of the contents.
_SUFFIX_BY_FIRST_BYTES: Final = (
    (b"PAR1", ".parquet"),
    (b"ARROW1", ".arrow"),
    (b"PK\x03\x04", ".npz"),
    (b"\x93NUMPY", ".npy"),
    (b"[", ".json"),
)
_HEAD_BYTES: Final = 1 << 20

#: Temporary file with the contents of standard input, or None if it is not used.
_STDIN_FILE: ContextVar[Path | None] = ContextVar("spooled", default=None)


@contextmanager
def standard_input(arguments: list[str]) -> Iterator[list[str]]:
    """Save standard input to a temporary file, and replace the argument `-` by its path."""
    outer_file = _STDIN_FILE.get()
    uses_stdin = STDIN_NAME in arguments and arguments[0] in {STDIN_NAME, *_COMMANDS}
    if outer_file is not None:
        # A command such as `inspect` runs another command.
        yield _replace_stdin(arguments, outer_file)
        return
    if not uses_stdin:
        yield list(arguments)
        return
    with TemporaryDirectory(prefix="abstain-") as folder:
        path = _save_stdin(Path(folder))
        token = _STDIN_FILE.set(path)
        try:
            yield _replace_stdin(arguments, path)
        finally:
            _STDIN_FILE.reset(token)


def _replace_stdin(arguments: list[str], path: Path) -> list[str]:
    return [str(path) if argument == STDIN_NAME else argument for argument in arguments]


def original_name(path: Path) -> str:
    """Return the argument that named a file, which is `-` for standard input or the path."""
    return STDIN_NAME if path == _STDIN_FILE.get() else str(path)


def _save_stdin(folder: Path) -> Path:
    """Write standard input to a file with the suffix of its format."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError(
            "the argument `-` reads standard input, but nothing is piped in; use for example "
            "`... | abstain evaluate -`"
        )
    path = folder / "contents"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with path.open("rb") as file:
        suffix = _find_suffix(file)
    return path.rename(folder / f"standard-input{suffix}")


def _find_suffix(file: IO[bytes]) -> str:
    """Return the suffix of the file format, which is determined from the first bytes."""
    head = file.read(_HEAD_BYTES)
    if not head:
        raise InputError("standard input, which the argument `-` reads, is empty")
    first_bytes = head.lstrip()
    for mark, suffix in _SUFFIX_BY_FIRST_BYTES:
        if first_bytes.startswith(mark):
            return suffix
    if not first_bytes.startswith(b"{"):
        return ".csv"
    is_complete = not file.read(1)
    return ".jsonl" if _is_sample(head, is_complete=is_complete) else ".json"


def _is_sample(head: bytes, *, is_complete: bool) -> bool:
    """Return whether the first line of a JSON text is a complete sample.

    Otherwise, the text is a single object that contains arrays.
    """
    first_line, _, other_lines = head.strip().partition(b"\n")
    try:
        row = json.loads(first_line)
    except (ValueError, RecursionError):
        # The first line is longer than `head`, so it contains arrays.
        return False
    if not isinstance(row, dict):
        return False
    has_one_line = is_complete and not other_lines.strip()
    has_arrays = any(isinstance(value, list) for value in row.values())
    return not (has_one_line and has_arrays)
