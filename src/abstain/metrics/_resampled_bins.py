"""The ECE of every resample, for many scores at once: which bin a sample is in never changes.

So a resample is a sum of counts for each bin, and clusters are summed within each bin beforehand.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from abstain._foundation.bins import equal_width_bins
from abstain._foundation.scored import Scored
from abstain.inference.draws import BLOCK, Draws
from abstain.inference.replicates import over
from abstain.typing import Array, FloatArray, IntArray

#: As many as the ECE of the catalogue has.
_BINS = 15

#: Above this many clusters most of what a bin holds of each is nothing.
_FEW = 4096


def ece_replicates(
    scored_sets: Sequence[Scored], draws: Draws, *, threads: int | None = None
) -> FloatArray:
    """Compute the ECE (15 bins of equal width) of every resample, shape (sets, resamples).

    NaN where nothing that was drawn has a weight.
    """
    # A row of each cluster stands for all: they are drawn whole.
    first = None if draws.cluster is None else np.unique(draws.cluster, return_index=True)[1]
    tables = [_table(s, draws.cluster) for s in scored_sets]
    if first is not None and first.size <= _FEW:
        tables = [np.vstack([table.toarray() for table in tables])]
    out = np.empty((len(scored_sets), draws.resamples))

    def work(block: int) -> None:
        counts = draws.counts(block)
        counts = (counts if first is None else counts[first]).astype(np.float64)
        sums = np.vstack([table @ counts for table in tables])
        out[:, BLOCK * block : BLOCK * block + counts.shape[1]] = _of_sums(sums)

    over(work, range(draws.blocks), threads)
    return out


def _table(s: Scored, cluster: IntArray | None) -> Any:
    """Return what each unit adds to the gap of each bin and, in the last row, to the weight."""
    from scipy.sparse import csr_matrix

    index = equal_width_bins(s.probability_groups, _BINS)[0]
    rows = np.flatnonzero(s.probability_home >= 0)
    weight = np.ones(rows.size) if s.weight is None else s.weight[rows]
    home = s.probability_home[rows]
    p = s.probability_groups.confidence[home].astype(np.float64)
    gap = weight * (1.0 - s.loss[rows].astype(np.float64) - p)
    unit = rows if cluster is None else cluster[rows]
    units = s.n if cluster is None else int(cluster.max()) + 1
    place: Array = np.concatenate((index[home], np.full(rows.size, _BINS)))
    entries = (np.concatenate((gap, weight)), (place, np.concatenate((unit, unit))))
    return csr_matrix(entries, shape=(_BINS + 1, units))


def _of_sums(sums: FloatArray) -> FloatArray:
    """Turn the sums, (sets times bins and weight, b), into one ECE a set and resample."""
    sums = sums.reshape(-1, _BINS + 1, sums.shape[1])
    gaps, weight = np.abs(sums[:, :_BINS]).sum(axis=1), sums[:, _BINS]
    out: FloatArray = np.full(weight.shape, np.nan)
    np.divide(gaps, weight, out=out, where=weight > 0)
    return out
