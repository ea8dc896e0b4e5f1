"""Nemenyi's test and its critical difference: which mean ranks over blocks differ."""

import numpy as np

from abstain._foundation import checks
from abstain.inference.rank_tests import check_blocks
from abstain.inference.ranking import stack
from abstain.typing import AnyArray, FloatArray


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
    >>> from abstain.inference.nemenyi import nemenyi
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
    >>> from abstain.inference.nemenyi import critical_difference
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
    >>> from abstain.inference.nemenyi import cliques
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
