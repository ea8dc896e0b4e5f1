"""AURC in its five named estimators, its achievable form, and the accuracy-rejection area."""

from abstain._foundation import checks
from abstain._foundation.scored import Measured, Scored, scored
from abstain.curves.hull import hull_vertices, take
from abstain.errors import InputError
from abstain.metrics.rank_weights import (
    RankWeight,
    log_weight,
    partial_hyperbolic,
    plugin_weight,
    rank_weight,
    rank_weighted_risk,
    sele_weight,
    trapezoid_weight,
    two_sele_weight,
)
from abstain.typing import AnyArray, AurcEstimator

ESTIMATORS: dict[str, RankWeight] = {
    "trapezoid": trapezoid_weight,
    "plugin": plugin_weight,
    "log": log_weight,
    "sele": sele_weight,
    "2sele": two_sele_weight,
}


def aurc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    estimator: AurcEstimator = "trapezoid",
    weight: AnyArray | None = None,
) -> float:
    r"""Compute the area under the selective risk-coverage curve (AURC).

    Answers: averaged over all coverages, how wrong are the samples that are accepted?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale, only the order matters.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    estimator : {"trapezoid", "plugin", "log", "sele", "2sele"}, default="trapezoid"
        With r the ascending rank of a sample (n for the most confident), the mean over samples
        of loss times: ``H_n - H_{n-r}`` ("plugin", the mean selective risk over all n
        coverages), ``-ln(1 - r/(n+1))`` ("log"), ``r/n`` ("sele", another population value:
        AUGRC + R/(2n)), ``2r/n`` ("2sele"). "trapezoid" joins the vertices of the curve by
        straight lines and extends it flat to coverage 0, as FD-Shifts does. Monte-Carlo weights
        need draws: `monte_carlo_aurc`.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1] for losses in [0, 1] (up to 1 + 1/n for "2sele"); **lower is better**; a
        fraction (the literature prints it x1000). A random order gives about the error rate R
        (half of it for "sele").

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.
    InputError
        If `estimator` is not one of the five names.

    Notes
    -----
    All but "trapezoid" average the weight over a tie group (the expectation over random
    tie-breaking). "trapezoid" has a vertex only at distinct confidences. Without ties it is
    plugin + (loss of the most confident - R)/(2n). Cost: one sort.

    References
    ----------
    .. [1] Geifman et al. (2019), Bias-reduced uncertainty estimation for deep neural
       classifiers, https://arxiv.org/abs/1805.08206
    .. [2] Zhou et al. (2025), A novel characterization of the population area under the risk
       coverage curve, eq. 12-13 and 18, https://arxiv.org/abs/2410.15361
    .. [3] Franc et al. (2023), Optimal strategies for reject option classifiers (SELE),
       https://jmlr.org/papers/v24/21-0048.html

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 6)
    0.270833
    >>> round(ab.aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], estimator="plugin"), 6)
    0.333333
    """
    return rank_weighted_risk(scored(confidence, loss, weight).groups, _weight_of(estimator))


def _weight_of(estimator: str) -> RankWeight:
    if estimator == "monte-carlo":
        msg = (
            "`estimator` 'monte-carlo' draws at random, so it has a function of its own: "
            "monte_carlo_aurc(confidence, loss, draws=1000, rng=0)"
        )
        raise InputError(msg)
    return ESTIMATORS[checks.one_of(estimator, "estimator", tuple(ESTIMATORS))]


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
    hull = take(s.groups, hull_vertices(s.groups))
    return Measured(rank_weighted_risk(hull, rank_weight(partial_hyperbolic(0.0, 1.0))))


def area_under_accuracy_rejection(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the area under the accuracy-rejection curve.

    Answers: averaged over all rejection rates, how accurate are the samples that are accepted?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        As in `aurc`; losses in [0, 1].

    Returns
    -------
    float
        In [0, 1]; **higher is better**: 1 - AURC (trapezoid).

    Raises
    ------
    ShapeError, DomainError
        As in `aurc`; also if a loss is above 1.

    Notes
    -----
    Ties share a vertex. Cost: one sort.

    References
    ----------
    .. [1] Nadeem et al. (2009), Accuracy-rejection curves for comparing classification systems
       with a reject option, https://proceedings.mlr.press/v8/nadeem10a.html

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.area_under_accuracy_rejection([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 6)
    0.729167
    """
    s = scored(confidence, loss, weight)
    checks.unit_interval(s.loss, "loss")
    return 1.0 - rank_weighted_risk(s.groups, trapezoid_weight)
