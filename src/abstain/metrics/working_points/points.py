"""Risk at a coverage or threshold, coverage at a risk, and all metrics of a working point."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import interpolate, prepend_zero
from abstain._foundation.arrays import as_double_like, as_scalar
from abstain._foundation.scored import Scored, undefined, validate_samples
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

    Answers: how large is the mean loss of the accepted samples, if this share is accepted?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `augrc`.
    coverage, threshold : float
        The minimum coverage, or the threshold. Samples with confidence >= threshold are accepted.
        Pass exactly one of the two arguments.
    rule : {"usable", "first", "expected"}, default="usable"
        The rule that selects a working point for a coverage. "usable" selects the threshold of
        minimum risk among all thresholds with at least the coverage, as in FD-Shifts. "first"
        selects the threshold of smallest coverage among all these thresholds. "expected" accepts
        exactly the requested coverage and, to do so, a random part of a tie group.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1] for losses in [0, 1]; **lower is better**. The value is NaN, with an
        `UndefinedMetricWarning`, if no sample is accepted.

    Raises
    ------
    ShapeError, DomainError, InputError
        See `working_point`.

    Notes
    -----
    The function sorts the samples once.

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
    s = validate_samples(confidence, loss, weight)
    _check_options(coverage, threshold, rule)
    if coverage is not None and rule == "expected":
        share = max(checks.fraction(coverage, "coverage"), float(np.finfo(np.float64).tiny))
        return _interpolated_generalized_risk(s.merged_groups, share) / share
    groups, index = _groups_and_vertex(s, coverage, threshold, rule)
    return value_with_warning(selective_risk_at_vertex(groups, index), "selective_risk")


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

    Answers: which share of all samples is accepted and wrong?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `augrc`.
    coverage, threshold : float
        The minimum coverage, or the threshold. Samples with confidence >= threshold are accepted.
        Pass exactly one of the two arguments.
    rule : {"usable", "first", "expected"}, default="usable"
        See `selective_risk`.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1] for losses in [0, 1]; **lower is better**. The value is 0 if no sample is
        accepted.

    Raises
    ------
    ShapeError, DomainError, InputError
        See `working_point`.

    Notes
    -----
    The function sorts the samples once.

    References
    ----------
    .. [1] Traub et al. (2024), eq. 3, https://arxiv.org/abs/2407.01032

    Examples
    --------
    >>> import abstain as ab
    >>> ab.generalized_risk([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 0], threshold=0.75)
    0.25
    """
    s = validate_samples(confidence, loss, weight)
    _check_options(coverage, threshold, rule)
    if coverage is not None and rule == "expected":
        share = checks.fraction(coverage, "coverage")
        return _interpolated_generalized_risk(s.merged_groups, share)
    groups, index = _groups_and_vertex(s, coverage, threshold, rule)
    return generalized_risk_at_vertex(groups, index).value


def _check_options(coverage: float | None, threshold: float | None, rule: PointRule) -> None:
    """Raise an error unless the rule is valid and exactly one of coverage and threshold is set."""
    checks.one_of(rule, "rule", ("usable", "first", "expected"))
    if (coverage is None) == (threshold is None):
        raise InputError("pass exactly one of `coverage` and `threshold`")


def _groups_and_vertex(
    s: Scored, coverage: float | None, threshold: float | None, rule: PointRule = "usable"
) -> tuple[TieGroups, int]:
    """Return tie groups, and the index of the last group accepted at the working point."""
    if coverage is None:
        # The threshold may lie within a merged group.
        return split_at_threshold(s, checks.number(threshold, "threshold"))
    groups = s.merged_groups
    share = checks.fraction(coverage, "coverage")
    if rule == "first":
        groups = with_vertex_at(groups, min_accepted_weight(groups, share))
    return groups, vertex_at_coverage(groups, share, first=rule == "first")


def _interpolated_generalized_risk(groups: TieGroups, coverage: float) -> Scalar:
    """Return the generalized risk at exactly this coverage by linear interpolation."""
    coverages = prepend_zero(groups.cumulative_weight / groups.total_weight)
    risks = prepend_zero(groups.cumulative_loss / groups.total_weight)
    requested = as_double_like([coverage], coverages)
    return as_scalar(interpolate(requested, coverages, risks)[0])


