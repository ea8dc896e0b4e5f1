"""What a threshold achieves on data: numbers with intervals."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain.inference.influence import standard_error
from abstain.inference.intervals import Interval, interval_from, no_interval
from abstain.inference.proportions import clopper_pearson, effective_count
from abstain.typing import AnyArray, Array, BoolArray, FloatArray

_INFINITY = float("inf")


@dataclass(frozen=True, eq=False)
class Sample:
    """Validated losses of samples of weight above zero, and which of them are accepted."""

    loss: FloatArray
    accepted: BoolArray
    weight: FloatArray | None
    level: float
    #: Whether every loss is 0 or 1, of the whole where these are a part of it.
    binary: bool

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.loss.size)

    def mean(self, x: Array) -> float:
        """Weighted mean over all samples."""
        return float(np.average(x, weights=self.weight))

    def among_accepted(self) -> "Sample":
        """Return the accepted samples alone."""
        kept = self.accepted
        weight = None if self.weight is None else self.weight[kept]
        return Sample(self.loss[kept], kept[kept], weight, self.level, self.binary)


def sample(accepted: Array, loss: AnyArray, weight: AnyArray | None, *, level: float) -> Sample:
    """Validate losses and weights beside a decision for each sample."""
    x = checks.loss(loss, length=accepted.size).astype(np.float64)
    w = checks.weight(weight, length=accepted.size)
    if w is not None:
        kept = w > 0
        x, accepted, w = x[kept], accepted[kept], w[kept]
        checks.summable(w * x, "weight * loss")
    return Sample(x, accepted, w, level, bool(((x == 0) | (x == 1)).all()))


def share(s: Sample, x: BoolArray) -> tuple[float, Interval]:
    """Return the share of samples for which `x` holds, with an exact interval.

    With weights the samples count as the number of equal ones that has the same standard error.
    """
    count = int(np.count_nonzero(x))
    if s.weight is None:
        return count / s.n, clopper_pearson(count, s.n, level=s.level)
    value = min(max(s.mean(x), 0.0), 1.0)
    size = float(s.weight.sum() ** 2 / (s.weight @ s.weight))
    if 0 < count < s.n:
        error = standard_error((x - value).astype(np.float64), weight=s.weight)
        size = min(effective_count(value, error), float(s.n)) if error > 0 else size
    return value, clopper_pearson(value * size, size, level=s.level)


def mean(s: Sample, x: FloatArray, *, signed: bool = False) -> tuple[float, Interval]:
    """Return the mean of `x` with the Student interval of its influence function."""
    value = s.mean(x)
    low = -_INFINITY if signed else 0.0
    found = interval_from(value, x - value, level=s.level, bounds=(low, _INFINITY), weight=s.weight)
    return value, found


def selective_risk(s: Sample) -> tuple[float, Interval]:
    """Mean loss of the accepted; NaN when there are none."""
    inner = s.among_accepted()
    if inner.n == 0:
        return float("nan"), no_interval(s.level, "nothing is accepted at this threshold")
    return share(inner, inner.loss > 0) if s.binary else mean(inner, inner.loss)


def generalized_risk(s: Sample) -> tuple[float, Interval]:
    """Mean over all samples of the loss where accepted."""
    if s.binary or not (s.loss * s.accepted).any():
        return share(s, s.accepted & (s.loss > 0))
    return mean(s, s.loss * s.accepted)


def cost_beyond_abstaining(s: Sample, cost: float) -> tuple[float, Interval]:
    """Mean cost a sample, minus that of abstaining on every sample."""
    return mean(s, (s.loss - cost) * s.accepted, signed=True)
