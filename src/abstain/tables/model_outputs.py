"""Readers of model outputs in JSON files and in files that `torch.save` wrote.

The code of Zhou et al. (2025) writes ``y_logits`` and ``y_true`` to JSON files. It writes
``preds_test`` (logits) and ``gt_test`` to files of torch. Files of `torch.save` may contain only
tensors, arrays of numbers and plain values. If such a file contains any other object, an error is
raised before the object is created.
"""

import math
import zipfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from abstain._foundation.archives import verify_archive
from abstain._foundation.input_files import (
    check_fits_memory,
    file_size,
    library_errors_as_format_errors,
    read_bytes,
)
from abstain._foundation.json_records import parse_value
from abstain._foundation.lazy_imports import LazyModule, is_installed
from abstain._foundation.notes import READING, Note
from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain.tables.logs import inspect_ai
from abstain.tables.table import DataTable, from_arrays, from_polars
from abstain.typing import Array

torch = LazyModule("torch")

#: Maximum size of a JSON file in bytes.
_MAX_JSON_BYTES: Final = 1 << 30
#: Memory in bytes that the numbers of a JSON text need per byte of text.
_MEMORY_PER_JSON_BYTE: Final = 16

#: Keys by role in the files that known programs write.
_KNOWN_LAYOUTS: Final[tuple[Mapping[str, str], ...]] = (
    {"logits": "y_logits", "label": "y_true"},
    {"logits": "preds_test", "label": "gt_test"},
)

#: Name of the format of torch files in messages.
_TORCH_FORMAT: Final = "a file of torch"

#: NumPy type codes of the arrays that are read from a file of torch.
_NUMERIC_TYPE_CODES: Final = "?bhilqBHILQefd"

_JSON_HINT: Final = (
    'write {"logits": [[...], ...], "labels": [...]}, or a list with one object per sample'
)
_TORCH_HINT: Final = 'save the outputs with torch.save({"logits": ..., "labels": ...}, file)'


def open_json(path: Path) -> DataTable:
    """Open a JSON file that contains arrays by key or a list of rows."""
    n_bytes = _MEMORY_PER_JSON_BYTE * file_size(path)
    check_fits_memory(n_bytes, path.name, "its text with all numbers")
    try:
        contents = parse_value(read_bytes(path, _MAX_JSON_BYTES).decode(), finite=False)
    except UnicodeDecodeError:
        _raise_format_error(path, "is not text in UTF-8", _JSON_HINT)
    except InputError as error:
        raise FileFormatError(f"{path.name} cannot be read as json: {error}") from None
    if isinstance(contents, list):
        return _table_from_rows(path, contents)
    if not isinstance(contents, dict):
        _raise_format_error(path, "contains neither an object nor a list of objects", _JSON_HINT)
    if contents.keys() >= inspect_ai.LOG_FIELDS:
        return inspect_ai.read_log(contents, path.name)
    arrays = {
        name: _array_from_list(path, name, values)
        for name, values in _columns(contents).items()
        if isinstance(values, list)
    }
    return _table_from_arrays(path, arrays, list(contents), _JSON_HINT)


def _table_from_rows(path: Path, rows: list[Any]) -> DataTable:
    """Convert a list of objects, one per sample, to a table."""
    import polars as pl

    if not rows or not all(isinstance(row, dict) for row in rows):
        _raise_format_error(path, "contains a list whose entries are not objects", _JSON_HINT)
    with library_errors_as_format_errors(path.name, "json"):
        frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    if frame.width == 0:
        _raise_format_error(path, "contains objects without fields", _JSON_HINT)
    return from_polars(frame, path.name)


