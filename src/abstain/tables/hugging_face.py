"""Data sets of Hugging Face: as objects, and in the folders that `save_to_disk` writes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from abstain._foundation.input_files import open_regular_file, read_bytes
from abstain._foundation.json_records import parse_object
from abstain.errors import FileFormatError, InputError
from abstain.tables.files import plain_words, refuse_columnless
from abstain.tables.table import DataTable, from_frame, from_polars

#: What the folder of one data set lists its files in, and that of several its splits.
_ONE, _SEVERAL = "state.json", "dataset_dict.json"
#: The column that the splits of a data set become.
SPLIT: Final = "split"


def is_dataset(source: object) -> bool:
    """Tell an object of `datasets`, without loading that package."""
    return type(source).__module__.partition(".")[0] == "datasets"


def tables_of(source: Any) -> dict[str, DataTable]:
    """Return the tables of a data set by split; one without splits is named ""."""
    if isinstance(source, Mapping):
        return {str(name): _table(one, f"the split {name!r}") for name, one in source.items()}
    return {"": _table(source, "the data set")}


def _table(dataset: Any, source: str) -> DataTable:
    if not hasattr(dataset, "num_rows"):
        raise InputError(
            f"{source} is read row by row ({type(dataset).__name__}), so that nothing knows its "
            "length; make it a `Dataset`, such as with `Dataset.from_list(list(dataset))`"
        )
    # As rows are asked for, so that a selection or an order of them holds.
    table = from_frame(dataset.with_format("arrow")[:], source)
    if table is None:
        raise InputError(
            f"{source} cannot be had as a table of pyarrow; got {type(dataset).__name__}"
        )
    return table


# ------------------------------------------------------------------------------------ folders
def is_saved(folder: Path) -> bool:
    """Tell whether `save_to_disk` wrote a folder."""
    return (folder / _SEVERAL).is_file() or (folder / _ONE).is_file()


def saved_tables(folder: Path) -> dict[str, DataTable]:
    """Open the tables of a folder by split; those of one without splits are named ""."""
    if not (folder / _SEVERAL).is_file():
        return {"": _saved(folder)}
    names = _listed(folder, _SEVERAL, "splits")
    return {name: _saved(folder / name) for name in names}


def _saved(folder: Path) -> DataTable:
    import polars as pl

    files = [one.get("filename") if isinstance(one, dict) else None for one in _entries(folder)]
    if not files or not all(_is_name(file) for file in files):
        _refuse(folder, _ONE, "lists no files in it")
    frames = []
    for name in map(str, files):
        with (
            open_regular_file(folder / name) as file,
            plain_words(f"{folder.name}/{name}", "arrow"),
        ):
            frames.append(pl.read_ipc_stream(file))
    with plain_words(folder.name, "arrow"):
        frame = pl.concat(frames)
    refuse_columnless(frame.width, folder.name)
    return from_polars(frame, folder.name)


def _entries(folder: Path) -> list[Any]:
    found = _fields(folder, _ONE).get("_data_files")
    return found if isinstance(found, list) else []


def _listed(folder: Path, file: str, field: str) -> list[str]:
    found = _fields(folder, file).get(field)
    if not isinstance(found, list) or not found or not all(_is_name(name) for name in found):
        _refuse(folder, file, "lists no splits in it")
    return found


def _is_name(name: object) -> bool:
    """Tell a name in the folder from a way out of it."""
    return isinstance(name, str) and Path(name).name == name and name not in {"", ".", ".."}


def _fields(folder: Path, file: str) -> dict[str, Any]:
    try:
        return parse_object(read_bytes(folder / file).decode())
    except (UnicodeDecodeError, InputError) as error:
        raise FileFormatError(f"{folder.name}/{file} cannot be read: {error}") from None


def _refuse(folder: Path, file: str, what: str) -> NoReturn:
    raise FileFormatError(
        f"{folder.name} is no data set of Hugging Face as `save_to_disk` writes it: {file} {what}"
    )
