"""Adjustment of p-values for multiple tests, and Nemenyi's test of all mean ranks."""

from typing import Literal, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain.inference.rank_tests import check_blocks
from abstain.inference.ranking import check_array
from abstain.typing import AnyArray, FloatArray

Adjustment: TypeAlias = Literal["holm", "bonferroni", "none"]

ADJUSTMENTS = ("holm", "bonferroni", "none")


def adjust(p_values: AnyArray, *, method: Adjustment = "holm") -> FloatArray:
    """Adjust p-values for the number of tests.

    Answers: which differences remain significant if all of them are tested?

    Parameters
    ----------
    p_values : array of any shape
        P-values in [0, 1], or NaN for a test without a result.
    method : {"holm", "bonferroni", "none"}, default="holm"
        Holm's step-down method is at least as powerful as Bonferroni's, under the same conditions.

    Returns
    -------
    ndarray of the same shape
        Adjusted p-values in [0, 1]. NaN remains NaN and does not count as a test. Except for
        "none", the probability that any true null hypothesis has an adjusted p-value of at most
        alpha is at most alpha.

    Raises
    ------
    DomainError
        If a p-value is outside [0, 1].
    InputError
        If `method` is unknown.

    Notes
    -----
    The adjustment is valid for any dependence between the tests.

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
    is_tested = ~np.isnan(p)
    is_invalid = is_tested & ~((p >= 0) & (p <= 1))
    checks.reject_entries("p_values", "must lie in [0, 1]", p, is_invalid)
    if method == "bonferroni":
        p[is_tested] = np.minimum(1.0, p[is_tested] * is_tested.sum())
    if method == "holm":
        # Multiply each p-value by the number of p-values that are at least as large.
        order = np.flatnonzero(is_tested)[np.argsort(p[is_tested], kind="stable")]
        factors = np.arange(order.size, 0, -1)
        p.flat[order] = np.minimum(1.0, np.maximum.accumulate(p.flat[order] * factors))
    return p


def levels_of_tests(p_values: AnyArray, *, alpha: float, method: Adjustment = "holm") -> FloatArray:
    """Compute the significance level of each test after adjustment for multiple tests.

    Answers: which confidence level has an interval that excludes 0 if and only if the adjusted
    test rejects?

    Parameters
    ----------
    p_values : array of any shape
        P-values in [0, 1]; NaN for a test without a result.
    alpha : float
        Probability of rejecting any true null hypothesis, above 0 and below 1.
    method : {"holm", "bonferroni", "none"}, default="holm"
        As for `adjust`.

    Returns
    -------
    ndarray of the same shape
        An adjusted p-value is below alpha if and only if the p-value is below this level. The level
        is NaN for a test without a result.

    Raises
    ------
    DomainError
        If a p-value is outside [0, 1], or `alpha` is not above 0 and below 1.
    InputError
        If `method` is unknown.

    Notes
    -----
    Holm's method tests the smallest of m p-values at level alpha / m, the next one at level alpha /
    (m - 1), and so on, until a test does not reject. Tests with larger p-values have the level of
    the last test. Intervals at these levels are not simultaneous confidence intervals.

    Examples
    --------
    >>> from abstain.inference.multiplicity import levels_of_tests
    >>> levels_of_tests([0.01, 0.04, 0.03], alpha=0.05).round(4).tolist()
    [0.0167, 0.025, 0.025]
    """
    tail = checks.fraction(alpha, "alpha", low=1e-12, high=1 - 1e-12)
    adjusted = adjust(p_values, method=method)
    levels = np.full(adjusted.shape, np.nan)
    is_tested = ~np.isnan(adjusted)
    n_tests = int(is_tested.sum())
    if method == "none":
        levels[is_tested] = tail
        return levels
    if method == "bonferroni":
        levels[is_tested] = tail / max(n_tests, 1)
        return levels
    p = np.asarray(to_numpy(p_values, "p_values"), np.float64)
    order = np.flatnonzero(is_tested)[np.argsort(p[is_tested], kind="stable")]
    n_rejected = int((adjusted[is_tested] < tail).sum())
    n_remaining = np.maximum(np.arange(n_tests, 0, -1), n_tests - n_rejected)
    levels.flat[order] = tail / np.maximum(n_remaining, 1)
    return levels


# ------------------------------------------------------------------------------------ mean ranks
def nemenyi(mean_ranks: AnyArray, n_blocks: int) -> FloatArray:
    """Run Nemenyi's test for each pair of mean ranks.

    Answers: which methods differ significantly if all pairs are tested?

    Parameters
    ----------
    mean_ranks : array of shape (k,)
        Mean ranks over the blocks, as `friedman` returns them.
    n_blocks : int
        Number of complete blocks over which the ranks are averaged.

    Returns
    -------
    ndarray of shape (k, k)
        Two-sided p-values, adjusted for all pairs by the studentized range. The diagonal is 1. The
        p-values of a method with mean rank NaN are NaN.

    Raises
    ------
    DomainError
        If there are fewer than 2 methods.
    InputError
        If `n_blocks` is not a positive integer.

    Notes
    -----
    The test is asymptotic. With fewer than about 10 blocks, the level of the test is approximate.

    References
    ----------
    .. [1] Demšar (2006), Statistical comparisons of classifiers over multiple data sets,
       https://jmlr.org/papers/v7/demsar06a.html

    Examples
    --------
    >>> from abstain.inference.multiplicity import nemenyi
    >>> nemenyi([1.25, 2.0, 2.75], n_blocks=4).round(3).tolist()
    [[1.0, 0.539, 0.086], [0.539, 1.0, 0.539], [0.086, 0.539, 1.0]]
    """
    from scipy.stats import studentized_range

    ranks = check_array(mean_ranks, "mean_ranks", "k")
    check_blocks(n_blocks, ranks.size)
    differences = np.abs(ranks[:, None] - ranks[None, :])
    differences /= _studentized_range_unit(ranks.size, n_blocks)
    # The p-value is expensive, so it is computed once for each distinct difference.
    distinct, index = np.unique(differences, return_inverse=True)
    p = np.full(distinct.shape, np.nan)
    is_defined = ~np.isnan(distinct)
    p_values = studentized_range.sf(distinct[is_defined], ranks.size, np.inf)
    p[is_defined] = np.clip(p_values, 0.0, 1.0)
    return p[index].reshape(differences.shape)


def critical_difference(n_methods: int, n_blocks: int, *, alpha: float = 0.05) -> float:
    """Compute the smallest significant difference of two mean ranks in Nemenyi's test.

    Answers: how long is the bar of the critical-difference diagram?

    Parameters
    ----------
    n_methods : int
        Number of methods.
    n_blocks : int
        Number of complete blocks.
    alpha : float, default=0.05
        Probability of any significant difference if no methods differ.

    Returns
    -------
    float
        The smallest significant difference of two mean ranks.

    Raises
    ------
    DomainError
        If there are fewer than 2 methods, or `alpha` is not above 0 and below 1.
    InputError
        If `n_methods` or `n_blocks` is not a positive integer.

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

    check_blocks(n_blocks, checks.positive_int(n_methods, "n_methods"))
    tail = checks.fraction(alpha, "alpha", low=1e-12, high=1 - 1e-12)
    critical_range = float(studentized_range.isf(tail, n_methods, np.inf))
    return critical_range * _studentized_range_unit(n_methods, n_blocks)


