"""The one kernel: an area metric is a mean of losses, each weighted by the rank of its sample.

``M = sum_g phi_g loss_g / W`` over tie groups g, where phi_g is the weight function of the metric
averaged over the ranks that the group occupies (the expectation over random tie-breaking) and W
is the weight of all samples. In the comments, a group occupies the positions above + 1 to
through, counted from the most confident.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeAlias

import numpy as np
from scipy.special import digamma, gammaln

from abstain._foundation.arrays import sealed
from abstain._foundation.ranks import TieGroups
from abstain.curves.quadrature import hyperbolic_weights, linear_weights
from abstain.typing import FloatArray

RankWeight: TypeAlias = Callable[[TieGroups], FloatArray]

#: Below this position the asymptotic series of the harmonic numbers are not yet exact.
_SERIES_FROM = 32.0


def rank_weighted_risk(groups: TieGroups, phi: RankWeight) -> float:
    """Return the mean over all samples of phi(rank) x loss."""
    return float(np.sum(phi(groups) * groups.loss) / groups.total)


def at_least_zero(excess: float) -> float:
    """Undo the rounding that takes a best order a hair below its own optimum; NaN stays NaN."""
    return float(np.maximum(0.0, excess))


def remembered(phi: RankWeight) -> RankWeight:
    """Keep the weights on the groups they were computed for: several metrics share them."""

    @wraps(phi)
    def recall(groups: TieGroups) -> FloatArray:
        # As cached_property does: the record stays frozen, its cache is filled.
        cache: dict[RankWeight, FloatArray] = groups.__dict__.setdefault("_phi", {})
        if phi not in cache:
            cache[phi] = sealed(phi(groups))
        return cache[phi]

    return recall


def augrc_weight(groups: TieGroups) -> FloatArray:
    """(r - 1/2)/n: the trapezoid area under the generalized risk."""
    return (groups.total - groups.through + groups.weight / 2) / groups.total


def sele_weight(groups: TieGroups) -> FloatArray:
    """r/n."""
    return (groups.total - groups.through + (groups.weight + 1) / 2) / groups.total


@remembered
def plugin_weight(groups: TieGroups) -> FloatArray:
    """H_n - H_{n-r}; a sample at position k from the top counts H_n - H_{k-1}."""
    a, b, m = groups.above, groups.through, groups.weight
    # sum of H_{k-1} over k in (a, b] is b H_b - a H_a - m; written as differences, since the
    # terms themselves are too large for the last digits to survive.
    mean = _harmonic(b) + a * _harmonic_step(a, b) / m - 1.0
    return np.asarray(_harmonic(np.asarray(groups.total)) - mean)


@remembered
def log_weight(groups: TieGroups) -> FloatArray:
    """-ln(1 - r/(n + 1)); a sample at position k from the top counts ln(n + 1) - ln k."""
    return np.asarray(np.log(groups.total + 1.0) - _mean_log(groups))


@remembered
def trapezoid_weight(groups: TieGroups) -> FloatArray:
    """Trapezoid under the selective risk, flat from the first vertex to coverage 0."""
    return _through_vertices(groups, lambda own: vertex_area(own) * (own.total / own.through))


@remembered
def vertex_area(groups: TieGroups) -> FloatArray:
    """Weights on the risks at the vertices: trapezoid area over all coverages, flat at first."""
    return linear_weights(groups.through / groups.total, 0.0, 1.0, flat=True)


@remembered
def vertex_area_rising(groups: TieGroups) -> FloatArray:
    """Compute the same for a curve that rises from the origin."""
    return linear_weights(groups.through / groups.total, 0.0, 1.0, flat=False)


def partial_selective(low: float, high: float) -> Callable[[TieGroups], FloatArray]:
    """Weights on the loss mass accepted at each vertex: trapezoid under the selective risk."""

    def on_vertices(groups: TieGroups) -> FloatArray:
        area = linear_weights(groups.through / groups.total, low, high, flat=True)
        return area * (groups.total / groups.through)

    return on_vertices


def partial_hyperbolic(low: float, high: float) -> Callable[[TieGroups], FloatArray]:
    """Weights on the loss mass accepted at each vertex: exact area under the selective risk."""

    def on_vertices(groups: TieGroups) -> FloatArray:
        return hyperbolic_weights(groups.through / groups.total, low, high)

    return on_vertices


def partial_generalized(low: float, high: float) -> Callable[[TieGroups], FloatArray]:
    """Weights on the loss mass accepted at each vertex: area under the generalized risk."""

    def on_vertices(groups: TieGroups) -> FloatArray:
        return linear_weights(groups.through / groups.total, low, high, flat=False)

    return on_vertices


def rank_weight(on_vertices: Callable[[TieGroups], FloatArray]) -> RankWeight:
    """Turn weights on vertices into weights on samples: a sample counts at every vertex below."""
    return lambda groups: _through_vertices(groups, on_vertices)


def _through_vertices(
    groups: TieGroups, on_vertices: Callable[[TieGroups], FloatArray]
) -> FloatArray:
    return np.cumsum(on_vertices(groups)[::-1])[::-1]


def _harmonic(x: FloatArray) -> FloatArray:
    """H_x for real x >= 0."""
    return np.asarray(digamma(x + 1.0) + np.euler_gamma)


def _harmonic_step(a: FloatArray, b: FloatArray) -> FloatArray:
    """H_b - H_a without cancellation for large a."""
    small = a < _SERIES_FROM
    step = np.empty_like(b)
    step[small] = digamma(b[small] + 1.0) - digamma(a[small] + 1.0)
    x, y = a[~small], b[~small]
    step[~small] = np.log1p((y - x) / x) + _harmonic_tail(y) - _harmonic_tail(x)
    return step


def _harmonic_tail(x: FloatArray) -> FloatArray:
    """H_x - ln x - gamma for x >= 32."""
    v = 1.0 / (x * x)
    return 0.5 / x - v * (1 / 12 - v * (1 / 120 - v / 252))


def _mean_log(groups: TieGroups) -> FloatArray:
    """Mean of ln k over the positions k of each group: ln of Gamma(b + 1)/Gamma(a + 1) over m."""
    a, b, m = groups.above, groups.through, groups.weight
    small = a < _SERIES_FROM
    mean = np.empty_like(b)
    mean[small] = (gammaln(b[small] + 1.0) - gammaln(a[small] + 1.0)) / m[small]
    x, y, w = a[~small], b[~small], m[~small]
    # Stirling for both, differenced by hand: (x + 1/2) ln(y/x) - m stays of the size of m.
    rest = (x + 0.5) * np.log1p(w / x) - w + _stirling_tail(y) - _stirling_tail(x)
    mean[~small] = np.log(y) + rest / w
    return mean


def _stirling_tail(x: FloatArray) -> FloatArray:
    """Ln Gamma(x + 1) - (x + 1/2) ln x + x - ln(2 pi)/2 for x >= 32."""
    v = 1.0 / (x * x)
    return (1 / 12 - v * (1 / 360 - v / 1260)) / x
