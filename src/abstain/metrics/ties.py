"""Range of a metric over all orders of tied samples."""

from dataclasses import dataclass
from functools import cached_property

from abstain._foundation.scored import Scored, validate_samples
from abstain.errors import InputError
from abstain.metrics.catalogue import metric_named
from abstain.metrics.entry import Metric, Need, value_with_warning
from abstain.typing import AnyArray


@dataclass(frozen=True)
class TieBounds:
    """A metric and its range over all orders of tied samples.

    Attributes
    ----------
    low, high : float
        The smallest and the largest value of the metric over all orders of the tied samples.
    value : float
        The value of the metric with ties.
    tied_share : float
        Share of the samples whose confidence equals the confidence of another sample.
    """

    low: float
    value: float
    high: float
    tied_share: float


def tie_bounds(
    confidence: AnyArray, loss: AnyArray, *, metric: str = "augrc", weight: AnyArray | None = None
) -> TieBounds:
    """Compute the smallest and the largest value of a metric over all orders of tied samples.

    Answers: how much could this value change if the confidence were not rounded or saturated?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `augrc`.
    metric : str, default="augrc"
        Name of a rank metric that needs only confidence and loss.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    TieBounds
        The bounds, with ``low <= high``. Without ties, both bounds are equal.

    Raises
    ------
    ShapeError, DomainError
        See `augrc`.
    InputError
        If the metric is not a rank metric, or if the weights are unequal and the metric does not
        average over ties.

    Notes
    -----
    A rank metric improves with every failure that moves below a success. Therefore the bounds are
    the values after sorting each tie group by loss, in ascending and in descending order. The value
    of a metric that averages over ties lies between the bounds. The value of the trapezoid AURC may
    lie outside the bounds, because ties remove points of its curve. The function sorts the samples
    twice.

    References
    ----------
    .. [1] The bounds are from abstain. They use the contribution of a failure by rank: Traub et al.
       (2024), appendix A.1.1, https://arxiv.org/abs/2407.01032

    Examples
    --------
    >>> import abstain as ab
    >>> ab.tie_bounds([0.9, 0.5, 0.5, 0.1], [0, 1, 0, 0])
    TieBounds(low=0.09375, value=0.125, high=0.15625, tied_share=0.5)
    """
    entry = metric_named(metric)
    s = validate_samples(confidence, loss, weight).without_gradient
    if not has_exact_tie_bounds(entry) or entry.reason_not_applicable(s):
        raise InputError(f"`metric` must be a rank metric of confidence and loss; got {metric!r}")
    if not has_exact_tie_bounds(entry, s):
        raise InputError(
            f"`weight` must be equal for all samples, because {metric!r} has a vertex at each "
            "confidence; choose a metric that averages over ties, such as 'augrc' or 'aurc_plugin'"
        )
    low, high = BrokenTies(s).bounds(entry)
    value = value_with_warning(entry.compute(s), metric)
    return TieBounds(low, value, high, s.merged_groups.n_tied / s.n_samples)


def has_exact_tie_bounds(metric: Metric, s: Scored | None = None) -> bool:
    """Return whether sorting each tie group by loss yields the bounds of a metric.

    If no samples are passed, the function assumes equal weights.
    """
    measurement = metric.measurement
    needs_only_loss = measurement.needs <= {Need.BINARY_LOSS, Need.UNIT_LOSS}
    if not (measurement.rank_based and measurement.monotone and needs_only_loss):
        return False
    if measurement.averages_ties or s is None or s.has_unit_weights or s.weight is None:
        return True
    # With unequal weights, the value also depends on the order of tied samples with equal loss.
    return bool(s.xp.max(s.weight) == s.xp.min(s.weight))


class BrokenTies:
    """Samples in which each tie group is sorted by loss, in ascending and in descending order."""

    def __init__(self, s: Scored) -> None:
        self._samples = s

    @cached_property
    def best_and_worst(self) -> tuple[Scored, Scored]:
        """The samples in the best and in the worst order."""
        return self._samples.with_ties_broken(best=True), self._samples.with_ties_broken(best=False)

    def bounds(self, metric: Metric) -> tuple[float, float]:
        """Return the smallest and the largest value of a rank metric over all orders of ties."""
        values = [metric.compute(order).value for order in self.best_and_worst]
        return min(values), max(values)
