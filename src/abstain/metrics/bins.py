"""Calibration errors from bins: of a `Scored` that meets the needs, and of every resample."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from abstain._foundation.arrays import namespace, of_numpy
from abstain._foundation.foreign import numbers_beside, scalar, value_from, without_gradient
from abstain._foundation.measurement import Measured
from abstain._foundation.scored import Scored
from abstain.curves.bin_sums import bin_sums
from abstain.curves.reliability import Binning, bin_means, reliability_of
from abstain.inference.draws import BLOCK, Draws
from abstain.inference.replicates import over
from abstain.metrics.class_views import probabilities_of, view_of
from abstain.typing import Array, FloatArray, IntArray, Scalar

#: Probabilities that are binned at once.
_BLOCK = 1 << 20


def ece_of(s: Scored, bins: int = 15, binning: Binning = "equal_width") -> Measured:
    """Mean gap between confidence and accuracy over right-closed bins."""
    curve = reliability_of(s, bins, binning)
    return Measured(_mean(curve.weight, curve.accuracy - curve.confidence, curve.total))


def _mean(weight: FloatArray, difference: FloatArray, total: float) -> Scalar:
    gap, mass = _gaps(weight, difference)
    return scalar(namespace(mass).sum(gap * mass) / total)


def _gaps(weight: FloatArray, difference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return gap and weight of the bins that hold a sample: an empty one has no accuracy."""
    held = weight > 0
    return namespace(weight).abs(difference[held]), weight[held]


def ece_right_open_of(s: Scored, bins: int) -> Measured:
    """Mean gap over bins [a, b): a confidence of 1.0 is in none, and still divided by."""
    # linspace, as the code that is reproduced: its edges decide where ties with them go. One bin
    # more than asked for takes the confidence 1.0, and is left out of the sum.
    edges = numbers_beside(np.linspace(0.0, 1.0, bins + 1)[1:], s.shown)
    sums = bin_sums(s, edges, side="right")
    mean_p, accuracy = bin_means(sums)
    total = float(namespace(sums.weight).sum(sums.weight))
    return Measured(_mean(sums.weight[:bins], (accuracy - mean_p)[:bins], total))


def mce_of(s: Scored, bins: int = 15, binning: Binning = "equal_width") -> Measured:
    """Largest gap of all bins that hold a sample."""
    curve = reliability_of(s, bins, binning)
    gap, _ = _gaps(curve.weight, curve.accuracy - curve.confidence)
    return Measured(scalar(s.xp.max(gap)))


def classwise_ece_of(s: Scored, bins: int = 15, binning: Binning = "equal_width") -> Measured:
    """Mean over classes of the gap between class probability and class frequency."""
    view = view_of(s)
    # Rounding may leave a probability a hair outside [0, 1], beyond the last bin.
    p = probabilities_of(view)
    p = value_from(p, namespace(p).clip(without_gradient(p), 0.0, 1.0))
    if of_numpy(p) and binning == "equal_width":
        return Measured(_classwise_error(p, view.labels, s.weight, bins))
    each = (Scored(p[:, k], view.labels != k, s.weight, p[:, k]) for k in range(p.shape[1]))
    return Measured(sum(ece_of(one, bins, binning).value for one in each) / p.shape[1])


def _classwise_error(
    p: FloatArray, labels: IntArray, weight: FloatArray | None, bins: int
) -> float:
    """Sum the gaps of many classes at once: bins of equal width need no order of the samples.

    The weight of a bin times its gap is what it holds of the class less what it promises of it.
    """
    n, classes = p.shape
    w = np.ones(n) if weight is None else weight
    # As in `equal_width_bins`: in the precision of the probabilities.
    inner = (np.arange(1, bins) / bins).astype(p.dtype)
    gaps, step = 0.0, max(_BLOCK // n, 1)
    for start in range(0, classes, step):
        part = p[:, start : start + step]
        width = part.shape[1]
        cell = np.searchsorted(inner, part, side="left") + bins * np.arange(width)
        promised = np.bincount(cell.ravel(), (w[:, None] * part).ravel(), bins * width)
        rows = np.flatnonzero((labels >= start) & (labels < start + width))
        held = np.bincount(cell[rows, labels[rows] - start], w[rows], bins * width)
        gaps += float(np.abs(held - promised).sum())
    out: float = gaps / (w.sum() * classes)
    return out


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

    rows = np.arange(s.n) if s.weight is None else np.flatnonzero(s.weight > 0)
    weight = np.ones(rows.size) if s.weight is None else s.weight[rows]
    p = s.shown[rows]
    inner = (np.arange(1, _BINS) / _BINS).astype(p.dtype)
    gap = weight * (1.0 - s.loss[rows].astype(np.float64) - p.astype(np.float64))
    unit = rows if cluster is None else cluster[rows]
    units = s.n if cluster is None else int(cluster.max()) + 1
    place: Array = np.concatenate((np.searchsorted(inner, p), np.full(rows.size, _BINS)))
    entries = (np.concatenate((gap, weight)), (place, np.concatenate((unit, unit))))
    return csr_matrix(entries, shape=(_BINS + 1, units))


def _of_sums(sums: FloatArray) -> FloatArray:
    """Turn the sums, (sets times bins and weight, b), into one ECE a set and resample."""
    sums = sums.reshape(-1, _BINS + 1, sums.shape[1])
    gaps, weight = np.abs(sums[:, :_BINS]).sum(axis=1), sums[:, _BINS]
    out: FloatArray = np.full(weight.shape, np.nan)
    np.divide(gaps, weight, out=out, where=weight > 0)
    return out
