"""Areas between two coverages: partial AURC and AUGRC, exact inside a segment."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.measurement import MetricValue
from abstain._foundation.scored import Scored, validate_samples
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

    Answers: how wrong are the accepted samples, over the coverages I may really use?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `aurc`.
    low, high : float, default=0.0, 1.0
        The coverage interval, 0 <= low < high <= 1.
    interpolation : {"linear", "hyperbolic"}, default="linear"
        Between two vertices: a straight line (as the trapezoid AURC), or the exact risk when a
        tie group is accepted in part at random (its generalized risk is linear).
    mean : bool, default=False
        Divide by high - low, for the mean risk over the interval.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

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
    Areas of adjacent intervals add up to the whole, also inside a segment. Cost: one sort.

    References
    ----------
    .. [1] The code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts
       (between two coverages by hyperbolas only)

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

    Over untied successes the generalized risk is a straight line.
    """
    return rank_weighted_risk(
        groups, rank_weight_from_vertices(partial_hyperbolic_weights(low, high))
    )


def generalized_risk_area(groups: TieGroups, low: float, high: float) -> Scalar:
    """Return the area under the generalized risk between two coverages."""
    return rank_weighted_risk(
        groups, rank_weight_from_vertices(partial_generalized_weights(low, high))
    )


def selective_risk_area(groups: TieGroups, low: float, high: float) -> Scalar:
    """Return the trapezoid area under the selective risk between two coverages."""
    if groups.is_merged_without_unknown_ties is None:
        return rank_weighted_risk(
            groups, rank_weight_from_vertices(partial_trapezoid_weights(low, high))
        )
    ends = np.array([low, high]) * groups.total_weight
    around = np.concatenate((np.floor(ends), np.ceil(ends))).astype(np.int64)
    groups = split_merged_groups(groups, np.unique(around))
    accepted, through, above = groups.cumulative_loss, groups.cumulative_weight, groups.weight_above
    right, left = linear_segments(through / groups.total_weight, low, high, is_flat_at_start=True)
    risk = accepted / through
    area = right * risk + left * np.append(risk[:1], risk[:-1])
    # The two segments in which the interval ends are straight lines; between them all is whole.
    whole = (groups.last_vertex_weight < groups.weight) & (above >= ends[0]) & (through <= ends[1])
    area[whole] = trapezoid_areas(groups, accepted)[whole] / groups.total_weight
    return float(area.sum())


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

    Answers: how many silent failures are there, over the coverages I may really use?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `augrc`.
    low, high : float, default=0.0, 1.0
        The coverage interval, 0 <= low < high <= 1.
    mean : bool, default=False
        Divide by high - low, for the mean generalized risk over the interval.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

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
    The curve is a straight line between vertices, so the area is exact for random tie-breaking.
    Areas of adjacent intervals add up to the whole. Cost: one sort.

    References
    ----------
    .. [1] Traub et al. (2024), eq. 6, https://arxiv.org/abs/2407.01032, between two coverages; the
       interval is ours

    Examples
    --------
    >>> import abstain as ab
    >>> ab.partial_augrc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], low=0.5)
    0.15625
    """
    low, high = _check_coverage_interval(low, high)
    area = generalized_risk_area(
        validate_samples(confidence, loss, weight).merged_groups, low, high
    )
    return area / (high - low) if mean else area


def _influence(s: Scored, *, coverages: tuple[float, float], selective: bool) -> FloatArray:
    """Influence of each sample on the area over the width of the interval.

    The curve is continuous, so the two fixed coverages add nothing: moving the vertex of a segment
    moves the curve in it by its slope, as much as the vertex counts there.
    """
    groups = s.groups
    coverage = groups.cumulative_weight / groups.total_weight
    divisor = groups.cumulative_weight if selective else groups.total_weight
    value = groups.cumulative_loss / divisor
    right, left = linear_segments(coverage, *coverages, is_flat_at_start=selective)
    # From the origin, or flat from the first vertex on, whose place then does not matter.
    before = np.concatenate((value[:1] if selective else [0.0], value[:-1]))
    slope = (value - before) / np.diff(coverage, prepend=0.0)
    counts = right + np.append(left[1:], 0.0)
    moved = -slope * right - np.append((slope * left)[1:], 0.0)
    through = moved / groups.total_weight - (counts * value / divisor if selective else 0.0)
    found = gradient_from_cumulative(through, counts / divisor)
    width = coverages[1] - coverages[0]
    return influence_from_gradient(s, Gradient(found.weight / width, found.loss / width))


@dataclass(frozen=True)
class _PartialArea:
    title: str
    meaning: str
    source: str
    area: Callable[[TieGroups, float, float], Scalar]
    selective: bool


_SELECTIVE = _PartialArea(
    "mean selective risk from {} to {} % coverage",
    "Averaged over coverages from {} to {} %, {{value}} of the accepted are wrong.",
    "code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts",
    selective_risk_area,
    selective=True,
)
_GENERALIZED = _PartialArea(
    "mean generalized risk from {} to {} % coverage",
    "Averaged over coverages from {} to {} %, {{value}} of all samples are accepted and wrong.",
    "Traub et al. (2024), eq. 6, between two coverages, https://arxiv.org/abs/2407.01032",
    generalized_risk_area,
    selective=False,
)


def _make_metric(kind: _PartialArea, name: str, low: str, high: str) -> Metric | None:
    between = float(low) / 100, float(high) / 100
    if not between[0] < between[1] <= 1:
        return None

    def compute(s: Scored) -> MetricValue:
        return MetricValue(kind.area(s.merged_groups, *between) / (between[1] - between[0]))

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
            high=1.0 if kind.selective else sum(between) / 2,
            averages_ties=not kind.selective,
            influence=accepts_group_rows(
                partial(_influence, coverages=between, selective=kind.selective)
            ),
            heavy_tailed=kind.selective,
            n_failures=lambda s: count_accepted_failures(
                s, lambda groups: vertex_at_coverage(groups, between[1], first=True)
            ),
        ),
        DisplayOptions(per_thousand=True),
    )


FAMILIES = (
    Family("partial_aurc@{}-{}cov", partial(_make_metric, _SELECTIVE), ("50", "80")),
    Family("partial_augrc@{}-{}cov", partial(_make_metric, _GENERALIZED), ("50", "80")),
)
