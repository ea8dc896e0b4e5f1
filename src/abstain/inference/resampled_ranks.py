"""Rankings of methods over resamples, data sets and runs, and agreement between rankings."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain.errors import DomainError, ShapeError
from abstain.inference.bootstrap_intervals import quantiles
from abstain.inference.intervals import check_level
from abstain.inference.ranking import (
    TIES,
    Ties,
    check_array,
    count_better_and_equal,
    expand_to_all_methods,
    rank_probabilities_from_counts,
    ranks,
)
from abstain.typing import AnyArray, FloatArray


def rank_probabilities_of_replicates(replicates: AnyArray, *, lower_is_better: bool) -> FloatArray:
    """Compute the share of resamples in which each method has each rank.

    Answers: how often would this method be first, second or third?

    Parameters
    ----------
    replicates : array of shape (k, B)
        The metric of each method on each resample.
    lower_is_better : bool
        The direction of the metric.

    Returns
    -------
    ndarray of shape (k, k)
        Entry [i, r] is the share of the resamples in which method i has rank r + 1. Equal methods
        share their ranks, so rows and columns sum to 1. A method whose metric is NaN in all
        resamples has a row of NaN. Resamples in which the metric of another method is NaN are
        dropped.

    Raises
    ------
    ShapeError
        If `replicates` does not have two axes.

    Examples
    --------
    >>> from abstain.inference.resampled_ranks import rank_probabilities_of_replicates
    >>> replicates = [[0.1, 0.3], [0.2, 0.2]]
    >>> rank_probabilities_of_replicates(replicates, lower_is_better=True).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    table = check_array(replicates, "replicates", "k", "B")
    has_values = np.asarray(~np.isnan(table).all(axis=1))
    is_complete = ~np.isnan(table[has_values]).any(axis=0)
    complete = table[has_values][:, is_complete]
    if not complete.size:
        return np.full((has_values.size, has_values.size), np.nan)
    probabilities = _rank_probabilities(complete, lower_is_better=lower_is_better)
    return expand_to_all_methods(has_values, probabilities)


def _rank_probabilities(values: FloatArray, *, lower_is_better: bool) -> FloatArray:
    """Return the share of columns in which each method (row) has each rank."""
    better, equal = count_better_and_equal(values, lower_is_better=lower_is_better)
    return rank_probabilities_from_counts(better, equal)