def cliques(mean_ranks: AnyArray, critical_difference: float) -> tuple[tuple[int, ...], ...]:
    """Find the maximal groups of methods whose mean ranks are not significantly different.

    Answers: which methods are connected by a bar in the critical-difference diagram?

    Parameters
    ----------
    mean_ranks : array of shape (k,)
        Mean ranks over the blocks. A method with mean rank NaN belongs to no group.
    critical_difference : float
        Mean ranks with a smaller difference are not significantly different.

    Returns
    -------
    tuple of tuple of int
        Indices of the methods in each group of at least two methods, beginning with the best mean
        rank.

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
    ranks = check_array(mean_ranks, "mean_ranks", "k")
    max_difference = checks.fraction(critical_difference, "critical_difference", high=float("inf"))
    order = np.argsort(ranks, kind="stable")
    order = order[~np.isnan(ranks[order])]
    sorted_ranks = ranks[order]
    groups: list[tuple[int, ...]] = []
    previous_end = -1
    for start, best_rank in enumerate(sorted_ranks):
        end = int(np.searchsorted(sorted_ranks, best_rank + max_difference, side="left"))
        is_subset_of_previous = end <= previous_end
        if not is_subset_of_previous and end - start > 1:
            groups.append(tuple(order[start:end].tolist()))
        previous_end = max(previous_end, end)
    return tuple(groups)


def _studentized_range_unit(n_methods: int, n_blocks: int) -> float:
    """Return the divisor that converts differences of mean ranks to studentized ranges."""
    return float(np.sqrt(n_methods * (n_methods + 1) / (12 * n_blocks)))
