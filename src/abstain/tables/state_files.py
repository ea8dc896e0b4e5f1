"""`save` and `load`: rules, calibrations, fitted scores, monitors as files, results as pages."""

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
from abstain.thresholds.rule import KIND, KIND_OF_PARTS
from abstain.typing import Array


class Stored(Protocol):
    """A record that is kept as plain values and arrays, with its kind in the field `kind`."""

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what `from_arrays` of its kind makes it of."""
        ...


#: What `save` takes and `load` gives back.
Saved: TypeAlias = DecisionRule | Calibration | FittedScore | JsonRecord | Stored

#: Of the files of fitted scores; the texts have their own.
_VERSION = 1
#: The entry of an archive that holds what is no array, as JSON.
_PLAIN = "plain.json"
READERS.update(dict.fromkeys((KIND, KIND_OF_PARTS), DecisionRule.from_json))
READERS.update(dict.fromkeys(Calibration.classes_by_kind, calibration_from_json))


def _read_by(home: str, kind: str, readers: dict[str, Callable[..., Any]]) -> None:
    """Let a package that knows this one read a kind: it is loaded when a file has that kind."""

    def read(*parts: Any) -> Any:
        import_module(home)
        return readers[kind](*parts)

    # Where it is loaded already its own reader stands there, as afterwards.
    readers.setdefault(kind, read)


_read_by("abstain.evaluation.calibration", "calibrated_score", READERS)
_read_by("abstain.evaluation.calibration", "calibrated_score", ARCHIVE_READERS)
_read_by("abstain.monitoring.monitor", "monitor", ARCHIVE_READERS)
#: Suffixes of a result: of its page, and of its table.
_PAGES, _TABLES = (".html", ".md", ".tex"), (".parquet", ".csv")
# The writers of pages stand far above: they are loaded when one is written.
_as_said, _written = (
    lazy_function("abstain.report.notebook:as_said"),
    lazy_function("abstain.report.output:write"),
)
#: Class names that JSON gives back as they were.
_NAMES = (str, int, float, bool)


def save(obj: Saved, path: str | Path) -> Path:
    """Write a decision rule, a calibration, a fitted score, a monitor or a result to a file.

    Answers: how do I take this to another process, to another day, or to somebody else?

    Parameters
    ----------
    obj : DecisionRule, Calibration, CalibratedScore, FittedScore, Monitor, or a result
        Rules and calibrations are written as JSON (``.json``), fitted scores and monitors as an
        archive of plain arrays (``.npz``); a calibrated score as that which it calibrates, a name
        or a fitted score. Nothing is pickled. What `evaluate`, `compare`, `check_rule`, a study or
        a benchmark found, a rule and a monitor, is written for people as a page (``.html``,
        ``.md``, ``.tex``), or as the table of its ``rows()`` (``.parquet``, ``.csv``).
    path : str or Path
        Where, with such a suffix; what is there is replaced. The folder must exist.

    Returns
    -------
    Path
        Where it was written.

    Raises
    ------
    InputError
        It cannot be saved, the suffix is another, or the place cannot be written.

    Notes
    -----
    The file appears whole or not at all. Numbers keep full double precision: what is loaded gives
    bit for bit the same results. A fitted score keeps the training features only where it needs
    them ("knn").

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
    path = _path(path)
    if isinstance(obj, NotebookDisplay) and path.suffix in {*_PAGES, *_TABLES}:
        return _leave(obj, path)
    if _holds_arrays(obj):
        _refuse_suffix(path, ".npz", "a fitted score" if hasattr(obj, "score") else "a monitor")
        write_atomically(path, _archive(obj))
        return path
    content = text_file(obj)
    _refuse_suffix(path, ".json", "a rule or a calibration")
    write_atomically(path, content)
    return path


def _leave(result: object, path: Path) -> Path:
    """Write a result for somebody to read."""
    said = _as_said(result)
    if path.suffix in _PAGES:
        return Path(_written(said, path))
    files = result_files(said.rows())
    write_atomically(path, next(x for name, x in files.items() if name.endswith(path.suffix)))
    return path


def text_file(obj: Saved) -> bytes:
    """Return the content of the file in which `save` keeps a rule or a calibration."""
    text = (_text_of(obj).rstrip("\n") + "\n").encode()
    if len(text) > MAX_TEXT_BYTES:
        raise InputError(
            f"its JSON takes more than {MAX_TEXT_BYTES >> 20} MB, which `load` does not read; bin "
            "it first"
        )
    return text