@dataclass(frozen=True, eq=False)
class RankSummary:
    """Mean rank and central range of the rank of each method.

    Attributes
    ----------
    mean, low, high : ndarray of shape (k,)
        Mean rank, and the lowest and the highest rank of the central range. The values are NaN for
        a method without rank probabilities.
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def rank_summary(probabilities: AnyArray, *, level: float = 0.95) -> RankSummary:
    """Compute the mean rank and a central range of the rank from rank probabilities.

    Answers: which ranks are plausible for this method?

    Parameters
    ----------
    probabilities : array of shape (k, k)
        Entry [i, r] is the probability that method i has rank r + 1. Rows sum to 1.
    level : float, default=0.95
        Level of the range. The probability of a rank below the range is at most (1 - level)/2, as
        is the probability of a rank above the range.

    Returns
    -------
    RankSummary
        Mean ranks and ranges of all methods.

    Raises
    ------
    ShapeError
        If `probabilities` does not have two axes.
    DomainError
        If `level` is not between 0 and 1.

    Examples
    --------
    >>> from abstain.inference.resampled_ranks import rank_summary
    >>> summary = rank_summary([[0.99, 0.01], [0.01, 0.99]])
    >>> summary.mean.tolist(), summary.high.tolist()
    ([1.01, 1.99], [1.0, 2.0])
    """
    table = check_array(probabilities, "probabilities", "k", "k")
    tail = (1 - check_level(level)) / 2
    cumulative = np.cumsum(table, axis=1)
    # The tolerance is for rounding in sums of shares such as 1/3.
    low = 1.0 + np.argmax(cumulative >= tail - 1e-9, axis=1)
    high = 1.0 + np.argmax(cumulative >= 1 - tail - 1e-9, axis=1)
    is_undefined = np.isnan(table).any(axis=1)
    low[is_undefined] = np.nan
    high[is_undefined] = np.nan
    return RankSummary(table @ np.arange(1.0, table.shape[1] + 1), low, high)


@dataclass(frozen=True, eq=False)
class AggregatedRanking:
    """Ranking of methods over blocks, such as data sets or runs, and its variation over resamples.

    Attributes
    ----------
    ranks : ndarray of shape (k,)
        The final ranks, where 1 is best. Equal methods have the mean of their ranks or their lowest
        rank.
    mean_ranks : ndarray of shape (k,)
        Mean rank over resamples, and over blocks if each block is ranked separately.
    rank_probabilities : ndarray of shape (k, k)
        Entry [i, r] is the share of the resamples in which method i has rank r + 1 in the ranking
        over all blocks. Equal methods share their ranks.
    frequencies : ndarray of shape (k, k)
        Entry [i, r] is the share of all blocks and resamples in which method i has rank r + 1. Blob
        plots show these shares. If blocks are not ranked separately, the shares equal
        `rank_probabilities`.
    low, high : ndarray of shape (k,)
        Central range of the ranks.
    level : float
        Level of the central range.
    n_blocks, n_resamples : int
        Number of blocks and resamples without missing values.
    note : str
        Numbers of dropped blocks and resamples, with the reason, or empty.
    """

    ranks: FloatArray
    mean_ranks: FloatArray
    rank_probabilities: FloatArray
    frequencies: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    n_blocks: int
    n_resamples: int
    note: str = ""


def rank_then_aggregate(
    replicates: AnyArray, *, lower_is_better: bool, level: float = 0.95, ties: Ties = "mean"
) -> AggregatedRanking:
    """Rank the methods in each block and resample, average their ranks and rank the averages.

    Answers: which method has the best mean rank over the data sets?

    Parameters
    ----------
    replicates : array of shape (blocks, k, B)
        The metric of each method on each resample of each data set (or run).
    lower_is_better : bool
        The direction of the metric.
    level : float, default=0.95
        Level of the central range of the ranks.
    ties : {"mean", "min"}, default="mean"
        Rank of equal methods in each block and resample and in the final ranking. For both options,
        equal methods share their rank probabilities.

    Returns
    -------
    AggregatedRanking
        The ranking. Blocks in which a method has no value, and resamples with a NaN, are dropped.
        The note states the numbers of dropped blocks and resamples.

    Raises
    ------
    ShapeError
        If `replicates` does not have three axes.
    DomainError
        If no block or resample is complete, or `level` is not between 0 and 1.
    InputError
        If `ties` is unknown.

    Notes
    -----
    The ranking does not depend on the scale of the metric on different data sets or on the size of
    the differences. The resamples need not be paired across blocks.

    References
    ----------
    .. [1] Wiesenfarth et al. (2021), Methods and open-source toolkit for analyzing and
       visualizing challenge results, https://doi.org/10.1038/s41598-021-82017-6

    Examples
    --------
    >>> from abstain.inference.resampled_ranks import rank_then_aggregate
    >>> result = rank_then_aggregate([[[1, 1], [2, 2]], [[1, 5], [4, 4]]], lower_is_better=True)
    >>> result.mean_ranks.tolist(), result.ranks.tolist()
    ([1.25, 1.75], [1.0, 2.0])
    """
    checks.one_of(ties, "ties", TIES)
    table, note = _complete(replicates)
    n_blocks, k, n_resamples = table.shape
    pooled = np.moveaxis(table, 1, 0).reshape(k, -1)
    better, equal = count_better_and_equal(pooled, lower_is_better=lower_is_better)
    # Ranks are multiples of 0.5, so their sums are exact and ties of sums are detected exactly.
    rank = 1.0 + better
    if ties == "mean":
        rank += equal / 2
    rank_sum = rank.reshape(k, n_blocks, n_resamples).sum(axis=1)
    probabilities = _rank_probabilities(rank_sum, lower_is_better=True)
    mean = rank_sum.sum(axis=1) / (n_blocks * n_resamples)
    summary = rank_summary(probabilities, level=level)
    return AggregatedRanking(
        ranks=ranks(mean, lower_is_better=True, ties=ties),
        mean_ranks=mean,
        rank_probabilities=probabilities,
        frequencies=rank_probabilities_from_counts(better, equal),
        low=summary.low,
        high=summary.high,
        level=level,
        n_blocks=n_blocks,
        n_resamples=n_resamples,
        note=note,
    )


def aggregate_then_rank(
    replicates: AnyArray, *, lower_is_better: bool, level: float = 0.95, ties: Ties = "mean"
) -> AggregatedRanking:
    """Average the metric over the blocks in each resample and rank the averages.

    Answers: which method has the best metric on average over the data sets?

    Parameters
    ----------
    replicates : array of shape (blocks, k, B)
        The metric of each method on each resample of each data set (or run).
    lower_is_better : bool
        The direction of the metric.
    level : float, default=0.95
        Level of the central range of the ranks.
    ties : {"mean", "min"}, default="mean"
        Rank of equal methods in the final ranking.

    Returns
    -------
    AggregatedRanking
        The ranking, whose final ranks are the ranks of the mean over blocks and resamples. Blocks
        in which a method has no value, and resamples with a NaN, are dropped. The note states the
        numbers of dropped blocks and resamples.

    Raises
    ------
    ShapeError
        If `replicates` does not have three axes.
    DomainError
        If no block or resample is complete, or `level` is not between 0 and 1.
    InputError
        If `ties` is unknown.

    Notes
    -----
    Data sets on which the metric is large have more influence than other data sets.

    References
    ----------
    .. [1] Wiesenfarth et al. (2021), Methods and open-source toolkit for analyzing and
       visualizing challenge results, https://doi.org/10.1038/s41598-021-82017-6

    Examples
    --------
    >>> from abstain.inference.resampled_ranks import aggregate_then_rank
    >>> result = aggregate_then_rank([[[1, 1], [2, 2]], [[1, 5], [4, 4]]], lower_is_better=True)
    >>> result.mean_ranks.tolist(), result.ranks.tolist()
    ([1.25, 1.75], [1.0, 2.0])
    """
    table, note = _complete(replicates)
    mean = table.mean(axis=0)
    probabilities = _rank_probabilities(mean, lower_is_better=lower_is_better)
    summary = rank_summary(probabilities, level=level)
    return AggregatedRanking(
        ranks=ranks(mean.mean(axis=1), lower_is_better=lower_is_better, ties=ties),
        mean_ranks=summary.mean,
        rank_probabilities=probabilities,
        frequencies=probabilities,
        low=summary.low,
        high=summary.high,
        level=level,
        n_blocks=table.shape[0],
        n_resamples=table.shape[2],
        note=note,
    )


def _complete(replicates: AnyArray) -> tuple[FloatArray, str]:
    """Return the blocks and resamples in which every method has a value, and a note.

    A block is dropped if a method has no value on any of its resamples. The note states the numbers
    of dropped blocks and resamples.
    """
    table = check_array(replicates, "replicates", "blocks", "k", "B")
    is_missing = np.isnan(table)
    has_no_value = np.asarray(is_missing.all(axis=2))
    keep_block = np.asarray(~has_no_value.any(axis=1))
    keep_resample = np.asarray(~is_missing[keep_block].any(axis=(0, 1)))
    if not (keep_block.any() and keep_resample.any()):
        raise DomainError(
            "`replicates` must have a block and a resample on which every method has a value; got "
            "NaN in all of them. Leave out the methods or the data sets without values."
        )
    notes = []
    for name, keep in (("data sets or runs", keep_block), ("resamples", keep_resample)):
        n_dropped = int(keep.size - np.count_nonzero(keep))
        if n_dropped:
            notes.append(
                f"{n_dropped} of {keep.size} {name} left out, because a method has no value there"
            )
    return table[keep_block][:, :, keep_resample], "; ".join(notes)


#: Maximum number of entries in an array of pairs of methods and resamples.
_MAX_NUMBERS = 4_000_000
#: Number of resamples whose pairs determine the range of tau.
_MAX_RESAMPLES_FOR_RANGE = 1_000


@dataclass(frozen=True)
class TauSummary:
    """Kendall's tau over resamples.

    Attributes
    ----------
    mean, low, high : float
        Mean and bounds of the central range. If tau is undefined on all resamples, the mean and the
        bounds are NaN and `note` states the reason.
    level : float
        Level of the range.
    note : str
        Number of dropped resamples or reason for missing values; empty if there are none.
    """

    mean: float
    low: float
    high: float
    level: float
    note: str = ""


def kendall(first: AnyArray, second: AnyArray) -> float:
    """Compute Kendall's tau-b of two rankings of the same methods.

    Answers: do both rankings have the same order?

    Parameters
    ----------
    first, second : array of shape (k,)
        Ranks, or values of metrics with the same direction. Methods with a NaN are dropped.

    Returns
    -------
    float
        Kendall's tau-b, which corrects for ties. The value is 1 for the same order, -1 for the
        reverse order, and NaN if fewer than two methods have values, or if all methods are tied in
        one ranking.

    Raises
    ------
    ShapeError
        If the lengths differ.

    Examples
    --------
    >>> from abstain.inference.resampled_ranks import kendall
    >>> round(kendall([1, 2, 3, 4], [1, 3, 2, 4]), 3)
    0.667
    """
    first_ranks, second_ranks = _check_same_shape(first, second, "k")
    is_defined = ~(np.isnan(first_ranks) | np.isnan(second_ranks))
    if is_defined.sum() < 2:
        return float("nan")
    first_signs = _pair_signs(first_ranks[is_defined, None])
    second_signs = _pair_signs(second_ranks[is_defined, None])
    return float(first_signs[:, 0] @ second_signs[:, 0])


def agreement(
    first: AnyArray, second: AnyArray, *, same_direction: bool = True, level: float = 0.95
) -> TauSummary:
    """Compute Kendall's tau-b between two metrics on each resample.

    Answers: how similar are the rankings of the methods by two metrics over the resamples?

    Parameters
    ----------
    first, second : array of shape (k, B)
        The two metrics of each method on each resample.
    same_direction : bool, default=True
        Whether both metrics have the same direction. False if lower is better for only one of the
        metrics.
    level : float, default=0.95
        Level of the central range.

    Returns
    -------
    TauSummary
        Mean and central range of tau. Resamples with an undefined tau are dropped, and the note
        states their number.

    Raises
    ------
    ShapeError
        If the shapes differ.
    DomainError
        If `level` is not between 0 and 1.

    Examples
    --------
    >>> from abstain.inference.resampled_ranks import agreement
    >>> agreement([[1, 1], [2, 2]], [[3, 4], [4, 3]]).mean
    0.0
    """
    first_metric, second_metric = _check_same_shape(first, second, "k", "B")
    k, n_resamples = first_metric.shape
    step = _resamples_in_block(k)
    tau = np.empty(n_resamples)
    for start in range(0, n_resamples, step):
        block = slice(start, start + step)
        first_signs = _pair_signs(first_metric[:, block])
        second_signs = _pair_signs(second_metric[:, block])
        tau[block] = np.einsum("pb,pb->b", first_signs, second_signs)
    defined = tau[~np.isnan(tau)] if k > 1 else np.empty(0)
    if not same_direction:
        defined = -defined
    note = _dropped_note(n_resamples - defined.size, n_resamples)
    return _summarize(defined, note, check_level(level))


def stability(replicates: AnyArray, *, level: float = 0.95) -> TauSummary:
    """Compute Kendall's tau-b between the rankings of pairs of resamples.

    Answers: would the ranking be the same on other data?

    Parameters
    ----------
    replicates : array of shape (k, B)
        The metric of each method on each resample.
    level : float, default=0.95
        Level of the central range.

    Returns
    -------
    TauSummary
        The mean over all pairs of resamples, and the central range over the pairs of the first
        1,000 resamples.

    Raises
    ------
    ShapeError
        If `replicates` does not have two axes.
    DomainError
        If `level` is not between 0 and 1.

    Notes
    -----
    Two resamples of the same data differ about as much as two independent samples from the
    population. The result does not depend on the direction of the metric. The cost is k^2 B.

    Examples
    --------
    >>> from abstain.inference.resampled_ranks import stability
    >>> stability([[1, 1, 2], [2, 3, 1]]).mean
    -0.333...
    """
    table = check_array(replicates, "replicates", "k", "B")
    level = check_level(level)
    k, n_resamples = table.shape
    step = _resamples_in_block(k)
    sign_sum = np.zeros(k * (k - 1) // 2)
    n_used = 0
    taus = np.empty(0)
    for start in range(0, n_resamples, step):
        signs = _pair_signs(table[:, start : start + step])
        signs = signs[:, ~np.isnan(signs).any(axis=0)]
        if start == 0:
            taus = _taus_of_pairs(signs[:, : min(_MAX_RESAMPLES_FOR_RANGE, step)])
        sign_sum += signs.sum(axis=1)
        n_used += signs.shape[1]
    note = _dropped_note(n_resamples - n_used, n_resamples)
    if k < 2 or n_used < 2:
        return _summarize(np.empty(0), note, level)
    summary = _summarize(taus, note, level)
    # The columns have length 1, so the products of columns with themselves sum to `n_used`.
    mean = float(sign_sum @ sign_sum - n_used) / (n_used * (n_used - 1))
    return TauSummary(mean, summary.low, summary.high, level, note)


def _taus_of_pairs(signs: FloatArray) -> FloatArray:
    """Return Kendall's tau of all pairs of different columns."""
    gram = signs.T @ signs
    return np.asarray(gram[np.triu_indices(gram.shape[0], 1)])


