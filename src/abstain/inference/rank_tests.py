"""Rank tests over samples that are independent: Wilcoxon's signed rank test and Friedman's.

The samples (blocks) are data sets, runs or folds. For the replicates of a bootstrap, which are
not independent samples, see `abstain.inference.paired`.
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
from abstain.inference.ranking import ROUNDING, alike, ranks, stack
from abstain.typing import AnyArray, FloatArray, IntArray

Alternative: TypeAlias = Literal["two-sided", "less", "greater"]

ALTERNATIVES = ("two-sided", "less", "greater")
#: Up to here the distribution of the signed ranks is counted out, ties or not.
EXACT_UP_TO = 50

#: Twice the mid-ranks of each block, in an order that does not matter.
_Blocks: TypeAlias = tuple[tuple[int, ...], ...]

#: Sums of ranks looked at before counting is given up: some tenths of a second.
_MOST_SUMS: Final = 1_000_000


@dataclass(frozen=True)
class WilcoxonResult:
    """Wilcoxon's signed rank test of one sample of differences.

    Attributes
    ----------
    statistic : float
        Sum of the ranks of the positive differences.
    p_value : float
        Of the alternative that was asked for.
    pairs : int
        Pairs whose difference is not zero; the others say nothing and are left out.
    method : str
        "exact", "normal" (more than 50 pairs), or "no difference".
    """

    statistic: float
    p_value: float
    pairs: int
    method: str


def wilcoxon(x: AnyArray, y: AnyArray, *, alternative: Alternative = "two-sided") -> WilcoxonResult:
    """Test whether paired values differ, by Wilcoxon's signed rank test.

    Answers: are the first values below (or above) the second more than chance explains?

    Parameters
    ----------
    x, y : array of shape (n,)
        The two values of each pair; a pair with a NaN is left out.
    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        "less": the first values tend to be lower.

    Returns
    -------
    WilcoxonResult
        With p = 1 where no pair differs.

    Raises
    ------
    ShapeError
        If the lengths differ.
    InputError
        If `alternative` is unknown.

    Notes
    -----
    The pairs must be independent of each other. Up to 50 pairs the chances are counted over all
    signs of the ranks, which tied differences share [2]_, so that the level holds with ties too;
    with few pairs no small p-value exists: five pairs give at least 1/32 one-sided. The normal form
    corrects for ties, not for continuity. Values, and sizes of differences, that are equal but for
    rounding are equal.

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
    WilcoxonResult(statistic=0.0, p_value=0.03125, pairs=5, method='exact')
    """
    first, second = stack(x, "x", "n"), stack(y, "y", "n")
    if first.size != second.size:
        raise ShapeError(
            f"`x` and `y` must have the same length; got {first.size} and {second.size}"
        )
    checks.one_of(alternative, "alternative", ALTERNATIVES)
    return _signed_ranks(first, second, alternative)


def _signed_ranks(x: FloatArray, y: FloatArray, alternative: str) -> WilcoxonResult:
    with np.errstate(invalid="ignore"):
        d = x - y
    kept = ~np.isnan(d) & ~alike(x, y)
    d, size = d[kept], np.maximum(np.abs(x), np.abs(y))[kept]
    if not d.size:
        return WilcoxonResult(0.0, 1.0, 0, "no difference")
    placed = _ranks_of_sizes(np.abs(d), size)
    positive = float(placed[d > 0].sum())
    exact = d.size <= EXACT_UP_TO
    if exact:
        low, high = _signed_rank_tails(placed, positive)
    else:
        z = (positive - placed.sum() / 2) / np.sqrt(np.square(placed).sum() / 4)
        low, high = float(special.ndtr(z)), float(special.ndtr(-z))
    p = {"less": low, "greater": high}.get(alternative, 2 * min(low, high))
    return WilcoxonResult(positive, min(1.0, p), int(d.size), "exact" if exact else "normal")


def _ranks_of_sizes(apart: FloatArray, size: FloatArray) -> FloatArray:
    """Return the mid-ranks of differences between values of these sizes, rounding allowed for."""
    order = np.argsort(apart, kind="stable")
    sorted_apart, sorted_size = apart[order], size[order]
    with np.errstate(invalid="ignore"):
        far = np.diff(sorted_apart) > ROUNDING * np.maximum(sorted_size[1:], sorted_size[:-1])
    # Infinite differences are equal: their distance is NaN.
    place = np.concatenate(([0], np.cumsum(far)))
    count = np.bincount(place)
    out = np.empty(apart.size)
    out[order] = (np.cumsum(count) - (count - 1) / 2)[place]
    return out


def pairwise_wilcoxon(
    values: AnyArray, *, lower_is_better: bool, alternative: str = "better"
) -> FloatArray:
    """Test each pair of methods over independent blocks by Wilcoxon's signed rank test.

    Answers: which methods are better than which others across data sets or runs?

    Parameters
    ----------
    values : array of shape (blocks, k)
        The metric on each data set (or run) of each method; a NaN leaves the block out of the
        pairs of that method.
    lower_is_better : bool
        The direction of the metric.
    alternative : {"better", "two-sided"}, default="better"
        One-sided (the row is better than the column), or two-sided.

    Returns
    -------
    ndarray of shape (k, k)
        Entry [i, j] is the p-value of "i is better than j" (or "i and j differ"), unadjusted;
        NaN on the diagonal.

    Raises
    ------
    ShapeError
        If `values` is no table.
    InputError
        If `alternative` is unknown.

    Notes
    -----
    Adjust with `abstain.inference.multiplicity.adjust`. Blocks must be independent of each other.

    Examples
    --------
    >>> from abstain.inference.rank_tests import pairwise_wilcoxon
    >>> runs = [[0.1, 0.2], [0.2, 0.4], [0.1, 0.4], [0.3, 0.7], [0.2, 0.7]]
    >>> pairwise_wilcoxon(runs, lower_is_better=True).round(3).tolist()
    [[nan, 0.031], [1.0, nan]]
    """
    table = stack(values, "values", "blocks", "k")
    checks.one_of(alternative, "alternative", ("better", "two-sided"))
    better = "less" if lower_is_better else "greater"
    side = better if alternative == "better" else alternative
    k = table.shape[1]
    out = np.full((k, k), np.nan)
    for i, j in np.argwhere(~np.eye(k, dtype=np.bool_)):
        if alternative == "two-sided" and j < i:
            out[i, j] = out[j, i]
            continue
        out[i, j] = _signed_ranks(table[:, i], table[:, j], side).p_value
    return out


@dataclass(frozen=True, eq=False)
class FriedmanResult:
    """Friedman's test whether any of several methods differ in rank over blocks.

    Attributes
    ----------
    statistic, p_value : float
        Chi-square corrected for ties, and its p-value as `method` says.
    f_statistic, f_p_value : float
        Iman and Davenport's form; for fewer than about 6 blocks it finds too much.
    mean_ranks : ndarray of shape (k,)
        1 is best; NaN when no block is complete.
    blocks : int
        Complete blocks, those without a NaN.
    note : str
        Why there is no test, or what was left out; or empty.
    method : str
        "exact", counted over all orders of the blocks; "chi-square", with k - 1 degrees of
        freedom, where there are too many of them; "none".
    """

    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    mean_ranks: FloatArray
    blocks: int
    note: str = ""
    method: str = "none"


def friedman(values: AnyArray, *, lower_is_better: bool) -> FriedmanResult:
    """Test whether any methods differ in rank across blocks, by Friedman's test.

    Answers: is there any difference between these methods over all data sets, or only chance?

    Parameters
    ----------
    values : array of shape (blocks, k)
        The metric on each data set (or run) of each method; a block with a NaN is left out.
    lower_is_better : bool
        The direction of the metric.

    Returns
    -------
    FriedmanResult
        NaN with a note for fewer than 2 complete blocks or 2 methods. For 2 methods it is the
        sign test.

    Raises
    ------
    ShapeError
        If `values` is no table.

    Notes
    -----
    Blocks must be independent of each other. When all values are equal in every block the
    statistic is 0 and p = 1. The p-value is counted out, ties as they are, while a million sums of
    ranks suffice (3 methods in some 80 blocks, 5 in 8, 8 in 2); beyond, chi-square keeps its
    level. Where they do it finds 12 % in 4 blocks of 2 methods and 7 % in 4 blocks of 3, where 5 %
    are meant, and nothing at all in 2 blocks.

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
    table = stack(values, "values", "blocks", "k")
    whole = ~np.isnan(table).any(axis=1)
    left_out = int(whole.size - whole.sum())
    note = f"{left_out} of {whole.size} blocks left out, since a method has no value there"
    placed = ranks(table, lower_is_better=lower_is_better, axis=1)[whole]
    blocks, k = placed.shape
    mean = placed.mean(axis=0) if blocks else np.full(k, np.nan)
    if blocks < 2 or k < 2:
        why = f"Friedman's test needs 2 complete blocks and 2 methods; got {blocks} and {k}"
        nan = float("nan")
        return FriedmanResult(nan, nan, nan, nan, mean, blocks, why)
    # Without ties the squared ranks of a block vary by k(k + 1)/12; with ties by less.
    spread = float(placed.var(axis=1, ddof=1).mean())
    statistic = 0.0 if spread == 0 else blocks * float(((mean - (k + 1) / 2) ** 2).sum()) / spread
    rest = blocks * (k - 1) - statistic
    f = (blocks - 1) * statistic / rest if rest > 1e-9 * statistic else float("inf")
    f = 0.0 if statistic == 0 else f
    exact = _friedman_tail(placed)
    return FriedmanResult(
        statistic,
        float(special.chdtrc(k - 1, statistic)) if exact is None else exact,
        f,
        float(special.fdtrc(k - 1, (k - 1) * (blocks - 1), f)),
        mean,
        blocks,
        note if left_out else "",
        "chi-square" if exact is None else "exact",
    )


