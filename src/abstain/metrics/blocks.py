"""Samples known by bins only, as those of a stream, and the limits of a metric of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from abstain._foundation.measurement import MetricValue
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups
from abstain.typing import BoolArray, FloatArray, IntArray

Limits: TypeAlias = tuple[float, float]


@dataclass(frozen=True, eq=False)
class FilledBins:
    """The bins that hold samples, most confident first."""

    #: The confidences at the ends of each, shape (b,).
    least: FloatArray
    most: FloatArray
    #: Sums of the weight and of weight x loss, shape (b,).
    weight: FloatArray
    loss: FloatArray
    #: Number of samples, shape (b,).
    count: IntArray
    #: Whether it holds more than one confidence, shape (b,).
    spread: BoolArray
    #: The largest loss of any sample: the loss mass of a block takes at least loss / peak.
    peak: float
    #: Bits in which thresholds are compared.
    precision: int

    @cached_property
    def through(self) -> FloatArray:
        """Weight down to the end of each block."""
        return np.cumsum(self.weight)

    @cached_property
    def above(self) -> FloatArray:
        """Weight above each block."""
        return np.concatenate(([0.0], self.through[:-1]))

    @cached_property
    def loss_through(self) -> FloatArray:
        """Loss mass down to the end of each block."""
        return np.cumsum(self.loss)

    @cached_property
    def loss_above(self) -> FloatArray:
        """Loss mass above each block."""
        return np.concatenate(([0.0], self.loss_through[:-1]))

    @cached_property
    def wrong(self) -> FloatArray:
        """The least weight that can hold the loss mass of each block."""
        return np.minimum(self.loss / self.peak if self.peak > 0 else 0.0 * self.loss, self.weight)

    @property
    def total(self) -> float:
        """Weight of all samples."""
        return float(self.through[-1])

    def as_they_are(self) -> TieGroups:
        """Take each bin for one tie."""
        # At its upper end, so that a threshold reaches the bin if it reaches any sample of it.
        confidence = self.most.astype(f"f{self.precision // 8}")
        return TieGroups(confidence, self.weight, self.loss, self.count)

    def packed(self, *, best: bool) -> TieGroups:
        """Put the loss of each bin at its less (best) or more (worst) confident end."""
        wrong = np.where(self.spread, self.wrong, self.weight)
        parts = [(self.weight - wrong, np.zeros_like(wrong)), (wrong, self.loss)]
        if not best:
            parts.reverse()
        weight, loss = (np.column_stack(column).ravel() for column in zip(*parts, strict=True))
        kept = weight > 0
        order = np.arange(weight.size, 0, -1.0)
        return TieGroups(
            order[kept], weight[kept], loss[kept], np.ones(int(kept.sum()), dtype=np.int64)
        )

    @property
    def tied(self) -> Scored:
        """The bins as samples, each one tie."""
        groups = self.as_they_are()
        return Scored(
            groups.confidence, groups.loss, probability=groups.confidence, precomputed_groups=groups
        )


@dataclass(frozen=True)
class Binned:
    """Limits of a metric where samples are known by bins only."""

    #: From the bins to the least and the largest value.
    limits: Callable[[FilledBins], Limits]
    #: What its values are rounded as at least: a difference from 1 as numbers near 1 are.
    size: float = 0.0
    #: Whether the middle of the limits is closer than the value of the bins, taken for ties.
    central: bool = False


def sorted_within(compute: Callable[[Scored], MetricValue]) -> Binned:
    """Return the limits of a mean over ties: the losses of each bin sorted."""

    def limits(blocks: FilledBins) -> Limits:
        ends = (blocks.packed(best=best) for best in (True, False))
        values = [
            compute(Scored(groups.confidence, groups.loss, precomputed_groups=groups)).value
            for groups in ends
        ]
        return min(values), max(values)

    return Binned(limits)


def risk_at(mass: FloatArray, position: FloatArray, peak: float) -> FloatArray:
    """F/x; at position 0, which only failures leave, the largest loss."""
    return np.divide(mass, position, out=np.full_like(mass, peak), where=position > 0)