def _pair_signs(values: FloatArray) -> FloatArray:
    """Return the scaled signs of the differences of all pairs of methods, shape (pairs, B).

    Each column has the Euclidean norm 1, so the dot product of two columns is Kendall's tau-b. If
    all methods are tied, the column is NaN.
    """
    i, j = np.triu_indices(values.shape[0], 1)
    signs = np.sign(values[i] - values[j])
    length = np.sqrt((signs * signs).sum(axis=0))
    out = np.full(signs.shape, np.nan)
    np.divide(signs, length, out=out, where=length > 0)
    return out


def _resamples_in_block(k: int) -> int:
    """Return the number of resamples of k methods that fit into one block."""
    n_pairs = max(1, k * (k - 1) // 2)
    return max(2, _MAX_NUMBERS // n_pairs)


def _dropped_note(n_dropped: int, n_resamples: int) -> str:
    if not n_dropped:
        return ""
    reason = "resamples left out, because a value is NaN or all methods are tied"
    return f"{n_dropped} of {n_resamples} {reason}"


def _summarize(taus: FloatArray, note: str, level: float) -> TauSummary:
    if not taus.size:
        nan = float("nan")
        note = note or "no two methods or resamples can be compared"
        return TauSummary(nan, nan, nan, level, note)
    low, high = quantiles(taus, [(1 - level) / 2, (1 + level) / 2])
    return TauSummary(float(taus.mean()), float(low), float(high), level, note)


def _check_same_shape(
    first: AnyArray, second: AnyArray, *axes: str
) -> tuple[FloatArray, FloatArray]:
    """Validate two arrays with the same axes and the same shape."""
    first_array = check_array(first, "first", *axes)
    second_array = check_array(second, "second", *axes)
    if first_array.shape != second_array.shape:
        raise ShapeError(
            "`first` and `second` must have the same shape; got "
            f"{first_array.shape} and {second_array.shape}"
        )
    return first_array, second_array
