"""Where lines come from: standard input, or a folder whose files grow."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from abstain._foundation.input_files import opened, refuse_absent
from abstain.errors import FileFormatError, InputError
from abstain.monitoring.archive import Read

#: So many bytes are read at once.
BLOCK: Final = 1 << 20
#: The files of a folder that are read.
PATTERN: Final = "*.jsonl"

#: Lines with the place of each.
Placed = list[tuple[str, str]]


def lines_from(descriptor: int) -> Iterator[Placed]:
    """Yield lines of an open file as they come, as many at a time as are there."""
    rest, number = b"", 0
    while block := os.read(descriptor, BLOCK):
        *whole, rest = (rest + block).split(b"\n")
        yield _placed(whole, number, "")
        number += len(whole)
    if rest:
        yield _placed([rest], number, "")


def lines_in(folder: Path, read: Read) -> Iterator[tuple[Placed, Read]]:
    """Yield what was added to the files of a folder, in the order of their names.

    With how far each file was then read. A line counts when its end is written.
    """
    refuse_absent(folder)
    if not folder.is_dir():
        msg = (
            f"{folder.name} is a file: give the folder that it lies in, or send it through "
            "standard input"
        )
        raise InputError(msg)
    known = {name: (size, lines) for name, size, lines in read}
    for path in sorted(folder.glob(PATTERN)):
        for placed, size, lines in _added(path, *known.get(path.name, (0, 0))):
            known[path.name] = (size, lines)
            yield placed, tuple((name, *known[name]) for name in sorted(known))


def unfinished(folder: Path, read: Read) -> list[str]:
    """Return the names of the files that hold more than was read: a line without its end."""
    known = {name: size for name, size, _ in read}
    return [p.name for p in sorted(folder.glob(PATTERN)) if p.stat().st_size > known.get(p.name, 0)]


def _added(path: Path, size: int, lines: int) -> Iterator[tuple[Placed, int, int]]:
    """Yield the whole lines behind so many bytes and lines of a file, and how far they reach."""
    _refuse_shorter(path, size)
    with opened(path) as file:
        _refuse_replaced(file, path, size)
        while block := file.read(BLOCK):
            # To the end of a line, or to the end of what is written of it.
            *whole, rest = (block + file.readline()).split(b"\n")
            placed = _placed(whole, lines, f"{path.name}, ")
            size, lines = size + sum(map(len, whole)) + len(whole), lines + len(whole)
            if whole:
                yield placed, size, lines
            if rest:
                return


def _refuse_shorter(path: Path, start: int) -> None:
    refuse_absent(path)
    if path.stat().st_size < start:
        msg = (
            f"{path.name} is shorter than when it was last read ({start:,} bytes): files of a "
            "watched folder may only grow. Give the new lines a file of their own"
        )
        raise FileFormatError(msg)


def _refuse_replaced(file: BinaryIO, path: Path, start: int) -> None:
    """Go to where reading ended, which was behind an end of line; refuse a file without one."""
    file.seek(max(start - 1, 0))
    if start and file.read(1) != b"\n":
        msg = (
            f"{path.name} is another file than when it was last read: no line ends at byte "
            f"{start:,}, where reading ended. Files of a watched folder may only grow; give the "
            "new lines a file of their own"
        )
        raise FileFormatError(msg)


def _placed(lines: list[bytes], before: int, file: str) -> Placed:
    return [(f"{file}line {i}", _text(x)) for i, x in enumerate(lines, before + 1)]


def _text(line: bytes) -> str:
    # What is no UTF-8 is then no JSON either, or an id that stays told apart.
    return line.decode("utf-8", "surrogateescape")
