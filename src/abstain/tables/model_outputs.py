"""Outputs of a model as arrays by key: in one JSON object, or as `torch.save` wrote tensors.

So the code of Zhou et al. (2025) keeps theirs: ``y_logits`` and ``y_true`` in JSON, ``preds_test``
(logits) and ``gt_test`` in files of torch. Of the latter only tensors, arrays of numbers and plain
values are taken; whatever else a pickle can name is refused before it is made.
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
from abstain._foundation.lazy_imports import LazyModule
from abstain._foundation.notes import READING, Note
from abstain._foundation.optional_packages import is_installed
from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain.tables.logs import inspect_ai
from abstain.tables.table import DataTable, from_arrays, from_polars
from abstain.typing import Array

torch = LazyModule("torch")

#: Bytes of a JSON text, and how many of memory its numbers take for each.
_MOST_JSON: Final = 1 << 30
_OF_NUMBERS: Final = 16

#: What the keys of known files mean, where all of them are there.
_KNOWN: Final[tuple[Mapping[str, str], ...]] = (
    {"logits": "y_logits", "label": "y_true"},
    {"logits": "preds_test", "label": "gt_test"},
)

#: How messages name such a file.
_FORMAT: Final = "a file of torch"

#: Of arrays in a file of torch: booleans, whole numbers and decimals, by the codes of NumPy.
_NUMBERS: Final = "?bhilqBHILQefd"


def open_json(path: Path) -> DataTable:
    """Open arrays by key, or a list of rows, in one JSON text."""
    check_fits_memory(_OF_NUMBERS * file_size(path), path.name, "its text with all numbers")
    try:
        found = parse_value(read_bytes(path, _MOST_JSON).decode(), finite=False)
    except UnicodeDecodeError:
        _refuse(path, "is no text in UTF-8", _AS_JSON)
    except InputError as error:
        raise FileFormatError(f"{path.name} cannot be read as json: {error}") from None
    if isinstance(found, list):
        return _rows(path, found)
    if not isinstance(found, dict):
        _refuse(path, "holds neither an object nor a list of them", _AS_JSON)
    if found.keys() >= inspect_ai.LOG_FIELDS:
        return inspect_ai.table_of(found, path.name)
    lists = {name: x for name, x in _columns(found).items() if isinstance(x, list)}
    return _table({name: _array(path, name, x) for name, x in lists.items()}, found, path, _AS_JSON)


_AS_JSON: Final = (
    'a .json file holds {"logits": [[...], ...], "labels": [...]}, or a list of one object for '
    "each sample"
)


def _rows(path: Path, rows: list[Any]) -> DataTable:
    """Wrap a list of objects, one for each sample."""
    import polars as pl

    if not rows or not all(isinstance(row, dict) for row in rows):
        _refuse(path, "holds a list of something else than objects", _AS_JSON)
    with library_errors_as_format_errors(path.name, "json"):
        frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    if frame.width == 0:
        _refuse(path, "holds objects without a field", _AS_JSON)
    return from_polars(frame, path.name)


def _columns(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arrays by key, also where pandas wrote the rows of each by their names."""
    held = list(found.values())
    if not held or not all(isinstance(x, dict) and x.keys() == held[0].keys() for x in held):
        return found
    return {name: list(x.values()) for name, x in found.items()}


def open_torch(path: Path) -> DataTable:
    """Open a dictionary of tensors that `torch.save` wrote."""
    _refuse_strange(path)
    if not is_installed("torch"):
        raise MissingInputError(f"{path.name} is read with torch: pip install 'abstain[torch]'")
    found = _loaded(path)
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        _refuse(path, "holds no arrays by name", _AS_TORCH)
    arrays = {name: _entry(path, name, x) for name, x in found.items() if _is_several(x)}
    return _table(arrays, found, path, _AS_TORCH)


_AS_TORCH: Final = 'save the outputs with torch.save({"logits": ..., "labels": ...}, file)'


def _table(
    arrays: Mapping[str, Array], found: Mapping[str, Any], path: Path, form: str
) -> DataTable:
    """Wrap the arrays; of a file with a known layout those of its length."""
    if not arrays:
        _refuse(path, "holds no arrays by name", form)
    known = next((k for k in _KNOWN if all(name in arrays for name in k.values())), {})
    kept = arrays
    if known:
        length = arrays[known["logits"]].shape[:1]
        kept = {name: x for name, x in arrays.items() if x.shape[:1] == length}
    left = [name for name in found if name not in kept]
    notes = (Note(READING, f"keys not read: {', '.join(left[:12])}"),) if left else ()
    return replace(from_arrays(kept, path.name), meant=dict(known), notes=notes)


def _array(path: Path, name: str, values: list[Any]) -> Array:
    try:
        out = np.asarray(values)
    except ValueError:
        _refuse(path, f"has rows of different lengths under {name!r}", _AS_JSON)
    return out


# ------------------------------------------------------------------------------------ torch
def _refuse_strange(path: Path) -> None:
    """Refuse what `torch.save` has not written since 2020, and what is longer than it says."""
    with library_errors_as_format_errors(path.name, _FORMAT):
        is_archive = zipfile.is_zipfile(path)
    if not is_archive:
        _refuse(path, "is no archive of tensors", _AS_TORCH)
    with library_errors_as_format_errors(path.name, _FORMAT), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    if any(m.compress_type != zipfile.ZIP_STORED or m.flag_bits & 1 for m in members):
        _refuse(path, "is packed in a way that `torch.save` does not write", _AS_TORCH)
    check_fits_memory(sum(m.file_size for m in members), path.name, "its tensors")
    verify_archive(path, _FORMAT)


def _loaded(path: Path) -> Any:
    try:
        with _of_numpy():
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001  a damaged archive raises anything
        what = f"cannot be read as tensors and arrays of numbers alone ({type(error).__name__})"
        _refuse(path, what, _AS_TORCH)


def _of_numpy() -> AbstractContextManager[None]:
    """Let arrays of numbers pass beside tensors: what makes them, and their types, by name."""
    serialization: Any = torch.serialization
    # As old as names for what moved; before, only tensors pass.
    if not hasattr(serialization, "get_unsafe_globals_in_checkpoint"):
        return nullcontext()
    made: Callable[..., Any] = np.zeros(1).__reduce__()[0]  # type: ignore[assignment]
    ways = [(made, f"numpy.{core}.multiarray._reconstruct") for core in ("core", "_core")]
    types = [type(np.dtype(code)) for code in _NUMBERS]
    out: AbstractContextManager[None] = serialization.safe_globals(
        [*ways, np.ndarray, np.dtype, *types]
    )
    return out


def _is_several(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray) or hasattr(value, "is_sparse")


def _entry(path: Path, name: str, value: Any) -> Array:
    """Return a tensor, an array or a list as an array of the host."""
    if isinstance(value, list | tuple):
        return _array(path, name, list(value))
    size = math.prod(value.shape) * value.dtype.itemsize
    check_fits_memory(size, path.name, f"the array {name!r}")
    if isinstance(value, np.ndarray):
        return value
    if value.layout != torch.strided or value.is_quantized:
        _refuse(path, f"holds no plain tensor under {name!r}", _AS_TORCH)
    # NumPy has no bfloat16; float32 holds all of its numbers.
    narrow = value.dtype == torch.bfloat16
    out: Array = (value.float() if narrow else value).detach().numpy()
    return out


def _refuse(path: Path, what: str, form: str) -> NoReturn:
    raise FileFormatError(f"{path.name} {what}; {form}") from None
