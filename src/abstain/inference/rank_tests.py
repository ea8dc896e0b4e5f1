"""Wilcoxon's signed-rank test and Friedman's test for independent blocks.

Blocks are data sets, runs or folds. For bootstrap replicates, which are not independent, use
`abstain.inference.paired`.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from math import factorial
from typing import Final, Literal, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.lazy_imports import special
from abstain.errors import DomainError, ShapeError
from abstain.inference.ranking import ROUNDING, check_array, equal_up_to_rounding, ranks
from abstain.typing import AnyArray, FloatArray, IntArray

Alternative: TypeAlias = Literal["two-sided", "less", "greater"]

ALTERNATIVES = ("two-sided", "less", "greater")
#: Maximum number of pairs for which the exact distribution of the signed ranks is computed.
MAX_EXACT_PAIRS = 50

#: Sorted integers of each block, which are twice the mid-ranks.
_Blocks: TypeAlias = tuple[tuple[int, ...], ...]

#: Maximum number of rank sums in the exact Friedman test, which then takes some tenths of a second.
_MAX_RANK_SUMS: Final = 1_000_000


@dataclass(frozen=True)
class WilcoxonResult:
    """Result of Wilcoxon's signed-rank test.

    Attributes
    ----------
    statistic : float
        Sum of the ranks of the positive differences.
    p_value : float
        P-value for the requested alternative.
    n_pairs : int
        Number of pairs with a nonzero difference. The test drops all other pairs.
    method : str
        "exact", "normal" (for more than 50 pairs), or "no difference".
    """

    statistic: float
    p_value: float
    n_pairs: int
    method: str


def wilcoxon(x: AnyArray, y: AnyArray, *, alternative: Alternative = "two-sided") -> WilcoxonResult:
    """Run Wilcoxon's signed-rank test of whether paired values differ.

    Answers: are the first values significantly below or above the second values?

    Parameters
    ----------
    x, y : array of shape (n,)
        The two values of each pair. Pairs with a NaN are dropped.
    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        The alternative hypothesis. "less" means that the first values tend to be lower.

    Returns
    -------
    WilcoxonResult
        The statistic and its p-value, which is 1 if no pair differs.

    Raises
    ------
    ShapeError
        If the lengths differ.
    InputError
        If `alternative` is unknown.

    Notes
    -----
    The pairs must be independent. For up to 50 pairs, the p-value is exact, also with ties [2]_.
    With few pairs, even the smallest possible p-value is large. For example, a one-sided p-value
    from five pairs is at least 1/32. The normal approximation corrects for ties but not for
    continuity. Values and differences that are equal up to rounding count as equal.

    References
    ----------
    .. [1] Wilcoxon (1945), Individual comparisons by ranking methods,
       https://doi.org/10.2307/3001968
    .. [2] Pratt and Gibbons (1981), Concepts of nonparametric theory, chapter 3,
       https://doi.org/10.1007/978-1-4612-5931-2

    Examples
    --------
    >>> from abstain.inference.rank_tests import wilcoxon
    >>> wilcoxon([1, 2, 3, 4, 5], [2, 4, 6, 8, 10], alternative="less")
    WilcoxonResult(statistic=0.0, p_value=0.03125, n_pairs=5, method='exact')
    """
    first = check_array(x, "x", "n")
    second = check_array(y, "y", "n")
    if first.size != second.size:
        raise ShapeError(
            f"`x` and `y` must have the same length; got {first.size} and {second.size}"
        )
    checks.one_of(alternative, "alternative", ALTERNATIVES)
    return _signed_ranks(first, second, alternative)


def _signed_ranks(x: FloatArray, y: FloatArray, alternative: str) -> WilcoxonResult:
    """Compute the signed-rank test of validated pairs."""
    with np.errstate(invalid="ignore"):
        difference = x - y
    is_used = ~np.isnan(difference) & ~equal_up_to_rounding(x, y)
    difference = difference[is_used]
    n_pairs = int(difference.size)
    if not n_pairs:
        return WilcoxonResult(0.0, 1.0, 0, "no difference")
    magnitude = np.maximum(np.abs(x), np.abs(y))[is_used]
    rank = _ranks_of_differences(np.abs(difference), magnitude)
    statistic = float(rank[difference > 0].sum())
    if n_pairs <= MAX_EXACT_PAIRS:
        method = "exact"
        lower_tail, upper_tail = _signed_rank_tails(rank, statistic)
    else:
        method = "normal"
        z = (statistic - rank.sum() / 2) / np.sqrt(np.square(rank).sum() / 4)
        lower_tail = float(special.ndtr(z))
        upper_tail = float(special.ndtr(-z))
    if alternative == "less":
        p_value = lower_tail
    elif alternative == "greater":
        p_value = upper_tail
    else:
        p_value = 2 * min(lower_tail, upper_tail)
    return WilcoxonResult(statistic, min(1.0, p_value), n_pairs, method)


def _ranks_of_differences(differences: FloatArray, magnitude: FloatArray) -> FloatArray:
    """Return the mid-ranks of absolute differences, where rounding errors do not break ties.

    `magnitude` is the larger absolute value of each pair, shape (n,).
    """
    order = np.argsort(differences, kind="stable")
    sorted_differences = differences[order]
    sorted_magnitude = magnitude[order]
    tolerance = ROUNDING * np.maximum(sorted_magnitude[1:], sorted_magnitude[:-1])
    with np.errstate(invalid="ignore"):
        # Infinite differences count as equal, because their distance is NaN.
        starts_group = np.diff(sorted_differences) > tolerance
    group = np.concatenate(([0], np.cumsum(starts_group)))
    group_size = np.bincount(group)
    mid_rank_of_group = np.cumsum(group_size) - (group_size - 1) / 2
    out = np.empty(differences.size)
    out[order] = mid_rank_of_group[group]
    return out


def pairwise_wilcoxon(
    values: AnyArray, *, lower_is_better: bool, alternative: str = "better"
) -> FloatArray:
    """Run Wilcoxon's signed-rank test for each pair of methods over independent blocks.

    Answers: which methods are significantly better than others across data sets or runs?

    Parameters
    ----------
    values : array of shape (blocks, k)
        The metric of each method on each data set or run. If the metric of a method is NaN in a
        block, the tests of this method omit the block.
    lower_is_better : bool
        The direction of the metric.
    alternative : {"better", "two-sided"}, default="better"
        "better" is the one-sided alternative that the row is better than the column.

    Returns
    -------
    ndarray of shape (k, k)
        Entry [i, j] is the unadjusted p-value for "i is better than j" (one-sided) or "i and j
        differ" (two-sided). The diagonal is NaN.

    Raises
    ------
    ShapeError
        If `values` does not have two axes.
    InputError
        If `alternative` is unknown.

    Notes
    -----
    The blocks must be independent. Use `abstain.inference.multiplicity.adjust` to adjust the
    p-values.

    Examples
    --------
    >>> from abstain.inference.rank_tests import pairwise_wilcoxon
    >>> runs = [[0.1, 0.2], [0.2, 0.4], [0.1, 0.4], [0.3, 0.7], [0.2, 0.7]]
    >>> pairwise_wilcoxon(runs, lower_is_better=True).round(3).tolist()
    [[nan, 0.031], [1.0, nan]]
    """
    table = check_array(values, "values", "blocks", "k")
    checks.one_of(alternative, "alternative", ("better", "two-sided"))
    if alternative == "better":
        alternative = "less" if lower_is_better else "greater"
    k = table.shape[1]
    out = np.full((k, k), np.nan)
    for i, j in np.argwhere(~np.eye(k, dtype=np.bool_)):
        if alternative == "two-sided" and j < i:
            out[i, j] = out[j, i]
        else:
            out[i, j] = _signed_ranks(table[:, i], table[:, j], alternative).p_value
    return out


@dataclass(frozen=True, eq=False)
class FriedmanResult:
    """Result of Friedman's test.

    Attributes
    ----------
    statistic, p_value : float
        Chi-square statistic with a correction for ties, and its p-value, computed by `method`.
    f_statistic, f_p_value : float
        Iman and Davenport's statistic and its p-value. The test rejects too often with fewer than
        about 6 blocks.
    mean_ranks : ndarray of shape (k,)
        Mean rank of each method, where 1 is best. NaN if no block is complete.
    n_blocks : int
        Number of complete blocks, which contain no NaN.
    note : str
        Reason for a missing test, number of dropped blocks, or empty.
    method : str
        "exact" if all orders within the blocks are counted, "chi-square" if their number is too
        large, and "none" without a test.
    """

    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    mean_ranks: FloatArray
    n_blocks: int
    note: str = ""
    method: str = "none"


def friedman(values: AnyArray, *, lower_is_better: bool) -> FriedmanResult:
    """Run Friedman's test of whether any methods differ in rank across blocks.

    Answers: do any of these methods differ significantly over all data sets?

    Parameters
    ----------
    values : array of shape (blocks, k)
        The metric of each method on each data set or run. Blocks with a NaN are dropped.
    lower_is_better : bool
        The direction of the metric.

    Returns
    -------
    FriedmanResult
        Statistics, p-values and mean ranks. With fewer than 2 complete blocks or 2 methods, the
        p-values are NaN and the note states the reason. With 2 methods, the test is the sign test.

    Raises
    ------
    ShapeError
        If `values` does not have two axes.

    Notes
    -----
    The blocks must be independent. If all values are equal in every block, the statistic is 0 and p
    = 1. For small tables, the p-value is exact, also with ties. Examples of the largest such tables
    are about 80 blocks of 3 methods, 8 blocks of 5 methods, and 2 blocks of 8 methods. For larger
    tables, the function uses the chi-square approximation, whose level is wrong for small tables.

    References
    ----------
    .. [1] Demšar (2006), Statistical comparisons of classifiers over multiple data sets,
       https://jmlr.org/papers/v7/demsar06a.html
    .. [2] Iman and Davenport (1980), Approximations of the critical region of the Friedman
       statistic, https://doi.org/10.1080/03610928008827904

    Examples
    --------
    >>> from abstain.inference.rank_tests import friedman
    >>> result = friedman([[1, 2, 3], [1, 2, 3], [1, 3, 2], [2, 1, 3]], lower_is_better=True)
    >>> result.statistic, round(result.p_value, 3), result.mean_ranks.tolist()
    (4.5, 0.125, [1.25, 2.0, 2.75])
    """
    table = check_array(values, "values", "blocks", "k")
    is_complete = ~np.isnan(table).any(axis=1)
    n_dropped = int(is_complete.size - is_complete.sum())
    note = ""
    if n_dropped:
        note = f"{n_dropped} of {is_complete.size} blocks left out, because a method has no value"
    rank = ranks(table, lower_is_better=lower_is_better, axis=1)[is_complete]
    n_blocks, k = rank.shape
    mean = rank.mean(axis=0) if n_blocks else np.full(k, np.nan)
    if n_blocks < 2 or k < 2:
        reason = f"Friedman's test needs 2 complete blocks and 2 methods; got {n_blocks} and {k}"
        nan = float("nan")
        return FriedmanResult(nan, nan, nan, nan, mean, n_blocks, reason)
    # The variance of the ranks of a block is k(k + 1)/12 without ties and smaller with ties.
    variance = float(rank.var(axis=1, ddof=1).mean())
    statistic = 0.0
    if variance > 0:
        statistic = n_blocks * float(((mean - (k + 1) / 2) ** 2).sum()) / variance
    f_statistic = _iman_davenport_statistic(statistic, n_blocks, k)
    method = "exact"
    p_value = _exact_friedman_p_value(rank)
    if p_value is None:
        method = "chi-square"
        p_value = float(special.chdtrc(k - 1, statistic))
    return FriedmanResult(
        statistic=statistic,
        p_value=p_value,
        f_statistic=f_statistic,
        f_p_value=float(special.fdtrc(k - 1, (k - 1) * (n_blocks - 1), f_statistic)),
        mean_ranks=mean,
        n_blocks=n_blocks,
        note=note,
        method=method,
    )


def _iman_davenport_statistic(statistic: float, n_blocks: int, k: int) -> float:
    """Return the F statistic of Iman and Davenport from Friedman's statistic."""
    if statistic == 0:
        return 0.0
    remainder = n_blocks * (k - 1) - statistic
    if remainder <= 1e-9 * statistic:
        return float("inf")
    return (n_blocks - 1) * statistic / remainder


