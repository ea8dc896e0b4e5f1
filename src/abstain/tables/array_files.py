"""Arrays in files of their own (.npy): those of one set of predictions make one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from abstain._foundation.archives import read_npy
from abstain.errors import InputError, ShapeError
from abstain.tables.table import DataTable, from_arrays

SUFFIX: Final = ".npy"


def open_array(path: Path) -> DataTable:
    """Open one array, named by its file."""
    return from_arrays({path.stem: read_npy(path)}, path.name)


def are_arrays(paths: Sequence[Path]) -> bool:
    """Tell whether several files hold an array each; refuse some that do among others."""
    own = [path for path in paths if path.suffix.lower() == SUFFIX]
    if own and len(own) < len(paths):
        other = next(path for path in paths if path not in own)
        raise InputError(
            f"{own[0].name} is one array of a set and {other.name} a set by itself: give arrays "
            f"({SUFFIX}) with the others of their set alone"
        )
    return bool(own)


def joined(paths: Sequence[Path]) -> DataTable:
    """Open the arrays of one set as one table."""
    arrays = {}
    for path in paths:
        if path.stem in arrays:
            raise InputError(
                f"two arrays are named {path.stem!r}, by their files; names must differ"
            )
        arrays[path.stem] = read_npy(path)
    source = ", ".join(path.name for path in paths)
    lengths = {name: array.shape[:1] for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ShapeError(f"{source} must have a row for each sample; got the shapes {said}")
    return from_arrays(arrays, source)
