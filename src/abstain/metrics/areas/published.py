"""Exact reproductions of the values that other programs and papers print.

Use them only for comparisons with published tables. All but one of the programs order tied samples
by row, so their values change if the rows are shuffled.
"""

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_double, as_scalar, namespace
from abstain._foundation.scored import Scored, validate_samples
from abstain.errors import DomainError
from abstain.metrics.areas.aurc import best_population_aurc, compute_achievable_aurc
from abstain.metrics.areas.partial import hyperbolic_risk_area
from abstain.metrics.rank_weights import (
    augrc_weight,
    cached_rank_weighted_risk,
    trapezoid_weight,
)
from abstain.typing import AnyArray, FloatArray, Scalar

#: Factor by which FD-Shifts multiplies areas for printing.
FD_SHIFTS_SCALE = 1000.0

_AURC = ("fd-shifts", "fd-shifts-legacy", "torch-uncertainty", "geifman", "plugin", "cwsa")
_AUGRC = ("fd-shifts", "torch-uncertainty")


def published_aurc(confidence: AnyArray, loss: AnyArray, *, convention: str) -> float:
    """Compute the AURC exactly as another program prints it.

    Answers: which value would this program print for these data?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `aurc`, in the row order of the other program.
    convention : str
        "fd-shifts": `aurc` (trapezoid) x1000, as in the program since 2024. "fd-shifts-legacy": its
        older code, Listing 1 of [1]_, without the area below coverage 1/n and with a vertex after
        the first sample of a tie group. "torch-uncertainty": trapezoid over the coverages k/n from
        k = 1, divided by 1 - 1/n. "geifman": the program of Geifman et al., which others copied.
        Below full coverage, it divides the sum of the losses of k accepted samples by k + 1.
        "plugin": the definition of Geifman et al., the mean of the selective risk over k = 1...n.
        "cwsa": trapezoid over the coverages k/n from k = 1 (the CWSA reference code).

    Returns
    -------
    float
        On the scale of that program; **lower is better**.

    Raises
    ------
    ShapeError, DomainError, InputError
        As in `aurc`; "torch-uncertainty" requires at least two samples.

    Notes
    -----
    With ties, all conventions except "fd-shifts" depend on the row order. Among samples of equal
    confidence, "geifman" and "fd-shifts-legacy" reject the first row first, because they sort in
    ascending order; the others accept it first. The sorts of the programs are not stable, so their
    values for ties may differ. Without ties, "plugin" equals `aurc` with the plug-in estimator. The
    cost is one sort.

    References
    ----------
    .. [1] Jaeger et al. (2023), appendix F, https://arxiv.org/abs/2211.15259
    .. [2] https://github.com/IML-DKFZ/fd-shifts,
       https://github.com/ENSTA-U2IS-AI/torch-uncertainty,
       https://github.com/geifmany/uncertainty_ICLR

    Examples
    --------
    >>> from abstain.metrics import published_aurc
    >>> round(published_aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], convention="cwsa"), 6)
    0.270833
    >>> round(published_aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], convention="geifman"), 6)
    0.270833
    """
    checks.one_of(convention, "convention", _AURC)
    s = validate_samples(confidence, loss)
    if convention == "fd-shifts":
        return FD_SHIFTS_SCALE * cached_rank_weighted_risk(s, trapezoid_weight)
    if convention == "fd-shifts-legacy":
        return FD_SHIFTS_SCALE * _legacy_trapezoid(s)
    if convention == "geifman":
        return _mean_of_geifman_risks(s)
    losses = _losses_in_row_order(s)
    places = s.xp.cumulative_sum(s.xp.ones_like(losses))
    risk = s.xp.cumulative_sum(losses) / places
    if convention == "plugin":
        return as_scalar(s.xp.mean(risk))
    return _trapezoid_from_first_sample(risk, scale=convention == "torch-uncertainty")


def published_augrc(confidence: AnyArray, loss: AnyArray, *, convention: str) -> float:
    """Compute the AUGRC exactly as another program prints it.

    Answers: which value would this program print for these data?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `augrc`, in the row order of the other program.
    convention : {"fd-shifts", "torch-uncertainty"}
        "fd-shifts": `augrc` x1000. "torch-uncertainty": trapezoid over coverages k/n from k = 1,
        divided by 1 - 1/n.

    Returns
    -------
    float
        On the scale of that program; **lower is better**.

    Raises
    ------
    ShapeError, DomainError, InputError
        As in `published_aurc`.

    Notes
    -----
    With ties, "torch-uncertainty" depends on the row order. The cost is one sort.

    References
    ----------
    .. [1] As in `published_aurc`.

    Examples
    --------
    >>> from abstain.metrics import published_augrc
    >>> published_augrc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], convention="fd-shifts")
    187.5
    """
    checks.one_of(convention, "convention", _AUGRC)
    s = validate_samples(confidence, loss)
    if convention == "fd-shifts":
        return FD_SHIFTS_SCALE * cached_rank_weighted_risk(s, augrc_weight)
    generalized_risk = s.xp.cumulative_sum(_losses_in_row_order(s)) / s.n_rows
    return _trapezoid_from_first_sample(generalized_risk, scale=True)


