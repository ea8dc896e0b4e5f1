"""One working point and everything that happens there."""

from dataclasses import dataclass

from abstain._foundation import checks
from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import scored
from abstain.errors import InputError
from abstain.metrics._points import (
    at_coverage,
    at_risk,
    at_threshold,
    classification_quality_at,
    generalized_risk_of,
    rejection_quality_at,
    selective_risk_of,
)
from abstain.typing import AnyArray


@dataclass(frozen=True)
class WorkingPoint:
    """What happens at one threshold.

    Attributes
    ----------
    threshold : float
        Accept when confidence >= threshold; infinity when nothing is accepted.
    coverage : float
        Weighted share accepted.
    selective_risk : float
        Mean loss of the accepted; NaN when nothing is accepted.
    generalized_risk : float
        Coverage x selective risk: share of all samples accepted and wrong.
    classification_quality : float
        Share of samples accepted and right or rejected and wrong (Condessa et al., eq. 7).
    rejection_quality : float
        Odds of wrong among the rejected over odds of wrong among all (eq. 9); NaN when nothing
        is rejected or nothing is wrong, infinity when only wrong samples are rejected.
    accepted, n : int
        Samples accepted, samples in all.
    failures_accepted, failures_rejected : float
        Loss mass (number of failures for 0/1 loss) on either side of the threshold.
    """

    threshold: float
    coverage: float
    selective_risk: float
    generalized_risk: float
    classification_quality: float
    rejection_quality: float
    accepted: int
    n: int
    failures_accepted: float
    failures_rejected: float


def working_point(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    threshold: float | None = None,
    coverage: float | None = None,
    max_risk: float | None = None,
    weight: AnyArray | None = None,
) -> WorkingPoint:
    """Describe one working point, named by its threshold, its coverage or its risk.

    Answers: if I reject below this threshold (or: to keep this coverage, to stay below this
    risk), what do I get?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `augrc`.
    threshold : float, optional
        Accept when confidence >= threshold.
    coverage : float, optional
        Keep at least this share, at the lowest selective risk.
    max_risk : float, optional
        Keep the selective risk at or below this, at the largest coverage. This describes these
        data; it is no guarantee for new ones (see `abstain.thresholds`).
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    WorkingPoint
        Fractions and counts.

    Raises
    ------
    ShapeError, DomainError
        As in `augrc`.
    InputError
        If not exactly one of `threshold`, `coverage` and `max_risk` is given, or if no threshold
        keeps the risk.

    Notes
    -----
    Only thresholds that these data can tell apart are returned: ties are accepted or rejected
    together. The two qualities count losses in [0, 1] as graded errors. Cost: one sort.

    References
    ----------
    .. [1] Condessa et al. (2017), Performance measures for classification systems with
       rejection, https://doi.org/10.1016/j.patcog.2016.10.011

    Examples
    --------
    >>> import abstain as ab
    >>> point = ab.working_point([0.9, 0.8, 0.7, 0.6], [0, 0, 1, 0], coverage=0.5)
    >>> point.threshold, point.coverage, point.selective_risk, point.accepted
    (0.8, 0.5, 0.0, 2)
    """
    given = [x for x in (threshold, coverage, max_risk) if x is not None]
    if len(given) != 1:
        msg = f"give exactly one of `threshold`, `coverage` and `max_risk`; got {len(given)}"
        raise InputError(msg)
    groups = scored(confidence, loss, weight).groups
    if threshold is not None:
        return _describe(groups, at_threshold(groups, checks.number(threshold, "threshold")))
    if coverage is not None:
        return _describe(groups, at_coverage(groups, checks.fraction(coverage, "coverage")))
    risk = checks.number(max_risk, "max_risk")
    index = at_risk(groups, risk)
    if index < 0:
        least = float((groups.loss_through / groups.through).min())
        msg = f"no threshold keeps the selective risk at or below {risk:g}; the least is {least:g}"
        raise InputError(msg)
    return _describe(groups, index)


def _describe(groups: TieGroups, index: int) -> WorkingPoint:
    none = index < 0
    weight = 0.0 if none else float(groups.through[index])
    wrong = 0.0 if none else float(groups.loss_through[index])
    return WorkingPoint(
        threshold=float("inf") if none else float(groups.confidence[index]),
        coverage=weight / groups.total,
        selective_risk=selective_risk_of(groups, index).value,
        generalized_risk=generalized_risk_of(groups, index).value,
        classification_quality=classification_quality_at(groups, index).value,
        rejection_quality=rejection_quality_at(groups, index).value,
        accepted=0 if none else int(groups.count_through[index]),
        n=groups.n,
        failures_accepted=wrong,
        failures_rejected=float(groups.loss_through[-1]) - wrong,
    )
