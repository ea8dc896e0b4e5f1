"""Exact in one pass with little memory: sorted runs on disk."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from abstain._foundation import checks
from abstain._foundation.counts import scored_from_groups
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups
from abstain._foundation.weights import weight_scale
from abstain.errors import InputError, UncountedError
from abstain.streaming.blocks import BLOCK, RunRows, SortedRun, in_order, joined, merged, rows_of
from abstain.streaming.tally import Tally, are_many, with_one_more
from abstain.typing import AnyArray, Array, FloatArray

#: What becomes of a row of a run takes so many bytes, all arrays of an interval together.
_ROW = 128


@dataclass(frozen=True, eq=False)
class SortedRuns:
    """What is kept of a stream in one pass on disk: all of it, in files that are sorted.

    Made by `sorted_runs`, `update` and `merge`. A state of before stays what it was: files are
    written once and never changed.

    Attributes
    ----------
    folder : Path
        Where new runs are written.
    memory : int
        Bytes that arrays may take.
    runs : tuple of SortedRun
        The files, and how many rows each has.
    n : int
        Number of samples, those of weight 0 left out.
    total : float
        Sum of the weights; the number of samples without any.
    weighted : bool or None
        Whether samples have weights; None before the first.
    binary : bool
        Whether every loss is 0 or 1.
    precision : int
        Bits of the widest floating type of the confidences.

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
    waiting: tuple[Array, ...] = ()
    n: int = 0
    total: float = 0.0
    weighted: bool | None = None
    binary: bool = True
    precision: int = 16

    def updated(
        self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
    ) -> "SortedRuns":
        """Return the state with a batch too: see `streaming.update`."""
        c = checks.confidence(confidence)
        x = checks.loss(loss, length=c.size)
        w = checks.weight(weight, length=c.size, is_batch=True)
        self._refuse_mixed(weighted=w is not None)
        bits = 8 * c.dtype.itemsize
        if w is not None:
            checks.finite_weighted_sum(x, w)
            kept = w > 0
            c, x, w = c[kept], x[kept], w[kept]
        checks.reject_swapped_arguments(c, x, is_batch=True)
        return replace(
            self,
            waiting=with_one_more(self.waiting, rows_of(c, x, w)),
            n=self.n + c.size,
            total=self.total + (c.size if w is None else float(w.sum())),
            weighted=w is not None,
            binary=self.binary and bool(((x == 0) | (x == 1)).all()),
            precision=max(self.precision, bits),
        ).eased

    def of_counts(self, right: Tally, wrong: Tally, precision: int) -> "SortedRuns":
        """Return the state with successes and failures too that are counted, of weight 1."""
        self._refuse_mixed(weighted=False)
        n = int(right.settled.count.sum() + wrong.settled.count.sum())
        if not n:
            return self
        waiting = self.waiting
        for loss, tally in enumerate((right.settled, wrong.settled)):
            rows = rows_of(tally.value, np.full(tally.value.size, float(loss)), None)
            rows["times"] = tally.count
            waiting = with_one_more(waiting, rows) if rows.size else waiting
        out = replace(self, waiting=waiting, n=self.n + n, total=self.total + n, weighted=False)
        return replace(out, precision=max(self.precision, precision)).eased

    def merged(self, other: "SortedRuns") -> "SortedRuns":
        """Return the state of both streams: see `streaming.merge`."""
        if other.weighted is not None:
            self._refuse_mixed(weighted=other.weighted)
        return replace(
            self,
            runs=self.runs + other.runs,
            waiting=self.waiting + other.waiting,
            n=self.n + other.n,
            total=self.total + other.total,
            weighted=self.weighted if other.weighted is None else other.weighted,
            binary=self.binary and other.binary,
            precision=max(self.precision, other.precision),
        ).eased

    @property
    def flushed(self) -> "SortedRuns":
        """The same with all samples on disk."""
        if not self.waiting:
            return self
        run = SortedRun.written(self.folder, in_order(joined(self.waiting)))
        return replace(self, runs=(*self.runs, run), waiting=())

    @property
    def eased(self) -> "SortedRuns":
        """The same with all samples on disk if they fill a quarter of the memory."""
        return self.flushed if are_many(self.waiting, self.memory // 4) else self

    def blocks(self) -> Iterator[Array]:
        """Yield all rows, most confident first, in blocks that part no tie group."""
        runs: list[Array | RunRows] = [run.opened() for run in self.runs]
        if self.waiting:
            runs.append(in_order(joined(self.waiting)))
        for rows in merged(runs, self.memory // _ROW):
            if self._scale != 1.0:
                rows["weight"] *= self._scale
            yield rows

    @property
    def _scale(self) -> float:
        """What the weights are multiplied by: those of one batch say nothing about their total."""
        return weight_scale(self.total, self.n)

    @property
    def groups(self) -> Iterator[TieGroups]:
        """Yield the tie groups, most confident first, so many at once whatever the files are."""
        return _of_one_size(map(_groups_of, self.blocks()))

    @property
    def fits(self) -> bool:
        """Whether what metrics take of the samples is no more than the memory."""
        return self._rows * _ROW <= self.memory

    @cached_property
    def scored(self) -> Scored:
        """The samples as metrics take them: see `streaming.scored`."""
        if not self.fits:
            raise UncountedError(
                f"needs {self._rows * _ROW >> 20:,} MB for {self._rows:,} rows, and `memory` is "
                f"{self.memory >> 20:,} MB; give `sorted_runs` more, or ask for an area that ranks "
                "weigh, such as 'augrc' or 'aurc', which is added up block by block"
            )
        if self.binary and not self.weighted:
            kind = np.dtype(f"f{self.precision // 8}")
            nothing = np.zeros(0)
            none = TieGroups(nothing.astype(kind), nothing, nothing, nothing.astype(np.int64))
            groups = _joined([none, *map(_groups_of, self.blocks())])
            # Each sample weighs 1, so that the weight is their number.
            return scored_from_groups(replace(groups, unweighted_count=None))
        rows = joined(list(self.blocks()))
        # One order whatever the files are, so that sums have the same bits.
        rows = rows[np.lexsort((rows["weight"], rows["loss"], -rows["confidence"]))]
        rows = rows.repeat(rows["times"])
        c, x, w = (np.ascontiguousarray(rows[name]) for name in ("confidence", "loss", "weight"))
        return Scored(c, x, w if self.weighted else None, probability=c)

    @property
    def _rows(self) -> int:
        return sum(run.rows for run in self.runs) + sum(part.size for part in self.waiting)

    def _refuse_mixed(self, *, weighted: bool) -> None:
        if self.weighted is not None and weighted != self.weighted:
            raise InputError(
                "`weight` must be given for all samples of a stream or for none; got some without. "
                "Pass ones for those that have none"
            )


def sorted_runs(folder: str | Path, *, memory: int = 1 << 30) -> SortedRuns:
    """Make the state of an exact stream on disk, before its first sample.

    Answers: how do I get exact numbers of graded losses or weights that do not fit in memory?

    Parameters
    ----------
    folder : str or Path
        Of yours, where sorted files are written; it is made where it is not there. Nothing in it
        is ever changed or taken away, so take it away yourself when you are done.
    memory : int, default=2**30
        Bytes that arrays may take, of at least 2^16.

    Returns
    -------
    SortedRuns
        With no samples.

    Raises
    ------
    InputError
        If `memory` is no such whole number.

    Notes
    -----
    Samples wait until they fill a quarter of the memory, are sorted and become a file that
    appears whole or not at all. At the end the files are merged block by block. Where what metrics
    take fits in memory, every metric and interval is what it is of the samples at once; else the
    areas that ranks weigh are added up by blocks, and others are refused. A row on disk has 28
    bytes in float32, 32 in float64; equal confidences with a loss of 0 or 1 share one.

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


def _groups_of(rows: Array) -> TieGroups:
    """Return the tie groups of rows that are in order; the same bits whatever the files were."""
    value = rows["confidence"]
    if (value[1:] == value[:-1]).any():
        rows = _alike(rows)
        value = rows["confidence"]
    first = np.flatnonzero(np.append(True, value[1:] != value[:-1]))
    times = rows["times"].astype(np.float64)
    weight = rows["weight"] * times
    sums: list[FloatArray] = [
        np.add.reduceat(x, first) for x in (weight, weight * rows["loss"], times)
    ]
    return TieGroups(value[first], sums[0], sums[1], sums[2].astype(np.int64))


def _alike(rows: Array) -> Array:
    """Return a row for all that are equal; within ties in the order of losses, then weights."""
    rows = rows[np.lexsort((rows["weight"], rows["loss"], -rows["confidence"]))]
    other = np.zeros(rows.size - 1, np.bool_)
    for name in ("confidence", "loss", "weight"):
        other |= rows[name][1:] != rows[name][:-1]
    first = np.flatnonzero(np.append(True, other))
    out = rows[first]
    out["times"] = np.add.reduceat(rows["times"], first)
    return out


def _of_one_size(parts: Iterator[TieGroups]) -> Iterator[TieGroups]:
    """Yield the groups of parts, so many at once: sums over them do not hang on the parts."""
    held: list[TieGroups] = []
    for part in parts:
        held.append(part)
        if sum(x.weight.size for x in held) < BLOCK:
            continue
        groups = _joined(held)
        full = groups.weight.size // BLOCK * BLOCK
        yield from (_taken(groups, slice(i, i + BLOCK)) for i in range(0, full, BLOCK))
        held = [_taken(groups, slice(full, None))]
    if any(x.weight.size for x in held):
        yield _joined(held)


def _taken(groups: TieGroups, some: slice) -> TieGroups:
    number = None if groups.unweighted_count is None else groups.unweighted_count[some]
    return TieGroups(groups.confidence[some], groups.weight[some], groups.loss[some], number)


def _joined(parts: list[TieGroups]) -> TieGroups:
    names = ("confidence", "weight", "loss", "unweighted_count")
    confidence, weight, loss, number = (
        np.concatenate([getattr(part, name) for part in parts]) for name in names
    )
    return TieGroups(confidence, weight, loss, number)
