"""Sorted runs in files, and their k-way merge: block by block, most confident first."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from abstain._foundation.files import make_folder, open_atomically
from abstain._foundation.input_files import (
    input_sha256,
    library_errors_as_format_errors,
    os_errors_as_input_errors,
)
from abstain.errors import FileFormatError
from abstain.typing import Array

#: Rows that are read of a run at once.
BLOCK = 1 << 16

#: The fewest rows that are read at once.
_LEAST = 1 << 8

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
    """Sorted rows in an ``.npy`` file, which is never changed once it is written."""

    path: Path
    rows: int
    #: SHA-256 of the file, since the format has no checksum.
    sha256: str

    @classmethod
    def written(cls, folder: Path, rows: Array) -> "SortedRun":
        """Write rows that are in order into a file of their own."""
        make_folder(folder)
        path = folder / f"run-{secrets.token_hex(8)}.npy"
        with open_atomically(path) as file:
            np.lib.format.write_array(file, rows, allow_pickle=False)
        return cls(path, rows.size, input_sha256(path))

    def opened(self) -> "RunRows":
        """Return the rows to be read in blocks; refuse a file that differs from the one written."""
        name = self.path.name
        with os_errors_as_input_errors(name, self.path):
            status = self.path.stat()
        state = (status.st_ino, status.st_size, status.st_mtime_ns)
        if _sha256(self.path, state) != self.sha256:
            raise FileFormatError(self._changed)
        with (
            os_errors_as_input_errors(name, self.path),
            library_errors_as_format_errors(name, "npy"),
        ):
            rows: Any = np.load(self.path, mmap_mode="r", allow_pickle=False)
        if rows.dtype.names != FIELDS or rows.shape != (self.rows,):
            raise FileFormatError(self._changed)
        return RunRows(self, rows.dtype, rows.offset)

    def read(self, kind: np.dtype[Any], start: int, count: int) -> Array:
        """Return so many rows from a byte of the file on."""
        with os_errors_as_input_errors(self.path.name, self.path):
            rows = np.fromfile(self.path, kind, count, offset=start)
        if rows.size != count:
            raise FileFormatError(self._changed)
        return rows

    @property
    def _changed(self) -> str:
        return f"{self.path.name} is no longer the run of {self.rows:,} rows that was written"


@lru_cache(maxsize=1 << 16)
def _sha256(path: Path, state: tuple[int, int, int]) -> str:
    """Return the SHA-256 of a file, computed once in a process unless `state` of the file changes.

    A run is opened for every metric that reads it.
    """
    del state
    return input_sha256(path)


@dataclass(frozen=True)
class RunRows:
    """The rows of a run; its file is open only while some are read, so there may be any number."""

    run: SortedRun
    kind: np.dtype[Any]
    #: The byte where the first row begins.
    start: int

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.run.rows

    def __getitem__(self, rows: slice) -> Array:
        """Read neighboring rows."""
        first, last, _ = rows.indices(self.size)
        start = self.start + first * self.kind.itemsize
        return self.run.read(self.kind, start, max(last - first, 0))


@dataclass
class _Cursor:
    """Where a run is read: which rows are held, and how many of it were read."""

    rows: Array | RunRows
    seen: Array
    read: int

    @classmethod
    def at_the_top(cls, rows: Array | RunRows, block: int) -> "_Cursor":
        seen = rows[:block]
        return cls(rows, seen, seen.size)

    @property
    def more(self) -> bool:
        """Whether there are rows that are not held."""
        return self.read < self.rows.size

    @property
    def last(self) -> float:
        """The least confidence that is held."""
        return float(self.seen["confidence"][-1])

    def taken(self, bound: float) -> Array:
        """Give away what is held above a bound."""
        held = self.seen["confidence"]
        count = 0
        if held[0] > bound:
            count = held.size - int(np.searchsorted(held[::-1], bound, side="right"))
        out, self.seen = self.seen[:count], self.seen[count:]
        return out

    def read_on(self, block: int) -> None:
        """Hold a block more, and twice as much where a tie group fills all that is held."""
        new = self.rows[self.read : self.read + max(block, self.seen.size)]
        self.seen = np.concatenate((self.seen, new))
        self.read += new.size


def merged(runs: Sequence[Array | RunRows], held: int) -> Iterator[Array]:
    """Yield the rows of sorted runs in blocks, in order; a tie group is never parted.

    About so many rows are held of all together, but for tie groups and a few of each run.
    """
    block = max(min(BLOCK, held // max(len(runs), 1)), min(BLOCK, _LEAST))
    cursors = [_Cursor.at_the_top(rows, block) for rows in runs if rows.size]
    while cursors:
        # Beyond the least confidence that one of them shows there may be more of it.
        bound = max((x.last for x in cursors if x.more), default=-np.inf)
        taken = [part for part in (x.taken(bound) for x in cursors) if part.size]
        if taken:
            yield _together(taken)
        for cursor in cursors:
            # Those that end below it hold enough.
            if cursor.more and cursor.last == bound:
                cursor.read_on(block)
        cursors = [cursor for cursor in cursors if cursor.seen.size]
