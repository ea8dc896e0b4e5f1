"""One working point and everything that happens there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from abstain._foundation import checks
from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Scored, scored, undefined
from abstain.errors import InputError
from abstain.metrics._points import (
    accepted,
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
        is rejected or nothing is wrong, infinity when only wrong samples are rejected. Both
        qualities are NaN for losses above 1.
    accepted, n : int
        Samples accepted, samples in all.
    failures_accepted, failures_rejected : float
        Loss mass (number of failures for 0/1 loss) on either side of the threshold.
    reasons : mapping
        For each field that is NaN, why.
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
    reasons: Mapping[str, str]


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
        data; it is no guarantee for new ones.
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
    given = {"threshold": threshold, "coverage": coverage, "max_risk": max_risk}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        msg = f"give exactly one of `threshold`, `coverage` and `max_risk`; got {len(named)}"
        raise InputError(msg)
    s = scored(confidence, loss, weight).plain
    return _describe(s, _VERTEX[named[0]](s.groups, given[named[0]]))


def _within_risk(groups: TieGroups, max_risk: Any) -> int:
    risk = checks.number(max_risk, "max_risk")
    index = at_risk(groups, risk)
    if index < 0:
        least = float(groups.xp.min(groups.loss_through / groups.through))
        msg = f"no threshold keeps the selective risk at or below {risk:g}; the least is {least:g}"
        raise InputError(msg)
    return index


_VERTEX: dict[str, Callable[[TieGroups, Any], int]] = {
    "threshold": lambda groups, x: at_threshold(groups, checks.number(x, "threshold")),
    "coverage": lambda groups, x: at_coverage(groups, checks.fraction(x, "coverage")),
    "max_risk": _within_risk,
}


def _describe(s: Scored, index: int) -> WorkingPoint:
    groups = s.groups
    weight, wrong, count = accepted(groups, index)
    graded = undefined("it needs a loss in [0, 1]")
    measured = {
        "selective_risk": selective_risk_of(groups, index),
        "generalized_risk": generalized_risk_of(groups, index),
        "classification_quality": classification_quality_at(groups, index) if s.bounded else graded,
        "rejection_quality": rejection_quality_at(groups, index) if s.bounded else graded,
    }
    return WorkingPoint(
        threshold=float("inf") if index < 0 else float(groups.confidence[index]),
        coverage=weight / groups.total,
        **{name: found.value for name, found in measured.items()},
        accepted=count,
        n=groups.n,
        failures_accepted=wrong,
        failures_rejected=float(groups.loss_through[-1]) - wrong,
        reasons={k: m.reason for k, m in measured.items() if m.reason},
    )
