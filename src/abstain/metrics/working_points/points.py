"""Risk at a coverage or threshold, coverage at a risk, and all that happens at a threshold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import interpolate, prepend_zero
from abstain._foundation.gradients import as_double_like, as_scalar
from abstain._foundation.measurement import undefined
from abstain._foundation.scored import Scored, validate_samples
from abstain._foundation.tie_groups import TieGroups, with_vertex_at
from abstain.errors import InputError
from abstain.metrics.entry import value_with_warning
from abstain.metrics.working_points.quantities import (
    accepted_totals,
    classification_quality_at_vertex,
    coverage_at_vertex,
    generalized_risk_at_vertex,
    min_accepted_weight,
    rejection_quality_at_vertex,
    selective_risk_at_vertex,
    split_at_threshold,
    vertex_at_coverage,
    vertex_at_risk,
)
from abstain.typing import AnyArray, Scalar

PointRule = Literal["usable", "first", "expected"]


def selective_risk(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    coverage: float | None = None,
    threshold: float | None = None,
    rule: PointRule = "usable",
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
    s = validate_samples(confidence, loss, weight)
    if _name_of_target(coverage, threshold) == "threshold":
        parted = split_at_threshold(s, checks.number(threshold, "threshold"))
        return value_with_warning(selective_risk_at_vertex(*parted), "selective_risk")
    share = checks.fraction(coverage or 0.0, "coverage")
    if rule == "expected":
        share = max(share, float(np.finfo(np.float64).tiny))
        return _interpolated_generalized_risk(s.merged_groups, share) / share
    result = selective_risk_at_vertex(*_groups_and_vertex_at_coverage(s, share, rule))
    return value_with_warning(result, "selective_risk")


def generalized_risk(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    coverage: float | None = None,
    threshold: float | None = None,
    rule: PointRule = "usable",
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
    s = validate_samples(confidence, loss, weight)
    if _name_of_target(coverage, threshold) == "threshold":
        return generalized_risk_at_vertex(
            *split_at_threshold(s, checks.number(threshold, "threshold"))
        ).value
    share = checks.fraction(coverage or 0.0, "coverage")
    if rule == "expected":
        return _interpolated_generalized_risk(s.merged_groups, share)
    return generalized_risk_at_vertex(*_groups_and_vertex_at_coverage(s, share, rule)).value


def _groups_and_vertex_at_coverage(
    s: Scored, share: float, rule: PointRule
) -> tuple[TieGroups, int]:
    """Return groups, and which of them is the working point."""
    first = rule == "first"
    groups = (
        with_vertex_at(s.merged_groups, min_accepted_weight(s.merged_groups, share))
        if first
        else s.merged_groups
    )
    return groups, vertex_at_coverage(groups, share, first=first)


def _name_of_target(coverage: float | None, threshold: float | None) -> str:
    if (coverage is None) == (threshold is None):
        raise InputError("give exactly one of `coverage` and `threshold`")
    return "coverage" if threshold is None else "threshold"


def _interpolated_generalized_risk(groups: TieGroups, coverage: float) -> Scalar:
    shares = prepend_zero(groups.cumulative_weight / groups.total_weight)
    risks = prepend_zero(groups.cumulative_loss / groups.total_weight)
    return as_scalar(interpolate(as_double_like([coverage], shares), shares, risks)[0])


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
    groups = validate_samples(confidence, loss, weight).merged_groups
    index = vertex_at_risk(groups, checks.number(max_risk, "max_risk"))
    return coverage_at_vertex(groups, index).value


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
    targets = {"threshold": threshold, "coverage": coverage, "max_risk": max_risk}
    names = [name for name, value in targets.items() if value is not None]
    if len(names) != 1:
        raise InputError(
            f"give exactly one of `threshold`, `coverage` and `max_risk`; got {len(names)}"
        )
    s = validate_samples(confidence, loss, weight).without_gradient
    if threshold is not None:
        # It may lie anywhere, also within a merged group.
        parted = split_at_threshold(s, checks.number(threshold, "threshold"))
        return _working_point_at_vertex(*parted, bounded=s.is_loss_bounded)
    find = _find_vertex_at_risk if coverage is None else _find_vertex_at_coverage
    return _working_point_at_vertex(
        s.merged_groups, find(s.merged_groups, targets[names[0]]), bounded=s.is_loss_bounded
    )


def _find_vertex_at_risk(groups: TieGroups, max_risk: Any) -> int:
    risk = checks.number(max_risk, "max_risk")
    index = vertex_at_risk(groups, risk)
    if index < 0:
        min_risk = float(groups.xp.min(groups.cumulative_loss / groups.cumulative_weight))
        raise InputError(
            f"no threshold keeps the selective risk at or below {risk:g}; the least is {min_risk:g}"
        )
    return index


def _find_vertex_at_coverage(groups: TieGroups, coverage: Any) -> int:
    return vertex_at_coverage(groups, checks.fraction(coverage, "coverage"))


def _working_point_at_vertex(groups: TieGroups, index: int, *, bounded: bool) -> WorkingPoint:
    weight, accepted_loss, count = accepted_totals(groups, index)
    undefined_quality = undefined("it needs a loss in [0, 1]")
    measured = {
        "selective_risk": selective_risk_at_vertex(groups, index),
        "generalized_risk": generalized_risk_at_vertex(groups, index),
        "classification_quality": classification_quality_at_vertex(groups, index)
        if bounded
        else undefined_quality,
        "rejection_quality": rejection_quality_at_vertex(groups, index)
        if bounded
        else undefined_quality,
    }
    return WorkingPoint(
        threshold=float("inf") if index < 0 else float(groups.confidence[index]),
        coverage=weight / groups.total_weight,
        **{name: value.value for name, value in measured.items()},
        accepted=count,
        n=groups.n_samples,
        failures_accepted=accepted_loss,
        failures_rejected=float(groups.cumulative_loss[-1]) - accepted_loss,
        reasons={k: m.reason for k, m in measured.items() if m.reason},
    )
