"""Exact state in one pass with bounded memory: sorted runs on disk."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from abstain._foundation import checks
from abstain._foundation.checks import weight_scale
from abstain._foundation.scored import Scored, scored_from_groups
from abstain._foundation.tie_groups import TieGroups
from abstain.errors import InputError, UncountedError
from abstain.streaming.run_files import (
    BLOCK,
    RunRows,
    SortedRun,
    concat_rows,
    make_rows,
    merge_runs,
    sort_rows,
)
from abstain.streaming.value_counts import ValueCounts, append_pending, exceeds_bytes
from abstain.typing import AnyArray, Array, FloatArray

#: Memory per row of a run, with all arrays that an interval needs.
_BYTES_PER_ROW = 128


@dataclass(frozen=True, eq=False)
class SortedRuns:
    """All samples of a stream, from one pass, in sorted files on disk.

    Created by `sorted_runs`, `update` and `merge`. Files are written once and never changed, so
    earlier states remain valid.

    Attributes
    ----------
    folder : Path
        Folder for new run files.
    memory : int
        Maximum memory of arrays in bytes.
    runs : tuple of SortedRun
        The run files and their numbers of rows.
    n : int
        Number of samples, without those of weight 0.
    total : float
        Sum of the weights; the number of samples if there are no weights.
    weighted : bool or None
        Whether samples have weights; None if no sample was added.
    binary : bool
        Whether every loss is 0 or 1.
    precision : int
        Bits of the widest floating-point type of the confidences.

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
        """Return the state with a batch added; see `streaming.update`."""
        c = checks.confidence(confidence)
        x = checks.loss(loss, length=c.size)
        w = checks.weight(weight, length=c.size, is_batch=True)
        self._check_weighting(weighted=w is not None)
        bits = 8 * c.dtype.itemsize
        if w is not None:
            checks.finite_weighted_sum(x, w)
            has_weight = w > 0
            c, x, w = c[has_weight], x[has_weight], w[has_weight]
        checks.reject_swapped_arguments(c, x, is_batch=True)
        return replace(
            self,
            pending=append_pending(self.pending, make_rows(c, x, w)),
            n=self.n + c.size,
            total=self.total + (c.size if w is None else float(w.sum())),
            weighted=w is not None,
            binary=self.binary and bool(((x == 0) | (x == 1)).all()),
            precision=max(self.precision, bits),
        ).flushed_if_large

    def with_counts(
        self, successes: ValueCounts, failures: ValueCounts, precision: int
    ) -> "SortedRuns":
        """Return the state with counted successes and failures of weight 1 added."""
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
        return replace(
            self,
            pending=pending,
            n=self.n + n,
            total=self.total + n,
            weighted=False,
            precision=max(self.precision, precision),
        ).flushed_if_large

    def merged(self, other: "SortedRuns") -> "SortedRuns":
        """Return the state of both streams; see `streaming.merge`."""
        if other.weighted is not None:
            self._check_weighting(weighted=other.weighted)
        return replace(
            self,
            runs=self.runs + other.runs,
            pending=self.pending + other.pending,
            n=self.n + other.n,
            total=self.total + other.total,
            weighted=self.weighted if other.weighted is None else other.weighted,
            binary=self.binary and other.binary,
            precision=max(self.precision, other.precision),
        ).flushed_if_large

    @property
    def flushed(self) -> "SortedRuns":
        """The state with all buffered samples written to disk."""
        if not self.pending:
            return self
        run = SortedRun.write(self.folder, sort_rows(concat_rows(self.pending)))
        return replace(self, runs=(*self.runs, run), pending=())

    @property
    def flushed_if_large(self) -> "SortedRuns":
        """The state with buffered samples written to disk if they fill a quarter of the memory."""
        return self.flushed if exceeds_bytes(self.pending, self.memory // 4) else self

    def blocks(self) -> Iterator[Array]:
        """Yield all rows, most confident first, in blocks that do not split tie groups."""
        runs: list[Array | RunRows] = [run.open() for run in self.runs]
        if self.pending:
            runs.append(sort_rows(concat_rows(self.pending)))
        for rows in merge_runs(runs, self.memory // _BYTES_PER_ROW):
            if self._scale != 1.0:
                rows["weight"] *= self._scale
            yield rows

    @property
    def _scale(self) -> float:
        """The factor that rescales extreme weights; it depends on their total over all batches."""
        return weight_scale(self.total, self.n)

    @property
    def groups(self) -> Iterator[TieGroups]:
        """Yield the tie groups, most confident first, in chunks that do not depend on the files."""
        return _rechunk_groups(map(_tie_groups_of_rows, self.blocks()))

    @property
    def fits_in_memory(self) -> bool:
        """Whether the arrays that metrics require fit in the memory."""
        return self._n_rows * _BYTES_PER_ROW <= self.memory

    @cached_property
    def scored(self) -> Scored:
        """The samples, as metrics require them; see `streaming.scored`."""
        if not self.fits_in_memory:
            raise UncountedError(
                f"needs {self._n_rows * _BYTES_PER_ROW >> 20:,} MB for {self._n_rows:,} rows, but "
                f"`memory` is {self.memory >> 20:,} MB; pass more `memory` to `sorted_runs`, or "
                "choose a rank-weighted area such as 'augrc' or 'aurc', summed in blocks"
            )
        if self.binary and not self.weighted:
            dtype = np.dtype(f"f{self.precision // 8}")
            empty = np.zeros(0)
            no_groups = TieGroups(empty.astype(dtype), empty, empty, empty.astype(np.int64))
            groups = _concat_groups([no_groups, *map(_tie_groups_of_rows, self.blocks())])
            # Each sample has weight 1, so the weight of a group is its number of samples.
            return scored_from_groups(replace(groups, unweighted_count=None))
        rows = concat_rows(list(self.blocks()))
        # Sort ties too, so that sums do not depend on the files to the last bit.
        rows = rows[np.lexsort((rows["weight"], rows["loss"], -rows["confidence"]))]
        rows = rows.repeat(rows["times"])
        c, x, w = (np.ascontiguousarray(rows[name]) for name in ("confidence", "loss", "weight"))
        return Scored(c, x, w if self.weighted else None, probability=c)

    @property
    def _n_rows(self) -> int:
        return sum(run.n_rows for run in self.runs) + sum(part.size for part in self.pending)

    def _check_weighting(self, *, weighted: bool) -> None:
        if self.weighted is not None and weighted != self.weighted:
            raise InputError(
                "`weight` must be passed for all samples of a stream or for none. Pass ones for "
                "samples without a weight"
            )


def sorted_runs(folder: str | Path, *, memory: int = 1 << 30) -> SortedRuns:
    """Create the empty state of an exact stream on disk.

    Answers: how do I compute exact metrics of graded losses or weights that do not fit in memory?

    Parameters
    ----------
    folder : str or Path
        Folder for the sorted files; created if it does not exist. Files are never changed or
        deleted: delete the folder when you no longer need the state.
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
    Samples are buffered until they fill a quarter of the memory; then they are sorted and written
    atomically to a file. Reading merges the files in blocks. If the arrays that metrics require fit
    in memory, every metric and interval equals that of the samples in memory. Otherwise
    rank-weighted areas are summed in blocks, and other metrics raise an error. A row on disk takes
    28 bytes in float32, 32 in float64; samples with equal confidence and a 0/1 loss share a row.

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
    """Return the tie groups of sorted rows; sums are independent of the files to the last bit."""
    confidence = rows["confidence"]
    if (confidence[1:] == confidence[:-1]).any():
        rows = _merge_equal_rows(rows)
        confidence = rows["confidence"]
    first = np.flatnonzero(np.append(True, confidence[1:] != confidence[:-1]))
    times = rows["times"].astype(np.float64)
    weight = rows["weight"] * times
    sums: list[FloatArray] = [
        np.add.reduceat(x, first) for x in (weight, weight * rows["loss"], times)
    ]
    return TieGroups(confidence[first], sums[0], sums[1], sums[2].astype(np.int64))


def _merge_equal_rows(rows: Array) -> Array:
    """Merge equal rows into one; sort ties by loss, then by weight."""
    rows = rows[np.lexsort((rows["weight"], rows["loss"], -rows["confidence"]))]
    differs_from_previous = np.zeros(rows.size - 1, np.bool_)
    for name in ("confidence", "loss", "weight"):
        differs_from_previous |= rows[name][1:] != rows[name][:-1]
    first = np.flatnonzero(np.append(True, differs_from_previous))
    merged = rows[first]
    merged["times"] = np.add.reduceat(rows["times"], first)
    return merged


def _rechunk_groups(chunks: Iterator[TieGroups]) -> Iterator[TieGroups]:
    """Yield the groups in chunks of `BLOCK`, so that sums do not depend on the input chunks."""
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
    number = None if groups.unweighted_count is None else groups.unweighted_count[rows]
    return TieGroups(groups.confidence[rows], groups.weight[rows], groups.loss[rows], number)


def _concat_groups(chunks: list[TieGroups]) -> TieGroups:
    return TieGroups(
        np.concatenate([groups.confidence for groups in chunks]),
        np.concatenate([groups.weight for groups in chunks]),
        np.concatenate([groups.loss for groups in chunks]),
        np.concatenate([groups.count for groups in chunks]),
    )
