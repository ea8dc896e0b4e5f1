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
    """Sort rows, most confident first; the order within ties is any.

    Where all are single samples of weight 1 with a loss of 0 or 1, equal ones become one row.
    """
    loss = rows["loss"]
    if (rows["times"] == 1).all() and (rows["weight"] == 1).all():
        failed = loss == 1
        if (failed | (loss == 0)).all():
            counted = (_counted(rows["confidence"][failed == k], float(k)) for k in (0, 1))
            return _together(list(counted))
    return rows[np.argsort(-rows["confidence"])]


def _together(parts: Sequence[Array]) -> Array:
    """Join rows that are in order: of sorted parts a stable sort merges them."""
    rows = joined(parts)
    return rows[np.argsort(-rows["confidence"], kind="stable")]


def _counted(confidence: Array, loss: float) -> Array:
    """Return a row for each distinct confidence of samples that have one loss."""
    ordered = np.sort(confidence)[::-1]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: ordered.size])
    rows = rows_of(ordered[first], np.full(first.size, loss), None)
    rows["times"] = np.diff(first, append=ordered.size)
    return rows


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
            yield _together([part for part in taken if part.size])
        cursors = [cursor for cursor in cursors if cursor.left]