def published_e_aurc(confidence: AnyArray, loss: AnyArray) -> float:
    """Compute the excess AURC exactly as FD-Shifts prints it, for 0/1 loss.

    Answers: which number would FD-Shifts have printed for these data?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `e_aurc`; losses 0 or 1.

    Returns
    -------
    float
        The value x1000; **lower is better**. It can be negative, because R + (1 - R) ln(1 - R) is
        the optimum of another estimator than the trapezoid.

    Raises
    ------
    ShapeError, DomainError
        As in `e_aurc`; also if a loss is not 0 or 1.

    Notes
    -----
    Like FD-Shifts, this function adds the machine epsilon inside the logarithm. The cost is one
    sort.

    References
    ----------
    .. [1] https://github.com/IML-DKFZ/fd-shifts

    Examples
    --------
    >>> from abstain.metrics import published_e_aurc
    >>> round(published_e_aurc([1.0, 1.0, 0.0, 0.0], [0, 0, 1, 1]), 6)
    -28.42641
    """
    s = validate_samples(confidence, loss).without_gradient
    checks.binary_loss(s.loss, required_by="the analytic optimum")
    risk = s.merged_groups.risk
    optimum = best_population_aurc(risk)
    if risk < 1:
        epsilon = float(np.finfo(np.float64).eps)
        optimum += (1 - risk) * float(np.log1p(epsilon / (1 - risk)))
    return FD_SHIFTS_SCALE * (cached_rank_weighted_risk(s, trapezoid_weight) - optimum)


def published_achievable_aurc(confidence: AnyArray, loss: AnyArray) -> float:
    """Compute the achievable AURC exactly as FD-Shifts prints it.

    Answers: which number would FD-Shifts have printed for these data?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `achievable_aurc`.

    Returns
    -------
    float
        The value x1000; **lower is better**.

    Raises
    ------
    ShapeError, DomainError
        As in `achievable_aurc`.

    Notes
    -----
    For 0/1 loss, this is `achievable_aurc`. For other losses, FD-Shifts uses all vertices, so its
    value is the exact (hyperbolic) area under the curve, not under the convex hull. The cost is one
    sort.

    References
    ----------
    .. [1] https://github.com/IML-DKFZ/fd-shifts

    Examples
    --------
    >>> from abstain.metrics import published_achievable_aurc
    >>> round(published_achievable_aurc([0.9, 0.8, 0.7, 0.6], [1, 0, 0, 1]), 3)
    356.159
    """
    s = validate_samples(confidence, loss)
    if s.is_binary:
        return FD_SHIFTS_SCALE * compute_achievable_aurc(s).value
    return FD_SHIFTS_SCALE * hyperbolic_risk_area(s.groups, 0.0, 1.0)


def _losses_in_row_order(s: Scored) -> AnyArray:
    """Return the losses from the most to the least confident sample; ties in row order."""
    return as_double(s.xp.take(s.loss, s.xp.argsort(-as_double(s.confidence), stable=True)))


def _remaining_loss_in_row_order(s: Scored) -> tuple[AnyArray, FloatArray]:
    """Return the order of rejection, ties in row order, and the remaining loss before each step."""
    order = s.xp.argsort(as_double(s.confidence), stable=True)
    loss_from_most_confident = s.xp.flip(as_double(s.xp.take(s.loss, order)))
    return order, s.xp.flip(s.xp.cumulative_sum(loss_from_most_confident))


def _mean_of_geifman_risks(s: Scored) -> Scalar:
    _, remaining_loss = _remaining_loss_in_row_order(s)
    # The program divides by k + 1 when k samples remain.
    divisor = s.xp.flip(s.xp.cumulative_sum(s.xp.ones_like(remaining_loss))) + 1.0
    risk_sum = remaining_loss[0] / s.n_rows + s.xp.sum(remaining_loss[1:] / divisor[1:])
    return as_scalar(risk_sum) / s.n_rows


def _legacy_trapezoid(s: Scored) -> Scalar:
    """Return the area with vertices after the first sample of each tie group, from coverage 1/n."""
    if s.n_rows == 1:
        return 0.0
    xp, (order, remaining_loss) = s.xp, _remaining_loss_in_row_order(s)
    n_remaining = xp.flip(xp.cumulative_sum(xp.ones_like(remaining_loss)))
    ascending = as_double(xp.take(s.confidence, order))
    is_first = ascending[:1] == ascending[:1]
    is_new_confidence = xp.concat((is_first, ascending[1:-1] != ascending[:-2]))
    vertex = xp.nonzero(is_new_confidence)[0] + 1
    coverage = xp.concat((n_remaining[:1], xp.take(n_remaining, vertex), n_remaining[-1:]))
    risk_at_vertex = xp.take(remaining_loss, vertex) / xp.take(n_remaining, vertex)
    # The last segment, to coverage 1/n, has the risk of the last vertex.
    risk = xp.concat((remaining_loss[:1] / s.n_rows, risk_at_vertex, risk_at_vertex[-1:]))
    doubled_area = xp.sum((risk[:-1] + risk[1:]) * (coverage[:-1] - coverage[1:]))
    return as_scalar(doubled_area) / (2 * s.n_rows)


def _trapezoid_from_first_sample(risk: FloatArray, *, scale: bool) -> Scalar:
    n = risk.shape[0]
    if n == 1:
        if scale:
            raise DomainError("the areas of torch-uncertainty need at least two samples; got 1")
        return 0.0
    area: Scalar = as_scalar(namespace(risk).sum(risk[1:] + risk[:-1])) / (2 * n)
    return area / (1 - 1 / n) if scale else area
