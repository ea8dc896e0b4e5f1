"""Areas under risk-coverage curves of every resample, computed for many scores at once.

Each score is sorted only once, because a resample changes only the counts of the samples. The areas
are computed from cumulative sums of the counts in the order of the score. Two facts save most of
the work for 0/1 losses:

- AUGRC and plug-in AURC depend only on the counts and ranks of the failures.
- Between two failures, the selective risk is F/x for F accepted failures among x accepted samples.
  A success that is drawn k times adds a trapezoid of width k to the trapezoid AURC. If the curve
  had k trapezoids of width 1 instead, the success would add a difference of two harmonic numbers.
  The difference between the areas is F (k^3 - k) / (6 m^3) (1 + (3 k^2 - 2) / (10 m^2) + ...),
  where m is the center of the trapezoid.

The kernels sum only the first term of this series, in single precision. The areas of failures, of
ties, and of samples for which the other terms are not negligible are computed exactly.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import load_kernels
from abstain.inference.draws import BLOCK_SIZE, Draws
from abstain.inference.resampling import numpy_kernels
from abstain.inference.resampling.sorted_samples import (
    CountMoments,
    HarmonicTables,
    RequestedAreas,
    SortedSamples,
    harmonic_tables,
    sort_samples,
)
from abstain.typing import Array, FloatArray

__all__ = ["ResampledAreas", "SortedSamples", "map_in_threads", "resampled_areas", "sort_samples"]

#: Names of the rows that the kernels return.
_ROWS = ("total", "risk", "augrc", "aurc", "aurc_plugin")

#: Number of rows that are always returned.
_N_FIXED_ROWS = 2

#: Maximum of the default number of threads, which is the number of available processors.
_DEFAULT_THREADS = 2

#: Largest integer up to which all integers are exact in single precision.
_MAX_EXACT_FLOAT32 = 1 << 24

#: Minimum product of the numbers of scores, resamples and samples for which numba saves time.
MIN_WORK_FOR_NUMBA = 1 << 27

T = TypeVar("T")
R = TypeVar("R")


class Kernels(Protocol):
    """Functions that `numpy_kernels` and `numba_kernels` implement.

    Areas have the shape (5, b), with one row each for total weight, risk, AUGRC, AURC and plug-in
    AURC.
    """

    def tally(self, sampled_units: Array, counts: Array, first_column: int) -> Array:
        """Write into `counts` how often each resample contains each sample or cluster.

        Row j of `sampled_units`, shape (r, k), contains the indices that resample j draws. The
        counts of resample j are written to the column `first_column` + j.
        """
        ...

    def prepare(self, counts: Array) -> Any:
        """Convert counts of shape (n, b) to the block from which the areas are computed."""
        ...

    def areas_of_binary_loss(
        self,
        block: Any,
        samples: SortedSamples,
        tables: HarmonicTables,
        requested: RequestedAreas,
        moments: CountMoments,
    ) -> FloatArray:
        """Compute the areas of unweighted 0/1 losses."""
        ...

    def areas_of_any_loss(
        self,
        block: Any,
        samples: SortedSamples,
        tables: HarmonicTables,
        requested: RequestedAreas,
    ) -> FloatArray:
        """Compute the areas of any losses and weights."""
        ...


NUMPY_KERNELS = cast("Kernels", numpy_kernels)


def select_kernels(work: float = float("inf")) -> Kernels:
    """Return the numba kernels if numba is available and saves time, or the NumPy kernels.

    `work` is the product of the numbers of scores, resamples and samples. If ABSTAIN_NO_NUMBA is 1,
    the function returns the NumPy kernels.
    """
    if work < MIN_WORK_FOR_NUMBA:
        return NUMPY_KERNELS
    return load_kernels("abstain.inference.resampling.numba_kernels") or NUMPY_KERNELS


@dataclass(frozen=True, eq=False)
class ResampledAreas:
    """Areas of each resample of each score as arrays of shape (scores, resamples)."""

    #: Total weight of the samples.
    total: FloatArray
    #: Mean loss. If the total weight is 0, the mean loss and the areas are NaN.
    risk: FloatArray
    #: The requested areas.
    by_name: Mapping[str, FloatArray]


def resampled_areas(
    score_sets: Sequence[SortedSamples],
    draws: Draws,
    area_names: frozenset[str] = frozenset({"augrc", "aurc"}),
    *,
    n_threads: int | None = None,
    kernels: Kernels | None = None,
) -> ResampledAreas:
    """Compute areas of every resample of every score.

    The plug-in AURC requires samples without weights. By default, the function uses at most two
    threads. The result does not depend on the number of threads.
    """
    work = float(len(score_sets)) * draws.resamples * draws.n
    kernels = kernels or select_kernels(work)
    rows = [i for i, name in enumerate(_ROWS) if i < _N_FIXED_ROWS or name in area_names]
    out = np.empty((len(rows), len(score_sets), draws.resamples))
    requested = RequestedAreas("aurc" in area_names, "aurc_plugin" in area_names)
    clustered = draws.cluster is not None

    def compute_block(block: int) -> None:
        counts = draws.counts(block, kernels)
        start = BLOCK_SIZE * block
        resamples = slice(start, start + counts.shape[1])
        areas = _areas_by_score(score_sets, counts, requested, kernels, clustered=clustered)
        for score, areas_of_score in enumerate(areas):
            out[:, score, resamples] = areas_of_score[rows]

    map_in_threads(compute_block, range(draws.n_blocks), n_threads)
    by_name = {_ROWS[row]: out[i] for i, row in enumerate(rows) if row >= _N_FIXED_ROWS}
    return ResampledAreas(out[0], out[1], by_name)


def map_in_threads(
    function: Callable[[T], R], items: Sequence[T], n_threads: int | None
) -> list[R]:
    """Apply a function to each item in several threads, and raise the first exception."""
    requested = _DEFAULT_THREADS
    if n_threads is not None:
        requested = checks.positive_int(n_threads, "threads")
    n_workers = min(requested, _n_processors(), len(items))
    if n_workers <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(n_workers) as pool:
        return list(pool.map(function, items))


def _n_processors() -> int:
    """Return the number of processors that this process may use."""
    get_affinity = getattr(os, "sched_getaffinity", None)
    if get_affinity is None:
        return os.cpu_count() or 1
    return len(get_affinity(0))


def _areas_by_score(
    score_sets: Sequence[SortedSamples],
    counts: Array,
    requested: RequestedAreas,
    kernels: Kernels,
    *,
    clustered: bool,
) -> Iterator[FloatArray]:
    """Yield the areas of one block of resamples for each score."""
    max_total = int(counts.sum(axis=0, dtype=np.int64).max())
    block = kernels.prepare(counts)
    tables = harmonic_tables(max_total)
    moments = CountMoments.from_counts(counts, max_total, clustered=clustered)
    for samples in score_sets:
        if samples.has_unweighted_binary_loss and max_total < _MAX_EXACT_FLOAT32:
            yield kernels.areas_of_binary_loss(block, samples, tables, requested, moments)
        else:
            yield kernels.areas_of_any_loss(block, samples, tables, requested)
