"""How many equal samples the accepted ones are worth, for their risk and for their coverage.

A test of a risk r compares the sum of weight x (loss - r) over the accepted samples with 0. Its
variance is the sum of weight^2 x (loss - r)^2. Kish's effective sample size, (sum w)^2 / sum w^2,
gives this variance only if weights and losses are independent: failures that have larger weights
than successes make the risk less certain. Here the losses and the other samples each have a mean
weight of their own, so that the variance is also known for a risk other than the one observed, as
in the score test of a proportion.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from abstain._foundation.scored import Scored
from abstain.typing import FloatArray, IntArray


class AcceptedSamples(NamedTuple):
    """Statistics of the accepted samples at each threshold, arrays of shape (g,)."""

    #: Selective risk.
    risk: FloatArray
    #: The size of a loss where there is one: its mean square over its mean.
    loss: FloatArray
    #: Effective number of accepted samples, for a test of the risk.
    n_for_risk: FloatArray
    #: Effective number of all samples, for a test of the coverage.
    n_for_coverage: FloatArray
    #: Correlation of the errors of risk and coverage; 0 if weights do not depend on the loss.
    correlation: FloatArray


def accepted_samples(s: Scored, cluster: IntArray | None, risk: float) -> AcceptedSamples:
    """Return the statistics for a test of this risk."""
    groups = s.groups
    size = groups.through
    attained, zero = groups.loss_through / size, np.zeros(size.size)
    everyone = np.full(size.size, groups.total)
    is_plain = s.counted and cluster is None
    if is_plain and s.binary:
        return AcceptedSamples(attained, np.ones(size.size), size, everyone, zero)
    rows = AcceptedRows.of(s, cluster)
    events = Events.of(rows)
    if is_plain:
        return AcceptedSamples(attained, events.loss, size, everyone, zero)
    n_for_risk = size / events.mean_weight(risk)
    share = size / groups.total
    alone = rows.through(rows.weight**2)
    square, ends = (alone, alone) if cluster is None else rows.squares_of_weight(alone)
    spread = np.maximum(square - 2 * share * ends + share**2 * square[-1], 1e-300)
    n_for_coverage = np.maximum(share * (1 - share) * groups.total**2 / spread, 1.0)
    if cluster is not None:
        apart, together = rows.squares_about(attained, alone, square)
        inflation = np.divide(together, apart, out=np.ones_like(apart), where=apart > 0)
        n_for_risk /= np.maximum(inflation, 1.0)
    # A heavy failure among the accepted raises both the risk and the coverage.
    probability = event_probability(events.loss, risk)
    covariance = (1 - share) * (events.weight - events.other_weight)
    scale = np.sqrt(probability * (1 - probability) * n_for_risk / spread)
    correlation = np.clip(covariance * scale, -0.99, 0.99)
    return AcceptedSamples(attained, events.loss, n_for_risk, n_for_coverage, correlation)


def event_probability(loss: FloatArray, risk: float) -> FloatArray:
    """Return the probability of a loss of this size for which the risk is the one given."""
    return np.minimum(risk / loss, 1 - 1e-12)


def n_effective(s: Scored, risk: float) -> float:
    """Return how many samples of equal weight are worth as much as all, for a test of this risk."""
    if s.counted:
        return float(s.samples)
    events = Events.of(AcceptedRows.of(s, None))
    return float(s.groups.total / events.mean_weight(risk)[-1])


#: Pseudo-observations added to the accepted samples of each threshold, of the mean loss and weight
#: of all samples: at a high threshold few losses are accepted.
_N_PSEUDO = 2.0


class Events(NamedTuple):
    """Losses and weights of the accepted samples at each threshold, arrays of shape (g,).

    A loss counts as an event of the size `loss`, a smaller loss as a part of one. The mean weights
    are weighted by the weights themselves.
    """

    loss: FloatArray
    #: Mean weight of the events.
    weight: FloatArray
    #: Mean weight of the samples, or parts of them, that are none.
    other_weight: FloatArray

    @classmethod
    def of(cls, rows: "AcceptedRows") -> "Events":
        """Sum over the accepted samples."""
        weight, mass = rows.weight, rows.weight * rows.loss
        total, mass_through = rows.through(weight), rows.through(mass)
        square, cross = rows.through(weight * weight), rows.through(weight * mass)
        if mass_through[-1] <= 0:
            equal = np.full(total.size, square[-1] / total[-1])
            return cls(np.ones(total.size), equal, equal)
        loss_square = rows.through(mass * mass)
        usual_loss, usual_weight = loss_square[-1] / cross[-1], cross[-1] / mass_through[-1]
        loss = _smoothed(loss_square, cross, usual_weight**2 * usual_loss)
        event_weight = _smoothed(cross, mass_through, usual_weight * usual_loss)
        other_total = np.maximum(total - mass_through / loss, 0.0)
        other_square = np.maximum(square - cross / loss, 0.0)
        if other_total[-1] <= 0:
            return cls(loss, event_weight, event_weight)
        usual_other = other_square[-1] / other_total[-1]
        return cls(loss, event_weight, _smoothed(other_square, other_total, usual_other))

    def mean_weight(self, risk: float) -> FloatArray:
        """Return the weight per effective sample at a risk.

        The variance of the sum of weight x (loss - risk) is that of a binomial count of samples
        that all have this weight.
        """
        probability = event_probability(self.loss, risk)
        return (1 - probability) * self.weight + probability * self.other_weight


def _smoothed(numerator: FloatArray, denominator: FloatArray, usual: float) -> FloatArray:
    """Return a ratio of running sums with pseudo-observations that have the ratio of all samples.

    `usual` is the denominator of one of them.
    """
    more = _N_PSEUDO * usual
    out: FloatArray = (numerator + more * numerator[-1] / denominator[-1]) / (denominator + more)
    return out


@dataclass(frozen=True, eq=False)
class AcceptedRows:
    """The samples that count, with what the unit (cluster) of each has accepted before it."""

    home: IntArray
    weight: FloatArray
    loss: FloatArray
    weight_before: FloatArray
    loss_before: FloatArray
    weight_of_unit: FloatArray

    @classmethod
    def of(cls, s: Scored, cluster: IntArray | None) -> "AcceptedRows":
        """Take the samples that have a weight."""
        kept = s.home >= 0
        home, loss = s.home[kept], s.loss[kept].astype(np.float64)
        weight: FloatArray = np.ones(home.size) if s.weight is None else s.weight[kept]
        if cluster is None:
            return cls(home, weight, loss, np.zeros(home.size), np.zeros(home.size), weight)
        unit = cluster[kept]
        # By unit, and within it in the order of acceptance.
        order = np.argsort(unit * (int(home.max()) + 1) + home)
        before = [_before(x, unit, order) for x in (weight, weight * loss)]
        whole: FloatArray = np.bincount(unit, weights=weight).astype(np.float64)[unit]
        return cls(home, weight, loss, before[0], before[1], whole)

    def through(self, x: FloatArray) -> FloatArray:
        """Return the sum of what the accepted of each threshold have, shape (g,)."""
        out: FloatArray = np.cumsum(np.bincount(self.home, weights=x))
        return out

    def squares_of_weight(self, alone: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return, over the units, the squares of the weight accepted, and it times the whole.

        `alone` is the same over the samples.
        """
        # A square grows by the new square and twice the new times what was there.
        square = alone + 2 * self.through(self.weight * self.weight_before)
        return square, self.through(self.weight * self.weight_of_unit)

    def squares_about(
        self, risk: FloatArray, alone: FloatArray, square: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the squares of weight x (loss - risk) of the accepted: of samples, of units.

        From those of the weights, of samples and of units.
        """
        w, x = self.weight, self.weight * self.loss
        w0, x0 = self.weight_before, self.loss_before
        cross, own = self.through(w * x), self.through(x * x)
        apart = alone * risk**2 - 2 * risk * cross + own
        cross += self.through(w * x0 + x * w0)
        own += 2 * self.through(x * x0)
        return apart, square * risk**2 - 2 * risk * cross + own


def _before(x: FloatArray, unit: IntArray, order: IntArray) -> FloatArray:
    """Return the sum over the samples of the same unit that are accepted earlier."""
    ranked = x[order]
    running = np.cumsum(ranked) - ranked
    first = np.flatnonzero(np.diff(unit[order], prepend=-1))
    counts = np.diff(first, append=x.size)
    out = np.empty_like(x)
    out[order] = running - np.repeat(running[first], counts)
    return out
