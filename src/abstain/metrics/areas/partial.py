"""Partial AURC and partial AUGRC, which are areas between two coverages."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.scored import MetricValue, Scored, validate_samples
from abstain._foundation.tie_groups import TieGroups, split_merged_groups
from abstain.curves.quadrature import linear_segments
from abstain.errors import DomainError
from abstain.inference.influence import Gradient, gradient_from_cumulative
from abstain.metrics.entry import DisplayOptions, Family, Identity, Measurement, Metric
from abstain.metrics.influences import accepts_group_rows, influence_from_gradient
from abstain.metrics.rank_weights import (
    partial_generalized_weights,
    partial_hyperbolic_weights,
    partial_trapezoid_weights,
    rank_weight_from_vertices,
    rank_weighted_risk,
    trapezoid_areas,
)
from abstain.metrics.working_points.quantities import count_accepted_failures, vertex_at_coverage
from abstain.typing import AnyArray, FloatArray, Scalar

Interpolation = Literal["linear", "hyperbolic"]


def _check_coverage_interval(low: float, high: float) -> tuple[float, float]:
    """Return the bounds as floats, or raise an error unless 0 <= low < high <= 1."""
    low = checks.fraction(low, "low")
    high = checks.fraction(high, "high")
    if low >= high:
        raise DomainError(f"`low` must be below `high`; got low = {low!r}, high = {high!r}")
    return low, high


def partial_aurc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    low: float = 0.0,
    high: float = 1.0,
    interpolation: Interpolation = "linear",
    mean: bool = False,
    weight: AnyArray | None = None,
) -> float:
    """Compute the area under the selective risk-coverage curve between two coverages.

    Answers: averaged over the coverages of interest, how large is the mean loss of the accepted
    samples?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `aurc`.
    low, high : float, default=0.0, 1.0
        The coverage interval, 0 <= low < high <= 1.
    interpolation : {"linear", "hyperbolic"}, default="linear"
        The curve over a tie group. "linear" is a straight line, as in the trapezoid AURC.
        "hyperbolic" is the exact risk if a random part of the tie group is accepted.
    mean : bool, default=False
        Whether to divide the area by high - low, which yields the mean risk over the interval.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, high - low] for losses in [0, 1], or [0, 1] with `mean`; **lower is better**.

    Raises
    ------
    ShapeError, DomainError
        As in `aurc`; also if not 0 <= low < high <= 1.

    Notes
    -----
    The areas over adjacent intervals of coverage add up, even if a tie group contains their common
    bound. The function sorts the samples once.

    References
    ----------
    .. [1] The code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts
       (between two coverages, with hyperbolas only)

    Examples
    --------
    >>> import abstain as ab
    >>> ab.partial_aurc([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 0], low=0.3, high=0.4, mean=True)
    1.0
    """
    low, high = _check_coverage_interval(low, high)
    checks.one_of(interpolation, "interpolation", ("linear", "hyperbolic"))
    compute_area = selective_risk_area if interpolation == "linear" else hyperbolic_risk_area
    groups = validate_samples(confidence, loss, weight).merged_groups
    area = compute_area(groups, low, high)
    return area / (high - low) if mean else area


def hyperbolic_risk_area(groups: TieGroups, low: float, high: float) -> Scalar:
    """Return the exact area under the selective risk between two coverages."""
    phi = rank_weight_from_vertices(partial_hyperbolic_weights(low, high))
    return rank_weighted_risk(groups, phi)


def generalized_risk_area(groups: TieGroups, low: float, high: float) -> Scalar:
    """Return the area under the generalized risk between two coverages."""
    phi = rank_weight_from_vertices(partial_generalized_weights(low, high))
    return rank_weighted_risk(groups, phi)


def selective_risk_area(groups: TieGroups, low: float, high: float) -> Scalar:
    """Return the trapezoid area under the selective risk between two coverages."""
    if groups.is_merged_without_unknown_ties is None:
        phi = rank_weight_from_vertices(partial_trapezoid_weights(low, high))
        return rank_weighted_risk(groups, phi)
    # Merged groups are split next to both bounds, so that no merged group contains a bound.
    low_weight, high_weight = np.array([low, high]) * groups.total_weight
    positions = [
        math.floor(low_weight),
        math.ceil(low_weight),
        math.floor(high_weight),
        math.ceil(high_weight),
    ]
    groups = split_merged_groups(groups, np.unique(positions))
    coverage = groups.cumulative_weight / groups.total_weight
    right_weight, left_weight = linear_segments(coverage, low, high, is_flat_at_start=True)
    risk = groups.cumulative_loss / groups.cumulative_weight
    left_risk = np.append(risk[:1], risk[:-1])
    areas = right_weight * risk + left_weight * left_risk
    # A merged group consists of several segments, so its area is not that of one straight line.
    is_merged = groups.last_vertex_weight < groups.weight
    is_in_interval = (groups.weight_above >= low_weight) & (groups.cumulative_weight <= high_weight)
    has_several_segments = is_merged & is_in_interval
    group_areas = trapezoid_areas(groups, groups.cumulative_loss) / groups.total_weight
    areas[has_several_segments] = group_areas[has_several_segments]
    return float(areas.sum())


def partial_augrc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    low: float = 0.0,
    high: float = 1.0,
    mean: bool = False,
    weight: AnyArray | None = None,
) -> float:
    """Compute the area under the generalized risk-coverage curve between two coverages.

    Answers: averaged over the coverages of interest, how frequent are silent failures?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `augrc`.
    low, high : float, default=0.0, 1.0
        The coverage interval, 0 <= low < high <= 1.
    mean : bool, default=False
        Whether to divide the area by high - low, which yields the mean generalized risk over the
        interval.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, (high^2 - low^2)/2] for losses in [0, 1]; **lower is better**.

    Raises
    ------
    ShapeError, DomainError
        As in `augrc`; also if not 0 <= low < high <= 1.

    Notes
    -----
    The curve is linear over tied samples, which equals the expectation over random tie-breaking.
    The areas over adjacent intervals of coverage add up. The function sorts the samples once.

    References
    ----------
    .. [1] Traub et al. (2024), eq. 6, https://arxiv.org/abs/2407.01032 (over all coverages;
       abstain defines the interval)

    Examples
    --------
    >>> import abstain as ab
    >>> ab.partial_augrc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], low=0.5)
    0.15625
    """
    low, high = _check_coverage_interval(low, high)
    groups = validate_samples(confidence, loss, weight).merged_groups
    area = generalized_risk_area(groups, low, high)
    return area / (high - low) if mean else area


def _influence(s: Scored, *, coverages: tuple[float, float], selective: bool) -> FloatArray:
    """Return the influence of each sample on the mean risk between two coverages."""
    low, high = coverages
    groups = s.groups
    coverage = groups.cumulative_weight / groups.total_weight
    divisor = groups.cumulative_weight if selective else groups.total_weight
    risk = groups.cumulative_loss / divisor
    right_weight, left_weight = linear_segments(coverage, low, high, is_flat_at_start=selective)
    # The selective risk is constant before the first point, and the generalized risk starts at 0.
    first_left_risk = risk[:1] if selective else [0.0]
    left_risk = np.concatenate((first_left_risk, risk[:-1]))
    # If the right end of a segment moves to larger coverages, the curve in the segment decreases in
    # proportion to its slope.
    slope = (risk - left_risk) / np.diff(coverage, prepend=0.0)
    on_coverage = -slope * right_weight - np.append((slope * left_weight)[1:], 0.0)
    risk_weight = right_weight + np.append(left_weight[1:], 0.0)
    on_position = on_coverage / groups.total_weight
    if selective:
        on_position = on_position - risk_weight * risk / divisor
    gradient = gradient_from_cumulative(on_position, risk_weight / divisor)
    width = high - low
    return influence_from_gradient(s, Gradient(gradient.weight / width, gradient.loss / width))


@dataclass(frozen=True)
class _PartialArea:
    """Names and computation of the mean selective or generalized risk between two coverages."""

    title: str
    meaning: str
    source: str
    #: Function of tie groups and two coverages that returns the area.
    area: Callable[[TieGroups, float, float], Scalar]
    #: Whether the curve is the selective risk.
    selective: bool


_SELECTIVE = _PartialArea(
    "mean selective risk from {} to {}% coverage",
    "Averaged over coverages from {} to {}%, {{value}} of the accepted samples are wrong.",
    "code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts",
    selective_risk_area,
    selective=True,
)
_GENERALIZED = _PartialArea(
    "mean generalized risk from {} to {}% coverage",
    "Averaged over coverages from {} to {}%, {{value}} of all samples are accepted and wrong.",
    "Traub et al. (2024), eq. 6, between two coverages, https://arxiv.org/abs/2407.01032",
    generalized_risk_area,
    selective=False,
)


def _make_metric(kind: _PartialArea, name: str, low: str, high: str) -> Metric | None:
    """Return the metric of the mean risk between two coverages; None for an invalid interval."""
    min_coverage = float(low) / 100
    max_coverage = float(high) / 100
    if not min_coverage < max_coverage <= 1:
        return None
    coverages = min_coverage, max_coverage

    def compute(s: Scored) -> MetricValue:
        area = kind.area(s.merged_groups, min_coverage, max_coverage)
        return MetricValue(area / (max_coverage - min_coverage))

    def count_failures(s: Scored) -> int:
        vertex = vertex_at_coverage(s.merged_groups, max_coverage, first=True)
        return count_accepted_failures(s, vertex)

    return Metric(
        Identity(
            name=name,
            title=kind.title.format(low, high),
            family="area",
            lower_is_better=True,
            meaning=kind.meaning.format(low, high),
            source=kind.source,
        ),
        Measurement(
            compute=compute,
            high=1.0 if kind.selective else (min_coverage + max_coverage) / 2,
            averages_ties=not kind.selective,
            influence=accepts_group_rows(
                partial(_influence, coverages=coverages, selective=kind.selective)
            ),
            heavy_tailed=kind.selective,
            n_failures=count_failures,
        ),
        DisplayOptions(per_thousand=True),
    )


FAMILIES = (
    Family("partial_aurc@{}-{}cov", partial(_make_metric, _SELECTIVE), ("50", "80")),
    Family("partial_augrc@{}-{}cov", partial(_make_metric, _GENERALIZED), ("50", "80")),
)
