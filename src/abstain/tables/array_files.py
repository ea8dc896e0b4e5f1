"""Read predictions from .npy files, each with one array."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from abstain._foundation.archives import read_npy
from abstain.errors import InputError, ShapeError
from abstain.tables.table import DataTable, from_arrays

SUFFIX: Final = ".npy"


def open_array(path: Path) -> DataTable:
    """Open a file with one array as a table; the column has the name of the file."""
    return from_arrays({path.stem: read_npy(path)}, path.name)


def are_arrays(paths: Sequence[Path]) -> bool:
    """Return whether all files are arrays; raise an error if only some of them are."""
    array_files = [path for path in paths if path.suffix.lower() == SUFFIX]
    if array_files and len(array_files) < len(paths):
        other_file = next(path for path in paths if path not in array_files)
        raise InputError(
            f"{array_files[0].name} contains one array and {other_file.name} a complete table; "
            f"arrays ({SUFFIX}) can only be combined with other arrays"
        )
    return bool(array_files)


def open_arrays(paths: Sequence[Path]) -> DataTable:
    """Open several arrays as the columns of one table."""
    arrays = {}
    for path in paths:
        if path.stem in arrays:
            raise InputError(f"two files contain an array named {path.stem!r}; names must differ")
        arrays[path.stem] = read_npy(path)
    source = ", ".join(path.name for path in paths)
    lengths = {name: array.shape[:1] for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ShapeError(f"{source} must have the same number of rows; got the shapes {shapes}")
    return from_arrays(arrays, source)
