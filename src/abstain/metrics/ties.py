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
        As in `augrc`.
    metric : str, default="augrc"
        Name of a rank metric that needs only confidence and loss.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    TieBounds
        The bounds, with ``low <= high``. Without ties, both bounds are equal.

    Raises
    ------
    ShapeError, DomainError
        As in `augrc`.
    InputError
        If the metric is not a rank metric, or if the weights are unequal and the metric does not
        average over ties.

    Notes
    -----
    A rank metric improves with every failure that moves below a success. Sorting each tie group by
    loss therefore yields the bounds, in ascending and in descending order. For metrics that average
    over ties, the value with ties lies between the bounds. The trapezoid AURC has fewer vertices
    with ties, so its value may lie outside the bounds. The cost is two sorts.

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
    entry, s = metric_named(metric), validate_samples(confidence, loss, weight).without_gradient
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

    With unequal weights, the vertices also depend on the order of samples with equal loss.
    """
    only_losses = metric.measurement.needs <= {Need.BINARY_LOSS, Need.UNIT_LOSS}
    has_equal_weights = (
        s is None
        or s.has_unit_weights
        or s.weight is None
        or bool(s.xp.max(s.weight) == s.xp.min(s.weight))
    )
    ordered = metric.measurement.rank_based and metric.measurement.monotone and only_losses
    return ordered and (has_equal_weights or metric.measurement.averages_ties)


class BrokenTies:
    """Samples in which each tie group is sorted by loss, in ascending and in descending order.

    The object computes both orders at the first use and shares them between metrics. The orders
    take as much memory as the samples, so delete the object after use.
    """

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
