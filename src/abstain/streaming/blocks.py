"""Sorted runs in files, and their k-way merge: block by block, most confident first."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from abstain._foundation.files import make_folder, writing
from abstain._foundation.input_files import plain_words, readable
from abstain.errors import FileFormatError
from abstain.typing import Array

#: Rows that are read of a run at once.
BLOCK = 1 << 16

#: What a row has: a sample, or several with one confidence and a loss of 0 or 1.
FIELDS = ("confidence", "loss", "weight", "times")


def rows_of(confidence: Array, loss: Array, weight: Array | None) -> Array:
    """Return samples as rows in the order in which they come."""
    kinds = (confidence.dtype, np.dtype(np.float64), np.dtype(np.float64), np.dtype(np.int64))
    rows = np.empty(confidence.size, list(zip(FIELDS, kinds, strict=True)))
    rows["confidence"], rows["loss"], rows["times"] = confidence, loss, 1
    rows["weight"] = 1.0 if weight is None else weight
    return rows


def joined(parts: Sequence[Array]) -> Array:
    """Return the rows of all in the widest type of their confidences."""
    kind = np.result_type(*(part.dtype for part in parts))
    return np.concatenate([part.astype(kind, copy=False) for part in parts])


def in_order(rows: Array) -> Array:
    """Sort rows, most confident first; failures and successes that are equal become one row each.

    Rows of weight 1 and a loss of 0 or 1 are equal where their confidences are.
    """
    order = np.lexsort((rows["weight"], rows["loss"], -rows["confidence"]))
    rows = rows[order]
    binary = (rows["weight"] == 1) & ((rows["loss"] == 0) | (rows["loss"] == 1))
    new = np.ones(rows.size, np.bool_)
    same = rows["confidence"][1:] == rows["confidence"][:-1]
    same &= rows["loss"][1:] == rows["loss"][:-1]
    new[1:] = ~(same & binary[1:] & binary[:-1])
    first = np.flatnonzero(new)
    out = rows[first]
    out["times"] = np.add.reduceat(rows["times"], first)
    return out


@dataclass(frozen=True)
class SortedRun:
    """Rows in a file of NumPy's, in order; never changed once it is written."""

    path: Path
    rows: int

    @classmethod
    def written(cls, folder: Path, rows: Array) -> "SortedRun":
        """Write rows that are in order into a file of their own."""
        make_folder(folder)
        path = folder / f"run-{secrets.token_hex(8)}.npy"
        with writing(path) as file:
            np.lib.format.write_array(file, rows, allow_pickle=False)
        return cls(path, rows.size)

    def opened(self) -> Array:
        """Return the rows without reading them; refuse another file than the one written."""
        name = self.path.name
        with readable(name, self.path), plain_words(name, "npy"):
            rows: Any = np.load(self.path, mmap_mode="r", allow_pickle=False)
        if rows.dtype.names != FIELDS or rows.shape != (self.rows,):
            msg = f"{name} is no longer the run of {self.rows:,} rows that was written"
            raise FileFormatError(msg)
        return np.asarray(rows)


@dataclass
class _Cursor:
    """Where a run is read."""

    rows: Array
    place: int = 0
    ahead: int = BLOCK

    @property
    def left(self) -> int:
        return self.rows.size - self.place

    @property
    def seen(self) -> Array:
        """What is held in memory."""
        return self.rows[self.place : self.place + self.ahead]

    @property
    def more(self) -> bool:
        """Whether there are rows beyond."""
        return self.left > self.ahead


def merged(runs: Sequence[Array]) -> Iterator[Array]:
    """Yield the rows of sorted runs in blocks, in order; a tie group is never parted."""
    cursors = [_Cursor(rows) for rows in runs if rows.size]
    while cursors:
        # Beyond the least confidence that one of them shows there may be more of it.
        bounds = [float(x.seen["confidence"][-1]) for x in cursors if x.more]
        bound = max(bounds, default=-np.inf)
        taken = []
        for cursor in cursors:
            seen = cursor.seen
            count = int(np.searchsorted(-seen["confidence"].astype(np.float64), -bound))
            taken.append(np.array(seen[: count if bounds else seen.size]))
            cursor.place += taken[-1].size
            # A tie group that fills all that is seen needs more to be seen.
            cursor.ahead = 2 * cursor.ahead if not taken[-1].size and cursor.more else BLOCK
        if any(part.size for part in taken):
            yield in_order(joined([part for part in taken if part.size]))
        cursors = [cursor for cursor in cursors if cursor.left]
