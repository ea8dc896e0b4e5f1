"""Store the samples of a stream in sorted files (runs), for exact metrics from one pass."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.checks import weight_scale
from abstain._foundation.files import make_folder, open_atomically
from abstain._foundation.input_files import (
    input_sha256,
    library_errors_as_format_errors,
    os_errors_as_input_errors,
)
from abstain._foundation.scored import Scored, scored_from_groups
from abstain._foundation.tie_groups import TieGroups
from abstain.errors import FileFormatError, InputError, UncountedError
from abstain.streaming.groups import ValueCounts, append_pending, exceeds_bytes
from abstain.typing import AnyArray, Array, FloatArray

#: Maximum number of rows that are read from a run in one step.
BLOCK = 1 << 16

#: Minimum number of rows that are read in one step.
_MIN_BLOCK = 1 << 8

#: Fields of a row. A row represents `times` samples with equal confidence, loss and weight.
FIELDS = ("confidence", "loss", "weight", "times")


def make_rows(confidence: Array, loss: Array, weight: Array | None) -> Array:
    """Return samples as rows of a structured array with the fields `FIELDS`."""
    dtypes = (confidence.dtype, np.dtype(np.float64), np.dtype(np.float64), np.dtype(np.int64))
    rows = np.empty(confidence.size, list(zip(FIELDS, dtypes, strict=True)))
    rows["confidence"] = confidence
    rows["loss"] = loss
    rows["weight"] = 1.0 if weight is None else weight
    rows["times"] = 1
    return rows


def concat_rows(chunks: Sequence[Array]) -> Array:
    """Concatenate rows, with the widest floating-point type of their confidences."""
    dtype = np.result_type(*(chunk.dtype for chunk in chunks))
    return np.concatenate([chunk.astype(dtype, copy=False) for chunk in chunks])


def sort_rows(rows: Array) -> Array:
    """Sort rows in descending order of confidence, with ties in arbitrary order.

    If all samples have weight 1 and a 0/1 loss, samples with equal confidence and loss are merged
    into one row.
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
    """Merge sorted chunks of rows into one array in descending order of confidence."""
    rows = concat_rows(chunks)
    # The stable sort of NumPy is fast for sorted chunks.
    return rows[np.argsort(-rows["confidence"], kind="stable")]


def _count_confidences(confidence: Array, loss: float) -> Array:
    """Return one row per distinct confidence, for samples with the same loss."""
    ordered = np.sort(confidence)[::-1]
    if not ordered.size:
        return make_rows(ordered, np.zeros(0), None)
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    rows = make_rows(ordered[first], np.full(first.size, loss), None)
    rows["times"] = np.diff(first, append=ordered.size)
    return rows


@dataclass(frozen=True)
class SortedRun:
    """A file (``.npy``) of sorted rows, which never changes."""

    path: Path
    n_rows: int
    #: SHA-256 hash of the file, because the file format has no checksum.
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
        """Check that the file has not changed, and return its rows, which are read on demand."""
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
        """Read `count` rows from a byte offset in the file."""
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
    """Return the SHA-256 hash of a file, which is cached until the file changes."""
    del state
    return input_sha256(path)


@dataclass(frozen=True)
class RunRows:
    """The rows of a run. Slicing the object reads rows from the file."""

    run: SortedRun
    dtype: np.dtype[Any]
    #: Byte offset of the first row in the file.
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
    """The read position in a run, and the rows that were read but not yielded."""

    rows: Array | RunRows
    buffer: Array
    n_read: int

    @classmethod
    def from_start(cls, rows: Array | RunRows, block: int) -> "_Cursor":
        """Read the first block of rows."""
        buffer = rows[:block]
        return cls(rows, buffer, buffer.size)

    @property
    def has_more(self) -> bool:
        """Whether the run has rows that were not read."""
        return self.n_read < self.rows.size

    @property
    def min_buffered_confidence(self) -> float:
        """Smallest confidence in the buffer."""
        return float(self.buffer["confidence"][-1])

    def take_above(self, bound: float) -> Array:
        """Remove the rows with a confidence above the bound from the buffer, and return them."""
        confidence = self.buffer["confidence"]
        n_above = 0
        if confidence[0] > bound:
            n_up_to_bound = int(np.searchsorted(confidence[::-1], bound, side="right"))
            n_above = confidence.size - n_up_to_bound
        rows = self.buffer[:n_above]
        self.buffer = self.buffer[n_above:]
        return rows

    def read_block(self, block: int) -> None:
        """Read a block of rows into the buffer; the block is at least as large as the buffer."""
        new = self.rows[self.n_read : self.n_read + max(block, self.buffer.size)]
        self.buffer = np.concatenate((self.buffer, new))
        self.n_read += new.size