def check_blocks(n_blocks: int, k: int) -> None:
    """Raise an error if the numbers of blocks and methods do not allow a comparison of ranks."""
    checks.positive_int(n_blocks, "n_blocks")
    if k < 2:
        raise DomainError(f"at least 2 methods are needed to compare mean ranks; got {k}")


# ------------------------------------- exact distributions, of twice the ranks (whole numbers)
def _signed_rank_tails(ranks: FloatArray, statistic: float) -> tuple[float, float]:
    """Return P(sum <= statistic) and P(sum >= statistic) for the sum of the positive ranks.

    `ranks` are the mid-ranks of the nonzero differences, shape (n,).
    """
    doubled_ranks = tuple(sorted(np.rint(2 * ranks).astype(np.int64).tolist()))
    probabilities = _signed_rank_probabilities(doubled_ranks)
    doubled_statistic = int(np.rint(2 * statistic))
    lower_tail = float(probabilities[: doubled_statistic + 1].sum())
    return lower_tail, float(probabilities[doubled_statistic:].sum())


@lru_cache(maxsize=64)
def _signed_rank_probabilities(doubled_ranks: tuple[int, ...]) -> FloatArray:
    """Return the probability of each sum of positive ranks if each sign has probability 1/2."""
    probabilities = np.zeros(sum(doubled_ranks) + 1)
    probabilities[0] = 1.0
    for rank in doubled_ranks:
        probabilities /= 2
        # NumPy copies the right-hand side, because the right-hand side overlaps with the target.
        probabilities[rank:] += probabilities[:-rank]
    return np.asarray(read_only(probabilities))


