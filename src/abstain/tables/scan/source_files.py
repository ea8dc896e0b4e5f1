"""Resolve paths, patterns and folders to the files of one set of predictions."""

import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from abstain._foundation.input_files import check_exists, file_size
from abstain.errors import InputError
from abstain.tables.files import SUFFIXES

_DIGITS = re.compile(r"(\d+)")


def resolve_files(source: Any) -> tuple[Path, ...]:
    """Return the files of a path, a pattern, a folder, or a list of these.

    The files of a folder or of a pattern such as "big/*.parquet" are sorted by name, with numbers
    in numerical order: part-9 comes before part-10. Names that begin with a dot or an underscore
    are ignored.
    """
    sources = [source] if isinstance(source, str | Path) else source
    is_list = isinstance(sources, list | tuple)
    if not is_list or not all(isinstance(entry, str | Path) for entry in sources):
        raise InputError(f"`source` must be paths of files, a pattern or a folder; got {sources!r}")
    paths = [path for entry in sources for path in _matching_files(str(entry))]
    if not paths:
        raise InputError("name at least one file of predictions")
    unique_paths: set[Path] = set()
    for path in paths:
        if path in unique_paths:
            raise InputError(f"the file {str(path)!r} occurs twice in `source`")
        unique_paths.add(path)
    return tuple(paths)


def _matching_files(source: str) -> list[Path]:
    path = Path(source)
    if path.is_dir():
        message = f"the folder {source!r} contains no file that abstain reads"
        return _sorted_by_name(_readable_files(path), message)
    if is_file_pattern(source):
        matches = map(Path, glob.glob(source, recursive=True))  # noqa: PTH207
        files = dict.fromkeys(file for match in matches for file in _files_of_match(match))
        return _sorted_by_name(files, f"no file matches the pattern {source!r}")
    check_exists(path)
    return [path]


def _readable_files(folder: Path) -> list[Path]:
    return [p for p in folder.iterdir() if p.is_file() and p.suffix.lower() in SUFFIXES]


def _files_of_match(match: Path) -> list[Path]:
    """Return a file, or the files in a folder with the suffix of a file, as Spark writes them."""
    if match.is_file():
        return [match]
    return _readable_files(match) if match.suffix.lower() in SUFFIXES else []


def is_file_pattern(source: str) -> bool:
    """Return whether a path is a pattern for file names."""
    return any(character in source for character in "*?[") and not Path(source).exists()


def _sorted_by_name(paths: Iterable[Path], message_if_empty: str) -> list[Path]:
    visible = [path for path in paths if not path.name.startswith((".", "_"))]
    if not visible:
        raise InputError(message_if_empty)
    return sorted(visible, key=_natural_sort_key)


def _natural_sort_key(path: Path) -> list[tuple[int, int, str]]:
    """Return a sort key that compares numbers in names by their values."""
    # Every second part consists of digits.
    parts = _DIGITS.split(str(path))
    return [(1, int(text), text) if i % 2 else (0, 0, text) for i, text in enumerate(parts)]


def file_labels(paths: Iterable[Path]) -> dict[Path, str]:
    """Return a unique label for each file: its name, or its path from the common folder.

    Files that are written every day may have the same name in different folders.
    """
    paths = tuple(paths)
    if len({path.name for path in paths}) == len(paths):
        return {path: path.name for path in paths}
    folder = Path(os.path.commonpath([path.absolute().parent for path in paths]))
    return {path: path.absolute().relative_to(folder).as_posix() for path in paths}


def file_states(paths: Iterable[Path]) -> list[list[Any]]:
    """Return path, size and modification time of each file, to detect changes."""
    return [[str(path), file_size(path), path.stat().st_mtime_ns] for path in paths]
