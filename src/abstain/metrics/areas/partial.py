"""Partial AURC and partial AUGRC, which are areas between two coverages."""

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
    low, high = checks.fraction(low, "low"), checks.fraction(high, "high")
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
        As in `aurc`.
    low, high : float, default=0.0, 1.0
        The coverage interval, 0 <= low < high <= 1.
    interpolation : {"linear", "hyperbolic"}, default="linear"
        The curve between two vertices. "linear" is a straight line, as in the trapezoid AURC.
        "hyperbolic" is the exact risk if a random part of the tie group is accepted, whose
        generalized risk is linear.
    mean : bool, default=False
        Whether to divide the area by high - low, which yields the mean risk over the interval.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    float
        In [0, high - low] for losses in [0, 1], or [0, 1] with `mean`; **lower is better**.

    Raises
    ------
    ShapeError, DomainError
        As in `aurc`; also if not 0 <= low < high <= 1.

    Notes
    -----
    The areas of adjacent intervals add up, even if the intervals meet within a segment. The cost is
    one sort.

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
    kinds = {"linear": selective_risk_area, "hyperbolic": hyperbolic_risk_area}
    area_of = kinds[checks.one_of(interpolation, "interpolation", tuple(kinds))]
    area = area_of(validate_samples(confidence, loss, weight).merged_groups, low, high)
    return area / (high - low) if mean else area


def hyperbolic_risk_area(groups: TieGroups, low: float, high: float) -> Scalar:
    """Return the exact area under the selective risk between two coverages.

    Merged groups need no special case, because the generalized risk is a straight line over
    successes.
    """
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
    bounds = np.array([low, high]) * groups.total_weight
    neighbors = np.concatenate((np.floor(bounds), np.ceil(bounds))).astype(np.int64)
    # The split adds a vertex on each side of both bounds, so that no bound lies within a merged
    # group.
    groups = split_merged_groups(groups, np.unique(neighbors))
    right_weight, left_weight = linear_segments(
        groups.cumulative_weight / groups.total_weight, low, high, is_flat_at_start=True
    )
    risk = groups.cumulative_loss / groups.cumulative_weight
    left_risk = np.append(risk[:1], risk[:-1])
    areas = right_weight * risk + left_weight * left_risk
    is_merged = groups.last_vertex_weight < groups.weight
    is_in_interval = (groups.weight_above >= bounds[0]) & (groups.cumulative_weight <= bounds[1])
    is_complete = is_merged & is_in_interval
    complete_areas = trapezoid_areas(groups, groups.cumulative_loss) / groups.total_weight
    areas[is_complete] = complete_areas[is_complete]
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
        As in `augrc`.
    low, high : float, default=0.0, 1.0
        The coverage interval, 0 <= low < high <= 1.
    mean : bool, default=False
        Whether to divide the area by high - low, which yields the mean generalized risk over the
        interval.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    float
        In [0, (high^2 - low^2)/2] for losses in [0, 1]; **lower is better**.

    Raises
    ------
    ShapeError, DomainError
        As in `augrc`; also if not 0 <= low < high <= 1.

    Notes
    -----
    The curve is a straight line between two vertices, so the area is exact for random tie-breaking.
    The areas of adjacent intervals add up. The cost is one sort.

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
    """Return the influence on the mean risk between two coverages.

    The curve is continuous, so the fixed bounds of the interval contribute nothing. If the right
    vertex of a segment moves to larger coverages, the curve in the segment decreases in proportion
    to its slope.
    """
    groups = s.groups
    coverage = groups.cumulative_weight / groups.total_weight
    divisor = groups.cumulative_weight if selective else groups.total_weight
    risk = groups.cumulative_loss / divisor
    right_weight, left_weight = linear_segments(coverage, *coverages, is_flat_at_start=selective)
    # The selective risk is constant before the first vertex, and the generalized risk starts at 0.
    left_risk = np.concatenate((risk[:1] if selective else [0.0], risk[:-1]))
    slope = (risk - left_risk) / np.diff(coverage, prepend=0.0)
    vertex_weight = right_weight + np.append(left_weight[1:], 0.0)
    on_coverage = -slope * right_weight - np.append((slope * left_weight)[1:], 0.0)
    on_through = on_coverage / groups.total_weight
    if selective:
        on_through = on_through - vertex_weight * risk / divisor
    gradient = gradient_from_cumulative(on_through, vertex_weight / divisor)
    width = coverages[1] - coverages[0]
    return influence_from_gradient(s, Gradient(gradient.weight / width, gradient.loss / width))


@dataclass(frozen=True)
class _PartialArea:
    title: str
    meaning: str
    source: str
    area: Callable[[TieGroups, float, float], Scalar]
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
    """Return the mean risk between two coverages in percent, or None for an invalid interval."""
    min_coverage = float(low) / 100
    max_coverage = float(high) / 100
    if not min_coverage < max_coverage <= 1:
        return None
    coverages = min_coverage, max_coverage

    def compute(s: Scored) -> MetricValue:
        return MetricValue(kind.area(s.merged_groups, *coverages) / (max_coverage - min_coverage))

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
            n_failures=lambda s: count_accepted_failures(
                s, vertex_at_coverage(s.merged_groups, max_coverage, first=True)
            ),
        ),
        DisplayOptions(per_thousand=True),
    )


FAMILIES = (
    Family("partial_aurc@{}-{}cov", partial(_make_metric, _SELECTIVE), ("50", "80")),
    Family("partial_augrc@{}-{}cov", partial(_make_metric, _GENERALIZED), ("50", "80")),
)