def _exact_friedman_p_value(ranks: FloatArray) -> float | None:
    """Return the exact p-value of Friedman's test from ranks (blocks, k); None for large tables."""
    doubled_ranks = np.rint(2 * ranks).astype(np.int64)
    blocks: _Blocks = tuple(sorted(tuple(sorted(row)) for row in doubled_ranks.tolist()))
    distribution = _variation_distribution(blocks)
    if distribution is None:
        return None
    variation, probability = distribution
    observed = _variation(doubled_ranks.sum(axis=0)[None, :])[0]
    return min(1.0, float(probability[variation >= observed].sum()))


def _variation(rank_sums: IntArray) -> IntArray:
    """Return k^2 times the sum of squared deviations from the mean for each row, as an integer."""
    k = rank_sums.shape[1]
    deviations = k * rank_sums - rank_sums.sum(axis=1, keepdims=True)
    return np.asarray(np.square(deviations).sum(axis=1))


@lru_cache(maxsize=64)
def _variation_distribution(blocks: _Blocks) -> tuple[IntArray, FloatArray] | None:
    """Return the possible values of `_variation` and their probabilities, or None for large tables.

    All orders of the ranks within a block have equal probability.
    """
    k = len(blocks[0])
    # Each array of rank sums is encoded as one integer, whose digits are the first k - 1 sums.
    base = 2 * k * len(blocks) + 1
    if float(base) ** (k - 1) > 2.0**62:
        return None
    # The methods are exchangeable, so the first block has a fixed order and rank sums are sorted.
    rank_sums: IntArray = np.array(blocks[:1])
    probability: FloatArray = np.ones(1)
    n_rank_sums = 0
    for block in blocks[1:]:
        n_rank_sums += rank_sums.shape[0] * factorial(k)
        if n_rank_sums > _MAX_RANK_SUMS:
            return None
        orders = np.array(sorted(set(permutations(block))))
        candidates = np.sort((rank_sums[:, None, :] + orders).reshape(-1, k), axis=1)
        # The last sum is redundant, because the total is constant.
        key = candidates[:, :-1] @ (base ** np.arange(k - 1))
        _, distinct, index = np.unique(key, return_index=True, return_inverse=True)
        n_orders = len(orders)
        weights = np.repeat(probability / n_orders, n_orders)
        rank_sums = candidates[distinct]
        probability = np.bincount(index, weights=weights).astype(np.float64)
    return _variation(rank_sums), probability
