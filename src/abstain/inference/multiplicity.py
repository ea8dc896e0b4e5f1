"""Many tests at once: p-values adjusted for their number, and Nemenyi's test of all mean ranks."""

from typing import Literal, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain.inference.rank_tests import check_blocks
from abstain.inference.ranking import stack
from abstain.typing import AnyArray, FloatArray

Adjustment: TypeAlias = Literal["holm", "bonferroni", "none"]

ADJUSTMENTS = ("holm", "bonferroni", "none")


def adjust(p_values: AnyArray, *, method: Adjustment = "holm") -> FloatArray:
    """Adjust p-values for the number of tests.

    Answers: which of these differences remain when I allow for having looked at all of them?

    Parameters
    ----------
    p_values : array of any shape
        In [0, 1]; NaN for a test that could not be made.
    method : {"holm", "bonferroni", "none"}, default="holm"
        Holm's step-down method is never less powerful than Bonferroni's and needs no more.

    Returns
    -------
    ndarray of the same shape
        In [0, 1], never below the p-value. Below alpha for any true null hypothesis with a chance
        of at most alpha in all (not so for "none"). NaN stays NaN and does not count as a test.

    Raises
    ------
    DomainError
        If a p-value is outside [0, 1].
    InputError
        If `method` is unknown.

    Notes
    -----
    Valid whatever the dependence between the tests.

    References
    ----------
    .. [1] Holm (1979), A simple sequentially rejective multiple test procedure,
       https://www.jstor.org/stable/4615733

    Examples
    --------
    >>> from abstain.inference.multiplicity import adjust
    >>> adjust([0.01, 0.04, 0.03, float("nan")]).tolist()
    [0.03, 0.06, 0.06, nan]
    """
    checks.one_of(method, "method", ADJUSTMENTS)
    p = np.array(to_numpy(p_values, "p_values"), dtype=np.float64)
    tested = ~np.isnan(p)
    bad = tested & ~((p >= 0) & (p <= 1))
    checks.reject_entries("p_values", "must lie in [0, 1]", p, bad)
    if method != "none":
        p[tested] = _steps(p[tested], holm=method == "holm")
    return p


def _steps(p: FloatArray, *, holm: bool) -> FloatArray:
    """Multiply by the number of tests, or of those that are left at each step."""
    if not holm:
        return np.minimum(1.0, p * p.size)
    order = np.argsort(p, kind="stable")
    factors = np.arange(p.size, 0, -1)
    out = np.empty_like(p)
    out[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return out


# ------------------------------------------------------------------------------------ mean ranks
def nemenyi(mean_ranks: AnyArray, blocks: int) -> FloatArray:
    """Test each pair of mean ranks by Nemenyi's test.

    Answers: which methods differ, allowing for having looked at all pairs?

    Parameters
    ----------
    mean_ranks : array of shape (k,)
        Over the blocks, as `friedman` returns them.
    blocks : int
        Number of complete blocks behind them.

    Returns
    -------
    ndarray of shape (k, k)
        Two-sided p-values, adjusted for all pairs by the studentized range; 1 on the diagonal,
        NaN for a mean rank that is NaN.

    Raises
    ------
    DomainError
        If there are fewer than 2 methods.
    InputError
        If `blocks` is not a positive integer.

    Notes
    -----
    An asymptotic test: for fewer than about 10 blocks its level is approximate.

    References
    ----------
    .. [1] Demšar (2006), Statistical comparisons of classifiers over multiple data sets,
       https://jmlr.org/papers/v7/demsar06a.html

    Examples
    --------
    >>> from abstain.inference.multiplicity import nemenyi
    >>> nemenyi([1.25, 2.0, 2.75], blocks=4).round(3).tolist()
    [[1.0, 0.539, 0.086], [0.539, 1.0, 0.539], [0.086, 0.539, 1.0]]
    """
    from scipy.stats import studentized_range

    r = stack(mean_ranks, "mean_ranks", "k")
    check_blocks(blocks, r.size)
    apart = np.abs(r[:, None] - r[None, :]) / _unit(r.size, blocks)
    distinct, place = np.unique(apart, return_inverse=True)
    p = np.full(distinct.shape, np.nan)
    known = ~np.isnan(distinct)
    p[known] = np.clip(studentized_range.sf(distinct[known], r.size, np.inf), 0.0, 1.0)
    return p[place].reshape(apart.shape)


def critical_difference(k: int, blocks: int, *, alpha: float = 0.05) -> float:
    """Compute how far apart two mean ranks must be to differ by Nemenyi's test.

    Answers: how long is the bar of the critical-difference diagram?

    Parameters
    ----------
    k : int
        Number of methods.
    blocks : int
        Number of complete blocks.
    alpha : float, default=0.05
        Chance of any false finding when no methods differ.

    Returns
    -------
    float
        In units of ranks.

    Raises
    ------
    DomainError
        If there are fewer than 2 methods, or `alpha` is not above 0 and below 1.
    InputError
        If `k` or `blocks` is not a positive integer.

    References
    ----------
    .. [1] Demšar (2006), Statistical comparisons of classifiers over multiple data sets,
       https://jmlr.org/papers/v7/demsar06a.html

    Examples
    --------
    >>> from abstain.inference.multiplicity import critical_difference
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    from scipy.stats import studentized_range

    check_blocks(blocks, checks.positive_int(k, "k"))
    tail = checks.fraction(alpha, "alpha", low=1e-12, high=1 - 1e-12)
    return float(studentized_range.isf(tail, k, np.inf)) * _unit(k, blocks)


def cliques(mean_ranks: AnyArray, critical_difference: float) -> tuple[tuple[int, ...], ...]:
    """Find the largest groups of methods whose mean ranks are not told apart.

    Answers: which methods does a bar of the critical-difference diagram join?

    Parameters
    ----------
    mean_ranks : array of shape (k,)
        Over the blocks; a method without one belongs to no group.
    critical_difference : float
        Mean ranks closer than this are not told apart.

    Returns
    -------
    tuple of tuple of int
        Indices of the methods of each group of two or more, best mean rank first.

    Raises
    ------
    DomainError
        If `critical_difference` is negative or NaN.

    Examples
    --------
    >>> from abstain.inference.multiplicity import cliques
    >>> cliques([3.0, 1.0, 1.5, 2.4], 1.0)
    ((1, 2), (2, 3), (3, 0))
    """
    r = stack(mean_ranks, "mean_ranks", "k")
    reach = checks.fraction(critical_difference, "critical_difference", high=float("inf"))
    order = np.argsort(r, kind="stable")
    order = order[~np.isnan(r[order])]
    groups: list[tuple[int, ...]] = []
    last = -1
    for start, first in enumerate(order):
        end = int(np.searchsorted(r[order], r[first] + reach, side="left"))
        # A group that ends where the one before it ended lies within that one.
        if end > last and end - start > 1:
            groups.append(tuple(int(i) for i in order[start:end]))
        last = max(last, end)
    return tuple(groups)


def _unit(k: int, blocks: int) -> float:
    """Mean ranks over this are a studentized range: sqrt(k (k + 1) / (12 blocks))."""
    return float(np.sqrt(k * (k + 1) / (12 * blocks)))