def merge_runs(runs: Sequence[Array | RunRows], max_rows: int) -> Iterator[Array]:
    """Yield the merged rows of sorted runs in blocks, without splitting tie groups.

    The buffers of all runs together contain about `max_rows` rows, or more if tie groups are large.
    """
    rows_per_run = max_rows // max(len(runs), 1)
    block = max(min(BLOCK, rows_per_run), min(BLOCK, _MIN_BLOCK))
    cursors = [_Cursor.from_start(rows, block) for rows in runs if rows.size]
    while cursors:
        # A run may continue at its smallest buffered confidence. Therefore, only rows above the
        # largest of these confidences are complete.
        unread = [cursor for cursor in cursors if cursor.has_more]
        bound = max((cursor.min_buffered_confidence for cursor in unread), default=-np.inf)
        chunks = [cursor.take_above(bound) for cursor in cursors]
        chunks = [rows for rows in chunks if rows.size]
        if chunks:
            yield _merge_sorted_rows(chunks)
        for cursor in unread:
            # The other buffers still contain rows below the bound.
            if cursor.min_buffered_confidence == bound:
                cursor.read_block(block)
        cursors = [cursor for cursor in cursors if cursor.buffer.size]


#: Memory in bytes per row of a run, including all arrays that an interval needs.
_BYTES_PER_ROW = 128


