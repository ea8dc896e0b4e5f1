"""Functions that save rules, calibrations, fitted scores and monitors to files, and load them."""

import io
import json
from collections.abc import Callable
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np

from abstain._foundation import json_records
from abstain._foundation.archives import Archive
from abstain._foundation.files import write_atomically
from abstain._foundation.frames import NotebookDisplay
from abstain._foundation.input_files import MAX_TEXT_BYTES, open_regular_file, read_bytes
from abstain._foundation.json_records import ARCHIVE_READERS, READERS, JsonRecord
from abstain._foundation.lazy_imports import lazy_function
from abstain.calibration import Calibration
from abstain.calibration import from_json as calibration_from_json
from abstain.confidence import FittedScore, from_arrays
from abstain.errors import FileFormatError, InputError
from abstain.tables.results import result_files
from abstain.thresholds import DecisionRule
from abstain.thresholds.json_format import KIND, KIND_WITH_PARTS
from abstain.typing import Array


class Stored(Protocol):
    """An object that is saved as JSON fields and arrays. Its field `kind` selects the reader."""

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the JSON fields and the arrays of the object.

        The reader for the kind of the object accepts both.
        """
        ...


#: Objects that `save` writes to a file and `load` reads.
Saved: TypeAlias = DecisionRule | Calibration | FittedScore | JsonRecord | Stored

#: Version of archives. JSON files have their own versions.
_VERSION = 1
#: Name of the entry of an archive that contains the JSON fields.
_JSON_ENTRY = "plain.json"
READERS.update(dict.fromkeys((KIND, KIND_WITH_PARTS), DecisionRule.from_json))
READERS.update(dict.fromkeys(Calibration.classes_by_kind, calibration_from_json))


def _register_reader(module: str, kind: str, readers: dict[str, Callable[..., Any]]) -> None:
    """Register a reader for one kind of object. Its module is imported when such a file is read.

    On import, the module registers its own reader for this kind.
    """

    def read(*contents: Any) -> Any:
        import_module(module)
        return readers[kind](*contents)

    readers.setdefault(kind, read)


_register_reader("abstain.evaluation.calibration", "calibrated_score", READERS)
_register_reader("abstain.evaluation.calibration", "calibrated_score", ARCHIVE_READERS)
_register_reader("abstain.monitoring.monitor", "monitor", ARCHIVE_READERS)
#: Suffixes of files with a report and with the table of a result.
_PAGE_SUFFIXES, _TABLE_SUFFIXES = (".html", ".md", ".tex"), (".parquet", ".csv")
# The report is in a higher layer, so its module is imported when a report is written.
_with_empty_checks = lazy_function("abstain.report.output:with_empty_checks")
_write_report = lazy_function("abstain.report.output:write")
#: Types of class names that JSON stores unchanged.
_CLASS_NAME_TYPES = (str, int, float, bool)


def save(obj: Saved, path: str | Path) -> Path:
    """Write a decision rule, a calibration, a fitted score, a monitor or a result to a file.

    Another process can load the object from the file.

    Parameters
    ----------
    obj : DecisionRule, Calibration, CalibratedScore, FittedScore, Monitor, or a result
        Object to save. Rules, calibrations and calibrated scores that have a name in `SCORES` are
        written as JSON (``.json``). Fitted scores, calibrated fitted scores and monitors are
        written as an archive of arrays (``.npz``). Nothing is pickled. Rules, monitors and results
        of `evaluate`, `compare`, `check_rule`, a study or a benchmark can be written as a report
        (``.html``, ``.md``, ``.tex``) or as the table of their ``rows()`` (``.parquet``, ``.csv``).
    path : str or Path
        Path with one of these suffixes. An existing file is replaced. The folder must exist.

    Returns
    -------
    Path
        Path of the written file.

    Raises
    ------
    InputError
        If the object cannot be saved, if the suffix does not match the object, or if the file
        cannot be written.

    Notes ----- The function writes the file under a temporary name and then renames it, so the
    folder never contains an incomplete file. Numbers keep full double precision, so a loaded object
    returns exactly the same results. The training features are stored only for the score "knn",
    which needs them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import abstain as ab
    >>> from abstain.confidence import fit
    >>> train = ab.Predictions(features=[[0.0], [1.0]], prediction=[0, 1], labels=[0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save(fit("knn", train, k=1), Path(folder) / "knn.npz")
    ...     load(path).k
    1
    """
    path = _to_path(path)
    if isinstance(obj, NotebookDisplay) and path.suffix in {*_PAGE_SUFFIXES, *_TABLE_SUFFIXES}:
        return _save_result(obj, path)
    if _has_arrays(obj):
        _check_suffix(path, ".npz", "a fitted score" if hasattr(obj, "score") else "a monitor")
        write_atomically(path, _to_archive(obj))
        return path
    content = json_file(obj)
    _check_suffix(path, ".json", "a rule or a calibration")
    write_atomically(path, content)
    return path


def _save_result(result: object, path: Path) -> Path:
    """Write the report or the table of a result."""
    formatted = _with_empty_checks(result)
    if path.suffix in _PAGE_SUFFIXES:
        return Path(_write_report(formatted, path))
    files = result_files(formatted.rows())
    write_atomically(path, next(files[name] for name in files if name.endswith(path.suffix)))
    return path


def json_file(obj: Saved) -> bytes:
    """Return the JSON file of a rule or a calibration as bytes."""
    text = (_to_json(obj).rstrip("\n") + "\n").encode()
    if len(text) > MAX_TEXT_BYTES:
        raise InputError(
            f"the JSON file would exceed {MAX_TEXT_BYTES >> 20} MB, the limit of `load`; bin "
            "the calibration first"
        )
    return text


def load(path: str | Path) -> Saved:
    """Load an object from a file that `save` wrote.

    Parameters
    ----------
    path : str or Path
        File that `save` wrote, or a file with the JSON text of a rule or a calibration.

    Returns
    -------
    DecisionRule, Calibration, CalibratedScore, FittedScore or Monitor
        The saved object. Loading never executes code from the file, because pickles are not read.

    Raises
    ------
    InputError
        If the file does not exist or cannot be read.
    FileFormatError
        If the file is damaged, has a later version or contains an invalid field. The message names
        the field.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain.calibration import fit_platt
    >>> state = fit_platt([0.1, 0.3, 0.7, 0.9], [1, 0, 1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load(save(state, Path(folder) / "platt.json")) == state
    True
    """
    path = _to_path(path)
    with open_regular_file(path) as file:
        start = file.read(4)
    if start == b"PK\x03\x04" or path.suffix == ".npz":
        return _load_archive(path)
    return _load_json(path)


# --------------------------------------------------------------------------------- fitted scores
def _has_arrays(obj: Any) -> bool:
    """Return whether an object is a fitted score, a calibrated fitted score or a monitor."""
    if isinstance(obj, FittedScore):
        return True
    return hasattr(obj, "to_arrays") and not isinstance(getattr(obj, "base", None), str)


def _to_archive(obj: Any) -> bytes:
    """Return the archive that contains the fields and arrays of an object, as bytes."""
    fields, arrays = obj.to_arrays()
    _check_class_names(fields)
    text = json.dumps({"version": _VERSION, **fields}, allow_nan=False)
    archive = io.BytesIO()
    # The text is stored as bytes, because an array of text takes four bytes per character.
    entries: dict[str, Any] = {_JSON_ENTRY: np.frombuffer(text.encode(), np.uint8), **arrays}
    np.savez(archive, **entries)
    return archive.getvalue()


def _check_class_names(fields: dict[str, Any]) -> None:
    """Raise an error if a class name has a type that JSON cannot represent."""
    classes = fields.get("classes")
    for name in classes if isinstance(classes, tuple) else ():
        if not isinstance(name, _CLASS_NAME_TYPES):
            raise InputError(
                f"the class name {name!r} is neither text nor a number, so it cannot be saved; "
                "convert the class names to text"
            )
    for nested in (*fields.get("parts", ()), fields.get("base")):
        if isinstance(nested, dict):
            _check_class_names(nested)


def _load_archive(path: Path) -> Saved:
    """Load a fitted score, a calibrated fitted score or a monitor from an archive."""
    archive = Archive(path)
    fields = _parse_object(path, _read_json_entry(path, archive))
    arrays = archive.read(name for name in archive if name != _JSON_ENTRY)
    try:
        json_records.pop_version(fields, "version", (_VERSION,))
        read: Callable[..., Saved] = ARCHIVE_READERS.get(str(fields.get("kind")), from_arrays)
        return read(fields, arrays)
    except InputError as error:
        _raise_format_error(path, str(error), error)
    except RecursionError:
        _raise_format_error(path, "it is nested too deeply")


def _read_json_entry(path: Path, archive: Archive) -> str:
    """Return the JSON text in an archive."""
    header = archive.headers.get(_JSON_ENTRY)
    if header is None or header.dtype != np.uint8 or len(header.shape) != 1:
        _raise_format_error(
            path, f"it has no entry {_JSON_ENTRY!r}, so it was not written by `save`"
        )
    if header.n_bytes > MAX_TEXT_BYTES:
        _raise_format_error(path, f"the entry {_JSON_ENTRY!r} exceeds {MAX_TEXT_BYTES >> 20} MB")
    return _decode(path, archive[_JSON_ENTRY].tobytes())


# --------------------------------------------------------------------------------- JSON
def _load_json(path: Path) -> Saved:
    text = _decode(path, read_bytes(path))
    fields = _parse_object(path, text)
    try:
        return READERS[json_records.pop_kind(fields, READERS)](text)
    except (InputError, FileFormatError) as error:
        _raise_format_error(path, str(error), error)


def _decode(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        _raise_format_error(path, "it is neither JSON text nor an archive of arrays")


def _parse_object(path: Path, text: str) -> dict[str, Any]:
    """Return the fields of a JSON object. Invalid JSON raises a FileFormatError."""
    try:
        return json_records.parse_object(text)
    except InputError as error:
        _raise_format_error(path, str(error), error)


def _raise_format_error(path: Path, reason: str, cause: BaseException | None = None) -> NoReturn:
    raise FileFormatError(f"{path.name} cannot be loaded: {reason}") from cause


def _to_path(path: object) -> Path:
    if not isinstance(path, str | PathLike):
        raise InputError(f"`path` must be a text or a Path; got {type(path).__name__}")
    return Path(path)


def _check_suffix(path: Path, suffix: str, description: str) -> None:
    if path.suffix != suffix:
        raise InputError(f"`path` must end in {suffix!r} for {description}; got {path.name!r}")


def _to_json(obj: object) -> str:
    """Return the JSON text of an object that `load` can read."""
    to_json = getattr(obj, "to_json", None)
    if callable(to_json):
        text = str(to_json())
        if json.loads(text).get("kind") in READERS:
            return text
    if isinstance(obj, NotebookDisplay):
        suffixes = ", ".join((*_PAGE_SUFFIXES, *_TABLE_SUFFIXES))
        hint = f"; a result is saved to a file with the suffix {suffixes}"
    elif isinstance(getattr(obj, "state", None), FittedScore):
        hint = "; save its `.state`"
    else:
        hint = ""
    raise InputError(
        "decision rules, calibrations and fitted scores can be saved; "
        f"got {type(obj).__name__}{hint}"
    )
