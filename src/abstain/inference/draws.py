"""Which samples a resample holds, as counts: drawn once, shared by all that is resampled.

A resample is never a copy of rows but a number for each sample: how often it was drawn. Scores
and metrics evaluated on the same counts are paired by construction.
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
from abstain.inference.resampling import plain
from abstain.typing import Array, FloatArray, IntArray, Rng

#: Resamples that share a stream of random numbers; a block of counts holds so many at most.
BLOCK = 64

#: Random numbers that are held at a time.
_AT_A_TIME = 1 << 20

#: From counts of shape (n, b) to values of shape (..., b).
Statistic: TypeAlias = Callable[[Array], Array]


class _Pools(NamedTuple):
    """The units to draw from, sorted by stratum, and for each draw the pool it comes from."""

    units: IntArray
    start: IntArray
    size: IntArray


@dataclass(frozen=True, eq=False)
class Draws:
    """A plan of resamples; iterating gives blocks of counts, each of shape (n, b), b <= 64.

    The counts of a resample depend on the seed and on its own number only, so any part of the
    plan can be drawn by itself, in any order and by any thread.

    Attributes
    ----------
    n : int
        Number of samples.
    resamples : int
        Number of resamples.
    strata : ndarray of shape (n,) or None
        Codes of the strata; a resample draws as many units of each as the data hold.
    cluster : ndarray of shape (n,) or None
        Codes of the clusters, which are drawn whole; each lies in one stratum.
    size : int or None
        Units (samples, or clusters if there are any) in a resample, shared by the strata in
        proportion; as many as the data hold if None.
    seed : int
        Makes the same plan again when passed as `rng`.
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
        """Validate, turn names into codes, and take the seed from the generator."""
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
    def kind(self) -> str:
        """How the samples are drawn, in words."""
        words = [
            "stratified" * (self.strata is not None),
            "by cluster" * (self.cluster is not None),
            f"{self.size} of {self.units}" * (self.size is not None),
        ]
        return ", ".join(filter(None, words)) or "i.i.d."

    @property
    def units(self) -> int:
        """What is drawn: the number of clusters, or of samples when there are none."""
        return self.n if self.cluster is None else int(self.cluster.max()) + 1

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return -(-self.resamples // BLOCK)

    def __iter__(self) -> Iterator[Array]:
        """Draw block after block; only one is held."""
        return map(self.counts, range(self.blocks))

    def counts(self, block: int, run: Any = plain) -> Array:
        """Draw one block: how often each sample is in each of its resamples, shape (n, b).

        In the smallest unsigned integers that hold them, mostly bytes. What counts them, `run`,
        makes no difference to the numbers.
        """
        counts = np.zeros((self.units, self.width(block)), np.uint8)
        done = 0
        for drawn in self._drawn(block):
            counts = run.tally(drawn, counts, done)
            done += len(drawn)
        return counts if self.cluster is None else counts[self.cluster]

    def width(self, block: int) -> int:
        """Return the number of resamples in a block: 64 except in the last."""
        return min(BLOCK, self.resamples - block * BLOCK)

    def _drawn(self, block: int) -> Iterator[Array]:
        """Draw the units of each resample of a block, a few resamples at a time."""
        stream = np.random.SeedSequence(self.seed, spawn_key=(block,))
        rng = np.random.Generator(np.random.SFC64(stream))
        taken = self.size or self.units
        rows = max(1, _AT_A_TIME // taken)
        for first in range(0, self.width(block), rows):
            # One after another from one stream: what is drawn first does not depend on how many
            # follow, nor on how many are drawn at a time.
            shape = (min(rows, self.width(block) - first), taken)
            yield self._units_from(rng, shape)

    def _units_from(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        pools = self._pools
        if pools is None:
            return rng.integers(self.units, size=shape, dtype=np.uint32)
        place = (rng.random(shape) * pools.size).astype(np.int64)
        return pools.units[pools.start + np.minimum(place, pools.size - 1)].astype(np.uint32)

    @cached_property
    def _pools(self) -> _Pools | None:
        if self.strata is None:
            return None
        home = self.strata if self.cluster is None else _strata_of(self.cluster, self.strata)
        held = np.bincount(home)
        quota = held if self.size is None else _shares(held, self.size)
        start = np.cumsum(held) - held
        return _Pools(
            np.argsort(home, kind="stable"), np.repeat(start, quota), np.repeat(held, quota)
        )


def bootstrap(statistic: Statistic, draws: Draws) -> FloatArray:
    """Compute a statistic of every resample, a block of resamples at a time.

    Parameters
    ----------
    statistic : callable
        Takes counts of shape (n, b), how often each of n samples is in each of b resamples, as
        small unsigned integers; returns values of shape (..., b). NaN where undefined.
    draws : Draws
        The plan of resamples.

    Returns
    -------
    ndarray of shape (..., resamples)
        The replicates. Only they and one block of counts are held.
    """
    out: FloatArray | None = None
    for block, counts in enumerate(draws):
        values = np.asarray(statistic(counts), np.float64)
        if not values.ndim or values.shape[-1] != counts.shape[1]:
            raise ShapeError(
                "`statistic` must return one value for each resample on its last axis, which "
                f"holds {counts.shape[1]}; got shape {values.shape}"
            )
        if out is None:
            out = np.empty((*values.shape[:-1], draws.resamples))
        out[..., block * BLOCK : block * BLOCK + values.shape[-1]] = values
    return np.empty(0) if out is None else out


def _strata_of(cluster: IntArray, strata: IntArray) -> IntArray:
    """Return the stratum of each cluster."""
    home = np.empty(int(cluster.max()) + 1, np.int64)
    home[cluster] = strata
    split = np.flatnonzero(home[cluster] != strata)
    if split.size:
        raise InputError(
            "`cluster` must lie within `strata`, so that whole clusters can be drawn from one "
            f"stratum; sample {split[0]} is in another stratum than the rest of its cluster"
        )
    return home


def _shares(held: IntArray, size: int) -> IntArray:
    """Split `size` in proportion, whole units, the largest remainders rounded up."""
    exact: FloatArray = size * held / held.sum()
    quota = np.floor(exact).astype(np.int64)
    short = size - int(quota.sum())
    quota[np.argsort(quota - exact, kind="stable")[:short]] += 1
    return quota
