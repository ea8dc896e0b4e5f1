"""Exact reproductions of metric values that other programs and papers report.

Use these functions only for comparisons with published tables. Most of the programs order tied
samples by row, so their values change if the rows are shuffled.
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

#: Factor by which FD-Shifts multiplies areas before it prints them.
FD_SHIFTS_SCALE = 1000.0

_AURC = ("fd-shifts", "fd-shifts-legacy", "torch-uncertainty", "geifman", "plugin", "cwsa")
_AUGRC = ("fd-shifts", "torch-uncertainty")


def published_aurc(confidence: AnyArray, loss: AnyArray, *, convention: str) -> float:
    """Compute the AURC exactly as another program computes it.

    Answers: which value would this program print for these data?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `aurc`, in the row order of the other program.
    convention : str
        "fd-shifts" is `aurc` (trapezoid) x1000, as in FD-Shifts since 2024. "fd-shifts-legacy" is
        the older code of FD-Shifts, Listing 1 of [1]_. The older code omits the area below coverage
        1/n and places a point of the curve after the first sample of a tie group.
        "torch-uncertainty" is the trapezoid over the coverages k/n from k = 1, divided by 1 - 1/n.
        "geifman" is the program of Geifman et al. Below full coverage, this program divides the sum
        of the losses of k accepted samples by k + 1. "plugin" is the definition of Geifman et al.,
        the mean of the selective risk over k = 1...n. "cwsa" is the CWSA reference code, a
        trapezoid over the coverages k/n from k = 1.

    Returns
    -------
    float
        Value on the scale of the other program; **lower is better**.

    Raises
    ------
    ShapeError, DomainError, InputError
        See `aurc`. A DomainError is also raised if "torch-uncertainty" gets only one sample.

    Notes
    -----
    With ties, all conventions except "fd-shifts" depend on the row order. Among tied samples,
    "geifman" and "fd-shifts-legacy" reject the first row first, and the other programs accept the
    first row first. The programs use sorts that are not stable, so their values with ties may
    differ from this function. Without ties, "plugin" equals `aurc` with the plug-in estimator. The
    function sorts the samples once.

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
    n_accepted = s.xp.cumulative_sum(s.xp.ones_like(losses))
    risk = s.xp.cumulative_sum(losses) / n_accepted
    if convention == "plugin":
        return as_scalar(s.xp.mean(risk))
    return _trapezoid_from_first_sample(risk, scale=convention == "torch-uncertainty")


