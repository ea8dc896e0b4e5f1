"""The columns of a file, without its rows."""

from collections.abc import Callable, Mapping
from pathlib import Path

from abstain._foundation.archives import Archive
from abstain._foundation.input_files import opened
from abstain.tables._lines import read_header
from abstain.tables.files import plain_words
from abstain.tables.table import kind_of


def kinds_of(path: Path) -> Mapping[str, str]:
    """Return the columns of a file with what each holds, in words; none where only rows tell.

    What a column of a CSV file holds is told by its rows too, so there the words are empty.
    """
    look = _LOOKS.get(path.suffix.lower())
    return {} if look is None else look(path)


def _of_csv(path: Path) -> dict[str, str]:
    return dict.fromkeys(read_header(path)[0], "")


def _of_parquet(path: Path) -> dict[str, str]:
    import polars as pl

    with opened(path), plain_words(path.name, "parquet"):
        schema = pl.read_parquet_schema(path)
    return {name: _WORDS[kind_of(dtype)] for name, dtype in schema.items()}


def _of_ipc(path: Path) -> dict[str, str]:
    import polars as pl

    with opened(path) as file:
        if file.read(6) != b"ARROW1":
            return {}
    with plain_words(path.name, "an Arrow file"):
        schema = pl.read_ipc_schema(path)
    return {name: _WORDS[kind_of(dtype)] for name, dtype in schema.items()}


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
