"""Which files are meant: paths, patterns and folders to the parts of one set of predictions."""

import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from abstain._foundation.input_files import check_exists, file_size
from abstain.errors import InputError
from abstain.tables.files import SUFFIXES

_NUMBERS = re.compile(r"(\d+)")


def parts_of(source: Any) -> tuple[Path, ...]:
    """Return the files of a path, a pattern, a folder, or of several of these.

    A pattern such as "big/*.parquet" and a folder stand for their files, those that begin with a
    dot or an underscore left out, in the order of their names, numbers by size: part-9 comes
    before part-10.
    """
    given = [source] if isinstance(source, str | Path) else source
    if not isinstance(given, list | tuple) or not all(isinstance(s, str | Path) for s in given):
        raise InputError(f"`source` must be paths of files, a pattern or a folder; got {given!r}")
    found = [path for one in given for path in _expanded(str(one))]
    if not found:
        raise InputError("name at least one file of predictions")
    seen: set[Path] = set()
    for path in found:
        if path in seen:
            raise InputError(f"the file {str(path)!r} is given twice")
        seen.add(path)
    return tuple(found)


def _expanded(given: str) -> list[Path]:
    path = Path(given)
    if path.is_dir():
        return _ordered(_inside(path), f"the folder {given!r} holds no file that abstain reads")
    if is_pattern(given):
        found = map(Path, glob.glob(given, recursive=True))  # noqa: PTH207
        files = dict.fromkeys(file for match in found for file in _files_of(match))
        return _ordered(files, f"no file has a name like {given!r}")
    check_exists(path)
    return [path]


def _inside(folder: Path) -> list[Path]:
    return [p for p in folder.iterdir() if p.is_file() and p.suffix.lower() in SUFFIXES]


def _files_of(match: Path) -> list[Path]:
    """Return a file, or the files in a folder that is named like one, as Spark leaves them."""
    if match.is_file():
        return [match]
    return _inside(match) if match.suffix.lower() in SUFFIXES else []


def is_pattern(given: str) -> bool:
    """Tell whether a path stands for the files whose names are like it."""
    return any(sign in given for sign in "*?[") and not Path(given).exists()


def _ordered(paths: Iterable[Path], nothing: str) -> list[Path]:
    kept = [path for path in paths if not path.name.startswith((".", "_"))]
    if not kept:
        raise InputError(nothing)
    return sorted(kept, key=_natural)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Return a key by which numbers in names are compared as numbers."""
    words = _NUMBERS.split(str(path))
    return [(1, int(w), w) if i % 2 else (0, 0, w) for i, w in enumerate(words)]


def names_of(paths: Iterable[Path]) -> dict[Path, str]:
    """Return how each file is named: by its name, or from the folder on that holds all of them.

    The whole way is shown where two have one name, as files that are written day by day have.
    """
    given = tuple(paths)
    if len({path.name for path in given}) == len(given):
        return {path: path.name for path in given}
    folder = Path(os.path.commonpath([path.absolute().parent for path in given]))
    return {path: path.absolute().relative_to(folder).as_posix() for path in given}


def identity(paths: Iterable[Path]) -> list[list[Any]]:
    """Return what changes when one of the files does: name, size and time of each."""
    return [[str(path), file_size(path), path.stat().st_mtime_ns] for path in paths]
