"""Bootstrap resamples, which are stored as counts of samples.

A resample is stored as the number of times that each sample is drawn. Comparisons are paired,
because all scores and metrics use the same counts.
"""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.names import validate_codes
from abstain._foundation.random import as_seed
from abstain.errors import InputError, ShapeError
from abstain.inference.resampling import numpy_kernels
from abstain.typing import Array, FloatArray, IntArray, Rng

#: Number of resamples in a block. The resamples of a block share a stream of random numbers.
BLOCK_SIZE = 64

#: Maximum number of random numbers in memory.
_MAX_RANDOM_NUMBERS = 1 << 20

#: Function of counts of shape (n, b) that returns values of shape (..., b).
Statistic: TypeAlias = Callable[[Array], Array]


class _Pools(NamedTuple):
    """Samples or clusters sorted by stratum, and the stratum of each draw."""

    #: Shape (n_units,). Indices of the samples or clusters, sorted by stratum.
    units: IntArray
    #: Shape (n_drawn,). Start and size of the stratum of each draw, as positions in `units`.
    stratum_start: IntArray
    stratum_size: IntArray


@dataclass(frozen=True, eq=False)
class Draws:
    """Plan of bootstrap resamples. Iteration yields counts of shape (n, b) with b <= 64.

    The counts of a resample depend only on the seed and on its index, so blocks can be drawn in any
    order.

    Attributes
    ----------
    n : int
        Number of samples.
    resamples : int
        Number of resamples.
    strata : ndarray of shape (n,) or None
        Codes of the strata. Each resample draws a fixed number of units from each stratum.
    cluster : ndarray of shape (n,) or None
        Codes of the clusters. Each draw selects an entire cluster, and each cluster lies in one
        stratum.
    size : int or None
        Number of units in a resample, divided among the strata in proportion to their sizes. A unit
        is a cluster, or a sample if there are no clusters. If None, a resample has as many units as
        the data.
    seed : int
        Seed of the plan. To create the same plan again, pass the seed as `rng`.
    """

    n: int
    resamples: int
    _: KW_ONLY
    rng: InitVar[Rng]
    strata: Array | None = field(default=None, repr=False)
    cluster: Array | None = field(default=None, repr=False)
    size: int | None = None
    seed: int = field(init=False)

    def __post_init__(self, rng: Rng) -> None:
        """Validate the fields, convert names to codes and draw the seed from the generator."""
        checks.positive_int(self.n, "n")
        checks.positive_int(self.resamples, "resamples")
        object.__setattr__(self, "seed", as_seed(rng))
        for name in ("strata", "cluster"):
            names = getattr(self, name)
            codes = None if names is None else validate_codes(names, name, self.n)
            object.__setattr__(self, name, codes)
        if self.size is not None:
            checks.positive_int(self.size, "size")
        _ = self._pools

    @property
    def description(self) -> str:
        """Description of the sampling scheme, such as "stratified, by cluster"."""
        properties = []
        if self.strata is not None:
            properties.append("stratified")
        if self.cluster is not None:
            properties.append("by cluster")
        if self.size is not None:
            properties.append(f"{self.size} of {self.n_units}")
        return ", ".join(properties) or "i.i.d."

    @property
    def n_units(self) -> int:
        """Number of clusters, or number of samples if there are no clusters."""
        return self.n if self.cluster is None else int(self.cluster.max()) + 1

    @property
    def n_blocks(self) -> int:
        """Number of blocks of resamples."""
        return -(-self.resamples // BLOCK_SIZE)

    def __iter__(self) -> Iterator[Array]:
        """Yield the counts of each block of resamples."""
        return map(self.counts, range(self.n_blocks))

    def counts(self, block: int, kernels: Any = numpy_kernels) -> Array:
        """Draw the counts of each sample in one block of resamples, shape (n, b).

        The counts have the smallest sufficient unsigned integer type, usually uint8.
        """
        counts = np.zeros((self.n_units, self.n_resamples_in_block(block)), np.uint8)
        n_counted = 0
        for units in self._sample_units(block):
            counts = kernels.tally(units, counts, n_counted)
            n_counted += len(units)
        return counts if self.cluster is None else counts[self.cluster]

    def n_resamples_in_block(self, block: int) -> int:
        """Return the number of resamples in a block, which is 64 except in the last block."""
        return min(BLOCK_SIZE, self.resamples - block * BLOCK_SIZE)

    def _sample_units(self, block: int) -> Iterator[Array]:
        """Yield the drawn units of a few resamples at a time, shape (resamples, n_drawn)."""
        stream = np.random.SeedSequence(self.seed, spawn_key=(block,))
        rng = np.random.Generator(np.random.SFC64(stream))
        n_drawn = self.size or self.n_units
        n_resamples = self.n_resamples_in_block(block)
        step = max(1, _MAX_RANDOM_NUMBERS // n_drawn)
        for start in range(0, n_resamples, step):
            yield self._random_units(rng, (min(step, n_resamples - start), n_drawn))

    def _random_units(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Draw units at random, within the strata if there are any, and return their indices."""
        pools = self._pools
        if pools is None:
            return rng.integers(self.n_units, size=shape, dtype=np.uint32)
        offset = (rng.random(shape) * pools.stratum_size).astype(np.int64)
        offset = np.minimum(offset, pools.stratum_size - 1)
        units: Array = pools.units[pools.stratum_start + offset].astype(np.uint32)
        return units

    @cached_property
    def _pools(self) -> _Pools | None:
        """Sort the units by stratum, or return None without strata."""
        if self.strata is None:
            return None
        stratum_of_unit = self.strata
        if self.cluster is not None:
            stratum_of_unit = _strata_of_clusters(self.cluster, self.strata)
        sizes = np.bincount(stratum_of_unit)
        n_drawn = sizes if self.size is None else _divide_in_proportion(self.size, sizes)
        starts = np.cumsum(sizes) - sizes
        return _Pools(
            units=np.argsort(stratum_of_unit, kind="stable"),
            stratum_start=np.repeat(starts, n_drawn),
            stratum_size=np.repeat(sizes, n_drawn),
        )


def bootstrap(statistic: Statistic, draws: Draws) -> FloatArray:
    """Compute a statistic of every resample.

    Parameters
    ----------
    statistic : callable
        Function of counts of shape (n, b). Each count is the number of times that a sample occurs
        in a resample. The function returns values of shape (..., b), with NaN for undefined values.
    draws : Draws
        The plan of resamples.

    Returns
    -------
    ndarray of shape (..., resamples)
        The value of the statistic for each resample.
    """
    out: FloatArray | None = None
    for block, counts in enumerate(draws):
        values = np.asarray(statistic(counts), np.float64)
        if not values.ndim or values.shape[-1] != counts.shape[1]:
            raise ShapeError(
                "`statistic` must return one value for each of the "
                f"{counts.shape[1]} resamples on its last axis; got shape {values.shape}"
            )
        if out is None:
            out = np.empty((*values.shape[:-1], draws.resamples))
        start = block * BLOCK_SIZE
        out[..., start : start + values.shape[-1]] = values
    return np.empty(0) if out is None else out


def _strata_of_clusters(cluster: IntArray, strata: IntArray) -> IntArray:
    """Return the stratum of each cluster, or raise InputError if a cluster spans two strata."""
    stratum_of_cluster = np.empty(int(cluster.max()) + 1, np.int64)
    stratum_of_cluster[cluster] = strata
    inconsistent = np.flatnonzero(stratum_of_cluster[cluster] != strata)
    if inconsistent.size:
        raise InputError(
            "each `cluster` must lie in one of the `strata`, so that whole clusters can be drawn; "
            f"sample {inconsistent[0]} is in another stratum than the other samples of its cluster"
        )
    return stratum_of_cluster


def _divide_in_proportion(total: int, sizes: IntArray) -> IntArray:
    """Divide `total` in proportion to `sizes`, where the largest remainders are rounded up."""
    exact: FloatArray = total * sizes / sizes.sum()
    shares = np.floor(exact).astype(np.int64)
    n_missing = total - int(shares.sum())
    by_remainder = np.argsort(shares - exact, kind="stable")
    shares[by_remainder[:n_missing]] += 1
    return shares