def load(path: str | Path) -> Saved:
    """Read back what `save` wrote.

    Answers: what is in this file, and can it be trusted to be whole?

    Parameters
    ----------
    path : str or Path
        A file of `save`, or the JSON text of a rule or a calibration.

    Returns
    -------
    DecisionRule, Calibration, CalibratedScore, FittedScore or Monitor
        As it was saved. A file cannot run anything: pickles are never read.

    Raises
    ------
    InputError
        There is no such file, or it may not be read.
    FileFormatError
        It is damaged, of a later version, or was changed to what cannot be; the field is named.

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
    path = _path(path)
    with open_regular_file(path) as file:
        start = file.read(4)
    if start == b"PK\x03\x04" or path.suffix == ".npz":
        return _load_archive(path)
    return _load_text(path)


# --------------------------------------------------------------------------------- fitted scores
def _holds_arrays(obj: Any) -> bool:
    """Tell whether it is a fitted score, the calibration of one, or a monitor."""
    if isinstance(obj, FittedScore):
        return True
    return hasattr(obj, "to_arrays") and not isinstance(getattr(obj, "base", None), str)


def _archive(obj: Any) -> bytes:
    plain, arrays = obj.to_arrays()
    _refuse_names(plain)
    text = json.dumps({"version": _VERSION, **plain}, allow_nan=False)
    held = io.BytesIO()
    # As bytes and not as an array of text, which takes four bytes a character.
    entries: dict[str, Any] = {_PLAIN: np.frombuffer(text.encode(), np.uint8), **arrays}
    np.savez(held, **entries)
    return held.getvalue()


def _refuse_names(plain: dict[str, Any]) -> None:
    """Refuse class names that JSON would change."""
    for name in plain.get("classes") or () if isinstance(plain.get("classes"), tuple) else ():
        if not isinstance(name, _NAMES):
            raise InputError(
                f"the class name {name!r} is no text and no number, so a file cannot hold it; name "
                "the classes by text"
            )
    for part in (*plain.get("parts", ()), plain.get("base")):
        if isinstance(part, dict):
            _refuse_names(part)


def _load_archive(path: Path) -> Saved:
    archive = Archive(path)
    plain = _object(path, _text(path, archive))
    arrays = archive.read(name for name in archive if name != _PLAIN)
    try:
        json_records.pop_version(plain, "version", (_VERSION,))
        read: Callable[..., Saved] = ARCHIVE_READERS.get(str(plain.get("kind")), from_arrays)
        return read(plain, arrays)
    except InputError as error:
        _damaged(path, str(error), error)
    except RecursionError:
        _damaged(path, "it is nested too deeply")


def _text(path: Path, archive: Archive) -> str:
    claimed = archive.headers.get(_PLAIN)
    if claimed is None or claimed.dtype != np.uint8 or len(claimed.shape) != 1:
        _damaged(path, f"there is no entry {_PLAIN!r}, so it is no fitted score; use `save`")
    if claimed.n_bytes > MAX_TEXT_BYTES:
        _damaged(path, f"the entry {_PLAIN!r} is larger than {MAX_TEXT_BYTES >> 20} MB")
    return _decoded(path, archive[_PLAIN].tobytes())


# --------------------------------------------------------------------------------- texts
def _load_text(path: Path) -> Saved:
    text = _decoded(path, read_bytes(path))
    found = _object(path, text)
    try:
        return READERS[json_records.pop_kind(found, READERS)](text)
    except (InputError, FileFormatError) as error:
        _damaged(path, str(error), error)


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        _damaged(path, "it is neither JSON text nor an archive of arrays")


def _object(path: Path, text: str) -> dict[str, Any]:
    """Return the fields of a JSON object."""
    try:
        return json_records.parse_object(text)
    except InputError as error:
        _damaged(path, str(error), error)


def _damaged(path: Path, why: str, cause: BaseException | None = None) -> NoReturn:
    raise FileFormatError(f"{path.name} cannot be loaded: {why}") from cause


def _path(given: object) -> Path:
    if not isinstance(given, str | PathLike):
        raise InputError(f"`path` must be a text or a Path; got {type(given).__name__}")
    return Path(given)


def _refuse_suffix(path: Path, suffix: str, what: str) -> None:
    if path.suffix != suffix:
        raise InputError(f"`path` must end in {suffix!r} for {what}; got {path.name!r}")


def _text_of(obj: object) -> str:
    """Return the JSON text of a record whose kind can be read back."""
    write = getattr(obj, "to_json", None)
    if callable(write):
        text = str(write())
        if json.loads(text).get("kind") in READERS:
            return text
    hint = "; save its `.state`" if isinstance(getattr(obj, "state", None), FittedScore) else ""
    if isinstance(obj, NotebookDisplay):
        hint = f"; a result goes to a file that ends in {', '.join((*_PAGES, *_TABLES))}"
    what = f"{type(obj).__name__}{hint}"
    raise InputError(f"decision rules, calibrations and fitted scores can be saved; got {what}")