def check_blocks(blocks: int, k: int) -> None:
    """Refuse numbers of blocks and methods for which mean ranks cannot be compared."""
    checks.positive_int(blocks, "blocks")
    if k < 2:
        raise DomainError(f"at least 2 methods are needed to compare mean ranks; got {k}")


# --------------------------------------------- counted out, in twice the ranks, which are whole
def _signed_rank_tails(ranks: FloatArray, positive: float) -> tuple[float, float]:
    """Return the chances that the ranks with a fair sign sum to at most, and at least, this.

    Takes the mid-ranks of the differences that are not zero, shape (n,). Cost: n^3 / 2 steps.
    """
    chances = _signed_rank_chances(tuple(sorted(np.rint(2 * ranks).astype(np.int64).tolist())))
    at = int(np.rint(2 * positive))
    return float(chances[: at + 1].sum()), float(chances[at:].sum())


@lru_cache(maxsize=64)
def _signed_rank_chances(doubled: tuple[int, ...]) -> FloatArray:
    """Return the chance of each sum of such ranks, each with a fair sign."""
    chances = np.zeros(sum(doubled) + 1)
    chances[0] = 1.0
    for rank in doubled:
        chances /= 2
        # NumPy copies where source and target overlap.
        chances[rank:] += chances[:-rank]
    return np.asarray(read_only(chances))


