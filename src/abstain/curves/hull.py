"""The achievable risk-coverage curve: the vertices that no mixture of others beats."""

import numpy as np
from scipy.optimize import isotonic_regression

from abstain._foundation import checks
from abstain._foundation.arrays import beside
from abstain._foundation.foreign import home
from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import scored
from abstain._foundation.segments import steps
from abstain.curves.risk_coverage import Kind, RiskCoverageCurve, curve_of
from abstain.typing import AnyArray, IntArray


def hull_vertices(groups: TieGroups) -> IntArray:
    """Return the indices of the lower convex hull of (coverage, generalized risk).

    The map from the ROC of failures to (coverage, generalized risk) is linear, so this is the
    ROC convex hull too; it is defined for every loss, not only 0/1. Pooling the mean losses of
    the groups until they rise with falling confidence gives the slopes of that hull.
    """
    # Pooling goes from neighbor to neighbor, which no device does well: the host does it.
    loss, weight = home(groups.loss), home(groups.weight)
    slopes = isotonic_regression(loss / weight, weights=weight).x
    return np.flatnonzero(np.append(slopes[1:] > slopes[:-1], True))


def take(groups: TieGroups, vertices: IntArray) -> TieGroups:
    """Merge groups so that only the given vertices remain as thresholds."""
    xp = groups.xp
    at = vertices if xp is np else beside(vertices, "vertices", groups.weight)
    return TieGroups(
        xp.take(groups.confidence, at),
        steps(xp.take(groups.through, at)),
        steps(xp.take(groups.loss_through, at)),
        steps(xp.take(groups.count_through, at)),
    )


def achievable_curve(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    weight: AnyArray | None = None,
    kind: Kind = "selective",
) -> RiskCoverageCurve:
    """Compute the curve of the thresholds that no mixture of two others beats.

    Answers: which working points are worth using, if one may also toss a coin between two of
    them?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale.
    loss : array of shape (n,)
        Finite and non-negative.
    weight : array of shape (n,), optional
        Frequency weights.
    kind : {"selective", "generalized"}, default="selective"
        Which risk the curve holds.

    Returns
    -------
    RiskCoverageCurve
        The vertices of the convex hull only. Between them the generalized risk is linear and
        the selective risk hyperbolic.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.

    Notes
    -----
    Ties share a vertex. Cost: one sort and one pass over the vertices.

    References
    ----------
    .. [1] Provost and Fawcett (2001), Robust classification for imprecise environments,
       https://doi.org/10.1023/A:1007601015854

    Examples
    --------
    >>> from abstain.curves import achievable_curve
    >>> achievable_curve([0.9, 0.8, 0.7, 0.6], [1, 0, 0, 1]).coverage.tolist()
    [0.75, 1.0]
    """
    checks.one_of(kind, "kind", ("selective", "generalized"))
    groups = scored(confidence, loss, weight).groups
    return curve_of(take(groups, hull_vertices(groups)), kind).of_kind(confidence)
