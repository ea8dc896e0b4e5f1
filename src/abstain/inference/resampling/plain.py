"""Resampled areas in NumPy alone; `compiled` computes the same with numba.

Where a step is exact and where a series is cut is explained in `replicates`.
"""

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from abstain._foundation.augrc import augrc_from_rank_sum
from abstain.inference.resampling.order import WIDEST, Ordered, Slots
from abstain.inference.resampling.series import CountSeries, Rest, WantedAreas
from abstain.typing import Array, FloatArray, IntArray

#: Elements of an array of all samples and some resamples that are held at a time.
_AT_A_TIME = 1 << 20


class ResampleBlock(NamedTuple):
    """A block of resamples, and room to work in."""

    #: Shape (n, b). How often each sample was drawn, k.
    counts: Array
    #: Shape (n, 2b). k and k^3 - k, in a type that holds their sums over a cell.
    both: Array
    #: The largest count.
    most: int
    #: Arrays of earlier scores, to be written over: fresh memory is slower than the arithmetic.
    held: dict[str, Array]

    def room(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an array of that name, shape and type, with anything in it."""
        size = prod(shape)
        found = self.held.get(name)
        if found is None or found.size < size or found.dtype != dtype:
            found = self.held[name] = np.empty(size + size // 4, dtype)
        return found[:size].reshape(shape)

    def cast(self, name: str, x: Array, dtype: DTypeLike) -> Array:
        """Return a copy in another type."""
        out = self.room(name, x.shape, dtype)
        np.copyto(out, x, casting="unsafe")
        return out

    def take(self, name: str, x: Array, index: Array) -> Array:
        """Return rows of `x`; of a table, its entries."""
        out = self.room(name, (*index.shape, *x.shape[1:]), x.dtype)
        return np.take(x, index, axis=0, out=out, mode="clip")

    def least(self, samples: IntArray) -> int:
        """Return how many of some samples every resample holds at least."""
        b = self.counts.shape[1]
        # Sums in the type of the counts are fast, where they fit.
        if self.both.dtype.kind != "i" or samples.size * self.most > np.iinfo(self.both.dtype).max:
            taken = self.take("early", self.counts, samples)
            return int(np.add.reduce(taken, axis=0, dtype=np.int64).min())
        taken = self.take("early both", self.both, samples)
        return int(np.add.reduce(taken, axis=0, dtype=taken.dtype)[:b].min())


def tally(drawn: Array, counts: Array, first: int) -> Array:
    """Count the units drawn, (r, k), into the columns from `first` on; widen if needed."""
    for column, units in enumerate(drawn, first):
        held = np.bincount(units, minlength=len(counts))
        if held.max() > np.iinfo(counts.dtype).max:
            counts = counts.astype(np.min_scalar_type(held.max()))
        counts[:, column] = held
    return counts


def prepare(counts: Array) -> ResampleBlock:
    """Bring counts of shape (n, b) into the form that the areas are computed from."""
    most = int(counts.max())
    cell = WIDEST * max(most, most**3 - most)
    fits = [x for x in (np.int16, np.int32) if cell <= np.iinfo(x).max]
    n, b = counts.shape
    both = np.empty((n, 2 * b), fits[0] if fits else np.float64)
    k, excess = both[:, :b], both[:, b:]
    k[:] = counts
    np.multiply(k, k, out=excess)
    excess -= 1
    excess *= k
    return ResampleBlock(counts, both, most, {})


def failures_only(
    block: ResampleBlock, one: Ordered, tables: CountSeries, wanted: WantedAreas, rest: Rest
) -> FloatArray:
    """Return total, risk, AUGRC, AURC and plug-in AURC of 0/1 losses, shape (5, b)."""
    laid = _laid_out(block, one, rest) if wanted.aurc else one.layout(0, 0.0)
    through, excess = _accepted(block, laid)
    total = through[-1].astype(np.float64)
    events = _Events.of(block, laid, through)
    wrong = events.a1[-1] if len(events.a1) else np.zeros(total.shape)
    out = np.full((5, total.size), np.nan)
    out[0], out[1] = total, wrong / total
    both = np.add(events.c0, events.c1, out=block.room("work", events.c0.shape, np.float64))
    out[2] = augrc_from_rank_sum(total, wrong, np.einsum("ij,ij->j", events.f, both))
    if wanted.aurc:
        area = events.area(block, tables.trapezoid) + wrong * tables.trapezoid[through[-1]]
        out[3] = (area + _above(block, laid, through, excess, events.a1)) / total
    if wanted.plugin:
        steps = events.steps(block, tables.harmonic)
        out[4] = (wrong * (tables.trapezoid[through[-1]] + 0.5 / total) - steps) / total
    return out


def _laid_out(block: ResampleBlock, one: Ordered, rest: Rest) -> Slots:
    """Lay the samples out so that the series is near enough in every resample."""
    until = rest.with_own_middle(one.slope)
    rows = _coarse(until)
    while rows < one.n:
        if block.least(one.order[: int(rows)]) >= until:
            break
        rows = _coarse(rows)
    pairs = _coarse(rest.with_one_middle(one.slope) * rows / until)
    return one.layout(min(int(rows), one.n), pairs)


def _coarse(place: float) -> float:
    """Round up on a coarse grid, so that few layouts need be made."""
    return float(2.0 ** (np.floor(4.0 * np.log2(place) + 1.0) / 4.0))


def _accepted(block: ResampleBlock, laid: Slots) -> tuple[Array, Array]:
    """Return the running sum of the counts over the slots, and the sum of k^3 - k in each."""
    b = block.counts.shape[1]
    table = block.both
    if table.dtype == np.int16 and laid.widest * block.most > np.iinfo(np.int16).max:
        # A large tie may overflow; where k^3 - k does, it is not used.
        if "wide" not in block.held:
            block.held["wide"] = table.astype(np.int32)
        table = block.held["wide"]
    sums = laid.slots @ table
    through = block.cast("through", sums[:, :b], np.int32)
    return np.cumsum(through, axis=0, out=through), sums[:, b:]


class _Events(NamedTuple):
    """Accepted before and after each event, as places and as numbers, and failures likewise."""

    i0: Array
    i1: Array
    c0: Array
    c1: Array
    k: Array
    f: Array
    a1: Array

    @classmethod
    def of(cls, block: ResampleBlock, laid: Slots, through: Array) -> "_Events":
        """Look the events up in the running sums."""
        upper = block.take("upper", through, laid.event)
        lost = (laid.failures @ block.counts).astype(np.int32)
        failed = np.cumsum(lost, axis=0, out=block.room("failed", lost.shape, np.int32))
        before = np.maximum(laid.event - 1, 0)
        lower = block.take("lower", through, before)
        lower[laid.event == 0] = 0
        c0, c1 = block.cast("c0", lower, np.float64), block.cast("c1", upper, np.float64)
        return cls(
            block.cast("i0", lower, np.int64),
            block.cast("i1", upper, np.int64),
            c0,
            c1,
            np.subtract(c1, c0, out=block.room("events", c0.shape, np.float64)),
            block.cast("f", lost, np.float64),
            block.cast("a1", failed, np.float64),
        )

    def area(self, block: ResampleBlock, trapezoid: FloatArray) -> FloatArray:
        """Sum the trapezoid of each event, less what the runs around it count for it."""
        shape = self.c0.shape
        area, work, a0 = (block.room(f"area {i}", shape, np.float64) for i in range(3))
        np.subtract(self.a1, self.f, out=a0)
        np.multiply(a0, self.c1, out=area)
        area += np.multiply(self.a1, self.c0, out=work)
        area *= self.k
        np.multiply(self.c0, self.c1, out=work)
        work *= 2.0
        first = self._first()
        np.maximum(work[:first], 1.0, out=work[:first])
        area /= work
        area += np.multiply(a0, block.take("t0", trapezoid, self.i0), out=work)
        area -= np.multiply(self.a1, block.take("t1", trapezoid, self.i1), out=work)
        # The first vertex reaches back to coverage 0 at its own height.
        area[:first] += np.where(self.i0[:first] == 0, self.a1[:first], 0.0)
        return np.asarray(area.sum(axis=0))

    def _first(self) -> int:
        """Return a number of events after which every resample has accepted something."""
        first = 8
        while first < len(self.i0) and not self.i0[first].all():
            first *= 2
        return first

    def steps(self, block: ResampleBlock, harmonic: FloatArray) -> FloatArray:
        """Sum the harmonic numbers at the places of the failures, averaged over ties."""
        step = block.take("t1", harmonic, self.i1)
        step -= block.take("t0", harmonic, self.i0)
        step /= np.maximum(self.k, 1.0)
        return np.asarray(np.einsum("ij,ij->j", self.f, step))


def _above(
    block: ResampleBlock, laid: Slots, through: Array, excess: Array, failed: Array
) -> FloatArray:
    """Sum what the cells lie above the unit trapezoids: failures x (k^3 - k) / (6 middle^3)."""
    before = block.room("before", (len(failed) + 1, failed.shape[1]), np.float32)
    before[0] = 0
    before[1:] = failed
    # Before the first failure nothing counts; behind it every resample has accepted enough.
    cell, ahead = (x[np.searchsorted(laid.before, 1) :] for x in (laid.cell, laid.before))
    twice = block.take("begun", through, cell - 1)
    twice += block.take("ended", through, cell)
    x = block.cast("x", twice, np.float32)
    np.divide(np.float32(2), x, out=x)
    above = block.cast("above", excess[cell], np.float32)
    for _ in range(3):
        above *= x
    above *= block.take("accepted", before, ahead)
    return np.asarray(above.sum(axis=0), np.float64) / 6.0


def every_sample(
    block: ResampleBlock, one: Ordered, tables: CountSeries, wanted: WantedAreas
) -> FloatArray:
    """Return total, risk, AUGRC, AURC and plug-in AURC of any losses and weights, shape (5, b)."""
    b = block.counts.shape[1]
    step = max(1, _AT_A_TIME // one.n)
    parts = [_some(block.counts[:, i : i + step], one, tables, wanted) for i in range(0, b, step)]
    return np.concatenate(parts, axis=1)


def _some(counts: Array, one: Ordered, tables: CountSeries, wanted: WantedAreas) -> FloatArray:
    # Resamples along the first axis: NumPy sums fast along the last one only.
    k = counts.T[:, one.order].astype(np.float64)
    if one.weight is not None:
        k *= one.weight
    mass = k * one.loss
    if one.starts.size < one.n:
        k, mass = (np.add.reduceat(x, one.starts, axis=1) for x in (k, mass))
    through, lost = np.cumsum(k, axis=1), np.cumsum(mass, axis=1)
    total, wrong = through[:, -1], lost[:, -1]
    out = np.full((5, len(k)), np.nan)
    out[0] = total
    some = total > 0
    np.divide(wrong, total, out=out[1], where=some)
    doubled_ranks = np.einsum("ij,ij->i", mass, 2.0 * through - k)
    out[2, some] = augrc_from_rank_sum(total[some], wrong[some], doubled_ranks[some])
    if wanted.aurc:
        risk = np.divide(lost, through, out=np.zeros_like(lost), where=through > 0)
        # Flat from the first vertex to coverage 0, wherever that vertex is.
        area = np.einsum("ij,ij->i", k, risk)
        area += np.einsum("ij,ij->i", k[:, 1:], risk[:, :-1])
        area += np.einsum("ij,ij->i", k * (through == k), risk)
        np.divide(area, 2.0 * total, out=out[3], where=some)
    if wanted.plugin:
        out[4] = _plugin(k, mass, through, tables)
    return out


def _plugin(
    k: FloatArray, mass: FloatArray, through: FloatArray, tables: CountSeries
) -> FloatArray:
    upper, lower = through.astype(np.int64), (through - k).astype(np.int64)
    step = tables.harmonic[upper] - tables.harmonic[lower]
    total = through[:, -1]
    top = tables.trapezoid[upper[:, -1]] + 0.5 / total
    sums = np.einsum("ij,ij->i", mass / np.maximum(k, 1.0), step)
    return np.asarray((mass.sum(axis=1) * top - sums) / total)