def _friedman_tail(placed: FloatArray) -> float | None:
    """Return the chance of rank sums at least as far apart as these, shape (blocks, k).

    Each block takes any order of its own mid-ranks. None where there are too many orders to count.
    """
    doubled = np.rint(2 * placed).astype(np.int64)
    blocks: _Blocks = tuple(sorted(tuple(sorted(row)) for row in doubled.tolist()))
    known = _spread_chances(blocks)
    if known is None:
        return None
    spread, chance = known
    return min(1.0, float(chance[spread >= _spread(doubled.sum(axis=0)[None, :])[0]].sum()))


def _spread(sums: IntArray) -> IntArray:
    """Return k^2 times the sum of squares of each row about its mean, in whole numbers."""
    k = sums.shape[1]
    return np.asarray(np.square(k * sums - sums.sum(axis=1, keepdims=True)).sum(axis=1))


@lru_cache(maxsize=64)
def _spread_chances(blocks: _Blocks) -> tuple[IntArray, FloatArray] | None:
    """Return the values of `_spread` and their chances; None where there are too many."""
    k = len(blocks[0])
    highest = 2 * k * len(blocks) + 1
    if float(highest) ** (k - 1) > 2.0**62:
        return None
    # All columns are alike, so that the first block may stay as it is and sums may be sorted.
    sums: IntArray = np.array(blocks[:1])
    chance: FloatArray = np.ones(1)
    looked_at = 0
    for block in blocks[1:]:
        looked_at += sums.shape[0] * factorial(k)
        if looked_at > _MOST_SUMS:
            return None
        orders = np.array(sorted(set(permutations(block))))
        table = np.sort((sums[:, None, :] + orders).reshape(-1, k), axis=1)
        # The last sum follows from the others.
        key = table[:, :-1] @ (highest ** np.arange(k - 1))
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        shares = np.repeat(chance / orders.shape[0], orders.shape[0])
        sums = table[first]
        chance = np.bincount(place, weights=shares).astype(np.float64)
    return _spread(sums), chance
