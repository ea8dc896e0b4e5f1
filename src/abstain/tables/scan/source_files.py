"""Search for the files of one set of predictions in paths, patterns and folders."""

import glob
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from abstain._foundation.archives import Archive
from abstain._foundation.input_files import check_exists, file_size, open_regular_file
from abstain.errors import FileFormatError, InputError, suggest
from abstain.tables._lines import read_header
from abstain.tables.files import (
    SUFFIXES,
    format_name,
    has_rows_index,
    polars_errors_as_format_errors,
    scan_rows,
)
from abstain.tables.table import kind_of_dtype, leaf_columns

_DIGITS = re.compile(r"(\d+)")


def resolve_files(source: Any) -> tuple[Path, ...]:
    """Return the files of a path, a pattern, a folder, or a list of these.

    The files of a folder or of a pattern such as "big/*.parquet" are sorted by name, and numbers in
    names are sorted by value: part-9 comes before part-10. Names that begin with a dot or an
    underscore are ignored.
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
    """Return the files of one path, pattern or folder."""
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
    """Return a list with the file, or with the files in a folder.

    A folder may have the suffix of a file, as the folders that Spark writes.
    """
    if match.is_file():
        return [match]
    return _readable_files(match) if match.suffix.lower() in SUFFIXES else []


def is_file_pattern(source: str) -> bool:
    """Return whether a path is a pattern for file names."""
    return any(character in source for character in "*?[") and not Path(source).exists()


def _sorted_by_name(paths: Iterable[Path], message_if_empty: str) -> list[Path]:
    """Return the paths that are not hidden, sorted by name.

    Numbers in names are sorted by value.
    """
    visible = [path for path in paths if not path.name.startswith((".", "_"))]
    if not visible:
        raise InputError(message_if_empty)

    def natural_sort_key(path: Path) -> list[tuple[int, int, str]]:
        """Return a sort key that compares numbers in names by their values."""
        # Every second element consists of digits.
        parts = _DIGITS.split(str(path))
        return [(1, int(text), text) if i % 2 else (0, 0, text) for i, text in enumerate(parts)]

    return sorted(visible, key=natural_sort_key)


def file_labels(paths: Iterable[Path]) -> dict[Path, str]:
    """Return a unique label for each file.

    The label is the name of the file, or its path from the common folder if several files have the
    same name.
    """
    paths = tuple(paths)
    if len({path.name for path in paths}) == len(paths):
        return {path: path.name for path in paths}
    folder = Path(os.path.commonpath([path.absolute().parent for path in paths]))
    return {path: path.absolute().relative_to(folder).as_posix() for path in paths}


def file_states(paths: Iterable[Path]) -> list[list[Any]]:
    """Return the path, size and modification time of each file.

    These values change if a file changes.
    """
    return [[str(path), file_size(path), path.stat().st_mtime_ns] for path in paths]


# ------------------------------------------------------------------------------------ columns
_KIND_LABELS = {
    "number": "numbers",
    "text": "text",
    "block": "lists of numbers",
    "other": "other values",
}


def column_kinds(path: Path) -> Mapping[str, str]:
    """Return a description of each column, such as "numbers" or "text".

    If the contents are unknown without reading rows, as in CSV files, the description is empty. If
    the file format has no list of columns, the mapping is empty.
    """
    suffix = path.suffix.lower()
    if suffix in {".csv", ".tsv"}:
        return dict.fromkeys(read_header(path)[0], "")
    if suffix == ".npz":
        headers = Archive(path).headers
        return {n: "numbers" if h.dtype.kind in "biuf" else "text" for n, h in headers.items()}
    if not has_rows_index(path):
        return {}
    with open_regular_file(path), polars_errors_as_format_errors(path.name, format_name(path)):
        leaves = leaf_columns(scan_rows(path).collect_schema())
    return {
        name: "" if str(leaf.dtype) == "Null" else _KIND_LABELS[kind_of_dtype(leaf.dtype)]
        for name, leaf in leaves.items()
    }


def check_same_columns(
    path: Path, names: Iterable[str], reference: Path, reference_kinds: Mapping[str, str]
) -> None:
    """Raise an error unless the selected columns have the same types as in `reference`."""
    kinds = reference_kinds if path == reference else column_kinds(path)
    for name in names:
        if kinds and name not in kinds:
            raise FileFormatError(
                f"{path.name} has no column {name!r}, which is read from {reference.name}."
                f"{suggest(name, kinds)} Its columns: {', '.join(list(kinds)[:30])}"
            )
        kind, reference_kind = kinds.get(name, ""), reference_kinds.get(name, "")
        if kind and reference_kind and kind != reference_kind:
            raise FileFormatError(
                f"{path.name} has {kind} in the column {name!r}, but {reference.name} has "
                f"{reference_kind}; all files must have the same type of column"
            )
