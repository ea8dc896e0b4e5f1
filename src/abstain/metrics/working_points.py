"""Risk at a coverage or threshold, and coverage at a risk."""

from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.foreign import numbers_beside, scalar
from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import scored
from abstain._foundation.segments import from_zero, interpolated
from abstain.errors import InputError
from abstain.metrics._entry import value_of
from abstain.metrics._points import (
    at_coverage,
    at_risk,
    at_threshold,
    coverage_of,
    generalized_risk_of,
    selective_risk_of,
)
from abstain.typing import AnyArray, Scalar

Rule = Literal["usable", "first", "expected"]


def selective_risk(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    coverage: float | None = None,
    threshold: float | None = None,
    rule: Rule = "usable",
    weight: AnyArray | None = None,
) -> float:
    """Compute the selective risk at a coverage or a threshold.

    Answers: how often are the accepted samples wrong, if I keep this share of them?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `augrc`.
    coverage, threshold : float
        Exactly one: the share to keep at least, or the threshold (accept when >=).
    rule : {"usable", "first", "expected"}, default="usable"
        How a coverage becomes a working point. "usable": the lowest risk among the thresholds
        that keep at least the coverage (FD-Shifts). "first": the smallest coverage that is at
        least the one asked for. "expected": exactly that coverage, a tie group accepted in part
        at random.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1] for losses in [0, 1]; **lower is better**. NaN, with an
        `UndefinedMetricWarning`, when nothing reaches the threshold.

    Raises
    ------
    ShapeError, DomainError, InputError
        As in `working_point`.

    Notes
    -----
    Cost: one sort.

    References
    ----------
    .. [1] Geifman and El-Yaniv (2017), eq. 2, https://arxiv.org/abs/1705.08500

    Examples
    --------
    >>> import abstain as ab
    >>> ab.selective_risk([0.9, 0.8, 0.7, 0.6], [1, 0, 0, 0], coverage=0.5)
    0.25
    >>> ab.selective_risk([0.9, 0.8, 0.7, 0.6], [1, 0, 0, 0], coverage=0.5, rule="first")
    0.5
    """
    checks.one_of(rule, "rule", ("usable", "first", "expected"))
    groups = scored(confidence, loss, weight).groups
    if _one_of(coverage, threshold) == "threshold":
        index = at_threshold(groups, checks.number(threshold, "threshold"))
        return value_of(selective_risk_of(groups, index), "selective_risk")
    share = checks.fraction(coverage or 0.0, "coverage")
    if rule == "expected":
        share = max(share, float(np.finfo(np.float64).tiny))
        return _expected_generalized(groups, share) / share
    index = at_coverage(groups, share, first=rule == "first")
    return value_of(selective_risk_of(groups, index), "selective_risk")


def generalized_risk(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    coverage: float | None = None,
    threshold: float | None = None,
    rule: Rule = "usable",
    weight: AnyArray | None = None,
) -> float:
    """Compute the generalized risk at a coverage or a threshold.

    Answers: what share of all samples is accepted and wrong there?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `augrc`.
    coverage, threshold : float
        Exactly one: the share to keep at least, or the threshold (accept when >=).
    rule : {"usable", "first", "expected"}, default="usable"
        As in `selective_risk`.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1] for losses in [0, 1]; **lower is better**; 0 when nothing is accepted.

    Raises
    ------
    ShapeError, DomainError, InputError
        As in `working_point`.

    Notes
    -----
    Cost: one sort.

    References
    ----------
    .. [1] Traub et al. (2024), eq. 3, https://arxiv.org/abs/2407.01032

    Examples
    --------
    >>> import abstain as ab
    >>> ab.generalized_risk([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 0], threshold=0.75)
    0.25
    """
    checks.one_of(rule, "rule", ("usable", "first", "expected"))
    groups = scored(confidence, loss, weight).groups
    if _one_of(coverage, threshold) == "threshold":
        index = at_threshold(groups, checks.number(threshold, "threshold"))
        return generalized_risk_of(groups, index).value
    share = checks.fraction(coverage or 0.0, "coverage")
    if rule == "expected":
        return _expected_generalized(groups, share)
    return generalized_risk_of(groups, at_coverage(groups, share, first=rule == "first")).value


def _one_of(coverage: float | None, threshold: float | None) -> str:
    if (coverage is None) == (threshold is None):
        msg = "give exactly one of `coverage` and `threshold`"
        raise InputError(msg)
    return "coverage" if threshold is None else "threshold"


def _expected_generalized(groups: TieGroups, coverage: float) -> Scalar:
    shares = from_zero(groups.through / groups.total)
    risks = from_zero(groups.loss_through / groups.total)
    return scalar(interpolated(numbers_beside([coverage], shares), shares, risks)[0])


def coverage_at_risk(
    confidence: AnyArray, loss: AnyArray, *, max_risk: float, weight: AnyArray | None = None
) -> float:
    """Compute the largest coverage whose selective risk is at most a given one.

    Answers: how many samples can I keep if at most this share of them may be wrong?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `augrc`.
    max_risk : float
        The risk to stay at or below.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **higher is better**; 0 when no threshold keeps the risk.

    Raises
    ------
    ShapeError, DomainError
        As in `augrc`.

    Notes
    -----
    A description of these data, no guarantee for new ones. Cost: one sort.

    References
    ----------
    .. [1] Geifman and El-Yaniv (2017), https://arxiv.org/abs/1705.08500

    Examples
    --------
    >>> import abstain as ab
    >>> ab.coverage_at_risk([0.9, 0.8, 0.7, 0.6], [0, 0, 1, 1], max_risk=0.4)
    0.75
    """
    groups = scored(confidence, loss, weight).groups
    index = at_risk(groups, checks.number(max_risk, "max_risk"))
    return coverage_of(groups, index).value
