"""Read the columns of a file without its rows, and compare the columns of files."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from abstain._foundation.archives import Archive
from abstain._foundation.input_files import open_regular_file
from abstain.errors import FileFormatError, suggest
from abstain.tables._lines import read_header
from abstain.tables.files import polars_errors_as_format_errors
from abstain.tables.table import kind_of_dtype, leaf_columns

if TYPE_CHECKING:
    import polars as pl


def column_kinds(path: Path) -> Mapping[str, str]:
    """Return the columns of a file with a description of their contents ("numbers", "text").

    Descriptions are empty if the contents cannot be known without reading rows: in CSV files and
    in columns of type null. The mapping is empty if the format has no list of columns.
    """
    read_schema = _SCHEMA_READERS.get(path.suffix.lower())
    return {} if read_schema is None else read_schema(path)


def check_same_columns(
    path: Path, names: Iterable[str], reference: Path, reference_kinds: Mapping[str, str]
) -> None:
    """Raise an error if selected columns are missing or differ from those of a reference file."""
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


def _csv_kinds(path: Path) -> dict[str, str]:
    return dict.fromkeys(read_header(path)[0], "")


def _parquet_kinds(path: Path) -> dict[str, str]:
    import polars as pl

    with open_regular_file(path), polars_errors_as_format_errors(path.name, "parquet"):
        schema = pl.scan_parquet(path, glob=False, hive_partitioning=False).collect_schema()
    return _describe_schema(schema)


def _ipc_kinds(path: Path) -> dict[str, str]:
    import polars as pl

    with open_regular_file(path) as file:
        if file.read(6) != b"ARROW1":
            return {}
    with polars_errors_as_format_errors(path.name, "an Arrow file"):
        schema = pl.scan_ipc(path, glob=False).collect_schema()
    return _describe_schema(schema)


def _describe_schema(schema: "pl.Schema") -> dict[str, str]:
    return {
        name: "" if str(leaf.dtype) == "Null" else _KIND_LABELS[kind_of_dtype(leaf.dtype)]
        for name, leaf in leaf_columns(schema).items()
    }


def _npz_kinds(path: Path) -> dict[str, str]:
    return {
        name: "numbers" if header.dtype.kind in "biuf" else "text"
        for name, header in Archive(path).headers.items()
    }


_KIND_LABELS = {
    "number": "numbers",
    "text": "text",
    "block": "lists of numbers",
    "other": "other values",
}

_SCHEMA_READERS: dict[str, Callable[[Path], Mapping[str, str]]] = {
    ".csv": _csv_kinds,
    ".tsv": _csv_kinds,
    ".parquet": _parquet_kinds,
    ".feather": _ipc_kinds,
    ".arrow": _ipc_kinds,
    ".ipc": _ipc_kinds,
    ".npz": _npz_kinds,
}