def _columns(contents: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the columns by key.

    Each column is a list, or an object with one field per row, as pandas writes it.
    """
    columns = list(contents.values())
    is_from_pandas = bool(columns) and all(
        isinstance(column, dict) and column.keys() == columns[0].keys() for column in columns
    )
    if not is_from_pandas:
        return contents
    return {name: list(column.values()) for name, column in contents.items()}


def open_torch(path: Path) -> DataTable:
    """Open a file in which `torch.save` stored a dictionary of tensors."""
    _check_archive(path)
    if not is_installed("torch"):
        raise MissingInputError(f"{path.name} is read with torch: pip install 'abstain[torch]'")
    contents = _load_torch(path)
    if not isinstance(contents, Mapping) or not all(isinstance(name, str) for name in contents):
        _raise_format_error(path, "contains no dictionary of arrays", _TORCH_HINT)
    arrays = {
        name: _to_array(path, name, value) for name, value in contents.items() if _is_array(value)
    }
    return _table_from_arrays(path, arrays, list(contents), _TORCH_HINT)


def _table_from_arrays(
    path: Path, arrays: Mapping[str, Array], keys: list[str], hint: str
) -> DataTable:
    """Convert arrays to a table.

    If the keys are those of a known program, arrays that do not have one entry per sample are
    omitted.
    """
    if not arrays:
        _raise_format_error(path, "contains no dictionary of arrays", hint)
    layout: Mapping[str, str] = {}
    for known_layout in _KNOWN_LAYOUTS:
        if arrays.keys() >= set(known_layout.values()):
            layout = known_layout
            length = arrays[layout["logits"]].shape[:1]
            arrays = {name: array for name, array in arrays.items() if array.shape[:1] == length}
            break
    ignored = [key for key in keys if key not in arrays]
    notes = (Note(READING, f"keys not read: {', '.join(ignored[:12])}"),) if ignored else ()
    return replace(from_arrays(arrays, path.name), column_by_role=dict(layout), notes=notes)


def _array_from_list(path: Path, name: str, values: list[Any]) -> Array:
    try:
        return np.asarray(values)
    except ValueError:
        _raise_format_error(path, f"has rows of different lengths under {name!r}", _JSON_HINT)


# ------------------------------------------------------------------------------------ torch
def _check_archive(path: Path) -> None:
    """Raise an error if a file is damaged or was written by `torch.save` before 2020."""
    with library_errors_as_format_errors(path.name, _TORCH_FORMAT):
        is_archive = zipfile.is_zipfile(path)
    if not is_archive:
        _raise_format_error(path, "is not an archive of tensors", _TORCH_HINT)
    with (
        library_errors_as_format_errors(path.name, _TORCH_FORMAT),
        zipfile.ZipFile(path) as archive,
    ):
        members = archive.infolist()
    if any(m.compress_type != zipfile.ZIP_STORED or m.flag_bits & 1 for m in members):
        _raise_format_error(path, "is compressed, which `torch.save` never does", _TORCH_HINT)
    check_fits_memory(sum(m.file_size for m in members), path.name, "its tensors")
    verify_archive(path, _TORCH_FORMAT)


def _load_torch(path: Path) -> Any:
    try:
        with _allow_numeric_arrays():
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001  a damaged archive can raise any error
        name = type(error).__name__
        description = f"must contain only tensors and arrays of numbers, undamaged ({name})"
        _raise_format_error(path, description, _TORCH_HINT)


def _allow_numeric_arrays() -> AbstractContextManager[None]:
    """Allow `torch.load` to read NumPy arrays of numbers in addition to tensors."""
    serialization: Any = torch.serialization
    # Versions of torch without this function cannot map the names of moved functions.
    if not hasattr(serialization, "get_unsafe_globals_in_checkpoint"):
        return nullcontext()
    reconstruct: Callable[..., Any] = np.zeros(1).__reduce__()[0]  # type: ignore[assignment]
    allowed: list[Any] = [np.ndarray, np.dtype]
    # NumPy 2 renamed the module of the function, and files contain either name.
    allowed.append((reconstruct, "numpy.core.multiarray._reconstruct"))
    allowed.append((reconstruct, "numpy._core.multiarray._reconstruct"))
    allowed += [type(np.dtype(code)) for code in _NUMERIC_TYPE_CODES]
    context: AbstractContextManager[None] = serialization.safe_globals(allowed)
    return context


def _is_array(value: Any) -> bool:
    is_tensor = hasattr(value, "is_sparse")
    return is_tensor or isinstance(value, list | tuple | np.ndarray)


def _to_array(path: Path, name: str, value: Any) -> Array:
    """Convert a tensor or a list to a NumPy array."""
    if isinstance(value, list | tuple):
        return _array_from_list(path, name, list(value))
    size = math.prod(value.shape) * value.dtype.itemsize
    check_fits_memory(size, path.name, f"the array {name!r}")
    if isinstance(value, np.ndarray):
        return value
    if value.layout != torch.strided or value.is_quantized:
        _raise_format_error(path, f"has a sparse or quantized tensor {name!r}", _TORCH_HINT)
    # NumPy has no bfloat16, but float32 represents all bfloat16 numbers.
    if value.dtype == torch.bfloat16:
        value = value.float()
    array: Array = value.detach().numpy()
    return array


def _raise_format_error(path: Path, description: str, hint: str) -> NoReturn:
    raise FileFormatError(f"{path.name} {description}; {hint}") from None