def published_augrc(confidence: AnyArray, loss: AnyArray, *, convention: str) -> float:
    """Compute the AUGRC exactly as another program computes it.

    Answers: which value would this program print for these data?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `augrc`, in the row order of the other program.
    convention : {"fd-shifts", "torch-uncertainty"}
        "fd-shifts" is `augrc` x1000. "torch-uncertainty" is the trapezoid over the coverages k/n
        from k = 1, divided by 1 - 1/n.

    Returns
    -------
    float
        Value on the scale of the other program; **lower is better**.

    Raises
    ------
    ShapeError, DomainError, InputError
        See `published_aurc`.

    Notes
    -----
    With ties, "torch-uncertainty" depends on the row order. The function sorts the samples once.

    References
    ----------
    .. [1] See `published_aurc`.

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
    """Compute the excess AURC for 0/1 loss exactly as FD-Shifts computes it.

    Answers: which number would FD-Shifts have printed for these data?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `e_aurc`, with losses 0 or 1.

    Returns
    -------
    float
        The value times 1,000; **lower is better**. The value can be negative, because R + (1 - R)
        ln(1 - R) is not the optimum of the trapezoid.

    Raises
    ------
    ShapeError, DomainError
        As in `e_aurc`. A DomainError is also raised if a loss is not 0 or 1.

    Notes
    -----
    Inside the logarithm, the function adds the machine epsilon, as FD-Shifts does. The function
    sorts the samples once.

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
    """Compute the achievable AURC exactly as FD-Shifts computes it.

    Answers: which number would FD-Shifts have printed for these data?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `achievable_aurc`.

    Returns
    -------
    float
        The value times 1,000; **lower is better**.

    Raises
    ------
    ShapeError, DomainError
        See `achievable_aurc`.

    Notes
    -----
    For 0/1 loss, the value equals that of `achievable_aurc`. For other losses, FD-Shifts uses all
    thresholds instead of those on the convex hull. The value for such losses is the exact
    (hyperbolic) area under the curve. The function sorts the samples once.

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
    """Return the losses in order of decreasing confidence, with ties in row order."""
    order = s.xp.argsort(-as_double(s.confidence), stable=True)
    return as_double(s.xp.take(s.loss, order))


def _remaining_loss_in_row_order(s: Scored) -> tuple[AnyArray, FloatArray]:
    """Return the order in which samples are rejected, and the remaining loss before each rejection.

    Tied samples are rejected in row order.
    """
    order = s.xp.argsort(as_double(s.confidence), stable=True)
    loss_from_most_confident = s.xp.flip(as_double(s.xp.take(s.loss, order)))
    remaining_loss = s.xp.flip(s.xp.cumulative_sum(loss_from_most_confident))
    return order, remaining_loss


def _mean_of_geifman_risks(s: Scored) -> Scalar:
    """Return the mean of the selective risks as the program of Geifman et al. computes them."""
    _, remaining_loss = _remaining_loss_in_row_order(s)
    n_remaining = s.xp.flip(s.xp.cumulative_sum(s.xp.ones_like(remaining_loss)))
    # Below full coverage, the program divides by one more than the number of remaining samples.
    full_risk = remaining_loss[0] / s.n_rows
    risk_sum = full_risk + s.xp.sum(remaining_loss[1:] / (n_remaining[1:] + 1.0))
    return as_scalar(risk_sum) / s.n_rows


def _legacy_trapezoid(s: Scored) -> Scalar:
    """Return the trapezoid area from coverage 1/n as the older code of FD-Shifts computes it."""
    if s.n_rows == 1:
        return 0.0
    xp = s.xp
    order, remaining_loss = _remaining_loss_in_row_order(s)
    n_remaining = xp.flip(xp.cumulative_sum(xp.ones_like(remaining_loss)))
    # The curve has a point after the rejection of the first sample of each tie group.
    ascending = as_double(xp.take(s.confidence, order))
    always_true = ascending[:1] == ascending[:1]
    is_first_of_group = xp.concat((always_true, ascending[1:-1] != ascending[:-2]))
    after_first = xp.nonzero(is_first_of_group)[0] + 1
    n_accepted = xp.take(n_remaining, after_first)
    risk_at_point = xp.take(remaining_loss, after_first) / n_accepted
    # The last segment ends at coverage 1/n and has the risk of the last point.
    all_n_accepted = xp.concat((n_remaining[:1], n_accepted, n_remaining[-1:]))
    risk = xp.concat((remaining_loss[:1] / s.n_rows, risk_at_point, risk_at_point[-1:]))
    width = all_n_accepted[:-1] - all_n_accepted[1:]
    doubled_area = xp.sum((risk[:-1] + risk[1:]) * width)
    return as_scalar(doubled_area) / (2 * s.n_rows)


def _trapezoid_from_first_sample(risk: FloatArray, *, scale: bool) -> Scalar:
    """Return the trapezoid area under the risk at the coverages k/n, divided by 1 - 1/n if scaled.

    `risk` contains the risk for k = 1, ..., n.
    """
    n = risk.shape[0]
    if n == 1:
        if scale:
            raise DomainError("the areas of torch-uncertainty need at least two samples; got 1")
        return 0.0
    doubled_area = namespace(risk).sum(risk[1:] + risk[:-1])
    area: Scalar = as_scalar(doubled_area) / (2 * n)
    return area / (1 - 1 / n) if scale else area