@dataclass(frozen=True, eq=False)
class SortedRuns:
    """All samples of a stream, stored in sorted files on disk in one pass.

    `sorted_runs`, `update` and `merge` create this state. Existing files are never changed, so
    earlier states remain valid.

    Attributes
    ----------
    folder : Path
        Folder in which new run files are created.
    memory : int
        Maximum memory of arrays in bytes.
    runs : tuple of SortedRun
        Run files and their numbers of rows.
    n : int
        Number of samples, without samples of weight 0.
    total : float
        Sum of the weights, or the number of samples if there are no weights.
    weighted : bool or None
        Whether samples have weights, or None if the state contains no sample.
    binary : bool
        Whether every loss is 0 or 1.
    precision : int
        Number of bits of the widest floating-point type of the confidences.

    Examples
    --------
    >>> import tempfile
    >>> from abstain import streaming
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = streaming.update(streaming.sorted_runs(folder), [0.9, 0.8], [0.0, 0.25])
    ...     state.n, state.binary
    (2, False)
    """

    folder: Path
    memory: int
    runs: tuple[SortedRun, ...] = ()
    pending: tuple[Array, ...] = ()
    n: int = 0
    total: float = 0.0
    weighted: bool | None = None
    binary: bool = True
    precision: int = 16

    def updated(
        self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
    ) -> "SortedRuns":
        """Return the state with a batch added. See `streaming.update`."""
        scores = checks.confidence(confidence)
        losses = checks.loss(loss, length=scores.size)
        weights = checks.weight(weight, length=scores.size, is_batch=True)
        self._check_weighting(weighted=weights is not None)
        bits = 8 * scores.dtype.itemsize
        total = float(scores.size)
        if weights is not None:
            checks.finite_weighted_sum(losses, weights)
            has_weight = weights > 0
            scores = scores[has_weight]
            losses = losses[has_weight]
            weights = weights[has_weight]
            total = float(weights.sum())
        checks.reject_swapped_arguments(scores, losses, is_batch=True)
        is_binary = bool(((losses == 0) | (losses == 1)).all())
        state = replace(
            self,
            pending=append_pending(self.pending, make_rows(scores, losses, weights)),
            n=self.n + scores.size,
            total=self.total + total,
            weighted=weights is not None,
            binary=self.binary and is_binary,
            precision=max(self.precision, bits),
        )
        return state.flushed_if_large

    def with_counts(
        self, successes: ValueCounts, failures: ValueCounts, precision: int
    ) -> "SortedRuns":
        """Add successes and failures of weight 1 from their counts, and return the state."""
        self._check_weighting(weighted=False)
        n = int(successes.finalized.count.sum() + failures.finalized.count.sum())
        if not n:
            return self
        pending = self.pending
        for loss, counts in ((0.0, successes.finalized), (1.0, failures.finalized)):
            if counts.value.size:
                rows = make_rows(counts.value, np.full(counts.value.size, loss), None)
                rows["times"] = counts.count
                pending = append_pending(pending, rows)
        state = replace(
            self,
            pending=pending,
            n=self.n + n,
            total=self.total + n,
            weighted=False,
            precision=max(self.precision, precision),
        )
        return state.flushed_if_large

    def merged(self, other: "SortedRuns") -> "SortedRuns":
        """Return the state of both streams. See `streaming.merge`."""
        weighted = self.weighted
        if other.weighted is not None:
            self._check_weighting(weighted=other.weighted)
            weighted = other.weighted
        state = replace(
            self,
            runs=self.runs + other.runs,
            pending=self.pending + other.pending,
            n=self.n + other.n,
            total=self.total + other.total,
            weighted=weighted,
            binary=self.binary and other.binary,
            precision=max(self.precision, other.precision),
        )
        return state.flushed_if_large

    @property
    def flushed(self) -> "SortedRuns":
        """The state after all buffered samples are written to disk."""
        if not self.pending:
            return self
        run = SortedRun.write(self.folder, sort_rows(concat_rows(self.pending)))
        return replace(self, runs=(*self.runs, run), pending=())

    @property
    def flushed_if_large(self) -> "SortedRuns":
        """The state after a buffer that fills a quarter of the memory is written to disk."""
        return self.flushed if exceeds_bytes(self.pending, self.memory // 4) else self

    def blocks(self) -> Iterator[Array]:
        """Yield all rows in descending order of confidence, in blocks that do not split ties."""
        runs: list[Array | RunRows] = [run.open() for run in self.runs]
        if self.pending:
            runs.append(sort_rows(concat_rows(self.pending)))
        for rows in merge_runs(runs, self.memory // _BYTES_PER_ROW):
            if self._scale != 1.0:
                rows["weight"] *= self._scale
            yield rows

    @property
    def _scale(self) -> float:
        """Factor by which very large or very small weights are rescaled."""
        return weight_scale(self.total, self.n)

    @property
    def groups(self) -> Iterator[TieGroups]:
        """The tie groups in descending order of confidence, in chunks of `BLOCK` groups."""
        return _rechunk_groups(map(_tie_groups_of_rows, self.blocks()))

    @property
    def fits_in_memory(self) -> bool:
        """Whether the arrays that are required by metrics fit into `memory`."""
        return self._n_rows * _BYTES_PER_ROW <= self.memory

    @cached_property
    def scored(self) -> Scored:
        """The samples as input of metrics. See `streaming.scored`."""
        if not self.fits_in_memory:
            raise UncountedError(
                f"needs {self._n_rows * _BYTES_PER_ROW >> 20:,} MB for {self._n_rows:,} rows, but "
                f"`memory` is {self.memory >> 20:,} MB; pass more `memory` to `sorted_runs`, or "
                "choose a rank-weighted area such as 'augrc' or 'aurc', summed in blocks"
            )
        if self.binary and not self.weighted:
            return self._scored_as_groups()
        rows = concat_rows(list(self.blocks()))
        # Ties are also sorted, so that the files do not affect the rounding of sums.
        rows = rows[np.lexsort((rows["weight"], rows["loss"], -rows["confidence"]))]
        rows = rows.repeat(rows["times"])
        confidence = np.ascontiguousarray(rows["confidence"])
        loss = np.ascontiguousarray(rows["loss"])
        weight = np.ascontiguousarray(rows["weight"]) if self.weighted else None
        return Scored(confidence, loss, weight, probability=confidence)

    def _scored_as_groups(self) -> Scored:
        """Return unweighted samples with a 0/1 loss as tie groups."""
        dtype = np.dtype(f"f{self.precision // 8}")
        empty = np.zeros(0)
        no_groups = TieGroups(empty.astype(dtype), empty, empty, empty.astype(np.int64))
        groups = _concat_groups([no_groups, *map(_tie_groups_of_rows, self.blocks())])
        # Each sample has weight 1, so the weight of a group is its number of samples.
        return scored_from_groups(replace(groups, unweighted_count=None))

    @property
    def _n_rows(self) -> int:
        """Number of rows on disk and in the buffer."""
        n_buffered = sum(rows.size for rows in self.pending)
        return sum(run.n_rows for run in self.runs) + n_buffered

    def _check_weighting(self, *, weighted: bool) -> None:
        """Raise InputError if only some samples of the stream have weights."""
        if self.weighted is not None and weighted != self.weighted:
            raise InputError(
                "`weight` must be passed for all samples of a stream or for none. Pass ones for "
                "samples without a weight"
            )


def sorted_runs(folder: str | Path, *, memory: int = 1 << 30) -> SortedRuns:
    """Create the empty state of a stream on disk, for exact metrics from one pass.

    This state supports graded losses and weights, and more samples than fit in memory.

    Parameters
    ----------
    folder : str or Path
        Folder for the sorted files, which is created if it does not exist. Files are never changed
        or deleted. The folder is not deleted automatically.
    memory : int, default=2**30
        Maximum memory of arrays in bytes, at least 2^16.

    Returns
    -------
    SortedRuns
        A state without samples.

    Raises
    ------
    InputError
        If `memory` is not an integer of at least 2^16.

    Notes
    -----
    Samples are buffered until they fill a quarter of the memory, and then sorted and written to a
    file. A sample on disk needs 28 bytes in float32 and 32 bytes in float64, or less if samples
    with a 0/1 loss have equal confidences. If the arrays that metrics require fit into `memory`,
    every metric and interval is available. Otherwise, rank-weighted areas are summed in blocks, and
    other metrics raise an error.

    Examples
    --------
    >>> import tempfile
    >>> from abstain import streaming
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = streaming.sorted_runs(folder)
    ...     state = streaming.update(state, [0.9, 0.8, 0.7], [0.0, 0.5, 0.1])
    ...     round(streaming.compute(state, "aurc").value, 6)
    0.116667
    """
    size = checks.positive_int(memory, "memory")
    if size < 1 << 16:
        raise InputError(f"`memory` must be at least {1 << 16} bytes; got {size}")
    return SortedRuns(Path(folder), size)


def _tie_groups_of_rows(rows: Array) -> TieGroups:
    """Return the tie groups of sorted rows."""
    confidence = rows["confidence"]
    if (confidence[1:] == confidence[:-1]).any():
        rows = _merge_equal_rows(rows)
        confidence = rows["confidence"]
    group_starts = np.flatnonzero(np.append(True, confidence[1:] != confidence[:-1]))
    times = rows["times"].astype(np.float64)
    weight = rows["weight"] * times
    weight_of_group: FloatArray = np.add.reduceat(weight, group_starts)
    loss_of_group: FloatArray = np.add.reduceat(weight * rows["loss"], group_starts)
    n_samples = np.add.reduceat(times, group_starts).astype(np.int64)
    return TieGroups(confidence[group_starts], weight_of_group, loss_of_group, n_samples)


def _merge_equal_rows(rows: Array) -> Array:
    """Sort tied rows by loss and then by weight, and merge equal rows."""
    rows = rows[np.lexsort((rows["weight"], rows["loss"], -rows["confidence"]))]
    differs_from_previous = np.zeros(rows.size - 1, np.bool_)
    for name in ("confidence", "loss", "weight"):
        differs_from_previous |= rows[name][1:] != rows[name][:-1]
    first = np.flatnonzero(np.append(True, differs_from_previous))
    merged = rows[first]
    merged["times"] = np.add.reduceat(rows["times"], first)
    return merged


def _rechunk_groups(chunks: Iterator[TieGroups]) -> Iterator[TieGroups]:
    """Yield tie groups in chunks of `BLOCK` groups, for input chunks of any size."""
    buffer: list[TieGroups] = []
    for chunk in chunks:
        buffer.append(chunk)
        if sum(groups.weight.size for groups in buffer) < BLOCK:
            continue
        groups = _concat_groups(buffer)
        n_full = groups.weight.size // BLOCK * BLOCK
        for start in range(0, n_full, BLOCK):
            yield _slice_groups(groups, slice(start, start + BLOCK))
        buffer = [_slice_groups(groups, slice(n_full, None))]
    if any(groups.weight.size for groups in buffer):
        yield _concat_groups(buffer)


def _slice_groups(groups: TieGroups, rows: slice) -> TieGroups:
    """Return consecutive tie groups."""
    number = None if groups.unweighted_count is None else groups.unweighted_count[rows]
    return TieGroups(groups.confidence[rows], groups.weight[rows], groups.loss[rows], number)


def _concat_groups(chunks: list[TieGroups]) -> TieGroups:
    return TieGroups(
        np.concatenate([groups.confidence for groups in chunks]),
        np.concatenate([groups.weight for groups in chunks]),
        np.concatenate([groups.loss for groups in chunks]),
        np.concatenate([groups.count for groups in chunks]),
    )
