"""The area under the achievable risk-coverage curve: of the working points worth choosing."""

import numpy as np

from abstain._foundation.measurement import Measured
from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Scored, scored
from abstain.curves.quadrature import hyperbolic_weights
from abstain.curves.risk_coverage import hull_vertices, take
from abstain.inference.influence import Gradient, of_cumulated
from abstain.metrics.areas.aurc import best_aurc
from abstain.metrics.entry import DisplayOptions, Identity, Measurement, Metric
from abstain.metrics.influences import on_merged_rows
from abstain.metrics.rank_weights import partial_hyperbolic, rank_weight, rank_weighted_risk
from abstain.typing import AnyArray, FloatArray


def achievable_aurc(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the area under the achievable risk-coverage curve.

    Answers: what would the AURC be if only the working points worth choosing were used?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        As in `aurc`.

    Returns
    -------
    float
        In [0, 1] for losses in [0, 1]; **lower is better**; never above the exact area of the
        curve itself.

    Raises
    ------
    ShapeError, DomainError
        As in `aurc`.

    Notes
    -----
    The vertices are those of the convex hull in ROC space; between them the selective risk is
    the hyperbola of a mixture of the two thresholds. Ties share a vertex. Cost: one sort.

    References
    ----------
    .. [1] The code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.achievable_aurc([0.9, 0.8, 0.7, 0.6], [1, 0, 0, 1]), 6)
    0.356159
    """
    return achievable(scored(confidence, loss, weight)).value


def achievable(s: Scored) -> Measured:
    """Area under the hull with hyperbolic segments, for the catalogue."""
    hull = take(s.merged_groups, hull_vertices(s.merged_groups))
    return Measured(rank_weighted_risk(hull, rank_weight(partial_hyperbolic(0.0, 1.0))))


def _achievable_gradient(hull: TieGroups) -> Gradient:
    """Exact area below the hyperbolas through the vertices of the hull."""
    right, total = hull.through, hull.total
    left = np.concatenate(([0.0], right[:-1]))
    # The first segment starts at the origin, where the hyperbola is a constant.
    log_ratio = np.log(right / np.where(left > 0, left, right))
    slope = hull.loss / hull.weight
    intercept = hull.loss_through - slope * right
    end = left * slope / hull.weight * log_ratio + intercept / right
    start = -right * slope / hull.weight * log_ratio
    start[1:] -= intercept[1:] / left[1:]
    moved = end
    moved[:-1] += start[1:]
    weights = hyperbolic_weights(right / total, 0.0, 1.0) / total
    return of_cumulated(moved / total, weights)


def _influence(s: Scored) -> FloatArray:
    """Achievable AURC, the vertices of the hull held where they are.

    Where a vertex stands matters only to second order: the hull is the best there is.
    """
    vertices = hull_vertices(s.groups)
    segment = np.append(np.searchsorted(vertices, np.arange(s.groups.loss.size)), -1)
    gradient = _achievable_gradient(take(s.groups, vertices))
    return gradient.influence(take(s.groups, vertices), segment[s.home], s.loss)


ENTRIES = (
    Metric(
        Identity(
            name="achievable_aurc",
            title="achievable AURC",
            family="area",
            lower_is_better=True,
            meaning="With the best working points only, the area under the risk curve is {value}.",
            source="code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts",
            convention="hull, hyperbolic segments",
            function="achievable_aurc(confidence, loss)",
        ),
        Measurement(
            compute=achievable,
            influence=on_merged_rows(_influence),
            heavy_tailed=True,
            caution="the hull is chosen on these data, which flatters it",
            extremes=(best_aurc, lambda r: r),
        ),
        DisplayOptions(per_thousand=True),
    ),
)
