"""Order, ties and weights, once: samples grouped by equal confidence, most confident first.

Every curve and every area metric is a function of these groups, so ties and weights are
handled here and nowhere else. A group's members share one threshold: they are accepted or
rejected together.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from abstain._foundation.arrays import sealed
from abstain._foundation.packed import grouped
from abstain.typing import Array, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class TieGroups:
    """The distinct confidences in descending order, with what lies at each.

    Attributes
    ----------
    confidence : ndarray of shape (g,)
        Distinct values, strictly decreasing.
    weight : ndarray of shape (g,)
        Sum of the sample weights; the number of samples when there are none.
    loss : ndarray of shape (g,)
        Sum of weight x loss.
    count : ndarray of shape (g,)
        Number of samples.
    """

    confidence: Array
    weight: FloatArray
    loss: FloatArray
    count: IntArray

    def __post_init__(self) -> None:
        """Seal the arrays: curves and metrics share them."""
        for name in ("confidence", "weight", "loss", "count"):
            object.__setattr__(self, name, sealed(getattr(self, name)))

    @cached_property
    def through(self) -> FloatArray:
        """Weight accepted when the threshold is each confidence, shape (g,)."""
        return sealed(np.cumsum(self.weight))

    @cached_property
    def above(self) -> FloatArray:
        """Weight strictly more confident than each group, shape (g,)."""
        return sealed(self.through - self.weight)

    @cached_property
    def loss_through(self) -> FloatArray:
        """Loss mass accepted when the threshold is each confidence, shape (g,)."""
        return sealed(np.cumsum(self.loss))

    @cached_property
    def count_through(self) -> IntArray:
        """Samples accepted when the threshold is each confidence, shape (g,)."""
        return sealed(np.cumsum(self.count))

    @property
    def total(self) -> float:
        """Weight of all samples."""
        return float(self.through[-1])

    @property
    def risk(self) -> float:
        """Mean loss of all samples: the risk at full coverage."""
        return float(self.loss_through[-1]) / self.total

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.count_through[-1])

    @property
    def tied(self) -> int:
        """Number of samples that share their confidence with another sample."""
        return int(self.count[self.count > 1].sum())


def reached(groups: TieGroups, threshold: float | FloatArray) -> IntArray:
    """Return how many groups have confidence >= threshold, for one threshold or many.

    Compared in the precision of the confidences, as NumPy and PyTorch compare an array with a
    number: a float32 0.9 reaches the threshold 0.9.
    """
    with np.errstate(over="ignore"):
        at = np.asarray(threshold).astype(groups.confidence.dtype)
    return np.searchsorted(-groups.confidence, -at, side="right")


def group_ties(confidence: Array, loss: Array, weight: FloatArray | None = None) -> TieGroups:
    """Group validated samples by confidence; samples of weight 0 are left out."""
    if weight is not None and not weight.all():
        kept = weight > 0
        confidence, loss, weight = confidence[kept], loss[kept], weight[kept]
    quick = grouped(confidence, loss, weight)
    if quick is not None:
        return TieGroups(*quick)
    order = np.argsort(confidence, kind="stable")[::-1]
    ordered = confidence[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    count = np.diff(starts, append=ordered.size)
    mass = loss[order].astype(np.float64)
    if weight is None:
        return TieGroups(
            ordered[starts], count.astype(np.float64), np.add.reduceat(mass, starts), count
        )
    weight = weight[order]
    return TieGroups(
        ordered[starts],
        np.add.reduceat(weight, starts),
        np.add.reduceat(mass * weight, starts),
        count,
    )


def untied_order(
    confidence: Array, loss: Array, weight: FloatArray | None, *, best: bool
) -> IntArray:
    """Return the samples from the most to the least confident, ties resolved by loss.

    Within a tie group the lower loss comes first for the best order, the higher for the worst.
    """
    key = loss.astype(np.float64)
    order: IntArray = np.lexsort((key if best else -key, -confidence.astype(np.float64)))
    return order if weight is None else order[weight[order] > 0]


def untied_failures(groups: TieGroups, *, best: bool) -> BoolArray:
    """Return the 0/1 losses of unweighted samples in the order of `untied_order`, unsorted.

    Within a group only the number of failures matters, so nothing needs a second sort.
    """
    failed = groups.loss.astype(np.int64)
    parts = (groups.count - failed, failed) if best else (failed, groups.count - failed)
    kinds = np.tile(np.array([not best, best]), failed.size)
    return np.repeat(kinds, np.column_stack(parts).ravel())


def group_index(groups: TieGroups, confidence: Array) -> IntArray:
    """Return the group of each sample, shape (n,); -1 for one that was left out."""
    ascending = groups.confidence[::-1]
    place = np.searchsorted(ascending, confidence)
    found = ascending[np.minimum(place, ascending.size - 1)] == confidence
    return np.where(found, ascending.size - 1 - place, -1)


def home_in(groups: TieGroups, confidence: Array, weight: FloatArray | None) -> IntArray:
    """Return the group of each of the samples that were grouped, shape (n,); -1 for weight 0."""
    all_in = weight is None or bool((weight > 0).all())
    if groups.n != confidence.size or not all_in:
        found = group_index(groups, confidence)
        return found if weight is None else np.where(weight > 0, found, -1)
    # Sorting and counting off is many times faster than searching each sample's group.
    out = np.empty(confidence.size, dtype=np.int64)
    out[np.argsort(-confidence)] = np.repeat(np.arange(groups.count.size), groups.count)
    return out
