"""The columns of a file, without its rows."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from abstain._foundation.archives import Archive
from abstain._foundation.input_files import open_regular_file
from abstain.errors import FileFormatError, suggest
from abstain.tables._lines import read_header
from abstain.tables.files import plain_words
from abstain.tables.table import kind_of, leaf_columns

if TYPE_CHECKING:
    import polars as pl


def kinds_of(path: Path) -> Mapping[str, str]:
    """Return the columns of a file with what each holds, in words; none where only rows tell.

    What a column of a CSV file holds is told by its rows too, so there the words are empty, as for
    a column that some program wrote without a type since it holds nothing.
    """
    look = _LOOKS.get(path.suffix.lower())
    return {} if look is None else look(path)


def refuse_other(path: Path, names: Iterable[str], first: Path, kinds: Mapping[str, str]) -> None:
    """Refuse a file that lacks a column that is read, or has text where the first has numbers."""
    own = kinds if path == first else kinds_of(path)
    for name in names:
        if own and name not in own:
            raise FileFormatError(
                f"{path.name} has no column {name!r}, which is read of {first.name}."
                f"{suggest(name, own)} Its columns: {', '.join(list(own)[:30])}"
            )
        here, there = own.get(name, ""), kinds.get(name, "")
        if here and there and here != there:
            raise FileFormatError(
                f"{path.name} has {here} in the column {name!r}, and {first.name} has {there}: "
                "write both alike"
            )


def _of_csv(path: Path) -> dict[str, str]:
    return dict.fromkeys(read_header(path)[0], "")


def _of_parquet(path: Path) -> dict[str, str]:
    import polars as pl

    with open_regular_file(path), plain_words(path.name, "parquet"):
        schema = pl.scan_parquet(path, glob=False, hive_partitioning=False).collect_schema()
    return _worded(schema)


def _of_ipc(path: Path) -> dict[str, str]:
    import polars as pl

    with open_regular_file(path) as file:
        if file.read(6) != b"ARROW1":
            return {}
    with plain_words(path.name, "an Arrow file"):
        schema = pl.scan_ipc(path, glob=False).collect_schema()
    return _worded(schema)


def _worded(schema: "pl.Schema") -> dict[str, str]:
    return {
        name: "" if str(leaf.dtype) == "Null" else _WORDS[kind_of(leaf.dtype)]
        for name, leaf in leaf_columns(schema).items()
    }


def _of_npz(path: Path) -> dict[str, str]:
    return {
        name: "numbers" if header.dtype.kind in "biuf" else "text"
        for name, header in Archive(path).headers.items()
    }


_WORDS = {"number": "numbers", "text": "text", "block": "lists of numbers", "other": "other values"}

_LOOKS: dict[str, Callable[[Path], Mapping[str, str]]] = {
    ".csv": _of_csv,
    ".tsv": _of_csv,
    ".parquet": _of_parquet,
    ".feather": _of_ipc,
    ".arrow": _of_ipc,
    ".ipc": _of_ipc,
    ".npz": _of_npz,
}
