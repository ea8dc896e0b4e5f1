"""Files of sorted rows (runs) and their k-way merge, in blocks, most confident first."""

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

#: Maximum number of rows that are read from a run at once.
BLOCK = 1 << 16

#: Minimum number of rows that are read at once.
_MIN_BLOCK = 1 << 8

#: Fields of a row. A row is one sample, or `times` samples with equal confidence, loss and weight.
FIELDS = ("confidence", "loss", "weight", "times")


def make_rows(confidence: Array, loss: Array, weight: Array | None) -> Array:
    """Return samples as rows of a structured array, in the same order."""
    dtypes = (confidence.dtype, np.dtype(np.float64), np.dtype(np.float64), np.dtype(np.int64))
    rows = np.empty(confidence.size, list(zip(FIELDS, dtypes, strict=True)))
    rows["confidence"], rows["loss"], rows["times"] = confidence, loss, 1
    rows["weight"] = 1.0 if weight is None else weight
    return rows


def concat_rows(chunks: Sequence[Array]) -> Array:
    """Concatenate rows in the widest type of their confidences."""
    dtype = np.result_type(*(chunk.dtype for chunk in chunks))
    return np.concatenate([chunk.astype(dtype, copy=False) for chunk in chunks])


def sort_rows(rows: Array) -> Array:
    """Sort rows, most confident first; the order within ties is arbitrary.

    If all rows are single samples of weight 1 with a 0/1 loss, equal samples become one row.
    """
    loss = rows["loss"]
    if (rows["times"] == 1).all() and (rows["weight"] == 1).all():
        is_failure = loss == 1
        if (is_failure | (loss == 0)).all():
            successes = _count_confidences(rows["confidence"][~is_failure], 0.0)
            failures = _count_confidences(rows["confidence"][is_failure], 1.0)
            return _merge_sorted_rows([successes, failures])
    return rows[np.argsort(-rows["confidence"])]


def _merge_sorted_rows(chunks: Sequence[Array]) -> Array:
    """Merge sorted chunks of rows; NumPy's stable sort is fast on concatenated sorted arrays."""
    rows = concat_rows(chunks)
    return rows[np.argsort(-rows["confidence"], kind="stable")]


def _count_confidences(confidence: Array, loss: float) -> Array:
    """Return one row per distinct confidence of samples that all have this loss."""
    ordered = np.sort(confidence)[::-1]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: ordered.size])
    rows = make_rows(ordered[first], np.full(first.size, loss), None)
    rows["times"] = np.diff(first, append=ordered.size)
    return rows


@dataclass(frozen=True)
class SortedRun:
    """A file (``.npy``) of sorted rows, which is never changed after it is written."""

    path: Path
    n_rows: int
    #: SHA-256 of the file, because the format has no checksum.
    sha256: str

    @classmethod
    def write(cls, folder: Path, rows: Array) -> "SortedRun":
        """Write sorted rows to a new file."""
        make_folder(folder)
        path = folder / f"run-{secrets.token_hex(8)}.npy"
        with open_atomically(path) as file:
            np.lib.format.write_array(file, rows, allow_pickle=False)
        return cls(path, rows.size, input_sha256(path))

    def open(self) -> "RunRows":
        """Open the file for reading in blocks; raise an error if its checksum has changed."""
        name = self.path.name
        with os_errors_as_input_errors(name, self.path):
            status = self.path.stat()
        state = (status.st_ino, status.st_size, status.st_mtime_ns)
        if _sha256(self.path, state) != self.sha256:
            raise FileFormatError(self._changed_message)
        with (
            os_errors_as_input_errors(name, self.path),
            library_errors_as_format_errors(name, "npy"),
        ):
            rows: Any = np.load(self.path, mmap_mode="r", allow_pickle=False)
        if rows.dtype.names != FIELDS or rows.shape != (self.n_rows,):
            raise FileFormatError(self._changed_message)
        return RunRows(self, rows.dtype, rows.offset)

    def read(self, dtype: np.dtype[Any], offset: int, count: int) -> Array:
        """Read rows from a byte offset of the file."""
        with os_errors_as_input_errors(self.path.name, self.path):
            rows = np.fromfile(self.path, dtype, count, offset=offset)
        if rows.size != count:
            raise FileFormatError(self._changed_message)
        return rows

    @property
    def _changed_message(self) -> str:
        return f"{self.path.name} is no longer the run of {self.n_rows:,} rows that was written"


@lru_cache(maxsize=1 << 16)
def _sha256(path: Path, state: tuple[int, int, int]) -> str:
    """Return the SHA-256 of a file, cached as long as `state` (inode, size, time) is unchanged.

    Every metric opens the run again.
    """
    del state
    return input_sha256(path)


@dataclass(frozen=True)
class RunRows:
    """The rows of a run. The file is open only during a read, so any number of runs can be read."""

    run: SortedRun
    dtype: np.dtype[Any]
    #: Byte offset of the first row.
    offset: int

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.run.n_rows

    def __getitem__(self, rows: slice) -> Array:
        """Read consecutive rows."""
        first, last, _ = rows.indices(self.size)
        offset = self.offset + first * self.dtype.itemsize
        return self.run.read(self.dtype, offset, max(last - first, 0))


@dataclass
class _Cursor:
    """Reading position in a run, with the rows that were read but not yielded."""

    rows: Array | RunRows
    buffer: Array
    n_read: int

    @classmethod
    def from_start(cls, rows: Array | RunRows, block: int) -> "_Cursor":
        buffer = rows[:block]
        return cls(rows, buffer, buffer.size)

    @property
    def has_more(self) -> bool:
        """Whether the run has rows that were not read."""
        return self.n_read < self.rows.size

    @property
    def min_buffered_confidence(self) -> float:
        """The smallest confidence in the buffer."""
        return float(self.buffer["confidence"][-1])

    def take_above(self, bound: float) -> Array:
        """Remove the rows above a bound from the buffer and return them."""
        confidence = self.buffer["confidence"]
        n_above = 0
        if confidence[0] > bound:
            n_above = confidence.size - int(np.searchsorted(confidence[::-1], bound, side="right"))
        rows, self.buffer = self.buffer[:n_above], self.buffer[n_above:]
        return rows

    def read_block(self, block: int) -> None:
        """Read a block into the buffer, or double the buffer if one tie group fills it."""
        new = self.rows[self.n_read : self.n_read + max(block, self.buffer.size)]
        self.buffer = np.concatenate((self.buffer, new))
        self.n_read += new.size


def merge_runs(runs: Sequence[Array | RunRows], max_rows: int) -> Iterator[Array]:
    """Yield the rows of sorted runs in order, in blocks that do not split tie groups.

    The buffers of all runs together contain about `max_rows` rows; large tie groups and the minimum
    block of each run may need more.
    """
    block = max(min(BLOCK, max_rows // max(len(runs), 1)), min(BLOCK, _MIN_BLOCK))
    cursors = [_Cursor.from_start(rows, block) for rows in runs if rows.size]
    while cursors:
        # A run may continue below its smallest buffered confidence, so only rows above the largest
        # of these confidences are complete.
        bound = max((x.min_buffered_confidence for x in cursors if x.has_more), default=-np.inf)
        chunks = [rows for rows in (cursor.take_above(bound) for cursor in cursors) if rows.size]
        if chunks:
            yield _merge_sorted_rows(chunks)
        for cursor in cursors:
            # Cursors that end below the bound still have enough rows.
            if cursor.has_more and cursor.min_buffered_confidence == bound:
                cursor.read_block(block)
        cursors = [cursor for cursor in cursors if cursor.buffer.size]
