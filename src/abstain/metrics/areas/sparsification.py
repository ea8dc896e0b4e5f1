"""Area under the sparsification error: the excess AURC in units of the mean loss."""

import numpy as np

from abstain._foundation.measurement import Measured, undefined
from abstain._foundation.scored import Scored, scored
from abstain.metrics.areas.excess import excess_aurc, excess_influence
from abstain.metrics.entry import Identity, Measurement, Metric, value_of
from abstain.metrics.influences import of_loss, on_groups, on_split_rows
from abstain.typing import AnyArray, FloatArray

_SOURCE = "Ilg et al. (2018), section 5, https://arxiv.org/abs/1802.07095"


def ause(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the area under the sparsification error (AUSE).

    Answers: as the least confident samples are taken away, how far is the mean loss of the rest
    above what the best order would leave, in units of the mean loss of all?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale, only the order matters.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        At least 0, no upper bound; **lower is better**; 0 for a perfect order. NaN, with an
        `UndefinedMetricWarning`, when nothing is lost.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.

    Notes
    -----
    The sparsification curve is the selective risk against the share taken away, divided by the risk
    of all, so this is exactly the excess AURC (trapezoid, flat below the first vertex) over the
    mean loss; samples of equal confidence share a vertex. torch-uncertainty (0.13) leaves out the
    part below a coverage of 1/n, and without ties prints this less (f - m)/(n R): f the loss of the
    most confident sample, m the least loss, R the mean loss. Cost: two sorts.

    References
    ----------
    .. [1] Ilg et al. (2018), Uncertainty estimates and multi-hypotheses networks for optical flow,
       section 5, https://arxiv.org/abs/1802.07095

    Examples
    --------
    >>> from abstain.metrics import ause
    >>> round(ause([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 6)
    0.25
    """
    return value_of(_ause(scored(confidence, loss, weight)), "ause")


def _ause(s: Scored) -> Measured:
    risk = s.merged_groups.risk
    if not bool(risk > 0):
        return undefined("nothing is lost, so there is no unit to measure in")
    return Measured(excess_aurc(s).value / risk)


def _influence(s: Scored) -> FloatArray:
    """Excess AURC over the risk, by the rule for quotients."""
    if s.best_order.loss.size == 1:
        # No order of equal losses has an excess; rounding has no range here to be small beside.
        return np.zeros(s.n)
    risk = s.groups.risk
    value = excess_aurc(s).value / risk
    return (excess_influence(s) - value * on_groups(s, of_loss(s.groups))) / risk


ENTRIES = (
    Metric(
        Identity(
            name="ause",
            title="AUSE",
            family="area",
            lower_is_better=True,
            meaning="Averaged over the share taken away, the mean loss of the rest is {value} mean "
            "losses above the best order's.",
            source=_SOURCE,
            convention="selective risk over the risk of all, trapezoid",
            function="ause(confidence, loss)",
        ),
        Measurement(
            compute=_ause,
            high=float("inf"),
            duplication="limit",
            influence=on_split_rows(_influence),
            heavy_tailed=True,
        ),
    ),
)
