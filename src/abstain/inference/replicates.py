"""Areas under risk-coverage curves of every resample, for many scores at once.

Each score is sorted once. A resample changes how often a sample counts, never the order, so what
is left is a running sum of the shared counts in the order of each score. Two facts save most of
the work for 0/1 losses.

AUGRC and plug-in AURC depend on the counts and ranks of the failures alone.

The trapezoid AURC has a vertex at every distinct confidence. From one failure to the next the
risk is A/x with x the samples accepted, and a success drawn k times is a trapezoid of width k
under it. Were it k trapezoids of width 1, the whole run would telescope into a difference of
harmonic numbers; what the wide one adds is A (k^3 - k) / (6 m^3) (1 + (3 k^2 - 2) / (10 m^2) +
...), m the middle of its x. Only the first term is summed, in single precision and a few neighbors
at a time. Early on, where the rest is not yet negligible (`resampling.series`), every vertex is
evaluated by itself; so is every failure and every tie.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from abstain._foundation import checks
from abstain._foundation.optional_packages import load_kernels
from abstain.inference.draws import BLOCK, Draws
from abstain.inference.resampling import plain
from abstain.inference.resampling.order import Ordered, ordered
from abstain.inference.resampling.series import CountSeries, Rest, WantedAreas, tables
from abstain.typing import Array, FloatArray

__all__ = ["Areas", "Ordered", "ordered", "over", "resampled_areas"]

#: The rows of what the kernels return.
_ROWS = ("total", "risk", "augrc", "aurc", "aurc_plugin")

#: Blocks that are worked on at a time, if there are so many processors.
_THREADS = 2

#: Whole numbers up to this are exact in single precision.
_EXACT = 1 << 24

#: Below this many (score, resample, sample) triples NumPy is done before numba has started.
COMPILED_FROM = 1 << 27

T = TypeVar("T")
R = TypeVar("R")


class Kernels(Protocol):
    """What both modules offer.

    Areas are returned as total weight, risk, AUGRC, AURC and plug-in AURC, shape (5, b).
    """

    def tally(self, drawn: Array, counts: Array, first: int) -> Array:
        """Count the units drawn, (r, k), into the columns from `first` on; widen if needed."""
        ...

    def prepare(self, counts: Array) -> Any:
        """Bring counts of shape (n, b) into the form that the areas are computed from."""
        ...

    def failures_only(
        self, block: Any, one: Ordered, tables: CountSeries, wanted: WantedAreas, rest: Rest
    ) -> FloatArray:
        """Return the areas of 0/1 losses without weights."""
        ...

    def every_sample(
        self, block: Any, one: Ordered, tables: CountSeries, wanted: WantedAreas
    ) -> FloatArray:
        """Return the areas of any losses and weights."""
        ...


NUMPY = cast("Kernels", plain)


def kernels(work: float = float("inf")) -> Kernels:
    """Return the compiled kernels, or those of NumPy.

    NumPy serves without numba, if ABSTAIN_NO_NUMBA is 1, and for little work.
    """
    found = None if work < COMPILED_FROM else load_kernels("abstain.inference.resampling.compiled")
    return found or NUMPY


@dataclass(frozen=True, eq=False)
class Areas:
    """What each resample of each score gives; arrays of shape (sets, resamples)."""

    #: Weight of all samples.
    total: FloatArray
    #: Mean loss; NaN without any weight, as the areas.
    risk: FloatArray
    #: The areas that were asked for.
    of: Mapping[str, FloatArray]


def resampled_areas(
    sets: Sequence[Ordered],
    draws: Draws,
    wanted: frozenset[str] = frozenset({"augrc", "aurc"}),
    *,
    threads: int | None = None,
    run: Kernels | None = None,
) -> Areas:
    """Compute areas of every resample of every score, a block of resamples at a time.

    The plug-in AURC is for sets without weights. As many `threads` work on a block each as there
    are processors available, at most two, by default, which the numbers do not depend on; only one
    block of counts for each is held. What is compiled does the work where that pays, else NumPy.
    """
    run = run or kernels(float(len(sets)) * draws.resamples * draws.n)
    kept = [i for i, name in enumerate(_ROWS) if i < 2 or name in wanted]
    out = np.empty((len(kept), len(sets), draws.resamples))
    need = WantedAreas("aurc" in wanted, "aurc_plugin" in wanted)
    clustered = draws.cluster is not None

    def work(block: int) -> None:
        counts = draws.counts(block, run)
        columns = slice(BLOCK * block, BLOCK * block + counts.shape[1])
        for i, values in enumerate(_of_block(sets, counts, need, run, clustered=clustered)):
            out[:, i, columns] = values[kept]

    over(work, range(draws.blocks), threads)
    return Areas(out[0], out[1], {_ROWS[row]: out[i] for i, row in enumerate(kept) if row > 1})


def over(work: Callable[[T], R], items: Sequence[T], threads: int | None) -> list[R]:
    """Return what `work` makes of each item, several at a time; an error of one is raised."""
    affinity = getattr(os, "sched_getaffinity", None)
    available = len(affinity(0)) if affinity else os.cpu_count() or 1
    asked = _THREADS if threads is None else checks.positive_int(threads, "threads")
    used = min(asked, available, len(items))
    if used <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(used) as pool:
        return list(pool.map(work, items))


def _of_block(
    sets: Sequence[Ordered], counts: Array, wanted: WantedAreas, run: Kernels, *, clustered: bool
) -> Iterator[FloatArray]:
    most = int(counts.sum(axis=0, dtype=np.int64).max())
    block, table = run.prepare(counts), tables(most)
    rest = Rest.of(counts, most, clustered=clustered)
    for one in sets:
        if one.failures_only and most < _EXACT:
            yield run.failures_only(block, one, table, wanted, rest)
        else:
            yield run.every_sample(block, one, table, wanted)