def coverage_at_risk(
    confidence: AnyArray, loss: AnyArray, *, max_risk: float, weight: AnyArray | None = None
) -> float:
    """Compute the largest coverage whose selective risk is at most `max_risk`.

    Answers: how many samples can be accepted if the risk must be at most this value?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `augrc`.
    max_risk : float
        The maximum selective risk.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The value is 0 if no threshold has at most this risk.

    Raises
    ------
    ShapeError, DomainError
        See `augrc`.

    Notes
    -----
    The value describes these data and is not a guarantee for new data. The function sorts the
    samples once.

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
    """Metrics at one threshold.

    Attributes
    ----------
    threshold : float
        Samples with confidence >= threshold are accepted. The threshold is infinity if no sample is
        accepted.
    coverage : float
        Weighted share of accepted samples.
    selective_risk : float
        Mean loss of the accepted samples, or NaN if no sample is accepted.
    generalized_risk : float
        Coverage x selective risk, which is the share of samples that are accepted and wrong.
    classification_quality : float
        Share of samples that are accepted and correct or rejected and wrong (Condessa et al.,
        eq. 7).
    rejection_quality : float
        Odds of failure among the rejected samples divided by the odds among all samples (eq. 9).
        The ratio is NaN if no sample is rejected or no sample fails, and infinity if only failures
        are rejected. The classification quality and the rejection quality are NaN for losses above
        1.
    accepted, n : int
        Number of accepted samples and number of all samples.
    failures_accepted, failures_rejected : float
        Total loss of the accepted samples and of the rejected samples. For 0/1 loss, the total loss
        is the number of failures.
    reasons : mapping
        The reason for each field that is NaN, by the name of the field.
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
    """Compute all metrics of a working point, which a threshold, a coverage or a risk determines.

    Answers: which coverage and risks does a threshold have, and which threshold has a requested
    coverage or risk?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `augrc`.
    threshold : float, optional
        Samples with confidence >= threshold are accepted.
    coverage : float, optional
        Coverage that selects a threshold. The threshold has the minimum selective risk among all
        thresholds with at least this coverage.
    max_risk : float, optional
        Selective risk that selects a threshold. The threshold has the largest coverage among all
        thresholds with at most this risk. The result describes these data and is not a guarantee
        for new data.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    WorkingPoint
        The metrics as fractions and counts.

    Raises
    ------
    ShapeError, DomainError
        See `augrc`.
    InputError
        If none or several of `threshold`, `coverage` and `max_risk` are passed, or if no threshold
        has at most this risk.

    Notes
    -----
    Tied samples are accepted or rejected together, so a selected threshold is a confidence in the
    data. The classification quality and the rejection quality treat losses in [0, 1] as fractional
    failures. The function sorts the samples once.

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
    n_targets = sum(target is not None for target in (threshold, coverage, max_risk))
    if n_targets != 1:
        raise InputError(
            f"pass exactly one of `threshold`, `coverage` and `max_risk`; got {n_targets}"
        )
    s = validate_samples(confidence, loss, weight).without_gradient
    if max_risk is None:
        groups, index = _groups_and_vertex(s, coverage, threshold)
    else:
        groups = s.merged_groups
        index = vertex_at_risk(groups, checks.number(max_risk, "max_risk"))
        if index < 0:
            min_risk = float(s.xp.min(groups.cumulative_loss / groups.cumulative_weight))
            raise InputError(
                f"no threshold has a selective risk of at most {max_risk:g}; the minimum is "
                f"{min_risk:g}"
            )
    return _working_point_at_vertex(groups, index, is_loss_bounded=s.is_loss_bounded)


def _working_point_at_vertex(
    groups: TieGroups, index: int, *, is_loss_bounded: bool
) -> WorkingPoint:
    """Collect the metrics at the threshold of a tie group; the index -1 accepts no sample."""
    weight, accepted_loss, count = accepted_totals(groups, index)
    metrics = {
        "selective_risk": selective_risk_at_vertex(groups, index),
        "generalized_risk": generalized_risk_at_vertex(groups, index),
        "classification_quality": undefined("it requires a loss in [0, 1]"),
        "rejection_quality": undefined("it requires a loss in [0, 1]"),
    }
    if is_loss_bounded:
        metrics["classification_quality"] = classification_quality_at_vertex(groups, index)
        metrics["rejection_quality"] = rejection_quality_at_vertex(groups, index)
    return WorkingPoint(
        threshold=float("inf") if index < 0 else float(groups.confidence[index]),
        coverage=weight / groups.total_weight,
        **{name: metric.value for name, metric in metrics.items()},
        accepted=count,
        n=groups.n_samples,
        failures_accepted=accepted_loss,
        failures_rejected=float(groups.cumulative_loss[-1]) - accepted_loss,
        reasons={name: metric.reason for name, metric in metrics.items() if metric.reason},
    )
