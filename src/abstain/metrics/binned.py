"""Samples known by bins only, as those of a stream, and the limits of a metric of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from abstain._foundation.measurement import Measured
from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Scored
from abstain.typing import BoolArray, FloatArray, IntArray

Limits: TypeAlias = tuple[float, float]


@dataclass(frozen=True, eq=False)
class NonemptyBins:
    """The bins that hold samples, most confident first."""

    #: The confidences at the ends of each, shape (b,).
    min_confidence: FloatArray
    max_confidence: FloatArray
    #: Sums of the weight and of weight x loss, shape (b,).
    weight: FloatArray
    loss: FloatArray
    #: Number of samples, shape (b,).
    count: IntArray
    #: Whether it holds more than one confidence, shape (b,).
    has_several_confidences: BoolArray
    #: The largest loss of any sample: the loss mass of a block takes at least loss / peak.
    max_loss: float
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
    def min_failure_weight(self) -> FloatArray:
        """The least weight that can hold the loss mass of each block."""
        return np.minimum(
            self.loss / self.max_loss if self.max_loss > 0 else 0.0 * self.loss, self.weight
        )

    @property
    def total(self) -> float:
        """Weight of all samples."""
        return float(self.through[-1])

    def as_tie_groups(self) -> TieGroups:
        """Take each bin for one tie."""
        # At its upper end, so that a threshold reaches the bin if it reaches any sample of it.
        confidence = self.max_confidence.astype(f"f{self.precision // 8}")
        return TieGroups(confidence, self.weight, self.loss, self.count)

    def with_sorted_losses(self, *, best: bool) -> TieGroups:
        """Put the loss of each bin at its less (best) or more (worst) confident end."""
        wrong = np.where(self.has_several_confidences, self.min_failure_weight, self.weight)
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
    def as_scored(self) -> Scored:
        """The bins as samples, each one tie."""
        groups = self.as_tie_groups()
        return Scored(
            groups.confidence, groups.loss, probability=groups.confidence, precomputed_groups=groups
        )


@dataclass(frozen=True)
class BinnedLimits:
    """Limits of a metric where samples are known by bins only."""

    #: From the bins to the least and the largest value.
    limits: Callable[[NonemptyBins], Limits]
    #: What its values are rounded as at least: a difference from 1 as numbers near 1 are.
    rounding_scale: float = 0.0
    #: Whether the middle of the limits is closer than the value of the bins, taken for ties.
    use_midpoint: bool = False


def limits_from_sorted_losses(compute: Callable[[Scored], Measured]) -> BinnedLimits:
    """Return the limits of a mean over ties: the losses of each bin sorted."""

    def limits(blocks: NonemptyBins) -> Limits:
        ends = (blocks.with_sorted_losses(best=best) for best in (True, False))
        values = [
            compute(Scored(groups.confidence, groups.loss, precomputed_groups=groups)).value
            for groups in ends
        ]
        return min(values), max(values)

    return BinnedLimits(limits)


def risk_at_position(loss_mass: FloatArray, position: FloatArray, max_loss: float) -> FloatArray:
    """F/x; at position 0, which only failures leave, the largest loss."""
    return np.divide(loss_mass, position, out=np.full_like(loss_mass, max_loss), where=position > 0)
