"""CWSA at many thresholds from one pass: what lies between two thresholds is summed once.

Thresholds part the confidences into bins. A bin keeps its weight and the sums of weight x d^m, d
the distance from its lower end and m up to the power of the ramp, of what is right and of what is
wrong. From the highest threshold down, the same sums over all that is accepted follow bin by bin,
by (d + h)^m where the end moves down by h. Nothing is ever subtracted, so that they are as exact as
sums over the samples themselves.
"""

from math import comb
from typing import Any

import numpy as np

from abstain._foundation.arrays import of_numpy
from abstain._foundation.scored import Scored
from abstain.curves.bin_sums import BLOCK, Cells
from abstain.metrics.confidence_weighted.sums import RAMPS, Ramp, Sums, sums_at
from abstain.typing import Array, FloatArray, IntArray

_POWERS = (("step", 0), ("linear", 1), ("quadratic", 2))


def sums_at_each(s: Scored, thresholds: FloatArray, ramp: Ramp) -> list[Sums]:
    """Return `sums_at` of each threshold, in the order given."""
    power = next((power for name, power in _POWERS if ramp is RAMPS[name]), None)
    p = s.shown
    if power is None or not of_numpy(p) or s.groups_given is not None or not thresholds.size:
        return [sums_at(s, float(t), ramp) for t in thresholds]
    at = thresholds.astype(p.dtype)
    # Reached in the precision of the confidences, but on the ramp only beyond the threshold itself.
    beyond = np.where(at > thresholds, at, np.nextafter(at, p.dtype.type(2)))
    ends = np.unique(np.concatenate((at, beyond)))
    count, moments = _above(s, ends, power)
    reached = np.searchsorted(ends, at)
    climbing = np.searchsorted(ends, beyond) if power else reached
    rise = ends[climbing] - thresholds
    climbed = sum(
        comb(power, k) * moments[:, k, climbing] * rise ** (power - k) for k in range(power + 1)
    )
    right, wrong = climbed / (1.0 - thresholds) ** power
    good, bad = moments[:, 0, reached]
    return [
        Sums(
            signed=float(right[i] - wrong[i]),
            correct=float(right[i]),
            right=float(good[i]),
            weight=float(good[i] + bad[i]),
            total=s.total,
            count=int(count[place]),
        )
        for i, place in enumerate(reached)
    ]


def _above(s: Scored, ends: Array, power: int) -> tuple[IntArray, FloatArray]:
    """Return what is at each of t ends or above it: number, (t,), and sums, (2, power + 1, t)."""
    cells = Cells(ends, "right", s.loss.dtype.kind == "b")
    parts = [
        _between(s, slice(start, start + BLOCK), cells, power) for start in range(0, s.n, BLOCK)
    ]
    # Nothing is asked of what lies below all ends.
    count = np.sum([part[0] for part in parts], axis=0)[1:]
    sums = np.sum([part[1] for part in parts], axis=0)[..., 1:]
    width = np.diff(ends.astype(np.float64))
    for m in range(power + 1):
        for k in range(m):
            sums[:, m, :-1] += comb(m, k) * sums[:, k, 1:] * width ** (m - k)
        sums[:, m] = sums[:, m, ::-1].cumsum(axis=1)[:, ::-1]
    return count[::-1].cumsum()[::-1], sums


def _between(s: Scored, rows: slice, cells: Cells, power: int) -> tuple[IntArray, FloatArray]:
    """Return the same of what is at each end or above it, but below the next; first below all."""
    p, loss = s.shown[rows], s.loss[rows]
    weight = None if s.weight is None else s.weight[rows]
    place, index = cells.places(p, loss)
    lower = np.append(0.0, cells.inner.astype(np.float64))
    distance = p - lower.take(place) if power else p
    kinds = [weight] if cells.parted else _right_wrong(loss, weight)
    sums = np.empty((2, power + 1, cells.bins))
    for m in range(power + 1):
        sums[:, m] = np.concatenate([cells.sums(index, kind) for kind in kinds])
        if m < power:
            kinds = [distance if kind is None else kind * distance for kind in kinds]
    there = None if weight is None else weight > 0
    return cells.sums(index, there).sum(axis=0).astype(np.int64), sums


def _right_wrong(loss: Array, weight: FloatArray | None) -> list[Any]:
    """Return how much of each sample is right, and how much is wrong."""
    wrong = loss.astype(np.float64) if weight is None else loss * weight
    return [(1.0 if weight is None else weight) - wrong, wrong]
