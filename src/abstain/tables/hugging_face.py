"""Read Hugging Face data sets from objects or from folders that `save_to_disk` wrote."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from abstain._foundation.input_files import open_regular_file, read_bytes
from abstain._foundation.json_records import parse_object
from abstain.errors import FileFormatError, InputError
from abstain.tables.files import check_columns, polars_errors_as_format_errors
from abstain.tables.table import DataTable, from_frame, from_polars

#: File that lists the files of a data set, and file that lists its splits.
_DATASET_FILE, _SPLITS_FILE = "state.json", "dataset_dict.json"
#: Name of the split column in the result.
SPLIT: Final = "split"


def is_dataset(source: object) -> bool:
    """Return whether an object belongs to the package `datasets`, without importing the package."""
    return type(source).__module__.partition(".")[0] == "datasets"


def tables_by_split(source: Any) -> dict[str, DataTable]:
    """Return the table of each split. The table of a data set without splits is named ""."""
    if isinstance(source, Mapping):
        return {
            str(name): _open_dataset(dataset, f"the split {name!r}")
            for name, dataset in source.items()
        }
    return {"": _open_dataset(source, "the data set")}


def _open_dataset(dataset: Any, source: str) -> DataTable:
    """Convert a data set object to a table."""
    if not hasattr(dataset, "num_rows"):
        raise InputError(
            f"{source} is an iterable data set of unknown length ({type(dataset).__name__}); "
            "convert it to a `Dataset`, for example with `Dataset.from_list(list(dataset))`"
        )
    # Indexing applies the selection and the order of rows that the data set defines.
    table = from_frame(dataset.with_format("arrow")[:], source)
    if table is None:
        raise InputError(
            f"{source} cannot be converted to a table of pyarrow; got {type(dataset).__name__}"
        )
    return table


# ------------------------------------------------------------------------------------ folders
def is_saved(folder: Path) -> bool:
    """Return whether `save_to_disk` wrote the folder."""
    return (folder / _SPLITS_FILE).is_file() or (folder / _DATASET_FILE).is_file()


def saved_tables(folder: Path) -> dict[str, DataTable]:
    """Open the table of each split in a folder, or a single table with the name ""."""
    if not (folder / _SPLITS_FILE).is_file():
        return {"": _open_saved_dataset(folder)}
    names = _read_fields(folder, _SPLITS_FILE).get("splits")
    if not isinstance(names, list) or not names or not all(map(_is_plain_name, names)):
        _raise_format_error(folder, f"{_SPLITS_FILE} must list its splits")
    return {name: _open_saved_dataset(folder / name) for name in names}


def _open_saved_dataset(folder: Path) -> DataTable:
    """Open the Arrow files of one saved data set as one table."""
    import polars as pl

    entries = _read_fields(folder, _DATASET_FILE).get("_data_files")
    entries = entries if isinstance(entries, list) else []
    names = [entry.get("filename") if isinstance(entry, dict) else None for entry in entries]
    if not names or not all(map(_is_plain_name, names)):
        _raise_format_error(folder, f"{_DATASET_FILE} must list its files")
    frames = []
    for name in map(str, names):
        with (
            open_regular_file(folder / name) as file,
            polars_errors_as_format_errors(f"{folder.name}/{name}", "arrow"),
        ):
            frames.append(pl.read_ipc_stream(file))
    with polars_errors_as_format_errors(folder.name, "arrow"):
        frame = pl.concat(frames)
    check_columns(frame.width, folder.name)
    return from_polars(frame, folder.name)


def _is_plain_name(name: object) -> bool:
    """Return whether a file name contains no folder.

    A name with a folder could refer to a file outside the data set.
    """
    return isinstance(name, str) and Path(name).name == name and name not in {"", ".", ".."}


def _read_fields(folder: Path, file: str) -> dict[str, Any]:
    try:
        return parse_object(read_bytes(folder / file).decode())
    except (UnicodeDecodeError, InputError) as error:
        raise FileFormatError(f"{folder.name}/{file} cannot be read: {error}") from None


def _raise_format_error(folder: Path, rule: str) -> NoReturn:
    raise FileFormatError(
        f"{folder.name} is not a data set of Hugging Face written by `save_to_disk`: {rule}"
    )
