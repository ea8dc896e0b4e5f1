"""Which files in a folder are ours though no receipt names them: earlier versions left none."""

import json
from pathlib import Path
from typing import Final

from abstain._foundation.publishing import RECEIPT, hash_of
from abstain.errors import AbstainError

#: The list that studies left before there were receipts: tables and figures, with their hashes.
LIST: Final = ".abstain-files.json"

#: What every page says of itself, in its first lines.
_MARK: Final = b'<meta name="generator" content="abstain '
_HEAD: Final = 2000


def earlier_set(folder: Path) -> dict[str, str]:
    """Return the files that an earlier version left here, with their hashes.

    A page is recognized by its mark, and only beside such a page are the others: the tables and
    figures of a study's list, and `results.csv` where it is what `results.parquet` is as text.
    """
    if (folder / RECEIPT).exists():
        return {}
    pages = [name for name in ("report.html", "benchmark.html") if _is_page(folder / name)]
    if not pages:
        return {}
    known = _listed(folder) | dict.fromkeys(_tables(folder) + pages, "")
    return {name: key or hash_of(folder / name) for name, key in known.items()}


def forget_list(folder: Path) -> None:
    """Take the list of an earlier version away, once a receipt says more."""
    if _listed(folder):
        (folder / LIST).unlink(missing_ok=True)


def _is_page(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _MARK in file.read(_HEAD)


def _listed(folder: Path) -> dict[str, str]:
    try:
        found = json.loads((folder / LIST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {n: str(key) for n, key in found.items()} if isinstance(found, dict) else {}


def _tables(folder: Path) -> list[str]:
    """Return the names of the main tables where one was surely written from the other."""
    import polars as pl

    from abstain.tables.results import result_files

    names = ["results.parquet", "results.csv"]
    if not all((folder / name).is_file() for name in names):
        return []
    try:
        rows = pl.read_parquet(folder / names[0], glob=False, hive_partitioning=False)
        same = result_files(rows)[names[1]] == (folder / names[1]).read_bytes()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, AbstainError):
        # Damaged, or of another writer.
        return []
    return names if same else []
