"""Samples in bins of confidence, and limits of metrics that are computed from bins."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from abstain._foundation.scored import MetricValue, Scored
from abstain._foundation.tie_groups import TieGroups
from abstain.typing import BoolArray, FloatArray, IntArray

Limits: TypeAlias = tuple[float, float]


@dataclass(frozen=True, eq=False)
class NonemptyBins:
    """Sums over the samples in each nonempty bin, in order of decreasing confidence."""

    #: Shape (b,). Smallest and largest confidence in each bin.
    min_confidence: FloatArray
    max_confidence: FloatArray
    #: Shape (b,). Sums of weight and of weight x loss.
    weight: FloatArray
    loss: FloatArray
    #: Shape (b,). Number of samples.
    count: IntArray
    #: Shape (b,). Whether the bin contains more than one confidence.
    has_several_confidences: BoolArray
    #: The largest loss of any sample.
    max_loss: float
    #: Floating-point bits in which thresholds are compared with confidences.
    precision: int

    @cached_property
    def through(self) -> FloatArray:
        """Cumulative weight, each bin included."""
        return np.cumsum(self.weight)

    @cached_property
    def above(self) -> FloatArray:
        """Cumulative weight, each bin excluded."""
        return np.concatenate(([0.0], self.through[:-1]))

    @cached_property
    def loss_through(self) -> FloatArray:
        """Sum of weight x loss over each bin and all earlier bins."""
        return np.cumsum(self.loss)

    @cached_property
    def loss_above(self) -> FloatArray:
        """Sum of weight x loss over all bins before each bin."""
        return np.concatenate(([0.0], self.loss_through[:-1]))

    @cached_property
    def min_failure_weight(self) -> FloatArray:
        """Minimum weight of failures that can produce the total loss of each bin."""
        if self.max_loss == 0:
            return np.zeros_like(self.loss)
        return np.minimum(self.loss / self.max_loss, self.weight)

    @property
    def total(self) -> float:
        """Weight of all samples."""
        return float(self.through[-1])

    def as_tie_groups(self) -> TieGroups:
        """Return each bin as a tie group with the largest confidence in the bin."""
        # A threshold then accepts a bin if it may accept any of its samples.
        confidence = self.max_confidence.astype(f"f{self.precision // 8}")
        return TieGroups(confidence, self.weight, self.loss, self.count)

    def with_sorted_losses(self, *, best: bool) -> TieGroups:
        """Return each bin as two tie groups (failures and successes) in the best or worst order.

        In the best order, the successes of a bin precede its failures.
        """
        failure_weight = np.where(
            self.has_several_confidences, self.min_failure_weight, self.weight
        )
        success_weight = self.weight - failure_weight
        no_loss = np.zeros_like(failure_weight)
        if best:
            weight = np.column_stack((success_weight, failure_weight)).ravel()
            loss = np.column_stack((no_loss, self.loss)).ravel()
        else:
            weight = np.column_stack((failure_weight, success_weight)).ravel()
            loss = np.column_stack((self.loss, no_loss)).ravel()
        confidence = np.arange(weight.size, 0, -1.0)
        has_weight = weight > 0
        count = np.ones(int(has_weight.sum()), dtype=np.int64)
        return TieGroups(confidence[has_weight], weight[has_weight], loss[has_weight], count)

    @property
    def as_scored(self) -> Scored:
        """Samples that represent the bins as tie groups."""
        groups = self.as_tie_groups()
        return Scored(
            groups.confidence, groups.loss, probability=groups.confidence, precomputed_groups=groups
        )


@dataclass(frozen=True)
class BinnedLimits:
    """Lower and upper limits of a metric for samples in bins."""

    #: Function of the bins that returns the smallest and the largest possible value.
    limits: Callable[[NonemptyBins], Limits]
    #: Minimum scale of the rounding error: 1 for a value computed as 1 minus a small number.
    rounding_scale: float = 0.0
    #: Whether the midpoint of the limits is reported instead of the value with bins as ties.
    use_midpoint: bool = False


def limits_from_sorted_losses(compute: Callable[[Scored], MetricValue]) -> BinnedLimits:
    """Return the values of a metric in the best and in the worst order within the bins.

    `compute` must average over ties.
    """

    def limits(bins: NonemptyBins) -> Limits:
        values = []
        for best in (True, False):
            groups = bins.with_sorted_losses(best=best)
            s = Scored(groups.confidence, groups.loss, precomputed_groups=groups)
            values.append(compute(s).value)
        return min(values), max(values)

    return BinnedLimits(limits)


def risk_at_position(loss_mass: FloatArray, position: FloatArray, max_loss: float) -> FloatArray:
    """Return the mean loss of the accepted samples, which is `max_loss` if none is accepted.

    `position` is the weight of the accepted samples, and `loss_mass` is their weight x loss.
    """
    risk = np.full_like(loss_mass, max_loss)
    return np.divide(loss_mass, position, out=risk, where=position > 0)
