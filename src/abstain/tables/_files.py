"""Files to tables: one opener for each suffix, and plain words when a file is not what it says."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from abstain.errors import FileFormatError, InputError, suggest
from abstain.tables._column import Column, from_series
from abstain.tables._damage import plain_words, readable
from abstain.tables._table import (
    Table,
    from_arrays,
    from_polars,
    from_scan,
    refuse_repeated,
    refuse_rowless,
)

SUFFIXES = (
    ".csv",
    ".tsv",
    ".parquet",
    ".feather",
    ".arrow",
    ".ipc",
    ".jsonl",
    ".ndjson",
    ".npz",
)

#: What an archive of pickles would need, and why it is refused.
_PICKLED = (
    "{source} holds Python objects (pickles) under {key!r}, which are never loaded because "
    "loading them can run any code; save plain arrays of numbers or text instead"
)


def open_table(path: Path) -> Table:
    """Open one file by its suffix."""
    source = path.name
    refuse_absent(path)
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        raise FileFormatError(_suffix_refusal(path))
    if path.stat().st_size == 0:
        msg = f"{source} is empty (0 bytes)"
        raise FileFormatError(msg)
    with readable(source):
        return opener(path)


def refuse_absent(path: Path) -> None:
    """Refuse a path that does not exist, and name its nearest neighbor."""
    if path.exists():
        return
    folder = path.parent
    if not folder.is_dir():
        msg = f"there is no file {str(path)!r}: the folder {str(folder)!r} does not exist"
        raise InputError(msg)
    beside = sorted(p.name for p in folder.iterdir())
    near = suggest(path.name, beside)
    msg = f"there is no file {str(path)!r}.{near}"
    raise InputError(msg)


def _suffix_refusal(path: Path) -> str:
    if path.suffix.lower() in {".pkl", ".pickle", ".pt", ".pth", ".npy", ".joblib"}:
        hint = " Save the arrays with `numpy.savez(file, labels=..., logits=...)` and read that."
    elif path.suffix.lower() in {".gz", ".zip", ".xz", ".zst", ".bz2"}:
        hint = " Unpack it first."
    elif path.suffix.lower() in {".xlsx", ".xls", ".ods"}:
        hint = " Export the sheet as CSV."
    else:
        hint = ""
    return (
        f"{path.name} ends in {path.suffix!r}, which is no format that abstain reads; "
        f"it reads {', '.join(SUFFIXES)} and folders of FD-Shifts results.{hint}"
    )


# ------------------------------------------------------------------------------------ text
def _open_csv(path: Path) -> Table:
    import polars as pl

    separator, note = _header(path)
    with plain_words(path.name, _format(path)):
        frame = pl.read_csv(path, separator=separator, infer_schema_length=None, glob=False)
    # A blank last line is not a sample.
    filled = ~pl.all_horizontal(pl.all().is_null())
    blank = not frame.select(filled.all()).item()

    def as_written(name: str) -> Column:
        with plain_words(path.name, _format(path)):
            raw = pl.read_csv(
                path, columns=[name], separator=separator, infer_schema=False, glob=False
            )
        return from_series((raw.filter(filled) if blank else raw)[name])

    table = from_polars(frame.filter(filled) if blank else frame, path.name, typeless=True)
    return replace(table, notes=(note,) if note else (), as_written=as_written)


def _header(path: Path) -> tuple[str, str]:
    """Return the separator of a text file and what is to say about it; check its first line."""
    tabs = path.suffix.lower() == ".tsv"
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            first = next((line for line in file if line.strip()), "")
        except UnicodeDecodeError as error:
            raise FileFormatError(_not_utf8(path, error)) from error
    if "\x00" in first:
        msg = f"{path.name} is not a text file, though it ends in {path.suffix!r}"
        raise FileFormatError(msg)
    separator, note = "\t" if tabs else ",", ""
    if not tabs and "," not in first:
        for other, word in ((";", "semicolons"), ("\t", "tabs")):
            if other in first:
                separator, note = other, f"the columns of {path.name} are separated by {word}"
                break
    refuse_repeated(next(csv.reader([first], delimiter=separator), []), path.name)
    return separator, note


def _format(path: Path) -> str:
    return path.suffix.lower().lstrip(".")


def _not_utf8(path: Path, error: UnicodeDecodeError) -> str:
    return f"{path.name} is not text in UTF-8 (byte {error.start}); save it with the encoding UTF-8"


def _open_jsonl(path: Path) -> Table:
    import polars as pl

    try:
        frame = pl.read_ndjson(path, infer_schema_length=None)
    except pl.exceptions.PolarsError:
        # Python writes NaN, which strict JSON lacks; the slow reader also finds the bad line.
        rows = _json_rows(path)
        with plain_words(path.name, _format(path)):
            frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    return from_polars(frame, path.name)


def _json_rows(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(_not_utf8(path, error)) from error
    rows = []
    # JSON may hold U+2028 and its like inside a text, where splitlines() would cut.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            msg = f"{path.name}: line {number} is not JSON ({error.msg})"
            raise FileFormatError(msg) from error
        if not isinstance(row, dict):
            msg = f"{path.name}: line {number} is not a JSON object such as {{'label': 1}}"
            raise FileFormatError(msg)
        rows.append(row)
    return rows


# ------------------------------------------------------------------------------------ binary
def _open_parquet(path: Path) -> Table:
    import polars as pl

    with plain_words(path.name, "parquet"):
        scan = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        schema = scan.collect_schema()
        height = scan.select(pl.len()).collect().item()
    refuse_columnless(len(schema), path.name)

    def read(names: tuple[str, ...]) -> pl.DataFrame:
        with plain_words(path.name, "parquet"):
            return scan.select(names).collect()

    return from_scan(schema, int(height), read, path.name)


def refuse_columnless(count: int, source: str) -> None:
    """Refuse a file without columns."""
    if count == 0:
        msg = f"{source} has no columns"
        raise FileFormatError(msg)


def _open_ipc(path: Path) -> Table:
    import polars as pl

    # Two layouts share the suffix .arrow; only the one for files starts with its name. The file
    # is opened anew, as polars reads on from where the descriptor is.
    with path.open("rb") as file:
        magic = file.read(6)
    with path.open("rb") as file, plain_words(path.name, _format(path)):
        frame = pl.read_ipc(file) if magic == b"ARROW1" else pl.read_ipc_stream(file)
    refuse_columnless(frame.width, path.name)
    return from_polars(frame, path.name)


def load_archive(path: Path) -> dict[str, Any]:
    """Read all arrays of an .npz file, refusing pickles."""
    arrays: dict[str, Any] = {}
    with readable(path.name), path.open("rb") as file:
        _refuse_no_archive(file, path.name)
        with plain_words(path.name, "npz"):
            archive = np.load(file, allow_pickle=False)
        with archive:
            for key in archive.files:
                arrays[key] = _entry(archive, key, path.name)
    return arrays


def _entry(archive: Any, key: str, source: str) -> Any:
    try:
        with plain_words(source, "npz"):
            value = archive[key]
    except FileFormatError as error:
        if "pickle" in str(error.__cause__):
            raise FileFormatError(_PICKLED.format(source=source, key=key)) from error
        raise
    if not isinstance(value, np.ndarray):
        msg = f"{source} holds under {key!r} something that is no array"
        raise FileFormatError(msg)
    return value


def _refuse_no_archive(file: IO[bytes], source: str) -> None:
    start = file.read(4)
    file.seek(0)
    if start != b"PK\x03\x04":
        what = "a pickle" if start[:1] == b"\x80" else "no archive of arrays"
        msg = f"{source} is {what}, though it ends in '.npz'; write it with `numpy.savez`"
        raise FileFormatError(msg)


def _open_npz(path: Path) -> Table:
    arrays = load_archive(path)
    if not arrays:
        msg = f"{path.name} holds no arrays"
        raise FileFormatError(msg)
    refuse_rowless(max((a.shape[0] for a in arrays.values() if a.ndim), default=0), path.name)
    return from_arrays(arrays, path.name)


_OPENERS: dict[str, Callable[[Path], Table]] = {
    ".csv": _open_csv,
    ".tsv": _open_csv,
    ".parquet": _open_parquet,
    ".feather": _open_ipc,
    ".arrow": _open_ipc,
    ".ipc": _open_ipc,
    ".jsonl": _open_jsonl,
    ".ndjson": _open_jsonl,
    ".npz": _open_npz,
}
