"""The tables of WILDS as text columns: every cell there, every number a number."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from abstain.errors import FileFormatError
from abstain.typing import IntArray


def read_table(
    path: Path, columns: Sequence[str], *, optional: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Read columns of a CSV file as text; refuse cells that are missing.

    Of the optional columns those are left out that the file lacks, or lacks a cell of.
    """
    import polars as pl

    try:
        # Text throughout: the patient "004" is no number.
        frame = pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        words = " ".join(str(error).split())[:120]
        msg = f"{path.name} is no CSV file, or is cut off (half extracted?): {words}"
        raise FileFormatError(msg) from None
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        msg = (
            f"{path.name} lacks the column {missing[0]!r}; it has "
            f"{', '.join(map(repr, frame.columns[:12]))}. Take the version that the reader names"
        )
        raise FileFormatError(msg)
    if columns and not len(frame):
        msg = f"{path.name} has no rows (half extracted?)"
        raise FileFormatError(msg)
    for name in columns:
        if frame[name].null_count():
            line = int(frame[name].is_null().to_numpy().argmax()) + 2
            msg = f"line {line} of {path.name} has no {name!r}; the file is cut off or damaged"
            raise FileFormatError(msg)
    there = [n for n in optional if n in frame.columns and not frame[n].null_count()]
    return {name: frame[name].to_list() for name in (*columns, *there)}


def column_of_numbers(
    table: Mapping[str, list[str]], name: str, path: Path, *, below: int | None = None
) -> IntArray:
    """Return a column as whole numbers from 0; name the first line that is none."""
    found = table[name]
    for row, text in enumerate(found):
        # Some versions write whole numbers as 2.0.
        if not text.removesuffix(".0").isascii() or not text.removesuffix(".0").isdigit():
            msg = f"line {row + 2} of {path.name}: {name!r} must be a whole number; got {text!r}"
            raise FileFormatError(msg)
    numbers = np.array([int(text.removesuffix(".0")) for text in found], np.int64)
    if below is not None and numbers.max() >= below:
        row = int(numbers.argmax())
        msg = f"line {row + 2} of {path.name}: {name!r} must be below {below}; got {found[row]!r}"
        raise FileFormatError(msg)
    return numbers
